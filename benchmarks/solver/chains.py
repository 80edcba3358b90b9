"""Exact inference on batches of chains beside pytorch-crf and torch-struct: milliseconds of a call, and ratios.

Every library gets the same potentials in float32 and the same number of threads, and their answers are compared. The
rounds of all libraries alternate, so that a busy machine slows all of them. Peers that are not installed are left out
(pip install --no-deps pytorch-crf torch-struct):

    python benchmarks/solver/chains.py            # runs, and writes results/chains/ after each size
    python benchmarks/solver/chains.py --resume   # the sizes that the stored results lack
    python benchmarks/solver/chains.py --redraw   # the table of the stored results
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from origin import origin, same_code, told
from torch import Tensor

from accord import ChainField
from accord._files import write_text
from accord.inference import eliminate_beliefs

FOLDER = Path(__file__).parents[2] / "results" / "chains"
ROUNDS = 5
CALLS_SECONDS = 0.02  # a round repeats short calls for this long
MOST_BYTES = 15 * 10**7  # torch-struct multiplies tables of all steps: chains x length / 2 x states^3 numbers
SIZES = [  # states, chains, length
    (10, 1000, 30),
    (2, 1000, 30),
    (5, 1000, 30),
    (25, 1000, 30),
    (50, 200, 30),
    (10, 1000, 10),
    (10, 1000, 100),
    (10, 1, 10),
]
TASKS = {
    "marginals": "forward and backward pass",
    "gradient": "log-partition and its gradient at all potentials",
    "likelihood": "log-likelihood of labels and its gradient",
    "viterbi": "best labels",
}
Call = Callable[[], object]


class Workload:
    """Potentials of one size, with scores of the first and last state, and labels."""

    def __init__(self, states: int, chains: int, length: int) -> None:
        generator = torch.Generator().manual_seed(states + chains + length)
        self.node = torch.randn(chains, length, states, generator=generator)
        self.edge = torch.randn(states, states, generator=generator)
        self.start, self.end = torch.randn(2, states, generator=generator)
        self.labels = torch.randint(0, states, (chains, length), generator=generator)

    def leaves(self) -> list[Tensor]:
        return [values.clone().requires_grad_() for values in (self.node, self.edge, self.start, self.end)]


def clear(leaves: list[Tensor]) -> None:
    for leaf in leaves:
        leaf.grad = None


def accord_calls(work: Workload) -> dict[str, Call]:
    """The field is built in every call."""
    leaves = work.leaves()

    def field(node: Tensor, edge: Tensor, start: Tensor, end: Tensor) -> ChainField:
        return ChainField(node, edge, start=start, end=end)

    def gradient(labels: Tensor | None) -> Tensor:
        clear(leaves)
        chains = field(*leaves)
        total = eliminate_beliefs(chains).log_partition.sum()
        loss = total if labels is None else total - chains.score(labels).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    given = (work.node, work.edge, work.start, work.end)
    return {
        "marginals": lambda: eliminate_beliefs(field(*given)).node.exp(),
        "gradient": lambda: gradient(None),
        "likelihood": lambda: gradient(work.labels),
        "viterbi": lambda: eliminate_beliefs(field(*given), "max").decode(),
    }


def crf_calls(work: Workload) -> dict[str, Call]:
    """pytorch-crf. It has no function for marginals: they are the gradient of its normaliser."""
    from torchcrf import CRF

    crf = CRF(work.node.shape[-1], batch_first=True)
    with torch.no_grad():
        crf.transitions.copy_(work.edge), crf.start_transitions.copy_(work.start), crf.end_transitions.copy_(work.end)
    node = work.node.clone().requires_grad_()
    first = work.node.transpose(0, 1).contiguous().requires_grad_()
    mask = torch.ones(first.shape[:2], dtype=torch.uint8)
    everything = [node, first, *crf.parameters()]

    def normaliser() -> Tensor:
        clear(everything)
        total = crf._compute_normalizer(first, mask).sum()
        total.backward()
        return total.detach()

    def marginals() -> Tensor:
        return torch.autograd.grad(crf._compute_normalizer(first, mask).sum(), first)[0].transpose(0, 1)

    def likelihood() -> Tensor:
        clear(everything)
        loss = -crf(node, work.labels)
        loss.backward()
        return loss.detach()

    def decode() -> list[list[int]]:
        with torch.no_grad():
            return crf.decode(work.node)

    return {"marginals": marginals, "gradient": normaliser, "likelihood": likelihood, "viterbi": decode}


def struct_calls(work: Workload) -> dict[str, Call]:
    """torch-struct, from potentials [chains, length - 1, states of the next, states] that were made beforehand."""
    from torch_struct import LinearChainCRF

    chains, length, states = work.node.shape
    if chains * (length / 2) * states**3 * 4 > MOST_BYTES:
        return {}
    node = work.node.clone()
    node[:, 0] += work.start
    node[:, -1] += work.end
    potentials = work.edge.t() + node[:, 1:, :, None]
    potentials[:, 0] += node[:, 0, None, :]
    leaf = potentials.clone().requires_grad_()

    def gradient() -> Tensor:
        leaf.grad = None
        total = LinearChainCRF(leaf).partition.sum()
        total.backward()
        return total.detach()

    def marginals() -> Tensor:
        pairs = LinearChainCRF(potentials).marginals
        return torch.cat([pairs[:, :1].sum(-2), pairs.sum(-1)], 1)

    def decode() -> Tensor:
        pairs = LinearChainCRF(potentials).argmax
        return torch.cat([pairs[:, :1].sum(-2), pairs.sum(-1)], 1).argmax(-1)

    return {"marginals": marginals, "gradient": gradient, "viterbi": decode}


PEERS = {"pytorch-crf": crf_calls, "torch-struct": struct_calls}  # by distribution
LIBRARIES = {"accord": accord_calls, **PEERS}


def check(task: str, work: Workload, answers: dict[str, object]) -> None:
    """Refuse answers that differ."""
    if task == "viterbi":
        field = ChainField(work.node, work.edge, start=work.start, end=work.end)
        answers = {name: field.score(torch.as_tensor(labels)) for name, labels in answers.items()}
    for name, answer in answers.items():
        torch.testing.assert_close(answer, answers["accord"], rtol=1e-4, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


def seconds(call: Call, times: int) -> tuple[float, float]:
    """Of the clock and of the processor, which another process does not lengthen, for each call."""
    begun, used = time.perf_counter(), time.process_time()
    for _ in range(times):
        call()
    return (time.perf_counter() - begun) / times, (time.process_time() - used) / times


def measure(states: int, chains: int, length: int, libraries: list[str]) -> list[dict[str, object]]:
    work = Workload(states, chains, length)
    calls = {name: LIBRARIES[name](work) for name in libraries}
    rows = []
    for task in TASKS:
        there = {name: of[task] for name, of in calls.items() if task in of}
        check(task, work, {name: call() for name, call in there.items()})
        times = {name: max(1, int(CALLS_SECONDS / seconds(call, 1)[0])) for name, call in there.items()}
        rounds = [{name: seconds(call, times[name]) for name, call in there.items()} for _ in range(ROUNDS)]
        row: dict[str, object] = {"states": states, "chains": chains, "length": length, "task": task}
        for place, kind in enumerate(("milliseconds", "processor")):
            row[kind] = {name: 1e3 * statistics.median(one[name][place] for one in rounds) for name in there}
        rows.append(row)
        print(row, flush=True)
    return rows


def ratios(row: dict, kind: str) -> dict[str, float]:
    return {name: ms / row[kind]["accord"] for name, ms in row[kind].items() if name != "accord"}


def table(stored: dict) -> str:
    peers = [name for name, number in stored["origin"]["peers"].items() if number]
    lines = [
        "# Chains",
        "",
        f"Written by `benchmarks/solver/chains.py`. Milliseconds of a call in float32, median of {ROUNDS} "
        "rounds, and how many times as long the peers take: by the clock, and in processor time, which other processes "
        "do not lengthen. All compute the same numbers, which is checked. accord builds and checks its field in every "
        "call; the tables of torch-struct are made beforehand. It is left out where its products of tables take more "
        f"than {MOST_BYTES / 1e9:.2f} GB. pytorch-crf has no function for marginals, so the gradient of its normaliser "
        "is taken.",
        "",
        told(stored["origin"]),
        "",
        "| states | chains | length | task | accord, ms | processor, ms | "
        + " | ".join(f"{name}, ms | ratio | processor" for name in peers)
        + " |",
        "|--:|--:|--:|---|--:|--:|" + "--:|--:|--:|" * len(peers),
    ]
    for row in stored["rows"]:
        clock, processor = ratios(row, "milliseconds"), ratios(row, "processor")
        cells = [
            f"{row['milliseconds'][name]:.2f} | {clock[name]:.1f} | {processor[name]:.1f}" if name in clock else " | | "
            for name in peers
        ]
        size = f"| {row['states']} | {row['chains']} | {row['length']} | {TASKS[row['task']]} "
        own = f"| {row['milliseconds']['accord']:.3f} | {row['processor']['accord']:.3f} | "
        lines.append(size + own + " | ".join(cells) + " |")
    every = [ratio for row in stored["rows"] for ratio in ratios(row, "processor").values()]
    if every:
        lines += [
            "",
            f"Ratios of processor time run from {min(every):.1f} to {max(every):.0f}; their median is "
            f"{statistics.median(every):.0f}.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redraw", action="store_true", help="write the table of the stored results")
    parser.add_argument("--resume", action="store_true", help="keep the sizes that this code has measured")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of every library")
    given = parser.parse_args()
    if not given.redraw:
        torch.set_num_threads(given.threads)
        warnings.simplefilter("ignore")  # of the peers, in every call
        stored = {"origin": origin(*PEERS), "rows": []}
        if given.resume:
            kept = json.loads((FOLDER / "chains.json").read_text())
            stored = kept if same_code(kept["origin"], stored["origin"]) else stored
        libraries = ["accord", *(name for name, number in stored["origin"]["peers"].items() if number)]
        done = {(row["states"], row["chains"], row["length"]) for row in stored["rows"]}
        for size in SIZES:
            if size not in done:
                stored["rows"] += measure(*size, libraries)
                write_text(FOLDER / "chains.json", json.dumps(stored, indent=1))
    write_text(FOLDER / "README.md", table(json.loads((FOLDER / "chains.json").read_text())))


if __name__ == "__main__":
    main()
