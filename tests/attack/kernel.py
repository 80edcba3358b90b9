"""Random fields through the native kernel and the reference, which must agree."""

from pathlib import Path
from random import Random

import torch
from attack.harness.trial import Skip, Trial
from torch import Tensor

from accord import PairwiseField, propagate
from accord.errors import InfeasibleError
from accord.inference import Beliefs
from accord.inference.kernels import cpu

FIELDS = 20  # in one case
MOST_ENTRIES = 60_000  # of all edge tables of a field
MOST_ROUNDING = 0.01  # of potentials, beside which a message of size 1 is exact enough to divide by
ERRORS = {torch.float32: 3e-4, torch.float64: 1e-9}  # relative to the largest log-message, or to 1


class Kernel:
    """Native against reference."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        if cpu.unavailable() is not None:
            raise Skip(f"there is no native kernel ({cpu.unavailable()})")

    def attempt(self, trial: Trial) -> None:
        """Twenty fields."""
        for place in range(FIELDS):
            field = draw_field(trial.rng)
            options = draw_options(trial.rng, field)
            trial.tried["fields"] += 1
            problem = compare(field, options)
            if problem:
                shown = {name: value if not isinstance(value, Tensor) else "tensor" for name, value in options.items()}
                trial.fail(f"field {place}: {describe(field)}, {shown}: {problem}")


def describe(field: PairwiseField) -> str:
    return (
        f"{field.num_nodes} nodes, {field.num_edges} edges, {field.num_states} states, replicas {field.replicas}, "
        f"{field.num_graphs} graphs, {field.node.dtype}"
    )


def draw_field(rng: Random) -> PairwiseField:
    """Sizes, degrees, forbidden entries and magnitudes of every kind."""
    states = rng.choice([1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 51, 63, 64, 65, 71, 130])
    lead = rng.choice([(), (), (), (1,), (2,), (3,), (2, 2)])
    nodes = rng.choice([1, 2, 3, 5, 8, 17, 33, 64, 65, 129, 300])
    graphs = rng.choice([1, 1, 2, 3, 7])
    generator = torch.Generator().manual_seed(rng.getrandbits(31))
    graph = torch.randint(0, graphs, (nodes,), generator=generator).sort().values
    most = MOST_ENTRIES // (states * states * max(1, torch.Size(lead).numel()))
    index = draw_edges(rng, graph, min(most, rng.choice([0, 1, nodes - 1, 2 * nodes, 6 * nodes])), generator)
    dtype = rng.choice([torch.float32, torch.float64])
    node = draw_potentials(rng, (*lead, nodes, states), dtype, generator)
    edge = draw_potentials(rng, (*rng.choice([lead, ()]), index.shape[1], states, states), dtype, generator)
    return PairwiseField(index, node, edge, graph, graphs)


def draw_edges(rng: Random, graph: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Different edges within graphs, at random, in a star or in a path; in random order and direction."""
    nodes = len(graph)
    source = torch.randint(0, nodes, (2 * max(count, 0) + 1,), generator=generator)
    target = torch.randint(0, nodes, source.shape, generator=generator)
    form = rng.choice(["random", "random", "star", "path"])
    if form == "star":
        source = torch.full_like(source, rng.randrange(nodes))
    elif form == "path":
        target = (source + 1).clamp(max=nodes - 1)
    low, high = torch.minimum(source, target), torch.maximum(source, target)
    key = (low * nodes + high)[(low != high) & (graph[low] == graph[high])].unique()
    key = key[torch.randperm(len(key), generator=generator)[: max(count, 0)]]
    index = torch.stack([key // nodes, key % nodes])
    turned = torch.rand(index.shape[1], generator=generator) < 0.5
    index[:, turned] = index[:, turned].flip(0)
    return index


def draw_potentials(rng: Random, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    scale = rng.choice([0.0, 1e-30, 0.1, 1.0, 1.0, 3.0, 30.0, 300.0, 1e4, 1e8])
    values = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    if rng.random() < 0.2:
        values = values.round()  # ties
    if rng.random() < 0.1:
        values = values + rng.choice([-1e6, 1e6])
    forbidden = rng.choice([0.0, 0.0, 0.0, 0.05, 0.2, 0.5])
    off = torch.rand(shape, generator=generator) < forbidden
    if rng.random() < 0.3 and len(shape) > 1:
        off &= torch.rand(shape[-1], generator=generator) < 0.5  # whole columns stay free
    return values.to(dtype).masked_fill(off, -torch.inf)


def draw_options(rng: Random, field: PairwiseField) -> dict[str, object]:
    appearance = 0.3 + 0.7 * torch.rand(field.num_edges, generator=torch.Generator().manual_seed(rng.getrandbits(31)))
    return {
        "semiring": rng.choice(["sum", "max"]),
        "damping": rng.choice([0.0, 0.0, 0.3, 0.9]),
        "edge_appearance": rng.choice([1.0, 1.0, 0.5, appearance.to(field.node.dtype)]),
        "max_sweeps": rng.choice([0, 1, 2, 3, 4]),  # few: rounding grows from sweep to sweep in loopy graphs
        "tolerance": 0,
    }


def compare(field: PairwiseField, options: dict[str, object]) -> str | None:
    """What differs between the kernels; None if nothing does."""
    answers: list[Beliefs | None] = []
    for backend in ("reference", "native"):
        try:
            answers.append(propagate(field, backend=backend, **options))  # type: ignore[arg-type]
        except InfeasibleError:
            answers.append(None)
    expected, found = answers
    if expected is None or found is None:
        return None if expected is found else f"only {'native' if expected else 'reference'} finds it infeasible"
    error = ERRORS[field.node.dtype] * magnitude(field)
    # Residuals are relative to messages, which may be nothing but the rounding of large potentials.
    rounding = torch.finfo(field.node.dtype).eps * magnitude(field)
    for name in ("messages", "node", "residual") if rounding < MOST_ROUNDING else ("messages", "node"):
        problem = differs(getattr(found, name), getattr(expected, name), 4 * error)
        if problem:
            return f"{name}: {problem}"
    if not torch.equal(found.sweeps, expected.sweeps):
        return f"sweeps: {found.sweeps.tolist()} instead of {expected.sweeps.tolist()}"
    return compare_labels(field, expected, found, error)


def compare_labels(field: PairwiseField, expected: Beliefs, found: Beliefs, error: float) -> str | None:
    """The same for what is decoded or summed from the messages."""
    try:
        score, partition = field.score(found.decode()), found.log_partition
    except InfeasibleError:
        return None  # decoding found no permitted labels and refused
    if bool((score == -torch.inf).any()):
        return "the labels are forbidden"
    if found.semiring == "max":
        return None  # the score of the decoded labels, of which several may be as good
    # A sum over all nodes and edges adds up the rounding of its terms.
    problem = differs(partition, expected.log_partition, error * (field.num_nodes + field.num_edges) ** 0.5)
    return f"log_partition: {problem}" if problem else None


def magnitude(field: PairwiseField) -> float:
    finite = [values[values.isfinite()].abs() for values in (field.node, field.edge)]
    return max(1.0, *(float(values.max()) for values in finite if values.numel()))


def differs(ours: Tensor, theirs: Tensor, error: float) -> str | None:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype} {list(ours.shape)} instead of {theirs.dtype} {list(theirs.shape)}"
    if bool(ours.isnan().any()):
        return "NaN"
    same = (ours == theirs) | ((ours - theirs).abs() <= error)
    if bool(same.all()):
        return None
    worst = (ours - theirs).abs().nan_to_num(nan=torch.inf).masked_fill(same, 0).flatten().argmax()
    return f"{ours.flatten()[worst]:.9g} instead of {theirs.flatten()[worst]:.9g} (allowed: {error:.3g})"
