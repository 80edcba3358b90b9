"""Masks select labels; masks that cannot be used are refused."""

import pytest
import torch
from torch_geometric.data import Data

from accord.errors import AccordError, GraphError, InputTypeError
from accord.graphs import MASKS, ego_networks, fingerprint_graphs, have_mask, labels_within, training_nodes


def mask(*nodes, size=6):
    found = torch.zeros(size, dtype=torch.bool)
    found[list(nodes)] = True
    return found


def graph(**masks):
    edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    return Data(x=torch.arange(12.0).view(6, 2), edge_index=edges, y=torch.arange(6), **masks)


def test_a_mask_selects_its_labels():
    whole = graph(train_mask=mask(0, 1), val_mask=mask(2), test_mask=mask(4, 5))
    assert labels_within(whole, "train_mask", "here").y.tolist() == [0, 1, -1, -1, -1, -1]
    assert labels_within(whole, "val_mask", "here").y.tolist() == [-1, -1, 2, -1, -1, -1]
    assert labels_within(whole, "test_mask", "here").y.tolist() == [-1, -1, -1, -1, 4, 5]
    assert whole.y.tolist() == list(range(6))  # the given graph is unchanged


def test_without_its_mask_the_labels_outside_the_others_remain():
    assert labels_within(graph(train_mask=mask(0, 1)), "test_mask", "here").y.tolist() == [-1, -1, 2, 3, 4, 5]
    tested = graph(val_mask=mask(0), test_mask=mask(1))
    assert labels_within(tested, "train_mask", "here").y.tolist() == [-1, -1, 2, 3, 4, 5]
    plain = graph()
    assert labels_within(plain, "train_mask", "here") is plain


def test_a_mask_hides_all_tasks_of_a_node():
    several = graph(train_mask=mask(1))
    several.y = torch.arange(12).view(6, 2)
    assert labels_within(several, "train_mask", "here").y.tolist() == [[-1, -1], [2, 3], *[[-1, -1]] * 4]


def test_training_nodes_are_those_of_the_train_mask():
    masked = graph(train_mask=mask(1, 4))
    masked.node_id = torch.arange(6) + 10
    rows = training_nodes(masked)
    assert torch.equal(rows.x, masked.x[[1, 4]]) and rows.node_id.tolist() == [11, 14]


def test_a_mask_without_labels_selects_nothing():
    empty = graph(test_mask=mask())
    unlabelled = graph(test_mask=mask(2))
    unlabelled.y = torch.full((6,), -1)
    assert not have_mask([empty, unlabelled, graph()], "test_mask")
    assert have_mask([empty, graph(test_mask=mask(2))], "test_mask")


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (torch.zeros(6, 10, dtype=torch.bool), GraphError, r"holds 10 splits.*\[:, 0\]"),
        (torch.zeros(5, dtype=torch.bool), GraphError, r"shape \[5\].*6 nodes"),
        (torch.zeros(6, dtype=torch.uint8), InputTypeError, r"dtype torch.uint8.*\.bool\(\)"),
        (torch.tensor([0, 3]), InputTypeError, "index_to_mask"),
        ([True] * 6, InputTypeError, "not a torch.Tensor"),
    ],
)
def test_masks_that_cannot_be_used_are_refused(name, value, error, message):
    with pytest.raises(error, match=f"here: {name} .*{message}"):
        labels_within(graph(**{name: value}), "train_mask", "here")


def test_masks_that_overlap_are_refused():
    for first, second in ((0, 1), (0, 2), (1, 2)):
        masks = {MASKS[first]: mask(0, 1, 2), MASKS[second]: mask(1, 2, 3)}
        with pytest.raises(GraphError, match=f"2 nodes are in both {MASKS[first]} and {MASKS[second]}"):
            labels_within(graph(**masks), "train_mask", "here")


def test_a_broken_graph_is_refused_before_its_masks_are_read():
    broken = graph(train_mask=mask(0))
    broken.x = None
    with pytest.raises(AccordError, match="no node features"):
        labels_within(broken, "train_mask", "here")


def test_ego_networks_and_fingerprints_keep_masks():
    masked = graph(train_mask=mask(0, 1), test_mask=mask(5))
    egos = ego_networks(masked, torch.tensor([1]))
    assert egos[0].train_mask.tolist() == [node in (0, 1) for node in egos[0].node_id.tolist()]
    assert fingerprint_graphs([masked]) != fingerprint_graphs([graph(train_mask=mask(0))])
