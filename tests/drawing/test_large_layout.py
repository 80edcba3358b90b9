"""Layout of graphs that are too large for all pairs: neighbours are near, components apart, and it is quick."""

import time

import numpy as np

from accord.drawing import adjacency_of, nearest_nodes, place_nodes


def grid(side):
    nodes = np.arange(side * side).reshape(side, side)
    return np.concatenate(
        [
            np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()]),
            np.stack([nodes[:-1].ravel(), nodes[1:].ravel()]),
        ],
        axis=1,
    )


def lengths(position, edges):
    return np.linalg.norm(position[edges[0]] - position[edges[1]], axis=1)


def test_neighbours_are_near_each_other_and_no_two_nodes_at_one_place():
    edges = grid(20)
    position = place_nodes(400, edges)
    assert np.abs(position).max() <= 1 + 1e-9 and np.isfinite(position).all()
    random = np.random.default_rng(0).integers(400, size=(2, 2000))
    assert lengths(position, edges).mean() < 0.15 * lengths(position, random).mean()
    gaps = np.linalg.norm(position[:, None] - position[None], axis=-1)[np.triu_indices(400, 1)]
    assert gaps.min() > 0.2 * lengths(position, edges).mean()


def test_components_and_single_nodes_do_not_overlap():
    ring = np.stack([np.arange(100), np.roll(np.arange(100), -1)])
    edges = np.concatenate([ring, ring + 100], axis=1)
    position = place_nodes(205, edges)  # two rings and five nodes without edges
    first, second = position[:100], position[100:200]
    low, high = np.maximum(first.min(0), second.min(0)), np.minimum(first.max(0), second.max(0))
    assert (low > high).any()
    assert len(np.unique(position[200:].round(6), axis=0)) == 5


def test_odd_graphs():
    none = np.zeros((2, 0), dtype=int)
    assert np.isfinite(place_nodes(300, none)).all()
    star = np.stack([np.zeros(299, dtype=int), np.arange(1, 300)])
    loops = np.stack([np.arange(300), np.arange(300)])
    for edges in (star, np.concatenate([star, star, star[::-1]], axis=1), loops):
        position = place_nodes(300, edges)
        assert np.isfinite(position).all() and len(np.unique(position.round(6), axis=0)) > 250


def test_the_same_graph_has_the_same_layout():
    assert np.array_equal(place_nodes(400, grid(20)), place_nodes(400, grid(20)))


def test_five_thousand_nodes_take_seconds_not_minutes():
    rng = np.random.default_rng(0)
    edges = rng.integers(5000, size=(2, 12_000))
    began = time.process_time()
    place_nodes(5000, edges)
    assert time.process_time() - began < 20


def test_the_nodes_nearest_to_one():
    path = np.stack([np.arange(9), np.arange(1, 10)])
    adjacency = adjacency_of(12, path)
    assert nearest_nodes(adjacency, 5, 3).tolist() == [4, 5, 6]
    assert nearest_nodes(adjacency, 11, 3).tolist() == [0, 1, 11]  # its component is too small
    assert nearest_nodes(adjacency, 0, 12).tolist() == list(range(12))
