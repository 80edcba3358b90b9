"""Bad input gives a valid result or one of `accord.errors`, never a crash or a wrong result.

More than 10,000 calls with broken arguments are drawn by `support/fuzzing.py` and `support/breaking.py`.
"""

import pytest
import torch
from support.fuzzing import MESSAGE, TARGETS, Case, draw_case
from torch import Tensor
from torch_geometric.data import Data

from accord import PairwiseField
from accord.errors import AccordError
from accord.field import Pseudomarginals
from accord.graphs import TREATMENTS, Topology
from accord.inference import Beliefs, ExactBeliefs, Maximum
from accord.methods import Recipe


def check_no_nan(**tensors):
    for name, values in tensors.items():
        assert not bool((values.isnan() | (values == torch.inf)).any()), f"{name} holds NaN or +inf"


def check_field(field):
    check_no_nan(node=field.node, edge=field.edge)
    assert field.edge_index.shape == (2, field.num_edges) and field.edge_index.dtype == torch.long
    assert field.node.shape[-2:] == (field.num_nodes, field.num_states)
    assert field.edge.shape[-3:] == (field.num_edges, field.num_states, field.num_states)
    assert field.graph.shape == (field.num_nodes,) and field.num_graphs >= 1


def check_beliefs(beliefs):
    field = beliefs.field
    lead = field.replicas
    assert beliefs.node.shape == (*lead, field.num_nodes, field.num_states)
    assert beliefs.edge.shape == (*lead, field.num_edges, field.num_states, field.num_states)
    assert beliefs.log_partition.shape == beliefs.converged.shape == (*lead, field.num_graphs)
    check_no_nan(node=beliefs.node, edge=beliefs.edge, log_partition=beliefs.log_partition)
    assert not bool(beliefs.residual.isnan().any())
    reduce = torch.logsumexp if beliefs.semiring == "sum" else torch.amax
    for values in (beliefs.node, beliefs.edge.flatten(-2)):
        total = reduce(values, dim=-1)
        torch.testing.assert_close(total, torch.zeros_like(total), rtol=0, atol=1e-4)
    best = beliefs.decode()
    assert best.shape == (*lead, field.num_nodes)
    assert bool((field.score(best) > -torch.inf).all()), "decoded labels are forbidden"


def check_pseudomarginals(marginals, normalised):
    check_no_nan(node=marginals.node, edge=marginals.edge)
    if normalised:
        for values in (marginals.node, marginals.edge.flatten(-2)):
            total = values.logsumexp(-1)
            torch.testing.assert_close(total, torch.zeros_like(total), rtol=0, atol=1e-4)


def check_topology(found):
    low, high = found.edge_index.min(0).values, found.edge_index.max(0).values
    assert bool((low < high).all()) and bool((low >= 0).all()) and bool((high < found.num_nodes).all())
    assert found.column.shape == (found.num_edges,) and found.graph.shape == (found.num_nodes,)
    assert found.num_graphs >= 1


def check_maximum(field, found):
    assert found.score.shape == found.bound.shape == (*field.replicas, field.num_graphs)
    assert bool((found.bound >= found.score).all()) and not bool(found.gap.isnan().any())
    complete = (found.labels >= 0).all(-1)
    scored = field.score(found.labels.clamp_min(0)).double()
    torch.testing.assert_close(scored[complete], found.score[complete], rtol=1e-5, atol=1e-5)


def check_result(case, result):
    """Check that a result is valid, whatever the arguments were."""
    if isinstance(result, PairwiseField):
        check_field(result)
    elif isinstance(result, (Beliefs, ExactBeliefs)):
        check_beliefs(result)
    elif isinstance(result, Maximum):
        check_maximum(case.arguments["field"], result)
    elif isinstance(result, Pseudomarginals):
        check_pseudomarginals(result, normalised=case.target.endswith("from_logits"))
    elif isinstance(result, Topology):
        check_topology(result)
    elif isinstance(result, Data):
        result.validate()
        assert result.centre == 0
    elif case.target == "NodeClassifier":
        recipe, features = result
        assert isinstance(recipe, Recipe) and features in TREATMENTS
    elif case.target == "NodeClassifier.fit":
        labels, probabilities = result
        assert labels.shape == probabilities.shape[:-1] and bool((labels < probabilities.shape[-1]).all())
        torch.testing.assert_close(probabilities.sum(-1), torch.ones(labels.shape))
    elif isinstance(result, list):
        for part in result:
            check_result(case, part)
    else:
        assert isinstance(result, Tensor), type(result)
        assert not bool(result.isnan().any())
        if case.target == "PairwiseField.score":
            field = case.arguments["field"]
            assert result.shape[-1] == field.num_graphs and result.dim() >= 1 + len(field.replicas)


def is_rejected(case: Case) -> bool:
    """Run one case: True if it was refused, False if the result is valid; anything else fails the test."""
    try:
        check_result(case, case.run())
    except AccordError as error:
        assert isinstance(error, (ValueError, TypeError)), f"{type(error)} from {case}"
        assert MESSAGE.fullmatch(str(error)), f"the message says too little: {error}\nfrom {case}"
        return True
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\nfrom {case}") from error
    return False


@pytest.fixture(autouse=True)
def one_thread():
    """One thread is fastest for such small tensors."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", TARGETS)
def test_broken_arguments_are_refused_or_give_a_valid_result(name):
    refused = [is_rejected(draw_case(name, number)) for number in range(TARGETS[name].cases)]
    assert len(refused) == TARGETS[name].cases
    # If most cases were valid after all, this test would show nothing.
    assert sum(refused) >= 0.6 * len(refused), f"only {sum(refused)} of {len(refused)} cases were refused"


@pytest.mark.parametrize("name", TARGETS)
def test_arguments_are_valid_before_they_are_broken(name):
    """Otherwise a refusal would say nothing about the broken argument. A few drawn fields have no labelling."""
    refused = [is_rejected(draw_case(name, number, broken=0)) for number in range(50)]
    assert sum(refused) <= 0.3 * len(refused)


def test_there_are_enough_cases():
    assert sum(target.cases for target in TARGETS.values()) >= 10_000
