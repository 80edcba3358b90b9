"""Sequences as graphs: node i is linked to node i + 1, and `Data.tokens` holds a word for each node."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, InputTypeError

TOKENS = "tokens"


def path_edges(num_nodes: int) -> Tensor:
    """The edge index [2, num_nodes - 1] of a path in node order: 0 -> 1 -> 2 ..."""
    first = torch.arange(max(num_nodes - 1, 0))
    return torch.stack([first, first + 1])


def has_tokens(graph: Data) -> bool:
    """Whether a graph has a word for each node."""
    return graph.get(TOKENS) is not None


def as_sequence(graph: Data, where: str) -> Data:
    """A graph with tokens, complete: without edges it becomes a path, without features it has none.

    A graph without tokens, or a complete one, is returned unchanged.

    Args:
        graph: may have `tokens`, a list of strings, one for each node.
        where: the call and the graph, for messages.
    """
    if not has_tokens(graph):
        return graph
    tokens = check_tokens(graph[TOKENS], where)
    count = len(tokens) if graph.x is None else len(graph.x)
    if len(tokens) != count:
        raise GraphError(f"{where}: there are {len(tokens)} tokens for {count} nodes. Give one token for each node.")
    if graph.x is not None and graph.edge_index is not None:
        return graph
    complete = copy.copy(graph)
    if graph.x is None:
        complete.x = torch.zeros(count, 0)
    if graph.edge_index is None:
        complete.edge_index = path_edges(count)
    return complete


def check_tokens(tokens: object, where: str) -> Sequence[str]:
    """A list of strings, or an error that says what was given instead."""
    if isinstance(tokens, str) or not isinstance(tokens, Sequence):
        remedy = " Use its tolist()." if hasattr(tokens, "tolist") else ""
        raise InputTypeError(
            f"{where}: tokens is a {type(tokens).__name__}, not a list of strings, one for each node.{remedy}"
        )
    wrong = next((place for place, token in enumerate(tokens) if not isinstance(token, str)), None)
    if wrong is not None:
        raise InputTypeError(
            f"{where}: token {wrong} is a {type(tokens[wrong]).__name__}, not a string. Convert it with str()."
        )
    return tokens
