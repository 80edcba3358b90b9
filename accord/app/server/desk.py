"""Answers requests with the model: bytes of JSON in, a status and bytes of JSON out. Runs in a worker process."""

import logging
from collections.abc import Callable
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor
from torch_geometric.data import Data

from accord._memory import is_out_of_memory
from accord.app.console import in_command_line_words
from accord.app.scores import part_titles
from accord.app.server.limits import Limits, Refused, dump
from accord.app.server.questions import Plain, Questions, find_node
from accord.app.server.requests import (
    DrawRequest,
    ExplainRequest,
    Graph,
    GraphRequest,
    PredictRequest,
    SweepsRequest,
)
from accord.app.server.shelf import EXAMPLE, Shelf, node_names, without_labels
from accord.app.server.uploads import FORMATS
from accord.drawing import adjacency_of, nearest_nodes, place_nodes, state_colour
from accord.errors import AccordError, DataNotFoundError, GraphError, TooLargeError
from accord.estimator import NodeClassifier
from accord.graphs import graph_topology

log = logging.getLogger(__name__)


class Desk(Questions):
    """Answers what clients ask about one model.

    Args:
        name: of the model, for people.
        model: a fitted model.
        shelf: where graphs are found.
        limits: of the server.
    """

    def __init__(self, name: str, model: NodeClassifier, shelf: Shelf, limits: Limits) -> None:
        super().__init__(model, shelf, limits)
        self.name = name
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


def refused(status: int, message: str, code: str) -> tuple[int, bytes]:
    """The answer to a request that cannot be met."""
    return status, Refused(status, message, code).body()


def _size(identity: str, name: str, graph: Data) -> Plain:
    return {
        "id": identity,
        "name": name,
        "nodes": len(graph.x),
        "edges": int(graph_topology(graph).edge_index.shape[1]),
        "labelled": graph.y is not None and bool((graph.y >= 0).any()),
    }


def _is_malformed(error: ValidationError) -> bool:
    return any(one["type"].startswith("json") for one in error.errors(include_input=False, include_url=False))


def _first_problem(error: ValidationError) -> str:
    """The first problem that pydantic found, in one sentence."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    more = f" ({error.error_count() - 1} more problems.)" if error.error_count() > 1 else ""
    return f"{where or 'The request'}: {first['msg']}. /openapi.json describes what is accepted.{more}"
