"""The careful choice: few candidates, the node network alone unless a gain is beyond noise, likelihood among equals."""

import pytest
import torch

from accord.evaluation import level_score
from accord.graphs import topology
from accord.learning import CombinationGrid
from accord.learning.selection import FieldChoice, _careful, choose_carefully, choose_combination

GRID = CombinationGrid()
STATES = 3


def made(num_graphs, strength, noise, seed=0, length=6):
    """Chains whose labels repeat, noisy node scores, and edge scores that favour equal labels by `strength`."""
    generator = torch.Generator().manual_seed(seed)
    nodes = num_graphs * length
    first = torch.randint(0, STATES, (num_graphs, 1), generator=generator)
    y = first.expand(-1, length).flatten()
    node = 2 * torch.nn.functional.one_hot(y, STATES) + noise * torch.randn(nodes, STATES, generator=generator)
    source = torch.arange(nodes).view(num_graphs, length)[:, :-1].flatten()
    graph = torch.arange(nodes) // length
    edge = strength * torch.eye(STATES).expand(len(source), -1, -1)
    return node[None].float(), edge[None], y[None], topology(torch.stack([source, source + 1]), nodes, graph)


def test_a_field_that_helps_is_chosen_with_few_candidates(monkeypatch):
    node, edge, y, graphs = made(60, 2.0, 2.0)
    solved = []
    solve = _careful._Search._solve

    def counted(self, rows):
        solved.append(len(rows))
        return solve(self, rows)

    monkeypatch.setattr(_careful._Search, "_solve", counted)
    chosen = choose_carefully(node, edge, y, graphs, "graph", GRID, 0.5)
    best = choose_combination(node, edge, y, graphs, "graph", GRID, 0.5)
    assert sum(solved) <= len(GRID.candidates()) // 3
    assert float(chosen.sharpness) > 0
    assert float(chosen.score) >= float(best.score) - 0.05
    labels = chosen.labels(chosen.field(node, edge, graphs), 0.5)
    assert float((labels == y).view(60, -1).all(1).double().mean()) == pytest.approx(float(chosen.score))


def test_a_gain_within_noise_is_not_followed():
    """Random tables: with luck some candidate is better on validation graphs, and the best score follows it."""
    alone, followed, changed = 0, 0, []
    for seed in range(8):
        node, edge, y, graphs = made(40, 0.0, 1.5, seed)
        edge = 0.3 * torch.randn(edge.shape, generator=torch.Generator().manual_seed(seed))
        for choose in (choose_carefully, choose_combination):
            chosen = choose(node, edge, y, graphs, "graph", GRID, 0.5)
            changed.append(int((chosen.labels(chosen.field(node, edge, graphs), 0.5) != node.argmax(-1)).sum()))
        alone, followed = alone + (changed[-2] == 0), followed + (changed[-1] > 0)
    assert followed >= 6 and alone >= 4 and sum(changed[::2]) < sum(changed[1::2])


@pytest.mark.parametrize("level", ["node", "graph", "likelihood", "f1", "auc"])
def test_every_level_chooses_a_field_that_helps(level):
    node, edge, y, graphs = made(40, 2.0, 2.0)
    chosen = choose_carefully(node, edge, y, graphs, level, GRID, 0.5)
    field = chosen.field(node, edge, graphs)
    logs = chosen.beliefs(field, "sum", 0.5).node
    score = level_score(level, chosen.labels(field, 0.5), y, graphs, logs)
    before = level_score(level, node.argmax(-1), y, graphs, node.log_softmax(-1))
    assert float(chosen.score) == pytest.approx(float(score), abs=1e-6) and float(score) > float(before) + 0.05


def test_equal_scores_keep_the_node_network_alone_where_it_is_right_already():
    node, edge, y, graphs = made(30, 1.0, 0.1)  # every candidate labels every node right
    chosen = choose_carefully(node, edge, y, graphs, "graph", GRID, 0.5)
    assert float(chosen.score) == 1 and float(chosen.sharpness) == 0
    greedy = choose_combination(node, edge, y, graphs, "graph", GRID, 0.5)
    assert float(greedy.sharpness) == GRID.sharpness[0]


@pytest.mark.parametrize("order", [(1.0, 0.9), (0.9, 1.0)])
def test_likelihood_decides_between_equal_scores(order):
    """Both sharpnesses label equally many graphs right; the one whose marginals are right wins, whatever the order."""
    node, edge, y, graphs = made(60, 1.5, 1.0, seed=2)

    def grid(*sharpness):
        return CombinationGrid(sharpness=sharpness, power=(0.0,), node_weight=(1.0,))

    scores, likelihoods = [], []
    for sharpness in order:
        one = choose_combination(node, edge, y, graphs, "graph", grid(sharpness), 0.5)
        logs = one.beliefs(one.field(node, edge, graphs), "sum", 0.5).node
        scores.append(float(one.score))
        likelihoods.append(float(logs.gather(-1, y[..., None]).mean()))
    chosen = choose_carefully(node, edge, y, graphs, "graph", grid(*order), 0.5)
    assert scores[0] == scores[1] and likelihoods[0] != likelihoods[1]
    assert float(chosen.score) == scores[0]
    assert float(chosen.sharpness) == pytest.approx(order[likelihoods.index(max(likelihoods))])


@pytest.mark.parametrize("likelihoods", [None, "more changes", "fewer changes"])
def test_of_equal_scores_only_those_that_change_least_are_compared(likelihoods, monkeypatch):
    """Of twelve, eight are compared by likelihood; where that is equal too, the fewest changes win."""
    node, edge, y, graphs = made(20, 1.0, 1.0)
    search = _careful._Search(node, edge, y, graphs, "f1", 0.5, None)  # a level without a test of noise
    changes = torch.tensor([0, 12, 5, 9, 3, 11, 1, 8, 4, 10, 2, 7, 6])
    number = torch.arange(13.0)
    ranks = torch.ones(13, 1, dtype=torch.double)
    ranks[0] = 0  # the node network alone is worse
    solved = _careful._Solved(number[:, None, None], ranks, ranks, changes[:, None], torch.zeros(2, 13, 1, 20))
    compared = []

    def likelihood(rows, replica):
        compared.extend(changes[int(row)].item() for row in rows[:, 0])
        if likelihoods is None:
            return torch.zeros(len(rows))
        return changes[rows[:, 0].long()] * (1.0 if likelihoods == "more changes" else -1.0)

    monkeypatch.setattr(search, "_likelihood", likelihood)
    picked = int(changes[search.pick(solved, 0)])
    assert compared == [1, 2, 3, 4, 5, 6, 7, 8], "the eight that change least, in that order"
    assert picked == (8 if likelihoods == "more changes" else 1)


def test_replicas_choose_one_by_one_and_in_any_portion(monkeypatch):
    """One replica whose edges help and one whose edges say nothing."""
    good, noise = made(40, 2.0, 2.0), made(40, 0.0, 1.5, 1)
    graphs = good[3]
    node, edge, y = (torch.cat([a, b]) for a, b in zip(good[:3], noise[:3], strict=True))
    together = choose_carefully(node, edge, y, graphs, "node", GRID, 0.5)
    monkeypatch.setattr(_careful, "CACHE_BYTES", 1)
    one_by_one = choose_carefully(node, edge, y, graphs, "node", GRID, 0.5)
    assert together.to_config() == one_by_one.to_config()
    assert float(together.sharpness[0]) > 0 and float(together.sharpness[1]) == 0
    for replica in range(2):
        own = slice(replica, replica + 1)
        alone = choose_carefully(node[own], edge[own], y[own], graphs, "node", GRID, 0.5)
        assert alone.to_config() == {name: values[own] for name, values in together.to_config().items()}


def test_choices_saved_before_shrinkage_have_none():
    config = FieldChoice.default(GRID.candidates()[0], 2).to_config()
    old = {name: values for name, values in config.items() if not name.endswith("shrinkage")}
    assert FieldChoice.from_config(old).to_config() == config


def test_a_field_that_fails_with_more_edges_is_not_chosen_where_graphs_may_be_denser():
    """Equal labels on a grid: strong edges help, and twice as strong ones make every label the same."""
    generator = torch.Generator().manual_seed(0)
    size = 30
    places = torch.arange(size * size).view(size, size)
    y = (places // size >= 20).long().flatten()  # a third of the nodes has the other label
    node = 0.8 * torch.nn.functional.one_hot(y, 2) + 0.5 * torch.randn(size * size, 2, generator=generator)
    across = torch.stack([places[:, :-1].flatten(), places[:, 1:].flatten()])
    down = torch.stack([places[:-1].flatten(), places[1:].flatten()])
    graphs = topology(torch.cat([across, down], 1), size * size)
    edge = torch.tensor([[2.0, 0.0], [0.0, 0.0]]).expand(1, graphs.num_edges, 2, 2)  # favours label 0
    grid = CombinationGrid(sharpness=(0.2, 0.0), power=(0.0,), node_weight=(1.0,))
    data = (node[None].float(), edge, y[None], graphs, "node", grid, 0.5)
    usual, denser = choose_carefully(*data), choose_carefully(*data, denser=4.0)
    assert (float(usual.sharpness), float(denser.sharpness)) == (pytest.approx(0.2), 0.0)
    assert float(denser.score) < float(usual.score)
