"""Fields without padding."""

import numpy as np
import torch
from inference.search_cases import small_fields

from accord import PairwiseField
from accord.inference.search._ragged import ragged


def test_forbidden_states_take_no_room():
    node = torch.tensor([[0.0, -torch.inf, 1.0], [2.0, -torch.inf, -torch.inf]])
    edge = torch.arange(9.0).reshape(1, 3, 3)
    model = ragged(PairwiseField(torch.tensor([[0], [1]]), node, edge))
    assert model.at.tolist() == [0, 2, 3] and model.unary.tolist() == [0, 1, 2]
    assert model.tables.tolist() == [0, 6] and model.table_at.tolist() == [0]
    assert model.labels(np.array([1, 0])).tolist() == [2, 0]
    assert model.labels(np.array([-1, 0])).tolist() == [-1, 0]
    assert model.places(np.array([2, 0])).tolist() == [1, 0]
    assert model.places(np.array([1, 2])).tolist() == [-1, -1]


def test_scores_equal_those_of_the_field():
    field = small_fields(20, seed=6, forbidden=0.0)
    labels = torch.randint(0, 3, (field.num_nodes,), generator=torch.Generator().manual_seed(0))
    scores = ragged(field).scores(labels.numpy(), field.graph.numpy(), 20)
    np.testing.assert_allclose(scores, field.score(labels).numpy())


def test_a_part_holds_its_own_tables():
    field = small_fields(5, seed=7)
    model = ragged(field)
    nodes = np.nonzero(field.graph.numpy() == 3)[0]
    edges = np.nonzero(field.graph.numpy()[model.home] == 3)[0]
    part = model.part(nodes, edges)
    assert part.num_nodes == len(nodes) and part.num_factors == len(edges)
    edge = int(edges[-1])
    begin, size = model.table_at[edge], model.sizes[edge]
    np.testing.assert_array_equal(part.tables[part.table_at[-1] :], model.tables[begin : begin + size])
