"""`accord bench learning`: how long an update of all replicas takes here, beside one by one with plain PyG modules."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch_geometric.data import Data

from accord._memory import peak_memory
from accord.bench.learning._plain_networks import PlainTraining
from accord.datasets import Benchmark, load_benchmark
from accord.errors import OptionError
from accord.learning import Replicas
from accord.learning.objectives import ProxyObjective
from accord.learning.training import Trainer, kept_memory, product_precision
from accord.methods import Shape, StructuredProxyNetwork, preset_recipe

ENCODERS = ("sage", "gat", "gcn", "gcnii")
WARM_EPOCHS = 3  # plain, recorded, replayed
PLAIN_REPLICAS = 2  # trained one by one; the others are taken to cost as much
SWEEP_REPLICAS = (1, 4, 16, 64, 121)
SWEEP_GRAPHS = (1, 2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class LearningCase:
    """What is measured: the paper's node and edge network for all replicas at once."""

    benchmark: str = "ppi-1"
    encoder: str = "sage"
    replicas: int = 121
    updates: int = 400
    device: str = "cpu"
    precision: str = "32-true"
    seconds: float = 5.0  # at most so long is timed, of ours and of plain modules each

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise OptionError(f"bench learning: encoder {self.encoder!r} is unknown. Choose one of {ENCODERS}.")
        if self.replicas < 1 or self.updates < 1:
            raise OptionError("bench learning: at least one replica and one update are needed.")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise OptionError("bench learning: there is no GPU here that torch can use. Choose --device cpu.")


@dataclass(frozen=True)
class Timing:
    """Milliseconds an update, and over how many updates they were taken."""

    ms: float
    updates: int
    peak_bytes: int | None = None


def measure_learning(case: LearningCase, compare: bool = True) -> dict[str, Any]:
    """Time updates of all replicas at once, and of a few one by one with plain modules."""
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
    """Updates of the paper's networks by the package's own loop."""
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
    """Updates of one replica's networks made of torch_geometric's own modules: see `plain_precision`."""
    recipe = preset_recipe("paper", case.encoder, benchmark=case.benchmark)
    portions = [[graph] for graph in train] if recipe.training.batch_graphs == 1 else [list(train)]
    plain = PlainTraining(recipe, bench.num_states, portions, task if bench.num_tasks > 1 else None, case.device)
    with product_precision(plain_precision(case.precision)):
        ms, updates = timed(plain.epoch, case.seconds / PLAIN_REPLICAS, case.device, 1)
    return Timing(ms, updates)


def plain_precision(ours: str) -> str:
    """What plain modules compute in: float32, with tf32 products wherever ours may round as well."""
    return ours if ours == "32-true" else "tf32"


def timed(epoch: Callable[[], int], seconds: float, device: str, warm: int) -> tuple[float, int]:
    """Milliseconds an update and how many were timed; `epoch` makes some and says how many."""
    for _ in range(warm):
        epoch()
    synchronise(device)
    start, updates = time.perf_counter(), 0
    while not updates or time.perf_counter() - start < seconds:
        updates += epoch()
        synchronise(device)
    return 1e3 * (time.perf_counter() - start) / updates, updates


def sweep_learning(case: LearningCase, tell: Callable[[str], None]) -> dict[str, list[dict[str, Any]]]:
    """How milliseconds an update grow with replicas, and with edges."""
    bench = load_benchmark(case.benchmark)
    by_replicas, by_edges = [], []
    for count in [count for count in SWEEP_REPLICAS if count <= case.replicas]:
        replicas, train = _replicas_and_graphs(bench, count)
        timing = time_replicas(case, bench, replicas, train[:1])
        by_replicas.append({"replicas": count, "ms": timing.ms, "peak_bytes": timing.peak_bytes})
        tell(f"{count} replicas: {timing.ms:.2f} ms an update")
    replicas, train = _replicas_and_graphs(bench, case.replicas)
    for count in SWEEP_GRAPHS:
        graph = side_by_side([train[number % len(train)] for number in range(count)])
        timing = time_replicas(case, bench, replicas, [graph])
        edges = int(graph.num_edges) // 2
        by_edges.append({"edges": edges, "ms": timing.ms, "peak_bytes": timing.peak_bytes})
        tell(f"{edges} edges: {timing.ms:.2f} ms an update")
    return {"replicas": by_replicas, "edges": by_edges}


def side_by_side(graphs: Sequence[Data]) -> Data:
    """Several graphs as one without edges between them."""
    offsets = torch.tensor([0, *(int(graph.num_nodes) for graph in graphs[:-1])]).cumsum(0).tolist()
    return Data(
        x=torch.cat([graph.x for graph in graphs]),
        edge_index=torch.cat([graph.edge_index + offset for graph, offset in zip(graphs, offsets, strict=True)], 1),
        y=torch.cat([graph.y for graph in graphs]),
    )


def describe(row: dict[str, Any]) -> str:
    """What was measured, in words: what is extrapolated is said to be."""
    lines = [
        f"{row['benchmark']}, {row['encoder']}, {row['replicas']} replicas, {row['precision']} on {row['device_name']}",
        f"{row['ms_an_update']:.2f} ms an update (mean of {row['updates_measured']})",
        f"{row['seconds_for_the_job']:.1f} s for {row['updates']} updates"
        + (", extrapolated" if row["updates_measured"] < row["updates"] else ""),
    ]
    if row["peak_bytes"] is not None:
        lines.append(f"{row['peak_bytes'] / 2**30:.2f} GiB at most")
    if "ratio" in row:
        lines.append(
            f"one by one with plain PyG modules, {row['plain_precision']}: "
            f"{row['plain_ms_an_update_and_replica']:.2f} ms an update and replica, "
            f"{row['plain_seconds_for_the_job']:.1f} s for all (extrapolated from {row['plain_updates_measured']} "
            f"updates of {row['plain_replicas_measured']} replicas); {row['ratio']:.1f} times as long"
        )
    return "\n".join(lines)


def device_name(device: str) -> str:
    """The GPU's name, or how many threads the CPU gives."""
    return torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"


def synchronise(device: str) -> None:
    """Wait for the GPU, where there is one."""
    if device == "cuda":
        torch.cuda.synchronize()


def _replicas_and_graphs(bench: Benchmark, count: int) -> tuple[Replicas, list[Data]]:
    """One replica a label where there are several, else one a seed; and graphs with those labels alone."""
    if bench.num_tasks == 1:
        return Replicas(tuple(range(1, count + 1))), list(bench.train)
    if count > bench.num_tasks:
        raise OptionError(f"bench learning: {bench.name} has {bench.num_tasks} labels; give --replicas at most that.")
    graphs = [Data(x=graph.x, edge_index=graph.edge_index, y=graph.y[:, :count]) for graph in bench.train]
    return Replicas((1,), count), graphs
