"""Capacity arithmetic: what one large graph takes on so many machines, from figures that were measured on one."""

import math
from dataclasses import dataclass

from accord.errors import OptionError

NUMBER = 4  # bytes of a float32


@dataclass(frozen=True)
class Figures:
    """What was measured for fields of one number of states.

    Args:
        edge_bytes: memory of an edge: its table, its messages, and what the kernel keeps.
        node_bytes: memory of a node.
        edge_seconds: seconds of one core for an edge in a sweep.
    """

    edge_bytes: float
    node_bytes: float
    edge_seconds: float


# By number of states, from results/distributed/propagation.json (benchmarks/distributed/propagation.py), on CPUs.
MEASURED = {
    2: Figures(85.3, 56.01, 3.502e-09),
    3: Figures(105.7, 99.31, 3.930e-09),
    10: Figures(906.8, 327.1, 3.319e-08),
}


@dataclass(frozen=True, kw_only=True)
class LargeGraph:
    """A graph that is to be labelled.

    Args:
        edges: undirected edges.
        nodes: nodes.
        states: states of a node.
        cut: share of the edges that join two machines; None for nodes dealt out at random (by hash), which cuts
            nearly all of them.
    """

    edges: float
    nodes: float
    states: int
    cut: float | None = None

    def __post_init__(self) -> None:
        if not (self.edges >= 0 and self.nodes >= 1 and self.states >= 1):
            raise OptionError(
                f"capacity: {self.edges:g} edges, {self.nodes:g} nodes and {self.states} states make no graph. Give at "
                "least one node and one state."
            )
        if self.cut is not None and not 0 <= self.cut <= 1:
            raise OptionError(f"capacity: the share of cut edges is {self.cut:g}. Give a number between 0 and 1.")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One of several equal machines; a process on each uses all its cores.

    Args:
        memory: bytes that a field may take.
        cores: processor cores.
        bandwidth: bytes a second that it sends and, at the same time, receives.
        latency: seconds until a message arrives.
    """

    memory: float
    cores: int
    bandwidth: float
    latency: float = 5e-5

    def __post_init__(self) -> None:
        if not (self.memory > 0 and self.cores >= 1 and self.bandwidth > 0 and self.latency >= 0):
            raise OptionError(f"capacity: {self} is no machine. Give memory, cores and bandwidth above zero.")


@dataclass(frozen=True)
class Demand:
    """What each of so many machines needs.

    Args:
        machines: how many.
        memory: bytes of its part of the field: tables, messages and what the kernel keeps.
        sent: bytes that it sends in a sweep.
        computing: seconds that it computes in a sweep.
        exchanging: seconds that the exchange takes by itself; some of it overlaps with computing.
    """

    machines: int
    memory: float
    sent: float
    computing: float
    exchanging: float


def figures(states: int) -> Figures:
    """Measured figures, carried over to another number of states.

    Costs are a sum of a fixed part, messages that grow with K and tables that grow with K^2, so the parabola through
    the three measured points is taken.
    """

    def at(name: str) -> float:
        total = 0.0
        for one, measured in MEASURED.items():
            others = [other for other in MEASURED if other != one]
            total += getattr(measured, name) * math.prod((states - other) / (one - other) for other in others)
        return total

    return Figures(at("edge_bytes"), at("node_bytes"), at("edge_seconds"))


def demand(graph: LargeGraph, machine: Machine, machines: int) -> Demand:
    """What each of `machines` machines needs for belief propagation on a graph.

    An edge between two machines is held by both. A border node's total travels once to each machine that has a
    neighbour of it.
    """
    each = figures(graph.states)
    others = (machines - 1) / machines
    cut = others if graph.cut is None else min(graph.cut, others) if machines > 1 else 0.0
    held = graph.edges * (1 + cut) / machines
    crossing = 2 * graph.edges * cut / machines  # arcs from other machines' nodes to this one's
    strangers = graph.nodes * others
    # If crossing arcs start at random nodes of other machines, this many different nodes are among them.
    ghosts = strangers * -math.expm1(-crossing / strangers) if strangers else 0.0
    rows = graph.nodes / machines + ghosts
    sent = ghosts * graph.states * NUMBER
    return Demand(
        machines,
        memory=held * each.edge_bytes + rows * each.node_bytes,
        sent=sent,
        computing=held * each.edge_seconds / machine.cores,
        exchanging=sent / machine.bandwidth + (machine.latency if machines > 1 else 0.0),
    )


def fewest_machines(graph: LargeGraph, machine: Machine) -> Demand | None:
    """The fewest machines whose memory holds a graph; None if a million are too few."""
    low, high = 0, 1
    while demand(graph, machine, high).memory > machine.memory:
        low, high = high, 2 * high
        if high > 2**20:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if demand(graph, machine, middle).memory <= machine.memory else (middle, high)
    return demand(graph, machine, high)
