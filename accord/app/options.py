"""Options that are long or that several commands share: how to train, what is known about a graph, where to work."""

from pathlib import Path
from typing import Annotated

import typer

ModelArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder, or a folder that NodeClassifier.save wrote.")
]
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

DevicesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes that train together on each machine, one device each; batches of graphs are divided among "
        "them. They are started here, or by torchrun -m -- accord fit.",
        show_default="1, or the launcher's",
    ),
]
NodesOption = Annotated[
    int | None, typer.Option(min=1, help="Machines that train together.", show_default="1, or the launcher's")
]

StreamOption = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Read training graphs (of a folder with train/ and val/) from disk, batch by batch, if they do not fit "
        "into memory. The result is the same.",
    ),
]
ScratchOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="With --stream: where a temporary file is kept, as large as the training graphs.",
        show_default="the user's cache folder",
    ),
]

EnsembleOption = Annotated[
    int | None, typer.Option(help="Average the evidence of so many seeds, trained side by side.", show_default="1")
]
RefitOption = Annotated[
    bool | None, typer.Option("--refit", help="At the end, train again on training and validation graphs together.")
]
OrderOption = Annotated[
    int | None, typer.Option(help="2 for a field of pairs, 3 for pairs and triangles.", show_default="2")
]
ClassWeightOption = Annotated[
    str | None,
    typer.Option(help="Weights of training labels: balanced, or by state, fraud=20 or 1,20.", show_default="all equal"),
]
UnlabelledOption = Annotated[
    Path | None, typer.Option(help="Graphs without labels; confident labels of them are tried in training.")
]
StartOption = Annotated[
    Path | None, typer.Option(metavar="RUN", help="Go on from the weights of this run or saved model.")
]
ThresholdOption = Annotated[
    str | None, typer.Option(help="Give a state wherever it has this probability, and nowhere else: fraud=0.3.")
]
PrecisionOption = Annotated[
    float | None,
    typer.Option(help="Leave the label empty where validation data do not show this precision, such as 0.95."),
]
WordVectorsOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Vectors of words, for files of sentences: an .npz with words and vectors."),
]

EngineOption = Annotated[str, typer.Option(help="local (this machine) or ray (a cluster).")]
WorkersOption = Annotated[
    int | None,
    typer.Option(help="How many processes work at the same time.", show_default="this one; with ray as many as fit"),
]
AddressOption = Annotated[
    str | None,
    typer.Option(help="With ray: a running cluster, such as auto.", show_default="a new one on this machine"),
]
GpusOption = Annotated[
    float | None, typer.Option(help="With ray: GPUs of each worker, such as 0.25 or 1.", show_default="none")
]
