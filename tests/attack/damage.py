"""Damage to the bytes of a file: cut, flipped, overwritten."""

from collections.abc import Callable
from random import Random

Damage = Callable[[Random, bytes], bytes]


def cut(rng: Random, content: bytes) -> bytes:
    return content[: rng.randrange(max(len(content), 1))]


def emptied(rng: Random, content: bytes) -> bytes:
    return b""


def bit_flipped(rng: Random, content: bytes) -> bytes:
    if not content:
        return b"\x01"
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :]


def zeroed(rng: Random, content: bytes) -> bytes:
    """A block of zeros, as a file system leaves it after a crash."""
    place = rng.randrange(max(len(content), 1))
    size = min(rng.choice([1, 16, 512, 4096]), len(content) - place)
    return content[:place] + bytes(size) + content[place + size :]


def overwritten(rng: Random, content: bytes) -> bytes:
    place = rng.randrange(max(len(content), 1))
    size = min(rng.randint(1, 16), len(content) - place)
    return content[:place] + rng.randbytes(size) + content[place + size :]


def lengthened(rng: Random, content: bytes) -> bytes:
    return content + rng.randbytes(rng.randint(1, 64))


def repeated(rng: Random, content: bytes) -> bytes:
    """A slice twice."""
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:last] + content[first:]


DAMAGES: dict[str, Damage] = {
    function.__name__.replace("_", " "): function
    for function in (cut, emptied, bit_flipped, bit_flipped, zeroed, overwritten, lengthened, repeated)
}
