"""The convergence figure: the maximin game played by an SPN after the proxy problem, without it, and by a CRF."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from accord.datasets import load_benchmark
from accord.experiments._announce import Announce, silence
from accord.experiments._choices import check_choices
from accord.experiments._paper import SETS
from accord.experiments._provenance import provenance
from accord.learning import HistoryRow, RefinementOptions, Replicas, TrainingRun
from accord.methods import CRF, CRFRecipe, Recipe, Shape, StructuredProxyNetwork, preset_features, preset_recipe

ENCODERS, PRESETS = ("gcn", "gat", "gcnii"), ("accord", "paper")
EPOCHS = 60  # of the game
RATES = {"accord": 1e-3, "paper": 1e-5}  # of the game, the same for all three
INTRODUCTION = """# The maximin game with and without the proxy problem

Written by `accord reproduce convergence`. Validation graph accuracy in percent, mean over seeds, bands one standard
deviation; training loss: negative Bethe log-likelihood a node. The same networks, seeds and learning rate of the game
in all three, nothing clipped. What an SPN keeps is its best epoch on validation data, its start included.

"""
TITLES = {"spn": "SPN, refined after the proxy", "without": "SPN without proxy", "crf": "CRF"}
COLOURS = {"spn": "#2f7fd3", "without": "#d98e2b", "crf": "#8a8f98"}


def reproduce_convergence(
    folder: Path,
    benchmarks: Sequence[str] = ("cora*",),
    encoders: Sequence[str] = ("gat",),
    presets: Sequence[str] = ("accord",),
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Run the game three ways on every seed, store the curves and draw them.

    Args:
        folder: where curves and pictures go.
        benchmarks: which data sets.
        encoders: which encoders.
        presets: which presets.
        seeds: one curve each; the picture shows their mean and standard deviation.
        max_epochs: of the game; None for 60.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of the job, and with a row at every look at validation data.
    """
    check_choices(
        "convergence",
        {"benchmark": (benchmarks, SETS), "encoder": (encoders, ENCODERS), "preset": (presets, PRESETS)},
        "is not drawn",
    )
    folder.mkdir(parents=True, exist_ok=True)
    for preset in presets:
        for benchmark in benchmarks:
            for encoder in encoders:
                name = f"{preset}-{benchmark.rstrip('*')}-{encoder}"
                announce(f"{preset} {benchmark} {encoder}", None)
                curves = _curves(benchmark, encoder, preset, seeds, max_epochs or EPOCHS, accelerator)
                stored = {"benchmark": benchmark, "encoder": encoder, "preset": preset, "rate": RATES[preset]}
                stored |= {"seeds": list(seeds), "curves": curves, "provenance": provenance(_device(accelerator))}
                (folder / f"{name}.json").write_text(json.dumps(stored, indent=1) + "\n")
                draw_convergence(stored, folder / f"{name}.png")
    return _write_page(folder)


def _write_page(folder: Path) -> str:
    """All stored curves, where the game started and where it ended."""
    said = []
    for path in sorted(folder.glob("*.json")):
        stored = json.loads(path.read_text())
        title = f"{stored['benchmark']}, {stored['encoder']}, preset {stored['preset']}, rate {stored['rate']:g}"
        said.append(f"## {title}\n\n![{title}]({path.stem}.png)\n\n{_ends(stored['curves'])}\n")
    (folder / "README.md").write_text(INTRODUCTION + "\n".join(said))
    return "\n".join(said)


def _device(accelerator: str) -> torch.device | None:
    return torch.device("cpu") if accelerator == "cpu" else None


def game_recipes(preset: str, encoder: str, benchmark: str, epochs: int, accelerator: str) -> dict[str, Recipe]:
    """The three ways: same networks, same seeds, same rate of the game."""
    rate = RATES[preset]
    base = preset_recipe(preset, encoder, benchmark=benchmark)
    training = replace(base.training, accelerator=accelerator, evaluate_every=1)
    spn = replace(base, training=training, refinement=RefinementOptions(learning_rate=rate, max_epochs=epochs))
    node, edge = (replace(part, learning_rate=rate) for part in (base.node, base.edge))
    crf = preset_recipe(preset, encoder, benchmark=benchmark, method="crf")
    assert isinstance(crf, CRFRecipe)
    # None of the three is clipped: the figure shows the game as it is.
    return {
        "spn": spn,
        "without": replace(spn, training=replace(training, max_epochs=0)),
        "crf": replace(crf, training=replace(training, max_epochs=epochs), node=node, edge=edge),
    }


def _curves(
    benchmark: str, encoder: str, preset: str, seeds: Sequence[int], epochs: int, accelerator: str
) -> dict[str, list[list[HistoryRow]]]:
    bench = load_benchmark(benchmark, features=preset_features(preset, benchmark))
    shape = Shape(bench.num_features, bench.num_states)
    run = TrainingRun(bench.train, bench.val)
    curves: dict[str, list[list[HistoryRow]]] = {}
    for name, recipe in game_recipes(preset, encoder, benchmark, epochs, accelerator).items():
        method = (CRF if name == "crf" else StructuredProxyNetwork)(recipe, bench.level)
        histories = [method.fit(run, shape, Replicas((seed,))).history for seed in seeds]
        curves[name] = [_played(history) for history in histories]
    return curves


def _played(history: list[HistoryRow]) -> list[HistoryRow]:
    """What of a run was the game, epochs counted from its start."""
    rows = [row for row in history if "field_score" in row]
    kept = ("field_score", "field_loss")
    return [{"epoch": row["epoch"] - rows[0]["epoch"], **{key: row[key] for key in kept if key in row}} for row in rows]


def _ends(curves: dict[str, list[list[HistoryRow]]]) -> str:
    """Validation accuracy where the game starts and where it ends, mean over seeds."""
    lines = ["| | before the game | after |", "|---|---|---|"]
    for name, runs in curves.items():
        ends = [sum(run[place]["field_score"] for run in runs) / len(runs) for place in (0, -1)]
        lines.append(f"| {TITLES[name]} | {100 * ends[0]:.1f} | {100 * ends[1]:.1f} |")
    return "\n".join(lines)


def draw_convergence(stored: Mapping[str, Any], path: Path) -> None:
    """Training likelihood and validation accuracy by epoch of the game: mean and standard deviation over seeds."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.2, 3.2), layout="constrained")
    loss, score = figure.subplots(1, 2)
    for name, runs in stored["curves"].items():
        for axes, key in ((loss, "field_loss"), (score, "field_score")):
            epochs = sorted({row["epoch"] for run in runs for row in run if key in row})
            # A run that ended early, for it diverged, has no value from there on.
            found = [{row["epoch"]: row[key] for row in run if key in row} for run in runs]
            values = np.array([[known.get(epoch, np.nan) for epoch in epochs] for known in found])
            values *= 100 if key == "field_score" else 1
            middle, spread = np.nanmean(values, 0), np.nanstd(values, 0)
            # Dashed, since the CRF may hide the SPN that starts like it.
            style = "--" if name == "crf" else "-"
            axes.plot(epochs, middle, style, color=COLOURS[name], label=TITLES[name], linewidth=1.6)
            axes.fill_between(epochs, middle - spread, middle + spread, color=COLOURS[name], alpha=0.2, linewidth=0)
    loss.set(title="training: negative log-likelihood a node", xlabel="epoch of the game", yscale="log")
    score.set(title="validation: graph accuracy, %", xlabel="epoch of the game")
    for axes in (loss, score):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    score.legend(frameon=False)
    figure.suptitle(f"{stored['benchmark']}, {stored['encoder']}, preset {stored['preset']}", fontsize=10)
    figure.savefig(path, dpi=150)
