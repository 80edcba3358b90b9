"""`accord data check`: what is understood of a folder of graphs, and every problem with file and row."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from accord.app.console import counted
from accord.datasets import Findings, FolderCheck, GraphStatistics, TableMapping, check_folder, describe_graphs

MOST_PROBLEMS = 50  # printed
MOST_COLUMNS = 40  # printed
PLAIN, FEW_PLAIN = "feature: numbers", 10  # more columns of a file that are read so are counted, not listed
MOST_SHARES = 12  # states whose share is printed
LARGE = 1000  # nodes of a graph that counts as one large graph


def check_data(path: Path, mapping: TableMapping | None, console: Console) -> bool:
    """Print what is understood of a data folder and what is wrong with it; return whether all is well."""
    check = check_folder(path, mapping)
    if check.findings.mapping is not None:
        console.print(f"Mapping file: {check.findings.mapping}", markup=False, soft_wrap=True)
    show_columns(check.findings, console)
    names = check.label_names
    read = {name: graphs for name, graphs in check.splits.items() if graphs}
    statistics = {name: describe_graphs(graphs, None if names is None else len(names)) for name, graphs in read.items()}
    if statistics:
        console.print(_size_table(statistics))
        _show_kind(check, console)
        for name, found in statistics.items():
            _show_labels(name, found, names, console)
    for warning in check.warnings:
        console.print(f"[yellow]Note:[/] {escape(warning)}", soft_wrap=True)
    count = len(check.findings.problems) + check.findings.left_out
    if not count:
        console.print("[green]No problems found.[/]")
        return True
    console.print(f"[red]{counted(count, 'problem')}:[/]")
    for problem in check.findings.problems[:MOST_PROBLEMS]:
        console.print(f"- {problem}", markup=False, soft_wrap=True)
    if count > MOST_PROBLEMS:
        console.print(f"... and {count - MOST_PROBLEMS} more.")
    return False


def show_columns(findings: Findings, console: Console) -> None:
    """Print how each column of tables is read, if there are tables."""
    if not findings.columns:
        return
    plain = Counter(use.file for use in findings.columns.values() if use.use == PLAIN)
    listed = [use for use in findings.columns.values() if use.use != PLAIN or plain[use.file] <= FEW_PLAIN]
    table = Table("file", "column", "read as")
    for use in listed[:MOST_COLUMNS]:
        table.add_row(escape(use.file), escape(use.column), escape(use.use))
    for file, count in plain.items():
        if count > FEW_PLAIN:
            table.add_row(escape(file), f"{count} columns", PLAIN)
    console.print(table)
    if len(listed) > MOST_COLUMNS:
        console.print(f"... and {len(listed) - MOST_COLUMNS} more columns.")


def _size_table(statistics: dict[str, GraphStatistics]) -> Table:
    table = Table("", *statistics)
    for title, values in (
        ("graphs", [str(s.graphs) for s in statistics.values()]),
        ("nodes", [str(s.nodes) for s in statistics.values()]),
        ("nodes of the largest graph", [str(s.largest) for s in statistics.values()]),
        ("edges", [str(s.edges) for s in statistics.values()]),
        ("neighbours of a node, mean", [f"{s.mean_degree:.1f}" for s in statistics.values()]),
        ("neighbours of a node, most", [str(s.largest_degree) for s in statistics.values()]),
        ("nodes without neighbours", [str(s.isolated) for s in statistics.values()]),
        ("features", [str(s.features) for s in statistics.values()]),
        ("edge attributes", [str(s.edge_attributes) for s in statistics.values()]),
        ("nodes with a label", [str(s.labelled) for s in statistics.values()]),
    ):
        table.add_row(title, *values)
    return table


def _show_kind(check: FolderCheck, console: Console) -> None:
    train = check.splits["train"]
    if len(train) == 1 and len(train[0].x) >= LARGE and not any(check.splits[name] for name in ("val", "test")):
        console.print(
            "One large graph. `accord data split` divides it into training, validation and test graphs; `accord fit` "
            "takes it as it is and holds out labels.",
            soft_wrap=True,
        )
    elif len(train) == 1:
        console.print("One training graph.")
    else:
        console.print(f"{len(train)} training graphs.")


def _show_labels(name: str, found: GraphStatistics, names: Sequence[str] | None, console: Console) -> None:
    for task, shares in enumerate(found.shares):
        title = f"Labels of {name}" if len(found.shares) == 1 else f"Labels of {name}, task {task}"
        states = names or [str(state) for state in range(len(shares))]
        listed = [f"{states[state]} {100 * share:.1f} %" for state, share in enumerate(shares[:MOST_SHARES])]
        more = f", {len(shares) - MOST_SHARES} more" if len(shares) > MOST_SHARES else ""
        console.print(f"{title}: {', '.join(listed)}{more}", markup=False, soft_wrap=True)
        agreement, chance = found.agreement[task], found.chance[task]
        if agreement is not None and chance is not None:
            console.print(
                f"  {100 * agreement:.1f} % of the edges between labelled nodes join equal labels; by chance it would "
                f"be {100 * chance:.1f} %.",
                soft_wrap=True,
            )
