"""The plan: what is missing for the seeds and epochs asked for, most informative first, in pieces that fit a budget."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from accord.encoders import GCNII
from accord.errors import OptionError
from accord.experiments._paper import PPI_SETS
from accord.experiments.reproduction._cells import (
    ABLATION,
    CONVERGENCE,
    OVERLAP,
    PRESET_ORDER,
    RUN_TIME,
    SEARCH,
    STATISTICS,
    TRAINING,
    Block,
    Cell,
    is_in_figure_5,
    targets,
)
from accord.experiments.reproduction._recipes import cell_recipe
from accord.experiments.reproduction._records import Context, Record, recipe_code, same_recipe
from accord.experiments.reproduction._search import JUDGED, TESTED, best_draws, drawn_recipe, draws
from accord.experiments.reproduction._studies import GAME_EPOCHS, TIMED_EPOCHS
from accord.experiments.reproduction._training import Task
from accord.methods import Recipe

BLOCK_SECONDS = 300.0  # of a GPU, as estimated below: a task must end within 8 minutes, estimates may be off by half
# Milliseconds of an update of all 121 labels, both networks, on one H200 (benchmarks/gpu/learning_jobs.txt); GCNII
# counts its second weight, U-Net runs one label after another.
UPDATE_MS = {"gcn": 2.1, "sage": 3.4, "gat": 108.0, "gcnii": 145.0, "unet": 3600.0, "linear": 2.0}
CRF_SHARE = 0.25  # of an SPN's time in as many epochs: a CRF has no ablation
GAME_MS = 15.0  # an update's belief propagation, all labels
# A seed in 200 epochs on one H200 that other tasks share, several seeds side by side; half of it is the ablation.
CITATION_SECONDS = {"gcn": 7.0, "sage": 7.0, "linear": 4.0, "unet": 23.0, "gat": 9.0, "gcnii": 60.0}
NARROW, NARROW_SHARE = 256, 0.1  # GCNII of so many channels, beside one of 2,048
CPU_FACTOR = 40.0  # how much longer a CPU takes, until the store knows better
SEEDS_TOGETHER = 5
CHEAP = 8.0  # GPU seconds a seed; seeds of cheap cells run together on a CPU too


@dataclass(frozen=True)
class Asked:
    """What is asked for: cells, seeds (None for each cell's own) and epochs (None for each recipe's own)."""

    cells: Sequence[Cell]
    seeds: tuple[int, ...] | None = None
    epochs: int | None = None


def missing_tasks(asked: Asked, records: Iterable[Record], device: str) -> list[Task]:
    """The tasks that are not stored, in the order in which they are best run.

    Args:
        asked: what is asked for.
        records: those that count (`current_records`); each must be at least as long as asked for.
        device: "cuda" or "cpu".
    """
    records = list(records)
    stored, tested = _index(records), set(best_draws(records).values())
    found: list[tuple[tuple[float, ...], Task]] = []
    for cell in dict.fromkeys(asked.cells):
        epochs = own_epochs(cell)
        wanted = epochs if asked.epochs is None else min(epochs, asked.epochs)
        seeds = asked.seeds if asked.seeds is not None and len(cell.seeds) > 1 else cell.seeds
        if cell in tested:
            seeds = (JUDGED, *TESTED)
        for block in blocks(cell):
            fits = (block, (0, cell.num_labels))  # a record of all labels stands for every block
            # Figure 5 is drawn from the ablation, so a training that was stored without it is run again.
            keys = [cell.key] + ([replace(cell, experiment=ABLATION).key] if is_in_figure_5(cell) else [])
            todo = [
                seed
                for seed in seeds
                if not all(any(_is_done(stored.get((key, seed, one), ()), wanted) for one in fits) for key in keys)
            ]
            for wave, group in enumerate(_groups(todo, seeds_together(cell, device))):
                first = seeds.index(group[0])
                task = Task(cell, group, block, asked.epochs)
                found.append(((tier(cell), first // 5, _preset_rank(cell), gpu_seconds(cell), wave), task))
    return [task for _, task in sorted(found, key=lambda pair: pair[0])]


def _index(records: Iterable[Record]) -> dict[tuple[str, int, Block | None], list[Record]]:
    found: dict[tuple[str, int, Block | None], list[Record]] = {}
    for record in records:
        found.setdefault((record.cell.key, record.seed, record.block), []).append(record)
    return found


def _is_done(stored: Iterable[Record], epochs: int) -> bool:
    return any(record.epochs >= epochs for record in stored)


def current_records(records: Iterable[Record], contexts: Mapping[str, Context]) -> list[Record]:
    """Records of the recipes that cells have now; what was imported counts with whatever recipe it has."""
    known: dict[tuple[Cell, str, str], bool] = {}
    found = []
    for record in records:
        key = (record.cell, record.recipe, record.context)
        if key not in known:
            known[key] = _is_current(record, contexts.get(record.context))
        if known[key]:
            found.append(record)
    return found


def _is_current(record: Record, context: Context | None) -> bool:
    cell = record.cell
    if record.recipe == IMPORTED or cell.method == "-":
        return True
    if cell.experiment == ABLATION:  # of the networks of a training
        cell = replace(cell, experiment=TRAINING)
    try:
        recipe = _recipe(cell)
    except OptionError:
        return False  # no longer run
    if record.recipe == recipe_code(recipe):
        return True
    return context is not None and bool(context.recipe) and same_recipe(context.recipe, recipe)


def all_targets() -> dict[str, tuple[Cell, ...]]:
    """Everything that can be asked for by name: the paper's tables and figures, studies, and the fair search."""
    found = dict(targets())
    found["search"] = draws()
    found["all"] = (*found["all"], *found["search"])
    return found


IMPORTED = "imported"  # in place of a recipe's code


def tier(cell: Cell) -> int:
    """Tables 2 and 12, their CRFs, PPI-1 and 2, GNN and SPN on PPI-10 and PPI, then CRFs and variants, then figures."""
    if cell.experiment in (STATISTICS, OVERLAP):
        return 0
    if cell.experiment == SEARCH:
        return 7
    game = cell.method == "crf" or cell.variant == "refined"
    if cell.experiment != TRAINING:
        return 6
    if cell.data not in PPI_SETS:
        return 2 if game or cell.variant in ("constrained", "shared") else 1
    if game or cell.variant:
        return 5
    return 3 if cell.data in ("ppi-1", "ppi-2") else 4


def _preset_rank(cell: Cell) -> int:
    return PRESET_ORDER.index(cell.preset) if cell.preset in PRESET_ORDER else 0


def cell_code(cell: Cell) -> str:
    """The code of the recipe that a cell has now."""
    return recipe_code(None if cell.method == "-" else _recipe(cell))


def _recipe(cell: Cell) -> Recipe:
    return drawn_recipe(cell)[0] if cell.experiment == SEARCH else cell_recipe(cell)


def own_epochs(cell: Cell) -> int:
    """How long a cell is trained unless asked otherwise."""
    if cell.method == "-":
        return 0
    if cell.experiment in (CONVERGENCE, RUN_TIME):
        return GAME_EPOCHS if cell.experiment == CONVERGENCE else TIMED_EPOCHS
    return _recipe(cell).training.max_epochs


def gpu_seconds(cell: Cell) -> float:
    """A rough estimate of what one seed takes on one H200, all labels together."""
    if cell.method == "-":
        return 0.1
    recipe = _recipe(cell)
    epochs, encoder = recipe.training.max_epochs, cell.encoder.partition("+")[0]
    if cell.data not in PPI_SETS:
        narrow = isinstance(recipe.encoder, GCNII) and recipe.encoder.hidden <= NARROW
        base = CITATION_SECONDS[encoder] * (NARROW_SHARE if narrow else 1.0)
        if cell.method == "crf":
            return base * epochs / 200 * CRF_SHARE
        return base * epochs / 200 * (0.3 if cell.preset == "accord" else 1.0)
    graphs = int(cell.data.partition("-")[2])
    per_update = UPDATE_MS[encoder] * (0.65 if graphs == 1 else 1.0) * (0.5 if cell.method == "gnn" else 1.0)
    if cell.method == "crf":
        per_update += GAME_MS
    seconds = 1.2 * epochs * graphs * per_update / 1000
    if cell.variant == "refined":
        seconds += 300 * graphs * (per_update + GAME_MS) / 1000
    return seconds * (1.0 if cell.num_labels > 1 else 0.05)


def blocks(cell: Cell) -> list[Block | None]:
    """Blocks of labels, each short enough; None for cells with one label."""
    labels = cell.num_labels
    if labels == 1:
        return [None]
    count = min(labels, ceil(gpu_seconds(cell) / BLOCK_SECONDS))
    ends = [round(number * labels / count) for number in range(count + 1)]
    return list(zip(ends[:-1], ends[1:], strict=True))


def seeds_together(cell: Cell, device: str) -> int:
    """How many seeds are trained side by side; PPI has many labels side by side instead."""
    if cell.num_labels > 1 or cell.experiment != TRAINING:
        return 1
    if device == "cpu" and gpu_seconds(cell) > CHEAP:
        return 1
    return max(1, min(SEEDS_TOGETHER, int(BLOCK_SECONDS / gpu_seconds(cell))))


def _groups(seeds: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    for first in range(0, len(seeds), size):
        yield tuple(seeds[first : first + size])


def task_seconds(task: Task, records: Iterable[Record], device: str) -> float:
    """What a task will take here: as before on this kind of device if the store knows, otherwise a rough estimate.

    Args:
        task: the task.
        records: stored ones whose hardware is this device.
        device: "cuda" or "cpu".
    """
    share = 1.0 if task.epochs is None else min(1.0, task.epochs / max(own_epochs(task.cell), 1))
    known = [
        record.seconds
        for record in records
        if record.cell == task.cell and record.seconds is not None and record.block == task.block and record.epochs
    ]
    if known:
        return max(known) * len(task.seeds)
    whole = gpu_seconds(task.cell) * (1.0 if device == "cuda" else CPU_FACTOR)
    return whole * share * len(task.seeds) / len(blocks(task.cell))
