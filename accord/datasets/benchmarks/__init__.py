"""Benchmark sets by name, read from files or fetched by PyG."""
