"""The compiled CPU kernel for chains: a forward pass that keeps its messages, and what follows from them."""

import ctypes
import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from accord.graphs._checks import check_room
from accord.inference.chains._problem import ChainProblem
from accord.inference.kernels.cpu._build import SOURCES, BuildError, Library, load_library

log = logging.getLogger("accord.inference")

PRECISIONS = {torch.float32: "float32", torch.float64: "float64"}
CHAINS = Library(
    "chains",
    Path(__file__).parent / "native",
    tuple(
        f"accord_chains_{step}_{name}"
        for step in ("lanes", "forward", "backward", "trace")
        for name in PRECISIONS.values()
    ),
    (SOURCES / "simd.hpp", SOURCES / "team.hpp"),
)
MAX_STATES = 4096  # a table takes 64 MB in float32
MAX_LENGTH = 2**30  # positions are counted in 32 bits
SOLVED, OUT_OF_MEMORY, NO_THREADS = range(3)  # what the kernel returns, as in native/chains.cpp
# Positions x states x (states + 8) below which starting a thread (50 us) takes longer than it saves.
ONE_THREAD_WORK = 1_000_000


class _Arguments(ctypes.Structure):
    """Mirrors `Arguments` in native/block.hpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("replicas", "chains", "length", "states")),
        *((name, ctypes.c_void_p) for name in ("node", "edge", "start", "end", "lengths")),
        *((name, ctypes.c_int64) for name in ("node_replica", "node_chain")),
        *((name, ctypes.c_int64) for name in ("edge_replica", "edge_chain", "edge_step")),
        *((name, ctypes.c_int64) for name in ("start_replica", "start_chain", "end_replica", "end_chain")),
        *((name, ctypes.c_int64) for name in ("own", "best", "threads")),
        *((name, ctypes.c_void_p) for name in ("messages", "domain", "order", "log_partition", "weight")),
        *((name, ctypes.c_void_p) for name in ("node_result", "edge_result", "behind", "ahead", "labels")),
    ]


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why the compiled kernel is not available on this machine, or None. Compiles it at the first call."""
    try:
        load_library(CHAINS)
    except BuildError as error:
        log.warning("chains: the fast CPU kernel is not available, so the slower reference is used: %s.", error)
        return str(error)
    return None


def fits(problem: ChainProblem) -> bool:
    """Whether the kernel can solve the problem here."""
    node = problem.node
    return (
        node.device.type == "cpu"
        and node.dtype in PRECISIONS
        and node.shape[-1] <= MAX_STATES
        and node.shape[-2] <= MAX_LENGTH
        and unavailable() is None
    )


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """Messages of a forward pass, in the layout of the kernel, and the potentials that they came from."""

    arguments: _Arguments
    kept: tuple[Tensor | None, ...]  # tensors whose addresses the arguments hold
    log_partition: Tensor  # [R, chains]: log Z, or the best score
    like: Tensor  # node potentials: shape and precision of results

    def beliefs(self) -> Tensor:
        """Logs of beliefs at nodes [R, chains, length, states]; -inf beyond the end of a chain."""
        node = torch.empty_like(self.like, memory_format=torch.contiguous_format)
        self._run("backward", node_result=node)
        return node

    def messages(self) -> tuple[Tensor, Tensor]:
        """Logs of the messages behind and ahead of each position, its own potential included in both."""
        behind, ahead = (torch.empty_like(self.like, memory_format=torch.contiguous_format) for _ in range(2))
        self._run("backward", behind=behind, ahead=ahead)
        return behind, ahead

    def gradient(self, weight: Tensor, edge_shape: torch.Size | None) -> tuple[Tensor, Tensor | None]:
        """Gradient of sum(weight * log_partition) at nodes, and at tables of a shape as in `ChainProblem`."""
        node = torch.empty_like(self.like, memory_format=torch.contiguous_format)
        edge = None if edge_shape is None else self.like.new_zeros(edge_shape)
        self._run("backward", weight=weight.contiguous(), node_result=node, edge_result=edge)
        return node, edge

    def labels(self) -> Tensor:
        """The optimum [R, chains, length], if the forward pass maximised; -1 beyond the end of a chain."""
        labels = torch.empty(self.like.shape[:-1], dtype=torch.long)
        self._run("trace", labels=labels)
        return labels

    def _run(self, step: str, **tensors: Tensor | None) -> None:
        arguments = _Arguments.from_buffer_copy(self.arguments)  # other threads may use the same messages
        for name, tensor in tensors.items():
            setattr(arguments, name, _pointer(tensor))
        _call(step, self.like.dtype, arguments)


def run_forward(problem: ChainProblem, best: bool) -> ForwardPass:
    """Pass messages from the first to the last position of every chain."""
    node = problem.node.detach()
    replicas, chains, length, states = node.shape
    if node.stride()[-2:] != (states, 1):
        node = node.contiguous()
    edge = _compact(problem.edge, 2)
    start, end = _compact(problem.start, 1), _compact(problem.end, 1)
    assert edge is not None
    own = edge.shape[1] > 1
    if not own and any(size > 1 and not step for size, step in zip(edge.shape[:3], edge.stride()[:3], strict=True)):
        edge = edge.contiguous()  # a step of 0 says that an axis is shared, and has one gradient
    lengths = None if problem.present is None else problem.lengths.contiguous()
    lanes = getattr(load_library(CHAINS), f"accord_chains_lanes_{PRECISIONS[node.dtype]}")()
    items = replicas * -(-chains // lanes)
    room = items * lanes * length * states
    check_room("eliminate_beliefs", f"messages of {chains} chains", room * node.element_size(), node.device)
    messages, domain = node.new_empty(room), torch.empty(items, dtype=torch.int8)
    order = None if lengths is None else torch.empty(chains, dtype=torch.long)
    log_partition = node.new_empty(replicas, chains)
    work = replicas * chains * length * states * (states + 8)
    arguments = _Arguments(
        replicas=replicas,
        chains=chains,
        length=length,
        states=states,
        node=node.data_ptr(),
        edge=edge.data_ptr(),
        start=_pointer(start),
        end=_pointer(end),
        lengths=_pointer(lengths),
        node_replica=node.stride(0),
        node_chain=node.stride(1),
        **_strides("edge", edge, ("replica", "chain", "step")),
        **_strides("start", start, ("replica", "chain")),
        **_strides("end", end, ("replica", "chain")),
        own=int(own),
        best=int(best),
        threads=1 if work < ONE_THREAD_WORK else torch.get_num_threads(),
        messages=messages.data_ptr(),
        domain=domain.data_ptr(),
        order=_pointer(order),
        log_partition=log_partition.data_ptr(),
    )
    _call("forward", node.dtype, arguments)
    kept = (node, edge, start, end, lengths, messages, domain, order)
    return ForwardPass(arguments, kept, log_partition, node)


def _call(step: str, dtype: torch.dtype, arguments: _Arguments) -> None:
    kernel = getattr(load_library(CHAINS), f"accord_chains_{step}_{PRECISIONS[dtype]}")
    status = kernel(ctypes.byref(arguments))
    if status == NO_THREADS:
        log.warning("chains: the system refused to start %s threads, so one is used.", arguments.threads)
        arguments.threads = 1
        status = kernel(ctypes.byref(arguments))
    if status != SOLVED:
        raise MemoryError(
            f"eliminate_beliefs: the CPU kernel ran out of memory with {arguments.chains} chains of "
            f"{arguments.length} positions and {arguments.states} states. Free memory, or solve fewer at a time."
        )


def _compact(values: Tensor | None, axes: int) -> Tensor | None:
    """The values, with their last axes side by side in memory."""
    if values is None:
        return None
    values = values.detach()
    states = values.shape[-1]
    return values if values.stride()[-axes:] == (states, 1)[-axes:] else values.contiguous()


def _strides(name: str, values: Tensor | None, axes: tuple[str, ...]) -> dict[str, int]:
    """Steps in memory along the leading axes; 0 along those that are shared."""
    if values is None:
        return {}
    return {f"{name}_{axis}": values.stride(k) if values.shape[k] > 1 else 0 for k, axis in enumerate(axes)}


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
