import numpy as np
import pytest

from accord.drawing._layout import place_nodes


def gaps(position):
    return np.linalg.norm(position[:, None] - position[None], axis=-1)


def test_a_path_is_drawn_as_a_line():
    nodes = np.arange(6)
    position = place_nodes(6, np.stack([nodes[:-1], nodes[1:]]))
    assert np.ptp(position[:, 0]) == pytest.approx(2)
    assert np.ptp(position[:, 1]) < 0.05
    steps = np.diff(position[:, 0])
    assert np.allclose(steps, steps[0], rtol=0.05)


def test_a_ring_is_drawn_round():
    nodes = np.arange(8)
    position = place_nodes(8, np.stack([nodes, np.roll(nodes, 1)]))
    radius = np.linalg.norm(position - position.mean(0), axis=1)
    assert np.allclose(radius, radius.mean(), rtol=0.05)


@pytest.mark.parametrize("edges", [np.empty((2, 0), dtype=int), np.array([[0, 2], [1, 3]])])
def test_components_are_kept_apart_and_inside_the_frame(edges):
    position = place_nodes(5, edges)
    assert np.abs(position).max() <= 1 + 1e-9
    assert gaps(position)[np.triu_indices(5, 1)].min() > 0.2


def test_the_smallest_graphs():
    assert place_nodes(0, np.empty((2, 0), dtype=int)).shape == (0, 2)
    assert place_nodes(1, np.empty((2, 0), dtype=int)).tolist() == [[0, 0]]
    assert gaps(place_nodes(2, np.array([[0], [1]])))[0, 1] == pytest.approx(2)


def test_the_same_graph_is_drawn_the_same_way():
    edges = np.array([[0, 0, 0, 1, 3], [1, 2, 3, 2, 4]])
    assert np.array_equal(place_nodes(5, edges), place_nodes(5, edges))
