"""The demo's digits with a graph neural network as the SPN's node network: does the field still help?

    python benchmarks/app/demo_on_gnn.py --seeds 5

The data and the edge network are the demo's. Writes results/demo/on_gnn.md.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from accord._files import write_text
from accord.app.commands.demo import EPOCHS, GNN_ENCODER, GNN_NODE, RECIPE, TEST, TRAIN, VAL
from accord.app.settings import override_recipe
from accord.datasets import make_digits
from accord.estimator import NodeClassifier
from accord.evaluation import score_answers
from accord.methods import preset_recipe

OUT = Path(__file__).parents[2] / "results" / "demo" / "on_gnn.md"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    torch.set_num_threads(1)
    demo = override_recipe(preset_recipe("accord", "mlp"), RECIPE)
    recipe = replace(demo, encoder=GNN_ENCODER, node=GNN_NODE)
    rows = ["| seed | GCNII | SPN on the same GCNII | gain |", "|---|---|---|---|"]
    for seed in range(parser.parse_args().seeds):
        bench = make_digits(TRAIN, VAL, TEST, seed)
        model = NodeClassifier(recipe=recipe, level="graph", max_epochs=EPOCHS, seed=seed, accelerator="cpu")
        scores = score_answers(model.fit(bench.train, bench.val).answers(bench.test))
        alone, joint = (100 * scores[part]["graph_accuracy"] for part in ("gnn", "spn"))
        rows.append(f"| {seed} | {alone:.1f} | {joint:.1f} | {joint - alone:+.1f} |")
        print(rows[-1], flush=True)
    write_text(
        OUT,
        "# An SPN on a graph neural network, digits\n\nShare of test graphs with every node right, in percent. Written "
        "by `python benchmarks/app/demo_on_gnn.py`.\n\n" + "\n".join(rows) + "\n",
    )


if __name__ == "__main__":
    main()
