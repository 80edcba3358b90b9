"""What engines and parts cost those who do not use them: import, propagation and training before them and now.

    python benchmarks/distributed/no_cost.py --before 44e8d76

Both versions are taken from git. They take turns, each in new processes of one thread, of which processor time is
measured; every round is stored as soon as it is there, and the same command goes on with the rounds that are missing.
Writes no_cost.json and no_cost.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "results" / "distributed"
CALLS, SWEEPS, EPOCHS = 11, 50, 6


def fields():
    """A grid, a random graph with many states, and many chains as one batch; by name."""
    import torch

    from accord import PairwiseField

    side = torch.arange(200 * 200).reshape(200, 200)
    grid = torch.cat(
        [
            torch.stack([side[:, :-1].flatten(), side[:, 1:].flatten()]),
            torch.stack([side[:-1].flatten(), side[1:].flatten()]),
        ],
        1,
    )
    draw = torch.Generator().manual_seed(0)
    ends = torch.randint(0, 5_000, (2, 15_000), generator=draw).sort(0).values
    ends = torch.unique(ends[:, ends[0] < ends[1]], dim=1)
    chains = torch.arange(40_000)
    chains = torch.stack([chains, chains + 1])[:, chains % 10 != 9]
    for name, index, nodes, states in (
        ("grid", grid, 40_000, 3),
        ("random graph", ends, 5_000, 10),
        ("chains", chains, 40_000, 5),
    ):
        node = torch.randn(nodes, states, generator=draw)
        edge = torch.randn(index.shape[1], states, states, generator=draw) * 0.4
        yield f"propagate: {name}, {index.shape[1]:,} edges, K={states}", PairwiseField(index, node, edge)


def epochs():
    """Seconds of the epochs of an SPN, evaluation included."""
    import torch
    from torch_geometric.data import Data

    from accord.encoders import GCN
    from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun
    from accord.methods import Shape, SPNRecipe, StructuredProxyNetwork

    draw, graphs = torch.Generator().manual_seed(0), []
    for _ in range(72):
        y = torch.randint(0, 5, (200,), generator=draw)
        x = torch.randn(200, 32, generator=draw)
        x[:, :5] += torch.nn.functional.one_hot(y, 5)
        graphs.append(Data(x=x, edge_index=torch.randint(0, 200, (2, 800), generator=draw), y=y))
    training = TrainingOptions(max_epochs=EPOCHS, batch_graphs=16, evaluate_every=1, accelerator="cpu")
    network = {"encoder": GCN(hidden=64), "edge_encoder": GCN(hidden=64), "node": PartOptions(), "edge": PartOptions()}
    ends = []
    run = TrainingRun(graphs[8:], graphs[:8], report=lambda row: ends.append(time.process_time()))
    StructuredProxyNetwork(SPNRecipe(**network, training=training), "node").fit(run, Shape(32, 5), Replicas((0,)))
    return [later - before for before, later in zip(ends, ends[1:], strict=False) if later - before > 0]


def measure(tree):
    """Print the figures of the version that was imported."""
    begun = time.process_time()
    import accord

    found = {"import accord": time.process_time() - begun}
    assert Path(accord.__file__).is_relative_to(tree), accord.__file__
    from accord import NodeClassifier, propagate

    assert callable(NodeClassifier)
    found["import accord, and load NodeClassifier and propagate"] = time.process_time() - begun
    for name, field in fields():
        propagate(field, max_sweeps=SWEEPS, tolerance=0.0)  # kernels compiled and loaded
        taken = []
        for _ in range(CALLS):
            begun = time.process_time()
            propagate(field, max_sweeps=SWEEPS, tolerance=0.0)
            taken.append(time.process_time() - begun)
        found[name] = median(taken)
    found["SPN, an epoch"] = median(epochs())
    assert "ray" not in sys.modules and "pymetis" not in sys.modules
    print(json.dumps(found))


def in_tree(tree):
    """The figures of a version, in a process of its own."""
    surroundings = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--measure", str(tree)]
    done = subprocess.run(command, cwd="/", env=surroundings, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def git(*arguments):
    """What git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def page(stored):
    """The figures as Markdown."""
    facts, rounds = stored["machine"], stored["rounds"]
    before, now = stored["before"], stored["now"]
    became = f" ({stored['became']} once it was placed on later work)" if "became" in stored else ""
    loads = [one["load"] for one in rounds]
    lines = [
        "# What engines and parts cost those who do not use them",
        "",
        f"`python benchmarks/distributed/no_cost.py --before {before[:7]}`: commit {before[:7]}, the last one before "
        f"engines and parts, beside {now[:7]}{became}. {facts['processor']}, {facts['cores']} cores, "
        f"torch {facts['torch']}, {facts['date']}; load {min(loads):.1f} to {max(loads):.1f} before a round. "
        f"Medians of {len(rounds)} rounds in which the versions take turns, one thread; `propagate` makes "
        f"{SWEEPS} sweeps. Times are those of the processor, which other work on the machine disturbs less. The last "
        "column has the least and the largest ratio "
        "of a round.",
        "",
        "| | before | now | ratio of medians | ratios of rounds |",
        "|---|---|---|---|---|",
    ]
    for name in rounds[0]["now"]:
        taken = {version: [one[version][name] for one in rounds] for version in ("before", "now")}
        ratios = [one / other for one, other in zip(taken["now"], taken["before"], strict=True)]
        old, new = median(taken["before"]), median(taken["now"])
        lines.append(
            f"| {name} | {1e3 * old:.1f} ms | {1e3 * new:.1f} ms | {new / old:.2f} | {min(ratios):.2f} to "
            f"{max(ratios):.2f} |"
        )
    lines += [
        "",
        "Loading `NodeClassifier` loads more modules of Accord than before, those of parts and engines among them, and "
        "no other package: neither ray nor pymetis.",
    ]
    return "\n".join([*lines, ""])


def main():
    """Measure the rounds that are missing, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default="44e8d76", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="until there are so many")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    from propagation import machine

    from accord._files import write_json, write_text

    path = FOLDER / "no_cost.json"
    versions = {"before": git("rev-parse", options.before).decode().strip()}
    stored = json.loads(path.read_text()) if path.exists() else {}
    if stored.get("before") != versions["before"] or len(stored["rounds"]) >= options.rounds:
        stored = {"machine": machine(), **versions, "now": git("rev-parse", "HEAD").decode().strip(), "rounds": []}
    with TemporaryDirectory() as folder:
        trees = {version: Path(folder, version) for version in ("before", "now")}
        for version, tree in trees.items():
            tree.mkdir()
            subprocess.run(["tar", "-x", "-C", tree], input=git("archive", stored[version], "accord"), check=True)
        while len(stored["rounds"]) < options.rounds:
            first = len(stored["rounds"]) % 2
            order = sorted(trees, reverse=bool(first))
            load = os.getloadavg()[0]
            found = {version: in_tree(trees[version]) for version in order}
            stored["rounds"].append({"load": load, "first": order[0], **found})
            write_json(path, stored)
    write_text(FOLDER / "no_cost.md", page(stored))


if __name__ == "__main__":
    main()
