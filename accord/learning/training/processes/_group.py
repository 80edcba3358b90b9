"""The processes that train together, started by a launcher: who they are, sums over them, and agreement among them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from torch import Tensor

from accord._launched import launched_processes
from accord.errors import InputError, OptionError, ProcessLostError
from accord.learning.training._options import TrainingOptions
from accord.learning.training._settings import FABRIC_PRECISIONS

Value = TypeVar("Value")


@dataclass(frozen=True)
class Processes:
    """The processes of one training; alone, this process is the first and only one.

    Args:
        rank: the number of this process.
        count: how many there are.
        device: where tensors lie that are sent.
    """

    rank: int = 0
    count: int = 1
    device: torch.device = torch.device("cpu")

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """Values added up over all processes, without a gradient; every process gets the same bits."""
        if self.count == 1:
            return values
        total = values.detach().to(self.device, copy=True)
        with _talking():
            dist.all_reduce(total)
        return total.to(values.device)

    def sum_number(self, number: int) -> int:
        """A whole number added up over all processes."""
        return int(self.sum(torch.tensor(number))) if self.count > 1 else number

    def from_first(self, value: Value) -> Value:
        """What the first process has; other processes may give anything."""
        if self.count == 1:
            return value
        found: list[Any] = [value]
        with _talking():
            dist.broadcast_object_list(found, src=0, device=self.device)
        agreed: Value = found[0]
        return agreed

    def copy_first(self, tensor: Tensor) -> None:
        """Overwrite a tensor by that of the first process, in place."""
        if self.count > 1:
            own = tensor.detach().to(self.device).contiguous()
            with _talking():
                dist.broadcast(own, src=0)
            tensor.detach().copy_(own)

    def check_same(self, code: str, what: str) -> None:
        """Refuse to train where processes differ in something that must be the same everywhere."""
        if self.count == 1:
            return
        found: list[str] = [""] * self.count
        with _talking():
            dist.all_gather_object(found, code)
        other = [rank for rank, own in enumerate(found) if own != found[0]]
        if other:
            raise InputError(
                f"processes: {what} of process {other[0]} differ from those of process 0. Give every process, on "
                "every machine, the same files and options."
            )


def make_fabric(options: TrainingOptions) -> Fabric:
    """Device, precision and processes of a training; several processes are connected here.

    Raises:
        OptionError: several processes are wanted and no launcher has started them, or as many as are wanted; or the
            machine has fewer GPUs.
    """
    several = options.processes > 1
    if several:
        _check_launcher(options)
        _check_gpus(options)
    fabric = Fabric(
        accelerator=options.accelerator,
        strategy="ddp" if several else "auto",
        devices=options.devices,
        num_nodes=options.nodes,
        precision=FABRIC_PRECISIONS.get(options.precision, options.precision),  # type: ignore[arg-type]
        # Without a plugin Lightning looks for launchers, and starts MPI where mpi4py is installed.
        plugins=[TorchElasticEnvironment() if several else LightningEnvironment()],
    )
    with _quiet():
        fabric.launch()
    return fabric


def join_processes(options: TrainingOptions) -> Processes:
    """The processes of a training with these options, connected; alone where one is to train."""
    if options.processes == 1:
        return Processes()
    return processes_of(make_fabric(options))


def processes_of(fabric: Fabric) -> Processes:
    """The processes that a fabric connects."""
    return Processes(fabric.global_rank, fabric.world_size, fabric.device)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Lightning from announcing how many processes there are."""
    loggers = [logging.getLogger(name) for name in ("lightning.fabric", "lightning.pytorch")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _talking() -> Iterator[None]:
    """Report that another process is gone, in place of what the network library says of its connections."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessLostError(
            "processes: another process of this training has stopped or cannot be reached. Its own message says why; "
            "run the same command again to go on from the last checkpoint."
        ) from error


def _check_launcher(options: TrainingOptions) -> None:
    wanted, found = options.processes, launched_processes()
    asked = f"devices={options.devices}" + (f" on nodes={options.nodes}" if options.nodes > 1 else "")
    if found is None:
        raise OptionError(
            f"TrainingOptions: {asked} needs {wanted} processes, but no launcher has started them. Use `accord fit "
            f"--devices {options.devices}`, or start the script by torchrun --nproc-per-node {options.devices} SCRIPT."
        )
    if found != wanted:
        raise OptionError(
            f"TrainingOptions: {asked} needs {wanted} processes, but {found} were started. Give as many devices as "
            "torchrun's --nproc-per-node, and as many nodes as its --nnodes."
        )


def _check_gpus(options: TrainingOptions) -> None:
    """Each process takes a GPU of its own where there are any, unless it is to use the CPU."""
    if options.accelerator == "cpu" or not torch.cuda.is_available():
        return
    found = torch.cuda.device_count()
    if found < options.devices:
        raise OptionError(
            f"TrainingOptions: devices={options.devices} needs as many GPUs on each machine, but torch finds {found} "
            f"on this one. Give --devices {found}, or --accelerator cpu (in Python, devices={found} or "
            "accelerator='cpu')."
        )
