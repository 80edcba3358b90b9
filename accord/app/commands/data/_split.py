"""`accord data split`: train/, val/ and test/ of one large graph."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from accord.datasets import TableMapping, describe_graphs, read_graphs, split_graph, write_graph
from accord.errors import GraphError, OptionError

FORMS = {"npz": ".npz", "json": ".json", "tables": ""}
MOST_SHARES = 12  # states whose share is printed


def split_data(
    path: Path,
    out: Path,
    mapping: TableMapping | None,
    shares: str,
    seed: int,
    way: str,
    egos: int | None,
    form: str,
    console: Console,
) -> None:
    """Write train/, val/ and test/ of one large graph, and say how many edges were cut.

    Args:
        path: the graph.
        out: a folder that does not exist yet, or is empty.
        mapping: which columns of tables hold what.
        shares: three numbers, such as 60,20,20.
        seed: of the division.
        way: "clusters" or "random".
        egos: how many ego networks of training nodes; None writes one graph for each part.
        form: "npz", "json" or "tables".
        console: for results.
    """
    if form not in FORMS:
        raise OptionError(f"--form {form!r} is unknown. Choose one of {', '.join(FORMS)}.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OptionError(f"{out}: exists and is not an empty folder. Choose another one, or remove it.")
    graphs = read_graphs(path, mapping=mapping)
    if len(graphs) != 1:
        raise GraphError(
            f"{path}: holds {len(graphs)} graphs. Whole graphs are split by moving their files into train/, val/ and "
            "test/; this command divides one graph."
        )
    split = split_graph(graphs[0], read_shares(shares), seed, way, egos)
    table = Table("part", "graphs", "nodes", "edges", "labels", "share of each label")
    for name in ("train", "val", "test"):
        part = getattr(split, name)
        digits = len(str(len(part)))
        for number, graph in enumerate(part):
            stem = name if len(part) == 1 else f"{number:0{digits}}"
            write_graph(graph, out / name / f"{stem}{FORMS[form]}")
        names = graphs[0].get("label_names")
        found = describe_graphs(part, None if names is None else len(names))
        shares_of = enumerate(found.shares[0][:MOST_SHARES]) if found.shares else ()
        shown = ", ".join(f"{names[state] if names else state} {100 * share:.0f} %" for state, share in shares_of)
        table.add_row(name, *map(str, (found.graphs, found.nodes, found.edges, found.labelled)), shown)
    console.print(table)
    cut = f"{split.cut_edges} of {split.num_edges} edges" if split.num_edges else "no edges"
    percent = f" ({100 * split.cut_edges / split.num_edges:.1f} %)" if split.num_edges else ""
    console.print(f"{cut}{percent} joined two parts and were cut. Written to {out}.", markup=False, soft_wrap=True)


def read_shares(text: str) -> tuple[float, ...]:
    """Three numbers as shares that sum to 1; 60,20,20 and 0.6,0.2,0.2 are the same."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise OptionError(f"--shares {text!r} is not a list of numbers. Write 60,20,20.") from error
    if len(numbers) != 3 or not all(0 < number < float("inf") for number in numbers):
        raise OptionError(f"--shares {text!r} must be three positive numbers: training, validation, test.")
    return tuple(number / sum(numbers) for number in numbers)
