"""Processes of a job that a launcher, such as torchrun, has started: what the environment says, and where they meet."""

import os
import random
import socket

from accord.errors import AccordError

NEEDED = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun sets in each process
LOCAL_COUNT = "LOCAL_WORLD_SIZE"  # processes of this machine
PORTS = range(20_000, 30_000)  # systems, as they are set up usually, give these to no outgoing connection


def launched_processes() -> int | None:
    """How many processes a launcher has started for this job; None where there was no launcher."""
    if any(name not in os.environ for name in NEEDED):
        return None
    return _number("WORLD_SIZE")


def launched_devices() -> tuple[int, int] | None:
    """Processes of each machine, and machines; None where there was no launcher."""
    count = launched_processes()
    if count is None:
        return None
    devices = _number(LOCAL_COUNT) or count
    return devices, max(count // devices, 1)


def launched_rank() -> int:
    """The number of this process among those of its job; 0 where there was no launcher."""
    return 0 if launched_processes() is None else _number("RANK") or 0


def free_port() -> int:
    """A port of this machine at which processes can meet.

    Trainings of one job meet there one after the other. So it is none that another program could be given for an
    outgoing connection meanwhile.
    """
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as tried:
            try:
                tried.bind(("", port))
            except OSError:
                continue
        return port
    raise AccordError(
        f"No port from {PORTS[0]} to {PORTS[-1]} is free on this machine. End programs that listen there."
    )


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None
