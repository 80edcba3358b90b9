import pytest

from accord.drawing import DARK, _graphs, draw_case
from accord.evaluation import Case

PNG = b"\x89PNG\r\n"
PART_TITLES = {"gnn": "GNN", "edge": "edge GNN", "spn": "SPN"}
NAMES = ["a", "a rather long name for a label, as files have them"]
CASES = {
    "one node": Case("one node", [[], []], [0], {"gnn": [0], "edge": [1], "spn": [0]}),
    "components": Case("two", [[0, 2], [1, 3]], [0, 1, -1, 0], {"gnn": [0, 0, 0, 0], "spn": [0, 1, 1, 0]}),
    "images": Case("images", [[0], [1]], [0, 1], {"spn": [1, 1]}, images=[[0.0, 0.5, 1.0, 0.2]] * 2),
}


@pytest.mark.parametrize(
    ("name", "panels"),
    [
        ("one node", ["true labels", "GNN ✓", "edge GNN, 1 wrong", "SPN ✓"]),
        ("components", ["true labels", "GNN, 1 wrong", "SPN ✓"]),  # a missing label is not a mistake
        ("images", ["true labels", "SPN, 1 wrong"]),
    ],
)
def test_each_part_has_a_panel_that_counts_its_mistakes(name, panels, monkeypatch):
    seen = []
    to_png = _graphs.to_png
    monkeypatch.setattr(_graphs, "to_png", lambda figure: (seen.append(figure), to_png(figure))[1])
    assert draw_case(CASES[name], NAMES, PART_TITLES, DARK).startswith(PNG)
    assert [axes.get_title() for axes in seen[0].axes] == panels
    (legend,) = seen[0].legends  # the second name is too long for a node
    assert legend.get_texts()[-1].get_text() == "a rather long name for …"
