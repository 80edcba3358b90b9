"""`maximise` on fields with factors of any order: labels, bounds and proofs against enumeration."""

import numpy as np
import pytest
import torch
from inference.factor_cases import factor_fields

from accord import maximise
from accord.errors import InfeasibleError
from accord.field.factors import FactorField, OrFactors, ParityFactors, TableFactors
from accord.inference.search import _dual, _native, _reference, _rules
from accord.inference.search._ragged import ragged

ELIMINATION, GROUPS, SEARCH, BRANCHING = 1, 2, 4, 8


def by_graph(field, model, found):
    """Bounds, scores, proofs and contradictions [replicas * graphs]."""
    replicas, count = field.replicas.numel(), field.replicas.numel() * field.num_graphs
    group = (model.graph[None] + field.num_graphs * np.arange(replicas)[:, None]).reshape(-1)
    owner = group[np.unique(found.component, return_index=True)[1]]
    bound = np.bincount(owner, weights=found.bound, minlength=count)
    proved = np.bincount(owner, weights=found.proof == 0, minlength=count) == 0
    none = np.bincount(owner, weights=found.infeasible, minlength=count) > 0
    return bound, model.scores(found.labels, group, count), proved, none


@pytest.mark.parametrize("long_rules", [False, True])
@pytest.mark.parametrize(
    ("ways", "budget"),
    [
        (ELIMINATION, 60.0),
        (0, 60.0),  # the dual alone, and backtracking
        (GROUPS, 60.0),
        (SEARCH, 60.0),
        (BRANCHING, 60.0),
        (GROUPS | BRANCHING, 60.0),
        (GROUPS | SEARCH | BRANCHING, 1e-4),  # time is up at once
    ],
)
def test_no_bound_is_below_the_optimum(ways, budget, long_rules, monkeypatch):
    """7,000 fields in all, of every kind that a FactorField can hold."""
    if long_rules:
        monkeypatch.setattr(_rules, "LARGEST_TABLE", 0)
    field, best = factor_fields(500, seed=ways + 100 * long_rules, replicas=1 + long_rules)
    best, model = best.reshape(-1), ragged(field)
    work = 0.0 if budget < 1 else 1e-4 if ways & BRANCHING else 1e-6
    bound, score, proved, none = by_graph(field, model, _native.solve(model, budget, seed=0, work=work, ways=ways))
    slack = 1e-9 * (1 + np.abs(np.where(np.isfinite(best), best, 0)))
    feasible = best > -np.inf
    assert (bound[feasible] >= (best - slack)[feasible]).all() and (score <= best + slack).all()
    assert not none[feasible].any()
    assert (score >= best - slack)[proved & feasible].all()
    if ways & (ELIMINATION | BRANCHING) and budget > 1:
        assert proved[feasible].mean() > 0.99 and none[~feasible].mean() > 0.99
    if ways & SEARCH and budget > 1:
        assert (score >= best - slack)[feasible].mean() > 0.9


def test_batches_with_replicas_are_solved_and_proved():
    field, best = factor_fields(200, seed=1, replicas=2, feasible=True)
    found = maximise(field)
    torch.testing.assert_close(found.score, torch.tensor(best))
    torch.testing.assert_close(field.score(found.labels), found.score)
    assert found.optimal.all() and (found.gap == 0).all() and found.labels.shape == (2, field.num_nodes)
    assert found.score.dtype == torch.float64


def test_contradictions_are_proved():
    proved = 0
    for seed in range(150):
        field, best = factor_fields(1, seed=seed)
        if best[0, 0] > -np.inf:
            continue
        proved += 1
        with pytest.raises(InfeasibleError, match="proved") as error:
            maximise(field)
        assert error.value.proved and max(error.value.nodes) < field.num_nodes
    assert proved > 3


def test_labels_are_those_of_the_fields_own_variables():
    """A rule too long for a table becomes a chain with variables of its own."""
    node = torch.zeros(20, 2, dtype=torch.float64)
    node[3:7, 1], node[0, 1] = -1.0, 3.0
    node[7:, 1] = -2.0
    found = maximise(FactorField(node, [OrFactors(torch.arange(20)[None])]))
    assert found.labels.shape == (20,) and found.labels[0] == 1 and found.labels[1:3].sum() >= 1
    assert float(found.score) == 3.0 and bool(found.optimal)


def test_parity_checks_are_decoded():
    """A random code of rate 1/2: the sent word is the best one when noise is weak."""
    rng = np.random.default_rng(0)
    checks = np.stack([rng.permutation(120)[:6] for _ in range(60)])
    noise = np.where(rng.random(120) < 0.03, -1.0, 1.0)  # the word of zeros was sent
    node = torch.stack([torch.tensor(noise), -torch.tensor(noise)], dim=1)
    field = FactorField(node, [ParityFactors(torch.tensor(checks))])
    found = maximise(field, budget=5.0)
    assert float(found.score) >= noise.sum() - 1e-9 and float(field.score(found.labels)) == float(found.score)


def test_the_dual_equals_the_reference():
    field, _ = factor_fields(300, seed=3, forbidden=False, rules=False)
    kept = torch.tensor([bool((field.states[field.graph == name] > 1).all()) for name in range(300)])
    model = ragged(field)
    found = _native.solve(model, budget=0.0, seed=0, ways=0)
    compared = 0
    for name in kept.nonzero().flatten().tolist():
        nodes = np.nonzero(model.graph == name)[0]
        factors = np.nonzero(model.graph[model.home] == name)[0]
        scopes = [set(model.scope[model.scope_at[f] : model.scope_at[f + 1]].tolist()) for f in factors]
        nested = any(a <= b for i, a in enumerate(scopes) for j, b in enumerate(scopes) if i != j)
        components = np.unique(found.component[nodes])
        if nested or len(components) > 1 or any(len(scope) == 1 for scope in scopes):
            continue  # the kernel adds such tables to others
        compared += 1
        part = model.part(nodes, factors)
        dual = _dual.Dual(part)
        dual.iterate()
        score = part.scores(dual.labels, np.zeros(len(nodes), dtype=np.int64), 1)[0]
        np.testing.assert_allclose(found.bound[components[0]], max(dual.bound, score), rtol=1e-9, atol=1e-9)
    assert compared > 5


def test_reference_bounds_hold(monkeypatch):
    for enumerated in (14, -1):
        monkeypatch.setattr(_reference, "ENUMERATED", enumerated)
        field, best = factor_fields(60, seed=9 + enumerated)
        model = ragged(field)
        bound, score, proved, none = by_graph(field, model, _reference.solve(model, budget=1.0, seed=0))
        best = best[0]
        slack = 1e-9 * (1 + np.abs(np.where(np.isfinite(best), best, 0)))
        feasible = best > -np.inf
        assert (bound[feasible] >= (best - slack)[feasible]).all() and (score <= best + slack).all()
        assert (score >= best - slack)[proved & feasible].all() and not none[feasible].any()
        assert proved[feasible].mean() > (0.99 if enumerated > 0 else 0.3)


def test_a_table_within_another_and_a_variable_with_one_state():
    """The pair belongs to the triple, and the last variable has no choice."""
    rng = np.random.default_rng(0)
    triple, pair = torch.tensor(rng.normal(size=(1, 2, 3, 2))), torch.tensor(rng.normal(size=(1, 3, 2)))
    node = torch.zeros(4, 3, dtype=torch.float64)
    field = FactorField(
        node,
        [
            TableFactors(torch.tensor([[0, 1, 2]]), triple),
            TableFactors(torch.tensor([[1, 0]]), pair),
            TableFactors(torch.tensor([[2, 3]]), torch.tensor([[[1.0], [0.5]]], dtype=torch.float64)),
        ],
        num_states=torch.tensor([2, 3, 2, 1]),
    )
    best = (triple[0] + pair[0].T[:, :, None] + torch.tensor([1.0, 0.5])).max()
    assert float(maximise(field).score) == pytest.approx(float(best))
