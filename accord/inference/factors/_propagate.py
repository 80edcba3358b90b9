"""Propagation on fields with factors: options, kernel, beliefs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.errors import FieldError, InputTypeError, OptionError
from accord.field._checks import LARGEST_POTENTIAL
from accord.field.factors import FactorField, FlatField
from accord.graphs._checks import check_number, check_numbers, check_room, check_tensor
from accord.graphs.structure._peeling import peel
from accord.inference._options import DEFAULT_SWEEPS, DEFAULT_TOLERANCE, PropagationOptions
from accord.inference.factors import _native, _reference
from accord.inference.factors._appearance import spanning_forests
from accord.inference.factors._beliefs import FactorBeliefs
from accord.inference.factors._gradients import with_gradient
from accord.inference.factors._interface import FactorKernel, FactorProblem


@dataclass(frozen=True, eq=False)
class PreparedFactors:
    """What all runs with the same options on fields of one form have in common."""

    form: tuple[object, ...]
    options: PropagationOptions
    messages: int  # how many numbers the messages of a replica have
    appearance: Tensor | None  # of each factor in the order of the flat field; None: 1, or a tensor that may change
    lowest: float  # the least of it
    max_sweeps: int
    tolerance: float

    def run(self, field: FactorField, flat: FlatField, backend: str, start: object) -> FactorBeliefs:
        """Beliefs of a field of this form; `flat` is the field with its rules."""
        appearance, lowest = self.appearance, self.lowest
        if isinstance(self.options.edge_appearance, Tensor):
            appearance, lowest = _appearance(field, flat, self.options.edge_appearance)
        _check_quotients(flat, lowest)
        problem = FactorProblem(
            flat=flat,
            appearance=appearance,
            semiring=self.options.semiring,
            damping=float(self.options.damping),
            max_sweeps=self.max_sweeps,
            tolerance=self.tolerance,
            start=None if start is None else _start(field, start, self.messages),
            schedule=self.options.schedule,
        )
        name, kernel = choose_kernel(backend, problem)
        solution = kernel(problem)
        shape = (*field.replicas, field.num_graphs)
        beliefs = FactorBeliefs(
            field=field,
            semiring=self.options.semiring,
            messages=solution.messages.reshape(*field.replicas, -1),
            converged=(solution.residual <= problem.tolerance).reshape(shape),
            sweeps=solution.sweeps.reshape(shape),
            residual=solution.residual.reshape(shape),
            backend=name,
            problem=problem,
            totals=solution.totals,
        )
        _ = beliefs.node  # computed here, so that a variable without any possible state is reported now
        return beliefs


def factor_form(field: FactorField) -> tuple[object, ...]:
    """What preparations depend on beside the options: everything but the values of the potentials."""
    return field.derived, field.replicas, field.node.dtype, field.node.device


def prepare_factors(field: FactorField, flat: FlatField, options: PropagationOptions) -> PreparedFactors:
    """Check what does not depend on the values of potentials, and keep it."""
    count, each = field.replicas.numel(), field.node.element_size()
    messages = _num_messages(flat)
    check_room("propagate", f"the messages of {field.num_factors} factors", count * messages * each, field.node.device)
    given = options.edge_appearance
    appearance, lowest = (None, 1.0) if isinstance(given, Tensor) else _appearance(field, flat, given)
    return PreparedFactors(
        form=factor_form(field),
        options=options,
        messages=messages,
        appearance=appearance,
        lowest=lowest,
        max_sweeps=_default_sweeps(flat) if options.max_sweeps is None else options.max_sweeps,
        tolerance=DEFAULT_TOLERANCE[field.node.dtype] if options.tolerance is None else float(options.tolerance),
    )


def check_factor_backend(backend: object) -> None:
    """Refuse names that no kernel for factors has."""
    if backend not in ("auto", "native", "reference"):
        raise OptionError(
            f"propagate: backend {backend!r} cannot solve fields with factors. Choose 'auto', 'native' or 'reference'."
        )


def choose_kernel(backend: str, problem: FactorProblem) -> tuple[str, FactorKernel]:
    """The kernel of this name, or the fastest that can solve the problem ("auto"), with gradients where needed."""
    name = backend
    if backend == "auto":
        fits = _native.misfit(problem) is None and _native.unavailable() is None
        name = "native" if fits else "reference"
    kernel: FactorKernel = _native.solve if name == "native" else _reference.solve
    if problem.wants_gradient and backend != "reference":
        kernel = with_gradient(kernel)
    return name, kernel


def _num_messages(flat: FlatField) -> int:
    return flat.derived.get("messages", lambda: _count_messages(flat))


def _count_messages(flat: FlatField) -> int:
    rules = sum(rule.scope.numel() * rule.transitions.shape[1] for rule in flat.rules)
    return int(flat.states[flat.scope].sum()) + rules


def _default_sweeps(flat: FlatField) -> int:
    """As many as trees of factors need to be exact, or the usual number."""
    return flat.derived.get("sweeps", lambda: _count_sweeps(flat))


def _count_sweeps(flat: FlatField) -> int:
    pieces, first = [], flat.num_nodes
    orders = flat.scope_at.diff()
    factors = torch.arange(flat.num_factors, device=orders.device).repeat_interleave(orders)
    pieces.append(torch.stack([flat.scope, first + factors]))
    first += flat.num_factors
    for rule in flat.rules:
        factors = torch.arange(len(rule.scope), device=orders.device).repeat_interleave(rule.order)
        pieces.append(torch.stack([rule.scope.flatten(), first + factors]))
        first += len(rule.scope)
    links = torch.cat(pieces, dim=1)
    if links.shape[1] >= first:  # more than a forest has
        return DEFAULT_SWEEPS
    peeling = peel(links, first)
    return max(DEFAULT_SWEEPS, len(peeling.rounds) + 2 if peeling.is_forest else 0)


def _appearance(field: FactorField, flat: FlatField, choice: object) -> tuple[Tensor | None, float]:
    """The weight of each factor [R or 1, factors] in the order of the flat field, None where all are 1; the least."""
    if isinstance(choice, str):
        if choice != "spanning":
            raise OptionError(
                f"propagate: edge_appearance {choice!r} is unknown. Give a number, one for each factor, or 'spanning'."
            )
        values = spanning_forests(field).to(field.node.dtype)
    elif isinstance(choice, Tensor):
        values = check_numbers(choice, "edge_appearance", "propagate", field.node)
        if values.dim() and (values.shape[-1] != field.num_factors or values.shape[:-1] not in (field.replicas, ())):
            raise OptionError(
                f"propagate: edge_appearance has shape {list(values.shape)}, but [factors] = [{field.num_factors}] is "
                "needed, group by group. Give one number for all factors, or one for each."
            )
        values = values.expand(*values.shape[:-1], field.num_factors)
    else:
        number = check_number(choice, "edge_appearance", "propagate")
        if number == 1:
            return None, 1.0
        values = field.node.new_full((field.num_factors,), number)
    if values.numel() and not (float(values.min()) > 0 and float(values.max()) <= 1):
        raise OptionError(
            f"propagate: edge_appearance must lie in (0, 1], got values from {float(values.min())} to "
            f"{float(values.max())}. 1 is plain propagation."
        )
    lowest = float(values.detach().min()) if values.numel() else 1.0
    lead = values.shape[:-1].numel()
    return values.reshape(lead, field.num_factors)[:, _places(field, flat)], lowest


def _places(field: FactorField, flat: FlatField) -> Tensor:
    """For each factor of the flat field, its number among the field's own, group by group."""
    firsts, total = [], 0
    for group in field.groups:
        firsts.append(total)
        total += group.num_factors
    places = [firsts[block.group] + block.factors for block in flat.blocks]
    places += [firsts[rule.group] + torch.arange(len(rule.scope), device=rule.scope.device) for rule in flat.rules]
    return torch.cat(places) if places else torch.zeros(0, dtype=torch.long, device=field.node.device)


def _check_quotients(flat: FlatField, smallest: float) -> None:
    """Refuse appearance so small that the potentials divided by it overflow."""
    for values in (flat.tables, *(rule.final for rule in flat.rules)):
        if smallest < 1 and values.numel():
            largest = float(values.detach().masked_fill(values == -torch.inf, 0.0).abs().max())
            if largest > smallest * LARGEST_POTENTIAL[values.dtype]:
                raise OptionError(
                    f"propagate: edge_appearance goes down to {smallest:.3g} and potentials up to {largest:.3g}; their "
                    f"quotients overflow {values.dtype}. Give larger probabilities, or the field in float64."
                )


def _start(field: FactorField, start: object, length: int) -> Tensor:
    """Messages to continue from, as [R, M]."""
    if not isinstance(start, (FactorBeliefs, Tensor)):
        raise InputTypeError(
            f"propagate: start is a {type(start).__name__}, not beliefs of a field with factors or their messages. "
            "Give what propagate returned."
        )
    messages = start.messages if isinstance(start, FactorBeliefs) else check_tensor(start, "start", "propagate")
    shape = (*field.replicas, length)
    if messages.shape != shape or messages.dtype != field.node.dtype or messages.device != field.node.device:
        raise FieldError(
            f"propagate: the messages to start from are {list(messages.shape)}, {messages.dtype} on {messages.device}; "
            f"this field needs {list(shape)}, {field.node.dtype} on {field.node.device}. Start from a run on the same "
            "field."
        )
    if bool((messages.isnan() | (messages == torch.inf)).any()):
        raise FieldError("propagate: the messages to start from hold NaN or +inf. Start from `beliefs.messages`.")
    return messages.reshape(-1, length)
