"""How long calls on a chain of 10 nodes take: construction, new potentials, propagation, a prepared solver, results.

    python benchmarks/solver/small_calls.py [--before TREE] [--peers FOLDER]

Writes results/small_calls/small_calls.json and README.md. TREE is a checkout of an earlier version to compare with;
FOLDER holds pytorch-crf (`pip install --target FOLDER --no-deps pytorch-crf`). Each version runs in processes of its
own, in turn. A figure is the least CPU time of a call in batches of 10, on one thread, over all rounds: other work on
the machine disturbs it little.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch
from origin import origin, told

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "small_calls"
NODES, STATES, BATCH, BATCHES, ROUNDS = 10, (2, 5), 10, 25, 3
IMPORTS = {
    "import torch": "import torch",
    "import accord": "import accord",
    "from accord import propagate": "from accord import propagate",
}


def calls(states):
    """What is measured, by name."""
    import accord.errors
    import accord.inference
    from accord import PairwiseField, propagate

    torch.manual_seed(states)
    torch.set_num_threads(1)
    index = torch.stack([torch.arange(NODES - 1), torch.arange(1, NODES)])
    node, edge = torch.randn(NODES, states), torch.randn(NODES - 1, states, states)
    field = PairwiseField(index, node, edge)
    propagate(field)
    found = {
        "PairwiseField(...)": lambda: PairwiseField(index, node, edge),
        "field.with_potentials": lambda: field.with_potentials(node, edge),
        "propagate(field)": lambda: propagate(field),
        "propagate(field.with_potentials(...))": lambda: propagate(field.with_potentials(node, edge)),
        "propagate(PairwiseField(...))": lambda: propagate(PairwiseField(index, node, edge)),
        "propagate(field).node": lambda: propagate(field).node,
        "propagate(field).log_partition": lambda: propagate(field).log_partition,
        "propagate(field).decode()": lambda: propagate(field).decode(),
    }
    if hasattr(accord.inference, "Propagation"):
        solver = accord.inference.Propagation(field)
        found["solver()"] = lambda: solver()
        found["solver(node, edge)"] = lambda: solver(node, edge)
        found["solver(node, edge).log_partition"] = lambda: solver(node, edge).log_partition
        found["solver(node, edge).decode()"] = lambda: solver(node, edge).decode()
        leaves = node.clone().requires_grad_(), edge.clone().requires_grad_()

        def gradient(forward):
            return lambda: torch.autograd.grad(forward().sum(), leaves)

        found["solver(node, edge).log_partition, gradient"] = gradient(lambda: solver(*leaves).log_partition)
    rows, tables = list(node), list(edge)
    ragged = PairwiseField.ragged(index, rows, tables)
    found["ragged: propagate(field)"] = lambda: propagate(ragged)
    found["ragged: propagate(field).log_partition"] = lambda: propagate(ragged).log_partition
    found["ragged: propagate(field).decode()"] = lambda: propagate(ragged).decode()
    values = [group.values for group in ragged.groups]
    found["ragged: propagate(field.with_potentials(...))"] = lambda: propagate(ragged.with_potentials(node, values))
    try:
        many = accord.inference.Propagation(ragged)
        found["ragged: solver(node, values)"] = lambda: many(node, values)
        found["ragged: solver(node, values).log_partition"] = lambda: many(node, values).log_partition
        found["ragged: solver(node, values).decode()"] = lambda: many(node, values).decode()
    except (AttributeError, accord.errors.InputTypeError):
        pass  # earlier versions prepare pairwise fields only
    try:
        from torchcrf import CRF
    except ImportError:
        return found
    crf, scores = CRF(states, batch_first=True), torch.randn(1, NODES, states)
    labels = torch.zeros(1, NODES, dtype=torch.long)
    found["pytorch-crf: forward"] = lambda: crf(scores, labels)
    inputs = scores.clone().requires_grad_(), *crf.parameters()
    found["pytorch-crf: forward, gradient"] = lambda: torch.autograd.grad(crf(inputs[0], labels), inputs)
    found["pytorch-crf: decode"] = lambda: crf.decode(scores)
    return found


def least(call):
    """Least CPU seconds of one call, in microseconds."""
    taken = []
    for _ in range(BATCHES):
        begun = time.process_time()
        for _ in range(BATCH):
            call()
        taken.append((time.process_time() - begun) / BATCH)
    return 1e6 * min(taken)


def measure():
    """Print the figures of the version that is found first."""
    print(json.dumps({str(states): {name: least(call) for name, call in calls(states).items()} for states in STATES}))


def in_tree(tree, peers, *arguments):
    """Run Python with the package of a tree."""
    path = os.pathsep.join([str(tree), *([str(peers)] if peers else [])])
    surroundings = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], cwd="/", env=surroundings, check=True, capture_output=True, text=True
    ).stdout


def seconds_to_run(tree, code):
    """CPU seconds of a process."""
    before = os.times()
    in_tree(tree, None, "-c", code)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def lowest(one, other):
    """The lesser of the figures of two rounds."""
    if not isinstance(one, dict):
        return min(one, other)
    return {name: lowest(value, other[name]) for name, value in one.items()}


def table(found):
    """The figures as Markdown."""
    versions = list(found["calls"])
    heads = [f"{version}, K={states}" for states in STATES for version in versions]
    lines = [f"| µs | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    names = dict.fromkeys(name for version in versions for name in found["calls"][version][str(STATES[0])])
    for name in names:
        row = [found["calls"][version][str(states)].get(name) for states in STATES for version in versions]
        lines.append(f"| `{name}` | {' | '.join('' if value is None else f'{value:.0f}' for value in row)} |")
    lines += ["", f"| seconds | {' | '.join(versions)} |", "|---" * (len(versions) + 1) + "|"]
    for name in IMPORTS:
        row = [f"{found['imports'][version][name]:.2f}" for version in versions]
        lines.append(f"| `{name}` | {' | '.join(row)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.measure:
        measure()
        return
    torch.set_num_threads(1)  # as in the processes that measure
    if options.peers:
        sys.path.append(str(options.peers))  # where versions are looked up
    trees = {**({"before": options.before} if options.before else {}), "now": ROOT}
    found = {"origin": origin("pytorch-crf"), "calls": {}, "imports": {}}
    for _ in range(ROUNDS):
        for version, tree in trees.items():
            figures = json.loads(in_tree(tree, options.peers, str(Path(__file__).resolve()), "--measure"))
            taken = {name: seconds_to_run(tree, code) for name, code in IMPORTS.items()}
            for kind, new in (("calls", figures), ("imports", taken)):
                found[kind][version] = lowest(found[kind].get(version, new), new)
    if options.before:
        command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        found["before"] = subprocess.run(
            command, cwd=options.before, check=True, capture_output=True, text=True
        ).stdout.strip()
    write(found)


def write(found):
    """The stored figures and their page."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "small_calls.json").write_text(json.dumps(found, indent=1) + "\n")
    before = f" *Before* is commit {found['before']}." if "before" in found else ""
    (RESULTS / "README.md").write_text(
        f"# Calls on a chain of {NODES}\n\n"
        "Written by `python benchmarks/solver/small_calls.py`, which says how it measures.\n"
        f"K is the number of states. Imports are CPU seconds of a whole\nprocess, best of {ROUNDS}.\n\n"
        f"{told(found['origin'])}{before}\n\n{table(found)}\n"
    )


if __name__ == "__main__":
    main()
