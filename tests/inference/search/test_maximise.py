"""`maximise`: labels, bounds that hold, proofs, and what it says where there is no labelling."""

import time

import numpy as np
import pytest
import torch
from inference.search_cases import colouring, glass, grid_edges, small_fields

import accord
from accord import PairwiseField, enumerate_beliefs, maximise
from accord.errors import InfeasibleError, InputTypeError, OptionError
from accord.inference import eliminate_beliefs
from accord.inference.kernels.cpu._build import BuildError
from accord.inference.search import _native
from accord.inference.search._ragged import ragged


def test_small_batches_are_solved_and_proved():
    field = small_fields(300, seed=1)
    found = maximise(field)
    best = eliminate_beliefs(field, semiring="max").log_partition
    torch.testing.assert_close(found.score, best)
    torch.testing.assert_close(field.score(found.labels), best)
    assert found.optimal.all() and (found.gap == 0).all()
    assert set(found.method) == {"elimination"}
    assert found.score.dtype == found.bound.dtype == torch.float64


def test_replicas_and_graphs_keep_their_axes():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.tensor([[0, 1, 3], [1, 2, 4]])
    node = torch.randn(2, 3, 5, 3, generator=generator)
    edge = torch.randn(3, 3, 3, generator=generator)
    field = PairwiseField(edge_index, node, edge, torch.tensor([0, 0, 0, 1, 1]))
    found = maximise(field)
    assert found.labels.shape == (2, 3, 5) and found.score.shape == (2, 3, 2) == found.method.shape
    best = enumerate_beliefs(field, semiring="max").log_partition
    torch.testing.assert_close(found.score.float(), best)


def test_a_field_without_edges_takes_the_best_states():
    node = torch.tensor([[0.0, 2.0], [3.0, 1.0]])
    found = maximise(PairwiseField(torch.zeros(2, 0, dtype=torch.long), node, torch.zeros(0, 2, 2)))
    assert found.labels.tolist() == [1, 0] and found.score.tolist() == [5.0]


def test_an_empty_field_has_score_zero():
    field = PairwiseField(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, 2), torch.zeros(0, 2, 2), num_graphs=2)
    found = maximise(field)
    assert found.labels.shape == (0,) and found.score.tolist() == [0.0, 0.0] and found.optimal.all()


def test_a_glass_beats_decoded_beliefs_and_stays_within_its_budget():
    field = glass(32)
    begun = time.monotonic()
    found = maximise(field, budget=0.5)
    assert time.monotonic() - begun < 3.0
    assert found.score >= 1400  # single changes of nodes reach about 1140
    assert found.score < found.bound <= 1700 and not found.optimal
    torch.testing.assert_close(field.score(found.labels), found.score)


def test_a_narrow_glass_is_proved_by_elimination():
    field = glass(12, signs=False)
    found = maximise(field, budget=5.0)
    torch.testing.assert_close(found.score, eliminate_beliefs(field, semiring="max").log_partition)
    assert found.optimal and found.method.tolist() == ["elimination"]


@pytest.mark.parametrize("seed", range(5))
def test_colourings_are_found(seed):
    field = colouring(200, 4.4, seed)
    found = maximise(field, budget=20.0)
    assert found.optimal and found.score == 0
    assert field.score(found.labels) == 0


def test_a_contradiction_is_proved():
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    differ = torch.where(torch.eye(2, dtype=torch.bool), -torch.inf, 0.0).expand(3, 2, 2)
    with pytest.raises(InfeasibleError, match="graph 0 has no labelling.*proved") as error:
        maximise(PairwiseField(edge_index, torch.zeros(3, 2), differ))
    assert error.value.nodes == [0, 1, 2] and error.value.proved


def test_a_node_without_states_is_a_contradiction():
    node = torch.tensor([[0.0, 1.0], [-torch.inf, -torch.inf], [0.0, 0.0]])
    field = PairwiseField(torch.tensor([[0], [1]]), node, torch.zeros(1, 2, 2), torch.tensor([0, 0, 1]))
    with pytest.raises(InfeasibleError, match="graph 0 has no labelling") as error:
        maximise(field)
    assert error.value.nodes == [0, 1]


def test_a_wide_contradiction_is_proved_by_search():
    """Five nodes that must all differ in four colours, inside a graph that is too wide to eliminate quickly."""
    wide = colouring(150, 4.0, seed=3, colours=4)
    clique = torch.tensor([(a, b) for a in range(5) for b in range(a)]).t()
    known = {tuple(pair) for pair in wide.edge_index.t().tolist()}
    extra = [pair for pair in clique.flip(0).t().tolist() if tuple(pair) not in known]
    edge_index = torch.cat([wide.edge_index, torch.tensor(extra).t()], dim=1)
    edge = wide.edge[:1].expand(edge_index.shape[1], 4, 4).clone()
    with pytest.raises(InfeasibleError, match="proved"):
        maximise(PairwiseField(edge_index, wide.node, edge), budget=20.0)


def test_where_nothing_is_found_labels_are_missing(monkeypatch):
    """Another component's failure leaves the graph without labels, but not the other graphs."""
    field = small_fields(3, seed=2, forbidden=0.0)
    solve = _native.solve

    def fail_in_the_second_graph(model, budget, seed, used, **options):
        found = solve(model, budget, seed, used, **options)
        labels = np.where(field.graph.numpy() == 1, -1, found.labels)
        return found._replace(labels=labels, proof=found.proof * 0)

    monkeypatch.setattr(_native, "solve", fail_in_the_second_graph)
    found = maximise(field)
    assert (found.labels[field.graph == 1] == -1).all() and (found.labels[field.graph != 1] >= 0).all()
    assert found.score[1] == -torch.inf and found.gap[1] == torch.inf and not found.optimal[1]
    assert (found.score[[0, 2]] > -torch.inf).all()


def test_the_same_seed_gives_the_same_labels():
    """The order of what is tried depends on the work done, not on time, so runs that end are repeatable."""
    generator = torch.Generator().manual_seed(5)
    edge_index = grid_edges(14, 14)
    coupling = torch.randn(edge_index.shape[1], 1, 1, generator=generator)
    field = PairwiseField(edge_index, torch.randn(196, 4, generator=generator), coupling * torch.eye(4))
    one, two = (maximise(field, budget=60.0, seed=7) for _ in range(2))
    assert one.optimal and "elimination" not in one.method.tolist()[0]
    assert torch.equal(one.labels, two.labels)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_keep_what_is_proved(threads):
    """Labels of a search that ends early come from the first thread; components may end at different times."""
    model = ragged(small_fields(20, seed=8, largest=7))
    found = _native.solve(model, budget=20.0, seed=3, ways=2 | 4 | 8, threads=threads)
    alone = _native.solve(model, budget=20.0, seed=3, ways=2 | 4 | 8)
    assert (found.proof > 0).all() and (found.labels == alone.labels).all()


def test_a_second_thread_searches_too():
    field = glass(24, seed=2)
    model = ragged(field)
    found = _native.solve(model, budget=0.5, seed=0, threads=2)
    score = model.scores(found.labels, np.zeros(model.num_nodes, dtype=np.int64), 1)[0]
    assert 700 <= score <= found.bound[0]


def test_extreme_potentials_do_not_overflow():
    node = torch.tensor([[0.0, 1e302], [1e302, 0.0]], dtype=torch.float64)
    edge = torch.tensor([[[0.0, -1e302], [0.0, -torch.inf]]], dtype=torch.float64)
    found = maximise(PairwiseField(torch.tensor([[0], [1]]), node, edge))
    assert found.labels.tolist() == [1, 0] and float(found.score) == 2e302


def test_without_a_compiler_the_reference_answers(monkeypatch):
    def fail():
        raise BuildError("no compiler")

    monkeypatch.setattr(_native, "load", fail)
    field = small_fields(6, seed=4)
    found = maximise(field, budget=1.0)
    best = eliminate_beliefs(field, semiring="max").log_partition
    assert (found.bound >= best - 1e-9).all() and (found.score <= best + 1e-9).all()


def test_changed_fields_are_checked_again():
    field = glass(3)
    field.node[0, 0] = torch.nan
    with pytest.raises(accord.errors.FieldError, match="changed after it was built"):
        maximise(field)


@pytest.mark.parametrize("budget", [0, -1.0, float("inf"), float("nan")])
def test_a_budget_is_a_positive_number(budget):
    with pytest.raises(OptionError, match="budget"):
        maximise(glass(3), budget=budget)


def test_arguments_of_other_types_are_refused():
    with pytest.raises(InputTypeError, match="PairwiseField"):
        maximise("field")
    with pytest.raises(InputTypeError, match="seed"):
        maximise(glass(3), seed=1.5)
    with pytest.raises(OptionError, match="seed"):
        maximise(glass(3), seed=-1)
    with pytest.raises(InputTypeError, match="budget"):
        maximise(glass(3), budget="long")
