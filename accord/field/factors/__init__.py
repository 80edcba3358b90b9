"""Fields with factors over any few variables: tables, and rules that automata read."""

from accord.field.factors._field import FactorField
from accord.field.factors._flat import FlatField, RuleBlock, TableBlock, flatten, table_blocks
from accord.field.factors._groups import AutomatonFactors, FactorGroup, TableFactors
from accord.field.factors._pairwise import from_pairwise, to_pairwise
from accord.field.factors._ragged import RaggedField
from accord.field.factors._rules import AndFactors, AtMostOneFactors, OrFactors, ParityFactors, PottsFactors
from accord.field.factors._tables import tabulate

__all__ = [
    "AndFactors",
    "AtMostOneFactors",
    "AutomatonFactors",
    "FactorField",
    "FactorGroup",
    "FlatField",
    "OrFactors",
    "ParityFactors",
    "PottsFactors",
    "RaggedField",
    "RuleBlock",
    "TableBlock",
    "TableFactors",
    "flatten",
    "from_pairwise",
    "table_blocks",
    "tabulate",
    "to_pairwise",
]
