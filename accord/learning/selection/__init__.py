"""What is chosen on validation data: how node and edge network combine, and how the field is solved."""

from accord.learning.selection._careful import choose_carefully
from accord.learning.selection._combination import ADDED_LATER, FieldChoice, Shrinkage
from accord.learning.selection._grid import CombinationGrid, choose_combination
from accord.learning.selection._likelihood import fit_combination
from accord.learning.selection._triangle_choice import TriangleChoice
from accord.learning.selection._triangles import TriangleGrid, choose_triangles

__all__ = [
    "ADDED_LATER",
    "CombinationGrid",
    "FieldChoice",
    "Shrinkage",
    "TriangleChoice",
    "TriangleGrid",
    "choose_carefully",
    "choose_combination",
    "choose_triangles",
    "fit_combination",
]
