"""How two networks combine: chosen among candidates on validation data, or fitted."""

from dataclasses import replace

import pytest
import torch
from learning.training_cases import RECIPE, VAL, fit, same
from torch.testing import assert_close

from accord.errors import OptionError
from accord.evaluation import graph_accuracy
from accord.field import Combination, Pseudomarginals
from accord.graphs import GraphBatch
from accord.inference import propagate
from accord.learning import CombinationGrid
from accord.learning.objectives import node_loss
from accord.learning.selection import FieldChoice, _grid, choose_combination


def test_candidates_as_replicas_equal_candidates_one_by_one():
    model = fit(seeds=(0, 1))
    held_out = GraphBatch.collate(VAL)
    node, edge = model.node_logits(held_out), model.edge_logits(held_out)
    targets = held_out.y[None].expand(2, -1)

    def choose(grid):
        return choose_combination(node, edge, targets, held_out.topology, "graph", grid, RECIPE.damping)

    together = choose(RECIPE.grid)
    alone = [
        choose(CombinationGrid(sharpness=(s,), power=(p,), node_weight=(w,))).score
        for s, p, w, *_ in RECIPE.grid.candidates()
    ]
    assert_close(together.score, torch.stack(alone).amax(0))


WIDE = CombinationGrid(
    sharpness=(1.0, 0.5),
    power=(1.0,),
    node_weight=(1.0,),
    normaliser=("own", "node"),
    appearance=(1.0, 0.5, "spanning"),
    semiring=("max", "sum"),
    sweeps=(3, 20),
)


def test_every_way_to_solve_is_a_candidate():
    """Solving by hand with the winner's settings gives its score."""
    model = fit(replace(RECIPE, grid=WIDE), seeds=(0, 1))
    held_out = GraphBatch.collate(VAL)
    assert len(WIDE.candidates()) == 48
    for place in range(2):
        own = {name: float(values[place]) for name, values in model.chosen.tensors().items()}
        node, edge = (logits[place] for logits in model.logits(held_out))
        combination = Combination(
            normaliser="node" if own["node_share"] else "own", power=own["power"], node_weight=own["node_weight"]
        )
        topology = held_out.topology
        field = combination.field(
            Pseudomarginals.from_logits(node, edge, own["sharpness"]), topology.edge_index, topology.graph
        )
        beliefs = propagate(
            field,
            semiring=("max", "sum")[int(own["semiring"])],
            damping=0.5,
            edge_appearance=own["appearance"] or "spanning",
            max_sweeps=int(own["sweeps"]),
        )
        score = graph_accuracy(beliefs.decode(), held_out.y, topology)
        assert float(score) == pytest.approx(own["score"])
        assert float(graph_accuracy(model.labels(held_out)[place], held_out.y, topology)) == pytest.approx(own["score"])


@pytest.mark.parametrize("grid", [RECIPE.grid, WIDE], ids=["usual", "wide"])
def test_the_choice_does_not_depend_on_how_many_are_solved_at_once(monkeypatch, grid):
    """Chunks of one candidate, of part of a sharpness, of one or several: each candidate is solved once, in order."""
    model = fit(seeds=(0, 1))
    held_out = GraphBatch.collate(VAL)
    node, edge = model.logits(held_out)
    targets = held_out.y[None].expand(2, -1)
    each = edge.numel() * edge.element_size()
    count = len(grid.candidates()) // len(grid.sharpness)
    found, solved = [], []
    solve = FieldChoice.labels

    def follow(self, field, damping):
        solved.append(solve(self, field, damping).flatten(0, 1))
        return solved[-1].view(*field.replicas, -1)

    monkeypatch.setattr(FieldChoice, "labels", follow)
    for size in (1, count - 1, count + 1, 2 * count, 1000):
        solved.clear()
        monkeypatch.setattr(_grid, "chunk_bytes", lambda device, size=size: size * each)
        chosen = choose_combination(node, edge, targets, held_out.topology, "graph", grid, RECIPE.damping)
        assert max(len(labels) for labels in solved) <= max(size, 1)
        found.append((torch.cat(solved), chosen.tensors()))
    for labels, chosen in found[1:]:
        assert torch.equal(labels, found[0][0]) and len(labels) == len(grid.candidates())
        assert all(torch.equal(chosen[name], value) for name, value in found[0][1].items())


def test_unknown_candidates_are_refused():
    for changes in (
        {"normaliser": ("rows",)},
        {"semiring": ("min",)},
        {"appearance": ("tree",)},
        {"appearance": (0.0,)},
        {"power": ()},
        {"sharpness": 3.0},
        {"node_weight": (-1.0,)},
    ):
        with pytest.raises(OptionError, match="CombinationGrid"):
            replace(WIDE, **changes)


def test_fitting_the_combination_makes_validation_labels_more_likely():
    plain, fitted = fit(), fit(replace(RECIPE, selection="likelihood"))
    held_out = GraphBatch.collate(VAL)
    untouched = replace(RECIPE, grid=CombinationGrid(sharpness=(1.0,), power=(1.0,), node_weight=(1.0,)))
    losses = [
        float(node_loss(model.beliefs(held_out, "sum").node, held_out.y[None])) for model in (fit(untouched), fitted)
    ]
    assert losses[1] < losses[0] - 0.01
    same(plain.tensors(), fitted.tensors(), rtol=0, atol=0)
