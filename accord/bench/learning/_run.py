"""`accord bench learning`: the time of an update of all replicas, compared with one by one in plain PyG modules."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch_geometric.data import Data

from accord._memory import peak_memory
from accord.bench.inference._timing import wait_for
from accord.bench.learning._plain_networks import PlainTraining
from accord.datasets import Benchmark, load_benchmark
from accord.errors import OptionError
from accord.learning import Replicas
from accord.learning.objectives import ProxyObjective
from accord.learning.training import Trainer, kept_memory, product_precision
from accord.methods import Shape, StructuredProxyNetwork, preset_recipe

ENCODERS = ("sage", "gat", "gcn", "gcnii")
WARM_EPOCHS = 3  # on a GPU: the first is eager, the second records a CUDA graph, the third replays it
PLAIN_REPLICAS = 2  # trained one by one; the others are assumed to cost the same
SWEEP_REPLICAS = (1, 4, 16, 64, 121)
SWEEP_GRAPHS = (1, 2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class LearningCase:
    """The measured job: the paper's node and edge network for all replicas at once."""

    benchmark: str = "ppi-1"
    encoder: str = "sage"
    replicas: int = 121
    updates: int = 400
    device: str = "cpu"
    precision: str = "32-true"
    seconds: float = 5.0  # time limit, for Accord and for plain modules each

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise OptionError(f"bench learning: encoder {self.encoder!r} is unknown. Choose one of {ENCODERS}.")
        if self.replicas < 1 or self.updates < 1:
            raise OptionError("bench learning: at least one replica and one update are needed.")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise OptionError("bench learning: torch finds no GPU. Choose --device cpu.")


@dataclass(frozen=True)
class Timing:
    """Milliseconds per update, and the number of updates they were averaged over."""

    ms: float
    updates: int
    peak_bytes: int | None = None


def measure_learning(case: LearningCase, compare: bool = True) -> dict[str, Any]:
    """Time updates of all replicas at once, and of a few replicas one by one with plain modules."""
    bench = load_benchmark(case.benchmark)
    replicas, train = _replicas_and_graphs(bench, case.replicas)
    ours = time_replicas(case, bench, replicas, train)
    row: dict[str, Any] = {
        **asdict(case),
        "device_name": device_name(case.device),
        "graphs": len(train),
        "edges": sum(int(graph.num_edges) // 2 for graph in train),
        "ms_an_update": ours.ms,
        "updates_measured": ours.updates,
        "seconds_for_the_job": ours.ms * case.updates / 1e3,
        "peak_bytes": ours.peak_bytes,
    }
    if compare:
        few = min(PLAIN_REPLICAS, case.replicas)
        plain = [time_plain(case, bench, train, task) for task in range(few)]
        each = sum(timing.ms for timing in plain) / few
        row |= {
            "plain_precision": plain_precision(case.precision),
            "plain_replicas_measured": few,
            "plain_updates_measured": sum(timing.updates for timing in plain),
            "plain_ms_an_update_and_replica": each,
            "plain_seconds_for_the_job": each * case.replicas * case.updates / 1e3,
            "ratio": each * case.replicas / ours.ms,
        }
    return row


def time_replicas(case: LearningCase, bench: Benchmark, replicas: Replicas, train: Sequence[Data]) -> Timing:
    """Updates of the paper's networks in the package's training loop."""
    recipe = preset_recipe("paper", case.encoder, benchmark=case.benchmark)
    training = replace(recipe.training, accelerator=case.device, precision=case.precision)
    shape = Shape(int(train[0].x.shape[1]), bench.num_states, bench.num_tasks)
    networks = StructuredProxyNetwork(recipe).build(shape, replicas).networks
    objective = ProxyObjective(networks, networks.options(recipe.node, recipe.edge), "node")
    found: list[tuple[float, int]] = []

    def work() -> None:
        trainer = Trainer(objective, replicas, training)
        batches = trainer.batches(train)

        def epoch() -> int:
            trainer.train_epoch(batches(trainer.epoch))
            trainer.epoch += 1
            return len(train) if training.batch_graphs == 1 else 1

        with product_precision(case.precision), kept_memory(torch.device(case.device)):
            found.append(timed(epoch, case.seconds, case.device, WARM_EPOCHS if case.device == "cuda" else 1))

    peak = peak_memory(work, torch.device(case.device))
    (ms, updates), *_ = found
    return Timing(ms, updates, peak)


def time_plain(case: LearningCase, bench: Benchmark, train: Sequence[Data], task: int) -> Timing:
    """Updates of one replica's networks built from torch_geometric's own modules."""
    recipe = preset_recipe("paper", case.encoder, benchmark=case.benchmark)
    portions = [[graph] for graph in train] if recipe.training.batch_graphs == 1 else [list(train)]
    plain = PlainTraining(recipe, bench.num_states, portions, task if bench.num_tasks > 1 else None, case.device)
    with product_precision(plain_precision(case.precision)):
        ms, updates = timed(plain.epoch, case.seconds / PLAIN_REPLICAS, case.device, 1)
    return Timing(ms, updates)


def plain_precision(ours: str) -> str:
    """Precision of plain modules: float32, with tf32 products wherever Accord may round too."""
    return ours if ours == "32-true" else "tf32"


def timed(epoch: Callable[[], int], seconds: float, device: str, warm: int) -> tuple[float, int]:
    """Milliseconds per update and the number of timed updates; `epoch` runs some and returns how many."""
    for _ in range(warm):
        epoch()
    wait_for(device)
    start, updates = time.perf_counter(), 0
    while not updates or time.perf_counter() - start < seconds:
        updates += epoch()
        wait_for(device)
    return 1e3 * (time.perf_counter() - start) / updates, updates


def sweep_learning(case: LearningCase, report: Callable[[str], None]) -> dict[str, list[dict[str, Any]]]:
    """Milliseconds per update by number of replicas, and by number of edges."""
    bench = load_benchmark(case.benchmark)
    by_replicas, by_edges = [], []
    for count in [count for count in SWEEP_REPLICAS if count <= case.replicas]:
        replicas, train = _replicas_and_graphs(bench, count)
        timing = time_replicas(case, bench, replicas, train[:1])
        by_replicas.append({"replicas": count, "ms": timing.ms, "peak_bytes": timing.peak_bytes})
        report(f"{count} replicas: {timing.ms:.2f} ms per update")
    replicas, train = _replicas_and_graphs(bench, case.replicas)
    for count in SWEEP_GRAPHS:
        graph = side_by_side([train[number % len(train)] for number in range(count)])
        timing = time_replicas(case, bench, replicas, [graph])
        edges = int(graph.num_edges) // 2
        by_edges.append({"edges": edges, "ms": timing.ms, "peak_bytes": timing.peak_bytes})
        report(f"{edges} edges: {timing.ms:.2f} ms per update")
    return {"replicas": by_replicas, "edges": by_edges}


def side_by_side(graphs: Sequence[Data]) -> Data:
    """Several graphs as one graph without edges between them."""
    offsets = torch.tensor([0, *(int(graph.num_nodes) for graph in graphs[:-1])]).cumsum(0).tolist()
    return Data(
        x=torch.cat([graph.x for graph in graphs]),
        edge_index=torch.cat([graph.edge_index + offset for graph, offset in zip(graphs, offsets, strict=True)], 1),
        y=torch.cat([graph.y for graph in graphs]),
    )


def device_name(device: str) -> str:
    """The GPU's name, or the number of CPU threads."""
    return torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"


def _replicas_and_graphs(bench: Benchmark, count: int) -> tuple[Replicas, list[Data]]:
    """One replica per label where there are several, else one per seed; and graphs with only those labels."""
    if bench.num_tasks == 1:
        return Replicas(tuple(range(1, count + 1))), list(bench.train)
    if count > bench.num_tasks:
        raise OptionError(f"bench learning: {bench.name} has {bench.num_tasks} labels. Give --replicas at most that.")
    graphs = [Data(x=graph.x, edge_index=graph.edge_index, y=graph.y[:, :count]) for graph in bench.train]
    return Replicas((1,), count), graphs
