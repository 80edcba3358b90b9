"""`accord data`: arguments and options of the commands that list, check and split data."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from accord.app.console import output

PROBLEMS_FOUND = 1  # exit code of a check that found problems

data_app = typer.Typer(help="Benchmark data, and your own.", no_args_is_help=True)
GraphArgument = Annotated[Path, typer.Argument(metavar="DATA", help="A data folder, or a graph, as for `accord fit`.")]
MappingOption = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        metavar="FILE",
        help="TOML file that says which tables and columns hold what.",
        show_default="accord.toml in the folder of the data",
    ),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="KEY=VALUE", help="One entry of the mapping: nodes.label=page_type; may be repeated."
    ),
]


@data_app.command("list")
def list_data() -> None:
    """List the benchmarks, whether their files are found, and how large they are (the paper's Table 8)."""
    from accord.datasets import list_benchmarks, load_benchmark

    table = Table("benchmark", "what", "files")
    sizes = Table("found", "features", "labels", *(f"{s}: graphs, nodes, edges" for s in ("train", "val", "test")))
    for row in list_benchmarks():
        table.add_row(row.name, row.description, "found" if row.present else "not found")
        if row.present:
            bench = load_benchmark(row.name, features="raw")
            labels = bench.num_states if bench.num_tasks == 1 else bench.num_tasks
            splits = bench.statistics().values()
            cells = [f"{s.graphs:,}, {s.average_nodes:,.1f}, {s.average_edges:,.1f}" for s in splits]
            sizes.add_row(row.name, f"{bench.num_features:,}", str(labels), *cells)
    table.add_row("digits", "handwritten digits on made graphs whose field is known", "made when needed")
    output().print(table)
    if sizes.row_count:
        output().print(sizes)
        output().print(
            "Nodes and edges are averages over graphs; PPI counts both directions of an edge, as the paper does."
        )


@data_app.command("dblp")
def dblp(
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="AMiner's dblp.v12.json, also gzipped.")],
    vectors: Annotated[Path, typer.Argument(metavar="VECTORS", help="glove.6B.100d.txt, also gzipped.")],
    out: Annotated[Path, typer.Option(help="File to write; `$ACCORD_DATA` and the cache are searched for it.")] = Path(
        "dblp.npz"
    ),
) -> None:
    """Build the paper's DBLP set from the public citation dump and word vectors, line by line."""
    from accord.datasets import build_dblp

    output().print(f"{build_dblp(dump, vectors, out)} written", soft_wrap=True)


@data_app.command("check")
def check(data: GraphArgument, mapping: MappingOption = None, columns: ColumnsOption = None) -> None:
    """Say what is understood of your files, and list every problem with file and row. Nothing is trained."""
    from accord.app.commands.data._check import check_data
    from accord.app.sources import find_tables

    if not check_data(data, find_tables(data, mapping, columns), output()):
        raise typer.Exit(PROBLEMS_FOUND)


@data_app.command("split")
def split(
    data: Annotated[Path, typer.Argument(metavar="GRAPH", help="One large graph: a file, or a folder of tables.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder for train/, val/ and test/.")],
    shares: Annotated[str, typer.Option(help="Nodes in training, validation and test.")] = "60,20,20",
    seed: Annotated[int, typer.Option(help="Of the division.")] = 0,
    way: Annotated[
        str,
        typer.Option(
            help="clusters: whole neighbourhoods go into a part, few edges are cut; random: node by node, the parts "
            "are alike, but most edges are cut."
        ),
    ] = "clusters",
    egos: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Write so many ego networks (a node and its neighbours) of training nodes, and of the other parts by "
            "their shares.",
            show_default="one graph for each part",
        ),
    ] = None,
    form: Annotated[str, typer.Option(help="npz, json or tables (nodes.csv and edges.csv).")] = "npz",
    mapping: MappingOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Divide one large graph into parts without common nodes or edges, so that test nodes are new to the model."""
    from accord.app.commands.data._split import split_data
    from accord.app.sources import find_tables

    split_data(data, out, find_tables(data, mapping, columns), shares, seed, way, egos, form, output())
