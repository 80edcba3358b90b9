"""Propagation on fields with factors over any few variables."""
