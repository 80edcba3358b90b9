"""What a fitted `NodeClassifier` says about graphs: labels, probabilities, scores."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import ConvergenceWarning, GraphError, InputError
from accord.estimator._checks import check_graphs, check_list, check_truth
from accord.estimator._inputs import in_order, portions, scored_labels, with_states
from accord.estimator._thresholds import Thresholds, check_thresholds, labels_by_threshold
from accord.estimator._trust import check_precision, trusted_labels
from accord.evaluation import NODE, Answers, JointGain, joint_gain, needs_probabilities, pooled_score
from accord.graphs import FeatureTreatment, GraphBatch
from accord.inference import Beliefs
from accord.learning import Replicas
from accord.methods import FieldModel, PairModel, Recipe, Shape

OneOrList = Any  # a tensor of one graph, or a list of tensors of a list; PyG has no types that would tell them apart


class Labelling:
    """The half of `NodeClassifier` that labels graphs; `fit` and `load` set the attributes."""

    method: str
    level: str
    ensemble: int
    recipe_: Recipe
    fallback: bool
    model_: FieldModel
    shape_: Shape
    replicas_: Replicas
    treatment_: FeatureTreatment
    feature_names_: list[str] | None
    label_names_: list[str] | None

    def predict(
        self, graph: Data | Sequence[Data], threshold: Thresholds | None = None, precision: float | None = None
    ) -> OneOrList:
        """Labels that fit together: [nodes], or [nodes, tasks]; a list of graphs gives a list.

        Warns (`DepartureWarning`) where they differ from the node network's far more often than on validation graphs.

        Args:
            graph: a graph, or a list of graphs, which are solved in portions.
            threshold: for rare states, e.g. {"fraud": 0.3}: a node gets the state if its marginal probability is at
                least that, and never otherwise. The remaining states are labelled jointly, given these decisions. With
                two states a number is the threshold of state 1, and labels no longer depend on each other.
            precision: leave -1 where validation nodes do not show that labels of this probability are right that
                often, such as 0.95; None labels every node.
        """
        limits = None if threshold is None else check_thresholds(threshold, self._states(), self.label_names_)
        self._check_fitted()
        if precision is not None:
            check_precision(self.model_, precision, threshold is not None)

        def labels(batch: GraphBatch) -> Tensor:
            if not limits:
                return trusted_labels(self.model_, batch, self.fallback, precision)
            return labels_by_threshold(self.model_, batch, self._probabilities(batch, "predict"), limits)

        return self._of_each(graph, "predict", labels)

    def predict_proba(self, graph: Data | Sequence[Data]) -> OneOrList:
        """Marginal probabilities [nodes, states], or [nodes, tasks, states], calibrated; a list of graphs gives a list.

        The most likely state of a node by itself may differ from its label in the most likely joint labelling.
        """
        where = "predict_proba"
        return self._of_each(graph, where, lambda batch: self._probabilities(batch, where))

    def predict_edge_proba(self, graph: Data | Sequence[Data]) -> OneOrList:
        """Probabilities of pairs [edges, states, states], or [edges, tasks, states, states], before calibration.

        A list of graphs gives a list.

        Edges are the columns of `accord.graphs.graph_topology(graph).edge_index`.
        """
        where = "predict_edge_proba"
        return self._of_each(graph, where, lambda batch: self._marginals(batch, where).edge.exp(), of_edges=True)

    def answers(self, graphs: Sequence[Data]) -> Answers:
        """What each part of the model says about graphs: node network, edge network, and the joint labels.

        Each network runs once a graph. Labels of the graphs, if they have any, come along as the truth; of a graph
        with a `test_mask`, the labels in it.
        """
        graphs = self._with_truth(graphs, "answers")
        pieces = [self.model_.answers(batch) for batch in self._batches(graphs)]
        whole = GraphBatch.collate(graphs)
        if whole.y is not None:
            check_truth(whole, self.shape_, "answers")
        residuals = [answer.residual for piece in pieces for answer in piece.values() if answer.residual is not None]
        return Answers(
            whole.topology,
            None if whole.y is None else self.replicas_.targets(whole.y),
            {name: torch.cat([piece[name].labels.cpu() for piece in pieces], 1) for name in pieces[0]},
            {name: torch.cat([piece[name].probabilities.cpu() for piece in pieces], 1) for name in pieces[0]},
            self.method if self.method != NODE else None,
            max(residuals, default=None),
        )

    def joint_gain(self, graphs: Sequence[Data]) -> JointGain | None:
        """What joint labelling can gain on graphs with labels; None for methods without an edge network.

        How well each part of the model tells edges with equal labels from others, and what the same node evidence would
        reach if that were known.
        """
        self._check_fitted()
        if not isinstance(self.model_, PairModel):
            return None
        graphs = self._with_truth(graphs, "joint_gain")
        pieces = [self.model_.agreement(batch) for batch in self._batches(graphs)]
        whole = GraphBatch.collate(graphs)
        check_truth(whole, self.shape_, "joint_gain")
        assert whole.y is not None
        agreement = {part: torch.cat([same[part].cpu() for _, same in pieces], 1) for part in pieces[0][1]}
        evidence = torch.cat([node.cpu() for node, _ in pieces], 1)
        return joint_gain(evidence, agreement, self.replicas_.targets(whole.y), whole.topology)

    def score(self, graphs: Sequence[Data], level: str | None = None) -> float:
        """The score at a level (`accord.evaluation.LEVELS`), by default the model's own; tasks are averaged.

        "node" is the share of nodes that are right, "graph" of graphs with every node right, "f1" the mean F1 of the
        states (pooled over tasks where there are several binary ones), "likelihood" the mean log-probability of the
        true labels, "auc" the mean area under the ROC curve of each state. Of a graph with a `test_mask`, only the
        nodes in it count; of a graph with other masks, the nodes outside them.
        """
        level = self.level if level is None else level
        graphs = self._with_truth(graphs, "score")
        probabilities = None
        if needs_probabilities(level):
            answers = self.answers(graphs)
            labels, probabilities = answers.labels[answers.whole], answers.probabilities[answers.whole]
        else:
            labels = torch.cat([self.model_.labels(batch).cpu() for batch in self._batches(graphs)], 1)
        whole = GraphBatch.collate(graphs)
        check_truth(whole, self.shape_, "score")
        assert whole.y is not None
        if not bool((whole.y >= 0).any()):
            raise GraphError(
                "NodeClassifier.score: every label of these graphs is missing (-1), or outside their test_mask. Give "
                "graphs with labels to compare with."
            )
        return pooled_score(level, labels, self.replicas_.targets(whole.y), whole.topology, probabilities)

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
        graph = in_order(graph, self.feature_names_)
        GraphBatch.collate([graph])  # refuses a graph that cannot be used before its features are read
        if graph.x.shape[1] != self.shape_.num_features:
            raise GraphError(
                f"NodeClassifier: the graph has {graph.x.shape[1]} features a node, the model was trained on "
                f"{self.shape_.num_features}. Give the same feature columns as in training."
            )
        return self.treatment_.apply(graph)

    def _batches(self, graphs: list[Data]) -> Iterator[GraphBatch]:
        """The graphs, in portions that are solved together."""
        return (self.collate(portion) for portion in self._portions(graphs))

    def _portions(self, graphs: list[Data]) -> Iterator[list[Data]]:
        self._check_fitted()
        return portions(graphs, self.ensemble * self.shape_.num_tasks * self.shape_.num_states**2)

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
        values_of: Callable[[GraphBatch], Tensor],
        of_edges: bool = False,
    ) -> OneOrList:
        """Values of one graph, or of each graph of a list, which are solved in portions.

        Args:
            graphs: a graph or a list; a `Batch` counts as one graph.
            where: the method, for messages.
            values_of: gives values [tasks, nodes or edges, ...] of a batch.
            of_edges: whether the values are of edges.
        """
        self._check_fitted()
        if isinstance(graphs, Data):
            return self._by_node(values_of(self.collate([graphs])))
        found: list[Tensor] = []
        for portion in self._portions(check_list(graphs, where)):
            batch = self.collate(portion)
            values = self._by_node(values_of(batch))
            sizes = torch.tensor([len(graph.x) for graph in portion])
            if of_edges:
                owner = torch.bucketize(batch.topology.edge_index[0].cpu(), sizes.cumsum(0), right=True)
                sizes = torch.bincount(owner, minlength=len(portion))
            found += values.split(sizes.tolist())
        return found

    def _probabilities(self, batch: GraphBatch, where: str) -> Tensor:
        """Marginal probabilities [tasks, nodes, states], calibrated."""
        return self.model_.calibrated(self._marginals(batch, where))

    def _marginals(self, batch: GraphBatch, where: str) -> Beliefs:
        beliefs = self.model_.beliefs(batch, "sum")
        if not bool(beliefs.converged.all()):
            warnings.warn(
                f"NodeClassifier.{where}: belief propagation did not converge (last change of a log-message "
                f"{float(beliefs.residual.max()):.1e}); the marginals are rough.",
                ConvergenceWarning,
                stacklevel=6,
            )
        return beliefs

    def _by_node(self, values: Tensor) -> Tensor:
        """[tasks, nodes, ...] -> [nodes, ...], or [nodes, tasks, ...], on the CPU."""
        values = values.cpu()
        return values[0] if self.shape_.num_tasks == 1 else values.transpose(0, 1)
