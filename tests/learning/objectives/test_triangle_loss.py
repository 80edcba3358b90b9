"""The proxy problem of triangles, and the maximin game of a field with them."""

import torch
from support.triangle_cases import random_field
from torch_geometric.data import Data

from accord.graphs import GraphBatch, topology_triangles
from accord.inference import eliminate_beliefs
from accord.learning.objectives import GameOptions, maximin_objective, triangle_loss

STRIP = torch.tensor([[0, 0, 1, 1, 2, 2, 3], [1, 2, 2, 3, 3, 4, 4]])


def test_only_triangles_with_three_labels_count():
    batch = GraphBatch.collate([Data(x=torch.zeros(5, 1), edge_index=STRIP)])
    corner = topology_triangles(batch.topology).corner
    logits = torch.randn(1, len(corner), 2, 2, 2, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([[0, 1, 1, 0, -1]])
    logs = logits.flatten(2).log_softmax(-1).view_as(logits)
    known = [logs[0, row][tuple(targets[0, nodes])] for row, nodes in enumerate(corner) if 4 not in nodes]
    torch.testing.assert_close(triangle_loss(logits, targets, batch.topology)[0], -torch.stack(known).mean())
    assert float(triangle_loss(logits, torch.full((1, 5), -1), batch.topology)) == 0.0


def test_the_game_has_the_gradient_of_the_likelihood():
    field = random_field(5, STRIP, 2, 0)
    values = [field.node, field.edge, field.triangle]
    for labels in (torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0, -1, 1, -1, 1])):  # all known, and some
        given = [value.clone().requires_grad_() for value in values]
        objective, likelihood = maximin_objective(
            field.with_potentials(given[0], edge=given[1], triangle=given[2]), labels, GameOptions()
        )
        ours = torch.autograd.grad(objective.sum(), given)
        again = [value.clone().requires_grad_() for value in values]
        whole = field.with_potentials(again[0], edge=again[1], triangle=again[2])
        exact = eliminate_beliefs(whole.clamp(labels)).log_partition - eliminate_beliefs(whole).log_partition
        for mine, theirs in zip(ours, torch.autograd.grad(exact.sum(), again), strict=True):
            torch.testing.assert_close(mine, theirs)
        torch.testing.assert_close(likelihood, exact.detach())
