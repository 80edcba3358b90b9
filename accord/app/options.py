"""Options that several commands share: what is known about a graph."""

from typing import Annotated

import typer

KnownOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|labels",
        help="Known labels: a .csv file with columns node and label (and graph or task, if there are several), or the "
        "word labels for those in the graph's own file.",
    ),
]
ForbidOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A:B", help="Labels that no edge joins, in either order; A:B@U:V for a single edge. May be repeated."
    ),
]
ForbidDirectedOption = Annotated[
    list[str] | None,
    typer.Option(metavar="A:B", help="The same for A at the source and B at the target of an edge only."),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(metavar="A:B", help="The only pairs of labels that edges may join, in either order. May be repeated."),
]
PreferOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A:B:NATS",
        help="Add so many nats to a pair of labels, or (A:NATS) to a label; @U:V or @U for a single edge or node.",
    ),
]
