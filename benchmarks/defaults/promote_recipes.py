"""Write recipes that `accord tune` found into the table of preset `accord`.

    accord tune cora* --encoder gcn --trials 80 --seeds 3 --search-only --run runs/cora-gcn
    python benchmarks/defaults/promote_recipes.py cora* gcn runs/cora-gcn/search/recipe.json
    python benchmarks/defaults/promote_recipes.py cora* gcn runs/cora-gcn/search/recipe.json --table other.json

The table keeps the networks and how they are trained. The features must be those of the preset, because all encoders of
a benchmark share them.
"""

import argparse
import json
from pathlib import Path

from accord._files import write_json
from accord.datasets import resolve_benchmark
from accord.encoders import encoder_spec
from accord.methods import preset_features, recipe_to_config
from accord.tuning import read_recipe

TABLE = Path(__file__).parents[2] / "accord" / "methods" / "presets" / "accord_benchmarks.json"
KEPT = ("encoder", "node", "edge_encoder", "edge", "scorer")


def promote(table: dict, benchmark: str, encoder: str, file: Path) -> dict:
    """The table with the recipe of a file in the row of a benchmark and an encoder."""
    benchmark, kind = resolve_benchmark(benchmark), encoder_spec(encoder).kind
    tuned = read_recipe(file)
    wanted = preset_features("accord", benchmark)
    if tuned.method != "spn" or tuned.features != wanted or tuned.recipe.encoder.kind != kind:
        raise SystemExit(
            f"{file}: is for method {tuned.method}, encoder {tuned.recipe.encoder.kind} and {tuned.features} features; "
            f"spn, {kind} and {wanted} features are needed. Tune with --encoder {kind} --features {wanted}."
        )
    config = json.loads(json.dumps(recipe_to_config(tuned.recipe)))
    row = {key: config[key] for key in KEPT}
    row["training"] = {key: config["training"][key] for key in ("max_epochs", "batch_graphs", "evaluate_every")}
    return {**table, kind: {**table.get(kind, {}), benchmark: row}}


def main() -> None:
    """Change a table in place; a table that does not exist starts as a copy of the preset's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark")
    parser.add_argument("encoder")
    parser.add_argument("file", type=Path)
    parser.add_argument("--table", type=Path, default=TABLE, help="another table, to look at first")
    args = parser.parse_args()
    before = args.table if args.table.is_file() else TABLE
    write_json(args.table, promote(json.loads(before.read_text()), args.benchmark, args.encoder, args.file))


if __name__ == "__main__":
    main()
