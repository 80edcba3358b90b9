"""Labellings drawn from a field: exactly where elimination is feasible, by Gibbs sampling on any graph."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from accord.errors import FieldError, InfeasibleError, InputTypeError, OptionError
from accord.field import ChainField, PairwiseField
from accord.field.factors import FactorField
from accord.graphs import Arcs
from accord.graphs._checks import check_integer
from accord.graphs.structure._colouring import colour_nodes
from accord.inference._propagate import propagate
from accord.inference.chains import sample_chains
from accord.inference.exact import MAX_TABLE, draw_labels
from accord.inference.sampling._draw import draw
from accord.inference.sampling._factor_gibbs import start_labels, walk


def sample_exact(
    field: PairwiseField | FactorField | ChainField,
    num_samples: int = 1,
    generator: torch.Generator | None = None,
    max_table: int = MAX_TABLE,
    backend: Literal["auto", "reference"] = "auto",
) -> Tensor:
    """Independent labellings from the joint distribution: [num_samples, *replicas, nodes].

    Those of a `ChainField` are [num_samples, *replicas, chains, length], -1 beyond the end of a chain.

    Sums are passed to the roots of a tree of cliques; then labels are drawn from the roots outwards, each given those
    already drawn (forward filtering, backward sampling). Feasible on trees of any size and on loopy graphs of small
    treewidth. Memory grows with the tables of `eliminate_beliefs` and with samples x replicas x nodes.

    Args:
        field: the distribution to draw from.
        num_samples: how many labellings.
        generator: source of randomness; None means torch's default.
        max_table: see `eliminate_beliefs`.
        backend: "auto" uses the compiled kernel where there is one; "reference" (plain torch) draws the same samples
            from the same generator on every machine.

    Raises:
        InfeasibleError: a graph has no labelling without forbidden states or pairs.
        TooLargeError: the graph is too wide for `max_table`; `sample_gibbs` has no such limit.
    """
    where = "sample_exact"
    _check_count(num_samples, "num_samples", 1, where)
    if backend not in ("auto", "reference"):
        raise OptionError(f"{where}: backend {backend!r} is unknown. Choose 'auto' or 'reference'.")
    if isinstance(field, ChainField):
        return sample_chains(field, num_samples, generator, where)

    def uniform(shape: tuple[int, ...]) -> Tensor:
        device = field.node.device if generator is None else generator.device
        return torch.rand(shape, dtype=torch.float64, device=device, generator=generator).to(field.node.device)

    with torch.no_grad():
        labels = draw_labels(
            field, lambda given: draw(given, generator), uniform, num_samples, max_table, backend == "auto", where
        )
    return labels.reshape(num_samples, *field.replicas, field.num_nodes)


def sample_gibbs(
    field: PairwiseField | FactorField,
    num_samples: int = 1,
    sweeps: int = 100,
    start: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Labellings from independent Markov chains, one for each sample: [num_samples, *replicas, nodes].

    A sweep draws every node anew given its neighbours (Geman and Geman 1984); nodes of one colour share no edge
    and are drawn together (chromatic sampling, Gonzalez et al. 2011). All chains of all replicas run at once,
    and only their last states are returned, so samples are independent of each other. With too few `sweeps` they are
    biased towards the start. Memory grows with samples x replicas x (edges of one colour) x states.

    Forbidden pairs (-inf) are respected in every sweep, but may separate the labellings into sets with no path of
    single-node changes between them: a chain then never leaves the set it started in. Prefer `sample_exact` where it
    is feasible.

    Args:
        field: the distribution to draw from.
        num_samples: how many chains, each giving one sample.
        sweeps: how often each chain visits every node; 0 returns where the chains start.
        start: labels [..., nodes] that broadcast against [num_samples, *replicas, nodes]. By default each node's
            state is drawn from its own potentials, or taken from the decoded optimum if there are forbidden pairs (of
            a FactorField: from an exact sample, where one is affordable).
        generator: source of randomness; None means torch's default.

    Raises:
        InfeasibleError: `start` is forbidden, or no labelling to start from was found.
    """
    where = "sample_gibbs"
    if not isinstance(field, (PairwiseField, FactorField)):
        raise InputTypeError(
            f"{where}: got a {type(field).__name__}, not a PairwiseField or FactorField. Build one first."
        )
    _check_count(num_samples, "num_samples", 1, where)
    _check_count(sweeps, "sweeps", 0, where)
    shape = (num_samples, *field.replicas, field.num_nodes)
    with torch.no_grad():
        labels = _start(field, num_samples, start, generator, where)
        if isinstance(field, FactorField):
            return walk(field, labels, sweeps, generator)
        # Nodes come first, so that whole rows are gathered and summed along edges.
        chains = labels.reshape(num_samples, field.replicas.numel(), field.num_nodes).permute(2, 1, 0).contiguous()
        groups = _colour_groups(field)
        for _ in range(sweeps):
            for group in groups:
                chains[group.nodes] = draw(group.conditional(chains), generator)
        return chains.permute(2, 1, 0).reshape(shape)


@dataclass(frozen=True, eq=False)
class ColourGroup:
    """Nodes that share no edge, and the arcs that run into them."""

    nodes: Tensor  # [group]
    evidence: Tensor  # [group, R, 1, states]
    source: Tensor  # [arcs]
    place: Tensor  # [arcs]: entry of `nodes` that the arc runs into
    tables: Tensor  # [arcs, R, source states, target states]

    def conditional(self, chains: Tensor) -> Tensor:
        """Log-potentials of the nodes' states given all others [group, R, chains, states].

        Args:
            chains: labels [nodes, R, chains].
        """
        around = chains[self.source][..., None].expand(-1, -1, -1, self.tables.shape[-1])
        shape = (*self.evidence.shape[:2], chains.shape[2], self.evidence.shape[3])
        return self.evidence.expand(shape).index_add(0, self.place, self.tables.gather(2, around))


def _colour_groups(field: PairwiseField) -> list[ColourGroup]:
    """One group for each colour of the graph."""
    node, edge = (values.transpose(0, 1) for values in field.expanded())
    arcs = Arcs.along(field.edge_index)
    place = torch.empty(field.num_nodes, dtype=torch.long, device=node.device)
    colour = torch.empty_like(place)
    groups = []
    classes = colour_nodes(field.edge_index, field.num_nodes)
    for number, nodes in enumerate(classes):
        colour[nodes] = number
        place[nodes] = torch.arange(len(nodes), device=node.device)
    for number, nodes in enumerate(classes):
        incoming = (colour[arcs.target] == number).nonzero().flatten()
        against = incoming >= field.num_edges
        table = edge[incoming % max(field.num_edges, 1)]
        table = torch.where(against[:, None, None, None], table.mT, table)
        groups.append(
            ColourGroup(nodes, node[nodes][:, :, None], arcs.source[incoming], place[arcs.target[incoming]], table)
        )
    return groups


def _start(
    field: PairwiseField | FactorField,
    num_samples: int,
    start: Tensor | None,
    generator: torch.Generator | None,
    where: str,
) -> Tensor:
    """Labels [num_samples, *replicas, nodes] that no constraint forbids."""
    shape = (num_samples, *field.replicas, field.num_nodes)
    if start is not None:
        labels = check_integer(start, "start", where)
        try:
            labels = labels.expand(shape)
        except RuntimeError:
            raise FieldError(
                f"{where}: start has shape {list(labels.shape)}, which does not broadcast to {list(shape)} "
                "(samples, replicas, nodes). Give one label for each node."
            ) from None
    elif isinstance(field, FactorField):
        labels = start_labels(field, num_samples, generator, where)
    elif bool((field.edge == -torch.inf).any()) or bool((field.node == -torch.inf).all(-1).any()):
        labels = propagate(field, semiring="max").decode().expand(shape)
    else:
        labels = draw(field.node.expand(*shape, field.num_states), generator)
    barred = (field.score(labels) == -torch.inf).nonzero()
    if len(barred):
        raise InfeasibleError(
            f"{where}: the labels that sample {int(barred[0, 0])} starts from are forbidden in graph "
            f"{int(barred[0, -1])}, and a chain cannot start at probability zero. Start from labels with a finite "
            "field.score, or leave out `start`; if that fails too, relax a constraint."
        )
    return labels


def _check_count(value: object, name: str, lowest: int, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputTypeError(f"{where}: {name} is a {type(value).__name__}, not an int.")
    if value < lowest:
        raise OptionError(f"{where}: {name} is {value}, but must be {lowest} or more.")
