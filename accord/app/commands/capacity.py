"""`accord capacity`: how many machines belief propagation on one large graph takes, by arithmetic."""

from dataclasses import asdict, replace
from typing import Annotated

import typer

from accord.app.console import messages, output


def capacity(
    edges: Annotated[float, typer.Option(help="Undirected edges of the graph, such as 1e11.")],
    nodes: Annotated[float, typer.Option(help="Its nodes.")],
    states: Annotated[int, typer.Option(min=1, help="States of a node.")] = 3,
    cut: Annotated[
        float | None,
        typer.Option(
            help="Share of the edges between machines, 0 to 1.", show_default="that of nodes dealt out at random: most"
        ),
    ] = None,
    memory: Annotated[float, typer.Option(help="Of a machine, in GB.")] = 256.0,
    cores: Annotated[int, typer.Option(min=1, help="Of a machine.")] = 64,
    bandwidth: Annotated[float, typer.Option(help="Of a machine's network, in Gbit/s.")] = 25.0,
    sweeps: Annotated[int, typer.Option(min=1, help="Sweeps of belief propagation.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print json instead of a table.")] = False,
) -> None:
    """Work out how many machines one large graph takes, and how long, from figures measured on two cores.

    An estimate for belief propagation alone: cores are taken to be as fast as the measured ones, and not to slow each
    other down. Networks, features, reading and writing are not counted.
    """
    import json

    from rich.table import Table

    from accord.distributed import LargeGraph, Machine, demand, fewest_machines
    from accord.distributed._capacity import reliability
    from accord.errors import OptionError

    graph = LargeGraph(edges=edges, nodes=nodes, states=states, cut=cut)
    machine = Machine(memory=memory * 1e9, cores=cores, bandwidth=bandwidth * 1e9 / 8)
    fewest = fewest_machines(graph, machine)
    if fewest is None:
        raise OptionError(f"capacity: a million machines of {memory:g} GB do not hold this graph. Give more memory.")
    found = [(cut, row) for row in (fewest, *(demand(graph, machine, fewest.machines * more) for more in (2, 4)))]
    by_hash = fewest_machines(replace(graph, cut=None), machine)
    if cut is not None and by_hash is not None:
        found.append((None, by_hash))
    messages().print(f"[dim]{reliability(states)}[/]", soft_wrap=True)
    if as_json:
        typer.echo(json.dumps([{"cut": share, **asdict(row)} for share, row in found], indent=1))
        return
    table = Table(title=f"{edges:g} edges, {nodes:g} nodes, {states} states; sent, compute and exchange: in a sweep")
    for name in ("cut", "machines", "GB each", "GB sent", "compute, s", "exchange, s", f"{sweeps} sweeps, s"):
        table.add_column(name, justify="right")
    for share, row in found:
        # Exchange and computing overlap only where a part has work without ghosts, so the sum is what to expect.
        whole = sweeps * (row.computing + row.exchanging)
        figures = (row.memory / 1e9, row.sent / 1e9, row.computing, row.exchanging, whole)
        dealt = "by hash" if share is None else f"{share:g}"
        table.add_row(dealt, str(row.machines), *(f"{figure:.3g}" for figure in figures))
    output().print(table)
    notes = "The first row is the fewest machines that hold the graph. Networks and features are not counted."
    if cut is not None:
        notes += (
            " METIS needs the whole graph in one memory, so for a larger one a small cut has to come from the data; "
            "without it nodes are dealt out by hash, as in the last row."
        )
    messages().print(f"[dim]{notes}[/]", soft_wrap=True)
