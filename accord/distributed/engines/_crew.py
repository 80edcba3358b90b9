"""Actors of Ray that do tasks: each gets tasks once it is there, and one that dies is replaced."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from accord.distributed.engines._worker import RETRIES

QUEUED = 2  # tasks of an actor: one that it does, and one that waits, so that it never idles
NOTHING: Any = object()


@dataclass(eq=False)
class _Actor:
    """An actor, and how many tasks it has."""

    handle: Any
    load: int = 0


class Crew:
    """Actors that do tasks.

    Ray makes an actor when the cluster has room for it, which may be never. So an actor gets no task before it has
    answered. For the same reason a new actor takes the place of a dead one here, and its tasks go to whoever is free:
    Ray would keep them for the actor that it restarts.

    Args:
        ray: the package.
        make: asks Ray for an actor with a method `ready`.
        give: gives a task to an actor; returns the reference of the result.
        actors: how many.
    """

    def __init__(self, ray: Any, make: Callable[[], Any], give: Callable[[Any, Any], Any], actors: int) -> None:
        self._ray, self._make, self._give = ray, make, give
        self._starting: dict[Any, _Actor] = {}  # by the reference of their first answer
        self._live: list[_Actor] = []
        self._doing: dict[Any, tuple[_Actor, Any, int]] = {}  # actor, task and how often it was lost, by reference
        self._failures = 0  # actors that ended before they answered, since the last one that did
        for _ in range(actors):
            self._start()

    def do(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Tasks and what the actors return, in the order in which they finish.

        Raises:
            RayError: a task has lost its actor too often, or actors cannot start.
        """
        waiting, again = iter(tasks), list[tuple[Any, int]]()
        while True:
            while (actor := self._free()) is not None:
                task, losses = again.pop() if again else (next(waiting, NOTHING), 0)
                if task is NOTHING:
                    break
                self._doing[self._give(actor.handle, task)] = (actor, task, losses)
                actor.load += 1
            if not self._doing and (self._live or not self._starting):
                return
            (reference,), _ = self._ray.wait([*self._doing, *self._starting], num_returns=1)
            if reference in self._starting:
                self._welcome(reference)
                continue
            actor, task, losses = self._doing.pop(reference)
            try:
                found = self._ray.get(reference)
            except deaths(self._ray):
                if losses == RETRIES:
                    raise
                again.append((task, losses + 1))
                self._replace(actor)
                continue
            actor.load -= 1
            yield task, found

    def end(self) -> None:
        """End all actors, whatever they do."""
        for actor in (*self._live, *self._starting.values()):
            self._kill(actor)

    def _start(self) -> None:
        actor = _Actor(self._make())
        self._starting[actor.handle.ready.remote()] = actor

    def _free(self) -> _Actor | None:
        """The actor with the fewest tasks; None if all have enough. None queue while other actors may soon be there."""
        actor = min(self._live, key=lambda one: one.load, default=None)
        return actor if actor is not None and actor.load < (1 if self._starting else QUEUED) else None

    def _welcome(self, reference: Any) -> None:
        """Count in an actor that has answered; ask for another one if it has ended first."""
        actor = self._starting.pop(reference)
        try:
            self._ray.get(reference)
        except deaths(self._ray):
            self._failures += 1
            if self._failures > RETRIES:
                raise
            self._start()
        else:
            self._live.append(actor)
            self._failures = 0

    def _replace(self, actor: _Actor) -> None:
        """Ask for another actor when the first task of one is lost; its other tasks fail by themselves."""
        if actor in self._live:
            self._live.remove(actor)
            self._kill(actor)  # it may only have been out of reach
            self._start()

    def _kill(self, actor: _Actor) -> None:
        with suppress(Exception):  # the cluster may be gone
            self._ray.kill(actor.handle)


def deaths(ray: Any) -> tuple[type[Exception], ...]:
    """Errors of Ray that say that a worker, or the machine it was on, is gone."""
    errors = ray.exceptions
    return (errors.WorkerCrashedError, errors.RayActorError, errors.OutOfMemoryError, errors.ObjectLostError)
