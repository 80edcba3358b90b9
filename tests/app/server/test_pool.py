"""The queue of requests: bounded, with a time limit, and alive when a worker is not."""

import asyncio
import threading
import time

import pytest
from support.serving import HereWorker

from accord.app.server.limits import Limits, Refused
from accord.app.server.pool import Pool
from accord.app.server.worker import WorkerLost


def run(work, worker, limits):
    async def inside():
        pool = Pool([worker], limits)
        pool.open()
        try:
            return await work(pool)
        finally:
            pool.close()

    return asyncio.run(inside())


def test_a_full_queue_refuses_with_a_time_to_come_back():
    async def work(pool):
        pool.enter()
        pool.enter()
        with pytest.raises(Refused) as caught:
            pool.enter()
        pool.leave()
        pool.enter()
        return caught.value

    refusal = run(work, HereWorker(None), Limits(waiting=2))
    assert (refusal.status, refusal.code, refusal.retry_after) == (503, "busy", 1)


class StuckWorker(HereWorker):
    """Works until it is killed."""

    def __init__(self):
        super().__init__(None)
        self.killed = threading.Event()

    def ask(self, kind, body):
        if kind == "quick":
            return 200, b"{}"
        assert self.killed.wait(10)
        raise WorkerLost

    def kill(self):
        self.killed.set()


def test_a_worker_that_takes_too_long_is_replaced():
    worker = StuckWorker()

    async def work(pool):
        began = time.monotonic()
        with pytest.raises(Refused) as caught:
            await pool.ask("slow", b"")
        assert time.monotonic() - began < 5
        assert await pool.ask("quick", b"") == (200, b"{}")  # waits for the new worker
        return caught.value

    refusal = run(work, worker, Limits(seconds=0.3))
    assert (refusal.status, refusal.code, worker.restarts) == (504, "too_slow", 1)


def test_a_worker_that_dies_is_replaced():
    def answer(kind, body):
        if kind == "die":
            raise WorkerLost
        return 200, b"{}"

    worker = HereWorker(answer)

    async def work(pool):
        with pytest.raises(Refused) as caught:
            await pool.ask("die", b"")
        assert await pool.ask("live", b"") == (200, b"{}")
        return caught.value

    refusal = run(work, worker, Limits())
    assert (refusal.status, refusal.retry_after, worker.restarts) == (503, 1, 1)


def test_requests_wait_their_turn_and_the_event_loop_stays_alive():
    inside, most = 0, 0

    def answer(kind, body):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.02)
        inside -= 1
        return 200, body

    async def work(pool):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticking = asyncio.create_task(tick())
        bodies = [str(number).encode() for number in range(10)]
        found = await asyncio.gather(*(pool.ask("x", body) for body in bodies))
        ticking.cancel()
        return found == [(200, body) for body in bodies], ticks

    right, ticks = run(work, HereWorker(answer), Limits())
    assert right and most == 1 and ticks >= 10


class SlowStartWorker(StuckWorker):
    """Takes its time to start again."""

    def restart(self):
        time.sleep(0.6)
        super().restart()


def test_a_request_that_waits_too_long_is_refused():
    async def work(pool):
        with pytest.raises(Refused):
            await pool.ask("slow", b"")
        with pytest.raises(Refused) as caught:
            await pool.ask("quick", b"")
        return caught.value

    refusal = run(work, SlowStartWorker(), Limits(seconds=0.2))
    assert (refusal.status, refusal.code, refusal.retry_after) == (503, "busy", 1)
