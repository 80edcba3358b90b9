"""Code that runs on the GPU."""
