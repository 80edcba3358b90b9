"""The structure of a field on a part, which knows how the whole graph is peeled."""

from functools import cached_property

from accord.distributed._part import Part
from accord.distributed.decoding._peeling import PartPeeling, peel_part
from accord.field import PairwiseField
from accord.field._structure import Structure


class PartStructure(Structure):
    """Own nodes, ghosts and their edges, with what follows from the whole graph."""

    def __init__(self, own: Structure, part: Part) -> None:
        super().__init__(own.edge_index, own.graph, own.num_graphs, own.num_nodes)
        self.part = part

    @cached_property
    def peeling(self) -> PartPeeling:
        """The peeling of the whole graph, as this part sees it; all processes call it together."""
        return peel_part(self.part, self.edge_index.device)

    @cached_property
    def paths(self) -> None:
        """None: a path is solved like any other graph."""

    @cached_property
    def forest_sweeps(self) -> int:
        """Sweeps after which no message of a forest changes; 0 if the whole graph has loops."""
        return 2 * len(self.peeling.rounds) + 2 if self.peeling.is_forest else 0


def on_whole_peeling(field: PairwiseField, part: Part) -> PairwiseField:
    """The field of a part, with the peeling of the whole graph; the same field if it has that already."""
    if isinstance(field.structure, PartStructure):
        return field
    shared = field.with_potentials()
    shared.__dict__["structure"] = PartStructure(field.structure, part)
    return shared
