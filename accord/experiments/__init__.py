"""The paper's tables as experiments: run, stored with all that led to them, and shown."""

from accord.experiments._citation import reproduce_citation, write_table
from accord.experiments._comparison import Comparison, compare, read_comparisons
from accord.experiments._convergence import draw_convergence, reproduce_convergence
from accord.experiments._methods import ROWS, reproduce_methods, run_row, write_methods_table
from accord.experiments._ppi import reproduce_ppi, write_ppi_table
from accord.experiments._provenance import provenance
from accord.experiments._result import Result, read_results
from accord.experiments._run_time import reproduce_run_time
from accord.experiments._tables import comparison_table

__all__ = [
    "ROWS",
    "Comparison",
    "Result",
    "compare",
    "comparison_table",
    "draw_convergence",
    "provenance",
    "read_comparisons",
    "read_results",
    "reproduce_citation",
    "reproduce_convergence",
    "reproduce_methods",
    "reproduce_ppi",
    "reproduce_run_time",
    "run_row",
    "write_methods_table",
    "write_ppi_table",
    "write_table",
]
