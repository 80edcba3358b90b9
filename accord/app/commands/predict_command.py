"""`accord predict`: its arguments and options."""

from pathlib import Path
from typing import Annotated

import typer

from accord.app import options
from accord.app.commands.data import ColumnsOption, MappingOption
from accord.app.console import counted, messages
from accord.errors import OptionError


def predict(
    run: options.ModelArgument,
    graph: Annotated[
        Path,
        typer.Argument(
            metavar="GRAPH", help="A graph, a folder of graphs or a .parquet file of many, as for `accord fit`."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="A .csv, .json or .parquet file; with --engine a folder, which gets a Parquet file for each block.",
            show_default="csv to the terminal",
        ),
    ] = None,
    marginals: Annotated[bool, typer.Option("--marginals", help="Give the probability of every state.")] = False,
    known: options.KnownOption = None,
    forbid: options.ForbidOption = None,
    forbid_directed: options.ForbidDirectedOption = None,
    require: options.RequireOption = None,
    prefer: options.PreferOption = None,
    diagnose: Annotated[
        bool,
        typer.Option(
            "--diagnose",
            help="Add what is doubtful: the node network's label, entropy, edges with unlikely labels, convergence.",
        ),
    ] = False,
    threshold: options.ThresholdOption = None,
    precision: options.PrecisionOption = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Label many graphs block by block into the folder --out, here (local) or on a cluster (ray). The same "
            "command, given again, goes on where it stopped.",
            show_default="one table",
        ),
    ] = None,
    workers: options.WorkersOption = None,
    address: options.AddressOption = None,
    gpus_per_worker: options.GpusOption = None,
    block_graphs: Annotated[
        int | None, typer.Option(help="With --engine: graphs of a block.", show_default="1000")
    ] = None,
    mapping: MappingOption = None,
    columns: ColumnsOption = None,
    parts: Annotated[
        int | None,
        typer.Option(
            help="Label one graph, a folder with nodes/ and edges/ of Parquet files, by so many processes of this "
            "machine into the folder --out, on CPUs. Under torchrun, its processes do so.",
            show_default="one process",
        ),
    ] = None,
) -> None:
    """Label the nodes of new graphs jointly."""
    from accord.app.commands.predict import Wanted, predict_blocks, predict_graphs, to_csv, write_columns
    from accord.app.commands.predict._job import BLOCK_GRAPHS
    from accord.app.commands.predict._parts import is_launched, predict_parts
    from accord.app.knowledge import GivenOptions
    from accord.app.runs import open_model
    from accord.app.sources import find_tables
    from accord.distributed.engines import open_engine

    if parts is not None or is_launched():
        refused: list[object] = [known, forbid, forbid_directed, require, prefer, threshold, mapping, columns]
        refused += [engine, workers, address, gpus_per_worker, block_graphs]
        if diagnose or any(refused):
            raise OptionError("--parts goes together with --out, --marginals and --precision only.")
        labelled = predict_parts(open_model(run), graph, out, parts, marginals, precision)
        if labelled is not None:
            messages().print(labelled, soft_wrap=True, markup=False)
        return
    given = GivenOptions(known, forbid, forbid_directed, require, prefer)
    wanted = Wanted(marginals=marginals, given=given, diagnose=diagnose, limit=threshold, precision=precision)
    tables, model = find_tables(graph, mapping, columns), open_model(run)
    if engine is not None:
        if out is None:
            raise OptionError("--engine needs a folder for the results. Give one with --out.")
        size = BLOCK_GRAPHS if block_graphs is None else block_graphs
        with open_engine(engine, workers, address, gpus_per_worker) as where:
            done = predict_blocks(model, graph, out, where, wanted, size, tables, messages())
        were = "was" if done.before == 1 else "were"
        before = f"; {counted(done.before, 'block')} {were} there before" if done.before else ""
        wrote = f"{counted(done.graphs, 'graph')}, {counted(done.rows, 'row')} in {counted(done.blocks, 'block')}"
        said = f"{wrote} written to {out}{before}"
        messages().print(said, soft_wrap=True, markup=False)
        return
    if any(option is not None for option in (workers, address, gpus_per_worker, block_graphs)):
        raise OptionError(
            "--workers, --address, --gpus-per-worker and --block-graphs need an engine. Add --engine local or ray, or "
            "leave them out."
        )
    found, notes = predict_graphs(model, graph, wanted, tables)
    if out is None:
        typer.echo(to_csv(found), nl=False)
    else:
        write_columns(found, out)
        messages().print(f"{counted(len(found['node']), 'row')} written to {out}", soft_wrap=True, markup=False)
    for note in notes:
        messages().print(note, soft_wrap=True, markup=False)
