"""Worker processes and the requests that wait for them: a bounded queue with a time limit."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from accord.app.server.limits import Limits, Refused
from accord.app.server.worker import Worker, WorkerLost
from accord.errors import AccordError

RETRY_SECONDS = 1  # when a client that was turned away may try again
log = logging.getLogger(__name__)


class Pool:
    """Hands requests to idle workers.

    Args:
        workers: processes that are ready.
        limits: of the server.
    """

    def __init__(self, workers: Sequence[Worker], limits: Limits) -> None:
        self.workers, self.limits = workers, limits
        self.waiting = 0  # requests that wait or are worked on
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        self._threads = ThreadPoolExecutor(2 * len(workers), thread_name_prefix="accord-pool")
        self._restarts: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Begin; must be called inside the event loop."""
        for worker in self.workers:
            self._idle.put_nowait(worker)

    def enter(self) -> None:
        """Take a place in the queue, or refuse the request; `leave` gives it back."""
        if self.waiting >= self.limits.waiting:
            raise Refused(503, "The server is busy. Try again in a moment.", "busy", RETRY_SECONDS)
        self.waiting += 1

    def leave(self) -> None:
        """Give a place in the queue back."""
        self.waiting -= 1

    async def ask(self, kind: str, body: bytes) -> tuple[int, bytes]:
        """The status and the JSON for one request that has a place in the queue."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.limits.seconds
        try:
            worker = await asyncio.wait_for(self._idle.get(), self.limits.seconds)
        except asyncio.TimeoutError:
            raise Refused(
                503, f"No worker was free within {self.limits.seconds:g} s. Try again later.", "busy", RETRY_SECONDS
            ) from None
        work = loop.run_in_executor(self._threads, worker.ask, kind, body)
        done, _ = await asyncio.wait([work], timeout=max(0.01, deadline - loop.time()))
        if not done:
            worker.kill()  # the only way to end it; `work` then raises WorkerLost
            await asyncio.wait([work])
            work.exception()
            self._replace(worker)
            raise Refused(
                504, f"The answer took longer than {self.limits.seconds:g} s. Send a smaller graph or fewer at once.",
                "too_slow",
            )  # fmt: skip
        try:
            answer = work.result()
        except WorkerLost:
            log.error("A worker ended while it answered a request; another one is started.")
            self._replace(worker)
            raise Refused(
                503, "The worker ended while it answered. Try again; send a smaller graph if it happens again.",
                "worker_lost", RETRY_SECONDS,
            ) from None  # fmt: skip
        self._idle.put_nowait(worker)
        return answer

    def _replace(self, worker: Worker) -> None:
        task = asyncio.get_running_loop().create_task(self._restart(worker))
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)

    async def _restart(self, worker: Worker) -> None:
        """Start the worker again, until it is ready or the server stops."""
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads, worker.restart)
                self._idle.put_nowait(worker)
                return
            except AccordError as error:
                log.error("A worker could not be started: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        """Stop every worker."""
        for task in self._restarts:
            task.cancel()
        for worker in self.workers:
            worker.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)
