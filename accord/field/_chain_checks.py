"""Checks of chains: shapes that broadcast, lengths, and labels."""

import math
from typing import Protocol

import torch
from torch import Tensor

from accord.errors import FieldError, InputTypeError
from accord.field._checks import broadcast_replicas, check_form
from accord.graphs._checks import check_integer, check_same_device


class Chains(Protocol):
    """What is needed of a chain field here."""

    @property
    def edge(self) -> Tensor:
        """Tables of steps."""
        ...

    @property
    def num_chains(self) -> int:
        """How many chains."""
        ...

    @property
    def length(self) -> int:
        """Positions of the longest chain."""
        ...

    @property
    def num_states(self) -> int:
        """How many values a label can take."""
        ...

    @property
    def replicas(self) -> torch.Size:
        """Common shape of the replica axes."""
        ...

    @property
    def present(self) -> Tensor:
        """Which positions lie within their chain."""
        ...

    @property
    def is_ragged(self) -> bool:
        """Whether some chain is shorter than others."""
        ...


def check_chain_forms(node: object, edge: object, start: object, end: object, where: str) -> torch.Size:
    """Refuse potentials that are not float tensors, or whose shapes do not fit together; return their replicas."""
    first = check_form(node, "node", "chains, length, states", where)
    chains, length, states = first.shape[-3:]
    if length < 1 or states < 1:
        raise FieldError(
            f"{where}: node potentials have shape {list(first.shape)}: {length} positions and {states} states. "
            "Give each chain at least one position, and each position at least one state."
        )
    needed = {"edge": (chains, length - 1, states, states), "start": (chains, states), "end": (chains, states)}
    names = {"edge": "chains, length - 1, states, states", "start": "chains, states", "end": "chains, states"}
    lead = {"node": first.shape[:-3]}
    for name, given in (("edge", edge), ("start", start), ("end", end)):
        if given is None and name != "edge":
            continue
        own_axes = 2 if name == "edge" else 1
        values = check_form(given, name, ", ".join(["states"] * own_axes), where)
        shape = needed[name]
        shared = range(1, min(values.dim(), len(shape)) + 1)
        if any(values.shape[-k] != shape[-k] and (k <= own_axes or values.shape[-k] != 1) for k in shared):
            raise FieldError(
                f"{where}: {name} potentials have shape {list(values.shape)}, which does not broadcast to "
                f"[*replicas, {names[name]}] = [..., {', '.join(map(str, shape))}]. Give every axis its full size or "
                "1, or leave out leading axes; those of states need their full size."
            )
        if values.dtype != first.dtype:
            raise InputTypeError(
                f"{where}: node potentials are {first.dtype}, {name} potentials {values.dtype}. Convert one of them."
            )
        if values.device != first.device:
            check_same_device(where, node=first, **{name: values})
        lead[name] = values.shape[: -len(shape)]
    return broadcast_replicas(where, **lead) if any(lead.values()) else torch.Size()


def check_lengths(lengths: object, chains: int, longest: int, device: torch.device, where: str) -> tuple[Tensor, bool]:
    """Return lengths [chains] as int64, and whether some are less than `longest`."""
    if lengths is None:
        return torch.full((chains,), longest, dtype=torch.long, device=device), False
    values = check_integer(lengths, "lengths", where)
    if values.shape != (chains,):
        raise FieldError(
            f"{where}: lengths have shape {list(values.shape)}, but [chains] = [{chains}] is needed. "
            "Give one for each chain."
        )
    if values.device != device:
        raise FieldError(f"{where}: lengths are on {values.device}, node on {device}. Move them with .to(device).")
    if not chains:
        return values, False
    low, high = torch.stack(values.aminmax()).tolist()
    if low < 1 or high > longest:
        raise FieldError(
            f"{where}: lengths run from {low} to {high}, but must lie in 1 to {longest}. Leave out empty chains, and "
            "pad node potentials to the longest."
        )
    return values, low < longest


def check_chain_labels(labels: object, field: Chains, lowest: int, where: str) -> Tensor:
    """Return labels [..., chains, length] as int64, 0 beyond each chain; refuse others than `lowest` and more."""
    values = check_integer(labels, "labels", where)
    shape = (field.num_chains, field.length)
    if values.shape[-2:] != shape:
        raise FieldError(
            f"{where}: labels have shape {list(values.shape)}, but [..., chains, length] = [..., {shape[0]}, "
            f"{shape[1]}] is needed. Give one for each position."
        )
    check_same_device(where, field=field.edge, labels=values)
    if field.is_ragged:
        values = values.masked_fill(~field.present, 0)
    if values.numel():
        low, high = torch.stack(values.aminmax()).tolist()
        if low < lowest or high >= field.num_states:
            free = "-1 (free) and " if lowest < 0 else ""
            raise FieldError(
                f"{where}: labels run from {low} to {high}; allowed are {free}0 to {field.num_states - 1}. "
                "Number the states from 0, and give each position within its chain a label."
            )
    return values


def expand_tables(field: Chains) -> Tensor:
    """Tables of all steps [*replicas, chains, length - 1, states, states], without a copy."""
    states = field.num_states
    return field.edge.expand(*field.replicas, field.num_chains, field.length - 1, states, states)


def merge_replicas(values: Tensor, axes: int, replicas: torch.Size) -> Tensor:
    """[*replicas, *axes] as [R, *axes]. R is 1 if the values have no replicas of their own; missing axes become 1."""
    extra = values.dim() - axes
    if extra <= 0:
        return values.reshape((1,) * (1 - extra) + values.shape)
    lead, own = values.shape[:extra], values.shape[extra:]
    if extra == 1 or math.prod(lead) == 1:
        return values if extra == 1 else values.reshape(1, *own)
    return values.expand(*replicas, *own).reshape(replicas.numel(), *own)
