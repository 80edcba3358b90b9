"""Damage to the bytes of a file: cut, flipped, overwritten; and to the values of a json file."""

import json
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


ABSURD = [None, True, -1, 0, 10**30, 1e308, float("nan"), "", "a", "../../etc", [], {}, [[]], [None], {"a": 1}]


def value_changed(rng: Random, content: bytes) -> bytes:
    """A json file with one value, or one key, that does not belong there; other files get a bit flipped."""
    try:
        root = json.loads(content)
    except ValueError:
        return bit_flipped(rng, content)
    inner = [root] if isinstance(root, (dict, list)) else []
    for value in inner:
        children = value.values() if isinstance(value, dict) else value
        inner += [child for child in children if isinstance(child, (dict, list)) and child]
    chosen = rng.choice(inner) if root and inner else None
    if isinstance(chosen, dict):
        key = rng.choice(list(chosen))
        kind = rng.random()
        if kind < 0.15:
            chosen[f"{key}?"] = chosen.pop(key)
        elif kind < 0.3:
            del chosen[key]
        else:
            chosen[key] = rng.choice(ABSURD)
    elif chosen is not None:
        chosen[rng.randrange(len(chosen))] = rng.choice(ABSURD)
    return json.dumps(root if chosen is not None else rng.choice(ABSURD), indent=1).encode()


DAMAGES: dict[str, Damage] = {
    function.__name__.replace("_", " "): function
    for function in (cut, emptied, bit_flipped, zeroed, overwritten, lengthened, repeated, value_changed)
}
