"""The demo on several seeds: the SPN, its node network alone, a GNN, and the ceiling.

    python benchmarks/app/demo_seeds.py --seeds 5

Writes results/demo/seeds.md. Each seed draws new graphs, labels, images and weights.
"""

import argparse
import json
import tempfile
from pathlib import Path

from rich.console import Console

from accord._files import write_text
from accord.app.commands.demo import ROW_TITLES, run_demo

OUT = Path(__file__).parents[2] / "results" / "demo" / "seeds.md"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    seeds, quiet, rows = parser.parse_args().seeds, Console(quiet=True), []
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            run_demo(Path(folder) / "demo", seed, quiet, quiet)
            scores = json.loads((Path(folder) / "demo" / "results.json").read_text())["test"]
        parts = list(scores)
        graph = {part: 100 * scores[part]["graph_accuracy"] for part in parts}
        gains = [f"{graph['spn'] - graph['gnn']:+.1f}", f"{graph['spn'] - graph['gcnii']:+.1f}"]
        rows.append("| " + " | ".join([str(seed), *(f"{graph[part]:.1f}" for part in parts), *gains]) + " |")
        print(rows[-1], flush=True)
    head = ["seed", *(ROW_TITLES[part] for part in parts), "SPN - node network", "SPN - GNN"]
    table = "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *rows])
    write_text(
        OUT,
        "# The demo on several seeds\n\nShare of test graphs with every node right, in percent. Written by "
        f"`python benchmarks/app/demo_seeds.py`.\n\n{table}\n",
    )


if __name__ == "__main__":
    main()
