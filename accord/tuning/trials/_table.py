"""The table of a search: one row for each trial, best first, as plain values and as markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from accord.tuning.trials._finals import DEFAULT, FINAL, FINAL_NAMES
from accord.tuning.trials._search import PAIR, PAIR_STRIDE
from accord.tuning.trials._trial import TrialResult

TITLES = {
    FINAL: "default model and winner of the search",
    PAIR: "node and edge network",
    "whole": "whole model",
    "node": "node network",
    "edge": "edge network",
}
NETWORKS = {
    FINAL: ("encoder", "edge_encoder", "label_encoder"),
    PAIR: ("encoder", "edge_encoder"),
    "whole": ("encoder", "edge_encoder", "label_encoder"),
    "node": ("encoder",),
    "edge": ("edge_encoder",),
}
COLUMNS = ("trial", "network", "features", "batch", "rate", "decay", "epochs", "score, %", "loss, nats", "seconds")


def trial_rows(trials: Sequence[TrialResult]) -> list[dict[str, Any]]:
    """One plain dictionary for each trial, best first within each part: the default model and the winner (the first of
    the two is kept), pairs or whole models, node networks, edge networks.

    Keys: part, trial (default or winner, a number, or node trial + edge trial), rung (how often it went on), epochs,
    score, loss, seconds (of all rungs), features, recipe.
    """
    last: dict[tuple[str, int], TrialResult] = {}
    seconds: dict[tuple[str, int], float] = {}
    for result in trials:
        key = (result.part, result.number)
        seconds[key] = seconds.get(key, 0.0) + result.seconds
        if key not in last or result.rung > last[key].rung:
            last[key] = result
    order = list(TITLES)
    # Ties by number: the order in which trials end depends on the engine.
    ranked = sorted(last.values(), key=lambda own: own.number)
    ranked.sort(key=lambda own: (own.rung, own.rank), reverse=True)
    ranked.sort(key=lambda own: order.index(own.part))
    return [
        {
            "part": own.part,
            "trial": trial_name(own),
            "rung": own.rung,
            "epochs": own.epochs,
            "score": own.score,
            "loss": own.loss,
            "seconds": round(seconds[own.part, own.number], 3),
            **(own.kept or {"features": own.features, "recipe": own.recipe}),
        }
        for own in ranked
    ]


def trial_name(result: TrialResult) -> str:
    """The number of a trial, or of the two trials of a pair; default or winner."""
    if result.part == FINAL:
        return FINAL_NAMES[result.number]
    node, edge = divmod(result.number, PAIR_STRIDE)
    return f"{node}+{edge}" if result.part == PAIR else str(result.number)


def table_cells(row: Mapping[str, Any]) -> list[str]:
    """The cells of a row, in the order of `COLUMNS`."""
    recipe, part = row["recipe"], row["part"]
    named = [_network(recipe[name]) for name in NETWORKS[part] if name in recipe]
    if part != "node" and "scorer" in recipe:
        scorer = recipe["scorer"]
        named.append(f"{scorer['kind']}{'' if scorer['symmetric'] else ' directed'}")
    options = recipe["edge" if part == "edge" else "node"]
    batch = recipe["training"]["batch_graphs"]
    return [
        row["trial"],
        ", ".join(named),
        row["features"] + (" + edges" if recipe.get("edge_inputs") else ""),
        "all" if batch is None else str(batch),
        f"{options['learning_rate']:g}",
        f"{options['weight_decay']:g}",
        str(row["epochs"]),
        "-" if row["score"] is None else f"{100 * row['score']:.1f}",
        "-" if row["loss"] is None else f"{row['loss']:.3f}",
        f"{row['seconds']:.1f}",
    ]


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """All rows as markdown, a table for each part."""
    lines = ["# Trials, by validation data", ""]
    for part, title in TITLES.items():
        own = [row for row in rows if row["part"] == part]
        if own:
            lines += [f"## {title.capitalize()}", ""]
            if part == FINAL:
                lines += [_verdict(own), ""]
            lines += [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
            lines += [f"| {' | '.join(table_cells(row))} |" for row in own]
            lines.append("")
    return "\n".join(lines)


def _verdict(finals: Sequence[Mapping[str, Any]]) -> str:
    """What came of the comparison with the default model."""
    if any(row["score"] is None for row in finals if row["trial"] == FINAL_NAMES[DEFAULT]):
        return "There was no time to train the default model, so the winner is not compared with it."
    if finals[0]["trial"] == FINAL_NAMES[DEFAULT]:
        return "Both trained with the seed of the run. The search found nothing better: the default model is kept."
    return "Both trained with the seed of the run. The winner of the search is better and is kept."


def _network(config: Mapping[str, Any]) -> str:
    """An encoder in a few words: kind, size, dropout."""
    size = "x".join(str(config[name]) for name in ("hidden", "layers") if config.get(name))
    dropout = config.get("dropout")
    return " ".join(word for word in (config["kind"], size, f"d{dropout:g}" if dropout else "") if word)
