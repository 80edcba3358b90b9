"""Processes that hold parts: started once, then asked to run functions together. Each has one thread."""

import ctypes
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Processes(AbstractContextManager["Processes"]):
    """A group of new processes that talk by gloo.

    Each keeps a dictionary, which every function that it runs gets: what one function puts there, a later one finds.

    Args:
        ranks: how many.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks, self.folder = ranks, TemporaryDirectory()
        context = mp.get_context("spawn")  # a fork would start with the memory of this process
        pipes = [context.Pipe() for _ in range(ranks)]
        address = f"file://{self.folder.name}/meeting"
        self.pipes = [here for here, _ in pipes]
        self.started = [
            context.Process(target=_serve, args=(rank, ranks, address, there), daemon=True)
            for rank, (_, there) in enumerate(pipes)
        ]
        for process, (_, there) in zip(self.started, pipes, strict=True):
            process.start()
            there.close()  # so that the end of a process is noticed

    def run(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What `work(rank, ranks, kept, *arguments)` returns in each process; all of them run it at the same time."""
        for pipe in self.pipes:
            pipe.send((work, arguments))
        found = [pipe.recv() for pipe in self.pipes]
        failed = [text for good, text in found if not good]
        if failed:
            raise RuntimeError("a process failed:\n" + "\n".join(failed))
        return [value for _, value in found]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for pipe in self.pipes:  # all of them first: processes end together
            pipe.close()
        for process in self.started:
            process.join(10)
            if process.is_alive():
                process.kill()
        self.folder.cleanup()


def _serve(rank: int, ranks: int, address: str, pipe: Any) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks)
    kept: dict[str, Any] = {}
    while True:
        try:
            work, arguments = pipe.recv()
        except EOFError:
            break
        try:
            with torch.no_grad():
                found = True, work(rank, ranks, kept, *arguments)
        except Exception:
            found = False, traceback.format_exc()
        pipe.send(found)
    dist.destroy_process_group()


# Resident memory of this process (Linux only)


def forget_peak() -> int:
    """Return freed memory to the system and begin a new peak; returns the bytes that are held now."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def resident(name: str = "VmHWM") -> int:
    """Bytes: by default, the peak since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024
