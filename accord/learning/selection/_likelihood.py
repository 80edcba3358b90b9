"""The combination fitted instead of searched: a few numbers that maximise the likelihood of validation labels.

The gradient goes through a few sweeps of sum-product propagation. This is the better choice where probabilities matter
more than the one best labelling; a grid optimises the metric itself.
"""

import torch
from torch import Tensor

from accord.evaluation import level_score, needs_probabilities
from accord.graphs import Topology
from accord.inference import propagate
from accord.learning.objectives import node_loss
from accord.learning.selection._combination import FieldChoice, Shrinkage
from accord.learning.selection._grid import CombinationGrid

FITTED = ("sharpness", "power", "node_weight", "node_share")
SWEEPS, STEPS, RATE = 5, 80, 0.05  # enough for Adam to converge on so few parameters


def fit_combination(
    node: Tensor,
    edge: Tensor,
    targets: Tensor,
    topology: Topology,
    level: str,
    grid: CombinationGrid,
    damping: float,
    shrinkage: Shrinkage | None = None,
) -> FieldChoice:
    """Sharpness, power, node weight and the share of node marginals that make validation labels most likely.

    Arguments are those of `choose_combination`; everything else takes the grid's first value.
    """
    replicas = node.shape[0]
    first = torch.tensor(grid.candidates()[0], dtype=node.dtype, device=node.device)
    start = FieldChoice.from_rows(first.expand(replicas, -1), node.new_zeros(replicas), shrinkage).tensors()
    # Softplus keeps numbers positive (0.54 gives 1), the sigmoid keeps the share between 0 and 1 (-2.2 gives 0.1).
    raw = {name: node.new_full((replicas,), 0.54) for name in FITTED[:3]}
    raw["node_share"] = node.new_full((replicas,), -2.2)
    for value in raw.values():
        value.requires_grad_()
    optimiser = torch.optim.Adam(raw.values(), lr=RATE)

    def chosen() -> FieldChoice:
        values = {name: torch.nn.functional.softplus(raw[name]) for name in FITTED[:3]}
        return FieldChoice(**start | values | {"node_share": raw["node_share"].sigmoid()})

    for _ in range(STEPS):
        optimiser.zero_grad()
        with torch.enable_grad():
            field = chosen().field(node.detach(), edge.detach(), topology)
            beliefs = propagate(field, damping=damping, max_sweeps=SWEEPS, tolerance=0.0)
            node_loss(beliefs.node, targets).sum().backward()
        optimiser.step()
    with torch.no_grad():
        best = chosen()
        field = best.field(node, edge, topology)
        logs = best.beliefs(field, "sum", damping).node if needs_probabilities(level) else None
        score = level_score(level, best.labels(field, damping), targets, topology, logs).to(node.dtype)
    return FieldChoice(**{**best.tensors(), "score": score})
