"""Why a node has its label, in numbers and in words, and what would change it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from accord.errors import GraphError
from accord.estimator.knowledge import Knowledge, Places, States, known_labels
from accord.evaluation import EvidencePath, contributions, strongest_paths, without_edges
from accord.field import PairwiseField
from accord.inference import Beliefs, possible_states
from accord.methods import FieldModel

SHOWN_NEIGHBOURS = 10  # in words
PATHS = 5
LEAST_SHOWN = 0.005  # nats of a path; less is shown as 0.00


@dataclass(frozen=True, eq=False)
class Source:
    """The field of a graph, and what solves it; the networks' evidence is fixed."""

    model: FieldModel
    field: PairwiseField
    places: Places
    states: States
    task: int

    def explain(self, node: int, label: int | None = None, **extra: Any) -> "Explanation":
        """Solve the field and take the belief of a node apart; None takes the label of the field's decoding."""
        beliefs = self.model.beliefs_of(self.field, "sum")
        assert isinstance(beliefs, Beliefs)  # the field has no triangles
        if label is None:
            label = int(self.model.labels_of(self.field)[self.task, node])
        terms = contributions(beliefs, node, self.task)
        others = terms.log_belief.clone()
        others[label] = -torch.inf
        rival = int(others.argmax()) if bool((others > -torch.inf).any()) else None
        paths = [] if rival is None else strongest_paths(beliefs, node, label, rival, self.task, PATHS)
        graph = int(self.field.graph[node])
        return Explanation(
            node=node,
            task=self.task,
            label=label,
            evidence=terms.evidence,
            messages=terms.messages,
            log_belief=terms.log_belief,
            probabilities=self.model.calibrated(beliefs)[self.task, node].cpu(),
            rival=rival,
            paths=paths,
            converged=bool(beliefs.converged[self.task, graph]),
            source=self,
            **extra,
        )

    def state_name(self, state: int) -> str:
        """A state in words."""
        return str(state) if self.states.names is None else repr(self.states.names[state])


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a node has its label. Numbers are nats, before calibration; evidence + messages = log_belief + constant.

    Attributes:
        node: number of the node.
        task: number of the task.
        label: the state that `predict` gives.
        evidence: [states], log-probabilities of the node by itself.
        messages: neighbour -> [states], what it adds; mean 0 over possible states.
        log_belief: [states], log of the marginal before calibration.
        probabilities: [states], as `predict_proba` gives them.
        rival: the most likely other state; None where no other is possible.
        paths: how evidence of far nodes for the label and against the rival arrives, the strongest first.
        converged: whether belief propagation did; if not, the numbers still add up, but are not those of a fixed point.
        before: of a what-if, the explanation that it changes.
        change: of a what-if, what was changed, in words.
    """

    node: int
    task: int
    label: int
    evidence: Tensor
    messages: dict[int, Tensor]
    log_belief: Tensor
    probabilities: Tensor
    rival: int | None
    paths: list[EvidencePath]
    converged: bool
    source: Source
    before: "Explanation | None" = None
    change: str = ""

    @property
    def label_name(self) -> str:
        """The label's name, or its number where labels have no names."""
        return self._name(self.label)

    def log_odds(self, values: Tensor | None = None, rival: int | None = None) -> float:
        """By how many nats the label leads its rival, in the belief or in other values [states]."""
        other = self.rival if rival is None else rival
        values = self.log_belief if values is None else values
        return float("inf") if other is None else float(values[self.label] - values[other])

    def contributions(self) -> dict[int, float]:
        """What each neighbour adds to the lead of the label over its rival, the largest first."""
        values = {neighbour: self.log_odds(message) for neighbour, message in self.messages.items()}
        return dict(sorted(values.items(), key=lambda item: -abs(item[1])))

    def without(self, neighbour: int | str) -> "Explanation":
        """The explanation if there were no edge to a neighbour; the networks' evidence stays.

        The returned explanation's `before` is this one.
        """
        place = self.source.places.node(neighbour, "without")
        if place not in self.messages:
            raise GraphError(
                f"Explanation.without: node {self.source.places.title(place)} is no neighbour of node "
                f"{self.source.places.title(self.node)}. Neighbours are the keys of `messages`."
            )
        return self._again(
            without_edges(self.source.field, self.node, place), f"without node {self.source.places.title(place)}"
        )

    def given(self, known: Mapping[int | str, int | str]) -> "Explanation":
        """The explanation if these labels {node: label} were known as well; the networks' evidence stays."""
        own = States(self.source.states.num_states, 1, self.source.states.names)
        labels = known_labels(known, self.source.places, own)
        rows = torch.full((self.source.field.replicas.numel(), labels.shape[1]), -1)
        rows[self.task] = labels[0]
        knowledge = Knowledge(rows, None, None, None, [self.source.places], 0, self.source.states, "explain")
        changed = knowledge.apply(self.source.field)
        with knowledge.naming_nodes():
            possible_states(changed)
            pairs = (
                f"node {self.source.places.title(int(node))} known to be {self._quoted(int(labels[0, node]))}"
                for node in (labels[0] >= 0).nonzero().flatten()
            )
            return self._again(changed, "with " + ", ".join(pairs))

    def _again(self, field: PairwiseField, change: str) -> "Explanation":
        source = Source(self.source.model, field, self.source.places, self.source.states, self.task)
        return source.explain(self.node, before=self, change=change)

    def to_json(self) -> dict[str, Any]:
        """Plain values; an impossible state has None in place of minus infinity."""
        places, titles = self.source.places, self.source.places.names
        named = {} if titles is None else {"name": titles[self.node]}
        contributions = self.contributions()
        return {
            "node": self.node,
            **named,
            "task": self.task,
            "label": self.label,
            "label_name": self.label_name,
            "states": [self._name(state) for state in range(len(self.log_belief))],
            "evidence": _plain(self.evidence),
            "messages": [
                {
                    "node": neighbour,
                    **({} if places.names is None else {"name": places.names[neighbour]}),
                    "nats": _plain(self.messages[neighbour]),
                    "lead": value if self.rival is not None else None,
                }
                for neighbour, value in contributions.items()
            ],
            "log_belief": _plain(self.log_belief),
            "probabilities": self.probabilities.tolist(),
            "rival": self.rival,
            "lead": self.log_odds() if self.rival is not None else None,
            "paths": [{"nodes": path.nodes, "nats": path.nats} for path in self.paths],
            "converged": self.converged,
            "change": self.change,
        }

    def __str__(self) -> str:
        title = self.source.places.title
        label, probability = self._quoted(self.label), float(self.probabilities[self.label])
        start = f"Node {title(self.node)}{f' {self.change}' if self.change else ''}: label {label}, probability "
        lines = [f"{start}{probability:.3f}."]
        if self.rival is None:
            return "\n".join([*lines, "No other label is possible, given what is known."])
        rival = self._quoted(self.rival)
        own, total = self.log_odds(self.evidence), self.log_odds()
        lines.append(f"In nats before calibration, {label} leads {rival} by {total:+.2f}:")
        values = self.contributions()
        shown = [("own evidence", own)]
        shown += [(f"node {title(node)}", value) for node, value in list(values.items())[:SHOWN_NEIGHBOURS]]
        if len(values) > SHOWN_NEIGHBOURS:
            rest = sum(list(values.values())[SHOWN_NEIGHBOURS:])
            shown.append((f"{len(values) - SHOWN_NEIGHBOURS} more neighbours", rest))
        width = max(len(name) for name, _ in shown)
        lines += [f"  {name:<{width}}  {value:+.2f}" for name, value in shown]
        if total < 0:
            lines.append(f"By itself, {rival} is more likely here; {label} fits better into the labels of the graph.")
        far = [path for path in self.paths if len(path.nodes) > 2 and abs(path.nats) >= LEAST_SHOWN]
        if far:
            lines.append("Evidence from farther away:")
            lines += [f"  {' > '.join(title(node) for node in path.nodes)}  {path.nats:+.2f}" for path in far]
        if self.before is not None:
            lines.append(self._comparison())
        if not self.converged:
            lines.append("Belief propagation did not converge; the numbers are rough.")
        return "\n".join(lines)

    def _comparison(self) -> str:
        before = self.before
        assert before is not None
        label = before._quoted(before.label)
        old, new = (float(e.probabilities[before.label]) for e in (before, self))
        text = f"Before: label {label}. Its probability goes from {old:.3f} to {new:.3f}"
        if before.rival is None or not bool(self.log_belief[[before.label, before.rival]].isfinite().all()):
            return f"{text}."
        rival = before._quoted(before.rival)
        return f"{text}, its lead over {rival} from {before.log_odds():+.2f} to " + (
            f"{float(self.log_belief[before.label] - self.log_belief[before.rival]):+.2f} nats."
        )

    def _name(self, state: int) -> str:
        names = self.source.states.names
        return str(state) if names is None else names[state]

    def _quoted(self, state: int) -> str:
        return self.source.state_name(state)


def explain_node(
    model: FieldModel, field: PairwiseField, places: Places, states: States, task: int, node: int, label: int | None
) -> Explanation:
    """Solve a field and take the belief of a node apart.

    Args:
        model: solves the field.
        field: of one graph, for every task.
        places: nodes and edges of the graph.
        states: of the model.
        task: which task.
        node: which node.
        label: of the node; None decodes the field.
    """
    return Source(model, field, places, states, task).explain(node, label)


def _plain(values: Tensor) -> list[float | None]:
    return [value if value > -float("inf") else None for value in values.tolist()]
