"""Layers with a leading replica axis, and their randomness."""
