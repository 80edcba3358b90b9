"""GMNN (Qu et al. 2019), inductive: an inference network and a label network that learn from each other in turn."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from accord.encoders import ReplicaLinear
from accord.graphs import GraphBatch
from accord.learning import (
    InferenceObjective,
    LabelObjective,
    LabelPart,
    NodeObjective,
    Objective,
    Replicas,
    TrainingRun,
    determinism,
    rank,
)
from accord.methods._model import Method, Shape
from accord.methods._networks import FlatModel, build_node_part, edge_keys
from accord.methods._recipe import GMNNRecipe
from accord.methods._stage import train_stage

PASSES = (0, 1, 2, 5)  # of the label network over its own predictions; 0 is the inference network alone


class GMNNModel(FlatModel):
    """Inference network ("node") and label network ("label"), and how often the latter is asked again."""

    def __init__(self, parts: Mapping[str, nn.Module], passes: Tensor) -> None:
        super().__init__(parts)
        self.passes = passes  # [R]

    @torch.no_grad()
    def log_probabilities(self, batch: GraphBatch) -> Tensor:
        """[R, nodes, states] after as many passes as each replica chose."""
        answers = self.passes_over(batch)
        chosen = answers[-1].clone()
        for passes, answer in zip(PASSES, answers, strict=True):
            chosen[self.passes == passes] = answer[self.passes == passes]
        return chosen

    @torch.no_grad()
    def passes_over(self, batch: GraphBatch) -> list[Tensor]:
        """Log-probabilities [R, nodes, states] after each of PASSES."""
        now, answers = self.node_logits(batch).log_softmax(-1), []
        for number in range(PASSES[-1] + 1):
            if number:
                now = self.parts["label"](batch, now.exp()).float().log_softmax(-1)
            if number in PASSES:
                answers.append(now)
        return answers

    def choice(self) -> dict[str, Tensor]:
        """How often each replica asks again."""
        return {"passes": self.passes}

    def choose(self, choice: dict[str, Tensor]) -> None:
        """Take such a choice."""
        self.passes = choice["passes"]


class GMNN(Method):
    """Trains both networks alternately, each time keeping what is best on validation data."""

    name = "gmnn"
    recipe_type = GMNNRecipe
    recipe: GMNNRecipe

    @property
    def epochs(self) -> int:
        """Inference network, then both in turn."""
        return (1 + 2 * self.recipe.rounds) * self.recipe.training.max_epochs

    def build(self, shape: Shape, replicas: Replicas) -> GMNNModel:
        """An untrained model whose labels are the inference network's."""
        recipe, keys = self.recipe, edge_keys(replicas)
        encoder = recipe.label_encoder.build(shape.num_features, recipe.label_channels, keys)
        width = encoder.out_channels
        hidden = ReplicaLinear(width + shape.num_states, width, keys, "hidden")
        label = LabelPart(encoder, hidden, ReplicaLinear(width, shape.num_states, keys, "head"))
        parts = {"node": build_node_part(recipe, shape, replicas), "label": label}
        return GMNNModel(parts, torch.zeros(replicas.count, dtype=torch.long))

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> GMNNModel:
        """Inference network first, then `rounds` of label network and inference network in turn."""
        model, recipe, level = self.build(shape, replicas), self.recipe, self.level
        node, label = model.parts["node"], model.parts["label"]
        steps: list[tuple[str, Objective]] = [("inference", NodeObjective(node, recipe.node, level))]
        for number in range(recipe.rounds):
            last = f"-{number + 1}"
            steps.append(("label" + last, LabelObjective(label, node, recipe.label, level)))
            steps.append(("inference" + last, InferenceObjective(node, label, recipe.node, level)))
        for number, (name, objective) in enumerate(steps):
            device = train_stage(
                model.history,
                objective,
                replicas,
                recipe.training,
                run.stage(name),
                trained=number > 1,  # both networks have had their first turn
            )
            model.to(device)
        held_out = GraphBatch.collate(run.validation).to(device, torch.float32)
        assert held_out.y is not None  # the trainer has refused graphs without labels
        targets = replicas.targets(held_out.y)
        with determinism(recipe.training.deterministic):
            ranks = [rank(p.argmax(-1), targets, held_out.topology, level) for p in model.passes_over(held_out)]
        model.passes = torch.tensor(PASSES, device=held_out.x.device)[torch.stack(ranks).argmax(0)]
        return model
