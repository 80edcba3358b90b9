"""The report: tables, figures and claims of the paper beside ours, written from the store."""

from accord.experiments.reproduction.report._claims import Claim, Comparison, Verdict, judge
from accord.experiments.reproduction.report._comparisons import CLAIMS
from accord.experiments.reproduction.report._tables import closeness, filled, table_lines
from accord.experiments.reproduction.report._writing import html_report, markdown_report, report_parts, write_report

__all__ = [
    "CLAIMS",
    "Claim",
    "Comparison",
    "Verdict",
    "closeness",
    "filled",
    "html_report",
    "judge",
    "markdown_report",
    "report_parts",
    "table_lines",
    "write_report",
]
