"""The Structured Proxy Network: two networks trained apart, one field that makes their labels agree."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from accord.encoders import ReplicaLinear
from accord.field import PairwiseField
from accord.graphs import GraphBatch
from accord.inference import Beliefs, Semiring
from accord.learning import (
    EDGE_KEY,
    Chosen,
    EdgePart,
    ProxyObjective,
    Replicas,
    Report,
    Row,
    SharedPart,
    Trainer,
    choose_combination,
    fit_combination,
    learned,
)
from accord.methods._gnn import build_node_part, load_parameters
from accord.methods._model import Shape
from accord.methods._recipe import Recipe


class ProxyModel:
    """Node network and edge network (or one for both), and how they combine."""

    def __init__(self, parts: dict[str, nn.Module], chosen: Chosen, damping: float) -> None:
        self.parts, self.chosen, self.damping = parts, chosen, damping
        self.history: list[Row] = []

    @torch.no_grad()
    def logits(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Scores [R, nodes, states] and [R, edges, states, states]."""
        if "shared" in self.parts:
            node, edge = self.parts["shared"](batch)
            return node.float(), edge.float()
        return self.node_logits(batch), self.edge_logits(batch)

    @torch.no_grad()
    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states] of the node network: the GNN that the field is built on."""
        logits: Tensor = self.parts["shared"](batch)[0] if "shared" in self.parts else self.parts["node"](batch)
        return logits.float()

    @torch.no_grad()
    def edge_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, edges, states, states] of the edge network."""
        logits: Tensor = self.parts["shared"](batch)[1] if "shared" in self.parts else self.parts["edge"](batch)
        return logits.float()

    def field(self, batch: GraphBatch) -> PairwiseField:
        """Pseudomarginals combined (Eq. 5)."""
        return self.chosen.field(*self.logits(batch), batch.topology)

    def labels(self, batch: GraphBatch) -> Tensor:
        """Joint labels [R, nodes]."""
        return self.chosen.labels(self.field(batch), self.damping)

    def beliefs(self, batch: GraphBatch, semiring: Semiring) -> Beliefs:
        """Beliefs of the field."""
        return self.chosen.beliefs(self.field(batch), semiring, self.damping)

    def to(self, device: torch.device) -> None:
        """Move the networks and the combination."""
        for part in self.parts.values():
            part.to(device)
        self.chosen = Chosen(**{name: value.to(device) for name, value in self.chosen.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Weights of the networks and the chosen combination."""
        named = {f"{part}/{name}": value for part in self.parts for name, value in learned(self.parts[part]).items()}
        return named | {f"chosen/{name}": value for name, value in self.chosen.tensors().items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put them back."""
        for name, part in self.parts.items():
            load_parameters(part, tensors, f"{name}/")
        device = next(next(iter(self.parts.values())).parameters()).device
        self.chosen = Chosen(**{name: tensors[f"chosen/{name}"].to(device) for name in self.chosen.tensors()})


class StructuredProxyNetwork:
    """Solves the proxy problem, then chooses how the networks combine."""

    def __init__(self, recipe: Recipe, level: str = "node") -> None:
        self.recipe, self.level = recipe, level

    def build(self, shape: Shape, replicas: Replicas) -> ProxyModel:
        """An untrained model that combines its networks plainly."""
        recipe, keys = self.recipe, [key + EDGE_KEY for key in replicas.keys]
        scorer = recipe.scorer.build(recipe.edge_channels, shape.num_states, keys, shape.edge_attributes)
        parts: dict[str, nn.Module]
        if recipe.shared:
            encoder = recipe.encoder.build(shape.num_features, recipe.edge_channels, replicas.keys)
            head = ReplicaLinear(recipe.edge_channels, shape.num_states, replicas.keys, "head")
            parts = {"shared": SharedPart(encoder, head, scorer)}
        else:
            encoder = recipe.edge_encoder.build(shape.num_features, recipe.edge_channels, keys)
            parts = {"node": build_node_part(recipe, shape, replicas), "edge": EdgePart(encoder, scorer)}
        return ProxyModel(parts, Chosen.plain(replicas.count, recipe.grid.sweeps[0]), recipe.damping)

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
        options = {"shared": recipe.node} if recipe.shared else {"node": recipe.node, "edge": recipe.edge}
        objective = ProxyObjective(dict(model.parts), options, self.level, recipe.consistency)
        trainer = Trainer(objective, replicas, recipe.training, folder, report)
        trainer.fit(train, validation)
        model.history = trainer.history
        held_out = GraphBatch.collate(validation).to(trainer.fabric.device)
        assert held_out.y is not None  # the trainer has refused graphs without labels
        node, edge = model.logits(held_out)
        targets = replicas.targets(held_out.y)
        choose = choose_combination if recipe.selection == "grid" else fit_combination
        model.chosen = choose(node, edge, targets, held_out.topology, self.level, recipe.grid, recipe.damping)
        return model
