"""Changes of a field's tensors after they were checked: in place, or by resizing."""

from collections.abc import Hashable

import torch
from torch import Tensor

from accord.errors import FieldError


def state_of(tensor: Tensor) -> Hashable:
    """A value that differs after torch changed the tensor in place, resized it, or gave it other memory.

    Changes that other libraries make in shared memory (numpy) are not seen. It takes a few microseconds.
    """
    version = None if tensor.is_inference() else tensor._version  # inference tensors count no changes
    try:
        memory = tensor.data_ptr(), tensor.storage_offset(), tensor.untyped_storage().nbytes()
    except (NotImplementedError, RuntimeError):  # it stands for another tensor (torch.func)
        memory = None
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, version, memory


def check_memory_holds(where: str, **tensors: object) -> None:
    """Refuse tensors whose memory was taken away, so that reading them would end the process."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.layout != torch.strided or not tensor.numel():
            continue
        stored = _stored_bytes(tensor)
        last = (
            tensor.numel() - 1
            if tensor.is_contiguous()
            else sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
        )
        if stored is not None and (tensor.storage_offset() + last + 1) * tensor.element_size() > stored:
            raise FieldError(
                f"{where}: {name} has shape {list(tensor.shape)}, but its storage holds only {stored} bytes: the "
                "storage was resized. Give a tensor that has all its memory."
            )


def _stored_bytes(tensor: Tensor) -> int | None:
    """Size of a tensor's storage; None if it stands for another tensor."""
    try:
        return tensor.untyped_storage().nbytes()
    except (NotImplementedError, RuntimeError):
        return None


def dense(values: Tensor) -> Tensor:
    """The numbers that a tensor holds, each once: axes that were made by `expand` have length 1."""
    if 0 not in values.stride():
        return values.detach()
    axes = zip(values.shape, values.stride(), strict=True)
    return values.detach()[tuple(slice(0, 1) if size > 1 and not step else slice(None) for size, step in axes)]
