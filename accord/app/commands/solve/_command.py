"""`accord solve`: arguments and options."""

from pathlib import Path
from typing import Annotated

import typer

from accord.app.console import INTERRUPTED, messages, output


def solve(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A .uai file of the UAI competitions or an .fg file of libDAI, or .gz."),
    ],
    task: Annotated[
        str,
        typer.Option(
            help="map: the best labelling, with a bound; marginals: probabilities of the states of each variable; "
            "partition: the partition function."
        ),
    ] = "map",
    evidence: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Known states, as the competitions write them (.evid).")
    ] = None,
    budget: Annotated[float, typer.Option(help="Seconds for --task map; a proved optimum ends the search.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Of the search of --task map.")] = 0,
    method: Annotated[
        str,
        typer.Option(
            help="exact: elimination, for models of small treewidth; propagate: belief propagation, an approximation. "
            "auto: search for --task map; else exact if it fits into memory, and propagate if not."
        ),
    ] = "auto",
    damping: Annotated[
        float | None,
        typer.Option(
            help="Of messages, for propagate: 0 to 1.",
            show_default="0, and if that does not converge, 0.5 with more sweeps",
        ),
    ] = None,
    schedule: Annotated[
        str, typer.Option(help="Order of messages, for propagate: synchronous, sequential or residual.")
    ] = "synchronous",
    out: Annotated[
        Path | None,
        typer.Option(help="File for the result.", show_default="MODEL.MAP, .MAR or .PR in the current folder"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as json.")] = False,
) -> None:
    """Solve a graphical model: the best labelling, marginals or the partition function.

    Results are written in the formats of the UAI competitions. Ctrl-C ends a search and keeps the best labelling.
    """
    from accord.app.commands.solve._work import SolveOptions, solve_model, summary_lines, summary_text

    options = SolveOptions(task, method, budget, seed, damping, schedule)
    solved = solve_model(model, evidence, options, out, messages())
    if as_json:
        typer.echo(summary_text(solved), nl=False)
    else:
        for line in summary_lines(solved):
            output().print(line, soft_wrap=True, markup=False)
    messages().print(f"Written to {solved.file}", soft_wrap=True, markup=False)
    if solved.interrupted:
        messages().print("[yellow]Stopped.[/] The labels are the best of the completed rounds.", soft_wrap=True)
        raise typer.Exit(INTERRUPTED)
