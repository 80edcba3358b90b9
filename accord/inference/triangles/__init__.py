"""Fields with triangles solved: exactly, by regions, or by factors."""

from accord.inference.triangles._beliefs import TriangleBeliefs
from accord.inference.triangles._propagate import propagate_triangles
from accord.inference.triangles._solve import AnyBeliefs, AnyField, SolvedBeliefs, decode_triangles, solve_triangles

__all__ = [
    "AnyBeliefs",
    "AnyField",
    "SolvedBeliefs",
    "TriangleBeliefs",
    "decode_triangles",
    "propagate_triangles",
    "solve_triangles",
]
