"""Labels of many graphs: blocks of them, labelled by the workers of an engine, each block a file of its own.

A block's file appears whole or not at all, under the name of the block's range. So a job that was stopped goes on with
the blocks that have no file yet, a block that two workers labelled counts once, and no worker needs to know of others.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from accord._files import fingerprint, locked
from accord.app.commands.predict._identity import check_job, mapping_identity, model_identity
from accord.app.commands.predict._labels import Wanted, label_graphs
from accord.app.commands.predict._tables import write_block
from accord.app.console import counted
from accord.app.runs import Run
from accord.datasets import GraphBlock, TableMapping, find_mapping, graph_blocks, read_block
from accord.distributed.engines import Engine
from accord.errors import OptionError, WorkerError
from accord.estimator import NodeClassifier

SUFFIX = ".parquet"
BLOCK_GRAPHS = 1000
SHOWN_EVERY = 2.0  # seconds between lines of progress


@dataclass(frozen=True)
class JobSummary:
    """What a job did: blocks that were labelled now, with their graphs and rows, and blocks that were there before."""

    blocks: int
    graphs: int
    rows: int
    before: int
    seconds: float


def predict_blocks(
    run: Run,
    path: Path,
    out: Path,
    engine: Engine,
    wanted: Wanted,
    size: int = BLOCK_GRAPHS,
    mapping: TableMapping | None = None,
    console: Console | None = None,
) -> JobSummary:
    """Label the graphs at a path, block by block, into a folder; a job that was stopped is continued.

    Args:
        run: a finished run, or the folder of a saved model.
        path: a folder of graphs, or a Parquet file of many graphs; or a folder of these.
        out: the folder of results: one Parquet file for each block, with the columns of `predict_graphs` and always
            `graph`. All machines of the engine must find it, and the data and the run, under the same path.
        engine: where blocks are labelled.
        wanted: what is asked about every graph.
        size: graphs of a block.
        mapping: which tables and columns hold what; None looks for a mapping file.
        console: shows progress; None for none.
    """
    if out.is_file() or out.suffix:
        raise OptionError(f"--out {out}: an engine writes a folder of Parquet files. Give the name of a folder.")
    mapping = mapping or find_mapping(path)
    blocks, began = graph_blocks(path, size, mapping), time.perf_counter()
    if wanted.given.known is not None and not wanted.given.reads_labels:
        raise OptionError("--known FILE is for single tables. With an engine, graphs may carry known labels (labels).")
    with locked(out):
        check_job(out, _identity(run, blocks, wanted, size, mapping))
        todo = [block for block in blocks if not _file(out, block).exists()]
        prepare = partial(_prepare, run.path.resolve(), out.resolve(), wanted, mapping, engine.has_gpus)
        graphs = rows = finished = 0
        shown = time.perf_counter()
        for block, sizes in engine.map_prepared(prepare, todo):
            if not _file(out, block).exists():
                raise WorkerError(
                    f"{out}: block {block.name} was labelled, but its file is not here. Put the folder where all "
                    "machines of the cluster find it under the same path."
                )
            graphs, rows, finished = graphs + sizes[0], rows + sizes[1], finished + 1
            if console is not None and (time.perf_counter() - shown > SHOWN_EVERY or finished == len(todo)):
                shown = time.perf_counter()
                done, rate = len(blocks) - len(todo) + finished, f"{graphs / (shown - began):,.0f} graphs a second"
                console.print(f"{done} of {counted(len(blocks), 'block')}, {rate}", highlight=False)
    return JobSummary(finished, graphs, rows, len(blocks) - len(todo), time.perf_counter() - began)


def _prepare(
    run: Path, out: Path, wanted: Wanted, mapping: TableMapping | None, on_gpu: bool
) -> Callable[[GraphBlock], tuple[int, int]]:
    """Load the model, once in each worker."""
    model = NodeClassifier.load(run, accelerator="auto" if on_gpu else "cpu")
    return partial(_label_block, model, out, wanted, mapping)


def _label_block(
    model: NodeClassifier, out: Path, wanted: Wanted, mapping: TableMapping | None, block: GraphBlock
) -> tuple[int, int]:
    """Label a block and write its file; returns how many graphs and rows it has."""
    path, with_labels = _file(out, block), wanted.given.reads_labels
    names = model.label_names_ if with_labels else None
    graphs = read_block(block, names, with_labels, mapping, model.columns_)
    if path.exists():  # another worker wrote it and died before it could say so
        return len(graphs), int(import_module("pyarrow.parquet").read_metadata(path).num_rows)
    place = block.pieces[0].path if len(block.pieces) == 1 else block.pieces[0].path.parent
    places = [place / graph.graph_name for graph in graphs]
    columns, _ = label_graphs(model, graphs, wanted, (), places, named=True)
    write_block(columns, path)
    return len(graphs), len(columns["node"])


def _file(out: Path, block: GraphBlock) -> Path:
    return out / f"{block.name}{SUFFIX}"


def _identity(
    run: Run, blocks: list[GraphBlock], wanted: Wanted, size: int, mapping: TableMapping | None
) -> dict[str, Any]:
    """Everything on which the results depend."""
    return {
        "model": model_identity(run.path),
        "options": json.loads(json.dumps(asdict(wanted))),
        "block_graphs": size,
        "mapping": mapping_identity(mapping),
        "source": fingerprint(_described(blocks)),
    }


def _described(blocks: list[GraphBlock]) -> Iterator[str]:
    """Name, size and time of every file of the source, in order."""
    last: Path | None = None
    for piece in (piece for block in blocks for piece in block.pieces):
        if piece.path == last:
            continue
        last = piece.path
        files = [piece.path] if piece.path.is_file() else sorted(one for one in piece.path.iterdir() if one.is_file())
        for file in files:
            status = file.stat()
            yield f"{file.name} {status.st_size} {status.st_mtime_ns}"
