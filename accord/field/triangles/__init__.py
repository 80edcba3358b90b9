"""Fields with potentials on nodes, edges and triangles, and how pseudomarginals of triangles become potentials."""

from accord.field.triangles._field import TriangleField
from accord.field.triangles._pseudomarginals import TrianglePseudomarginals

__all__ = ["TriangleField", "TrianglePseudomarginals"]
