"""`maximise`: the best labelling of a field within a budget of time, with an upper bound."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import InfeasibleError, InputTypeError, OptionError
from accord.field import PairwiseField
from accord.field.factors import FactorField, FactorGroup, TableFactors
from accord.graphs._checks import check_number, check_room
from accord.inference.kernels.cpu._build import BuildError
from accord.inference.search import _native, _reference
from accord.inference.search._ragged import Components, Ragged, ragged
from accord.inference.search._start import decoding, first_labels

log = logging.getLogger("accord.inference")

GAP = 1e-9  # relative to the score: a smaller gap is rounding, and the labelling counts as optimal
LARGEST_SEED = 2**64 - 1
# By number, as in native/portfolio.hpp.
METHODS = ("", "elimination", "dual", "local search", "branch and bound", "arc consistency", "backtracking")
COPIES = 5  # of all potentials in float64, that a search holds at once


@dataclass(frozen=True, eq=False)
class Maximum:
    """A labelling, its score, and a bound that no labelling exceeds. One entry for each replica and graph.

    `method` tells what found the labels and what proved them best, e.g. "elimination" or "local search, branching".
    """

    labels: Tensor  # [*replicas, nodes]; -1 in graphs where no allowed labelling was found
    score: Tensor  # [*replicas, graphs], float64; -inf where no allowed labelling was found
    bound: Tensor  # [*replicas, graphs], float64: no labelling has a higher score
    optimal: Tensor  # [*replicas, graphs]: no labelling is better, up to rounding
    method: np.ndarray  # [*replicas, graphs] of str
    seconds: float  # that the call took

    @property
    def gap(self) -> Tensor:
        """[*replicas, graphs]: bound - score, never negative."""
        return self.bound - self.score


@eager
def maximise(field: PairwiseField | FactorField, budget: float = 1.0, seed: int = 0) -> Maximum:
    """The labelling with the highest score, as far as it is found in a given time, and an upper bound.

    Graphs of small treewidth are solved exactly by elimination. Others get a bound from sequential reweighted message
    passing (TRW-S, SRMP; Kolmogorov 2006, 2015) that holds whenever it is stopped, and labellings from its rounding,
    from simulated annealing, tabu search and exact moves of large blocks of nodes, and from the combination of such
    labellings; on large fields with factors the search begins with the best states of max-product beliefs. Where there
    is time for it, the search goes on from the labels that `propagate(field, semiring="max").decode()` returns, so that
    its score is never lower. Branch and bound on losses that are kept soft arc consistent (EDAC) closes the gap where
    it can. The call ends as soon as every graph is solved.

    Args:
        field: the field, pairwise or with factors over any few variables; every replica and every graph of a batch is
            solved on its own.
        budget: seconds for the whole call. At least one labelling is tried however small it is. Compiling the kernel,
            once on a machine, is not counted.
        seed: of the random choices. Calls that end before their budget return the same labels for the same seed.

    Raises:
        InfeasibleError: it is proved that some graph has no labelling without forbidden states and combinations.
            Where none was found and there may be one, its labels are -1 and its score is -inf.
    """
    budget, seed = _checked(field, budget, seed)
    solve = _solver()
    begun = time.monotonic()
    field.check_changes("maximise")
    check_room("maximise", "the potentials in float64", 8 * COPIES * _numbers(field), torch.device("cpu"))
    model = ragged(field)
    numbers = _numbers(field)
    labels = first_labels(field, numbers, budget) if isinstance(field, FactorField) else None
    start = None if labels is None else model.whole(labels)
    decoded = decoding(field, numbers, budget)
    found = solve(model, budget, seed, time.monotonic() - begun, start=start, later=decoded)
    return _gathered(field, model, found, begun)


def _numbers(field: PairwiseField | FactorField) -> int:
    """How many potentials the field has."""
    if isinstance(field, PairwiseField):
        each = field.num_states * (field.num_nodes + field.num_edges * field.num_states)
    else:
        each = field.num_states * field.num_nodes + sum(_entries(group) for group in field.groups)
    return field.replicas.numel() * each


def _entries(group: FactorGroup) -> int:
    """Entries of all tables of a group, with those of the chains of its rules."""
    if isinstance(group, TableFactors):
        return group.num_factors * group.shape.numel()
    return group.num_factors * group.order * group.transitions.numel() * len(group.transitions)


def _checked(field: PairwiseField | FactorField, budget: float, seed: int) -> tuple[float, int]:
    where = "maximise"
    if not isinstance(field, (PairwiseField, FactorField)):
        raise InputTypeError(
            f"{where}: got a {type(field).__name__}, not a PairwiseField or FactorField. Build one first."
        )
    budget = check_number(budget, "budget", where)
    if not 0 < budget < float("inf"):
        raise OptionError(f"{where}: budget is {budget}, but it is a positive number of seconds. Give e.g. 1.0.")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputTypeError(f"{where}: seed is a {type(seed).__name__}, not an int. Give e.g. 0.")
    if not 0 <= seed <= LARGEST_SEED:
        raise OptionError(f"{where}: seed is {seed}, but it must lie in 0 to 2**64 - 1.")
    return budget, seed


def _solver() -> Callable[..., Components]:
    try:
        _native.load()
    except BuildError as error:
        _warn(str(error))
        return _reference.solve
    return partial(_native.solve, threads=torch.get_num_threads())


@lru_cache(maxsize=1)
def _warn(reason: str) -> None:
    """Once in a process."""
    log.warning("maximise: the fast CPU kernel is not available, so the slower reference is used: %s.", reason)


def _gathered(field: PairwiseField | FactorField, model: Ragged, found: Components, begun: float) -> Maximum:
    """Results of components, summed over those of each replica and graph."""
    replicas, graphs = field.replicas.numel(), field.num_graphs
    group = (model.graph[None] + graphs * np.arange(replicas)[:, None]).reshape(-1)  # [replicas * nodes]
    count = replicas * graphs
    first = np.unique(found.component, return_index=True)[1]  # a node of each component
    owner = group[first]
    if found.infeasible.any():
        raise _infeasible(field, model, int(first[found.infeasible.argmax()]))
    # A labelling of some components is of no use without the others.
    missing = np.bincount(group, weights=found.labels < 0, minlength=count) > 0
    chosen = np.where(missing[group], -1, found.labels)
    score = model.scores(chosen, group, count)
    bound = np.bincount(owner, weights=found.bound, minlength=count) * model.factor
    proved = np.bincount(owner, weights=found.proof == 0, minlength=count) == 0
    optimal = ~missing & (proved | (bound - score <= GAP * np.abs(score)))
    # The same sum in another order: what is proved has no gap.
    bound = np.where(optimal, score, np.maximum(bound, score))
    shape = (*field.replicas, graphs)
    device = field.node.device
    return Maximum(
        labels=torch.from_numpy(model.own_labels(chosen)).reshape(*field.replicas, field.num_nodes).to(device),
        score=torch.from_numpy(score).reshape(shape).to(device),
        bound=torch.from_numpy(bound).reshape(shape).to(device),
        optimal=torch.from_numpy(optimal).reshape(shape).to(device),
        method=_methods(owner, found, count).reshape(shape),
        seconds=time.monotonic() - begun,
    )


def _methods(owner: np.ndarray, found: Components, count: int) -> np.ndarray:
    """What found the labels and what proved them, in words, for each replica and graph."""
    words = np.full(count, "", dtype=object)
    used = np.zeros((count, len(METHODS)), dtype=bool)
    used[owner, found.method] = used[owner, found.proof] = True
    for number, name in enumerate(METHODS):
        if number:
            words[used[:, number]] += np.where(words[used[:, number]] == "", name, ", " + name)
    return words


def _infeasible(field: PairwiseField | FactorField, model: Ragged, node: int) -> InfeasibleError:
    """The error for a contradiction in the component of a node."""
    replica, place = divmod(node, len(model.graph))
    which = f"graph {model.graph[place]}" + (f" of replica {replica}" if field.replicas else "")
    component = model.components()
    inside = np.nonzero(component == component[node])[0] % len(model.graph)
    nodes = inside[inside < model.num_own]
    return InfeasibleError(
        f"maximise: {which} has no labelling without forbidden states or combinations; this is proved. The "
        f"contradiction is among the {len(nodes)} nodes connected to node {nodes[0]}. Relax a clamped label, a "
        "forbidden state or a forbidden combination there.",
        nodes.tolist(),
    )
