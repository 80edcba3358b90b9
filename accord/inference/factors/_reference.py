"""Belief propagation between factors and variables in plain torch, in log space, on any device.

    cavity_fi(x) = theta_v(x) + sum over factors g at v of rho_g m_g(x)  -  m_fi(x)      (v is the i-th variable of f)
    m_fi(x_i)    = reduce over x_j, j != i, of [ theta_f(x) / rho_f + sum over j != i of cavity_fj(x_j) ]

With factors of two variables and edges once, this is the message passing of `kernels/reference`: the message of an
edge to its target is that of the arc along it. rho is 1 in plain propagation (Kschischang, Frey and Loeliger 2001).
"""

import torch
from torch import Tensor

from accord.errors import InfeasibleError, OptionError
from accord.field._field import sum_dtype
from accord.inference._extended import Extended
from accord.inference.factors._interface import FactorProblem, FactorSolution
from accord.inference.factors._layout import Alike, Layout
from accord.inference.factors._messages import rule_messages, table_messages, table_total
from accord.inference.kernels.reference import normalise


def weights(problem: FactorProblem, alike: Alike) -> Tensor | None:
    """Appearance of some factors [R or 1, factors], or None where it is 1."""
    return None if problem.appearance is None else problem.appearance[:, alike.factor]


def collect(problem: FactorProblem, layout: Layout, messages: Tensor) -> tuple[Extended, Tensor]:
    """Beliefs of all variables [R, states of all variables], the best state of each at 0, and the shifts [R, nodes].

    In float64: a variable may have a million factors, and a cavity is a difference of two such sums.
    """
    wide = sum_dtype(messages.device)
    total, terms = Extended.split(problem.flat.unary.to(wide)), Extended.split(messages.to(wide))
    finite = terms.finite
    if problem.appearance is not None:
        finite = problem.appearance.to(wide)[:, layout.factor_of] * finite
    total = Extended(
        total.finite.index_add(-1, layout.state_of, finite),
        total.infinities.index_add(-1, layout.state_of, terms.infinities),
    )
    variable = layout.variable_of_state.expand_as(total.finite)
    level = total.finite.new_full((len(messages), problem.flat.num_nodes), -torch.inf)
    level = level.scatter_reduce(-1, variable, total.join().detach(), reduce="amax")
    level = level.masked_fill(level == -torch.inf, 0.0)
    return Extended(total.finite - level.gather(-1, variable), total.infinities), level


def cavities(alike: Alike, messages: Tensor, totals: Extended) -> list[Tensor]:
    """For each variable of some factors, its belief without the factor's own message [R, factors, states]."""
    found = []
    for state, place in zip(alike.state, alike.message, strict=True):
        own = Extended.split(messages[:, place])
        there = Extended(totals.finite[:, state], totals.infinities[:, state])
        found.append((there - own).join().to(messages.dtype))
    return found


def send(problem: FactorProblem, layout: Layout, messages: Tensor) -> Tensor:
    """One synchronous sweep: the new message of every factor to each of its variables."""
    totals = collect(problem, layout, messages)[0]
    pieces = []
    for alike in layout.alike:
        around = cavities(alike, messages, totals)
        if alike.rule is None:
            new = table_messages(factor_tables(problem, alike), around, problem.semiring)
        else:
            new, _ = rule_messages(alike.rule, factor_scores(problem, alike), around, problem.semiring)
        pieces.append(tuple(_checked(problem, alike, axis, each) for axis, each in enumerate(new)))
    return layout.gathered(pieces, problem.flat.unary)


def factor_tables(problem: FactorProblem, alike: Alike) -> Tensor:
    """Tables of some factors, divided by their appearance [R or 1, factors, states, ..., states]."""
    tables, weight = alike.tables(problem.flat.tables), weights(problem, alike)
    return tables if weight is None else tables / weight.reshape(*weight.shape, *(1,) * len(alike.shape))


def factor_scores(problem: FactorProblem, alike: Alike) -> Tensor:
    """Final scores of some rules, divided by their appearance [R or 1, factors or 1, automaton states]."""
    assert alike.rule is not None
    weight = weights(problem, alike)
    return alike.rule.final if weight is None else alike.rule.final / weight[..., None]


def _checked(problem: FactorProblem, alike: Alike, axis: int, messages: Tensor) -> Tensor:
    barred = (messages == -torch.inf).all(-1)
    if bool(barred.any()):
        variable = int(alike.scope[int(barred.nonzero()[0, -1]), axis])
        raise InfeasibleError(
            f"propagate: no state is left for node {variable} in graph {int(problem.flat.graph[variable])}: clamped "
            "labels, forbidden states and rules contradict each other. Relax one of them."
        )
    return normalise(messages, problem.semiring)


def damp(problem: FactorProblem, layout: Layout, old: Tensor, new: Tensor) -> Tensor:
    """Mix old and new messages by the problem's damping."""
    if not problem.damping:
        return new
    return _normalised(problem, layout, problem.damping * old + (1 - problem.damping) * new)


def change(problem: FactorProblem, layout: Layout, old: Tensor, new: Tensor, relative: bool = False) -> Tensor:
    """Largest change of a log-message for each replica and graph [R, graphs]; absolute, or relative to its size."""
    step = Extended.split(new) - Extended.split(old)
    moved = step.finite.abs().masked_fill(step.infinities != 0, torch.inf)
    if relative:
        slot = layout.slot_of.expand_as(moved)
        count = int(layout.slot_of[-1]) + 1 if layout.num_messages else 0
        size = moved.new_ones(len(moved), count).scatter_reduce(-1, slot, Extended.split(new).finite.abs(), "amax")
        moved = moved / size.gather(-1, slot)
    still = moved.new_zeros(len(moved), problem.flat.num_graphs)
    return still.scatter_reduce(-1, layout.graph_of.expand_as(moved), moved, reduce="amax")


def first_messages(problem: FactorProblem, layout: Layout) -> Tensor:
    """Messages to start from: those given, or uniform ones."""
    messages = problem.start
    if messages is None:
        messages = problem.flat.unary.new_zeros(problem.flat.unary.shape[0], layout.num_messages)
    return _normalised(problem, layout, messages)


def _normalised(problem: FactorProblem, layout: Layout, messages: Tensor) -> Tensor:
    def each(alike: Alike) -> tuple[Tensor, ...]:
        return tuple(normalise(messages[:, place], problem.semiring) for place in alike.message)

    return layout.gathered([each(alike) for alike in layout.alike], problem.flat.unary)


def solve(problem: FactorProblem) -> FactorSolution:
    """Sweep until all graphs of all replicas have converged; each is then frozen, so that a batch equals its parts."""
    if problem.schedule != "synchronous":
        raise OptionError(
            f"propagate: schedule {problem.schedule!r} needs the compiled kernel for fields with factors. Use "
            "schedule='synchronous', or backend 'native' on a CPU with a C++ compiler."
        )
    layout = Layout.of(problem.flat)
    messages = first_messages(problem, layout)
    present = torch.bincount(layout.graph_of, minlength=problem.flat.num_graphs) > 0
    running = present.expand(len(messages), -1)
    residual = torch.where(running, torch.inf, 0.0).to(messages)
    sweeps = torch.zeros_like(residual, dtype=torch.long)
    for _ in range(problem.max_sweeps):
        new = damp(problem, layout, messages, send(problem, layout, messages))
        moved = change(problem, layout, messages.detach(), new.detach(), relative=True)
        residual = torch.where(running, moved, residual)
        messages = torch.where(running[:, layout.graph_of], new, messages)
        sweeps += running
        if problem.tolerance:
            running = running & (residual > problem.tolerance)
            if not bool(running.any()):
                break
    return FactorSolution(messages, residual, sweeps)


def factor_beliefs(problem: FactorProblem, alike: Alike, messages: Tensor, totals: Extended) -> Tensor:
    """Beliefs of some factors with tables, up to a constant for each [R, factors, states, ..., states]."""
    return table_total(factor_tables(problem, alike), cavities(alike, messages, totals))


def factor_partition(problem: FactorProblem, alike: Alike, messages: Tensor, totals: Extended) -> Tensor:
    """Log-sum over all labellings of the variables of some factors [R, factors]."""
    if alike.rule is None:
        total = factor_beliefs(problem, alike, messages, totals)
        return total.flatten(2).logsumexp(-1)
    around = cavities(alike, messages, totals)
    return rule_messages(alike.rule, factor_scores(problem, alike), around, "sum")[1]
