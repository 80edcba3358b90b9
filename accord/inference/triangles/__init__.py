"""Propagation on fields with triangles: messages from triangles to edges, and from edges to nodes."""

from accord.inference.triangles._beliefs import TriangleBeliefs
from accord.inference.triangles._propagate import propagate_triangles

__all__ = ["TriangleBeliefs", "propagate_triangles"]
