"""The Structured Proxy Network: two networks trained apart, one field that makes their labels agree."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.field import PairwiseField
from accord.graphs import GraphBatch
from accord.learning import (
    EDGE_KEY,
    Chosen,
    EdgePart,
    NodePart,
    ProxyObjective,
    Replicas,
    Report,
    Row,
    Trainer,
    choose_combination,
    learned,
)
from accord.methods._gnn import build_node_part, load_parameters
from accord.methods._model import Shape
from accord.methods._recipe import Recipe

CHOSEN = ("sharpness", "power", "node_weight", "score")


class ProxyModel:
    """Node network, edge network, and how they combine."""

    def __init__(self, node: NodePart, edge: EdgePart, chosen: Chosen) -> None:
        self.node, self.edge, self.chosen = node, edge, chosen
        self.history: list[Row] = []

    @torch.no_grad()
    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states] of the node network: the GNN that the field is built on."""
        logits: Tensor = self.node(batch)
        return logits.float()

    @torch.no_grad()
    def edge_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, edges, states, states] of the edge network."""
        logits: Tensor = self.edge(batch)
        return logits.float()

    def field(self, batch: GraphBatch) -> PairwiseField:
        """Pseudomarginals combined (Eq. 5)."""
        return self.chosen.field(self.node_logits(batch), self.edge_logits(batch), batch.topology)

    def tensors(self) -> dict[str, Tensor]:
        """Weights of both networks and the chosen combination."""
        named = {f"node/{name}": value for name, value in learned(self.node).items()}
        named |= {f"edge/{name}": value for name, value in learned(self.edge).items()}
        named |= {f"chosen/{name}": getattr(self.chosen, name) for name in CHOSEN}
        return named

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put them back."""
        load_parameters(self.node, tensors, "node/")
        load_parameters(self.edge, tensors, "edge/")
        device = next(self.node.parameters()).device
        values = {name: tensors[f"chosen/{name}"].to(device) for name in CHOSEN}
        self.chosen = Chosen(normaliser=self.chosen.normaliser, **values)


class StructuredProxyNetwork:
    """Solves the proxy problem, then chooses how the two networks combine."""

    def __init__(self, recipe: Recipe, level: str = "node") -> None:
        self.recipe, self.level = recipe, level

    def build(self, shape: Shape, replicas: Replicas) -> ProxyModel:
        """An untrained model that combines its networks plainly."""
        recipe = self.recipe
        keys = [key + EDGE_KEY for key in replicas.keys]
        encoder = recipe.edge_encoder.build(shape.num_features, recipe.edge_channels, keys)
        scorer = recipe.scorer.build(recipe.edge_channels, shape.num_states, keys, shape.edge_attributes)
        one = torch.ones(replicas.count)
        chosen = Chosen(one, one, one, recipe.grid.normaliser, torch.full_like(one, torch.nan))
        return ProxyModel(build_node_part(recipe, shape, replicas), EdgePart(encoder, scorer), chosen)

    def fit(
        self,
        train: Sequence[Data],
        validation: Sequence[Data],
        shape: Shape,
        replicas: Replicas,
        folder: Path | None = None,
        report: Report | None = None,
    ) -> ProxyModel:
        """Train on `train`; keep the best networks and choose their combination on `validation`."""
        model, recipe = self.build(shape, replicas), self.recipe
        options = {"node": recipe.node, "edge": recipe.edge}
        objective = ProxyObjective(model.node, model.edge, options, self.level, recipe.consistency)
        trainer = Trainer(objective, replicas, recipe.training, folder, report)
        trainer.fit(train, validation)
        model.history = trainer.history
        held_out = GraphBatch.collate(validation).to(trainer.fabric.device)
        assert held_out.y is not None  # the trainer has refused graphs without labels
        model.chosen = choose_combination(
            model.node_logits(held_out),
            model.edge_logits(held_out),
            replicas.targets(held_out.y),
            held_out.topology,
            self.level,
            recipe.grid,
            recipe.propagation,
        )
        return model
