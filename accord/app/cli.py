"""`accord`: arguments and options of every command. The work is done in commands/."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from accord._launched import launched_rank
from accord._version import __version__
from accord.app import options
from accord.app.commands.bench import bench_app
from accord.app.commands.capacity import capacity
from accord.app.commands.data import ColumnsOption, MappingOption, data_app
from accord.app.commands.predict_command import predict
from accord.app.commands.reproduce_command import reproduce
from accord.app.commands.solve import solve
from accord.app.console import Commands, counted, messages, output
from accord.app.server.options import serve

HELP = (
    "Labels that agree: joint labelling of the nodes of new graphs.\n\n"
    "One network scores the labels of each node, another the pairs of labels on each edge, and a random field combines "
    "them into labels that fit each other.\n\n"
    "Start with [bold]accord demo[/], then [bold]accord fit[/] on a benchmark or on your own graphs."
)
DATA_HELP = (
    "A benchmark (see `accord data list`), `digits`, a folder with train/ and, optionally, val/ and test/, or a graph. "
    "Graphs are .npz, .json, .graphml or .pt files, or folders with nodes.csv and edges.csv (see `accord data check`). "
    "Sentences are .conll, .conllu or .tsv files, such as train.conll in a folder."
)

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench", no_args_is_help=True)
app.command()(predict)
app.command()(serve)
app.command()(reproduce)
app.command()(solve)
app.command()(capacity)


def print_version(wanted: bool) -> None:
    """Print the version and stop, if `--version` was given."""
    if wanted:
        typer.echo(f"accord {__version__}")
        raise typer.Exit


@app.callback(help=HELP)
def options_of_all_commands(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before the name of a command."""


RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that `accord fit` wrote.")]


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Of the graphs, their labels and images, and of the weights.")] = 0,
    run: Annotated[Path, typer.Option(help="Folder for the model and the report; an earlier demo is replaced.")] = Path(
        "runs/demo"
    ),
) -> None:
    """Train on handwritten digits placed on graphs, and show what joint labelling adds. Takes about a minute."""
    from accord.app.commands.demo import run_demo  # imported here so that `--help` does not load torch

    run_demo(run, seed, messages(), output())


@app.command()
def fit(
    data: Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)],
    run: Annotated[
        Path | None, typer.Option(help="Folder for all files of the run.", show_default="runs/DATA-METHOD-ENCODER")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="spn (joint labels), crf (a field trained as a whole), gmnn, gnn (each node alone) or smooth (gnn "
            "with predictions smoothed over the graph).",
            show_default="spn",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Node network: auto, gcn, sage, gat, unet, gcnii, mlp or linear; for sequences bilstm, bigru, "
            "transformer or convolution.",
            show_default="auto",
        ),
    ] = None,
    edge_encoder: Annotated[str | None, typer.Option(help="Edge network.", show_default="the node network's")] = None,
    refine: Annotated[
        bool | None, typer.Option("--refine", help="Train the SPN further through its field, by the maximin game.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            help="Choose parameters by node accuracy, by graph (every node right), f1, likelihood or auc.  [default: "
            "the benchmark's, or node]"
        ),
    ] = None,
    max_epochs: Annotated[int | None, typer.Option(help="How long to train.", show_default="the preset's")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, dropout and held-out graphs.", show_default="0")] = None,
    preset: Annotated[
        str | None, typer.Option(help="accord, or paper: the paper's appendix.", show_default="accord")
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="raw, row-normalised, standardised (by the training nodes), words or auto.",
            show_default="auto: the preset's for a benchmark, else raw",
        ),
    ] = None,
    accelerator: Annotated[str | None, typer.Option(help="cpu, cuda or auto.", show_default="auto")] = None,
    devices: options.DevicesOption = None,
    nodes: options.NodesOption = None,
    stream: options.StreamOption = False,
    scratch: options.ScratchOption = None,
    ensemble: options.EnsembleOption = None,
    refit: options.RefitOption = None,
    order: options.OrderOption = None,
    class_weight: options.ClassWeightOption = None,
    unlabelled: options.UnlabelledOption = None,
    start: options.StartOption = None,
    word_vectors: options.WordVectorsOption = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with any of these settings; flags take precedence.")
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A single value of the recipe: node.learning_rate=0.01."),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A recipe file that `accord tune` wrote, in place of a preset.")
    ] = None,
    mapping: MappingOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Train a model. The same command, given again, continues a stopped run."""
    from accord.app.commands.fit import fit_run, share_training, show_run
    from accord.app.launching import is_to_launch, launch, with_processes
    from accord.app.settings import read_recipe_flags, read_settings
    from accord.app.sources import find_tables, load_data

    flags: dict[str, Any] = {
        "method": method,
        "encoder": encoder,
        "edge_encoder": edge_encoder,
        "refine": refine,
        "level": level,
        "max_epochs": max_epochs,
        "seed": seed,
        "preset": preset,
        "features": features,
        "accelerator": accelerator,
        "devices": devices,
        "nodes": nodes,
        "ensemble": ensemble,
        "refit": refit,
        "order": order,
        "class_weight": class_weight,
        "unlabelled": None if unlabelled is None else str(unlabelled),
        "start": None if start is None else str(start),
        "word_vectors": None if word_vectors is None else str(word_vectors),
    }
    flags = flags if recipe is None else read_recipe_flags(recipe, flags)
    settings = with_processes(read_settings(config, flags, override or ()))
    if is_to_launch(settings):
        raise typer.Exit(launch(settings, [sys.executable, "-m", "accord", *sys.argv[1:]]))
    loaded = load_data(data, settings.seed, find_tables(Path(data), mapping, columns), stream, scratch)
    name = loaded.name.rstrip("*")
    kind = f"{settings.method}{'-refined' if settings.refine else ''}"
    folder = run or Path("runs") / f"{name}-{kind}-{settings.encoder}"
    if launched_rank():
        share_training(loaded, settings, folder)
    else:
        show_run(fit_run(loaded, settings, folder, messages()), output())


@app.command()
def tune(
    data: Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)],
    run: Annotated[
        Path | None, typer.Option(help="Folder for the search and the winner's run.", show_default="runs/DATA-tuned")
    ] = None,
    trials: Annotated[int, typer.Option(help="How many settings to try.")] = 30,
    minutes: Annotated[
        float | None,
        typer.Option(help="Time for default model, search and the winner's training; the first limit reached counts."),
    ] = None,
    method: Annotated[str, typer.Option(help="As for `accord fit`.")] = "spn",
    encoder: Annotated[
        str | None, typer.Option(help="Try only this node network.", show_default="mlp, sage, gcn, gcnii and gat")
    ] = None,
    edge_encoder: Annotated[str | None, typer.Option(help="Try only this edge network.")] = None,
    level: Annotated[
        str | None, typer.Option(help="Choose by accuracy of node or graph.  [default: the benchmark's, or node]")
    ] = None,
    features: Annotated[
        str,
        typer.Option(help="raw, row-normalised or standardised; auto tries them all, except on a benchmark."),
    ] = "auto",
    max_epochs: Annotated[
        int | None, typer.Option(help="Epochs of a whole training.", show_default="900 updates, at least 30 epochs")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the search, the winner and held-out graphs.")] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds each trial is averaged over.")] = 1,
    class_weight: options.ClassWeightOption = None,
    ensemble: options.EnsembleOption = None,
    refit: options.RefitOption = None,
    search_only: Annotated[
        bool, typer.Option("--search-only", help="Write the recipe and stop: no test label is read.")
    ] = False,
    accelerator: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    engine: options.EngineOption = "local",
    workers: options.WorkersOption = None,
    address: options.AddressOption = None,
    gpus_per_worker: options.GpusOption = None,
    mapping: MappingOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Search settings on validation data and train the best. The same command, given again, continues a search."""
    from accord.app.commands.fit import show_run
    from accord.app.commands.tune import show_search, tune_run
    from accord.app.settings import read_settings
    from accord.app.sources import find_tables, load_data
    from accord.distributed.engines import open_engine
    from accord.tuning import SearchBudget

    flags = {
        "method": method,
        "encoder": encoder,
        "edge_encoder": edge_encoder,
        "level": level,
        "max_epochs": max_epochs,
        "seed": seed,
        "features": features,
        "accelerator": accelerator,
        "class_weight": class_weight,
        "ensemble": ensemble,
        "refit": refit,
    }
    limits: dict[str, Any] = {"trials": trials, "minutes": minutes, "seeds": seeds, "max_epochs": max_epochs}
    budget = SearchBudget(**limits, train_winner=not search_only)
    loaded = load_data(data, seed, find_tables(Path(data), mapping, columns))
    folder = run or Path("runs") / f"{loaded.name.rstrip('*')}-tuned"
    fixed = [name for name in ("encoder", "edge_encoder") if flags[name] is not None]
    with open_engine(engine, workers, address, gpus_per_worker) as where:
        finished = tune_run(loaded, read_settings(None, flags), budget, folder, messages(), fixed, where)
    show_search(finished, output())
    if not search_only:
        show_run(finished, output())


@app.command()
def explain(
    run: options.ModelArgument,
    graph: Annotated[Path, typer.Argument(metavar="GRAPH", help="A graph, as for `accord predict`.")],
    node: Annotated[str, typer.Option(help="Id of the node, or its number where nodes have no ids.")],
    task: Annotated[
        str | None, typer.Option(help="Name or number of the task, where there are several.", show_default="the first")
    ] = None,
    without: Annotated[str | None, typer.Option(metavar="NODE", help="Leave the edge to this neighbour out.")] = None,
    known: options.KnownOption = None,
    forbid: options.ForbidOption = None,
    forbid_directed: options.ForbidDirectedOption = None,
    require: options.RequireOption = None,
    prefer: options.PreferOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as json.")] = False,
    mapping: MappingOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Tell why a node has its label: its own evidence, and what each neighbour adds."""
    from accord.app.commands.explain import explain_run, to_json
    from accord.app.knowledge import GivenOptions
    from accord.app.runs import open_model
    from accord.app.sources import find_tables

    given = GivenOptions(known, forbid, forbid_directed, require, prefer)
    tables = find_tables(graph, mapping, columns)
    found = explain_run(open_model(run), graph, node, task, given, without, tables)
    typer.echo(to_json(found) if as_json else f"{found}\n", nl=False)


@app.command()
def evaluate(
    run: options.ModelArgument,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="As for `accord fit`, or a labelled graph or folder of graphs.")
    ],
    split: Annotated[str, typer.Option(help="Which part of a benchmark or data folder.")] = "test",
    out: Annotated[Path | None, typer.Option(help="Also write the scores to this .json file.")] = None,
    mapping: MappingOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Score a trained model and its parts on labelled graphs."""
    from accord._files import write_json
    from accord.app.commands.evaluate import evaluate_run
    from accord.app.runs import open_model
    from accord.app.scores import score_table
    from accord.app.sources import find_tables

    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad path is refused early
    scores, titles, count = evaluate_run(open_model(run), data, split, find_tables(Path(data), mapping, columns))
    output().print(score_table(scores, f"{Path(data).name}: {counted(count, 'graph')}", titles))
    if out is not None:
        write_json(out, scores)


@app.command()
def report(run: RunArgument) -> None:
    """Write report.html and curves.png of a finished run again."""
    from accord.app.commands.report import write_report
    from accord.app.runs import open_run

    output().print(f"Report: {write_report(open_run(run))}", soft_wrap=True, markup=False)


def main() -> None:
    """Entry point."""
    app()
