"""GPU kernels of the replica layers."""
