"""`propagate_triangles`: sweeps until the beliefs of nodes, edges and triangles agree."""

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import InputTypeError
from accord.field.triangles import TriangleField
from accord.graphs._checks import check_room
from accord.inference._beliefs import check_feasible
from accord.inference._options import DEFAULT_SWEEPS, DEFAULT_TOLERANCE, PropagationOptions, Semiring
from accord.inference._semiring import REDUCE
from accord.inference.triangles._beliefs import TriangleBeliefs
from accord.inference.triangles._regions import SHOWN, Messages, Regions

COPIES = 6  # of all messages and triangle beliefs, that a sweep holds at once


@eager
@torch.no_grad()
def propagate_triangles(
    field: TriangleField,
    semiring: Semiring = "sum",
    damping: float = 0.5,
    max_sweeps: int | None = None,
    tolerance: float | None = None,
) -> TriangleBeliefs:
    """Beliefs of a field with triangles, by generalised belief propagation.

    Exact at convergence where the graph is chordal and has no four nodes linked to each other (a junction tree of
    triangles). Consistent pseudomarginals that were made into potentials (`TrianglePseudomarginals`) are a fixed point
    on any graph. No gradient is recorded.

    Args:
        field: the field; replicas and batches as for `propagate`.
        semiring: "sum" for marginals, "max" for max-marginals.
        damping: weight of the old log-messages. Without it, messages may alternate where triangles share edges.
        max_sweeps: when to stop; None means 200.
        tolerance: largest change of a log-message, relative to max(1, its largest magnitude), at which a graph stops;
            0 runs all sweeps; None depends on the precision of the field.
    """
    if not isinstance(field, TriangleField):
        raise InputTypeError(
            f"propagate_triangles: got a {type(field).__name__}, not a TriangleField. Use propagate for other fields."
        )
    options = PropagationOptions(semiring=semiring, damping=damping, max_sweeps=max_sweeps, tolerance=tolerance)
    field.check_changes("propagate_triangles")
    numbers = field.replicas.numel() * field.num_triangles * field.num_states**2 * (3 + field.num_states)
    check_room("propagate_triangles", "messages of triangles", 8 * COPIES * numbers, field.node.device)
    check_feasible(field.node)
    sweeps = DEFAULT_SWEEPS if options.max_sweeps is None else options.max_sweeps
    limit = DEFAULT_TOLERANCE[field.node.dtype] if options.tolerance is None else float(options.tolerance)
    regions = Regions(field)
    messages, residual, made = _run(regions, field, options.semiring, float(options.damping), sweeps, limit)
    shape = (*field.replicas, field.num_graphs)
    return TriangleBeliefs(
        field=field,
        semiring=options.semiring,
        regions=regions,
        messages=messages,
        converged=(residual <= limit).reshape(shape),
        sweeps=made.reshape(shape),
        residual=residual.to(field.node.dtype).reshape(shape),
    )


def _run(
    regions: Regions, field: TriangleField, semiring: Semiring, damping: float, max_sweeps: int, tolerance: float
) -> tuple[Messages, Tensor, Tensor]:
    """Messages after the last sweep, and for each replica and graph the last change and how many sweeps were made."""
    messages, reduce = regions.silence(), REDUCE[semiring]
    of_triangle, of_edge = field.graph[regions.corner[:, 0]], field.graph[regions.ends[:, 0]]
    residual = regions.node.new_full((len(regions.node), field.num_graphs), torch.inf)
    made = torch.zeros_like(residual, dtype=torch.long)
    active = torch.ones_like(residual, dtype=torch.bool)  # graphs that have not converged
    for _ in range(max_sweeps):
        new = messages.damped(regions.send_sides(messages, reduce), None, None, damping)
        new = new.damped(None, *regions.send_nodes(new, reduce), damping)
        change, size, kept = torch.zeros_like(residual), torch.ones_like(residual), []
        for before, after, graph in zip(messages.parts, new.parts, (of_triangle, of_triangle, of_edge), strict=True):
            _raise(change, after.clamp(min=SHOWN) - before.clamp(min=SHOWN), graph)
            _raise(size, after.clamp(min=SHOWN), graph)
            mine = active[:, graph].reshape(*before.shape[:2], *(1,) * (before.dim() - 2))
            kept.append(torch.where(mine, after, before))
        messages = Messages(*kept)
        residual = torch.where(active, change / size, residual)
        made += active
        active = active & (residual > tolerance)
        if not bool(active.any()):
            break
    return messages, residual, made


def _raise(largest: Tensor, values: Tensor, graph: Tensor) -> None:
    """Raise the largest magnitude of each graph [R, graphs] to that of values [R, regions, ...]."""
    if values.numel():
        largest.scatter_reduce_(1, graph.expand(len(values), -1), values.abs().flatten(2).amax(2), "amax")
