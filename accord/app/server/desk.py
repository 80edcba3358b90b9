"""Answers requests with the model: bytes of JSON in, a status and bytes of JSON out. Runs in a worker process."""

import logging
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor
from torch_geometric.data import Data

from accord._memory import is_out_of_memory
from accord.app.console import in_command_line_words
from accord.app.scores import part_titles
from accord.app.server.limits import Limits, Refused, dump
from accord.app.server.requests import (
    DrawRequest,
    ExplainRequest,
    Graph,
    GraphRequest,
    KnownGraph,
    PredictRequest,
    SweepsRequest,
)
from accord.app.server.shelf import EXAMPLE, Shelf, node_names, said, without_labels
from accord.app.server.uploads import FORMATS
from accord.drawing import adjacency_of, nearest_nodes, place_nodes, state_colour
from accord.errors import AccordError, DataNotFoundError, GraphError, TooLargeError
from accord.estimator import NodeClassifier
from accord.graphs import graph_topology

Plain = dict[str, Any]
DIGITS_SHOWN = 5  # of a probability
MOST_NUMBERS = 20_000_000  # in one answer
log = logging.getLogger(__name__)


class Desk:
    """Answers what clients ask about one model.

    Args:
        name: of the model, for people.
        model: a fitted model.
        shelf: where graphs are found.
        limits: of the server.
    """

    def __init__(self, name: str, model: NodeClassifier, shelf: Shelf, limits: Limits) -> None:
        self.name, self.model, self.shelf, self.limits = name, model, shelf, limits
        self.states = list(model.label_names_ or map(str, range(model.shape_.num_states)))
        self.tasks = list(model.task_names or map(str, range(model.shape_.num_tasks)))
        self._answers: dict[str, Callable[[bytes], Plain]] = {
            "model": lambda _: self.describe(),
            "graphs": lambda _: self.list_graphs(),
            "upload": lambda body: self.look_at(Graph.model_validate_json(body)),
            "draw": lambda body: self.draw(DrawRequest.model_validate_json(body)),
            "answers": lambda body: self.answers(GraphRequest.model_validate_json(body)),
            "predict": lambda body: self.predict(PredictRequest.model_validate_json(body)),
            "explain": lambda body: self.explain(ExplainRequest.model_validate_json(body)),
            "sweeps": lambda body: self.sweeps(SweepsRequest.model_validate_json(body)),
        }

    def answer(self, kind: str, body: bytes) -> tuple[int, bytes]:
        """The status and the JSON for one request."""
        try:
            return 200, dump(self._answers[kind](body))
        except Refused as refusal:
            return refusal.status, refusal.body()
        except ValidationError as error:
            return refused(400 if _is_malformed(error) else 422, _first_problem(error), "request")
        except TooLargeError as error:
            return refused(413, in_command_line_words(error), "too_large")
        except DataNotFoundError as error:
            return refused(404, in_command_line_words(error), "data")
        except AccordError as error:
            return refused(422, in_command_line_words(error), "graph" if isinstance(error, GraphError) else "input")
        except (MemoryError, RuntimeError) as error:
            if is_out_of_memory(error):
                return refused(413, "There is not enough memory for this request. Send a smaller graph.", "too_large")
            log.exception("A request failed: %s", kind)
        except Exception:
            log.exception("A request failed: %s", kind)
        return refused(500, "The server failed. Its log has the details; please report them.", "failure")

    # What there is

    def describe(self) -> Plain:
        """The model and the limits."""
        model, shape = self.model, self.model.shape_
        limits = {name: value for name, value in vars(self.limits).items() if name != "workers"}
        return {
            "name": self.name,
            "method": model.method,
            "parts": part_titles(model.method),
            "states": self.states,
            "colours": [state_colour(state, len(self.states)) for state in range(len(self.states))],
            "tasks": self.tasks,
            "features": shape.num_features,
            "feature_names": model.feature_names,
            "edge_attributes": shape.edge_attributes,
            "directed": model.directed_,
            "formats": FORMATS,
            "limits": limits,
        }

    def list_graphs(self) -> Plain:
        """The graphs that clients can pick."""
        listed = enumerate(self.shelf.listed())
        return {"graphs": [_size(f"{EXAMPLE}{number}", name, graph) for number, (name, graph) in listed]}

    def look_at(self, asked: Graph) -> Plain:
        """Read an upload, and see whether the model can use it."""
        graph = self.shelf.find(asked)
        self.model.collate([without_labels(graph)])
        return _size(str(asked.id), "upload", graph)

    def draw(self, asked: DrawRequest) -> Plain:
        """Positions of the nodes; of a large graph, those around a node."""
        graph = self.shelf.find(asked.graph)
        edges, total, names = graph_topology(graph).edge_index, len(graph.x), node_names(graph)
        shown = torch.arange(total)
        if total > asked.most:
            degree = torch.bincount(edges.flatten(), minlength=total)
            centre = int(degree.argmax()) if asked.centre is None else find_node(asked.centre, names)
            shown = torch.from_numpy(nearest_nodes(adjacency_of(total, edges.numpy()), centre, asked.most))
        place = torch.full((total,), -1)
        place[shown] = torch.arange(len(shown))
        kept = place[edges]
        kept = kept[:, (kept >= 0).all(0)]
        position = place_nodes(len(shown), kept.numpy())
        return {
            "total": total,
            "shown": shown.tolist(),
            "names": names,
            "x": position[:, 0].round(4).tolist(),
            "y": position[:, 1].round(4).tolist(),
            "edges": kept.tolist(),
            "images": self._images(asked.graph.id, graph.x[shown]),
        }

    def _images(self, identity: str | None, x: Tensor) -> Any:
        width = self.shelf.images(identity)
        if width is None or x.shape[1] != width**2:
            return None
        return (x / x.abs().max().clamp_min(1e-9)).clamp(0, 1).double().numpy().round(2).tolist()

    # What the model says

    def predict(self, asked: PredictRequest) -> Plain:
        """Labels of graphs."""
        if len(asked.graphs) > self.limits.graphs:
            raise Refused(
                413, f"graphs: has {len(asked.graphs)} graphs; {self.limits.graphs} are allowed. Send fewer at once.",
                "too_large",
            )  # fmt: skip
        return {"states": self.states, "graphs": [self._labels(asked, n, one) for n, one in enumerate(asked.graphs)]}

    def _labels(self, asked: PredictRequest, number: int, one: KnownGraph) -> Plain:
        where = f"graphs[{number}]"
        graph = without_labels(self.shelf.find(one.graph, where))
        rules = self._rules(one.known, asked, graph, None, where)
        with warnings.catch_warnings(record=True) as caught, naming(where):
            warnings.simplefilter("always")
            labels = self.model.predict(graph, **rules)
            marginals = self.model.predict_proba(graph, **rules)
        sure = marginals.gather(-1, labels[..., None])[..., 0]
        return {
            "nodes": node_names(graph),
            "labels": _named(labels.tolist(), self.states),
            "probabilities": rounded(sure),
            "marginals": rounded(marginals) if asked.marginals else None,
            "warnings": said(caught),
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
        return graph, self._rules(asked.known, asked, graph, asked.task, "graph")

    def _rules(self, known: Plain, asked: Any, graph: Data, task: int | None, where: str) -> Plain:
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


class naming:
    """Puts the place of a graph in a request in front of the errors about it.

    Args:
        where: the place.
    """

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, AccordError):
            raise type(error)(f"{self.where}: {in_command_line_words(error)}") from error


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


def refused(status: int, message: str, code: str) -> tuple[int, bytes]:
    """The answer to a request that cannot be met."""
    return status, Refused(status, message, code).body()


def rounded(values: Tensor) -> Any:
    """Numbers as lists, with as many digits as are of use."""
    return values.double().numpy().round(DIGITS_SHOWN).tolist()


def finite(values: Tensor) -> list[float | None]:
    """Numbers as a list; JSON has no infinity."""
    return [round(value, 6) if value > float("-inf") else None for value in torch.as_tensor(values).double().tolist()]


def _size(identity: str, name: str, graph: Data) -> Plain:
    return {
        "id": identity,
        "name": name,
        "nodes": len(graph.x),
        "edges": int(graph_topology(graph).edge_index.shape[1]),
        "labelled": graph.y is not None and bool((graph.y >= 0).any()),
    }


def _named(labels: Any, states: list[str]) -> Any:
    return [_named(one, states) for one in labels] if isinstance(labels, list) else states[labels]


def _is_malformed(error: ValidationError) -> bool:
    return any(one["type"].startswith("json") for one in error.errors(include_input=False, include_url=False))


def _first_problem(error: ValidationError) -> str:
    """The first problem that pydantic found, in one sentence."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    more = f" ({error.error_count() - 1} more problems.)" if error.error_count() > 1 else ""
    return f"{where or 'The request'}: {first['msg']}. /openapi.json describes what is accepted.{more}"
