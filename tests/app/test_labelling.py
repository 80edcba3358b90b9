import torch

from accord.app import labelling
from accord.app.cases import choose_cases
from accord.app.labelling import Labelled, edge_marginals, label_graphs
from accord.datasets import read_graphs
from accord.estimator import NodeClassifier
from accord.graphs import topology

PATH = topology(torch.tensor([[0, 1], [1, 2]]), 4)


def test_edges_that_agree_give_their_common_marginals():
    node = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    source, target = PATH.edge_index
    tables = (node[source, :, None] * node[target, None, :]).log()
    known = edge_marginals(tables[None], PATH)[0]
    torch.testing.assert_close(known[:3], node)
    torch.testing.assert_close(known[3], torch.tensor([0.5, 0.5]))  # no edge, no opinion


def test_edges_that_disagree_are_averaged_as_logs():
    tables = torch.stack([torch.tensor([[0.4, 0.4], [0.1, 0.1]]), torch.tensor([[0.2, 0.2], [0.3, 0.3]])]).log()
    known = edge_marginals(tables.transpose(-1, -2)[None], topology(torch.tensor([[1, 2], [0, 0]]), 3))[0]
    expected = torch.tensor([(0.8 * 0.4) ** 0.5, (0.2 * 0.6) ** 0.5])
    torch.testing.assert_close(known[0], expected / expected.sum())


def test_portions_make_no_difference(trained, data_folder, monkeypatch):
    model = NodeClassifier.load(trained)
    graphs = read_graphs(data_folder / "test", model.label_names)
    whole = label_graphs(model, graphs)
    monkeypatch.setattr(labelling, "CHUNK_NUMBERS", 100)
    parts = label_graphs(model, graphs)
    for name in whole.labels:
        assert torch.equal(whole.labels[name], parts.labels[name])
        torch.testing.assert_close(whole.probabilities[name], parts.probabilities[name])
    assert torch.equal(whole.labels["spn"][0][:7], model.predict(graphs[0]))
    torch.testing.assert_close(whole.probabilities["spn"][0][:7], model.predict_proba(graphs[0]))


def labelled(gnn, edge, spn, truth, edges, graph=None):
    found = {"gnn": gnn, "edge": edge, "spn": spn}
    labels = {name: torch.tensor(values)[None] for name, values in found.items()}
    structure = topology(torch.tensor(edges), len(truth), None if graph is None else torch.tensor(graph))
    return Labelled(structure, torch.tensor(truth)[None], labels, {})


def test_cases_show_gains_and_one_failure():
    """Graph 0: the field alone is right; graph 1: the field alone is wrong; graph 2: all agree; graph 3: too small."""
    truth = [0, 0, 0, 1, 1, 1, 0, 0, 0, 1]
    cases = choose_cases(
        labelled(
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


def test_of_a_large_graph_a_neighbourhood_is_shown():
    size = 200
    wrong = [0] * size
    wrong[100] = 1
    ring = list(range(size))
    cases = choose_cases(labelled(wrong, wrong, [0] * size, [0] * size, [ring, ring[1:] + ring[:1]]))
    assert len(cases) == 1
    assert len(cases[0].truth) == 5  # two steps to either side
    assert sum(cases[0].labels["gnn"]) == 1


def test_nothing_is_shown_where_nothing_differs():
    assert choose_cases(labelled([0] * 3, [0] * 3, [0] * 3, [0] * 3, [[0, 1], [1, 2]])) == []
