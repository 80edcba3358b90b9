"""The weight of the edge network against the node network, chosen on validation data; candidates are solved in batches.

Two networks trained apart are not calibrated to each other. Sharpness, normaliser and its power, and the weight of the
node evidence set how their predictions combine; semiring, sweeps and reweighting set how the field is solved. None of
them requires training the networks again.
"""

from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
from torch import Tensor

from accord._memory import available_memory
from accord.errors import OptionError
from accord.evaluation import level_score, needs_probabilities
from accord.graphs import Topology
from accord.inference import Semiring
from accord.learning.objectives import rank
from accord.learning.selection._combination import DECODED_FROM, SPANNING, FieldChoice, Shrinkage

CHUNK_BYTES = 2**28  # of edge tables solved at once; the sweeps take a few times as much
CPU_CHUNK_BYTES = 2**26  # `kept_memory` uses blocks of this size again; clearing new memory takes longer than solving
GPU_SHARE = 1 / 64  # of the GPU's memory: a few large kernels are faster than many small ones
GPU_ROOM = 16  # times this share must be free, otherwise less is solved at once
NORMALISERS = {"own": 0.0, "node": 1.0}  # name -> share of the node network's marginals


@dataclass(frozen=True, kw_only=True)
class CombinationGrid:
    """Candidates: every combination of these values. Earlier ones win ties; sharpness 0 is the node network alone."""

    sharpness: tuple[float, ...] = (1.0, 0.5, 2.0, 0.2, 5.0, 0.1, 10.0, 0.0)
    power: tuple[float, ...] = (1.0, 0.5, 0.1, 0.0)
    node_weight: tuple[float, ...] = (1.0, 0.5, 2.0)
    normaliser: tuple[str, ...] = ("own",)  # or "node", as in the paper
    appearance: tuple[float | Literal["spanning"], ...] = (1.0,)  # tree-reweighting; 1 is plain propagation
    semiring: tuple[Semiring, ...] = ("max",)  # or "sum": the beliefs that joint decoding starts from
    sweeps: tuple[int, ...] = (20,)

    def __post_init__(self) -> None:
        for name, values in vars(self).items():
            if not isinstance(values, (tuple, list)) or not values:
                raise OptionError(f"CombinationGrid: {name} is {values!r}; a list of at least one value is needed.")
            if name in ("sharpness", "power", "node_weight", "sweeps"):
                wrong = [
                    v for v in values if isinstance(v, bool) or not isinstance(v, (int, float)) or not 0 <= v < 1e9
                ]
                if wrong:
                    raise OptionError(f"CombinationGrid: {name} holds {wrong[0]!r}; numbers from 0 up are needed.")
        unknown: list[object] = [name for name in self.normaliser if name not in NORMALISERS]
        unknown += [name for name in self.semiring if name not in DECODED_FROM]
        unknown += [value for value in self.appearance if not _is_appearance(value)]
        if unknown:
            raise OptionError(
                f"CombinationGrid: {unknown[0]!r} is unknown. Normalisers are own and node, semirings max and sum, "
                "appearance is a number in (0, 1] or spanning."
            )

    def candidates(self) -> list[tuple[float, ...]]:
        """Rows of numbers in the order of the fields of `FieldChoice`."""
        listed: list[tuple[float, ...]] = list(
            product(
                self.sharpness,
                self.power,
                self.node_weight,
                [NORMALISERS[name] for name in self.normaliser],
                [SPANNING if isinstance(value, str) else value for value in self.appearance],
                [float(DECODED_FROM.index(name)) for name in self.semiring],
                self.sweeps,
            )
        )
        return listed


def _is_appearance(value: object) -> bool:
    return value == "spanning" or (isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1)


def choose_combination(
    node: Tensor,
    edge: Tensor,
    targets: Tensor,
    topology: Topology,
    level: str,
    grid: CombinationGrid,
    damping: float,
    shrinkage: Shrinkage | None = None,
) -> FieldChoice:
    """The candidate with the best validation score for each replica; node accuracy breaks ties, then the order.

    `choose_carefully` tries fewer candidates and does not follow differences within noise.

    Args:
        node: [R, nodes, states], logits on validation graphs.
        edge: [R, edges, states, states], logits.
        targets: [R, nodes], their labels.
        topology: the validation graphs.
        level: one of `accord.evaluation.LEVELS`.
        grid: the candidates.
        damping: of belief propagation.
        shrinkage: of the pseudomarginals [R]; None for none.
    """
    candidates = torch.tensor(grid.candidates(), dtype=node.dtype, device=node.device)
    size = max(1, chunk_bytes(edge.device) // max(1, edge.numel() * edge.element_size()))
    scores, ranks = [], []
    by_sharpness = candidates.view(len(grid.sharpness), -1, candidates.shape[-1])
    # Either all candidates of several sharpnesses at once, or parts of one: its softmax is computed once in both cases.
    for group in by_sharpness.split(max(1, size // by_sharpness.shape[1])):
        sharpened = FieldChoice.from_rows(group[:, :1, None], group.new_zeros(len(group), 1, 1), shrinkage)
        marginals = sharpened.pseudomarginals(node, edge)
        for chunk in group.split(size, dim=1):
            candidate = FieldChoice.from_rows(chunk[:, :, None], chunk.new_zeros(*chunk.shape[:2], 1))
            field = candidate.combine(marginals, topology)
            labels, logs = candidate.labels(field, damping).flatten(0, 1), None
            if needs_probabilities(level):
                logs = candidate.beliefs(field, "sum", damping).node.flatten(0, 1)
            scores.append(level_score(level, labels, targets, topology, logs))
            ranks.append(rank(labels, targets, topology, level, logs))
    score, winner = torch.cat(scores).double(), torch.cat(ranks).argmax(0)
    return FieldChoice.from_rows(candidates[winner], score.gather(0, winner[None])[0].to(node.dtype), shrinkage)


def chunk_bytes(device: torch.device) -> int:
    """Largest size of the edge tables of candidates that are solved at once."""
    if device.type != "cuda":
        return CPU_CHUNK_BYTES
    whole = int(GPU_SHARE * torch.cuda.get_device_properties(device).total_memory)
    free = available_memory(device) or 0
    # Free memory matters only when it is short: the last bits may depend on which candidates are solved together.
    return max(CHUNK_BYTES, whole if GPU_ROOM * whole <= free else free // GPU_ROOM)
