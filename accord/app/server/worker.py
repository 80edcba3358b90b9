"""A process that holds the model and answers one request at a time.

The server itself never reads a graph: a request that takes too long, or more memory than there is, costs this process
and not the server. Requests and answers travel as bytes.
"""

import logging
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from accord.app.server.limits import Limits
from accord.errors import AccordError, InputError

READY, FAILED = b"ready", b"failed:"
START_SECONDS = 300.0  # to import torch and read a model, on a slow or busy machine
NICE_STOP_SECONDS = 2.0


@dataclass(frozen=True)
class Job:
    """What a worker needs to know."""

    run: Path
    uploads: Path
    limits: Limits
    data: str | None = None
    private: Path | None = None  # a folder to remove when the server is gone


class WorkerLost(Exception):
    """The worker ended while it worked: it was stopped, or took more memory than there is."""


class Worker:
    """The server's end of a worker process.

    Args:
        job: what to serve.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, self.job), name="accord-worker", daemon=True)
        self._process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        """Return when the model is loaded; what is wrong with it is raised here."""
        try:
            word = self._connection.recv_bytes() if self._connection.poll(START_SECONDS) else b""
        except (EOFError, OSError) as error:
            raise InputError("accord serve: the worker process ended while it loaded the model.") from error
        if word.startswith(FAILED):
            raise InputError(word.removeprefix(FAILED).decode())
        if word != READY:
            raise InputError(f"accord serve: the model was not loaded within {START_SECONDS:g} s.")

    def ask(self, kind: str, body: bytes) -> tuple[int, bytes]:
        """The status and the JSON for one request; blocks.

        Raises:
            WorkerLost: the process ended. `restart` starts another.
        """
        with self._lock:
            try:
                self._connection.send_bytes(kind.encode())
                self._connection.send_bytes(body)
                status = int(self._connection.recv_bytes())
                return status, self._connection.recv_bytes()
            except (EOFError, OSError) as error:
                raise WorkerLost from error

    @property
    def pid(self) -> int | None:
        """The number of the process."""
        return self._process.pid

    def kill(self) -> None:
        """End the process at once; a call of `ask` that waits raises WorkerLost."""
        self._process.kill()

    def restart(self) -> None:
        """Start another process and wait until it is ready; blocks."""
        self._process.kill()
        self._process.join()
        with self._lock:
            self._connection.close()
            self._start()
            self.wait_until_ready()

    def stop(self) -> None:
        """Let the process end by itself, or end it."""
        self._connection.close()
        self._process.join(NICE_STOP_SECONDS)
        self._process.kill()
        self._process.join()


def work(connection: Connection, job: Job) -> None:
    """Answer requests until the server is gone; then remove its uploads, which a killed server could not."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the server decides
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    try:
        answer = open_desk(job)
    except (AccordError, OSError) as error:
        connection.send_bytes(FAILED + str(error).encode())
        return
    connection.send_bytes(READY)
    try:
        while True:
            kind, body = connection.recv_bytes().decode(), connection.recv_bytes()
            status, content = answer(kind, body)
            connection.send_bytes(str(status).encode())
            connection.send_bytes(content)
    except (EOFError, OSError):
        time.sleep(0.1)  # a server that stops by itself removes them first
        if job.private is not None:
            shutil.rmtree(job.private, ignore_errors=True)


def open_desk(job: Job) -> Callable[[str, bytes], tuple[int, bytes]]:
    """Load the model; what answers requests with it."""
    # Imported here: the server's own process needs none of it.
    from accord.app.runs import open_model
    from accord.app.server.desk import Desk
    from accord.app.server.shelf import Shelf
    from accord.estimator import NodeClassifier

    run = open_model(job.run)
    model = NodeClassifier.load(run.path)
    shelf = Shelf(job.uploads, job.limits, run.config, job.data, model.columns_)
    return Desk(job.run.resolve().name, model, shelf, job.limits).answer
