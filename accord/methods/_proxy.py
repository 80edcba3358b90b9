"""The model of a Structured Proxy Network: two networks trained apart, and the field of both."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.graphs import Topology
from accord.inference import Semiring
from accord.inference.triangles import AnyBeliefs, AnyField
from accord.learning.objectives import FieldNetworks
from accord.learning.selection import FieldChoice
from accord.methods._model import Choice
from accord.methods._networks import PairModel
from accord.methods._validated import KEYS


class ProxyModel(PairModel):
    """Node network and edge network (or one for both), and how they combine.

    Args:
        networks: the networks.
        chosen: how they combine and how the field is solved.
        damping: of belief propagation.
    """

    method = "spn"

    def __init__(self, networks: FieldNetworks, chosen: FieldChoice, damping: float) -> None:
        super().__init__(networks, damping)
        self.chosen = chosen

    @property
    def refined(self) -> FieldNetworks:
        """What refinement trains."""
        return self.networks

    def field_of_scores(self, *scores: Tensor, topology: Topology) -> AnyField:
        """The field of the scores of the networks that refinement trains."""
        node, edge = scores
        return self.field_of(node, edge, topology)

    def field_of(self, node: Tensor, edge: Tensor, topology: Topology) -> PairwiseField:
        """Pseudomarginals combined (Eq. 5)."""
        return self.chosen.field(*self.barred(node, edge, topology), topology)

    def labels_of(self, field: AnyField) -> Tensor:
        """Joint labels [R, nodes]."""
        assert isinstance(field, PairwiseField)
        return self.chosen.labels(field, self.damping)

    def beliefs_of(self, field: AnyField, semiring: Semiring = "sum") -> AnyBeliefs:
        """Beliefs with each replica's own reweighting."""
        assert isinstance(field, PairwiseField)
        return self.chosen.beliefs(field, semiring, self.damping)

    def combination(self) -> Choice:
        """How the networks combine, as plain values."""
        return self.chosen.to_config()

    def choice(self) -> Choice:
        """How the networks combine and how the field is solved."""
        return self.combination() | super().choice()

    def choose(self, choice: Mapping[str, Sequence[Any]]) -> None:
        """Take over a choice of combination and solver settings."""
        super().choose(choice)
        own = {name: values for name, values in choice.items() if name not in KEYS}
        self.chosen = FieldChoice.from_config(own).to(self.device)

    def to(self, device: torch.device) -> None:
        """Move networks and choice."""
        super().to(device)
        self.chosen = self.chosen.to(device)
