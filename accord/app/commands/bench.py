"""`accord bench`: how fast things are on this machine. Each study is one command here and a file beside this one."""

from pathlib import Path
from typing import Annotated

import typer

from accord.app.console import INTERRUPTED, messages, output

bench_app = typer.Typer(help="How fast things are on this machine, and next to what else there is.")


@bench_app.command("inference")
def bench_inference(
    workload: Annotated[
        str | None,
        typer.Option(
            help="Which, as a,c,d. a: 20k nodes, 100k edges, K=3. b: 20k, 1M, K=2. c: 5,000 tiny graphs, K=7. "
            "d: 200x200 grid, K=16. e: 1M, 5M, K=3. f: 20k, 100k, K=40. g: 1M, 10M, K=3. h: 1M, 10M, K=16.",
            show_default="a to f, on cuda a to h",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    semiring: Annotated[str, typer.Option(help="sum (marginals) or max (best labels).")] = "sum",
    peers: Annotated[
        bool, typer.Option("--peers/--no-peers", help="Time plain torch, torch.compile and PGMax as well.")
    ] = True,
    repeats: Annotated[int, typer.Option(min=1, help="Every figure is the median of so many.")] = 5,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads, for all.", show_default="torch's")] = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="Instead: time and memory from 10^4 to 10^7 edges, K=3.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the figures, table and plot, written as they come.")] = Path(
        "runs/bench-inference"
    ),
) -> None:
    """Time a sweep of belief propagation next to its peers and to what memory allows. Takes minutes."""
    from accord.bench.inference._linear import measure_growth
    from accord.bench.inference._run import BenchOptions, compare_peers

    options = BenchOptions(device=device, semiring=semiring, peers=peers, repeats=repeats, threads=threads)
    out.mkdir(parents=True, exist_ok=True)  # before the work: what fails should fail early
    try:
        if linear:
            shown = measure_growth(options, out, messages())
        else:
            shown = compare_peers(workload, options, out, messages())
    except KeyboardInterrupt as stop:
        messages().print(f"[yellow]Stopped.[/] What was measured so far is in {out}.", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from stop
    for part in shown:
        output().print(part)
    messages().print(f"Written to {out}", soft_wrap=True)


@bench_app.command("learning")
def bench_learning(
    benchmark: Annotated[str, typer.Option(help="Whose training graphs.")] = "ppi-1",
    encoder: Annotated[str, typer.Option(help="sage, gat, gcn or gcnii, with the paper's sizes.")] = "sage",
    replicas: Annotated[int, typer.Option(help="Labels (or seeds, where nodes have one label) at once.")] = 121,
    updates: Annotated[int, typer.Option(help="Of the whole job; a slice is measured.")] = 400,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.", show_default="cuda if there is one")] = None,
    precision: Annotated[str, typer.Option(help="32-true, tf32 or bf16-mixed.")] = "32-true",
    seconds: Annotated[float, typer.Option(help="How long to time updates.")] = 5.0,
    compare: Annotated[bool, typer.Option(help="Also one by one with plain PyG modules.")] = True,
    sweep: Annotated[
        Path | None, typer.Option(help="Also measure growth with replicas and edges, and write it into this folder.")
    ] = None,
) -> None:
    """Milliseconds an update of all replicas, beside training them one by one with plain PyG modules."""
    import torch  # `--help` need not wait for it

    from accord.bench.learning._output import write_sweep
    from accord.bench.learning._run import LearningCase, describe, measure_learning, sweep_learning

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
            messages().print(f"written: {path}", soft_wrap=True)
