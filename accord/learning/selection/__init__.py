"""What is chosen on validation data: how node and edge network combine, and how the field is solved."""

from accord.learning.selection._combination import FieldChoice
from accord.learning.selection._grid import CombinationGrid, choose_combination
from accord.learning.selection._likelihood import fit_combination

__all__ = ["CombinationGrid", "FieldChoice", "choose_combination", "fit_combination"]
