"""`NodeClassifier`: the front door, with scikit-learn's manners."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import Tensor
from torch_geometric.data import Data

from accord.encoders import EncoderSpec
from accord.errors import AccordError, ConvergenceWarning, GraphError, InputError, InputTypeError, OptionError
from accord.evaluation import metric_for
from accord.graphs import GraphBatch
from accord.inference import Beliefs
from accord.learning import RefinementOptions, Replicas, Report, hold_out
from accord.methods import (
    METHODS,
    Method,
    Recipe,
    Shape,
    preset_recipe,
    read_model,
    recipe_from_config,
    recipe_to_config,
    write_model,
)

ACCELERATORS = ("auto", "cpu", "cuda")
MOST_STATES = 1000  # read off labels; more must be asked for, since an edge's table grows with their square


class NodeClassifier(ClassifierMixin, BaseEstimator):
    """Labels the nodes of new graphs jointly.

    Graphs are PyG `Data` with `x` [nodes, features], `edge_index`, and for training `y` [nodes] (or [nodes, tasks],
    one binary or multi-state label each); -1 stands for a missing label.

    Args:
        method: "spn" (joint labels), "crf" (a field trained as a whole), "gmnn", "gnn" (the node network alone) or
            "smooth" (its predictions smoothed over the graph).
        encoder: "gcn", "sage", "gat", "unet", "gcnii", "mlp", "linear", or an encoder of your own.
        edge_encoder: the same for the edge network; None takes the node network's.
        level: what to choose by on validation data: "node" accuracy, or "graph" (every node right).
        refine: train the SPN on through its field, by the maximin game.
        max_epochs: None takes the preset's.
        seed: of weights, dropout and held-out graphs.
        preset: "accord" or "paper".
        benchmark: take the preset's values for this benchmark.
        recipe: every choice at once; overrides preset, encoder and benchmark, and refines if it says so.
        num_states: how many values a label can take; None reads it off the training labels.
        label_names: names of the states, kept with the model.
        accelerator: "auto", "cpu" or "cuda".
    """

    def __init__(
        self,
        method: str = "spn",
        encoder: str | EncoderSpec = "gcnii",
        edge_encoder: str | EncoderSpec | None = None,
        level: str = "node",
        refine: bool = False,
        max_epochs: int | None = None,
        seed: int = 0,
        preset: str = "accord",
        benchmark: str | None = None,
        recipe: Recipe | None = None,
        num_states: int | None = None,
        label_names: Sequence[str] | None = None,
        accelerator: str = "auto",
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.edge_encoder = edge_encoder
        self.level = level
        self.refine = refine
        self.max_epochs = max_epochs
        self.seed = seed
        self.preset = preset
        self.benchmark = benchmark
        self.recipe = recipe
        self.num_states = num_states
        self.label_names = label_names
        self.accelerator = accelerator

    # Learning

    def fit(
        self,
        graphs: Sequence[Data],
        validation: Sequence[Data] | None = None,
        folder: str | Path | None = None,
        report: Report | None = None,
    ) -> "NodeClassifier":
        """Learn from labelled graphs.

        Args:
            graphs: training graphs; a single `Data` will do.
            validation: graphs to choose by; None holds out a fifth of the training graphs, or, of a single graph, a
                fifth of its labelled nodes.
            folder: where to leave checkpoints; a run that was cut off goes on from there.
            report: called with a row of numbers at every look at validation data.
        """
        train = _as_list(graphs, "fit")
        method = self._method()
        GraphBatch.collate(train)  # says what is wrong with the graphs before any are held out
        if validation is None:
            train, held_out = hold_out(train, self.seed)
        else:
            held_out = _as_list(validation, "fit: validation")
        self.shape_ = self._shape(train, held_out)
        self.classes_ = torch.arange(self.shape_.num_states).numpy()
        self.replicas_ = Replicas((self.seed,), self.shape_.num_tasks)
        self.model_ = method.fit(
            train, held_out, self.shape_, self.replicas_, None if folder is None else Path(folder), report
        )
        return self

    def _method(self) -> Method:
        if self.method not in METHODS:
            raise OptionError(f"NodeClassifier: method {self.method!r} is unknown. Choose one of {sorted(METHODS)}.")
        if self.refine and self.method != "spn":
            raise OptionError(f"NodeClassifier: method {self.method!r} has no refinement. Set refine=False.")
        metric_for(self.level)
        self._check_parameters()
        recipe = self.recipe or preset_recipe(
            self.preset, self.encoder, self.edge_encoder, self.benchmark, self.method, self.refine
        )
        if self.refine and recipe.refinement is None:
            recipe = replace(recipe, refinement=RefinementOptions())
        if self.method != "spn" and recipe.refinement is not None:
            raise OptionError(f"NodeClassifier: method {self.method!r} cannot refine; the recipe must not ask for it.")
        training = replace(recipe.training, accelerator=self.accelerator)
        if self.max_epochs is not None:
            training = replace(training, max_epochs=self.max_epochs)
        self.recipe_ = replace(recipe, training=training)
        return METHODS[self.method](self.recipe_, self.level)

    def _check_parameters(self) -> None:
        if self.recipe is not None and not isinstance(self.recipe, Recipe):
            raise InputTypeError(f"NodeClassifier: recipe is a {type(self.recipe).__name__}, not an accord Recipe.")
        for name in ("seed", "num_states", "max_epochs"):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not whole and not (value is None and name != "seed"):
                raise InputTypeError(f"NodeClassifier: {name} is {value!r}; a whole number is needed.")
            if value is not None and value < (1 if name == "num_states" else 0):
                raise OptionError(f"NodeClassifier: {name} is {value}; it is too small.")
        names = self.label_names
        if names is not None and (isinstance(names, str) or not all(isinstance(name, str) for name in names)):
            raise InputTypeError("NodeClassifier: label_names must be a list of strings, one for each state.")
        if self.accelerator not in ACCELERATORS:
            raise OptionError(
                f"NodeClassifier: accelerator {self.accelerator!r} is unknown. Choose one of {ACCELERATORS}."
            )

    def _shape(self, train: list[Data], validation: list[Data]) -> Shape:
        """Sizes that the data fix; both lists are checked on the way."""
        batches = [GraphBatch.collate(train), GraphBatch.collate(validation)]
        highest, tasks = -1, set()
        for name, batch in zip(("training", "validation"), batches, strict=True):
            if batch.y is None or not bool((batch.y >= 0).any()):
                raise GraphError(f"NodeClassifier.fit: the {name} graphs have no labels. Set `y` on them.")
            highest = max(highest, int(batch.y.max()))
            tasks.add(1 if batch.y.dim() == 1 else int(batch.y.shape[1]))
        if len(tasks) > 1 or batches[0].x.shape[1] != batches[1].x.shape[1]:
            raise GraphError(
                f"NodeClassifier.fit: training and validation graphs differ in features ({batches[0].x.shape[1]} and "
                f"{batches[1].x.shape[1]} columns) or label tasks ({sorted(tasks)})."
            )
        if self.num_states is None and highest >= MOST_STATES:
            raise GraphError(
                f"NodeClassifier.fit: a label is {highest}; tables for so many states would be huge. Number the states "
                "from 0 without gaps, or set num_states if there really are so many."
            )
        states = highest + 1 if self.num_states is None else int(self.num_states)
        if highest >= states:
            raise GraphError(
                f"NodeClassifier.fit: a label is {highest}, but num_states={states} allows 0 to {states - 1}."
            )
        if self.label_names is not None and len(self.label_names) != states:
            raise OptionError(f"NodeClassifier: {len(self.label_names)} label_names for {states} states.")
        attributes = 0 if batches[0].edge_attr is None else int(batches[0].edge_attr.shape[1])
        return Shape(int(batches[0].x.shape[1]), states, tasks.pop(), attributes)

    # Prediction

    def predict(self, graph: Data) -> Tensor:
        """Labels that fit together: [nodes], or [nodes, tasks]."""
        batch = self.collate([_check_graph(graph, "predict")])
        return self._by_node(self.model_.labels(batch))

    def predict_proba(self, graph: Data) -> Tensor:
        """Marginal probabilities [nodes, states], or [nodes, tasks, states].

        The most likely state of a node by itself may differ from its label in the most likely joint labelling.
        """
        return self._by_node(self._marginals(graph, "predict_proba").node.exp())

    def predict_edge_proba(self, graph: Data) -> Tensor:
        """Probabilities of pairs [edges, states, states], or [edges, tasks, states, states].

        Edges are the columns of `accord.graphs.graph_topology(graph).edge_index`.
        """
        return self._by_node(self._marginals(graph, "predict_edge_proba").edge.exp())

    def score(self, graphs: Sequence[Data], level: str | None = None) -> float:
        """Share of nodes that are right, or at level "graph" of graphs with every node right; tasks are averaged."""
        batch = self.collate(_as_list(graphs, "score"))
        if batch.y is None:
            raise GraphError("NodeClassifier.score: the graphs have no labels `y` to compare with.")
        metric = metric_for(self.level if level is None else level)
        tasks = 1 if batch.y.dim() == 1 else int(batch.y.shape[1])
        if tasks != self.shape_.num_tasks:
            raise GraphError(
                f"NodeClassifier.score: the graphs have {tasks} labels a node, the model gives {self.shape_.num_tasks}."
            )
        if not bool((batch.y >= 0).any()):
            raise GraphError("NodeClassifier.score: every label of these graphs is missing (-1).")
        if int(batch.y.max()) >= self.shape_.num_states:
            raise GraphError(
                f"NodeClassifier.score: a label is {int(batch.y.max())}, but the model knows states 0 to "
                f"{self.shape_.num_states - 1}."
            )
        scores = metric(self.model_.labels(batch), self.replicas_.targets(batch.y), batch.topology)
        return float(scores.nanmean())  # a task without any label does not count

    def _marginals(self, graph: Data, where: str) -> Beliefs:
        batch = self.collate([_check_graph(graph, where)])
        beliefs = self.model_.beliefs(batch, "sum")
        if not bool(beliefs.converged.all()):
            warnings.warn(
                f"NodeClassifier.{where}: belief propagation did not settle (last change of a log-message "
                f"{float(beliefs.residual.max()):.1e}); the marginals are rough.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return beliefs

    def _by_node(self, values: Tensor) -> Tensor:
        """[tasks, nodes, ...] -> [nodes, ...], or [nodes, tasks, ...], on the CPU."""
        values = values.cpu()
        return values[0] if self.shape_.num_tasks == 1 else values.transpose(0, 1)

    def collate(self, graphs: list[Data]) -> GraphBatch:
        """Graphs side by side, checked against what the model was trained on, on its device."""
        if not hasattr(self, "model_"):
            raise InputError("NodeClassifier: this model is not fitted yet. Call fit, or NodeClassifier.load.")
        batch = GraphBatch.collate(graphs)
        if batch.x.shape[1] != self.shape_.num_features:
            raise GraphError(
                f"NodeClassifier: the graph has {batch.x.shape[1]} features a node, the model was trained on "
                f"{self.shape_.num_features}. Prepare the graph as the training graphs were."
            )
        attributes = 0 if batch.edge_attr is None else batch.edge_attr.shape[1]
        if attributes < self.shape_.edge_attributes and batch.topology.num_edges:
            raise GraphError(
                f"NodeClassifier: the model was trained on {self.shape_.edge_attributes} edge attributes, the graph "
                f"has {attributes}. Set `edge_attr`."
            )
        return batch.to(next(iter(self.model_.tensors().values())).device, torch.float32)

    # Saving

    def save(self, folder: str | Path) -> None:
        """Write weights (safetensors), configuration (json) and a model card; nothing that could run code."""
        if not hasattr(self, "model_"):
            raise InputError("NodeClassifier.save: this model is not fitted yet. Call fit first.")
        config: dict[str, Any] = {
            "method": self.method,
            "level": self.level,
            "seed": self.seed,
            "preset": self.preset,
            "recipe": recipe_to_config(self.recipe_),
            "shape": vars(self.shape_),
            "label_names": None if self.label_names is None else list(self.label_names),
        }
        write_model(Path(folder), self.model_.tensors(), config)

    @classmethod
    def load(cls, folder: str | Path, accelerator: str = "cpu") -> "NodeClassifier":
        """Read a model that `save` wrote, for use on the CPU or (accelerator "cuda") a GPU."""
        tensors, config = read_model(Path(folder))
        try:
            recipe = recipe_from_config(config["recipe"])
            loaded = cls(
                method=config["method"],
                encoder=recipe.encoder,
                edge_encoder=recipe.edge_encoder,
                level=config["level"],
                refine=recipe.refinement is not None,
                max_epochs=recipe.training.max_epochs,
                seed=config["seed"],
                preset=config["preset"],
                recipe=recipe,
                num_states=config["shape"]["num_states"],
                label_names=config["label_names"],
                accelerator=accelerator,
            )
            method = loaded._method()
            loaded.shape_ = Shape(**config["shape"])
            loaded.classes_ = torch.arange(loaded.shape_.num_states).numpy()
            loaded.replicas_ = Replicas((loaded.seed,), loaded.shape_.num_tasks)
            loaded.model_ = method.build(loaded.shape_, loaded.replicas_)
            loaded.model_.load(tensors)
        except (KeyError, TypeError, AttributeError, RuntimeError) as error:
            if isinstance(error, AccordError):
                raise
            raise InputError(
                f"{folder}: the saved model is damaged or of another version ({type(error).__name__}: {error}). "
                "Restore its files or train again."
            ) from error
        if accelerator != "cpu" and torch.cuda.is_available():
            loaded.model_.to(torch.device("cuda"))
        elif accelerator == "cuda":
            raise OptionError("NodeClassifier.load: there is no CUDA device here. Use accelerator='cpu'.")
        return loaded


def _check_graph(graph: object, where: str) -> Data:
    if not isinstance(graph, Data):
        raise InputTypeError(
            f"NodeClassifier.{where}: got a {type(graph).__name__}, not a torch_geometric.data.Data. "
            "Build one with Data(x=features, edge_index=edge_index)."
        )
    return graph


def _as_list(graphs: object, where: str) -> list[Data]:
    if isinstance(graphs, Data):
        return [graphs]
    if not isinstance(graphs, Sequence) or isinstance(graphs, str):
        raise InputTypeError(
            f"NodeClassifier.{where}: got a {type(graphs).__name__}; a list of torch_geometric.data.Data is needed."
        )
    if not graphs:
        raise GraphError(f"NodeClassifier.{where}: the list of graphs is empty.")
    return [_check_graph(graph, where) for graph in graphs]
