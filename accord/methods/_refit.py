"""Refit: networks trained again on training and validation graphs together, once every choice has been made.

Each network of each seed starts from the same initial weights and makes about as many updates as it had made when its
parameters were chosen: with more graphs an epoch has more updates, so there are fewer epochs. What was chosen besides
the weights (combination, smoothing) stays, because no data are left to choose by.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from accord.errors import OptionError
from accord.graphs import fingerprint_graphs
from accord.learning import Replicas, TrainingRun
from accord.learning.training import learned, spread
from accord.methods._model import FieldModel, Method, Shape
from accord.methods._stage import train_stage
from accord.methods.recipes._recipe import Recipe

STAGE = "refit"  # subfolder of its checkpoint


def check_refit(method: Method) -> None:
    """Refuse methods and networks that cannot be trained again from the start."""
    method.check_simple("refit=True", "refit=False")
    if getattr(method.recipe, "triangles", None) is not None:
        raise OptionError("refit=True does not support order=3 yet. Set refit=False, or order=2.")
    check_again(method.recipe, "refit", "set refit=False")


def check_again(recipe: Recipe, asked: str, remedy: str) -> None:
    """Refuse networks that cannot be trained a second time from the start.

    Args:
        recipe: has the networks.
        asked: what needs the second training.
        remedy: how to do without it.
    """
    for name in ("encoder", "edge_encoder", "label_encoder"):
        if isinstance(getattr(getattr(recipe, name, None), "module", None), nn.Module):
            raise OptionError(
                f"{asked}: {name} is an Adapter of one module, which keeps what it has learned and cannot start again. "
                f"Give the Adapter a function factory(in_channels, out_channels), or {remedy}."
            )


def refit(model: FieldModel, method: Method, run: TrainingRun, shape: Shape, replicas: Replicas) -> None:
    """Train the networks of a fitted model again, on the run's training and validation graphs together.

    A replica that diverges keeps the weights that it had.

    Args:
        model: fitted by `method` on the same run, shape and replicas; changed in place.
        method: how it was fitted.
        run: graphs, checkpoint folder and callback.
        shape: sizes that the data fix.
        replicas: seeds and tasks.
    """
    check_refit(method)
    if not model.kept:
        raise OptionError("refit: the model has not been trained in this process, so its epochs are unknown. Fit it.")
    together = merge_labels(run.train, run.validation)
    options = method.recipe.training
    per_epoch = [updates_per_epoch(len(graphs), options.batch_graphs) for graphs in (run.train, together)]
    lengths = {name: same_updates(kept.clamp_min(0), *per_epoch) for name, kept in model.kept.items()}
    fresh = method.build(shape, replicas)
    again = replace(run, train=together).stage(STAGE)
    kept: dict[str, Tensor] = {}
    device = train_stage(model.history, method.objective(fresh), replicas, options, again, kept=kept, lengths=lengths)
    model.to(device)
    for name, part in model.parts.items():
        take_over(part, fresh.parts[name], kept[name] >= 0)


def updates_per_epoch(num_graphs: int, batch_graphs: int | None) -> int:
    """How many updates an epoch makes."""
    return math.ceil(num_graphs / min(batch_graphs or num_graphs, num_graphs))


def same_updates(epochs: Tensor, before: int, after: int) -> Tensor:
    """Epochs that make about as many updates, where an epoch made `before` and makes `after`; at least one if any."""
    return torch.where(epochs > 0, (epochs * before / after).round().long().clamp_min(1), epochs)


def merge_labels(train: Sequence[Data], validation: Sequence[Data]) -> list[Data]:
    """Training and validation graphs in one list; a graph that is in both, each time with other labels, comes once.

    The latter is how nodes of a single graph are held out. Edges between training and validation nodes count then too.
    """
    merged = list(train)
    places = {_content(graph): place for place, graph in enumerate(train)}
    for graph in validation:
        place = places.get(_content(graph))
        known = None if place is None else merged[place].y
        if place is None or known is None or bool(((known >= 0) & (graph.y >= 0)).any()):
            merged.append(graph)
        else:
            merged[place] = merged[place].clone()
            merged[place].y = torch.where(graph.y >= 0, graph.y, known)
    return merged


def _content(graph: Data) -> str:
    """A code for everything that training reads of a graph, except its labels."""
    bare = Data(x=graph.x, edge_index=graph.edge_index, edge_attr=graph.get("edge_attr"))
    return fingerprint_graphs([bare])


@torch.no_grad()
def take_over(part: nn.Module, fresh: nn.Module, finished: Tensor) -> None:
    """Copy what a network has learned, for the replicas that have finished [R]."""
    found = learned(fresh)
    for name, value in learned(part).items():
        whole = spread(finished, value, name)
        value.copy_(torch.where(whole, found[name], value))
