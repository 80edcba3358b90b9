"""Pairwise fields on paths, solved as chains."""

import torch
from torch import Tensor

from accord.field import PairwiseField, chains_of
from accord.inference.chains._beliefs import solve_chains

MOST_PADDING = 16  # times as many positions as nodes; with more, passing messages on the graphs is faster
FREE_PADDING = 2**14  # positions that cost nothing worth mentioning


def path_labels(field: PairwiseField) -> Tensor | None:
    """The best labelling [*replicas, nodes], exactly; None unless all graphs are paths in node order.

    Also None where lengths differ so much that chains of equal length would be mostly padding.
    """
    layout = field.structure.paths
    if layout is None or len(layout.lengths) * layout.longest > MOST_PADDING * field.num_nodes + FREE_PADDING:
        return None
    chains = chains_of(field)
    if chains is None:
        return None
    with torch.no_grad():
        return chains.at_nodes(solve_chains(chains.field, "max", "path_labels").decode())


def path_likelihood(field: PairwiseField, labels: Tensor) -> Tensor | None:
    """Log-likelihood of known labels, exactly, with gradients [*replicas, graphs]; None unless all graphs are paths.

    Args:
        field: the potentials.
        labels: [*replicas, nodes], -1 where a label is missing; these are summed out.
    """
    chains = chains_of(field)
    if chains is None:
        return None
    known = chains.from_nodes(labels.expand(*field.replicas, -1), -1)
    total = solve_chains(chains.field, "sum", "path_likelihood").log_partition
    if bool((labels >= 0).all()):
        return chains.field.score(known.clamp_min(0)) - total
    return solve_chains(chains.field.clamp(known), "sum", "path_likelihood").log_partition - total
