import io
import math
import sys

from rich.console import Console

from accord.app.progress import MetricsFile, TrainingProgress, describe, open_board, read_metrics


def test_rows_are_written_at_once(tmp_path):
    metrics = MetricsFile(tmp_path)
    metrics.add({"epoch": 0, "node_score": 0.25})
    assert metrics.path.read_text() == "epoch,node_score\n0,0.25\n"
    metrics.add({"epoch": 5, "node_loss": 1.5, "node_score": 0.5})
    metrics.add({"epoch": 10, "node_loss": 1.0, "node_score": 0.75})
    assert metrics.path.read_text() == "epoch,node_score,node_loss\n0,0.25,\n5,0.5,1.5\n10,0.75,1\n"
    rows = read_metrics(metrics.path)
    assert math.isnan(rows[0]["node_loss"]) and rows[2]["node_loss"] == 1.0


def test_a_continued_run_replaces_the_rows_that_it_repeats(tmp_path):
    first = MetricsFile(tmp_path)
    for epoch in (0, 5, 10, 15):
        first.add({"epoch": epoch, "node_score": 0.1 * epoch})
    with first.path.open("a") as file:
        file.write("20")  # the process was killed in the middle of a line
    again = MetricsFile(tmp_path)
    again.add({"epoch": 10, "node_score": 0.5})
    again.add({"epoch": 15, "node_score": 0.6})
    assert first.path.read_text() == "epoch,node_score\n0,0\n5,0.5\n10,0.5\n15,0.6\n"


def test_damaged_lines_are_left_out_and_written_again_at_the_end(tmp_path):
    history = [{"epoch": 0, "node_score": 0.25}, *({"epoch": n, "node_loss": 1.5, "node_score": 0.5} for n in (5, 10))]
    metrics = MetricsFile(tmp_path)
    for row in history:
        metrics.add(row)
    whole = metrics.path.read_bytes()
    for place in range(0, len(whole), 2):
        bit = 0x80 if place % 4 else 4
        metrics.path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        again = MetricsFile(tmp_path)
        assert all(row["epoch"] >= 0 for row in again.rows)
        again.add(history[-1])
        again.complete(history)
        assert metrics.path.read_bytes() == whole
    metrics.complete(history)
    assert metrics.path.read_bytes() == whole


def test_the_bar_shows_losses_and_scores(tmp_path):
    text = io.StringIO()
    with TrainingProgress(tmp_path, 10, Console(file=text, force_terminal=True, width=100)) as progress:
        progress({"epoch": 10, "node_loss": 0.5, "node_score": 0.25, "edge_loss": 1.5, "edge_score": 0.75})
    assert "node 0.50 → 25.0%  edge 1.50 → 75.0%" in text.getvalue()
    assert describe({"epoch": 0, "node_score": 0.25}) == "node → 25.0%"


def test_tensorboard_is_optional(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # as if it were not installed
    assert open_board(tmp_path / "board") is None
    assert not (tmp_path / "board").exists()
