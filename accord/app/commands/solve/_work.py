"""The work of `accord solve`: read a model, solve it, write the result file, and summarise."""

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import torch
from rich.console import Console
from torch import Tensor

from accord._memory import available_memory
from accord.errors import ConvergenceWarning, InfeasibleError, OptionError, TooLargeError
from accord.field import PairwiseField
from accord.field.factors import FactorField
from accord.field.files import read_fg, read_uai, write_map, write_mar, write_pr
from accord.inference import Maximum, Schedule, Semiring, eliminate_beliefs, maximise, propagate
from accord.inference.exact import MAX_TABLE, MAX_TABLES

TASKS = {"map": ".MAP", "marginals": ".MAR", "partition": ".PR"}  # and the suffixes of their results
METHODS = ("auto", "exact", "propagate")
READERS: dict[str, Callable[..., PairwiseField | FactorField]] = {".uai": read_uai, ".fg": read_fg}
ROUND = 8  # a round of the search takes so many times as long as the one before; after each, the labels are written
SHORTEST = 0.5  # seconds of the first round
DAMPING, SWEEPS = 0.5, 1000  # the second try of messages that do not converge
EXACT = "exact, by elimination"


@dataclass(frozen=True)
class SolveOptions:
    """Options of `accord solve`; those of a method that is not used are ignored."""

    task: str = "map"
    method: str = "auto"
    budget: float = 10.0
    seed: int = 0
    damping: float | None = None
    schedule: str = "synchronous"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("--task", self.task, tuple(TASKS)),
            ("--method", self.method, METHODS),
            ("--schedule", self.schedule, get_args(Schedule)),
        ):
            if value not in known:
                raise OptionError(f"{name} {value!r} is unknown. Choose {', '.join(known)}.")


@dataclass(frozen=True)
class Solved:
    """What was found, for the summary."""

    model: Path
    size: str
    values: dict[str, Any]  # by name, as the json has them
    file: Path
    interrupted: bool = False


def solve_model(
    model: Path, evidence: Path | None, options: SolveOptions, out: Path | None, console: Console
) -> Solved:
    """Solve a model and write the result.

    Args:
        model: a .uai or .fg file, or one of them compressed.
        evidence: a file of known states.
        options: what is wanted, and how.
        out: file for the result; None: in the current folder, with the name of the model.
        console: for messages during the work.
    """
    name = model.name.removesuffix(".gz")
    reader = READERS.get(Path(name).suffix)
    if reader is None:
        known = ", ".join(f"{suffix}, {suffix}.gz" for suffix in READERS)
        raise OptionError(f"{model}: models are read from {known} files. Rename or convert the file.")
    file = Path(name + TASKS[options.task]) if out is None else out
    if file.is_dir():
        raise OptionError(f"{file}: is a folder. Give --out the name of a file.")
    file.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad path is refused early
    begun = time.monotonic()
    field = reader(model, evidence)
    size = describe(field)
    console.print(f"{model}: {size}", soft_wrap=True, markup=False)
    if options.task == "map" and options.method == "auto":
        values, interrupted = _search(field, options, file)
    else:
        values, interrupted = _by_beliefs(field, options, file, console), False
    values = {"model": str(model), "task": options.task, **values, "seconds": time.monotonic() - begun}
    return Solved(model, size, values | {"file": str(file)}, file, interrupted)


def describe(field: PairwiseField | FactorField) -> str:
    """The size of a model in words."""
    if isinstance(field, PairwiseField):
        low = high = field.num_states
        count, order = field.num_edges, 2
    else:
        low, high = int(field.states.min()), int(field.states.max())
        count, order = field.num_factors, max((group.order for group in field.groups), default=2)
    states = str(low) if low == high else f"{low} to {high}"
    return (
        f"{field.num_nodes} variables with {states} states, {count} tables of {'up to ' * (order > 2)}{order} variables"
    )


# The best labelling


def _search(field: PairwiseField | FactorField, options: SolveOptions, file: Path) -> tuple[dict[str, Any], bool]:
    """Search in rounds, and write the best labels after each; also tells whether it was interrupted."""
    best: Maximum | None = None
    interrupted = False
    for number, seconds in enumerate(_rounds(options.budget)):
        try:
            found = maximise(field, budget=seconds, seed=options.seed + number)
        except KeyboardInterrupt:
            if best is None or not _has_labels(best):
                raise
            interrupted = True
            break
        best = found if best is None else _better(best, found)
        if _has_labels(best):
            write_map(best.labels, file)
        if bool(best.optimal):
            break
    assert best is not None  # there is at least one round
    if not _has_labels(best):
        raise InfeasibleError(
            f"No labelling without forbidden states was found in {options.budget:g} s, though there may be one. Give "
            "the search more time with --budget.",
            proved=False,
        )
    values = {
        "score": float(best.score),
        "score_log10": float(best.score) / math.log(10),
        "bound": float(best.bound),
        "gap": float(best.gap),
        "optimal": bool(best.optimal),
        "method": str(best.method.item()),
    }
    return values, interrupted


def _rounds(budget: float) -> Iterator[float]:
    """Seconds of each round: all but the last are short, so that little is lost if they were in vain."""
    rounds = [budget]
    while rounds[0] / ROUND >= SHORTEST:
        whole = rounds.pop(0)
        rounds[:0] = [whole / ROUND, whole - whole / ROUND]
    return iter(rounds)


def _has_labels(found: Maximum) -> bool:
    return bool((found.labels >= 0).all())


def _better(one: Maximum, two: Maximum) -> Maximum:
    """The better labels of two rounds with the better bound."""
    best = two if bool(two.optimal) or float(two.score) > float(one.score) else one
    bound = torch.maximum(torch.minimum(one.bound, two.bound), best.score)
    return Maximum(best.labels, best.score, bound, best.optimal | (bound == best.score), best.method, best.seconds)


# Marginals, the partition function, and labels decoded from beliefs


def _by_beliefs(
    field: PairwiseField | FactorField, options: SolveOptions, file: Path, console: Console
) -> dict[str, Any]:
    semiring: Semiring = "max" if options.task == "map" else "sum"
    beliefs, how = _solve(field, semiring, options, console)
    if options.task == "map":
        labels = beliefs.decode()
        write_map(labels, file)
        score = float(field.score(labels))
        optimal = how == EXACT
        return {"score": score, "score_log10": score / math.log(10), "optimal": optimal, "method": how}
    log_partition = float(beliefs.log_partition)
    if options.task == "marginals":
        write_mar(_marginals(field, beliefs.node), file)
    else:
        write_pr(log_partition / math.log(10), file)
    return {
        "log_partition": log_partition,
        "log_partition_log10": log_partition / math.log(10),
        "exact": how == EXACT,
        "converged": bool(beliefs.converged.all()),
        "method": how,
    }


def _largest_table() -> int:
    """Most entries of one table of elimination: all tables together take at most half of the free memory."""
    free = available_memory(torch.device("cpu")) or 0
    return max(MAX_TABLE, free // (2 * 8 * MAX_TABLES))


def _solve(
    field: PairwiseField | FactorField, semiring: Semiring, options: SolveOptions, console: Console
) -> tuple[Any, str]:
    """Beliefs, and how they were found."""
    if options.method != "propagate":
        try:
            return eliminate_beliefs(field, semiring, _largest_table()), EXACT
        except TooLargeError as error:
            if options.method == "exact":
                raise TooLargeError(
                    "The model is too wide for exact elimination: a table would have more than "
                    f"{_largest_table():,} entries. Leave out --method exact."
                ) from error
            console.print(
                "The model is too wide for exact elimination. Belief propagation approximates it.", soft_wrap=True
            )
    schedule = cast(Schedule, options.schedule)
    damping = 0.0 if options.damping is None else options.damping
    beliefs: Any = propagate(field, semiring, damping=damping, schedule=schedule)
    if options.damping is None and not bool(beliefs.converged.all()):
        damping = DAMPING
        beliefs = propagate(field, semiring, damping=damping, max_sweeps=SWEEPS, schedule=schedule)
    if not bool(beliefs.converged.all()):
        warnings.warn(
            f"Belief propagation did not converge in {int(beliefs.sweeps.max())} sweeps (last change of a log-message "
            f"{float(beliefs.residual.max()):.1e}); the result is rough. Try --damping 0.9 or --schedule residual.",
            ConvergenceWarning,
            stacklevel=2,
        )
    damped = f", damping {damping:g}" if damping else ""
    return beliefs, f"belief propagation, an approximation ({int(beliefs.sweeps.max())} sweeps{damped})"


def _marginals(field: PairwiseField | FactorField, node: Tensor) -> list[Tensor]:
    """The probabilities of each variable's own states."""
    probabilities = node.double().exp()
    if isinstance(field, PairwiseField):
        return list(probabilities)
    return [row[:count] for row, count in zip(probabilities, field.states.tolist(), strict=True)]


# The summary


def summary_lines(solved: Solved) -> Iterator[str]:
    """The summary for the terminal."""
    values = solved.values
    if "score" in values:
        yield f"{'score':<15}{values['score']:.6f} (log10: {values['score_log10']:.6f})"
        if "bound" in values:
            yield f"{'bound':<15}{values['bound']:.6f}"
            yield f"{'gap':<15}{values['gap']:.6g}"
        proved = "bound" in values or values["optimal"]
        yield f"{'optimal':<15}{'yes, proved' if values['optimal'] else 'not proved' if proved else 'unknown'}"
    else:
        yield f"{'log partition':<15}{values['log_partition']:.6f} (log10: {values['log_partition_log10']:.6f})"
        if not values["exact"]:
            yield f"{'converged':<15}{'yes' if values['converged'] else 'no'}"
    yield f"{'method':<15}{values['method']}"
    yield f"{'seconds':<15}{values['seconds']:.2f}"


def summary_text(solved: Solved) -> str:
    """The summary as json; null stands for what is infinite."""
    finite = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in solved.values.items()
    }
    return json.dumps(finite, indent=1, allow_nan=False) + "\n"
