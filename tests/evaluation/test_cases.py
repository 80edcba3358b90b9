from dataclasses import replace

import torch

from accord.evaluation import Answers, choose_cases
from accord.graphs import topology


def answers(gnn, edge, spn, truth, edges, graph=None):
    found = {"gnn": gnn, "edge": edge, "spn": spn}
    labels = {name: torch.tensor(values)[None] for name, values in found.items()}
    structure = topology(torch.tensor(edges), len(truth), None if graph is None else torch.tensor(graph))
    return Answers(structure, torch.tensor(truth)[None], labels, {}, "spn")


def test_cases_show_gains_and_one_loss():
    """Graph 0: only the SPN is right; graph 1: only the SPN is wrong; graph 2: all agree; graph 3: too small."""
    truth = [0, 0, 0, 1, 1, 1, 0, 0, 0, 1]
    cases = choose_cases(
        answers(
            gnn=[0, 1, 1, 1, 1, 1, 0, 0, 0, 0],
            edge=[0, 0, 1, 1, 1, 1, 0, 0, 0, 1],
            spn=[0, 0, 0, 1, 0, 0, 0, 0, 0, 1],
            truth=truth,
            edges=[[0, 1, 3, 4, 6, 7], [1, 2, 4, 5, 7, 8]],
            graph=[0, 0, 0, 1, 1, 1, 2, 2, 2, 3],
        )
    )
    assert [case.title for case in cases] == [
        "test graph 0: joint labels are all right",
        "test graph 1: joint labels do worse",
    ]
    assert cases[1].edges == [[0, 1], [1, 2]] and cases[1].labels["spn"] == [1, 0, 0]


def test_a_large_graph_is_shown_by_a_neighbourhood():
    size = 200
    wrong = [0] * size
    wrong[100] = 1
    ring = list(range(size))
    cases = choose_cases(answers(wrong, wrong, [0] * size, [0] * size, [ring, ring[1:] + ring[:1]]))
    assert len(cases) == 1
    assert len(cases[0].truth) == 5  # two steps to either side
    assert sum(cases[0].labels["gnn"]) == 1


def test_a_node_network_alone_has_no_cases():
    both = answers([0, 1, 0], [0] * 3, [0] * 3, [0] * 3, [[0, 1], [1, 2]])
    assert choose_cases(both) and choose_cases(replace(both, joint=None)) == []


def test_parts_that_agree_give_no_cases():
    assert choose_cases(answers([0] * 3, [0] * 3, [0] * 3, [0] * 3, [[0, 1], [1, 2]])) == []
