"""Triton kernels for GPUs: fused attention, and sparse products with a fixed order of summation.

Only `accord._triton` imports Triton, so this folder can be imported without it.
"""

from accord.encoders.replica.triton._attention import MAX_CHANNELS, fused_attention
from accord.encoders.replica.triton._product import sparse_product

__all__ = ["MAX_CHANNELS", "fused_attention", "sparse_product"]
