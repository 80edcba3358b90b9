"""The triangle network and its proxy problem: cross-entropy at triangles with all three labels known."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from accord.encoders import Encoder, Noise
from accord.encoders.scorers.triangles import TriangleScorer
from accord.graphs import GraphBatch, Topology, topology_triangles
from accord.learning.objectives._losses import _cross_entropy
from accord.learning.objectives._parts import FieldNetworks
from accord.learning.objectives._ranking import within_bounds
from accord.learning.training import ALONE, Objective, PartOptions, Totals

TRIANGLE_KEY = 900_007  # the triangle network's weights and dropout must not repeat those of the others


class TrianglePart(nn.Module):
    """The triangle network: scores of every triple of states at every triangle."""

    def __init__(self, encoder: Encoder, scorer: TriangleScorer) -> None:
        super().__init__()
        self.encoder = encoder
        self.scorer = scorer

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Logits [R, triangles, states, states, states]."""
        own = None if noise is None else noise.with_seeds(TRIANGLE_KEY)
        return self.scorer(self.encoder(batch, own), batch, own)  # type: ignore[no-any-return]


class TriangleNetworks(FieldNetworks):
    """The networks of nodes and edges, and the triangle network: what a field with triangles is made of."""

    def __init__(self, pairs: FieldNetworks, triangle: TrianglePart) -> None:
        self.pairs, self.triangle = pairs, triangle
        self.parts = {**pairs.parts, "triangle": triangle}
        self.edge = pairs.edge

    def field_logits(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[Tensor, ...]:
        """Scores of nodes, edges and triangles."""
        return *self.pairs.logits(batch, noise), self.triangle(batch, noise)

    def logits(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[Tensor, Tensor]:
        """Scores of nodes and edges."""
        return self.pairs.logits(batch, noise)

    def node_logits(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores of nodes."""
        return self.pairs.node_logits(batch, noise)

    def edge_logits(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores of edges."""
        return self.pairs.edge_logits(batch, noise)

    def options(self, node: PartOptions, edge: PartOptions) -> dict[str, PartOptions]:
        """The triangle network is updated as the edge network is."""
        return {**self.pairs.options(node, edge), "triangle": edge}

    def label_smoothing(self, options: Mapping[str, PartOptions]) -> tuple[float, float]:
        """That of the networks of nodes and edges."""
        return self.pairs.label_smoothing(options)

    def part_scores(self, node: Tensor, edge: Tensor) -> dict[str, Tensor]:
        """Those of the networks of nodes and edges."""
        return self.pairs.part_scores(node, edge)

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "TriangleNetworks":
        """The same networks made of other modules of the same names."""
        triangle = parts["triangle"]
        assert isinstance(triangle, TrianglePart)
        return TriangleNetworks(self.pairs.with_parts({name: parts[name] for name in self.pairs.parts}), triangle)


class TriangleObjective(Objective):
    """The triangle network alone; kept by the likelihood of validation triples."""

    separable = True

    def __init__(self, triangle: TrianglePart, options: PartOptions) -> None:
        self.triangle = triangle
        self.parts, self.options, self.identity = {"triangle": triangle}, {"triangle": options}, {}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at triangles with all corners labelled."""
        smoothing = self.options["triangle"].label_smoothing
        logits = self.triangle(batch, noise)
        return {"triangle": triangle_loss(logits, targets, batch.topology, smoothing, self.totals)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Mean log-likelihood of triples of labels: pseudomarginals have to be well calibrated, not only right."""
        logits = self.triangle(batch)
        likelihood = -triangle_loss(logits, targets, batch.topology)
        return {"triangle": torch.where(within_bounds(logits), likelihood, -torch.inf)}

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "TriangleObjective":
        """The same objective of another triangle network."""
        triangle = parts["triangle"]
        assert isinstance(triangle, TrianglePart)
        return type(self)(triangle, self.options["triangle"])


def triangle_loss(
    logits: Tensor, targets: Tensor, topology: Topology, smoothing: float = 0.0, totals: Totals = ALONE
) -> Tensor:
    """Mean cross-entropy over triangles with all corners labelled [R].

    Args:
        logits: [R, triangles, states, states, states].
        targets: [R or 1, nodes].
        topology: the graphs.
        smoothing: share of the target spread evenly over all triples.
        totals: counts of the whole batch, where processes share it.
    """
    triple = triple_numbers(targets, topology, logits.shape[-1])
    return _cross_entropy(logits.flatten(-3), triple.expand(logits.shape[:2]), smoothing, None, totals)


def triple_numbers(targets: Tensor, topology: Topology, num_states: int) -> Tensor:
    """The labels of each triangle's corners as one number [R, triangles]; -1 where one of them is missing."""
    labels = targets[:, topology_triangles(topology).corner]
    first, second, third = labels.unbind(-1)
    return ((first * num_states + second) * num_states + third).masked_fill((labels < 0).any(-1), -1)
