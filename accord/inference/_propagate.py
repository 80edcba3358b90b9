"""`propagate`: loopy belief propagation on a field."""

from typing import Literal, overload

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, InputTypeError, OptionError
from accord.field import PairwiseField
from accord.field._checks import LARGEST_POTENTIAL
from accord.field.factors import FactorField
from accord.graphs import Arcs
from accord.graphs._checks import check_number, check_numbers, check_room, check_tensor
from accord.inference._appearance import spanning_tree_probabilities
from accord.inference._beliefs import Beliefs, check_feasible
from accord.inference._options import DEFAULT_SWEEPS, DEFAULT_TOLERANCE, PropagationOptions, Schedule, Semiring
from accord.inference.factors._beliefs import FactorBeliefs
from accord.inference.factors._propagate import propagate_factors
from accord.inference.kernels import Problem, check_memory, choose_kernel


@overload
def propagate(
    field: PairwiseField,
    semiring: Semiring = ...,
    damping: float = ...,
    edge_appearance: float | Tensor | Literal["spanning"] = ...,
    max_sweeps: int | None = ...,
    tolerance: float | None = ...,
    backend: str = ...,
    start: Beliefs | Tensor | None = ...,
    schedule: Schedule = ...,
) -> Beliefs: ...


@overload
def propagate(
    field: FactorField,
    semiring: Semiring = ...,
    damping: float = ...,
    edge_appearance: float | Tensor | Literal["spanning"] = ...,
    max_sweeps: int | None = ...,
    tolerance: float | None = ...,
    backend: str = ...,
    start: FactorBeliefs | Tensor | None = ...,
    schedule: Schedule = ...,
) -> FactorBeliefs: ...


@eager
def propagate(
    field: PairwiseField | FactorField,
    semiring: Semiring = "sum",
    damping: float = 0.0,
    edge_appearance: float | Tensor | Literal["spanning"] = 1.0,
    max_sweeps: int | None = None,
    tolerance: float | None = None,
    backend: str = "auto",
    start: Beliefs | FactorBeliefs | Tensor | None = None,
    schedule: Schedule = "synchronous",
) -> Beliefs | FactorBeliefs:
    """Pass messages along every arc until they converge (Eq. 12 of the paper; Murphy, Weiss and Jordan 1999).

    Exact on forests. On loopy graphs it is an approximation and may not converge: see `converged`. Graphs and replicas
    that have converged are frozen, so a batch gives the same results as its graphs one by one.

    Args:
        field: the field to solve.
        semiring: "sum" for marginals, "max" for the best labelling.
        damping: message <- damping * old + (1 - damping) * new, on normalised log-messages.
        edge_appearance: tree-reweighted propagation (Wainwright et al. 2005): a number in (0, 1], a tensor
            [edges] or [*replicas, edges] of such numbers, or "spanning": the edge probabilities of the uniform spanning
            tree, with which the converged log-partition is an upper bound. 1 is plain propagation.
        max_sweeps: when to stop; by default 200, and on forests as many as the exact answer needs without damping.
        tolerance: a graph has converged when no log-message changes by more, relative to max(1, its largest finite
            magnitude); `residual` is that change. 0 runs all `max_sweeps`. By default 1e-5 in float32 and 1e-12 in
            float64.
        backend: "reference" (plain torch, any device), "native" (a CPU kernel, compiled at first use; needs a C++
            compiler), "triton" (fused GPU kernels, compiled at first use), or "auto", the fastest of them that can
            solve the problem. `beliefs.backend` names the one that was used.
        start: beliefs of an earlier run on the same graphs, or their messages, to continue from.
        schedule: "synchronous" (all messages at once), "sequential" (from the rim of each graph to its centre and back,
            each message computed from the newest others) or "residual" (largest pending change first). The last two
            need several times fewer sweeps and converge more often. They are compiled on CPUs; GPUs use the reference.
            A sweep is as many messages as there are arcs; with "residual", `residual` bounds the pending change of any
            message.

    Gradients reach the field, `edge_appearance` and `start`. Where a graph converged (and tolerance is not 0) they are
    those of the fixed point, in the memory of one sweep; elsewhere they are those of the sweeps that were run, in the
    memory of about sqrt(sweeps) sweeps. Only first derivatives are available. backend="reference" instead unrolls every
    sweep in autograd.
    """
    if not isinstance(field, (PairwiseField, FactorField)):
        raise InputTypeError(
            f"propagate: got a {type(field).__name__}, not a PairwiseField or a FactorField. Build one first."
        )
    options = PropagationOptions(
        semiring=semiring,
        damping=damping,
        edge_appearance=edge_appearance,
        max_sweeps=max_sweeps,
        tolerance=tolerance,
        schedule=schedule,
    )
    if isinstance(field, FactorField):
        return propagate_factors(field, options, backend, start)
    if isinstance(start, FactorBeliefs):
        raise InputTypeError("propagate: start holds beliefs of a field with factors. Give those of a PairwiseField.")
    field.check_changes("propagate")
    _check_results_fit(field)
    check_feasible(field.node)
    problem = _problem(field, options, start)
    name, kernel = choose_kernel(backend, problem)
    check_memory(name, problem)
    solution = kernel(problem)
    shape = (*field.replicas, field.num_graphs)
    beliefs = Beliefs(
        field=field,
        semiring=semiring,
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


def _check_results_fit(field: PairwiseField) -> None:
    """Refuse fields whose messages and beliefs alone exceed the memory, before anything is computed."""
    replicas, each = field.replicas.numel(), field.node.element_size()
    numbers = (2 * field.num_edges + field.num_nodes) * field.num_states
    graphs = field.num_graphs * (each + 9)  # residual, sweeps and whether it converged
    what = f"the beliefs of {replicas} replicas, {field.num_graphs} graphs and {field.num_nodes} nodes"
    check_room("propagate", what, replicas * (numbers * each + graphs), field.node.device)


def _problem(field: PairwiseField, options: PropagationOptions, start: Beliefs | Tensor | None) -> Problem:
    node, edge = field.expanded()
    sweeps = options.max_sweeps
    if sweeps is None:
        # After two passes over the longest path of a tree no message can change any more. A forest has fewer edges than
        # nodes, so most loopy graphs are recognised without peeling.
        forest = field.num_edges < field.num_nodes and field.peeling.is_forest
        sweeps = max(DEFAULT_SWEEPS, 2 * len(field.peeling.rounds) + 2 if forest else 0)
    appearance, weighted = _appearance(field, options.edge_appearance)
    return Problem(
        arcs=Arcs.along(field.edge_index),
        node=node,
        edge=edge,
        appearance=appearance,
        weighted=weighted,
        node_graph=field.graph,
        edge_graph=_edge_graph(field),
        num_graphs=field.num_graphs,
        semiring=options.semiring,
        damping=_damping(options.damping, node.dtype),
        max_sweeps=sweeps,
        tolerance=DEFAULT_TOLERANCE[node.dtype] if options.tolerance is None else float(options.tolerance),
        start=None if start is None else _start(field, start),
        schedule=options.schedule,
    )


def _damping(damping: float, dtype: torch.dtype) -> float:
    """The weight of old messages. Neither it nor that of new ones may round to 0: 0 times -inf would be NaN."""
    numbers = torch.finfo(dtype)
    return min(float(damping), 1 - numbers.eps / 2) if damping >= numbers.tiny else 0.0


def _edge_graph(field: PairwiseField) -> Tensor:
    """Which graph each edge belongs to [edges]; for a single graph, one 0 expanded."""
    if field.num_graphs == 1:
        return field.graph.new_zeros(1).expand(field.num_edges)
    try:
        return field.graph[field.edge_index[0]]
    except IndexError as error:  # a change that `check_changes` cannot see, e.g. through numpy
        raise FieldError(
            f"propagate: edge_index names nodes that do not exist ({error}). It was changed after the field was built: "
            "build a new field."
        ) from error


def _appearance(field: PairwiseField, choice: float | Tensor | str) -> tuple[Tensor, bool]:
    """Edge appearance probabilities as [R or 1, edges], and whether any may be less than 1."""
    like = field.edge
    if isinstance(choice, str):
        if choice != "spanning":
            raise OptionError(
                f"propagate: edge_appearance {choice!r} is unknown. Give a number in (0, 1], a tensor [edges] or "
                "'spanning'."
            )
        return spanning_tree_probabilities(field.edge_index, field.num_nodes).to(like)[None], True
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
        lowest = highest = torch.tensor(number, dtype=like.dtype, device="cpu").item()
        values = like.new_full((1,), lowest)
    if not (lowest > 0 and highest <= 1):
        raise OptionError(
            f"propagate: edge_appearance must lie in (0, 1], got values from {lowest} to {highest}. "
            "1 is plain propagation."
        )
    _check_quotients(field.edge.detach(), lowest)
    many = values.dim() > 1
    values = values.reshape(field.replicas.numel(), field.num_edges) if many else values.expand(1, field.num_edges)
    return values, lowest < 1


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
