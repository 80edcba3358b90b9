"""The fused CPU kernel: C++ in `native/`, compiled at first use and kept in the user's cache."""

from accord.inference.kernels.cpu._solve import needed_bytes, solve, unavailable, unfit

__all__ = ["needed_bytes", "solve", "unavailable", "unfit"]
