"""The two networks of a GMNN (Qu et al. 2019) and what each learns from the other.

The inference network q(y_s | x) labels nodes by features. The label network p(y_s | x, y_neighbours) reads a node's
features and its neighbours' labels, never its own, so that its likelihood is a pseudolikelihood. In turn, p learns from
true labels (those of q stand in for missing ones), and q learns from true labels and from what p makes of them.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.encoders import Encoder, Noise, ReplicaLinear
from accord.evaluation import check_level
from accord.graphs import GraphBatch, Topology
from accord.learning.objectives._losses import node_loss
from accord.learning.objectives._ranking import rank_logits
from accord.learning.training import Objective, PartOptions

TAUGHT = 0.5  # share of the label network in what the inference network learns; the rest are true labels


class LabelPart(nn.Module):
    """The label network: a node's own representation and the mean of its neighbours' labels, through a hidden layer."""

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
        around = mean_of_neighbours(labels, batch.topology).transpose(0, 1).to(own.dtype)
        logits: Tensor = self.head(torch.relu(self.hidden(torch.cat([own, around], -1))))
        return logits.transpose(0, 1)


def mean_of_neighbours(values: Tensor, topology: Topology) -> Tensor:
    """[R, nodes, channels] -> the same, averaged over each node's neighbours; 0 where it has none."""
    arcs = topology.arcs
    total = torch.zeros_like(values).index_add(1, arcs.target, values[:, arcs.source])
    degree = torch.bincount(arcs.target, minlength=topology.num_nodes).clamp_min(1)
    return total / degree[:, None]


class LabelObjective(Objective):
    """M-step: the label network learns each label from those around it."""

    def __init__(self, label: nn.Module, inference: nn.Module, options: PartOptions, level: str) -> None:
        check_level(level)
        self.parts, self.options = {"label": label}, {"label": options}
        self.inference, self.level = inference, level
        self.identity = {"level": level}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy given the neighbours' true labels."""
        logits = self.parts["label"](batch, known_labels(self.inference, batch, targets), noise)
        return {"label": node_loss(logits, targets, self.options["label"].label_smoothing)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy given what the inference network says of the neighbours: new graphs offer nothing else."""
        logits = self.parts["label"](batch, self.inference(batch).float().softmax(-1))
        return {"label": rank_logits(logits, targets, batch.topology, self.level)}


class InferenceObjective(Objective):
    """E-step: the inference network learns true labels, and what the label network expects of their neighbours."""

    def __init__(self, inference: nn.Module, label: nn.Module, options: PartOptions, level: str) -> None:
        check_level(level)
        self.parts, self.options = {"node": inference}, {"node": options}
        self.label, self.level = label, level
        self.identity = {"level": level}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy with true labels, and with the label network's distribution at every node."""
        logits = self.parts["node"](batch, noise)
        with torch.no_grad():
            expected = self.label(batch, known_labels(self.parts["node"], batch, targets)).float().softmax(-1)
        taught = -(expected * logits.float().log_softmax(-1)).sum(-1).mean(-1)
        own = node_loss(logits, targets, self.options["node"].label_smoothing)
        return {"node": (1 - TAUGHT) * own + TAUGHT * taught}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy at the level asked for."""
        return {"node": rank_logits(self.parts["node"](batch), targets, batch.topology, self.level)}


@torch.no_grad()
def known_labels(inference: nn.Module, batch: GraphBatch, targets: Tensor) -> Tensor:
    """True labels as probabilities [R, nodes, states]; where one is missing, the inference network's."""
    guess: Tensor = inference(batch).float().softmax(-1)
    targets = targets.expand(guess.shape[:-1])
    truth = functional.one_hot(targets.clamp_min(0), guess.shape[-1]).to(guess)
    return torch.where((targets >= 0)[..., None], truth, guess)
