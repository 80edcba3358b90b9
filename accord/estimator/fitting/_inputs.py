"""Graphs on their way into a model: splits by masks, columns and labels as in training, portions that fit memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError
from accord.estimator._checks import check_graphs, check_training, data_shape
from accord.estimator.fitting._start import check_shape
from accord.graphs import (
    EDGES,
    NODES,
    TEST_MASK,
    TRAIN_MASK,
    VAL_MASK,
    Columns,
    GraphColumns,
    align,
    batches_of,
    common_columns,
    each,
    each_numbered,
    fit_fill,
    has_labels,
    labels_within,
)
from accord.learning import hold_out
from accord.methods import Shape

PORTION_NUMBERS = 2**25  # entries of edge tables solved at once; the sweeps hold a few times as much
SHOWN_NAMES = 8


@dataclass(frozen=True)
class Known:
    """Names and sizes of a model that training goes on from; new graphs must fit them."""

    columns: GraphColumns
    label_names: list[str] | None
    shape: Shape


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Graphs to train on and to choose by, with raw features and labels as states, and what they decide."""

    train: Sequence[Data]
    validation: Sequence[Data]
    columns: GraphColumns
    label_names: list[str] | None
    shape: Shape


def read_training(
    graphs: Sequence[Data],
    validation: Sequence[Data] | None,
    seed: int,
    num_states: int | None,
    label_names: Sequence[str] | None,
    task_names: Sequence[str] | None,
    known: Known | None = None,
    scale_edges: bool = True,
) -> TrainingData:
    """Check graphs, number their labels, and divide them into training and validation data (`split_graphs`).

    Args:
        graphs: training graphs.
        validation: validation graphs, or None.
        seed: of what is held out.
        num_states: None counts them.
        label_names: names of the states; None takes those that graphs carry.
        task_names: of the labels of a node, if they have names.
        known: names and sizes that the data must fit; None where they decide these.
        scale_edges: scale edge attributes that have names and kinds, as files give them.
    """
    train = check_training(graphs)
    given = None if validation is None else check_graphs(validation, "fit: validation")
    columns = fit_columns(train, given or [], scale_edges) if known is None else known.columns
    train = each(train, lambda graph: in_columns(graph, columns))
    given = None if given is None else [in_columns(graph, columns) for graph in given]
    for part in (train, given or []):
        for _ in batches_of(part) if part else ():
            pass  # collating refuses graphs that cannot be used, before any labels are masked or held out
    if known is not None:
        num_states, label_names = known.shape.num_states, known.label_names
    found = find_label_names(train) if label_names is None and known is None else None
    names = found if label_names is None else list(label_names)
    train = each(train, lambda graph: trainable(with_states(graph, names)))
    given = None if given is None else [trainable(with_states(graph, names)) for graph in given]
    highest = highest_label(chain(train, given or []), found)
    train, held_out = split_graphs(train, given, seed)
    shape = data_shape(train, held_out, num_states, names, task_names, highest)
    if known is not None:
        check_shape(known.shape, shape)
        columns = GraphColumns(
            columns.nodes or common_columns(train, NODES, "NodeClassifier.fit"),
            columns.edges or common_columns(train, EDGES, "NodeClassifier.fit"),
        )
    return TrainingData(train, held_out, columns, names, shape)


def split_graphs(
    graphs: Sequence[Data], validation: Sequence[Data] | None, seed: int
) -> tuple[Sequence[Data], Sequence[Data]]:
    """Training and validation graphs, each with the labels that count there; masks of the graphs decide.

    Args:
        graphs: training graphs.
        validation: validation graphs. None takes the labels in `val_mask` of the training graphs; without such
            labels, a fifth of the training graphs (or of a single one's training labels) is held out.
        seed: of what is held out.
    """
    train = each_numbered(graphs, lambda n, graph: labels_within(graph, TRAIN_MASK, f"NodeClassifier.fit: graph {n}"))
    if validation is None:
        held_out = [labels_within(graph, VAL_MASK, "NodeClassifier.fit") for graph in graphs if VAL_MASK in graph]
        held_out = [graph for graph in held_out if has_labels(graph)]
        # A graph whose masks leave no training label would only take time.
        train = [graph for graph in train if has_labels(graph) or TRAIN_MASK not in graph] or train
        return (train, held_out) if held_out else hold_out(train, seed)
    where = "NodeClassifier.fit: validation graph"
    return train, [labels_within(graph, VAL_MASK, f"{where} {n}") for n, graph in enumerate(validation)]


def scored_labels(graph: Data, where: str) -> Data:
    """The graph with the labels that scores count: those in `test_mask`, or outside its other masks."""
    return labels_within(graph, TEST_MASK, f"NodeClassifier.{where}")


def fit_columns(train: Sequence[Data], validation: Sequence[Data], scale_edges: bool = True) -> GraphColumns:
    """The columns of the training graphs, with the means that stand in for missing numbers.

    Numbers of edges are scaled here; those of nodes later, by the treatment of features.

    Validation graphs have the same columns of numbers; categories that only they have are unknown to the model.
    """
    found: list[Columns | None] = []
    for place in (NODES, EDGES):
        common_columns(chain(train, validation), place, "NodeClassifier.fit")  # refuses graphs that do not fit together
        columns = common_columns(train or validation, place, "NodeClassifier.fit")
        if columns is not None and any(graph.get(place.kinds) is not None for graph in train):
            aligned = each(train, partial(align, columns=columns, place=place, where="NodeClassifier.fit"))
            columns = fit_fill(columns, aligned, place, scale=scale_edges and place is EDGES)
        found.append(columns)
    return GraphColumns(*found)


def in_columns(graph: Data, columns: GraphColumns) -> Data:
    """The graph with the model's columns in order; by position where either has no names."""
    graph = align(graph, columns.nodes, NODES, "NodeClassifier")
    return align(graph, columns.edges, EDGES, "NodeClassifier")


def find_label_names(graphs: Iterable[Data]) -> list[str] | None:
    """The names of labels that graphs carry (`Data.label_names`), sorted; None where none carries any."""
    found = {str(name) for graph in graphs for name in graph.get("label_names") or ()}
    return sorted(found) if found else None


def highest_label(graphs: Iterable[Data], names: Sequence[str] | None) -> int:
    """The highest state that labels of graphs have, or that a name which graphs carry stands for; -1 without labels."""
    labels = (int(graph.y.max()) for graph in graphs if graph.y is not None and graph.y.numel())
    return max(max(labels, default=-1), -1 if names is None else len(names) - 1)


def with_states(graph: Data, names: Sequence[str] | None) -> Data:
    """The graph with its labels numbered as in `names`; labels without names of their own are states already."""
    own = graph.get("label_names")
    if own is None or graph.y is None or (names is not None and list(own) == list(names)):
        return graph
    if names is None:
        raise GraphError(
            f"NodeClassifier: labels of the graph are names ({_listed(own)}), but the model was trained on numbers. "
            "Give the labels as numbers."
        )
    unknown = [own[state] for state in graph.y.unique().tolist() if state >= 0 and own[state] not in names]
    if unknown:
        raise GraphError(
            f"NodeClassifier: the label {unknown[0]!r} is unknown. The model knows {_listed(names)}. Mark labels that "
            "it cannot know as missing (-1)."
        )
    states = torch.tensor([list(names).index(name) if name in names else -1 for name in own] + [-1])
    renumbered = graph.clone()
    renumbered.y = states.to(graph.y.device)[graph.y]  # -1, a missing label, picks the last entry
    renumbered.label_names = list(names)
    return renumbered


def trainable(graph: Data) -> Data:
    """The graph, or a copy if autograd cannot use its tensors because they were made in `torch.inference_mode`."""
    made_without_autograd = any(isinstance(value, Tensor) and value.is_inference() for _, value in graph)
    return graph.clone() if made_without_autograd else graph


def portions(graphs: Sequence[Data], numbers_per_edge: int) -> Iterator[list[Data]]:
    """Lists of graphs whose edge tables together hold a bounded count of numbers; a larger graph stands alone."""
    portion: list[Data] = []
    size = 0
    for graph in graphs:
        columns = 0 if graph.edge_index is None else int(graph.edge_index.shape[1])
        numbers = numbers_per_edge * max(columns, 1)
        if portion and size + numbers > PORTION_NUMBERS:
            yield portion
            portion, size = [], 0
        portion.append(graph)
        size += numbers
    if portion:
        yield portion


def _listed(names: Sequence[str]) -> str:
    more = ", .." if len(names) > SHOWN_NAMES else ""
    return ", ".join(repr(name) for name in names[:SHOWN_NAMES]) + more
