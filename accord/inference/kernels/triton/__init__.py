"""The fused GPU kernels in Triton.

`_plan` decides how a problem is solved and in which `_form`, `_layout` arranges it in GPU memory, and `_solve`
launches the kernels of `device/`.
"""

from accord.inference.kernels.triton._solve import needed_bytes, solve, unavailable, unfit

__all__ = ["needed_bytes", "solve", "unavailable", "unfit"]
