"""The paper's tables as experiments: run, stored with all that led to them, and shown."""

from accord.experiments._citation import reproduce_citation, write_table
from accord.experiments._comparison import Comparison, compare, read_comparisons
from accord.experiments._provenance import provenance
from accord.experiments._tables import comparison_table

__all__ = [
    "Comparison",
    "compare",
    "comparison_table",
    "provenance",
    "read_comparisons",
    "reproduce_citation",
    "write_table",
]
