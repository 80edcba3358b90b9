"""GMNN (Qu et al. 2019), inductive: an inference network and a label network that learn from each other in turn."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from accord.encoders import ReplicaLinear
from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import InferenceObjective, LabelObjective, LabelPart, NodeObjective, rank
from accord.learning.training import Objective, determinism
from accord.methods._model import Choice, Method, Shape
from accord.methods._networks import FlatModel, build_node_part, edge_keys
from accord.methods._stage import train_stage
from accord.methods._validated import measure, unseen_states
from accord.methods.recipes._recipe import GMNNRecipe

PASSES = (0, 1, 2, 5)  # candidates: passes of the label network over its own predictions; 0 is the inference network


class GMNNModel(FlatModel):
    """Inference network ("node") and label network ("label").

    Args:
        parts: both networks.
        passes: of each replica, how often the label network reads its own predictions.
    """

    method = "gmnn"

    def __init__(self, parts: Mapping[str, nn.Module], passes: Sequence[int]) -> None:
        super().__init__(parts)
        self.passes = list(passes)

    def log_probabilities_of(self, logits: Tensor, batch: GraphBatch) -> Tensor:
        """[R, nodes, states] after as many passes as each replica chose."""
        chosen = torch.tensor(self.passes, device=logits.device)
        result = logits.log_softmax(-1)
        for passes, answer in self.passes_over(logits, batch, sorted(set(self.passes))).items():
            result[chosen == passes] = answer[chosen == passes]
        return result

    @torch.no_grad()
    def passes_over(self, logits: Tensor, batch: GraphBatch, wanted: Sequence[int]) -> dict[int, Tensor]:
        """Log-probabilities [R, nodes, states] after each of some numbers of passes, in rising order."""
        now, answers = logits.log_softmax(-1), {}
        for passes in range(wanted[-1] + 1):
            if passes:
                now = self.possible(self.parts["label"](batch, now.exp()).float()).log_softmax(-1)
            if passes in wanted:
                answers[passes] = now
        return answers

    def choice(self) -> Choice:
        """Passes of the label network, for every replica."""
        return {"passes": list(self.passes), **super().choice()}

    def choose(self, choice: Mapping[str, Sequence[Any]]) -> None:
        """Take over the passes of a choice."""
        super().choose(choice)
        self.passes = [int(passes) for passes in choice["passes"]]


class GMNN(Method):
    """Trains both networks alternately, each time keeping what is best on validation data."""

    name = "gmnn"
    recipe_type = GMNNRecipe
    recipe: GMNNRecipe

    @property
    def epochs(self) -> int:
        """Epochs of the inference network, then of both networks in turn."""
        return (1 + 2 * self.recipe.rounds) * self.recipe.training.max_epochs

    def build(self, shape: Shape, replicas: Replicas) -> GMNNModel:
        """An untrained model that labels nodes by its inference network."""
        recipe, keys = self.recipe, edge_keys(replicas)
        encoder = recipe.label_encoder.build(shape.num_inputs, recipe.label_channels, keys)
        width = encoder.out_channels
        hidden = ReplicaLinear(width + shape.num_states, width, keys, "hidden")
        label = LabelPart(encoder, hidden, ReplicaLinear(width, shape.num_states, keys, "head"))
        parts = {"node": build_node_part(recipe, shape, replicas), "label": label}
        return GMNNModel(parts, [0] * replicas.count)

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> GMNNModel:
        """Train the inference network, then for `rounds` rounds the label network and the inference network in turn."""
        model, recipe, level = self.build(shape, replicas), self.recipe, self.level
        begun, node, label = model.begin(run), model.parts["node"], model.parts["label"]
        steps: list[tuple[str, Objective]] = [("inference", NodeObjective(node, recipe.node, level))]
        for number in range(1, recipe.rounds + 1):
            steps.append((f"label-{number}", LabelObjective(label, node, recipe.label, level)))
            steps.append((f"inference-{number}", InferenceObjective(node, label, recipe.node, level)))
        for number, (name, objective) in enumerate(steps):
            device = train_stage(
                model.history,
                objective,
                replicas,
                recipe.training,
                run.stage(name),
                trained=begun or number > 1,  # each network has been trained once by then
            )
            model.to(device)
        model.validated = unseen_states(run.train, shape.num_states)
        held_out = GraphBatch.collate(run.validation).to(device, torch.float32)
        assert held_out.y is not None  # the trainer has refused graphs without labels
        targets = replicas.targets(held_out.y)
        with determinism(recipe.training.deterministic):
            answers = model.passes_over(model.node_logits(held_out), held_out, PASSES)
            ranks = [rank(answer.argmax(-1), targets, held_out.topology, level, answer) for answer in answers.values()]
        model.passes = [PASSES[number] for number in torch.stack(ranks).argmax(0).tolist()]
        if self.epochs:
            model.validated = measure(model, run, replicas, self.level)
        return model
