"""What the server answers, as types; the OpenAPI description is made of them."""

from pydantic import BaseModel, Field

Numbers = list[float | None]


class Problem(BaseModel):
    """Why a request was refused."""

    code: str = Field(description="A short name that programs can rely on.", examples=["too_large"])
    message: str = Field(description="What is wrong, where, and how to fix it.")


class Error(BaseModel):
    """The body of every refusal."""

    error: Problem


class Health(BaseModel):
    """Whether the server works."""

    status: str = Field(examples=["ok"])
    version: str
    waiting: int = Field(description="Requests that wait or are worked on.")


class Model(BaseModel):
    """The model and the limits of the server."""

    name: str
    method: str
    parts: dict[str, str] = Field(description="Titles of the parts of a model that label nodes.")
    states: list[str] = Field(description="Names of the states, in their order.")
    colours: list[str] = Field(description="A colour for each state.")
    tasks: list[str] = Field(description="Names of the label tasks.")
    features: int
    feature_names: list[str] | None
    edge_attributes: int
    directed: bool = Field(description="Whether the model reads in which direction an edge is stored.")
    formats: list[str] = Field(description="Names of files that can be uploaded.")
    limits: dict[str, float]


class GraphSize(BaseModel):
    """A graph that can be asked about by its id."""

    id: str
    name: str
    nodes: int
    edges: int
    labelled: bool


class GraphList(BaseModel):
    """The graphs that the server offers."""

    graphs: list[GraphSize]


class Labels(BaseModel):
    """Labels of one graph."""

    nodes: list[str] = Field(description="Names of the nodes, or their numbers.")
    labels: list[str] | list[list[str]] = Field(description="[nodes], or [nodes, tasks].")
    probabilities: list[float] | list[list[float]] = Field(description="Of the labels, each by itself.")
    marginals: list[list[float]] | list[list[list[float]]] | None = Field(
        None, description="[nodes, states], or [nodes, tasks, states], where they were asked for."
    )


class Predictions(BaseModel):
    """Labels of every graph of a request, in its order."""

    states: list[str]
    graphs: list[Labels]
    warnings: list[str]


class PartAnswer(BaseModel):
    """What one part of the model says."""

    labels: list[int] = Field(description="A state for each node.")
    marginals: list[list[float]] = Field(description="[nodes, states].")


class GraphAnswers(BaseModel):
    """What each part of the model says about the nodes of a graph, for one task."""

    truth: list[int] | None = Field(description="True labels; -1 where unknown.")
    parts: dict[str, PartAnswer]
    warnings: list[str]


class SweepAnswer(BaseModel):
    """Beliefs after a number of sweeps."""

    number: int
    marginals: list[list[float]] = Field(description="[nodes, states].")
    message_change: list[float] = Field(description="[edges]: largest change of a probability in a message.")
    residual: float | None = Field(description="Largest relative change of a log-message; null where it is infinite.")
    converged: bool


class Sweeps(BaseModel):
    """Beliefs before the first sweep and after each one."""

    edges: list[list[int]] = Field(description="[2, edges]: the edges of message_change.")
    sweeps: list[SweepAnswer]


class Drawing(BaseModel):
    """Positions of nodes."""

    total: int = Field(description="Nodes of the whole graph.")
    shown: list[int] = Field(description="Numbers of the nodes that are drawn.")
    names: list[str] = Field(description="Names of all nodes.")
    x: list[float]
    y: list[float]
    edges: list[list[int]] = Field(description="[2, edges] between drawn nodes, as positions in `shown`.")
    images: list[list[float]] | None = Field(description="Pixels from 0 to 1, where features are images.")


class Contribution(BaseModel):
    """What one neighbour contributes."""

    node: int
    name: str
    message: Numbers = Field(description="In nats, for each state; null is minus infinity.")


class Path(BaseModel):
    """How evidence of a far node reaches the node."""

    nodes: list[str] = Field(description="Names, from the far node to the node itself.")
    nats: float = Field(description="What it adds to the lead of the label over its rival.")


class Explanation(BaseModel):
    """Why a node has its label: evidence and messages add up to the log-belief, up to a constant."""

    node: int
    name: str
    label: int
    text: str = Field(description="The explanation in words.")
    evidence: Numbers
    messages: list[Contribution]
    log_belief: Numbers
    probabilities: list[float]
    rival: int | None = Field(description="The most likely other state; null where no other is possible.")
    paths: list[Path] = Field(description="How evidence of far nodes arrives, the strongest first.")
    converged: bool
