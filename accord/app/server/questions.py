"""What clients ask about graphs, answered by the model: labels, parts, sweeps and explanations, as plain values."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.app.console import in_command_line_words
from accord.app.server.limits import Limits, Refused
from accord.app.server.requests import Constraints, ExplainRequest, GraphRequest, PredictRequest, SweepsRequest
from accord.app.server.shelf import Shelf, node_names, said, without_labels
from accord.errors import AccordError, GraphError
from accord.estimator import NodeClassifier
from accord.graphs import graph_topology

Plain = dict[str, Any]
DIGITS_SHOWN = 5  # of a probability
MOST_NUMBERS = 20_000_000  # in one answer


class Questions:
    """The half of the desk that asks the model.

    Args:
        model: a fitted model.
        shelf: where graphs are found.
        limits: of the server.
    """

    def __init__(self, model: NodeClassifier, shelf: Shelf, limits: Limits) -> None:
        self.model, self.shelf, self.limits = model, shelf, limits
        self.states = list(model.label_names_ or map(str, range(model.shape_.num_states)))
        self.tasks = list(model.task_names or map(str, range(model.shape_.num_tasks)))

    def predict(self, asked: PredictRequest) -> Plain:
        """Labels of graphs."""
        if len(asked.graphs) > self.limits.graphs:
            raise Refused(
                413, f"graphs: has {len(asked.graphs)} graphs; {self.limits.graphs} are allowed. Send fewer at once.",
                "too_large",
            )  # fmt: skip
        places = [f"graphs[{number}]" for number in range(len(asked.graphs))]
        graphs = [
            without_labels(self.shelf.find(one.graph, where)) for one, where in zip(asked.graphs, places, strict=True)
        ]
        rules = [self._rules(one.known, asked, *rest) for one, *rest in zip(asked.graphs, graphs, places, strict=True)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels, marginals = self._solve(graphs, rules, places)
        rows = zip(graphs, labels, marginals, strict=True)
        return {
            "states": self.states,
            "graphs": [self._row(graph, own, each, asked.marginals) for graph, own, each in rows],
            "warnings": list(dict.fromkeys(said(caught))),
        }

    def _solve(self, graphs: list[Data], rules: list[Plain], places: list[str]) -> tuple[list[Tensor], list[Tensor]]:
        """Labels and marginals of graphs, solved together; an error says which of them it is about."""
        given = rules[0] | {"known": [each.get("known") for each in rules]}
        try:
            return self.model.predict(graphs, **given), self.model.predict_proba(graphs, **given)
        except AccordError as error:
            for graph, own, where in zip(graphs, rules, places, strict=True):
                try:
                    self.model.predict(graph, **own)
                except AccordError as single:
                    raise type(error)(f"{where}: {in_command_line_words(single)}") from error
            raise

    def _row(self, graph: Data, labels: Tensor, marginals: Tensor, all_states: bool) -> Plain:
        """The labels of one graph."""
        return {
            "nodes": node_names(graph),
            "labels": _named(labels.tolist(), self.states),
            "probabilities": rounded(marginals.gather(-1, labels[..., None])[..., 0]),
            "marginals": rounded(marginals) if all_states else None,
        }

    def answers(self, asked: GraphRequest) -> Plain:
        """What each part of the model says about one graph; the whole model obeys what is known."""
        graph, rules = self._one(asked)
        notes: list[str] = []
        given = rules | ({"known": [rules["known"]]} if "known" in rules else {})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = None
            if graph.y is not None:
                try:
                    found = self.model.answers([graph], **given)
                except GraphError as error:
                    notes.append(f"The labels of the graph are not shown: {in_command_line_words(error)}")
            found = found or self.model.answers([without_labels(graph)], **given)
        truth = None if found.truth is None else found.truth[asked.task].tolist()
        parts = {
            part: {"labels": labels[asked.task].tolist(), "marginals": rounded(found.probabilities[part][asked.task])}
            for part, labels in found.labels.items()
        }
        if found.residual is not None:
            notes.append("Belief propagation did not converge: the probabilities are rough.")
        return {"truth": truth, "parts": parts, "warnings": [*notes, *said(caught)]}

    def sweeps(self, asked: SweepsRequest) -> Plain:
        """Beliefs after each of the first sweeps."""
        graph, rules = self._one(asked)
        size = asked.max_sweeps * (len(graph.x) * len(self.states) + graph.edge_index.shape[1])
        if size > MOST_NUMBERS:
            raise Refused(
                413, f"max_sweeps: {asked.max_sweeps} sweeps of this graph are {size:,} numbers. Ask for fewer.",
                "too_large",
            )  # fmt: skip
        found = self.model.sweeps(without_labels(graph), task=asked.task, max_sweeps=asked.max_sweeps, **rules)
        return {
            "edges": graph_topology(graph).edge_index.tolist(),
            "sweeps": [
                {
                    "number": sweep.number,
                    "marginals": rounded(sweep.probabilities),
                    "message_change": rounded(sweep.message_change),
                    "residual": sweep.residual if math.isfinite(sweep.residual or 0.0) else None,
                    "converged": sweep.converged,
                }
                for sweep in found
            ],
        }

    def explain(self, asked: ExplainRequest) -> Plain:
        """Why a node has its label."""
        graph, rules = self._one(asked)
        names = node_names(graph)
        node = find_node(asked.node, names)
        found = self.model.explain(without_labels(graph), node, task=asked.task, **rules)
        if asked.without is not None:
            found = found.without(find_node(asked.without, names, "without"))
        return {
            "node": node,
            "name": names[node],
            "label": int(found.label),
            "text": str(found),
            "evidence": finite(found.evidence),
            "messages": [
                {"node": int(other), "name": names[int(other)], "message": finite(message)}
                for other, message in found.messages.items()
            ],
            "log_belief": finite(found.log_belief),
            "probabilities": rounded(found.probabilities),
            "rival": found.rival,
            "paths": [{"nodes": [names[one] for one in path.nodes], "nats": path.nats} for path in found.paths],
            "converged": found.converged,
        }

    # What is known

    def _one(self, asked: GraphRequest) -> tuple[Data, Plain]:
        """The graph of a request, and the constraints as `predict` takes them."""
        if asked.task >= len(self.tasks):
            raise Refused(
                422, f"task: is {asked.task}, but this model has tasks 0 to {len(self.tasks) - 1}. Choose one of them.",
                "request",
            )  # fmt: skip
        graph = self.shelf.find(asked.graph)
        return graph, self._rules(asked.known, asked, graph, "graph", asked.task)

    def _rules(self, known: Plain, asked: Constraints, graph: Data, where: str, task: int | None = None) -> Plain:
        """Constraints as keyword arguments of `predict`; none where there is nothing to obey."""
        rules: Plain = {}
        if known:
            places = {name: node for node, name in enumerate(node_names(graph))}
            labels = {find_node(node, places, f"{where}, known"): label for node, label in known.items()}
            rules["known"] = {node: self._known(label, task) for node, label in labels.items() if label is not None}
        for name in ("forbid", "forbid_directed", "require"):
            if getattr(asked, name):
                rules[name] = [tuple(pair) for pair in getattr(asked, name)]
        return rules

    def _known(self, label: int | str, task: int | None) -> Any:
        """A known label as the model takes it: of several tasks, only the one that was asked about is known."""
        if len(self.tasks) == 1:
            return label
        if task is None:
            return [label] * len(self.tasks)
        return [label if other == task else -1 for other in range(len(self.tasks))]


def find_node(text: str, names: Sequence[str] | Mapping[str, int], where: str = "node") -> int:
    """The number of a node, by its name or, where no node has that name, by its number as text."""
    places = names if isinstance(names, Mapping) else {name: node for node, name in enumerate(names)}
    if text in places:
        return places[text]
    if text.isascii() and text.isdecimal() and int(text[:12]) < len(places):
        return int(text)
    raise Refused(
        422, f"{where}: there is no node {text[:80]!r}. Give a name, or a number from 0 to {len(places) - 1}.", "node"
    )


def rounded(values: Tensor) -> Any:
    """Numbers as lists, with as many digits as are of use."""
    return values.double().numpy().round(DIGITS_SHOWN).tolist()


def finite(values: Tensor) -> list[float | None]:
    """Numbers as a list; JSON has no infinity."""
    return [round(value, 6) if value > float("-inf") else None for value in torch.as_tensor(values).double().tolist()]


def _named(labels: Any, states: list[str]) -> Any:
    return [_named(one, states) for one in labels] if isinstance(labels, list) else states[labels]
