"""What a fitted `NodeClassifier` says about graphs: labels, probabilities, scores."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import ConvergenceWarning, DepartureWarning, GraphError, OptionError
from accord.estimator._checks import check_graph, check_truth
from accord.estimator.knowledge import Knowledge, Places, States
from accord.estimator.labelling._diagnosis import diagnose_batch
from accord.estimator.labelling._explanation import Explanation, explain_node
from accord.estimator.labelling._reading import GIVEN, OneOrList, Reading
from accord.estimator.labelling._sweeps import Sweep, sweeps_of
from accord.estimator.labelling._thresholds import Thresholds, check_thresholds, labels_by_threshold
from accord.estimator.labelling._trust import check_precision, trusted_labels
from accord.estimator.sequences import BestLabellings, best_labellings, span_probability
from accord.evaluation import (
    NODE,
    Answers,
    Diagnosis,
    JointGain,
    join_diagnoses,
    joint_gain,
    needs_probabilities,
    pooled_score,
)
from accord.field import PairwiseField
from accord.field.triangles import TriangleField
from accord.graphs import GraphBatch
from accord.inference.triangles import AnyBeliefs, AnyField
from accord.methods import PairModel


class Labelling(Reading):
    """The half of `NodeClassifier` that labels graphs."""

    def predict(
        self,
        graph: Data | Sequence[Data],
        known: Any = None,
        forbid: Any = None,
        forbid_directed: Any = None,
        require: Any = None,
        precision: float | None = None,
        *,
        prefer: Any = None,
        threshold: Thresholds | None = None,
    ) -> OneOrList:
        """Labels that fit together: [nodes], or [nodes, tasks]; a list of graphs gives a list.

        Warns (`DepartureWarning`) where they differ from the node network's far more often than on validation graphs.
        Labels always obey `known`, `forbid`, `forbid_directed` and `require`; otherwise an `InfeasibleError` names the
        nodes that cannot. Labels are numbers of states or names; nodes are numbers, or names where the graph has
        `node_names`. With several tasks, pairs hold for each task.

        Args:
            graph: a graph, or a list of graphs, which are solved in portions.
            known: labels that are known: [nodes] or [nodes, tasks] with -1 (in a list also None) for the others, a
                dict {node: label}, or "labels" for the graph's own `y` (in its `train_mask`, if it has one). For a
                list of graphs a list of these, None for a graph without.
            forbid: pairs of labels that no edge has, in either order: [("a", "b")]; or for single edges
                {(node, node): [("a", "b")]}, where None as an edge stands for every edge. For a list of graphs also a
                list of such dicts.
            forbid_directed: the same in one order: (label of source, label of target) for every direction in which
                `edge_index` has the edge; for single edges (label of the first node, label of the second).
            require: the only pairs, in either order, that edges may have.
            precision: leave -1 where validation nodes do not show that labels of this probability are right that
                often, such as 0.95; None labels every node.
            prefer: preferences in nats, added to log-potentials: {"a": 0.5} at every node, {("a", "b"): 1.5} on every
                edge in either order; for a single node or edge a dict of these, {node: {"a": 0.5}}.
            threshold: for rare states, e.g. {"fraud": 0.3}: a node gets the state if its marginal probability is at
                least that, and never otherwise. The remaining states are labelled jointly, given these decisions. With
                two states a number is the threshold of state 1, and labels no longer depend on each other.
        """
        limits = None if threshold is None else check_thresholds(threshold, self._states(), self.label_names_)
        self._check_fitted()
        if precision is not None:
            check_precision(self.model_, precision, threshold is not None)
        pairs = {"forbid": forbid, "forbid_directed": forbid_directed, "require": require}
        if limits and any(value is not None for value in pairs.values()):
            raise OptionError(
                "NodeClassifier.predict: threshold decides node by node, so labels could not obey forbid, "
                "forbid_directed or require. Give either threshold or these."
            )

        def labels(batch: GraphBatch, knowledge: Knowledge | None) -> Tensor:
            if not limits:
                return trusted_labels(self.model_, batch, self.fallback, precision, knowledge)
            beliefs = self._marginals(batch, "predict", knowledge)
            return labels_by_threshold(self.model_, beliefs.field, self.model_.calibrated(beliefs), limits)

        return self._of_each(graph, "predict", labels, {"known": known, **pairs, "prefer": prefer})

    def predict_proba(
        self,
        graph: Data | Sequence[Data],
        known: Any = None,
        forbid: Any = None,
        forbid_directed: Any = None,
        require: Any = None,
        *,
        prefer: Any = None,
    ) -> OneOrList:
        """Marginal probabilities [nodes, states], or [nodes, tasks, states], calibrated; a list of graphs gives a list.

        The most likely state of a node by itself may differ from its label in the most likely joint labelling. What is
        known (see `predict`) has probability 1, what is forbidden 0.
        """

        def values(batch: GraphBatch, knowledge: Knowledge | None) -> Tensor:
            return self.model_.calibrated(self._marginals(batch, "predict_proba", knowledge))

        given = _arguments(known, forbid, forbid_directed, require, prefer)
        return self._of_each(graph, "predict_proba", values, given)

    def predict_edge_proba(
        self,
        graph: Data | Sequence[Data],
        known: Any = None,
        forbid: Any = None,
        forbid_directed: Any = None,
        require: Any = None,
        *,
        prefer: Any = None,
    ) -> OneOrList:
        """Probabilities of pairs [edges, states, states], or [edges, tasks, states, states], before calibration.

        A list of graphs gives a list. What is known is given as for `predict`.

        Edges are the columns of `accord.graphs.graph_topology(graph).edge_index`.
        """

        def values(batch: GraphBatch, knowledge: Knowledge | None) -> Tensor:
            return self._marginals(batch, "predict_edge_proba", knowledge).edge.exp()

        given = _arguments(known, forbid, forbid_directed, require, prefer)
        return self._of_each(graph, "predict_edge_proba", values, given, of_edges=True)

    def sweeps(self, graph: Data, task: int | str = 0, max_sweeps: int = 20, **given: Any) -> list[Sweep]:
        """Probabilities before the first sweep of belief propagation and after each one, to see messages at work.

        They converge to `predict_proba`; before the first sweep every node knows its own evidence alone.

        Args:
            graph: one graph.
            task: for several tasks, which one, by number or name.
            max_sweeps: how many sweeps to make at most; fewer where messages converge earlier.
            given: what is known, as for `predict`.
        """
        graph = check_graph(graph, "sweeps")
        known, batch = self._read_given(given, "sweeps", None), self.collate([graph])
        field = _of_pairs(self.model_.field(batch), "sweeps")
        if known is not None:
            field = known.bind([graph], 0, batch).apply(field)
        return list(sweeps_of(self.model_, field, self._task_number(task, "sweeps"), max_sweeps))

    def answers(self, graphs: Sequence[Data], **given: Any) -> Answers:
        """What each part of the model says about graphs: node network, edge network, and the joint labels.

        Each network runs once a graph. Labels of the graphs, if they have any, come along as the truth; of a graph
        with a `test_mask`, the labels in it. What is known (`given`, as for `predict`) counts for the whole model only.
        """
        graphs, given = self._with_truth(graphs, "answers"), _as_list(graphs, given)
        pieces = []
        for _, batch, knowledge in self._batches(graphs, self._read_given(given, "answers", len(graphs))):
            if knowledge is None:
                pieces.append(self.model_.answers(batch))
                continue
            with knowledge.naming_nodes():
                pieces.append(self.model_.answers(batch, knowledge.apply))
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

    def diagnose(self, graphs: Data | Sequence[Data], **given: Any) -> Diagnosis:
        """What speaks against the labels of graphs: where the node network disagrees, unlikely edges, entropy and more.

        Graphs of a list stand side by side, as in `answers`; `topology.graph` tells which graph a node belongs to.
        Labels of the graphs, if they have any, are compared with probabilities; not those that are known (`given`, as
        for `predict`).
        """
        listed, given = self._with_truth(graphs, "diagnose"), _as_list(graphs, given)
        whole = GraphBatch.collate(listed)
        if whole.y is not None:
            check_truth(whole, self.shape_, "diagnose")
        known = self._read_given(given, "diagnose", len(listed))
        parts = [
            diagnose_batch(self.model_, batch, knowledge, None if batch.y is None else self.replicas_.targets(batch.y))
            for _, batch, knowledge in self._batches(listed, known)
        ]
        return join_diagnoses(parts, whole.topology)

    def explain(
        self,
        graph: Data,
        node: int | str,
        task: int | str = 0,
        known: Any = None,
        forbid: Any = None,
        forbid_directed: Any = None,
        require: Any = None,
        *,
        prefer: Any = None,
    ) -> Explanation:
        """Why a node has its label: its own evidence, and what each neighbour adds, in nats and (`str`) in words.

        `without(neighbour)` and `given({node: label})` of the result tell what would change it. A method without an
        edge network labels nodes by themselves, so neighbours add nothing unless pairs of labels are constrained.

        Args:
            graph: a graph.
            node: a node by number, or by name if the graph has `node_names`.
            task: for several tasks, which one, by number or name.
            known: what is known, as for `predict`; so are the arguments that follow.
        """
        given = self._read_given(_arguments(known, forbid, forbid_directed, require, prefer), "explain", None)
        graph = check_graph(graph, "explain")
        batch = self.collate([graph])
        places = Places(graph, batch.topology.edge_index.cpu(), "NodeClassifier.explain")
        place, own = places.node(node, "node"), self._task_number(task, "explain")
        knowledge = None if given is None else given.bind([graph], 0, batch)
        field = _of_pairs(self.model_.field(batch), "explain")
        label = None
        if self.fallback:  # the label may be the node network's
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DepartureWarning)
                label = int(trusted_labels(self.model_, batch, True, None, knowledge)[own, place])
        states = States(self.shape_.num_states, self.shape_.num_tasks, self.label_names_)
        if knowledge is None:
            return explain_node(self.model_, field, places, states, own, place, label)
        with knowledge.naming_nodes():
            return explain_node(self.model_, knowledge.apply(field), places, states, own, place, label)

    def joint_gain(self, graphs: Sequence[Data]) -> JointGain | None:
        """What joint labelling can gain on graphs with labels; None for methods without an edge network.

        How well each part of the model tells edges with equal labels from others, and what the same node evidence would
        reach if that were known.
        """
        self._check_fitted()
        if not isinstance(self.model_, PairModel):
            return None
        graphs = self._with_truth(graphs, "joint_gain")
        pieces = [self.model_.agreement(portion.batch) for portion in self._batches(graphs)]
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
            labels = torch.cat([self.model_.labels(portion.batch).cpu() for portion in self._batches(graphs)], 1)
        whole = GraphBatch.collate(graphs)
        check_truth(whole, self.shape_, "score")
        assert whole.y is not None
        if not bool((whole.y >= 0).any()):
            raise GraphError(
                "NodeClassifier.score: every label of these graphs is missing (-1), or outside their test_mask. Give "
                "graphs with labels to compare with."
            )
        return pooled_score(level, labels, self.replicas_.targets(whole.y), whole.topology, probabilities)

    def k_best(self, graph: Data, k: int = 5) -> BestLabellings:
        """The k most probable labellings of a sequence, exactly, with their probabilities.

        Args:
            graph: a path in node order, or a graph with `tokens`.
            k: how many.
        """
        return best_labellings(self, graph, k)

    def span_probability(self, graph: Data, first: int, labels: Sequence[int | str]) -> float:
        """The exact probability, before calibration, that a span of a sequence has these labels.

        Args:
            graph: a path in node order, or a graph with `tokens`.
            first: the first node of the span.
            labels: of its nodes, as numbers or names. For an entity of the BIO scheme, add the label that ends it.
        """
        return span_probability(self, graph, first, labels)

    def _marginals(self, batch: GraphBatch, where: str, knowledge: Knowledge | None = None) -> AnyBeliefs:
        if knowledge is None:
            beliefs = self.model_.beliefs(batch, "sum")
        else:
            beliefs = self.model_.beliefs_of(knowledge.apply(self.model_.field(batch)), "sum")
        if not bool(beliefs.converged.all()):
            warnings.warn(
                f"NodeClassifier.{where}: belief propagation did not converge (last change of a log-message "
                f"{float(beliefs.residual.max()):.1e}); the marginals are rough.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return beliefs


def _of_pairs(field: AnyField, where: str) -> PairwiseField:
    """A field without triangles."""
    if isinstance(field, TriangleField):
        raise OptionError(
            f"NodeClassifier.{where}: this model counts triangles (order=3), and messages between pairs of nodes do "
            "not tell what these add. Use answers() or diagnose(), or a model of order=2."
        )
    return field


def _as_list(graphs: object, given: dict[str, Any]) -> dict[str, Any]:
    """What is known, as for a list of graphs, where a single graph counts as one."""
    if not isinstance(graphs, Data) or isinstance(given.get("known"), (str, type(None))):
        return given
    return given | {"known": [given["known"]]}


def _arguments(*given: Any) -> dict[str, Any]:
    """What is known, by the names of the arguments."""
    return dict(zip(GIVEN, given, strict=True))
