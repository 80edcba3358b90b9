"""Work recorded once as a CUDA graph and replayed: a few launches instead of hundreds.

A recording reads and writes the same memory every time. So the work takes no arguments: everything that changes between
two runs (the number of the step, parameters, optimiser state) is in tensors that are updated in place, and nothing in
the work waits for the device.
"""

import logging
from collections.abc import Callable, Hashable
from typing import TypeVar

import torch

Result = TypeVar("Result")
MAX_GRAPHS = 64  # each takes memory and time to record; further work is done without recording
log = logging.getLogger(__name__)


class CudaGraphs:
    """Runs pieces of work by key: the first time without recording, then recorded, from then on replayed.

    The first run compiles kernels, fills the caches of batches and creates optimiser state. Graphs share their memory,
    so results must be used before the next piece of work runs.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.works = True  # until a recording fails
        self.forget()

    def forget(self) -> None:
        """Drop all recordings; needed when any tensor has been replaced."""
        self._graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, object]] = {}
        self._seen: set[Hashable] = set()
        self._pool = torch.cuda.graph_pool_handle()

    def run(self, key: Hashable, work: Callable[[], Result]) -> Result:
        """Do the work or replay it; `work` must be the same for the same key."""
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
        """Run on the stream that will record: backward passes run on the stream of their forward passes."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            result = work()
        current.wait_stream(self.stream)
        return result

    def _record(self, key: Hashable, work: Callable[[], object]) -> bool:
        """Record the work without doing it; return whether that succeeded."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self.stream):
                result = work()
        except Exception as error:  # a network may do anything; what a graph cannot record must not stop training
            log.warning("An update could not be recorded as a CUDA graph; training continues without: %s", error)
            self.forget()
            self.works = False
            return False
        self._graphs[key] = graph, result
        return True
