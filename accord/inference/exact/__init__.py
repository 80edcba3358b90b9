"""Exact inference: enumeration, elimination, and the junction tree that elimination works on."""
