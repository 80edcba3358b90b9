"""Triton kernels under test: natively where there is a GPU, else in Triton's interpreter (see conftest.py)."""

import pytest
import torch

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def _mend_interpreter():
    """Triton asks numpy for int(array of one number), which numpy 2.4 refuses."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def mended(tensor, *scope):  # which came with Triton 3.6
        patch(tensor, *scope)
        put = scope[0].set_attr if scope else setattr
        put(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = mended


if DEVICE == "cpu":
    _mend_interpreter()
