"""From pairwise fields to fields with factors, and back."""

import torch
from torch import Tensor

from accord.errors import TooLargeError
from accord.field._field import PairwiseField
from accord.field.factors._field import FactorField
from accord.field.factors._flat import table_blocks
from accord.field.factors._groups import TableFactors
from accord.field.factors._ragged import RaggedField
from accord.field.factors._tables import tabulate

MOST_ROWS = 2**20  # of a factor's table: the states of the variable that stands for it


def from_pairwise(field: PairwiseField) -> FactorField:
    """The same field with its edges as factors of two variables."""
    edges = TableFactors(field.edge_index.t(), field.edge)
    return FactorField(field.node, [edges], field.graph, num_graphs=field.num_graphs)


def to_pairwise(field: FactorField) -> RaggedField:
    """The same field with edges only, and more variables.

    A factor of three or more variables becomes a variable of its own, numbered after the field's, which has a state for
    each row of the table that is not forbidden, and an edge to each variable of the factor. Rules become chains of
    tables first (see `tabulate`). The field's variables determine the others, so scores, marginals and the partition
    function stay.

    Raises:
        TooLargeError: a table has more than 2**20 rows that are allowed.
    """
    whole = tabulate(field)
    lead = field.replicas
    nodes = [whole.node[..., v, :count].expand(*lead, count) for v, count in enumerate(whole.states.tolist())]
    pairs: dict[tuple[int, int], Tensor] = {}
    graph = [whole.graph]
    for block in table_blocks(whole):
        order, tables = block.order, block.tables_of(whole)
        for scope, number in zip(block.scope.tolist(), block.table.tolist(), strict=True):
            table = tables.select(-order - 1, number)
            table = table.expand(*lead, *block.shape)
            if order == 1:
                nodes[scope[0]] = nodes[scope[0]] + table
            elif order == 2:
                _add_pair(pairs, scope[0], scope[1], table)
            else:
                rows, values = _rows(table, order)
                for axis, variable in enumerate(scope):
                    match = rows[:, axis, None] == torch.arange(block.shape[axis], device=rows.device)
                    link = torch.where(match, 0.0, -torch.inf).to(table.dtype)
                    _add_pair(pairs, len(nodes), variable, link.expand(*lead, *link.shape))
                graph.append(whole.graph[scope[:1]])
                nodes.append(values)
    index = torch.tensor(list(pairs), dtype=torch.long, device=whole.node.device).reshape(-1, 2).t()
    return RaggedField(index, nodes, list(pairs.values()), torch.cat(graph), field.num_graphs)


def _rows(table: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """States of the rows that some replica allows [rows, order], and their values [*replicas, rows]."""
    states = table.shape[table.dim() - order :]
    possible = (table.detach() > -torch.inf).reshape(-1, *states).any(0)
    rows = possible.nonzero()
    if not len(rows):  # nothing is allowed: a single row keeps the variable
        rows = rows.new_zeros(1, order)
    if len(rows) > MOST_ROWS:
        raise TooLargeError(
            f"to_pairwise: a factor of {order} variables has {len(rows)} allowed rows, more than {MOST_ROWS}. Solve "
            "the field as it is, or split the factor."
        )
    numbers = rows[:, 0]
    for size, state in zip(states[1:], rows.unbind(1)[1:], strict=True):
        numbers = numbers * size + state
    return rows, table.flatten(-order)[..., numbers]


def _add_pair(pairs: dict[tuple[int, int], Tensor], source: int, target: int, table: Tensor) -> None:
    """Add a table to that of an edge, which may be stored in the other direction."""
    if (target, source) in pairs:
        source, target, table = target, source, table.mT
    known = pairs.get((source, target))
    pairs[source, target] = table if known is None else known + table
