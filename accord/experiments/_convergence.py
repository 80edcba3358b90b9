"""The convergence curves (the paper's Figure 2): the maximin game of an SPN with and without proxy, and of a CRF."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from accord._files import locked, sealed, write_bytes, write_json, write_text
from accord.datasets import load_benchmark
from accord.experiments._citation import CITATION_ENCODERS
from accord.experiments._paper import CITATION_SETS
from accord.experiments._provenance import provenance
from accord.experiments._results import file_stem
from accord.experiments._runner import PRESETS, SEEDS, Announce, check_choices, silence
from accord.experiments._store import read_record, read_records, read_stored, refuse_other, usable
from accord.learning import HistoryRow, RefinementOptions, Replicas, TrainingRun
from accord.methods import CRF, CRFRecipe, Recipe, Shape, StructuredProxyNetwork, preset_features, preset_recipe

GAME_EPOCHS = 60
GAME_RATES = {
    "accord": 1e-3,
    "authors": 1e-5,
    "paper": 1e-5,
}  # of the game, the same for all three curves
CURVE_TITLES = {"spn": "SPN, refined after the proxy", "without": "SPN without proxy", "crf": "CRF"}
CURVE_COLOURS = {"spn": "#2f7fd3", "without": "#d98e2b", "crf": "#8a8f98"}
INTRODUCTION = """# The maximin game with and without the proxy problem

Written by `accord reproduce convergence`. Validation graph accuracy in percent, mean over seeds; bands are one standard
deviation. Training loss: negative Bethe log-likelihood per node. All three have the same networks, seeds and learning
rate of the game, and no gradient is clipped. An SPN keeps its best epoch on validation data, including its start.

"""


def reproduce_convergence(
    folder: Path,
    benchmarks: Sequence[str] = ("cora*",),
    encoders: Sequence[str] = ("gat",),
    presets: Sequence[str] = ("accord",),
    seeds: Sequence[int] = SEEDS,
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Train all three curves for every seed unless they are stored already, store them and draw them.

    Args:
        folder: where curves and plots are stored.
        benchmarks: names of data sets.
        encoders: names of encoders.
        presets: names of presets.
        seeds: one curve each; the plot shows their mean and standard deviation.
        max_epochs: epochs of the game; None for GAME_EPOCHS.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of each job.
    """
    check_choices(
        "convergence",
        {
            "benchmark": (benchmarks, CITATION_SETS),
            "encoder": (encoders, CITATION_ENCODERS),
            "preset": (presets, PRESETS),
        },
    )
    with locked(folder):
        for preset, benchmark, encoder in product(presets, benchmarks, encoders):
            path = folder / f"{file_stem(preset, benchmark, encoder)}.json"
            asked: dict[str, Any] = {
                "rate": GAME_RATES[preset],
                "seeds": list(seeds),
                "epochs": max_epochs or GAME_EPOCHS,
            }
            stored = read_stored(path, usable(read_record, _section))
            if stored is None:
                announce(f"{preset} {benchmark} {encoder}", None)
                stored = {"benchmark": benchmark, "encoder": encoder, "preset": preset, **asked}
                stored["curves"] = _train_curves(benchmark, encoder, preset, seeds, asked["epochs"], accelerator)
                stored["provenance"] = provenance(torch.device("cpu") if accelerator == "cpu" else None)
                write_json(path, sealed(stored))
            # Older records do not hold the number of epochs, but a curve has a row for each.
            epochs = max(row["epoch"] for runs in stored["curves"].values() for run in runs for row in run)
            before = {"epochs": epochs, **stored}
            refuse_other(path, {key: (before.get(key), asked[key]) for key in asked if before.get(key) != asked[key]})
            if not path.with_suffix(".png").is_file():
                write_bytes(path.with_suffix(".png"), draw_convergence(stored))
        return _write_page(folder)


def _write_page(folder: Path) -> str:
    """All stored curves, with the accuracy before and after the game."""
    sections = [_section(stored) for stored in read_records(folder, usable(read_record, _section))]
    write_text(folder / "README.md", INTRODUCTION + "\n".join(sections))
    return "\n".join(sections)


def _section(stored: Mapping[str, Any]) -> str:
    stem = file_stem(stored["preset"], stored["benchmark"], stored["encoder"])
    title = f"{stored['benchmark']}, {stored['encoder']}, preset {stored['preset']}, rate {stored['rate']:g}"
    return f"## {title}\n\n![{title}]({stem}.png)\n\n{_ends_table(stored['curves'])}\n"


def game_recipes(
    preset: str, encoder: str, benchmark: str, epochs: int, accelerator: str, rate: float | None = None
) -> dict[str, Recipe]:
    """The three recipes, with the same networks, seeds and learning rate of the game; None for the preset's."""
    rate = GAME_RATES[preset] if rate is None else rate
    base = preset_recipe(preset, encoder, benchmark=benchmark)
    training = replace(base.training, accelerator=accelerator, evaluate_every=1)
    spn = replace(base, training=training, refinement=RefinementOptions(learning_rate=rate, max_epochs=epochs))
    node, edge = (replace(part, learning_rate=rate) for part in (base.node, base.edge))
    crf = preset_recipe(preset, encoder, benchmark=benchmark, method="crf")
    assert isinstance(crf, CRFRecipe)
    # None of the three is clipped: the figure shows the game itself.
    return {
        "spn": spn,
        "without": replace(spn, training=replace(training, max_epochs=0)),
        "crf": replace(crf, training=replace(training, max_epochs=epochs), node=node, edge=edge),
    }


def _train_curves(
    benchmark: str, encoder: str, preset: str, seeds: Sequence[int], epochs: int, accelerator: str
) -> dict[str, list[list[HistoryRow]]]:
    bench = load_benchmark(benchmark, features=preset_features(preset, benchmark))
    shape = Shape(bench.num_features, bench.num_states)
    run = TrainingRun(bench.train, bench.val)
    curves: dict[str, list[list[HistoryRow]]] = {}
    for name, recipe in game_recipes(preset, encoder, benchmark, epochs, accelerator).items():
        method = (CRF if name == "crf" else StructuredProxyNetwork)(recipe, bench.level)
        histories = [method.fit(run, shape, Replicas((seed,))).history for seed in seeds]
        curves[name] = [game_part(history) for history in histories]
    return curves


def game_part(history: list[HistoryRow]) -> list[HistoryRow]:
    """The evaluations during the game, with epochs counted from its start."""
    rows = [row for row in history if "field_score" in row]
    kept = ("field_score", "field_loss")
    return [{"epoch": row["epoch"] - rows[0]["epoch"], **{key: row[key] for key in kept if key in row}} for row in rows]


def _ends_table(curves: dict[str, list[list[HistoryRow]]]) -> str:
    """Validation accuracy before and after the game, mean over seeds."""
    lines = ["| | before the game | after |", "|---|---|---|"]
    for name, runs in curves.items():
        ends = [sum(run[place]["field_score"] for run in runs) / len(runs) for place in (0, -1)]
        lines.append(f"| {CURVE_TITLES[name]} | {100 * ends[0]:.1f} | {100 * ends[1]:.1f} |")
    return "\n".join(lines)


def draw_convergence(stored: Mapping[str, Any]) -> bytes:
    """Training likelihood and validation accuracy by epoch of the game, mean and standard deviation over seeds."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.2, 3.2), layout="constrained")
    loss, score = figure.subplots(1, 2)
    for name, runs in stored["curves"].items():
        for axes, key in ((loss, "field_loss"), (score, "field_score")):
            epochs = sorted({row["epoch"] for run in runs for row in run if key in row})
            # A run that diverged ended early and has no values after that.
            found = [{row["epoch"]: row[key] for row in run if key in row} for run in runs]
            values = np.array([[known.get(epoch, np.nan) for epoch in epochs] for known in found])
            values *= 100 if key == "field_score" else 1
            middle, spread = np.nanmean(values, 0), np.nanstd(values, 0)
            # Dashed, since the CRF may cover the SPN that starts like it.
            style = "--" if name == "crf" else "-"
            colour = CURVE_COLOURS[name]
            axes.plot(epochs, middle, style, color=colour, label=CURVE_TITLES[name], linewidth=1.6)
            axes.fill_between(epochs, middle - spread, middle + spread, color=colour, alpha=0.2, linewidth=0)
    loss.set(title="training: negative log-likelihood per node", xlabel="epoch of the game", yscale="log")
    score.set(title="validation: graph accuracy, %", xlabel="epoch of the game")
    for axes in (loss, score):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    score.legend(frameon=False)
    figure.suptitle(f"{stored['benchmark']}, {stored['encoder']}, preset {stored['preset']}", fontsize=10)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150)
    return picture.getvalue()
