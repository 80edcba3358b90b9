"""Quality of belief propagation on loopy graphs by schedule, damping and reweighting: sweeps, share settled, error.

Ising fields (two states, node potentials uniform in [-0.3, 0.3]) of growing coupling, attractive (all +b) or mixed (+b
or -b at random), on grids and random graphs. Large graphs give the number of sweeps; on small graphs node marginals are
compared with exact ones. A sweep sends as many messages as there are arcs, in every schedule. Takes under 10 minutes on
one core:

    python benchmarks/inference/propagation_quality.py            # runs, then writes results/propagation/
    python benchmarks/inference/propagation_quality.py --redraw   # tables and plot of the stored results
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median

import torch
from torch import Tensor

from accord import PairwiseField, propagate
from accord._files import write_text
from accord.bench.inference._machine import processor_name
from accord.inference import eliminate_beliefs

FOLDER = Path(__file__).parents[2] / "results" / "propagation"
LIMIT, TOLERANCE = 200, 1e-6  # sweeps (the default of `propagate`); float64
METHODS: dict[str, dict[str, object]] = {
    "synchronous": {},
    "damped 0.2": {"damping": 0.2},
    "damped 0.2, 2000 sweeps": {"damping": 0.2, "max_sweeps": 2000},
    "damped 0.5": {"damping": 0.5},
    "damped 0.8": {"damping": 0.8},
    "sequential": {"schedule": "sequential"},
    "sequential, damped 0.2": {"schedule": "sequential", "damping": 0.2},
    "residual": {"schedule": "residual"},
    "residual, damped 0.2": {"schedule": "residual", "damping": 0.2},
    "reweighted spanning, damped 0.5": {"edge_appearance": "spanning", "damping": 0.5},
    "reweighted 0.5, damped 0.5": {"edge_appearance": 0.5, "damping": 0.5},
}
PLOTTED = {
    "synchronous": ("#3c3c3c", "o"),
    "damped 0.2, 2000 sweeps": ("#9a9a9a", "s"),
    "reweighted spanning, damped 0.5": ("#3a8f4d", "P"),
    "sequential": ("#0b6fb8", "^"),
    "residual": ("#c8501e", "D"),
    "residual, damped 0.2": ("#eba67f", "v"),
}
GRAPHS = {  # name: (couplings, seeds, whether exact marginals are computed)
    "grid 30x30": ((0.1, 0.2, 0.3, 0.4, 0.6, 1.0), 3, False),
    "regular 300": ((0.1, 0.2, 0.3, 0.4, 0.6, 1.0), 3, False),
    "Erdos-Renyi 300": ((0.1, 0.2, 0.3, 0.4, 0.6, 1.0), 3, False),
    "grid 10x10": ((0.1, 0.2, 0.3, 0.4, 0.6, 1.0), 5, True),
    "regular 24": ((0.1, 0.2, 0.3, 0.4, 0.6, 1.0), 5, True),
    "Erdos-Renyi 24": ((0.1, 0.2, 0.3, 0.4, 0.6, 1.0), 5, True),
}
SIGNS = ("attractive", "mixed")


@dataclass(frozen=True)
class Cell:
    """One method on the graphs (one for each seed) of one kind, sign and coupling."""

    graphs: str
    sign: str
    coupling: float
    method: str
    sweeps: list[int]
    converged: list[bool]
    error: list[float] | None  # mean absolute error of P(state 1), for each graph
    seconds: float  # processor time for all graphs together
    backend: str


def edges_of(graphs: str, generator: torch.Generator) -> tuple[Tensor, int]:
    """Edge index and number of nodes."""
    kind, size = graphs.split()
    if kind == "grid":
        rows, columns = map(int, size.split("x"))
        number = torch.arange(rows * columns).reshape(rows, columns)
        across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
        down = torch.stack([number[:-1].flatten(), number[1:].flatten()])
        return torch.cat([across, down], 1), rows * columns
    nodes = int(size)
    if kind == "Erdos-Renyi":  # mean degree 4
        pairs = torch.combinations(torch.arange(nodes)).t()
        return pairs[:, torch.randperm(pairs.shape[1], generator=generator)[: 2 * nodes]], nodes
    return four_regular(nodes, generator), nodes


def four_regular(nodes: int, generator: torch.Generator) -> Tensor:
    """A random 4-regular graph: two random rings through all nodes that share no edge."""
    while True:
        rings = [torch.randperm(nodes, generator=generator) for _ in range(2)]
        index = torch.cat([torch.stack([ring, ring.roll(1)]) for ring in rings], 1)
        if len((index.amin(0) * nodes + index.amax(0)).unique()) == index.shape[1]:
            return index


def ising(graphs: str, sign: str, coupling: float, seeds: int) -> PairwiseField:
    """One graph for each seed, as one field."""
    index, node, edge, graph, offset = [], [], [], [], 0
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        ends, nodes = edges_of(graphs, generator)
        bias = 0.6 * torch.rand(nodes, generator=generator, dtype=torch.float64) - 0.3
        flips = torch.rand(ends.shape[1], generator=generator) < (0.5 if sign == "mixed" else 0.0)
        strength = coupling * (1.0 - 2.0 * flips.double())
        index.append(ends + offset)
        node.append(torch.stack([-bias, bias], -1))
        edge.append(strength[:, None, None] * torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64))
        graph.append(torch.full((nodes,), seed))
        offset += nodes
    return PairwiseField(torch.cat(index, 1), torch.cat(node), torch.cat(edge), torch.cat(graph), seeds)


def run(graphs: str, sign: str, coupling: float, seeds: int, exact: bool) -> list[Cell]:
    """Every method on the same fields."""
    field = ising(graphs, sign, coupling, seeds)
    truth = eliminate_beliefs(field).node.exp()[:, 1] if exact else None
    results = []
    for method, options in METHODS.items():
        start = time.process_time()
        beliefs = propagate(field, tolerance=TOLERANCE, **{"max_sweeps": LIMIT, **options})
        seconds = time.process_time() - start
        error = None
        if truth is not None:
            off = (beliefs.node.exp()[:, 1] - truth).abs()
            error = [round(float(off[field.graph == seed].mean()), 6) for seed in range(seeds)]
        facts = (beliefs.sweeps.tolist(), beliefs.converged.tolist(), error, round(seconds, 3), beliefs.backend)
        results.append(Cell(graphs, sign, coupling, method, *facts))
    return results


def run_all() -> list[Cell]:
    results = []
    for graphs, (couplings, seeds, exact) in GRAPHS.items():
        for sign in SIGNS:
            start = time.perf_counter()
            for coupling in couplings:
                results += run(graphs, sign, coupling, seeds, exact)
            print(f"{graphs}, {sign}: {time.perf_counter() - start:.0f} s", flush=True)
    return results


def cell_text(cell: Cell) -> str:
    """Median sweeps, with the share that settled where not all did, and the error where it is known."""
    share = sum(cell.converged) / len(cell.converged)
    text = f"{median(cell.sweeps):.0f}" if share == 1 else f"{median(cell.sweeps):.0f} ({share:.0%})"
    return text if cell.error is None else f"{text}, {100 * mean(cell.error):.2g}"


def summary(results: list[Cell]) -> list[str]:
    """One line for each method, over all graphs; sweeps are those of fields on which every method settled."""
    fields: dict[tuple[str, str, float], dict[str, Cell]] = {}
    for r in results:
        fields.setdefault((r.graphs, r.sign, r.coupling), {})[r.method] = r
    # Reweighting solves another problem, and heavy damping is slow by design: they do not decide which fields count.
    others = [name for name in METHODS if "reweighted" not in name and name != "damped 0.8"]
    easy = [cells for cells in fields.values() if all(all(cells[name].converged) for name in others)]
    lines = [
        "| | settled, attractive | settled, mixed | sweeps where all settle | error, attractive | error, mixed | s |"
    ]
    lines.append("|---" * 7 + "|")
    for name in METHODS:
        own = [r for r in results if r.method == name]
        settled = [mean(c for r in own if r.sign == sign for c in r.converged) for sign in SIGNS]
        errors = [mean(e for r in own if r.sign == sign for e in r.error or []) for sign in SIGNS]
        sweeps = mean(median(cells[name].sweeps) for cells in easy)
        shares, wrong = (
            " | ".join(format(x, form) for x in part) for part, form in ((settled, ".0%"), (errors, ".1%"))
        )
        lines.append(f"| {name} | {shares} | {sweeps:.0f} | {wrong} | {sum(r.seconds for r in own):.1f} |")
    return [*lines, "", f"Sweeps are means over the {len(easy)} of {len(fields)} kinds of fields on which all settle."]


INTRODUCTION = f"""# Belief propagation on hard loopy graphs

Written by `python benchmarks/inference/propagation_quality.py`: Ising fields of growing coupling, attractive or with
mixed signs. A graph has settled when no log-message changes by more than {TOLERANCE:g} within {LIMIT} sweeps
(2000 where stated). A
sweep sends as many messages as there are arcs. Errors are mean absolute errors of node marginals, including graphs that
did not settle. Seconds are processor time: synchronous sweeps run in the compiled kernel, the other schedules in plain
torch. [TABLES.md](TABLES.md) has every kind of graph and coupling;
[ADR 0006](../../docs/adr/0006-gradients-and-schedules.md) explains the default.

![share settled, sweeps and error against coupling](propagation.png)
"""


def page(results: list[Cell]) -> str:
    """Introduction, plot and summary."""
    return "\n".join([INTRODUCTION, *summary(results)]) + "\n"


def tables(results: list[Cell]) -> str:
    """One table for each kind of graph and sign of the couplings."""
    lines = ["# Belief propagation on hard loopy graphs: all cells", ""]
    lines += ["By coupling: median sweeps; in brackets the share that settled, where not all did; then, where exact"]
    lines += ["marginals are known, the error in percent. The last column is processor time in seconds."]
    for graphs, (couplings, seeds, _) in GRAPHS.items():
        for sign in SIGNS:
            lines += ["", f"## {graphs}, {sign}, {seeds} graphs each", ""]
            lines += ["| | " + " | ".join(map(str, couplings)) + " | s |", "|---" * (len(couplings) + 2) + "|"]
            for method in METHODS:
                row = [r for r in results if (r.graphs, r.sign, r.method) == (graphs, sign, method)]
                cells = " | ".join(map(cell_text, row))
                lines.append(f"| {method} | {cells} | {sum(r.seconds for r in row):.2f} |")
    return "\n".join(lines) + "\n"


def draw(results: list[Cell], path: Path) -> None:
    """Sweeps on large graphs above, error on small ones below; hollow where not all graphs settled."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    rows = {"grid": ("grid 30x30", "grid 10x10"), "regular": ("regular 300", "regular 24")}
    sizes = {"grid 30x30": "30 x 30", "grid 10x10": "10 x 10"}
    sizes |= {"regular 300": "300 nodes, 4 neighbours each", "regular 24": "24 nodes, 4 neighbours each"}
    titles = {"grid": "grids", "regular": "random graphs"}
    figure, axes = plt.subplots(2, 4, figsize=(12, 6.4), sharex=True, sharey="row", layout="constrained")
    for column, (kind, sign) in enumerate((kind, sign) for kind in rows for sign in SIGNS):
        for axis, graphs in zip(axes[:, column], rows[kind], strict=True):
            axis.text(0.97, 0.04, sizes[graphs], transform=axis.transAxes, ha="right", fontsize=9, color="#555555")
            for method, (colour, marker) in PLOTTED.items():
                own = [r for r in results if (r.graphs, r.sign, r.method) == (graphs, sign, method)]
                x = [r.coupling for r in own]
                y = [median(r.sweeps) if r.error is None else 100 * mean(r.error) for r in own]
                axis.plot(x, y, color=colour, lw=1.5, marker=marker, ms=5.5, label=method, zorder=2)
                hollow = [(a, b) for a, b, r in zip(x, y, own, strict=True) if not all(r.converged)]
                axis.plot(
                    *zip(*hollow, strict=True) if hollow else ((), ()), ls="", marker=marker, ms=3, color="w", zorder=3
                )
        axes[0, column].set_title(f"{titles[kind]}, {sign} couplings", fontsize=11)
        axes[1, column].set_xlabel("coupling")
    axes[0, 0].set_ylabel("sweeps to settle")
    axes[1, 0].set_ylabel("error of node marginals, %")
    for axis in axes.flat:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.grid(alpha=0.3, lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    figure.suptitle(
        f"At most {LIMIT} sweeps unless stated; a white core marks points where not every graph settled.\n"
        "Methods that settle at the same beliefs have the same error, so their points coincide.",
        fontsize=10,
    )
    figure.savefig(path, dpi=140)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redraw", action="store_true")
    path = FOLDER / "propagation.json"
    if not parser.parse_args().redraw:
        torch.set_num_threads(1)
        start = time.process_time()
        results = [asdict(result) for result in run_all()]
        machine = {"processor": processor_name(), "torch": torch.__version__, "threads": 1}
        facts = {"limit": LIMIT, "tolerance": TOLERANCE, "machine": machine, "seconds": time.process_time() - start}
        write_text(path, json.dumps({**facts, "results": results}).replace("}, {", "},\n{") + "\n")
    results = [Cell(**entry) for entry in json.loads(path.read_text())["results"]]
    write_text(FOLDER / "README.md", page(results))
    write_text(FOLDER / "TABLES.md", tables(results))
    draw(results, FOLDER / "propagation.png")


if __name__ == "__main__":
    main()
