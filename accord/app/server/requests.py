"""What clients may ask, as types with examples; the OpenAPI description is made of them."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

TRIANGLE: Any = {  # fits no model in particular; the page and the documentation show real ones
    "x": [[0.1, 1.0], [0.9, 0.0], [0.8, 0.2]],
    "edge_index": [[0, 1, 2], [1, 2, 0]],
}
NAMED: Any = {"id": "test-0"}  # the first of the graphs that the server offers
NUMBERS = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
WHOLE = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}


def _listed(schema: dict[str, Any], description: str) -> Any:
    """An array that the reader of .json files checks; its messages are better than those of a schema."""
    return Annotated[Any, WithJsonSchema({**schema, "description": description})]


class Asked(BaseModel):
    """Base of all requests; unknown keys are refused, because they are mistakes."""

    model_config = ConfigDict(extra="forbid")


class Graph(BaseModel):
    """A graph: either the `id` of an upload or of a listed graph, or the arrays of a .json file."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [TRIANGLE, NAMED]})

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}$", description="Given by POST or GET /api/graphs.")] | None = (
        None
    )
    x: _listed(NUMBERS, "Features [nodes, features].") = None  # type: ignore[valid-type]
    edge_index: _listed(WHOLE, "Edges [2, edges]: numbers of nodes, from 0.") = None  # type: ignore[valid-type]
    y: _listed({"type": "array"}, "True labels [nodes] or [nodes, tasks]; null where unknown.") = None  # type: ignore[valid-type]
    edge_attr: _listed(NUMBERS, "Edge attributes [edges, attributes].") = None  # type: ignore[valid-type]
    feature_names: list[str] | None = Field(None, description="Names of the columns of x.")


Label = Annotated[int | str, Field(description="A state, by number or by name.")]
Known = Annotated[
    dict[str, Label | None],
    Field(description="Labels that are known: node (its name, or its number as text) -> label.", examples=[{"0": 1}]),
]
Pairs = Annotated[
    list[tuple[Label, Label]],
    Field(description="Pairs of labels.", max_length=10_000, examples=[[["apple", "pear"]]]),
]
NO_PAIRS: list[tuple[Any, Any]] = []


class Constraints(Asked):
    """What the labels of a graph must obey."""

    forbid: Pairs = Field(NO_PAIRS, description="Pairs that no edge may have, in either order.")
    forbid_directed: Pairs = Field(NO_PAIRS, description="Pairs (source, target) that no edge may have.")
    require: Pairs = Field(NO_PAIRS, description="The only pairs that an edge may have; empty allows all.")


class KnownGraph(Asked):
    """A graph with labels that are known."""

    graph: Graph
    known: Known = {}


class PredictRequest(Constraints):
    """Label one graph or many."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"graphs": [{"graph": NAMED, "known": {"0": 1}}]}]}
    )

    graphs: list[KnownGraph] = Field(min_length=1)
    marginals: bool = Field(False, description="Give the probability of every state.")


class GraphRequest(Constraints):
    """Ask about one graph and one of the model's label tasks."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"graph": NAMED, "known": {"0": 1}}]})

    graph: Graph
    known: Known = {}
    task: int = Field(0, ge=0, le=1_000_000, description="Number of the label task; 0 where a node has one label.")


class ExplainRequest(GraphRequest):
    """Ask why a node has its label."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"graph": NAMED, "node": "0"}]})

    node: str = Field(description="Name of the node, or its number as text.")
    without: str | None = Field(None, description="A neighbour: explain as if there were no edge to it.")


class SweepsRequest(GraphRequest):
    """Ask for the beliefs after each sweep of belief propagation."""

    max_sweeps: int = Field(12, ge=1, le=50)


class DrawRequest(Asked):
    """Ask for positions of nodes."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"graph": NAMED}]})

    graph: Graph
    centre: str | None = Field(None, description="Draw the surroundings of this node, if the graph is too large.")
    most: int = Field(5000, ge=1, le=20_000, description="Draw at most so many nodes.")
