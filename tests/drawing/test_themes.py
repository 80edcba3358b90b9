import matplotlib
import pytest
from matplotlib.figure import Figure

from accord.drawing import DARK, LIGHT, themed, to_png
from accord.drawing._themes import STATE_COLOURS, WRONG_COLOUR, state_colour


@pytest.mark.parametrize("count", [2, len(STATE_COLOURS), 40])
def test_every_state_has_its_own_colour(count):
    colours = {state_colour(state, count) for state in range(count)}
    assert len(colours) == count and WRONG_COLOUR not in colours


def test_a_theme_ends_with_its_context():
    before = matplotlib.rcParams["text.color"]
    with themed(DARK):
        assert matplotlib.rcParams["text.color"] == DARK.ink
    assert matplotlib.rcParams["text.color"] == before


def test_the_same_figure_gives_the_same_bytes():
    def draw(theme):
        with themed(theme):
            figure = Figure(figsize=(1, 1))
            figure.subplots().plot([0, 1])
            return to_png(figure)

    assert draw(LIGHT) == draw(LIGHT) != draw(DARK)
