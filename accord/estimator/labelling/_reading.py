"""Graphs as a fitted model reads them: prepared, in portions, with what is known about them."""

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, InputError, OptionError
from accord.estimator._checks import check_graph, check_graphs, check_list
from accord.estimator.fitting._inputs import in_columns, portions, scored_labels, with_states
from accord.estimator.knowledge import Given, Knowledge, States
from accord.graphs import EdgeColumns, FeatureTreatment, GraphBatch, GraphColumns
from accord.learning import Replicas
from accord.methods import FieldModel, Recipe, Shape

OneOrList = Any  # a tensor of one graph, or a list of tensors of a list; PyG has no types that would tell them apart
GIVEN = ("known", "forbid", "forbid_directed", "require", "prefer")  # arguments that say what is known about graphs


class Portion(NamedTuple):
    """Graphs that are solved together."""

    graphs: list[Data]
    batch: GraphBatch
    knowledge: Knowledge | None


class Reading:
    """The part of `NodeClassifier` that reads graphs; `fit` and `load` set the attributes."""

    method: str
    level: str
    ensemble: int
    recipe_: Recipe
    fallback: bool
    model_: FieldModel
    shape_: Shape
    given_shape_: Shape  # without the columns that the treatment of features adds
    replicas_: Replicas
    treatment_: FeatureTreatment
    edge_columns_: EdgeColumns | None = None
    columns_: GraphColumns
    label_names_: list[str] | None
    task_names: Sequence[str] | None

    @property
    def directed_(self) -> bool:
        """Whether the model reads in which direction an edge is stored."""
        return not getattr(getattr(self.recipe_, "scorer", None), "symmetric", True)

    @property
    def choice_(self) -> dict[str, list[Any]]:
        """What was chosen on validation data besides the weights: plain values by name, one for each task."""
        return self.model_.choice()

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the feature columns that the model was trained on; None where they go by position."""
        return self.feature_names_ if hasattr(self, "columns_") else None

    @property
    def feature_names_(self) -> list[str] | None:
        """The same, of a fitted model."""
        return None if self.columns_.nodes is None else list(self.columns_.nodes.names)

    def collate(self, graphs: list[Data]) -> GraphBatch:
        """Graphs side by side as the networks read them: columns in order, features treated, on the model's device."""
        self._check_fitted()
        prepared = [self._prepare(graph) for graph in check_graphs(graphs, "collate")]
        batch = GraphBatch.collate(prepared)
        if batch.num_edge_attributes < self.shape_.edge_attributes and batch.num_edges:
            raise GraphError(
                f"NodeClassifier: the model was trained on {self.shape_.edge_attributes} edge attributes, the graph "
                f"has {batch.num_edge_attributes}. Set `edge_attr`."
            )
        return batch.to(self.model_.device, torch.float32)

    def _prepare(self, graph: Data) -> Data:
        """One graph with its columns in the order of training, treated as the training graphs were."""
        return self._treat(self._ordered(graph))

    def _treat(self, graph: Data) -> Data:
        """A graph with raw features as the networks read it."""
        graph = self.treatment_.apply(graph)
        return graph if self.edge_columns_ is None else self.edge_columns_.apply(graph)

    def _ordered(self, graph: Data) -> Data:
        """One graph with its columns in the order of training."""
        graph = in_columns(graph, self.columns_)
        GraphBatch.collate([graph])  # refuses a graph that cannot be used before its features are read
        given = self.given_shape_.num_features
        if graph.x.shape[1] != given:
            raise GraphError(
                f"NodeClassifier: the graph has {graph.x.shape[1]} features a node, the model was trained on "
                f"{given}. Give the same feature columns as in training."
            )
        return graph

    def _batches(self, graphs: list[Data], given: Given | None = None) -> Iterator[Portion]:
        """The graphs, in portions that are solved together, with what is known about each portion."""
        self._check_fitted()
        first = 0
        for portion in portions(graphs, self.ensemble * self.shape_.num_tasks * self.shape_.num_states**2):
            batch = self.collate(portion)
            yield Portion(portion, batch, None if given is None else given.bind(portion, first, batch))
            first += len(portion)

    def _read_given(self, arguments: dict[str, Any], where: str, count: int | None) -> Given | None:
        """What a call says about its graphs: `count` of a list, None for a single one."""
        unknown = [name for name in arguments if name not in GIVEN]
        if unknown:
            raise OptionError(f"NodeClassifier.{where}: {unknown[0]!r} is unknown. Choose among {', '.join(GIVEN)}.")
        states = States(self._states(), self.shape_.num_tasks, self.label_names_)
        return Given.read(arguments, states, where, count)

    def _task_number(self, task: object, where: str) -> int:
        """The number of a task that is given by number or name."""
        names = list(self.task_names or [])
        if isinstance(task, str) and task in names:
            return names.index(task)
        if isinstance(task, Integral) and not isinstance(task, bool) and 0 <= int(task) < self.shape_.num_tasks:
            return int(task)
        known = f"0 to {self.shape_.num_tasks - 1}" + (f", or {', '.join(map(repr, names[:8]))}" if names else "")
        raise OptionError(f"NodeClassifier.{where}: task {str(task)[:80]!r} is unknown. Tasks: {known}.")

    def _with_truth(self, graphs: Sequence[Data], where: str) -> list[Data]:
        """The graphs with the labels that predictions are compared with, numbered as in training."""
        named = [with_states(graph, self._names()) for graph in check_graphs(graphs, where)]
        return [scored_labels(graph, where) for graph in named]

    def _names(self) -> list[str] | None:
        self._check_fitted()
        return self.label_names_

    def _states(self) -> int:
        self._check_fitted()
        return self.shape_.num_states

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise InputError("NodeClassifier: this model is not fitted yet. Call fit, or NodeClassifier.load.")

    def _of_each(
        self,
        graphs: Data | Sequence[Data],
        where: str,
        values_of: Callable[[GraphBatch, Knowledge | None], Tensor],
        arguments: dict[str, Any],
        of_edges: bool = False,
    ) -> OneOrList:
        """Values of one graph, or of each graph of a list, which are solved in portions.

        Args:
            graphs: a graph or a list; a `Batch` counts as one graph.
            where: the method, for messages.
            values_of: gives values [tasks, nodes or edges, ...] of a batch, given what is known about it.
            arguments: what is known, as the user gave it.
            of_edges: whether the values are of edges.
        """
        self._check_fitted()
        if isinstance(graphs, Data):
            graphs = check_graph(graphs, where)
            given = self._read_given(arguments, where, None)
            batch = self.collate([graphs])
            return self._by_node(values_of(batch, None if given is None else given.bind([graphs], 0, batch)))
        listed = check_list(graphs, where)
        given = self._read_given(arguments, where, len(listed))
        found: list[Tensor] = []
        for portion in self._batches(listed, given):
            values = self._by_node(values_of(portion.batch, portion.knowledge))
            sizes = torch.tensor([graph.num_nodes for graph in portion.graphs])
            if of_edges:
                owner = torch.bucketize(portion.batch.topology.edge_index[0].cpu(), sizes.cumsum(0), right=True)
                sizes = torch.bincount(owner, minlength=len(portion.graphs))
            found += values.split(sizes.tolist())
        return found

    def _by_node(self, values: Tensor) -> Tensor:
        """[tasks, nodes, ...] -> [nodes, ...], or [nodes, tasks, ...], on the CPU."""
        values = values.cpu()
        return values[0] if self.shape_.num_tasks == 1 else values.transpose(0, 1)
