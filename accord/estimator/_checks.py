"""Parameters and graphs that a user gives to `NodeClassifier`: checks, and how a model shows its parameters."""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch_geometric.data import Batch, Data, HeteroData

from accord.errors import GraphError, InputTypeError, OptionError, UnseenStatesWarning
from accord.graphs import TREATMENTS, GraphBatch, GraphStream, batches_of, each
from accord.graphs._checks import check_number
from accord.graphs.sequences import as_sequence
from accord.learning import TrainingOptions
from accord.methods import Recipe, Shape

ACCELERATORS = ("auto", "cpu", "cuda")
FEATURES = ("auto", *TREATMENTS)
# More states must be set by num_states: an edge's table grows with their square, and a stray label may be the reason.
MOST_STATES = 1000
COUNTS = (  # parameters that are whole numbers, and the least that each may be
    *(("seed", 0), ("num_states", 1), ("max_epochs", 0), ("ensemble", 1), ("search", 1)),
    *(("devices", 1), ("nodes", 1)),
)
SHOWN_CHARACTERS = 40  # of a parameter in a model's repr


def check_parameters(given: dict[str, Any]) -> None:
    """Refuse parameters of a classifier that cannot be used, by name."""
    if given["recipe"] is not None and not isinstance(given["recipe"], (Recipe, str, Path)):
        raise InputTypeError(
            f"NodeClassifier: recipe is a {type(given['recipe']).__name__}, not an accord Recipe or the path of a "
            "recipe file."
        )
    for name, least in COUNTS:
        value = given[name]
        if value is None and name in ("num_states", "max_epochs", "search"):
            continue
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise InputTypeError(f"NodeClassifier: {name} is {value!r}; a whole number is needed.")
        if value < least:
            # As a float, because Python refuses to print an int of thousands of digits.
            size = f"{check_number(int(value), name, 'NodeClassifier'):.10g}"
            raise OptionError(f"NodeClassifier: {name} is {size}; it must be at least {least}.")
    if not isinstance(given["refit"], bool):
        raise InputTypeError(f"NodeClassifier: refit is {given['refit']!r}; True or False is needed.")
    for name, named in (("label_names", "state"), ("task_names", "task")):
        names = given[name]
        if names is not None and not _are_names(names):
            raise InputTypeError(
                f"NodeClassifier: {name} is {str(names)[:80]}. Give a list of strings, one for each {named}."
            )
    symmetric = given["symmetric"]
    if not isinstance(symmetric, bool) and not (isinstance(symmetric, str) and symmetric == "auto"):
        kind = OptionError if isinstance(symmetric, str) else InputTypeError
        raise kind(f"NodeClassifier: symmetric is {str(symmetric)[:80]!r}; give True, False or 'auto'.")
    if not isinstance(given["fallback"], bool):
        raise InputTypeError(f"NodeClassifier: fallback is {given['fallback']!r}; give True or False.")
    check_training_options(given["training"])
    for name, choices in (("accelerator", ACCELERATORS), ("features", FEATURES)):
        if given[name] not in choices:
            raise OptionError(f"NodeClassifier: {name} {given[name]!r} is unknown. Choose one of {', '.join(choices)}.")
    if given["search"] is not None and given["devices"] * given["nodes"] > 1:
        raise OptionError(
            "NodeClassifier: search tries settings in one process. Search with devices=1 and nodes=1, then train the "
            "best with recipe=model.recipe_ on several."
        )
    if given["accelerator"] == "cuda" and not torch.cuda.is_available():
        raise OptionError(
            "NodeClassifier: accelerator 'cuda' is not available: torch finds no GPU. Choose 'cpu' or 'auto'."
        )


def check_training_options(given: object) -> None:
    """Refuse what is not options of training by name; their values are checked by `TrainingOptions`."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise InputTypeError(
            f"NodeClassifier: training is a {type(given).__name__}; give options by name, such as {{'clusters': 32}}."
        )
    known = [entry.name for entry in fields(TrainingOptions)]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise OptionError(
            f"NodeClassifier: training has no option {str(unknown[0])[:80]!r}. Known options: {', '.join(known)}."
        )


def check_graph(graph: object, where: str) -> Data:
    """A graph, or an error that says what was given instead."""
    if isinstance(graph, HeteroData):
        raise InputTypeError(
            f"NodeClassifier.{where}: got a HeteroData. Convert it with accord.datasets.from_hetero(graph): the type "
            "of an edge becomes an edge attribute."
        )
    if not isinstance(graph, Data):
        raise InputTypeError(
            f"NodeClassifier.{where}: got a {type(graph).__name__}, not a torch_geometric.data.Data. "
            "Build one with Data(x=features, edge_index=edge_index)."
        )
    return as_sequence(graph, f"NodeClassifier.{where}")


def check_graphs(graphs: object, where: str) -> list[Data]:
    """A list of plain graphs; a single one counts as a list of one, a PyG `Batch` as the graphs it is made of."""
    checked = check_list([graphs] if isinstance(graphs, Data) else graphs, where)
    if not checked:
        raise GraphError(f"NodeClassifier.{where}: the list of graphs is empty.")
    return [part for graph in checked for part in _separate(graph, where)]


def check_training(graphs: object) -> Sequence[Data]:
    """Training graphs as `check_graphs` gives them; those of a stream are checked when they are read."""
    if not isinstance(graphs, GraphStream):
        return check_graphs(graphs, "fit")
    if not graphs:
        raise GraphError("NodeClassifier.fit: the stream has no graphs.")
    return each(graphs, lambda graph: check_graph(graph, "fit"))


def check_list(graphs: object, where: str) -> list[Data]:
    """A list of graphs as it was given; it may be empty."""
    if not isinstance(graphs, Sequence) or isinstance(graphs, str):
        raise InputTypeError(
            f"NodeClassifier.{where}: got a {type(graphs).__name__}; a torch_geometric.data.Data or a list of them is "
            "needed."
        )
    return [check_graph(graph, where) for graph in graphs]


def _separate(graph: Data, where: str) -> list[Data]:
    """The graphs that a PyG `Batch` is made of; any other graph by itself."""
    if not isinstance(graph, Batch):
        return [graph]
    try:
        return list(graph.to_data_list())
    except RuntimeError as error:
        raise GraphError(
            f"NodeClassifier.{where}: this Batch cannot be taken apart ({str(error).splitlines()[0]}). Make it with "
            "Batch.from_data_list, or give the graphs as a list."
        ) from error


def data_shape(
    train: Sequence[Data],
    validation: Sequence[Data],
    num_states: int | None,
    label_names: Sequence[str] | None,
    task_names: Sequence[str] | None,
    highest: int = -1,
) -> Shape:
    """The sizes that training and validation graphs fix; both lists are checked on the way.

    Args:
        train: with the labels to train on.
        validation: with the labels to choose by.
        num_states: None counts them.
        label_names: of the states, if they have names.
        task_names: of the labels of a node, if they have names.
        highest: state that exists at least, for example among labels that masks hide.
    """
    own, other = _Sizes.of(train), _Sizes.of(validation)
    for name, sizes in (("training", own), ("validation", other)):
        if max(sizes.states, default=-1) < 0:
            raise GraphError(
                f"NodeClassifier.fit: the {name} graphs have no labels. Set `y` on them; masks must select some of it."
            )
    highest = max(highest, *own.states, *other.states)
    features, tasks = own.features | other.features, own.tasks | other.tasks
    if len(tasks) > 1 or len(features) > 1 or len(own.attributes) > 1:
        raise GraphError(
            "NodeClassifier.fit: training and validation graphs differ in features "
            f"({' and '.join(map(str, sorted(features)))} columns) or label tasks ({sorted(tasks)}), or training "
            f"graphs differ in edge attributes ({sorted(own.attributes)})."
        )
    if num_states is None and highest >= MOST_STATES:
        raise GraphError(
            f"NodeClassifier.fit: a label is {highest}; tables for so many states would be huge. Number the states "
            "from 0 without gaps, or set num_states if there really are so many."
        )
    states = highest + 1 if num_states is None else int(num_states)
    if highest >= states:
        raise GraphError(f"NodeClassifier.fit: a label is {highest}, but num_states={states} allows 0 to {states - 1}.")
    if num_states is None:
        _warn_of_unseen(own.states, states)
    if label_names is not None and len(label_names) != states:
        raise OptionError(f"NodeClassifier: {len(label_names)} label_names for {states} states. Name each state once.")
    count = tasks.pop()
    if task_names is not None and len(task_names) != count:
        raise OptionError(f"NodeClassifier: {len(task_names)} task_names for {count} tasks. Name each task once.")
    return Shape(features.pop(), states, count, max(own.attributes, default=0))


@dataclass(frozen=True)
class _Sizes:
    """The different sizes that graphs have, and the states (and -1) that their labels have."""

    features: set[int] = field(default_factory=set)
    tasks: set[int] = field(default_factory=set)
    attributes: set[int] = field(default_factory=set)  # of edges
    states: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, graphs: Sequence[Data]) -> "_Sizes":
        found = cls()
        for batch in batches_of(graphs):
            found.features.add(batch.num_features)
            if batch.num_edges or batch.num_edge_attributes:
                found.attributes.add(batch.num_edge_attributes)
            if batch.y is not None:
                found.tasks.add(1 if batch.y.dim() == 1 else int(batch.y.shape[1]))
                found.states.update(batch.y.unique().tolist())
        return found


def _warn_of_unseen(seen: set[int], states: int) -> None:
    """Warn of states that were counted because a label is higher, but that no training label has."""
    unseen = [state for state in range(states) if state not in seen]
    if unseen:
        some = ", ".join(map(str, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
        warnings.warn(
            f"NodeClassifier.fit: {len(unseen)} of {states} states never occur in the training labels ({some}). They "
            "cannot be learned, and time and memory grow with the square of the number of states. Number the states "
            f"from 0 without gaps, or set num_states={states} if other graphs have them.",
            UnseenStatesWarning,
            stacklevel=3,
        )


def _are_names(names: object) -> bool:
    return isinstance(names, Sequence) and not isinstance(names, str) and all(isinstance(name, str) for name in names)


def check_truth(batch: GraphBatch, shape: Shape, where: str) -> None:
    """Refuse labels that a model cannot be compared with."""
    if batch.y is None:
        raise GraphError(f"NodeClassifier.{where}: the graphs have no labels `y` to compare with.")
    tasks = 1 if batch.y.dim() == 1 else int(batch.y.shape[1])
    if tasks != shape.num_tasks:
        raise GraphError(
            f"NodeClassifier.{where}: the graphs have {tasks} labels a node, the model was trained on "
            f"{shape.num_tasks}. Give graphs with the same labels."
        )
    if batch.y.numel() and int(batch.y.max()) >= shape.num_states:
        raise GraphError(
            f"NodeClassifier.{where}: a label is {int(batch.y.max())}, but the model knows states 0 to "
            f"{shape.num_states - 1}. Mark labels that it cannot know as missing (-1)."
        )


def short_repr(model: BaseEstimator) -> str:
    """A model with the parameters that differ from their defaults, each in a few characters."""
    defaults = inspect.signature(type(model).__init__).parameters
    given = {name: value for name, value in model.get_params(deep=False).items() if value is not None}
    shown = [f"{name}={_shown(v)}" for name, v in given.items() if _shown(v) != repr(defaults[name].default)]
    return f"{type(model).__name__}({', '.join(shown)})"


def _shown(value: object) -> str:
    """A parameter in a few characters."""
    text = repr(value)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{type(value).__name__}(...)" if not isinstance(value, str) else f"{text[:SHOWN_CHARACTERS]}..."
