"""Run a function in several processes that talk by gloo, and collect what each returns."""

import traceback
from datetime import timedelta
from tempfile import TemporaryDirectory

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run_in_parts(work, ranks, *arguments):
    """What `work(rank, ranks, *arguments)` returns in each process; an error in one of them fails the test."""
    context = mp.get_context("forkserver")  # imports once, so that processes start quickly
    context.set_forkserver_preload(["accord.distributed", "accord.estimator", "accord.inference", "pyarrow.parquet"])
    queue = context.SimpleQueue()
    with TemporaryDirectory() as folder:
        address = f"file://{folder}/meeting"
        started = [
            context.Process(target=_run, args=(work, rank, ranks, address, queue, arguments)) for rank in range(ranks)
        ]
        for process in started:
            process.start()
        found = dict(queue.get() for _ in started)
        for process in started:
            process.join()
    failed = [text for text in found.values() if isinstance(text, Failure)]
    assert not failed, "\n".join(failed)
    return [found[rank] for rank in range(ranks)]


class Failure(str):
    """The traceback of a process."""


def _run(work, rank, ranks, address, queue, arguments):
    torch.set_num_threads(1)
    timeout = timedelta(minutes=2)  # a process that waits for nothing fails its test
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks, timeout=timeout)
    try:
        with torch.no_grad():
            found = work(rank, ranks, *arguments)
    except BaseException:
        found = Failure(traceback.format_exc())
        queue.put((rank, found))
        return
    queue.put((rank, found))
    dist.barrier()
    dist.destroy_process_group()
