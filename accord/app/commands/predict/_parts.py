"""`accord predict --parts`: one graph over several processes, each of which reads, labels and writes its own part.

Processes are those of a launcher such as torchrun, or started here, on this machine.
"""

import json
import os
import tempfile
import warnings
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, start_processes

import accord.errors
from accord._files import fingerprint, locked, replacing
from accord._launched import launched_processes
from accord.app.commands.predict._identity import check_job, model_identity
from accord.app.console import counted
from accord.app.runs import Run
from accord.distributed import read_parts
from accord.distributed._together import gather, place, together
from accord.distributed.tables import EDGE_FOLDER, NODE_FOLDER, open_table
from accord.errors import AccordError, OptionError, ProcessLostError
from accord.estimator import NodeClassifier, PartLabels, check_parts, columns_of_model, predict_part


@dataclass(frozen=True)
class PartsJob:
    """What is to be labelled by what, and where the labels go."""

    model: Path
    folder: Path
    out: Path
    marginals: bool = False
    precision: float | None = None

    def file(self, rank: int) -> Path:
        """The results of a process."""
        return self.out / f"part-{rank:05d}.parquet"

    def identity(self, count: int) -> dict[str, Any]:
        """Everything on which the results depend."""
        files = [file for name in (NODE_FOLDER, EDGE_FOLDER) for file in sorted((self.folder / name).glob("*"))]
        source = (f"{file.parent.name}/{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
        return {
            "model": model_identity(self.model),
            "source": fingerprint(source),
            "options": {name: value for name, value in asdict(self).items() if name in ("marginals", "precision")},
            "parts": count,
        }


def is_launched() -> bool:
    """Whether a launcher has started several processes for this command; some platforms start every command as one."""
    return (launched_processes() or 1) > 1


def predict_parts(
    run: Run,
    folder: Path,
    out: Path | None,
    parts: int | None = None,
    marginals: bool = False,
    precision: float | None = None,
) -> str | None:
    """Label a graph in a folder of Parquet files (`accord.distributed.read_parts`) into another such folder.

    Files of results appear whole or not at all. A job whose files are all there is not done again.

    Args:
        run: a finished run, or the folder of a saved model.
        folder: the graph.
        out: the folder of results, one file for each process: id, task (if there are several), label, and probability
            or the probability of every state.
        parts: how many processes to start; where a launcher has started them, None or their number.
        marginals: give the probability of every state, not only of the label.
        precision: leave labels empty where this precision was not reached on validation data; None labels every node.

    Returns:
        What was done, in words; None in all processes of a launcher but the first.
    """
    if out is None or out.suffix or out.is_file():
        raise OptionError("--parts writes a folder of Parquet files. Give one with --out.")
    job = PartsJob(run.path.resolve(), folder.resolve(), out.resolve(), marginals, precision)
    if is_launched():
        return _join_launched(job, parts)
    if parts is None or parts < 1:
        raise OptionError(f"--parts {parts}: give a number of processes, at least 1.")
    check_parts(NodeClassifier.load(job.model))  # before processes are started
    for name in (NODE_FOLDER, EDGE_FOLDER):
        open_table(job.folder / name, parts)
    with locked(job.out):
        if _is_done(job, parts):
            return f"{out}: has all labels already"
        rows = [_label(job)] if parts == 1 else _start(job, parts)
    return _said(sum(rows), parts, out)


def _join_launched(job: PartsJob, parts: int | None) -> str | None:
    """This process's share of the work, in the group that a launcher has prepared."""
    dist.init_process_group("gloo")  # exchanges go through the host, also between GPUs
    try:
        rank, count = place()
        if parts not in (None, count):
            raise OptionError(f"--parts {parts}: the launcher has started {count} processes. Leave out --parts.")
        with locked(job.out):
            with together():
                done = rank == 0 and _is_done(job, count)
            if gather(done)[0]:
                return f"{job.out}: has all labels already" if rank == 0 else None
            rows = sum(gather(_label(job)))
        return _said(rows, count, job.out) if rank == 0 else None
    finally:
        dist.destroy_process_group()


def _said(rows: int, count: int, out: Path) -> str:
    return f"{counted(rows, 'row')} in {counted(count, 'part')} written to {out}"


def _label(job: PartsJob) -> int:
    """Read, label and write this process's part; returns how many rows it has."""
    with together():
        model = NodeClassifier.load(job.model)
        check_parts(model)
    graph = read_parts(job.folder, columns_of_model(model))
    found = predict_part(model, graph, job.precision)
    rows = _write(found, model, job.file(graph.part.rank), job.marginals)
    gather(None)  # no process ends before all files are there
    return rows


def _write(found: PartLabels, model: NodeClassifier, path: Path, marginals: bool) -> int:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    names = arrow.array(list(model.label_names_ or map(str, range(model.shape_.num_states))))
    tasks = len(found.labels)
    labels, probabilities = found.labels.t().flatten(), found.probabilities.transpose(0, 1).flatten(0, 1)
    columns: dict[str, Any] = {"id": found.ids.repeat_interleave(tasks).numpy()}
    if tasks > 1:
        columns["task"] = [str(name) for name in model.task_names or range(tasks)] * len(found.ids)
    columns["label"] = names.take(arrow.array(labels.numpy(), mask=(labels < 0).numpy()))
    if marginals:
        columns |= {f"p({name})": probabilities[:, state].numpy() for state, name in enumerate(names.to_pylist())}
    else:
        own = probabilities.gather(1, labels.clamp_min(0)[:, None])[:, 0]
        columns["probability"] = arrow.array(own.numpy(), mask=(labels < 0).numpy())
    with replacing(path) as beside:
        parquet.write_table(arrow.table(columns), beside)
    return len(labels)


def _is_done(job: PartsJob, count: int) -> bool:
    """Whether all files of this very job are there; a folder of something else is refused."""
    check_job(job.out, job.identity(count))
    return all(job.file(rank).is_file() for rank in range(count))


def _start(job: PartsJob, count: int) -> list[int]:
    """Do the job in new processes of this machine; the rows that each wrote. Their errors and warnings become ours."""
    with tempfile.TemporaryDirectory() as meeting:
        failed: Exception | None = None
        try:
            start_processes(_work, (count, meeting, job), count, start_method="spawn")
        except (ProcessRaisedException, ProcessExitedException) as error:
            failed = error
        reports = [json.loads(file.read_text()) for file in sorted(Path(meeting).glob("*.json"))]
    for name, text in (entry for report in reports for entry in report["warnings"]):
        warnings.warn(text, getattr(accord.errors, name), stacklevel=3)
    for report in reports:
        if report["error"]:
            name, text = report["error"]
            raise getattr(accord.errors, name)(text)
    if failed is not None:
        reason = str(failed).strip().splitlines()[-1]
        raise ProcessLostError(
            f"a process has failed ({reason}). Run the same command again once the cause is removed."
        )
    return [report["rows"] for report in reports]


def _work(rank: int, count: int, meeting: str, job: PartsJob) -> None:
    """A process that `_start` starts: does its part and leaves a report."""
    torch.set_num_threads(max((os.cpu_count() or 1) // count, 1))
    dist.init_process_group("gloo", init_method=f"file://{meeting}/meeting", rank=rank, world_size=count)
    report: dict[str, Any] = {"rows": 0, "warnings": [], "error": None}
    with warnings.catch_warnings(record=True) as caught:
        try:
            report["rows"] = _label(job)
        except AccordError as error:
            report["error"] = [type(error).__name__, str(error)]
    own = [one for one in caught if one.category.__module__ == accord.errors.__name__]
    report["warnings"] = [[one.category.__name__, str(one.message)] for one in own]
    (Path(meeting) / f"{rank:05d}.json").write_text(json.dumps(report))
    dist.destroy_process_group()
