import math

import numpy as np
import pytest

from accord.drawing import DARK, _plots, draw_curves, draw_reliability
from accord.evaluation import CALIBRATION_BINS

PNG = b"\x89PNG\r\n"


@pytest.fixture
def figures(monkeypatch):
    """Figures as they are when they become a PNG."""
    seen = []
    to_png = _plots.to_png
    monkeypatch.setattr(_plots, "to_png", lambda figure: (seen.append(figure), to_png(figure))[1])
    return seen


def test_curves_leave_out_what_was_not_measured(figures):
    rows = [
        {"epoch": 0, "node_loss": math.nan, "node_score": 0.5},
        {"epoch": 5, "node_loss": 1.5, "node_score": 0.75},
        {"epoch": 10, "node_loss": 1.0, "node_score": 0.25},
    ]
    assert draw_curves(rows, DARK).startswith(PNG)
    loss, score = figures[0].axes
    assert [line.get_xdata().tolist() for line in loss.get_lines()] == [[5, 10]]
    curve, kept = score.get_lines()
    assert curve.get_ydata().tolist() == [0.5, 0.75, 0.25]
    assert (kept.get_xdata().tolist(), kept.get_ydata().tolist()) == ([5], [0.75])  # the best evaluation
    assert [text.get_text() for text in score.get_legend().get_texts()] == ["node network"]


def test_a_run_without_evaluations_gives_an_empty_picture():
    assert draw_curves([]).startswith(PNG)


def test_the_reliability_diagram_has_one_bar_for_each_bin(figures):
    bins = {
        "gnn": {"confidence": [0.5, 0.95, 1.0], "accuracy": [0.4, 0.9, 1.0], "nodes": [10, 20, 10]},
        "edge": {"confidence": [0.9], "accuracy": [0.9], "nodes": [40]},
        "spn": {"confidence": [0.99], "accuracy": [0.95], "nodes": [40]},
    }
    assert draw_reliability(bins, {"gnn": "GNN", "edge": "edge GNN", "spn": "SPN"}).startswith(PNG)
    diagram, counts = figures[0].axes
    assert [text.get_text() for text in counts.get_legend().get_texts()] == ["GNN, softmax", "SPN, marginals"]
    assert diagram.get_lines()[1].get_xdata().tolist() == [0.5, 0.95, 1.0]
    gnn, spn = ([bar.get_height() for bar in bars] for bars in counts.containers)
    assert len(gnn) == len(spn) == CALIBRATION_BINS
    assert np.nonzero(gnn)[0].tolist() == [7, 14]  # 0.95 and 1.0 share the last bar
    assert gnn[7] == pytest.approx(0.25) and gnn[14] == pytest.approx(0.75)
    assert spn[14] == pytest.approx(1.0)
