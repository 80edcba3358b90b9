"""GMNN (Qu et al. 2019), inductive: an inference network and a label network that learn from each other in turn."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.encoders import ReplicaLinear
from accord.field import PairwiseField
from accord.graphs import GraphBatch
from accord.inference import Beliefs, Semiring, propagate
from accord.learning import (
    InferenceObjective,
    LabelObjective,
    LabelPart,
    NodeObjective,
    NodePart,
    Objective,
    Replicas,
    Report,
    Row,
    learned,
    rank,
)
from accord.methods._gnn import flat_field
from accord.methods._model import Shape
from accord.methods._networks import build_node_part, edge_keys, load_parameters
from accord.methods._recipe import Recipe
from accord.methods._stage import train_stage

PASSES = (0, 1, 2, 5)  # of the label network over its own predictions; 0 is the inference network alone


class GMNNModel:
    """Both networks, and how often the label network is asked again."""

    def __init__(self, node: NodePart, label: LabelPart, passes: Tensor) -> None:
        self.node, self.label = node, label
        self.passes = passes  # [R]
        self.history: list[Row] = []

    @torch.no_grad()
    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states] of the inference network."""
        logits: Tensor = self.node(batch)
        return logits.float()

    @torch.no_grad()
    def probabilities(self, batch: GraphBatch) -> Tensor:
        """Probabilities [R, nodes, states] after as many passes as each replica chose."""
        answers = self.passes_over(batch)
        chosen = answers[-1].clone()
        for passes, answer in zip(PASSES, answers, strict=True):
            chosen[self.passes == passes] = answer[self.passes == passes]
        return chosen

    @torch.no_grad()
    def passes_over(self, batch: GraphBatch) -> list[Tensor]:
        """Probabilities [R, nodes, states] after each of PASSES."""
        now, answers = self.node_logits(batch).softmax(-1), []
        for number in range(PASSES[-1] + 1):
            if number:
                now = self.label(batch, now).float().softmax(-1)
            if number in PASSES:
                answers.append(now)
        return answers

    def field(self, batch: GraphBatch) -> PairwiseField:
        """Marginals, and edge tables of zeros: the label network is no pairwise field."""
        return flat_field(self.probabilities(batch).clamp_min(1e-30).log(), batch)

    def labels(self, batch: GraphBatch) -> Tensor:
        """Each node's best state [R, nodes]."""
        return self.probabilities(batch).argmax(-1)

    def beliefs(self, batch: GraphBatch, semiring: Semiring) -> Beliefs:
        """Beliefs of a field without bonds."""
        return propagate(self.field(batch), semiring=semiring)

    def to(self, device: torch.device) -> None:
        """Move networks and choice."""
        self.node.to(device)
        self.label.to(device)
        self.passes = self.passes.to(device)

    def tensors(self) -> dict[str, Tensor]:
        """Weights of both networks, and the choice."""
        parts = {"node": self.node, "label": self.label}
        named = {f"{part}/{name}": value for part, net in parts.items() for name, value in learned(net).items()}
        return named | {"passes": self.passes}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put them back."""
        load_parameters(self.node, tensors, "node/")
        load_parameters(self.label, tensors, "label/")
        self.passes = tensors["passes"].to(next(self.node.parameters()).device)


class GMNN:
    """Trains both networks alternately, each time keeping what is best on validation data."""

    def __init__(self, recipe: Recipe, level: str = "node") -> None:
        self.recipe, self.level = recipe, level

    @property
    def epochs(self) -> int:
        """How many epochs a whole fit takes."""
        return (1 + 2 * self.recipe.rounds) * self.recipe.training.max_epochs

    def build(self, shape: Shape, replicas: Replicas) -> GMNNModel:
        """An untrained model whose labels are the inference network's."""
        recipe, keys = self.recipe, edge_keys(replicas)
        encoder = recipe.edge_encoder.build(shape.num_features, recipe.edge_channels, keys)
        width = encoder.out_channels
        hidden = ReplicaLinear(width + shape.num_states, width, keys, "hidden")
        label = LabelPart(encoder, hidden, ReplicaLinear(width, shape.num_states, keys, "head"))
        return GMNNModel(build_node_part(recipe, shape, replicas), label, torch.zeros(replicas.count, dtype=torch.long))

    def fit(
        self,
        train: Sequence[Data],
        validation: Sequence[Data],
        shape: Shape,
        replicas: Replicas,
        folder: Path | None = None,
        report: Report | None = None,
    ) -> GMNNModel:
        """Inference network first, then `rounds` of label network and inference network in turn."""
        model, recipe, level = self.build(shape, replicas), self.recipe, self.level
        steps: list[tuple[str, Objective]] = [("inference", NodeObjective(model.node, recipe.node, level))]
        for number in range(recipe.rounds):
            last = f"-{number + 1}"
            steps.append(("label" + last, LabelObjective(model.label, model.node, recipe.edge, level)))
            steps.append(("inference" + last, InferenceObjective(model.node, model.label, recipe.node, level)))
        for number, (name, objective) in enumerate(steps):
            device = train_stage(
                model.history,
                objective,
                replicas,
                recipe.training,
                train,
                validation,
                None if folder is None else folder / name,
                report,
                trained=number > 1,  # both networks have had their first turn
            )
            model.to(device)
        held_out = GraphBatch.collate(validation).to(device)
        assert held_out.y is not None  # the trainer has refused graphs without labels
        targets = replicas.targets(held_out.y)
        ranks = [rank(p.argmax(-1), targets, held_out.topology, level) for p in model.passes_over(held_out)]
        model.passes = torch.tensor(PASSES, device=held_out.x.device)[torch.stack(ranks).argmax(0)]
        return model
