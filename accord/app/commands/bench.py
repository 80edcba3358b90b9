"""`accord bench`: speed on this machine, and the default model on data that nobody tuned for."""

from pathlib import Path
from typing import Annotated, cast

import typer

from accord.app.console import INTERRUPTED, messages, output

bench_app = typer.Typer(help="Measure speed, and the quality of the defaults, compared with other programs.")


@bench_app.command("inference")
def bench_inference(
    workload: Annotated[
        str | None,
        typer.Option(
            help="Workloads, as a,c,d. a: 20k nodes, 100k edges, K=3. b: 20k, 1M, K=2. c: 5,000 tiny graphs, K=7. "
            "d: 200x200 grid, K=16. e: 1M, 5M, K=3. f: 20k, 100k, K=40. g: 1M, 10M, K=3. h: 1M, 10M, K=16.",
            show_default="a to f, on cuda a to h",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    semiring: Annotated[str, typer.Option(help="sum (marginals) or max (best labels).")] = "sum",
    peers: Annotated[
        bool, typer.Option("--peers/--no-peers", help="Time plain torch, torch.compile and PGMax as well.")
    ] = True,
    repeats: Annotated[int, typer.Option(min=1, help="Every figure is the median of this many.")] = 5,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads of each program.", show_default="torch's setting")
    ] = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="Measure time and memory from 10^4 to 10^7 edges instead, K=3.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures, table and plot, updated after each measurement.")] = (
        Path("runs/bench-inference")
    ),
) -> None:
    """Time a sweep of belief propagation, compared with other programs and the memory bound. Takes minutes."""
    from accord.bench.inference import BenchOptions, compare_peers, measure_growth
    from accord.inference import Semiring

    options = BenchOptions(device, cast(Semiring, semiring), peers, repeats, threads)  # checks device and semiring
    out.mkdir(parents=True, exist_ok=True)  # a folder that cannot be written should fail before the work
    try:
        if linear:
            shown = measure_growth(options, out, messages())
        else:
            shown = compare_peers(workload, options, out, messages())
    except KeyboardInterrupt as stop:
        messages().print(f"[yellow]Stopped.[/] The figures measured so far are in {out}.", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from stop
    for part in shown:
        output().print(part)
    messages().print(f"Written to {out}", soft_wrap=True)


@bench_app.command("learning")
def bench_learning(
    benchmark: Annotated[str, typer.Option(help="Benchmark whose training graphs are used.")] = "ppi-1",
    encoder: Annotated[str, typer.Option(help="sage, gat, gcn or gcnii, with the paper's sizes.")] = "sage",
    replicas: Annotated[int, typer.Option(help="Labels trained at once; seeds where nodes have one label.")] = 121,
    updates: Annotated[int, typer.Option(help="Updates of the whole job; only a part is measured.")] = 400,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.", show_default="cuda if available")] = None,
    precision: Annotated[str, typer.Option(help="32-true, tf32 or bf16-mixed.")] = "32-true",
    seconds: Annotated[float, typer.Option(help="How long to time updates.")] = 5.0,
    compare: Annotated[bool, typer.Option(help="Also train replicas one by one with plain PyG modules.")] = True,
    sweep: Annotated[
        Path | None, typer.Option(help="Also measure growth with replicas and edges, and write it into this folder.")
    ] = None,
) -> None:
    """Time an update of all replicas, compared with training them one by one with plain PyG modules."""
    import torch  # slow to import, so not for `--help`

    from accord.bench.learning import LearningCase, describe, measure_learning, sweep_learning, write_sweep

    case = LearningCase(
        benchmark=benchmark,
        encoder=encoder,
        replicas=replicas,
        updates=updates,
        device=device or ("cuda" if torch.cuda.is_available() else "cpu"),
        precision=precision,
        seconds=seconds,
    )
    row = measure_learning(case, compare)
    output().print(describe(row), soft_wrap=True)
    if sweep is not None:
        found = sweep_learning(case, lambda line: messages().print(line))
        for path in write_sweep(sweep, row, found):
            messages().print(f"Written to {path}", soft_wrap=True)


@bench_app.command("defaults")
def bench_defaults(
    task: Annotated[
        list[str] | None, typer.Option(help="Only these tasks; may be repeated.", show_default="all")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Only these: logistic, gcn, sage, default; may be repeated.", show_default="all"),
    ] = None,
    seeds: Annotated[str, typer.Option(help="As 0-4 or 0,2.")] = "0-4",
    ensemble: Annotated[int, typer.Option(min=1, help="Members of the default model; their evidence is averaged.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes side by side, with one thread each.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of records and table; what it holds is not run again.")] = Path(
        "runs/bench-defaults"
    ),
) -> None:
    """Compare the default model with plain GNNs and logistic regression on data that nobody tuned for."""
    from accord.app.commands.reproduce import parse_seeds
    from accord.bench.defaults import PEERS, TASKS, run_defaults

    def tell(line: str) -> None:
        messages().print(line, soft_wrap=True, markup=False)

    models = model or [*PEERS, "default"]
    parameters = {}
    if ensemble > 1:
        models = [f"ensemble of {ensemble}" if name == "default" else name for name in models]
        parameters["ensemble"] = ensemble
    run_defaults(task or list(TASKS), parse_seeds(seeds), models, out, parameters, tell, jobs)
    output().print((out / "README.md").read_text(), markup=False, soft_wrap=True)
