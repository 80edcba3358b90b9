"""Work recorded once as a CUDA graph and replayed: a few launches in place of hundreds.

What is recorded reads and writes the same memory every time. So the work takes no arguments: all that changes between
two runs (the number of the step, parameters, optimiser state) lies in tensors that stay where they are, and nothing in
it waits for the device.
"""

import logging
from collections.abc import Callable, Hashable
from typing import TypeVar

import torch

Result = TypeVar("Result")
MAX_GRAPHS = 64  # each keeps its launches in memory and takes time to record; beyond, work is done plainly
log = logging.getLogger(__name__)


class CudaGraphs:
    """Runs pieces of work, each known by a key: the first time as it is, then recorded, from then on replayed.

    The first run is a full one: kernels are compiled, what batches keep is made, optimisers get their state. Graphs
    share their memory, so results must be used before the next piece of work runs.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.works = True  # until recording has failed
        self.forget()

    def forget(self) -> None:
        """Start anew, as is needed once any tensor has been replaced."""
        self._graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, object]] = {}
        self._seen: set[Hashable] = set()
        self._pool = torch.cuda.graph_pool_handle()

    def run(self, key: Hashable, work: Callable[[], Result]) -> Result:
        """Do the work, in whichever way; `work` must be the same for the same key."""
        if key in self._graphs:
            graph, result = self._graphs[key]
            graph.replay()
            return result  # type: ignore[return-value]
        if not self.works or (key not in self._seen and len(self._seen) >= MAX_GRAPHS):
            return work()
        if key not in self._seen:
            self._seen.add(key)
            return self._run_beside(work)
        if not self._record(key, work):
            return work()
        return self.run(key, work)

    def _run_beside(self, work: Callable[[], Result]) -> Result:
        """On the stream that will record: backward passes run where their forward passes ran."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            result = work()
        current.wait_stream(self.stream)
        return result

    def _record(self, key: Hashable, work: Callable[[], object]) -> bool:
        """Record the work, which does not do it; whether that succeeded."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self.stream):
                result = work()
        except Exception as error:  # whatever a network does that a graph cannot hold: training goes on without
            log.warning("An update could not be recorded as a CUDA graph, training goes on without: %s", error)
            self.forget()
            self.works = False
            return False
        self._graphs[key] = graph, result
        return True
