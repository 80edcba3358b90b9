"""Options of `accord serve`."""

from pathlib import Path
from typing import Annotated

import typer

from accord.app.console import messages
from accord.app.server.limits import Limits

LIMITS = Limits()


def serve(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder, or a folder that NodeClassifier.save wrote.")
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on. One that other machines can reach needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.", min=0, max=65535)] = 8642,
    data: Annotated[
        str | None,
        typer.Option(
            help="Graphs to offer on the page: a graph, a folder of graphs, a data folder or a benchmark.",
            show_default="the test graphs of the benchmark that the run was trained on",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="What clients must send. Visible to others on this machine; ACCORD_TOKEN is not."),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the token.")] = None,
    max_megabytes: Annotated[float, typer.Option(help="Largest request.")] = LIMITS.megabytes,
    max_nodes: Annotated[int, typer.Option(help="Of a graph.")] = LIMITS.nodes,
    max_edges: Annotated[int, typer.Option(help="Of a graph.")] = LIMITS.edges,
    max_graphs: Annotated[int, typer.Option(help="In one request.")] = LIMITS.graphs,
    max_seconds: Annotated[float, typer.Option(help="For one request.")] = LIMITS.seconds,
    max_waiting: Annotated[int, typer.Option(help="Requests at once; others get 503.")] = LIMITS.waiting,
    workers: Annotated[int, typer.Option(help="Processes with a copy of the model each.")] = LIMITS.workers,
) -> None:
    """Serve a model: a page to look at graphs and try what changes labels, and an HTTP interface."""
    from accord.app.commands.serve import read_token, serve_run

    limits = Limits(
        megabytes=max_megabytes,
        nodes=max_nodes,
        edges=max_edges,
        graphs=max_graphs,
        seconds=max_seconds,
        waiting=max_waiting,
        workers=workers,
    )
    serve_run(run, host, port, read_token(token, token_file), limits, data, messages())
