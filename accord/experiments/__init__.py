"""The paper's tables as experiments: run, stored with all that led to them, and shown."""

from accord.experiments._citation import reproduce_citation, write_table
from accord.experiments._comparison import Comparison, compare, read_comparisons
from accord.experiments._methods import ROWS, reproduce_methods, run_row, write_methods_table
from accord.experiments._provenance import provenance
from accord.experiments._result import Result, read_results
from accord.experiments._tables import comparison_table

__all__ = [
    "ROWS",
    "Comparison",
    "Result",
    "compare",
    "comparison_table",
    "provenance",
    "read_comparisons",
    "read_results",
    "reproduce_citation",
    "reproduce_methods",
    "run_row",
    "write_methods_table",
    "write_table",
]
