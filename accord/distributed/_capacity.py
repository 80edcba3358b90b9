"""Capacity arithmetic: what one large graph takes on so many machines, from figures that were measured on one."""

import math
from dataclasses import dataclass

import numpy as np

from accord.errors import OptionError
from accord.inference.kernels.cpu._solve import MAX_STATES

NUMBER = 4  # bytes of a float32


@dataclass(frozen=True)
class Figures:
    """What was measured for fields of one number of states.

    Args:
        edge_bytes: memory of an edge: its table, its messages, and what the kernel keeps.
        node_bytes: memory of a node.
        edge_seconds: seconds of one core for an edge in a sweep.
        error: the largest relative error of the memory of a measured run; where no run had so many states, of a figure.
    """

    edge_bytes: float
    node_bytes: float
    edge_seconds: float
    error: float


# By number of states, from results/distributed/propagation.json (benchmarks/distributed/propagation.py), on CPUs.
MEASURED = {
    2: Figures(85.3, 56.01, 3.502e-09, 0.196),
    3: Figures(105.7, 99.31, 3.930e-09, 0.003),
    10: Figures(906.8, 327.1, 3.319e-08, 0.022),
}
# Between two processes of one machine over gloo, from the same file: packing, sending and unpacking of ghosts.
MESSAGE_SECONDS, BYTE_SECONDS = 3.032e-4, 9.285e-10
POWERS = {"edge_bytes": (0, 1, 2), "node_bytes": (0, 1), "edge_seconds": (0, 1, 2)}  # of K, of which figures are sums


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
        if not (0 <= self.edges < math.inf and 1 <= self.nodes < math.inf and self.states >= 1):
            raise OptionError(
                f"capacity: {self.edges:g} edges, {self.nodes:g} nodes and {self.states} states make no graph. Give at "
                "least one node and one state."
            )
        if self.states > MAX_STATES:
            raise OptionError(
                f"capacity: the measured kernel takes up to {MAX_STATES} states, not {self.states}. Give fewer."
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
        for name, unit in (("memory", " bytes"), ("cores", ""), ("bandwidth", " bytes a second")):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise OptionError(f"capacity: {name} is {value:g}{unit}. Give a finite number above zero.")
        if not 0 <= self.latency < math.inf:
            raise OptionError(f"capacity: latency is {self.latency:g}. Give a finite number of seconds, at least 0.")


@dataclass(frozen=True)
class Demand:
    """What each of so many machines needs.

    Args:
        machines: how many.
        memory: bytes of its part of the field: tables, messages and what the kernel keeps.
        sent: bytes that it sends in a sweep.
        computing: seconds that it computes in a sweep.
        exchanging: seconds that the exchange takes by itself; some of it overlaps with computing. The network and what
            the measured exchange takes for each byte are both limits.
    """

    machines: int
    memory: float
    sent: float
    computing: float
    exchanging: float


def figures(states: int) -> Figures:
    """Measured figures; where there are none for so many states, those of a fit to what was measured.

    Costs are sums of a fixed part, of messages that grow with K, and of tables that grow with K^2. None of these can be
    negative, so neither can their coefficients.
    """
    if states in MEASURED:
        return MEASURED[states]
    found = {name: _fit(name, powers, states) for name, powers in POWERS.items()}
    values = {name: value for name, (value, _) in found.items()}
    return Figures(**values, error=max(error for _, error in found.values()))


def reliability(states: int) -> str:
    """How far figures for so many states can be trusted, in words."""
    error, known = figures(states).error, [*MEASURED]
    if states in MEASURED:
        return f"With {states} states, memory that was measured differs from these figures by up to {error:.1%}."
    listed = f"{', '.join(map(str, known[:-1]))} and {known[-1]}"
    text = f"{states} states were not measured: figures are fitted to {listed} states, with errors of up to {error:.0%}"
    return f"{text}. Beyond {known[-1]} states they are extrapolated." if states > known[-1] else f"{text}."


def _fit(name: str, powers: tuple[int, ...], states: int) -> tuple[float, float]:
    """A figure by least squares of relative errors, and the largest of these at the measured numbers of states."""
    from scipy.optimize import nnls  # scipy is slow to load

    measured = np.array([getattr(one, name) for one in MEASURED.values()])
    terms = np.array([[float(one) ** power for power in powers] for one in MEASURED])
    weights, _ = nnls(terms / measured[:, None], np.ones(len(measured)))
    value = sum(weight * float(states) ** power for weight, power in zip(weights, powers, strict=True))
    return float(value), float(np.abs(terms @ weights / measured - 1).max())


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
        exchanging=sent * max(1 / machine.bandwidth, BYTE_SECONDS)
        + (machines - 1) * MESSAGE_SECONDS
        + (machine.latency if machines > 1 else 0.0),
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
