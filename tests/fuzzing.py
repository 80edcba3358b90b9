"""Broken input for the public doors, drawn from seeded generators.

A case is a call of one door: healthy arguments, of which none, one or a few are then broken. The same door and number
always give the same case, so `draw_case("propagate", 17).run()` repeats a failure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from breaking import (
    COUNTS,
    DATA,
    EDGES,
    ENDLESS,
    FACTORS,
    FIELDS,
    FORMS,
    NUMBERS,
    OPTIONS,
    POTENTIALS,
    SAMPLES,
    SEMIRINGS,
    SIZES,
    SWEEPS,
    VALID,
    WHOLE,
    Arguments,
    Breaker,
    Random,
    across,
    emptied,
    one_of,
    poked,
    scalar,
    too_short,
    wrong_object,
)
from torch import Tensor
from torch_geometric.data import Batch, Data

import accord
from accord import PairwiseField
from accord.field import Combination, Pseudomarginals, symmetrise
from accord.graphs import ego_network, ego_networks, graph_topology, topology
from accord.graphs._checks import check_features
from accord.inference import eliminate_beliefs, sample_exact, sample_gibbs

BROKEN = (0, 1, 2, 3)  # how many arguments are broken, and how often
BROKEN_WEIGHTS = (4, 60, 24, 12)


@dataclass(frozen=True)
class Door:
    """One public function: how to call it well, and what to do to each of its arguments."""

    cases: int
    call: Callable[..., object]
    healthy: Callable[[Random], Arguments]
    breakers: dict[str, Sequence[Breaker]]


@dataclass(frozen=True)
class Case:
    """One call."""

    door: str
    number: int
    call: Callable[..., object]
    arguments: Arguments
    done: tuple[str, ...]  # what was broken, and how

    def run(self) -> object:
        return self.call(**self.arguments)

    def __str__(self) -> str:
        listed = "\n".join(f"  {name} = {describe(value)}" for name, value in self.arguments.items())
        return f'fuzzing.draw_case("{self.door}", {self.number}), broken: {list(self.done)}\n{listed}'


def draw_case(door: str, number: int, broken: int | None = None) -> Case:
    """The same case for the same door and number, whatever was drawn before; `broken` arguments, or a random number."""
    rng = Random(f"{door} {number}")
    spec = DOORS[door]
    arguments = spec.healthy(rng)
    done = []
    for _ in range(rng.choices(BROKEN, BROKEN_WEIGHTS)[0] if broken is None else broken):
        name = rng.choice(list(spec.breakers))
        breaker = rng.choice(spec.breakers[name])
        arguments[name] = breaker(rng, arguments[name], arguments)
        done.append(f"{name}: {getattr(breaker, '__name__', breaker)}")
    return Case(door, number, spec.call, arguments, tuple(done))


def describe(value: object) -> str:
    if isinstance(value, Tensor):
        kind = f"{value.dtype} {list(value.shape)} on {value.device}, {value.layout}"
        plain = value.layout == torch.strided and not value.is_meta and value.numel() <= 40
        return f"tensor({value.tolist()}, {kind})" if plain else f"tensor({kind})"
    if isinstance(value, (PairwiseField, Pseudomarginals)):
        return f"{type(value).__name__}({', '.join(f'{k}={describe(v)}' for k, v in vars(value).items())})"
    return "ENDLESS" if isinstance(value, int) and abs(value) >= ENDLESS else repr(value)[:200]


def normal(rng: Random, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(rng.getrandbits(31)), dtype=dtype)


def draw_edges(rng: Random, graph: Sequence[int]) -> Tensor:
    """Edges within the graphs of a batch, each once, in random directions."""
    num_nodes = len(graph)
    pairs = [(s, t) for s in range(num_nodes) for t in range(s) if graph[s] == graph[t]]
    chosen = rng.sample(pairs, rng.randint(0, min(len(pairs), num_nodes + 1)))
    return torch.tensor([rng.sample(pair, 2) for pair in chosen], dtype=torch.long).reshape(-1, 2).t()


def field_arguments(rng: Random) -> Arguments:
    """Small fields of every kind: empty, isolated, loopy, batched, replicated, constrained, extreme."""
    num_nodes = rng.choice([0, 1, 2, 3, 3, 4, 4, 5])
    num_states = rng.choice([1, 2, 2, 3, 3, 4])
    batched = rng.random() < 0.4
    graph = sorted(rng.randint(0, 2) for _ in range(num_nodes)) if batched else [0] * num_nodes
    edge_index = draw_edges(rng, graph)
    lead = rng.choice([(), (), (), (1,), (2,), (2, 2)])
    dtype = rng.choice([torch.float32, torch.float64])
    scale = rng.choice([1.0, 1.0, 1.0, 0.0, 1e-30, 1e4, 1e30])
    shift = rng.choice([0.0, 0.0, 0.0, 1e8, -1e30])
    node = shift + scale * normal(rng, *lead, num_nodes, num_states, dtype=dtype)
    edge = scale * normal(rng, *rng.choice([lead, ()]), edge_index.shape[1], num_states, num_states, dtype=dtype)
    if rng.random() < 0.3:
        sparing = rng.choice([1.3, 1.3, 0.3])
        node, edge = (v.masked_fill(normal(rng, *v.shape) > sparing, -torch.inf) for v in (node, edge))
    return {
        "edge_index": edge_index,
        "node": node,
        "edge": edge,
        "graph": torch.tensor(graph, dtype=torch.long) if batched else None,
        "num_graphs": rng.choice([None, 3]) if batched else None,
    }


def draw_field(rng: Random) -> PairwiseField:
    return PairwiseField(**field_arguments(rng))  # type: ignore[arg-type]


def with_field(rng: Random, **others: object) -> Arguments:
    return {"field": draw_field(rng), **others}


def labelling_arguments(rng: Random) -> Arguments:
    field = draw_field(rng)
    shape = (*rng.choice([(), field.replicas]), field.num_nodes)
    labels = torch.randint(0, field.num_states, shape, generator=torch.Generator().manual_seed(rng.getrandbits(31)))
    return {"field": field, "labels": labels}


def forbid_arguments(rng: Random) -> Arguments:
    field = draw_field(rng)
    pairs = [[rng.randrange(field.num_states) for _ in range(2)] for _ in range(rng.randint(0, 3))]
    listed = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    edges = torch.arange(field.num_edges)[: rng.randint(0, 3)]
    return {
        "field": field,
        "pairs": rng.choice([pairs, [tuple(pair) for pair in pairs], listed]),
        "edges": rng.choice([None, edges]),
        "symmetric": rng.random() < 0.5,
    }


def potentials_arguments(rng: Random) -> Arguments:
    field = draw_field(rng)
    return {
        "field": field,
        "node": rng.choice([None, torch.zeros_like(field.node)]),
        "edge": rng.choice([None, torch.ones_like(field.edge)]),
    }


def propagate_arguments(rng: Random) -> Arguments:
    field = draw_field(rng)
    start = torch.zeros(*field.replicas, 2 * field.num_edges, field.num_states, dtype=field.node.dtype)
    appearance = torch.full((field.num_edges,), 0.5)
    return {
        "field": field,
        "semiring": rng.choice(["sum", "max"]),
        "damping": rng.choice([0, 0.0, 0.5]),
        "edge_appearance": rng.choice([1, 1.0, 0.7, "spanning", appearance, appearance.expand(*field.replicas, -1)]),
        "max_sweeps": rng.choice([0, 1, 3, 12]),  # few, to be quick: what matters here is in the arguments
        "tolerance": rng.choice([None, 0, 1e-3]),
        "backend": rng.choice(["auto", "reference"]),
        "start": rng.choice([None, start]),
    }


def topology_arguments(rng: Random) -> Arguments:
    arguments = field_arguments(rng)
    edge_index = arguments["edge_index"]
    assert isinstance(edge_index, Tensor) and isinstance(arguments["node"], Tensor)
    index = rng.choice([edge_index, torch.cat([edge_index, edge_index.flip(0)], 1)])
    return {
        "edge_index": index,
        "num_nodes": int(arguments["node"].shape[-2]),
        "graph": arguments["graph"],
        "num_graphs": arguments["num_graphs"],
    }


def data_arguments(rng: Random) -> Arguments:
    """The parts of a `Data`, which the door puts together."""
    num_nodes = rng.choice([0, 1, 2, 3, 4, 6])
    edge_index = draw_edges(rng, [0] * num_nodes)
    return {
        "edge_index": edge_index,
        "x": normal(rng, num_nodes, 2),
        "y": torch.zeros(num_nodes, dtype=torch.long),
        "edge_attr": rng.choice([None, normal(rng, edge_index.shape[1], 2)]),
        "num_nodes": rng.choice([None, num_nodes]),
        "kind": Data,
    }


def build_data(
    edge_index: object, x: object, y: object, edge_attr: object, num_nodes: object, kind: Callable[..., object]
) -> object:
    parts = {"edge_index": edge_index, "x": x, "y": y, "edge_attr": edge_attr, "num_nodes": num_nodes}
    return kind(**{name: part for name, part in parts.items() if part is not None})


def batch_of(**parts: object) -> object:
    """A batch put together by hand, whose graph vector may be anything."""
    return Batch(batch=parts.pop("y", None), **parts)


def ego_arguments(rng: Random) -> Arguments:
    parts = data_arguments(rng)
    assert isinstance(parts["x"], Tensor)
    return {**parts, "node": rng.randrange(max(len(parts["x"]), 1))}


def egos_arguments(rng: Random) -> Arguments:
    parts = data_arguments(rng)
    assert isinstance(parts["x"], Tensor)
    nodes = [rng.randrange(len(parts["x"])) for _ in range(rng.randint(0, 3))] if len(parts["x"]) else []
    return {**parts, "nodes": rng.choice([nodes, torch.tensor(nodes, dtype=torch.long)])}


def carry_arguments(rng: Random) -> Arguments:
    graph = topology(draw_edges(rng, [0] * 5), 5)
    return {"graph": graph, "attributes": normal(rng, graph.num_edges, rng.randint(0, 3))}


def features_arguments(rng: Random) -> Arguments:
    num_nodes = rng.randint(0, 5)
    dtype = rng.choice([torch.float32, torch.float64, torch.float16, torch.bfloat16])
    return {"x": normal(rng, num_nodes, rng.randint(0, 3)).to(dtype), "num_nodes": num_nodes, "where": "fuzz"}


def logits_arguments(rng: Random) -> Arguments:
    arguments = field_arguments(rng)
    return {"node": arguments["node"], "edge": arguments["edge"], "sharpness": rng.choice([0, 1, 0.5, 3.0])}


def probabilities_arguments(rng: Random) -> Arguments:
    arguments = field_arguments(rng)
    node, edge = arguments["node"], arguments["edge"]
    assert isinstance(node, Tensor) and isinstance(edge, Tensor)
    sure = rng.random() < 0.2  # some networks say 0 and 1
    return {name: (v.sigmoid().round() if sure else v.sigmoid()) for name, v in (("node", node), ("edge", edge))}


def combination_arguments(rng: Random) -> Arguments:
    arguments = field_arguments(rng)
    node, edge = arguments.pop("node"), arguments.pop("edge")
    assert isinstance(node, Tensor) and isinstance(edge, Tensor)
    return {
        "node": node.log_softmax(-1).nan_to_num(-1.0, neginf=-torch.inf),
        "edge": edge.flatten(-2).log_softmax(-1).nan_to_num(-1.0, neginf=-torch.inf).view_as(edge),
        "normaliser": rng.choice(["own", "node"]),
        "power": rng.choice([0, 1, 0.5]),
        "node_weight": rng.choice([0, 1, 2.0]),
        "marginals": None,
        **arguments,
    }


def combine(
    node: object,
    edge: object,
    marginals: object,
    normaliser: object,
    power: object,
    node_weight: object,
    **graph: object,
) -> object:
    given = Pseudomarginals(node, edge) if marginals is None else marginals  # type: ignore[arg-type]
    how = Combination(normaliser=normaliser, power=power, node_weight=node_weight)  # type: ignore[arg-type]
    return how.field(given, **graph)  # type: ignore[arg-type]


def symmetrise_arguments(rng: Random) -> Arguments:
    num_states = rng.randint(1, 3)
    shape = (*rng.choice([(), (2,)]), rng.randint(0, 3), num_states, num_states)
    return {"forward": normal(rng, *shape), "backward": normal(rng, *shape)}


def sample_arguments(rng: Random) -> Arguments:
    seeded = torch.Generator().manual_seed(0)
    return with_field(rng, num_samples=rng.randint(1, 3), generator=rng.choice([None, seeded]))


def gibbs_arguments(rng: Random) -> Arguments:
    arguments = {**sample_arguments(rng), "sweeps": rng.randint(0, 2), "start": None}
    field = arguments["field"]
    assert isinstance(field, PairwiseField)
    if rng.random() < 0.5:
        arguments["start"] = torch.zeros(field.num_nodes, dtype=torch.long)
    return arguments


DOORS: dict[str, Door] = {
    "PairwiseField": Door(
        2400,
        PairwiseField,
        field_arguments,
        {"edge_index": EDGES, "node": POTENTIALS, "edge": POTENTIALS, "graph": WHOLE, "num_graphs": COUNTS},
    ),
    "PairwiseField.to": Door(
        200,
        lambda field, target: field.to(target),
        lambda rng: with_field(rng, target=rng.choice(["cpu", torch.device("cpu"), torch.float32, torch.float64])),
        {
            "target": [
                one_of("unknown", "nowhere", "cuda:99", "meta", torch.device("meta"), torch.float16, torch.int64),
                one_of("complex", torch.complex64, torch.bool, 99, -1),
                wrong_object,
            ]
        },
    ),
    "PairwiseField.clamp": Door(800, lambda field, labels: field.clamp(labels), labelling_arguments, {"labels": WHOLE}),
    "PairwiseField.score": Door(800, lambda field, labels: field.score(labels), labelling_arguments, {"labels": WHOLE}),
    "PairwiseField.forbid": Door(
        800,
        lambda field, pairs, edges, symmetric: field.forbid(pairs, edges, symmetric),
        forbid_arguments,
        {
            "pairs": [
                *WHOLE,
                one_of("bad list", [(0, 1), (1,)], [(0, 9)], [(-1, 0)], [(0.5, 1)], [0], "ab", ["ab"], [(2**70, 0)]),
                one_of("bad triple", [(0, 0, 0)], [(None, 0)], [(True, False)], [[(0, 1)]], [("a", "b")], 7),
            ],
            "edges": WHOLE,
            "symmetric": [wrong_object],
        },
    ),
    "PairwiseField.with_potentials": Door(
        800,
        lambda field, node, edge: field.with_potentials(node, edge),
        potentials_arguments,
        {"node": POTENTIALS, "edge": POTENTIALS},
    ),
    "propagate": Door(2400, accord.propagate, propagate_arguments, {"field": FIELDS, **OPTIONS}),
    "enumerate_beliefs": Door(
        300,
        accord.enumerate_beliefs,
        lambda rng: with_field(rng, semiring=rng.choice(["sum", "max"])),
        {"field": FIELDS, "semiring": SEMIRINGS},
    ),
    "eliminate_beliefs": Door(
        300,
        eliminate_beliefs,
        lambda rng: with_field(rng, semiring=rng.choice(["sum", "max"]), max_table=2**22),
        {"field": FIELDS, "semiring": SEMIRINGS, "max_table": COUNTS},
    ),
    "sample_exact": Door(
        300,
        sample_exact,
        sample_arguments,
        {"field": FIELDS, "num_samples": SAMPLES},
    ),
    "sample_gibbs": Door(
        400,
        sample_gibbs,
        gibbs_arguments,
        {"field": FIELDS, "num_samples": SAMPLES, "sweeps": SWEEPS, "start": WHOLE},
    ),
    "topology": Door(
        1000,
        topology,
        topology_arguments,
        {"edge_index": [*WHOLE, across], "num_nodes": COUNTS, "graph": WHOLE, "num_graphs": COUNTS},
    ),
    "Topology.carry": Door(
        200,
        lambda graph, attributes: graph.carry(attributes),
        carry_arguments,
        {"attributes": [*FORMS, too_short, scalar, emptied]},
    ),
    "graph_topology": Door(
        400,
        lambda **parts: graph_topology(build_data(**parts)),
        data_arguments,
        {**{name: DATA[name] for name in ("edge_index", "num_nodes", "kind")}, "x": FORMS},
    ),
    "graph_topology (batch)": Door(
        300,
        lambda **parts: graph_topology(build_data(**parts)),
        lambda rng: {**data_arguments(rng), "kind": batch_of},
        {**DATA, "y": WHOLE},
    ),
    "ego_network": Door(
        300,
        lambda node, **parts: ego_network(build_data(**parts), node),
        ego_arguments,
        {**DATA, "node": [one_of("bad node", -1, 99, 2**70, 1.0, "1", None, True, torch.tensor(0))]},
    ),
    "ego_networks": Door(
        300,
        lambda nodes, **parts: ego_networks(build_data(**parts), nodes),
        egos_arguments,
        {**DATA, "nodes": [*WHOLE, one_of("bad nodes", [-1], [99], [2**70], [0.5], ["a"], 7, [[0]], [None])]},
    ),
    "check_features": Door(
        400,
        check_features,
        features_arguments,
        {"x": [*FORMS, *SIZES, *VALID, *NUMBERS], "num_nodes": [one_of("other count", 7, 9)]},
    ),
    "Pseudomarginals.from_logits": Door(
        800,
        Pseudomarginals.from_logits,
        logits_arguments,
        {"node": POTENTIALS, "edge": POTENTIALS, "sharpness": FACTORS},
    ),
    "Pseudomarginals.from_probabilities": Door(
        600,
        Pseudomarginals.from_probabilities,
        probabilities_arguments,
        {name: [*POTENTIALS, poked("improbable", -0.1, 1.1, 2.0)] for name in ("node", "edge")},
    ),
    "Combination.field": Door(
        1000,
        combine,
        combination_arguments,
        {
            "node": POTENTIALS,
            "edge": POTENTIALS,
            "marginals": [wrong_object],
            "normaliser": [one_of("unknown", "rows", "", 3, None, b"own", [], {}, 1.5)],
            "power": FACTORS,
            "node_weight": FACTORS,
            "edge_index": EDGES,
            "graph": WHOLE,
            "num_graphs": COUNTS,
        },
    ),
    "symmetrise": Door(
        400,
        symmetrise,
        symmetrise_arguments,
        {name: [*FORMS, *SIZES, *VALID] for name in ("forward", "backward")},
    ),
}
