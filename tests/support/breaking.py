"""Breakers: functions that take an argument of a call and return another value, usually a bad one."""

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

Random = random.Random
Arguments = dict[str, object]
Breaker = Callable[[Random, object, Arguments], object]  # the value to break, and all arguments of the call

ENDLESS = 10**5000  # too large for a float, and too long for Python to print

WRONG_OBJECTS = [
    None,
    3,
    -1,
    2.5,
    True,
    "a",
    "",
    b"ab",
    [1, 2],
    [[0.5]],
    (0, 1),
    {},
    {"a": 1},
    {1},
    object(),
    Tensor,
    1j,
    float("nan"),
    ENDLESS,
    print,
    range(3),
    ...,
    torch.float32,
    torch.device("cpu"),
    np.ones(2),
    np.array(["a"]),
    np.float32(0.5),
    np.int64(1),
    torch.Generator(),
    HeteroData(),
]


def wrong_object(rng: Random, value: object, arguments: Arguments) -> object:
    return rng.choice(WRONG_OBJECTS)


def one_of(name: str, *choices: object) -> Breaker:
    """A breaker that returns one of the given values."""

    def chosen(rng: Random, value: object, arguments: Arguments) -> object:
        return rng.choice(choices)

    chosen.__name__ = name
    return chosen


def tensors_only(breaker: Callable[[Random, Tensor], object]) -> Breaker:
    """A breaker of tensors; a value that an earlier breaker replaced becomes a wrong object."""

    def guarded(rng: Random, value: object, arguments: Arguments) -> object:
        if isinstance(value, Tensor) and value.layout == torch.strided and not value.is_meta:
            return breaker(rng, value)
        return wrong_object(rng, value, arguments)

    guarded.__name__ = breaker.__name__
    return guarded


@tensors_only
def as_list(rng: Random, value: Tensor) -> object:
    return value.tolist()


@tensors_only
def as_numpy(rng: Random, value: Tensor) -> object:
    return value.detach().numpy() if value.dtype != torch.bfloat16 else None


@tensors_only
def on_meta(rng: Random, value: Tensor) -> Tensor:
    return value.to("meta")


@tensors_only
def as_sparse(rng: Random, value: Tensor) -> object:
    return value.detach().to_sparse() if value.dim() else "0-dimensional"


@tensors_only
def wrong_dtype(rng: Random, value: Tensor) -> Tensor:
    kinds = [torch.float16, torch.bfloat16, torch.complex64, torch.bool, torch.int64, torch.int32, torch.float32]
    kinds.append(torch.float64)
    return value.nan_to_num(0.0).to(rng.choice(kinds)) if not value.is_complex() else value.abs()


@tensors_only
def scalar(rng: Random, value: Tensor) -> Tensor:
    return value.new_zeros(())


@tensors_only
def axis_less(rng: Random, value: Tensor) -> Tensor:
    return value[0] if value.dim() and len(value) else value.flatten()


@tensors_only
def axis_more(rng: Random, value: Tensor) -> Tensor:
    return value.unsqueeze(rng.randint(-value.dim() - 1, value.dim()))


@tensors_only
def replicas_off(rng: Random, value: Tensor) -> Tensor:
    return torch.stack([value] * rng.choice([3, 5]))


@tensors_only
def transposed(rng: Random, value: Tensor) -> Tensor:
    return value.transpose(-1, 0) if value.dim() else value[None]


@tensors_only
def too_short(rng: Random, value: Tensor) -> Tensor:
    if not value.numel() or not value.dim():
        return value[None]
    axis = rng.randrange(value.dim())
    return value.narrow(axis, 0, value.shape[axis] - 1)


@tensors_only
def too_long(rng: Random, value: Tensor) -> Tensor:
    if not value.numel() or not value.dim():
        return value.new_zeros(*value.shape, 7)
    axis = rng.randrange(value.dim())
    return torch.cat([value, value.narrow(axis, 0, 1)], axis)


@tensors_only
def emptied(rng: Random, value: Tensor) -> Tensor:
    return value[..., :0] if value.dim() else value.new_zeros(0)


def poked(name: str, *numbers: float) -> Breaker:
    """A breaker that sets one entry, or sometimes all, to one of `numbers`."""

    def poke(rng: Random, value: Tensor) -> Tensor:
        if value.dtype == torch.bool:
            return ~value
        number = rng.choice(numbers)
        # Clip to the range of the dtype.
        whole = not value.is_floating_point() and not value.is_complex()
        kind = torch.iinfo(value.dtype) if whole else torch.finfo(value.dtype)
        if whole or math.isfinite(number):
            number = max(min(kind.max, number), kind.min)
        broken = value.detach().clone(memory_format=torch.contiguous_format)
        if rng.random() < 0.2:
            return torch.full_like(broken, number)
        if broken.numel():
            broken.view(-1)[rng.randrange(broken.numel())] = number
        return broken

    poke.__name__ = name
    return tensors_only(poke)


@tensors_only
def contiguous_no_more(rng: Random, value: Tensor) -> Tensor:
    """Valid: the same numbers, laid out with gaps."""
    return torch.stack([value, value], -1)[..., 0]


@tensors_only
def with_grad(rng: Random, value: Tensor) -> Tensor:
    """Valid for potentials; labels become floats first."""
    differentiable = value.is_floating_point() or value.is_complex()
    return value.detach().to(value.dtype if differentiable else torch.float32).requires_grad_()


@tensors_only
def self_loop(rng: Random, value: Tensor) -> Tensor:
    node = value.flatten()[:1] if value.numel() else value.new_zeros(1)
    return torch.cat([value, node.expand(2, 1)], 1) if value.dim() == 2 and len(value) == 2 else value[None]


@tensors_only
def repeated(rng: Random, value: Tensor) -> Tensor:
    if value.dim() != 2 or not value.numel():
        return value.float()
    once = value[:, rng.randrange(value.shape[1])][:, None]
    return torch.cat([value[:, :-1], rng.choice([once, once.flip(0)])], 1)


@tensors_only
def across(rng: Random, value: Tensor) -> Tensor:
    """An edge from the first node to a later one, which may be in another graph of the batch or missing."""
    far = rng.choice([1, 2, 3, 4])
    broken = value.clone()
    if value.dim() == 2 and len(value) == 2 and value.shape[1]:
        broken[:, 0] = torch.tensor([0, far]).to(value.dtype)
        return broken
    return torch.tensor([[0], [far]])


FORMS = [wrong_object, wrong_object, as_list, as_numpy, on_meta, as_sparse, wrong_dtype, scalar, axis_less, axis_more]
SIZES = [transposed, too_short, too_long, emptied, replicas_off]
VALID = [contiguous_no_more, with_grad]
NUMBERS = [
    poked("not a number", float("nan")),
    poked("infinite", float("inf")),
    poked("huge", 3.4e38, -3.4e38, 1e38, 1e300, -1e308),
    poked("forbidden", float("-inf")),
]
POTENTIALS = [*FORMS, *SIZES, *VALID, *NUMBERS, NUMBERS[0], NUMBERS[1]]
OUTSIDE = poked("outside", -1, -2, -(2**62), 4, 5, 99, 2**31, 2**62)
WHOLE = [*FORMS, *SIZES, contiguous_no_more, OUTSIDE, OUTSIDE, OUTSIDE, wrong_dtype, with_grad]
EDGES = [*WHOLE, self_loop, repeated, repeated, across, across]
BAD_COUNTS = (-1, 0, 1.5, "3", True, 2**62, 2**70, ENDLESS, float("nan"), torch.tensor(2), [3], 1j)
COUNTS = [one_of("bad count", *BAD_COUNTS)]
NOT_COUNTS = [one_of("bad count", -1, 1.5, "3", True, 2**70, ENDLESS, float("nan"), [3], 1j, torch.tensor([1, 2]))]
SWEEPS = [one_of("bad sweeps", -1, 1.5, "3", True, float("nan"), [1], -(2**70), torch.tensor(2), 1j)]
SAMPLES = [one_of("bad count", -1, 0, 1.5, "3", True, float("nan"), [1], None, torch.tensor(2), 1j)]
FIELDS = [wrong_object]
SEMIRINGS = [one_of("unknown", "min", "", "SUM", 3, None, True, [], {}, b"sum", torch.ones(2), float("nan"))]
FACTORS = [
    one_of("bad factor", -1, float("nan"), float("inf"), "a", "1", None, 1j, [], [-1.0], ["a"], {}, ENDLESS, -0.1),
    one_of("extreme factor", 1e-320, 1e38, 1e300, True),
    one_of("bad tensor", torch.ones(7), torch.ones(2, 3, 4), torch.tensor(1j), torch.tensor(-1.0), torch.ones(0)),
    one_of("strange tensor", torch.ones(2, device="meta"), torch.ones(1).to_sparse(), torch.tensor(True)),
    wrong_object,
]
OPTIONS: dict[str, Sequence[Breaker]] = {
    "semiring": SEMIRINGS,
    "damping": [
        one_of("bad damping", -1, 1, 2, -1e-9, float("nan"), float("inf"), "a", None, True, [0.5], 1j, ENDLESS),
        one_of("strange damping", 1e-320, 1 - 1e-16, torch.tensor(0.5), np.float32(0.5)),
        wrong_object,
    ],
    "max_sweeps": [*SWEEPS, one_of("astronomical", 2**31, 2**70, ENDLESS)],
    "tolerance": [
        one_of("bad tolerance", -1, float("nan"), float("inf"), "x", True, [0.1], ENDLESS, -1e-300, 1j),
        one_of("strange tolerance", 1e300, 1e-320, torch.tensor(0.1)),
        wrong_object,
    ],
    "edge_appearance": [
        one_of("bad appearance", 0, -1, 2, float("nan"), float("inf"), "foo", "", [0.5], None, True, 1j, ENDLESS),
        one_of("bad appearance tensor", torch.ones(7), torch.ones(3, 3, 3), torch.tensor(0.0), torch.tensor(True)),
        one_of("strange appearance", 1e-320, 1e-40, 1e-30, torch.tensor(1j), torch.ones(1).to_sparse()),
        poked("outside", 0.0, -1.0, 2.0, float("nan"), 1e-40),
        *FORMS,
        *SIZES,
        with_grad,
    ],
    "backend": [one_of("unknown", "cuda!", None, 3, "", ["auto"], b"auto", {}, torch.ones(1))],
    "start": [*FORMS, *SIZES, *VALID, *NUMBERS],
}
DATA: dict[str, Sequence[Breaker]] = {
    "edge_index": EDGES,
    "x": [*FORMS, *SIZES],
    "y": [*FORMS, *SIZES],
    "edge_attr": [*FORMS, *SIZES],
    "num_nodes": [*NOT_COUNTS, one_of("other count", 0, 1, 2)],
    "kind": [one_of("not a Data", HeteroData, dict, lambda **parts: None, lambda **parts: parts.get("x"))],
}
