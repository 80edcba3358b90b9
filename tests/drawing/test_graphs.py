from accord.drawing import DARK, draw_case
from accord.drawing._themes import STATE_COLOURS, state_colour
from accord.evaluation import Case

PNG = b"\x89PNG\r\n"
TITLES = {"gnn": "GNN", "edge": "edge GNN", "spn": "SPN"}
NAMES = ["a", "a rather long name for a label, as files have them"]


def test_any_small_graph_can_be_drawn():
    alone = Case("one node", [[], []], [0], {"gnn": [0], "edge": [1], "spn": [0]})
    apart = Case("two parts", [[0, 2], [1, 3]], [0, 1, -1, 0], {"gnn": [0, 0, 0, 0], "spn": [0, 1, 1, 0]})
    images = Case("images", [[0], [1]], [0, 1], {"spn": [1, 1]}, images=[[0.0, 0.5, 1.0, 0.2]] * 2)
    for case in (alone, apart, images):
        assert draw_case(case, NAMES, TITLES, DARK).startswith(PNG)


def test_every_state_has_its_own_colour():
    for count in (2, len(STATE_COLOURS), 40):
        assert len({state_colour(state, count) for state in range(count)}) == count
