"""The two networks of a GMNN (Qu et al. 2019) and what each learns from the other.

The inference network q(y_s | x) labels nodes by features. The label network p(y_s | x, y_neighbours) reads a node's
features and its neighbours' labels, never its own, so that its likelihood is a pseudolikelihood. The two learn in turn:
p from true labels (predictions of q where a label is missing), q from true labels and from the predictions of p.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.encoders import Encoder, Noise, ReplicaLinear
from accord.evaluation import check_level
from accord.graphs import GraphBatch, Topology
from accord.learning.objectives._losses import at_least_single, node_loss
from accord.learning.objectives._ranking import rank_logits
from accord.learning.training import Objective, PartOptions

TAUGHT = 0.5  # weight of the label network's predictions in the inference network's loss; true labels have the rest


class LabelPart(nn.Module):
    """The label network: a hidden layer over a node's representation and the mean of its neighbours' labels."""

    def __init__(self, encoder: Encoder, hidden: ReplicaLinear, head: ReplicaLinear) -> None:
        super().__init__()
        self.encoder, self.hidden, self.head = encoder, hidden, head

    def forward(self, batch: GraphBatch, labels: Tensor, noise: Noise | None = None) -> Tensor:
        """Logits [R, nodes, states].

        Args:
            batch: the graphs.
            labels: [R, nodes, states], probabilities of each node's label.
            noise: randomness of a training step.
        """
        own = torch.relu(self.encoder(batch, noise))
        around = batch.fill_ghosts(mean_of_neighbours(labels, batch.topology).transpose(0, 1).to(own.dtype))
        logits: Tensor = self.head(torch.relu(self.hidden(torch.cat([own, around], -1))))
        return logits.transpose(0, 1)


def mean_of_neighbours(values: Tensor, topology: Topology) -> Tensor:
    """Values [R, nodes, channels] averaged over each node's neighbours; 0 for a node without neighbours."""
    arcs = topology.arcs
    total = torch.zeros_like(values).index_add(1, arcs.target, values[:, arcs.source])
    degree = torch.bincount(arcs.target, minlength=topology.num_nodes).clamp_min(1)
    return total / degree[:, None]


class LabelObjective(Objective):
    """M-step: the label network learns each label from the labels of the neighbours."""

    def __init__(self, label: nn.Module, inference: nn.Module, options: PartOptions, level: str) -> None:
        check_level(level)
        self.parts, self.options = {"label": label}, {"label": options}
        self.inference, self.level = inference, level
        self.fixed = {"node": inference}
        self.identity = {"level": level}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy given the neighbours' true labels."""
        logits = self.parts["label"](batch, known_labels(self.inference, batch, targets), noise)
        smoothing = self.options["label"].label_smoothing
        return {"label": node_loss(logits, targets, smoothing, self.node_weights, self.totals)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy given the inference network's predictions of the neighbours, as on new graphs."""
        logits = self.parts["label"](batch, at_least_single(self.inference(batch)).softmax(-1))
        return {"label": rank_logits(logits, targets, batch.topology, self.level)}


class InferenceObjective(Objective):
    """E-step: the inference network learns true labels and the label network's predictions."""

    def __init__(self, inference: nn.Module, label: nn.Module, options: PartOptions, level: str) -> None:
        check_level(level)
        self.parts, self.options = {"node": inference}, {"node": options}
        self.label, self.level = label, level
        self.fixed = {"label": label}
        self.identity = {"level": level}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy with true labels, and with the label network's distribution at every node."""
        logits = self.parts["node"](batch, noise)
        with torch.no_grad():
            expected = at_least_single(self.label(batch, known_labels(self.parts["node"], batch, targets))).softmax(-1)
        taught = -(expected * at_least_single(logits).log_softmax(-1)).sum(-1).mean(-1)
        taught = taught * (batch.num_nodes / self.totals.number(batch.num_nodes))  # a mean over all nodes of the batch
        own = node_loss(logits, targets, self.options["node"].label_smoothing, self.node_weights, self.totals)
        return {"node": (1 - TAUGHT) * own + TAUGHT * taught}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy at the level asked for."""
        return {"node": rank_logits(self.parts["node"](batch), targets, batch.topology, self.level)}


@torch.no_grad()
def known_labels(inference: nn.Module, batch: GraphBatch, targets: Tensor) -> Tensor:
    """True labels as probabilities [R, nodes, states]; the inference network's where a label is missing."""
    guess = at_least_single(inference(batch)).softmax(-1)
    targets = targets.expand(guess.shape[:-1])
    truth = functional.one_hot(targets.clamp_min(0), guess.shape[-1]).to(guess)
    return torch.where((targets >= 0)[..., None], truth, guess)
