"""The recipe of a cell: its preset's, with what its variant changes."""

from dataclasses import replace

import torch

from accord.encoders import GAT, GCNII
from accord.errors import OptionError
from accord.experiments._paper import PPI_SETS
from accord.experiments.reproduction._cells import BACKBONES, CONVERGENCE, HEADS, Cell
from accord.methods import GNNRecipe, PairRecipe, Recipe, SPNRecipe, preset_recipe

CONSISTENCY = 1.0  # weight of the appendix's penalty, which the paper does not give
CHECKPOINTS, MIN_CHECKPOINT_EPOCHS = 5, 10  # a few in a training: large networks take long to write
GPU_PRECISION = {"gat": "bf16-mixed"}  # of PPI; as accurate as float32 (results/replicas), and the rest in tf32


def cell_recipe(cell: Cell, epochs: int | None = None, accelerator: str = "auto") -> Recipe:
    """The recipe of a training.

    Args:
        cell: a cell that trains networks.
        epochs: None for the preset's.
        accelerator: "auto", "cpu" or "cuda".
    """
    node, _, edge = cell.encoder.partition("+")
    recipe = preset_recipe(cell.preset, node, edge or None, cell.data, cell.method, refine=cell.variant == "refined")
    recipe = _vary(recipe, cell)
    on_gpu = accelerator != "cpu" and torch.cuda.is_available()
    precision = GPU_PRECISION.get(node, "tf32") if cell.data in PPI_SETS else "tf32"
    training = replace(
        recipe.training,
        accelerator=accelerator,
        precision=precision if on_gpu else recipe.training.precision,
    )
    if epochs is not None and epochs < training.max_epochs:
        training = replace(training, max_epochs=epochs, evaluate_every=min(training.evaluate_every, max(epochs, 1)))
        if isinstance(recipe, SPNRecipe) and recipe.refinement is not None:
            short = replace(recipe.refinement, max_epochs=min(epochs, recipe.refinement.max_epochs))
            recipe = replace(recipe, refinement=short)
    every = max(MIN_CHECKPOINT_EPOCHS, training.max_epochs // CHECKPOINTS)
    return replace(recipe, training=replace(training, checkpoint_every=every))


def _vary(recipe: Recipe, cell: Cell) -> Recipe:
    if cell.experiment == HEADS:
        assert isinstance(recipe, SPNRecipe)
        part, _, count = cell.variant.partition(" ")
        if part == "node":
            return replace(recipe, encoder=_with_heads(recipe.encoder, int(count)))
        return replace(recipe, edge_encoder=_with_heads(recipe.edge_encoder, int(count)))
    if cell.experiment in (BACKBONES, CONVERGENCE) or cell.variant in ("", "refined"):
        return recipe
    if cell.variant == "shared":
        assert isinstance(recipe, PairRecipe)
        # One network scores both, so it has the node network's dropout, and a head for each.
        return replace(recipe, shared=True)
    if cell.variant == "constrained":
        assert isinstance(recipe, SPNRecipe)
        return replace(recipe, consistency=CONSISTENCY)
    if cell.variant.startswith("width "):
        width = int(cell.variant.removeprefix("width "))
        assert isinstance(recipe, PairRecipe | GNNRecipe) and isinstance(recipe.encoder, GCNII)
        recipe = replace(recipe, encoder=replace(recipe.encoder, hidden=width))
        if isinstance(recipe, PairRecipe) and isinstance(recipe.edge_encoder, GCNII):
            recipe = replace(recipe, edge_encoder=replace(recipe.edge_encoder, hidden=width))
        return recipe
    raise OptionError(f"reproduce: a training has no variant {cell.variant!r}.")


def _with_heads(encoder: object, count: int) -> GAT:
    """A GAT with so many heads in every layer."""
    assert isinstance(encoder, GAT)
    return replace(encoder, heads=(count,) * len(encoder.heads))
