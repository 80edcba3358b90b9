"""Valid arguments for calls of public functions, drawn from a seeded generator; `fuzzing.py` breaks them."""

from collections.abc import Callable, Sequence

import torch
from support.breaking import Arguments, Random
from torch import Tensor
from torch_geometric.data import Batch, Data

from accord import NodeClassifier, PairwiseField
from accord.field import Combination, Pseudomarginals
from accord.graphs import topology


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
        "max_sweeps": rng.choice([0, 1, 3, 12]),  # few: these tests are about arguments, not convergence
        "tolerance": rng.choice([None, 0, 1e-3]),
        "backend": rng.choice(["auto", "reference"]),
        "start": rng.choice([None, start]),
    }


def search_arguments(rng: Random) -> Arguments:
    field = draw_field(rng)
    while field.replicas.numel() != 1:
        field = draw_field(rng)
    preference = normal(rng, field.num_nodes, field.num_states, dtype=field.node.dtype)
    return {"field": field, "preference": preference, "max_revisions": rng.choice([100, 10_000])}


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
    """The parts of a `Data`, which `build_data` puts together."""
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
    """A batch whose graph vector may be anything."""
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
    certain = rng.random() < 0.2  # some networks give exactly 0 and 1
    return {name: (v.sigmoid().round() if certain else v.sigmoid()) for name, v in (("node", node), ("edge", edge))}


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


def classifier_arguments(rng: Random) -> Arguments:
    """Parameters of a `NodeClassifier` for the graphs of `training_graphs`."""
    return {
        "method": rng.choice(["gnn", "spn", "crf"]),
        "encoder": rng.choice(["linear", "mlp", "GCN"]),
        "level": rng.choice(["node", "graph"]),
        "seed": rng.randrange(9),
        "preset": "accord",
        "benchmark": rng.choice([None, "cora", "digits"]),
        "num_states": rng.choice([None, 2, 3]),
        "label_names": None,
        "accelerator": "cpu",
        "features": rng.choice(["auto", "raw", "row-normalised", "standardised"]),
        "task_names": rng.choice([None, ["only"]]),
        "max_epochs": 0,
        "ensemble": 1,
        "refit": False,
    }


def resolve(**parameters: object) -> tuple[object, str]:
    """What `fit` would do with these parameters of a `NodeClassifier`."""
    model = NodeClassifier(**parameters)  # type: ignore[arg-type]
    graphs = [build_data(**data_arguments(Random(0)))]
    return model.resolve_recipe(graphs), model.resolve_features(graphs)


def fit_arguments(rng: Random) -> Arguments:
    """Parts of a labelled graph, and parameters that must fit it."""
    parts = data_arguments(rng)
    while not len(parts["x"]) > 1:  # type: ignore[arg-type]
        parts = data_arguments(rng)
    return {
        **parts,
        "feature_names": rng.choice([None, ["width", "height"]]),
        "label_names": rng.choice([None, ["no", "yes"]]),
        "task_names": rng.choice([None, ["only"]]),
        "features": rng.choice(["auto", "raw", "row-normalised", "standardised"]),
    }


def fit_and_predict(
    feature_names: object, label_names: object, task_names: object, features: object, **parts: object
) -> tuple[Tensor, Tensor]:
    """Labels and probabilities by an untrained model of the graph that it was fitted on."""
    graph = build_data(**parts)  # type: ignore[arg-type]
    if feature_names is not None and isinstance(graph, Data):
        graph.feature_names = feature_names
    model = NodeClassifier(
        "gnn",
        "linear",
        max_epochs=0,
        num_states=2,
        accelerator="cpu",
        label_names=label_names,  # type: ignore[arg-type]
        task_names=task_names,  # type: ignore[arg-type]
        features=features,  # type: ignore[arg-type]
    )
    model.fit(graph, graph)  # type: ignore[arg-type]
    return model.predict(graph), model.predict_proba(graph)  # type: ignore[arg-type]
