"""The fused GPU kernels in Triton."""
