"""Files of models and results: .uai and .fg in and out, evidence, and the result files of the UAI competitions."""

from accord.field.files._evidence import read_evidence
from accord.field.files._fg import read_fg, write_fg
from accord.field.files._results import read_map, read_mar, read_pr, write_map, write_mar, write_pr
from accord.field.files._uai import read_uai, write_uai

__all__ = [
    "read_evidence",
    "read_fg",
    "read_map",
    "read_mar",
    "read_pr",
    "read_uai",
    "write_fg",
    "write_map",
    "write_mar",
    "write_pr",
    "write_uai",
]
