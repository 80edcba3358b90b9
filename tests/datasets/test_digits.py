import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Batch, Data
from torch_geometric.utils import contains_self_loops, is_undirected, to_scipy_sparse_matrix

from accord.datasets import DigitsOptions, make_digits
from accord.datasets._digits import digits_truth, random_edges
from accord.errors import OptionError
from accord.inference import eliminate_beliefs

KEYS = ("x", "y", "edge_index", "node_id")


@pytest.fixture(scope="module")
def digits():
    return make_digits(num_train=60, num_val=10, num_test=100, seed=1)


def same(left: list[Data], right: list[Data]) -> bool:
    return all(torch.equal(a[key], b[key]) for a, b in zip(left, right, strict=True) for key in KEYS)


def test_the_same_seed_gives_the_same_data(digits):
    again = make_digits(num_train=60, num_val=10, num_test=100, seed=1)
    assert all(same(getattr(digits, split), getattr(again, split)) for split in ("train", "val", "test"))
    other = make_digits(num_train=60, num_val=10, num_test=100, seed=2)
    assert not torch.equal(digits.train[0].x, other.train[0].x)


def test_splits_do_not_depend_on_each_others_size(digits):
    more = make_digits(num_train=60, num_val=3, num_test=7, seed=1)
    assert same(digits.train, more.train)


def test_global_generators_are_not_used():
    torch.manual_seed(0)
    np.random.seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    make_digits(1, 1, 1)
    assert torch.equal(torch.get_rng_state(), before[0]) and (np.random.get_state()[1] == before[1]).all()


def test_no_image_is_in_two_splits(digits):
    images = [
        set(torch.cat([graph.node_id for graph in part]).tolist()) for part in (digits.train, digits.val, digits.test)
    ]
    assert not (images[0] & images[1] or images[0] & images[2] or images[1] & images[2])


def test_every_image_shows_its_label(digits):
    shown = load_digits().target
    for graph in (*digits.train, *digits.val, *digits.test):
        assert graph.y.tolist() == shown[graph.node_id.numpy()].tolist()
        assert graph.y.dtype == torch.long and graph.x.dtype == torch.float
        assert graph.x.shape == (graph.num_nodes, 64)
        assert 0 <= float(graph.x.min()) and float(graph.x.max()) <= 1
        assert graph.x.untyped_storage().nbytes() == graph.x.numel() * 4  # shares no memory with other graphs


def test_a_square_of_each_image_is_covered():
    for side in (0, 3, 8):
        options = DigitsOptions(noise=0.0, occlusion=side)
        graph = make_digits(1, 1, 1, options=options).train[0]
        clean = torch.from_numpy(load_digits().images[graph.node_id.numpy()] / 16).float()
        changed = (graph.x.reshape(-1, 8, 8) != clean).nonzero()
        for node in range(graph.num_nodes):
            extent = changed[changed[:, 0] == node][:, 1:]
            if len(extent):
                assert int((extent.amax(0) - extent.amin(0)).max()) < side
        assert bool(len(changed)) == (side > 0)


def test_graphs_have_the_requested_sizes(digits):
    sizes = {graph.num_nodes for graph in digits.train}
    assert sizes <= set(range(8, 15)) and len(sizes) > 3
    for graph in digits.train:
        assert graph.edge_index.shape[1] == 2 * (graph.num_nodes - 1 + 2)
        assert is_undirected(graph.edge_index) and not contains_self_loops(graph.edge_index)
    assert (digits.num_states, digits.num_tasks, digits.level, digits.num_features) == (10, 1, "graph", 64)


@given(st.integers(1, 12), st.integers(0, 5), st.integers(0, 99))
def test_random_edges_are_distinct_and_connect_all_nodes(num_nodes, extra_edges, seed):
    extra_edges = min(extra_edges, (num_nodes - 1) * (num_nodes - 2) // 2)
    edges = random_edges(num_nodes, extra_edges, np.random.default_rng(seed))
    assert edges.shape == (2, num_nodes - 1 + extra_edges)
    pairs = {tuple(pair) for pair in edges.T.tolist()}
    assert len(pairs) == edges.shape[1] and all(low < high for low, high in pairs)
    from scipy.sparse.csgraph import connected_components

    matrix = to_scipy_sparse_matrix(torch.from_numpy(edges), num_nodes=num_nodes)
    assert connected_components(matrix, directed=False, return_labels=False) == 1


def test_labels_on_trees_follow_the_true_field():
    options = DigitsOptions(extra_edges=0, equal=1.5, successive=1.0)
    benchmark = make_digits(600, 1, 1, seed=3, options=options)
    batch = Batch.from_data_list(benchmark.train)
    source, target = batch.edge_index
    once = source < target
    gap = (batch.y[source[once]] - batch.y[target[once]]) % 10
    # On a tree with a uniform prior each edge's two labels have probability proportional to its potential.
    weight = torch.tensor([np.exp(1.5), 2 * np.exp(1.0), 7.0])
    found = torch.stack([gap == 0, (gap == 1) | (gap == 9), (gap > 1) & (gap < 9)]).double().mean(1)
    # About 6,000 independent edges: 0.02 is three standard deviations.
    torch.testing.assert_close(found, (weight / weight.sum()).double(), atol=0.02, rtol=0)


def test_digits_are_equally_frequent(digits):
    truth = digits.truth
    exact = eliminate_beliefs(truth.field(digits.train[0])).node.exp()
    torch.testing.assert_close(exact, torch.full_like(exact, 0.1))
    share = torch.cat([graph.y for graph in digits.test]).bincount(minlength=10) / sum(g.num_nodes for g in digits.test)
    assert bool(((share > 0.05) & (share < 0.17)).all())


def test_the_true_field_favours_equal_and_successive_digits():
    truth = digits_truth(3.0, 2.0)
    assert torch.equal(truth.edge, truth.edge.t()) and torch.equal(truth.node, torch.zeros(10))
    assert truth.edge[4, 4] == 3 and truth.edge[4, 5] == truth.edge[9, 0] == 2 and truth.edge[4, 6] == 0


def test_a_batch_of_true_fields_equals_its_parts(digits):
    graphs = digits.test[:3]
    together = digits.truth.field(Batch.from_data_list(graphs))
    labels = torch.cat([graph.y for graph in graphs])
    alone = torch.cat([digits.truth.field(graph).score(graph.y) for graph in graphs])
    torch.testing.assert_close(together.score(labels), alone)


def test_joint_labelling_with_the_true_field_is_more_accurate(digits):
    train, test = Batch.from_data_list(digits.train), Batch.from_data_list(digits.test)
    classifier = LogisticRegression(max_iter=500).fit(train.x.numpy(), train.y.numpy())
    evidence = torch.from_numpy(classifier.predict_log_proba(test.x.numpy())).float()
    alone = float((evidence.argmax(1) == test.y).float().mean())
    joint = eliminate_beliefs(digits.truth.field(test, evidence)).decode()
    assert 0.5 < alone < 0.85  # neither too easy nor too hard
    assert float((joint == test.y).float().mean()) > alone + 0.08


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"min_nodes": 5, "max_nodes": 4}, "min_nodes <= max_nodes"),
        ({"min_nodes": 0}, "1 <= min_nodes"),
        ({"min_nodes": 3, "extra_edges": 2}, "extra_edges <= 1"),
        ({"noise": -0.1}, "noise >= 0"),
        ({"occlusion": 9}, "occlusion <= 8"),
    ],
)
def test_settings_out_of_range_are_refused(options, rule):
    with pytest.raises(OptionError, match=rule):
        DigitsOptions(**options)


@pytest.mark.parametrize("name", ["num_train", "num_val", "num_test"])
def test_each_split_needs_a_graph(name):
    with pytest.raises(OptionError, match=f"{name} is 0"):
        make_digits(**{name: 0})
