"""`propagate` on parts: every process sweeps over its own part, and sends the totals of its border nodes.

Both processes of an edge between two parts hold its table and both of its messages, and compute both. So a sweep needs
only the totals of ghosts: each border node is sent once to each neighbouring process, whatever the number of edges. The
exchange runs while edges between own nodes are processed. See docs/adr/0025-one-graph-many-processes.md.
"""

import os
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from accord.distributed._part import Part
from accord.distributed._together import largest, together, total
from accord.distributed.decoding import decode_part, on_whole_peeling
from accord.distributed.propagation._checkpoint import Checkpoints
from accord.distributed.propagation._native import NativeSweeps, unfit
from accord.distributed.propagation._plain import PlainSweeps, Sweeps
from accord.errors import AccordError, FieldError, OptionError
from accord.field import PairwiseField
from accord.inference._beliefs import Beliefs, check_feasible
from accord.inference._extended import Extended, has_infinity
from accord.inference._options import DEFAULT_SWEEPS, PropagationOptions, Semiring
from accord.inference._prepared import _prepare
from accord.inference.kernels import Problem
from accord.inference.kernels.reference import collect_with_levels


@dataclass(frozen=True, eq=False)
class PartResult(Beliefs):
    """Beliefs of one part: of own nodes, of ghosts as their owners have them, and of the part's edges.

    Convergence is that of the whole graph; `sweeps` includes those before a restart. `edge`, `log_partition` and
    `decode` need an exchange: all processes must ask for them together, at first use.
    """

    part: Part = dataclass_field(kw_only=True)
    bytes_sent: int = dataclass_field(kw_only=True)  # by this process, in each sweep

    @cached_property
    def _collected(self) -> tuple[Extended, Tensor]:
        sums, levels = collect_with_levels(self.problem, self._flat_messages)
        for values in (sums.finite, sums.infinities):
            self.part.halo.exchange(values[0])
        return sums, levels

    @cached_property
    def log_partition(self) -> Tensor:
        """Of the whole graph [1]: Bethe (or tree-reweighted) log-partition; the score of `decode()` with "max"."""
        found = (self._score() if self.semiring == "max" else self._bethe()).double().cpu().reshape(1)
        return total(found, self.part.halo.group).to(self.node)

    def decode(self) -> Tensor:
        """One joint labelling [own + ghosts], by the steps of `Beliefs.decode`; all processes call it together.

        Where beliefs leave nodes undecided or did not converge, `Beliefs.decode` searches the whole graph; its labels
        can differ.

        Raises:
            InfeasibleError: the labels hold forbidden states or pairs, which are not repaired.
        """
        return self._labels

    @cached_property
    def _labels(self) -> Tensor:
        return decode_part(on_whole_peeling(self.field, self.part), self.part, self.node)

    def _score(self) -> Tensor:
        labels, own = self.decode(), self.part.num_own
        edges = self.part.counted.nonzero().flatten().to(labels.device)
        source, target = labels[self.problem.arcs.edge_index[:, edges]]
        score = self.problem.node[0, :own].gather(-1, labels[:own, None]).double().sum()
        return score + self.problem.edge[0, edges, source, target].double().sum()

    def _bethe(self) -> Tensor:
        """As `Beliefs.log_partition`, over own nodes and counted edges."""
        problem, part = self.problem, self.part
        node, levels = self._node_totals.logsumexp(-1)[0], self._collected[1][0]
        total = (node + levels)[: part.num_own].sum()
        for edges in self._edge_blocks():
            edge = self._edge_totals(edges).flatten(-2).logsumexp(-1)[0]
            source, target = problem.arcs.edge_index[:, edges]
            bethe = problem.appearance[0, edges] * (edge - node[source] - node[target])
            total = total + bethe[part.counted[edges].to(node.device)].double().sum()
        return total


def cut_field(field: PairwiseField, part: Part) -> PairwiseField:
    """The field of one part, cut out of a field that is in memory."""
    edge_index, nodes, edges = (numbers.to(field.node.device) for numbers in (part.edge_index, part.nodes, part.edges))
    return PairwiseField(edge_index, field.node[..., nodes, :], field.edge[..., edges, :, :])


@torch.no_grad()
def propagate(
    part: Part,
    field: PairwiseField,
    *,
    semiring: Semiring = "sum",
    damping: float = 0.0,
    edge_appearance: float | Tensor = 1.0,
    max_sweeps: int | None = None,
    tolerance: float | None = None,
    backend: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 50,
) -> PartResult:
    """Belief propagation on a graph that several processes hold in parts; all of them call this together.

    Each sweep sends all messages at once, like the synchronous schedule of `accord.inference.propagate`, and stops at
    the same sweep. Results differ by rounding only.

    Args:
        part: what this process holds.
        field: the potentials of the part's nodes (own and ghosts; those of ghosts are not used) and edges, numbered as
            in the part (`cut_field`). One graph without replicas.
        semiring: "sum" for marginals, "max" for the best labels.
        damping: weight of the old messages.
        edge_appearance: weight of each edge in tree-reweighted propagation: a number, or a tensor for the part's edges,
            equal in both parts of an edge.
        max_sweeps: when to stop; 200 by default.
        tolerance: change of messages at which the graph has converged, as for `accord.inference.propagate`.
        backend: "native" (compiled, CPU), "reference" (plain torch, any device), or "auto".
        checkpoint: a folder that all processes share, where messages are kept. If it holds a checkpoint of this run,
            the run goes on from there.
        every: sweeps between two checkpoints.

    Raises:
        ProcessLostError: another process ended, or did not answer within the timeout of the process group.
    """
    group = part.halo.group
    with together(group):
        options = PropagationOptions(
            semiring=semiring,
            damping=damping,
            edge_appearance=edge_appearance,
            max_sweeps=DEFAULT_SWEEPS if max_sweeps is None else max_sweeps,
            tolerance=tolerance,
        )
        _check(part, field, options, every)
        problem = _prepare(field, options).problem(field, None).detached()
        saved = None if checkpoint is None else Checkpoints(Path(checkpoint), part, problem)
    done, residual, start = (0, torch.inf, None) if saved is None else saved.load(problem.max_sweeps)
    if start is not None:
        problem = replace(problem, start=start.to(problem.node)[None])
    counted = largest(float(has_infinity(problem.node) or has_infinity(problem.edge)), group) > 0
    with together(group):
        name, engine = _choose(backend, part, problem, counted)
    tolerance = torch.tensor(problem.tolerance, dtype=problem.node.dtype).item()  # kernels compare in this precision
    while done < problem.max_sweeps and not (0 < tolerance and residual <= tolerance):
        keep = saved is not None and (done + 1) % every == 0
        residual = _sweep(part, engine, exact=keep or done + 1 == problem.max_sweeps)
        done += 1
        if saved is not None and keep:
            saved.save(done, residual, engine.messages())
    totals, width = engine.totals(), problem.node.shape[-1] * (2 if counted else 1)
    engine.end()  # before there is room for messages, which take about as much
    part.halo.exchange(totals)
    with together(group):
        check_feasible(totals[: part.num_own])
    return PartResult(
        field=field,
        semiring=semiring,
        messages=engine.messages(),
        converged=torch.tensor([residual <= tolerance]),
        sweeps=torch.tensor([done]),
        residual=torch.tensor([residual], dtype=problem.node.dtype),
        backend=name,
        problem=replace(problem, start=None),
        totals=totals[None],
        part=part,
        bytes_sent=part.halo.rows_sent * width * problem.node.element_size(),
    )


def _check(part: Part, field: PairwiseField, options: PropagationOptions, every: int) -> None:
    if field.replicas.numel() != 1 or field.replicas or field.num_graphs != 1:
        raise FieldError("propagate: a field in parts is one graph without replicas. Propagate them one by one.")
    if field.num_nodes != len(part.nodes) or not torch.equal(field.edge_index.cpu(), part.edge_index):
        raise FieldError(
            f"propagate: the field has {field.num_nodes} nodes and {field.num_edges} edges, but not those of the part, "
            f"which has {len(part.nodes)} and {part.edge_index.shape[1]}. Build it from part.edge_index (cut_field)."
        )
    if isinstance(options.edge_appearance, str):
        raise OptionError(
            "propagate: edge_appearance 'spanning' needs the whole graph. Compute the probabilities before the graph "
            "is cut, and give those of the part's edges."
        )
    if every < 1:
        raise OptionError(f"propagate: every is {every} sweeps. Give 1 or more.")


def _choose(backend: str, part: Part, problem: Problem, counted: bool) -> tuple[str, Sweeps]:
    if backend not in ("auto", "native", "reference"):
        raise OptionError(f"propagate: backend {backend!r} is unknown. Give 'auto', 'native' or 'reference'.")
    reason = "it was not asked for" if backend == "reference" else unfit(problem)
    if reason is None:
        return "native", NativeSweeps(part, problem, counted)
    if backend == "native" and problem.arcs.num_edges:
        raise OptionError(f"propagate: backend 'native' cannot be used here: {reason}.")
    return "reference", PlainSweeps(part, problem, counted)


def _sweep(part: Part, engine: Sweeps, exact: bool) -> float:
    """The largest change of any message. What one process finds impossible is raised by all: they would wait for it."""
    parcels = [engine.border(rows) for rows in part.halo.send]
    arriving, moved, failure = part.halo.post(parcels), torch.inf, None
    try:
        engine.inner(exact)
    except AccordError as error:
        failure = error
    ghosts = arriving()
    if failure is None:
        try:
            moved = engine.outer(ghosts, exact)
        except AccordError as error:
            failure = error
    moved = largest(moved, part.halo.group)
    if moved == torch.inf:  # of a failure, or of a message that became infinite
        with together(part.halo.group):
            if failure is not None:
                raise failure
    return moved
