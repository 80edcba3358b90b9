"""`Propagation`: belief propagation prepared once for a set of graphs."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, InputTypeError, OptionError
from accord.field import PairwiseField
from accord.field._checks import LARGEST_POTENTIAL
from accord.field._structure import Structure
from accord.field.factors import FactorField, flatten
from accord.graphs._checks import check_number, check_numbers, check_room, check_tensor
from accord.inference._appearance import spanning_tree_probabilities
from accord.inference._beliefs import Beliefs, check_feasible
from accord.inference._options import DEFAULT_SWEEPS, DEFAULT_TOLERANCE, PropagationOptions, Schedule, Semiring
from accord.inference.factors._beliefs import FactorBeliefs
from accord.inference.factors._propagate import (
    PreparedFactors,
    check_factor_backend,
    factor_form,
    prepare_factors,
)
from accord.inference.kernels import Problem, check_backend, check_memory, choose_kernel

Kind = TypeVar("Kind", PairwiseField, FactorField)


class Propagation(Generic[Kind]):
    """Belief propagation on one set of graphs, prepared once and called with many potentials.

    `Propagation(field, ...)(node, edge)` returns what `propagate(field.with_potentials(node, edge), ...)` does, to the
    bit, in less time: options are checked once, and what follows from the graphs is kept. On small graphs this is most
    of the work. Of a field with factors, also one made by `PairwiseField.ragged`, its flat form is kept.

    Args:
        field: the graphs, and the potentials that are used where a call gives none.
        semiring: as for `propagate`, like all that follow.
        damping: weight of the old messages.
        edge_appearance: weight of each edge in tree-reweighted propagation.
        max_sweeps: when to stop.
        tolerance: change of messages at which a graph has converged.
        backend: which kernel passes the messages.
        schedule: the order in which messages are sent.
    """

    def __init__(
        self,
        field: Kind,
        semiring: Semiring = "sum",
        damping: float = 0.0,
        edge_appearance: float | Tensor | Literal["spanning"] = 1.0,
        max_sweeps: int | None = None,
        tolerance: float | None = None,
        backend: str = "auto",
        schedule: Schedule = "synchronous",
    ) -> None:
        if not isinstance(field, (PairwiseField, FactorField)):
            raise InputTypeError(
                f"propagate: got a {type(field).__name__}, not a PairwiseField or a FactorField. Build one first."
            )
        self.field: Kind = field
        self.options = PropagationOptions(
            semiring=semiring,
            damping=damping,
            edge_appearance=edge_appearance,
            max_sweeps=max_sweeps,
            tolerance=tolerance,
            schedule=schedule,
        )
        (check_factor_backend if isinstance(field, FactorField) else check_backend)(backend)
        self.backend = backend
        self._prepared: tuple[Structure, _Prepared] | PreparedFactors | None = None

    @overload
    def __call__(
        self: "Propagation[PairwiseField]",
        node: Tensor | None = ...,
        edge: Tensor | None = ...,
        start: Beliefs | Tensor | None = ...,
    ) -> Beliefs: ...

    @overload
    def __call__(
        self: "Propagation[FactorField]",
        node: Tensor | None = ...,
        edge: Sequence[Tensor | None] | None = ...,
        start: FactorBeliefs | Tensor | None = ...,
    ) -> FactorBeliefs: ...

    @eager
    def __call__(self, node: Any = None, edge: Any = None, start: Any = None) -> Beliefs | FactorBeliefs:
        """Beliefs of the field, or of its graphs with other potentials.

        Args:
            node: [*replicas, nodes, states]; None for those of the field.
            edge: [*replicas, edges, states, states]; of a field with factors, one entry for each group, as
                `FactorField.with_potentials` takes them. None for those of the field.
            start: as for `propagate`.
        """
        field: Any = self.field
        field.check_changes("propagate")
        if isinstance(field, FactorField):
            if node is not None or edge is not None:
                field = field.with_potentials(node, () if edge is None else edge)
            return self._solve_factors(field, start)
        if node is not None or edge is not None:
            field = field.with_potentials(node, edge)
        return self._solve_pairs(field, start)

    def _solve_factors(self, field: FactorField, start: object) -> FactorBeliefs:
        flat = flatten(field, keep_rules=True)
        prepared = self._prepared  # other threads may replace it
        if not isinstance(prepared, PreparedFactors) or prepared.form != factor_form(field):
            prepared = self._prepared = prepare_factors(field, flat, self.options)
        return prepared.run(field, flat, self.backend, start)

    def _solve_pairs(self, field: PairwiseField, start: Beliefs | Tensor | None) -> Beliefs:
        kept = self._prepared
        if not isinstance(kept, tuple) or kept[0] is not field.structure or kept[1].form != _form(field):
            kept = self._prepared = field.structure, _prepared_for(field, self.options)
        prepared = kept[1]
        check_feasible(field.node)
        problem = prepared.problem(field, start)
        name, kernel = choose_kernel(self.backend, problem)
        if name not in prepared.small and not check_memory(name, problem):
            prepared.small.add(name)
        solution = kernel(problem)
        shape = (*field.replicas, field.num_graphs)
        beliefs = Beliefs(
            field=field,
            semiring=self.options.semiring,
            messages=solution.messages.reshape(*field.replicas, *solution.messages.shape[1:]),
            converged=(solution.residual <= problem.tolerance).reshape(shape),
            sweeps=solution.sweeps.reshape(shape),
            residual=solution.residual.reshape(shape),
            backend=name,
            problem=problem,
            totals=solution.totals,
        )
        _ = beliefs.node  # computed here, so that a node without any possible state is reported now, not at first use
        return beliefs


Form = tuple[object, ...]


def _form(field: PairwiseField) -> Form:
    """What preparations depend on beside the options and the graphs: all but the values of the potentials."""
    node = field.node
    return field.replicas, node.shape[-1], node.dtype, node.device


class _Appearance(NamedTuple):
    """Edge appearance probabilities."""

    values: Tensor  # [R or 1, edges]
    weighted: bool  # whether any may be less than 1
    divisor: float = 1.0  # the smallest of those that a caller chose, by which potentials are divided


@dataclass(frozen=True, eq=False)
class _Prepared:
    """What all runs with the same options on fields of one form have in common."""

    form: Form
    options: PropagationOptions
    appearance: _Appearance | None  # None if a tensor was given: its values may change
    damping: float
    max_sweeps: int
    tolerance: float
    small: set[str] = dataclass_field(default_factory=set)  # backends that need too little memory to check it each time

    def problem(self, field: PairwiseField, start: Beliefs | Tensor | None) -> Problem:
        """The field as kernels see it."""
        node, edge = field.expanded()
        appearance = self.appearance or _appearance(field, self.options.edge_appearance)
        _check_quotients(edge.detach(), appearance.divisor)
        structure = field.structure
        return Problem(
            arcs=structure.arcs,
            node=node,
            edge=edge,
            appearance=appearance.values,
            weighted=appearance.weighted,
            node_graph=structure.graph,
            edge_graph=structure.edge_graph,
            num_graphs=structure.num_graphs,
            semiring=self.options.semiring,
            damping=self.damping,
            max_sweeps=self.max_sweeps,
            tolerance=self.tolerance,
            start=None if start is None else _start(field, start),
            schedule=self.options.schedule,
        )


def _prepared_for(field: PairwiseField, options: PropagationOptions) -> _Prepared:
    """Preparations for a run: those of the last run on the same graphs if they fit."""
    if isinstance(options.edge_appearance, Tensor):
        return _prepare(field, options)
    last = field.structure.prepared
    if last is None or last.form != _form(field) or last.options != options:
        last = field.structure.prepared = _prepare(field, options)
    found: _Prepared = last
    return found


def _prepare(field: PairwiseField, options: PropagationOptions) -> _Prepared:
    _check_results_fit(field)
    dtype, appearance = field.node.dtype, options.edge_appearance
    return _Prepared(
        form=_form(field),
        options=options,
        appearance=None if isinstance(appearance, Tensor) else _appearance(field, appearance),
        damping=_damping(options.damping, dtype),
        max_sweeps=_max_sweeps(field, options.max_sweeps),
        tolerance=DEFAULT_TOLERANCE[dtype] if options.tolerance is None else float(options.tolerance),
    )


def _max_sweeps(field: PairwiseField, given: int | None) -> int:
    if given is not None:
        return given
    # A forest loses two nodes or more in every round of peeling, and needs two sweeps for each round, and two more.
    few = field.num_nodes + 2 <= DEFAULT_SWEEPS
    return DEFAULT_SWEEPS if few else max(DEFAULT_SWEEPS, field.structure.forest_sweeps)


def _check_results_fit(field: PairwiseField) -> None:
    """Refuse fields whose messages and beliefs alone exceed the memory, before anything is computed."""
    replicas, each = field.replicas.numel(), field.node.element_size()
    numbers = (2 * field.num_edges + field.num_nodes) * field.num_states
    graphs = field.num_graphs * (each + 9)  # residual, sweeps and whether it converged
    what = f"the beliefs of {replicas} replicas, {field.num_graphs} graphs and {field.num_nodes} nodes"
    check_room("propagate", what, replicas * (numbers * each + graphs), field.node.device)


def _damping(damping: float, dtype: torch.dtype) -> float:
    """The weight of old messages. Neither it nor that of new ones may round to 0: 0 times -inf would be NaN."""
    numbers = torch.finfo(dtype)
    return min(float(damping), 1 - numbers.eps / 2) if damping >= numbers.tiny else 0.0


def _appearance(field: PairwiseField, choice: float | Tensor | str) -> _Appearance:
    like = field.edge
    if isinstance(choice, str):
        if choice != "spanning":
            raise OptionError(
                f"propagate: edge_appearance {choice!r} is unknown. Give a number in (0, 1], a tensor [edges] or "
                "'spanning'."
            )
        return _Appearance(spanning_tree_probabilities(field.edge_index, field.num_nodes).to(like)[None], weighted=True)
    if isinstance(choice, Tensor):
        values = check_numbers(choice, "edge_appearance", "propagate", like)
        if values.dim() and (values.shape[-1] != field.num_edges or values.shape[:-1] not in (field.replicas, ())):
            raise OptionError(
                f"propagate: edge_appearance has shape {list(values.shape)}, but [edges] = [{field.num_edges}] is "
                "needed. Give one number for all edges, or one for each column of edge_index."
            )
        lowest, highest = torch.stack(values.detach().aminmax()).tolist() if values.numel() else (1.0, 1.0)
    else:
        # Rounded to the field's precision on the CPU: reading a value back from a GPU would wait for its queue.
        number = check_number(choice, "edge_appearance", "propagate")
        rounded = number if number == 1 else torch.tensor(number, dtype=like.dtype, device="cpu").item()
        lowest = highest = rounded
        values = like.new_full((1,), lowest)
    if not (lowest > 0 and highest <= 1):
        raise OptionError(
            f"propagate: edge_appearance must lie in (0, 1], got values from {lowest} to {highest}. "
            "1 is plain propagation."
        )
    many = values.dim() > 1
    values = values.reshape(field.replicas.numel(), field.num_edges) if many else values.expand(1, field.num_edges)
    return _Appearance(values, lowest < 1, lowest)


def _check_quotients(edge: Tensor, smallest: float) -> None:
    """Refuse appearance probabilities so small that the potentials divided by them overflow."""
    if smallest < 1 and edge.numel():
        largest = float(edge.masked_fill(edge == -torch.inf, 0.0).abs().max())
        if largest > smallest * LARGEST_POTENTIAL[edge.dtype]:
            raise OptionError(
                f"propagate: edge_appearance goes down to {smallest:.3g} and edge potentials up to {largest:.3g}; "
                f"their quotients overflow {edge.dtype}. Give larger probabilities, or the field in float64."
            )


def _start(field: PairwiseField, start: Beliefs | Tensor) -> Tensor:
    """Messages to continue from, as [R, arcs, states]."""
    if not isinstance(start, (Beliefs, Tensor)):
        raise InputTypeError(
            f"propagate: start is a {type(start).__name__}, not Beliefs or their messages. "
            "Give what propagate returned."
        )
    messages = start.messages if isinstance(start, Beliefs) else check_tensor(start, "start", "propagate")
    shape = (*field.replicas, 2 * field.num_edges, field.num_states)
    if messages.shape != shape:
        raise FieldError(
            f"propagate: the messages to start from have shape {list(messages.shape)}, this field needs {list(shape)}. "
            "Start from a run on the same graphs and replicas."
        )
    if messages.dtype != field.node.dtype or messages.device != field.node.device:
        raise FieldError(
            f"propagate: the messages to start from are {messages.dtype} on {messages.device}, the field "
            f"{field.node.dtype} on {field.node.device}. Convert them with .to(field.node)."
        )
    if bool((messages.isnan() | (messages == torch.inf)).any()):
        raise FieldError("propagate: the messages to start from hold NaN or +inf. Start from `beliefs.messages`.")
    # A state that was impossible before may be possible now: start it from the least likely finite value.
    barred = messages == -torch.inf
    lowest = messages.masked_fill(barred, torch.inf).amin(-1, keepdim=True)
    lowest = lowest.masked_fill(lowest == torch.inf, 0.0)
    return torch.where(barred, lowest, messages).reshape(field.replicas.numel(), *shape[-2:])
