"""The paper's tables as experiments: run, stored with everything that produced them, and shown."""

from accord.experiments._citation import citation_table, compare, reproduce_citation, write_citation_table
from accord.experiments._convergence import draw_convergence, reproduce_convergence
from accord.experiments._methods import VARIANTS, MethodVariant, reproduce_methods, run_variant, write_methods_table
from accord.experiments._ppi import reproduce_ppi, write_ppi_table
from accord.experiments._provenance import provenance
from accord.experiments._results import Result
from accord.experiments._run_time import reproduce_run_time
from accord.experiments._store import read_result, read_results

__all__ = [
    "VARIANTS",
    "MethodVariant",
    "Result",
    "citation_table",
    "compare",
    "draw_convergence",
    "provenance",
    "read_result",
    "read_results",
    "reproduce_citation",
    "reproduce_convergence",
    "reproduce_methods",
    "reproduce_ppi",
    "reproduce_run_time",
    "run_variant",
    "write_citation_table",
    "write_methods_table",
    "write_ppi_table",
]
