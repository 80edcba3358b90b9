"""`accord reproduce`: its arguments and options."""

from pathlib import Path
from typing import Annotated

import typer

from accord.app import options
from accord.app.console import messages, output
from accord.errors import OptionError


def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="all, table-1 to table-13, figure-2 to figure-5, ablation, fair: the paper's, from one store of "
            "records. With a folder of their own: citation (GNN against SPN), methods, convergence, ppi, run-time.",
        ),
    ],
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Only these data sets; may be repeated.", show_default="the table's")
    ] = None,
    encoder: Annotated[
        list[str] | None, typer.Option(help="Only these encoders; may be repeated.", show_default="the table's")
    ] = None,
    preset: Annotated[
        list[str] | None, typer.Option(help="Only these presets; may be repeated.", show_default="the table's")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Only these rows of table methods; may be repeated.", show_default="all"),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="As 1-5 or 1,2,7; all are trained together.", show_default="1-5, or as many as the paper"),
    ] = None,
    max_epochs: Annotated[int | None, typer.Option(help="How long to train.", show_default="the preset's")] = None,
    accelerator: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    out: Annotated[Path, typer.Option(help="Folder for the results, each written as soon as it is there.")] = Path(
        "results"
    ),
    budget: Annotated[
        str | None, typer.Option(help="Stop after this time, as 25m; the same command goes on.", show_default="none")
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Take in the records.jsonl of another machine, or a folder of earlier results, first."),
    ] = None,
    document: Annotated[Path | None, typer.Option(help="Also write the report as Markdown to this file.")] = None,
    engine: options.EngineOption = "local",
    workers: options.WorkersOption = None,
    address: options.AddressOption = None,
    gpus_per_worker: options.GpusOption = None,
) -> None:
    """Run the paper's tables and figures, and write them with the paper's numbers beside ours."""
    from accord.app.commands.reproduce import TABLES, Wanted, reproduce_paper, reproduce_table
    from accord.distributed.engines import open_engine
    from accord.experiments.reproduction import all_targets

    chosen = {"benchmarks": benchmark, "encoders": encoder, "presets": preset, "variants": method}
    if table in all_targets():
        wanted = Wanted(
            target=table,
            chosen=chosen,
            seeds=seeds,
            max_epochs=max_epochs,
            accelerator=accelerator,
            budget=budget,
            merge=merge or (),
            document=document,
        )
        with open_engine(engine, workers, address, gpus_per_worker) as where:
            text = reproduce_paper(out, wanted, messages(), where)
    else:
        others = {
            "budget": budget,
            "merge": merge or None,
            "document": document,
            "engine": None if engine == "local" else engine,
            "workers": workers,
            "address": address,
            "gpus-per-worker": gpus_per_worker,
        }
        given = [f"--{name}" for name, value in others.items() if value is not None]
        if table in TABLES and given:
            are, them = ("is", "it") if len(given) == 1 else ("are", "them")
            raise OptionError(
                f"reproduce {table}: {', '.join(given)} {are} for all, table-1 and so on. Leave {them} out."
            )
        text = reproduce_table(table, out, chosen, seeds or "1-5", max_epochs, accelerator, messages())
    output().print(text, markup=False, soft_wrap=True)
