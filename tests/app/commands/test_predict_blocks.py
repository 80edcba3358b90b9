"""`accord predict --engine`: the same labels as one table, whoever works and whoever dies."""

import csv
import os
import shutil
import signal
import time
from threading import Event, Thread

import pyarrow.parquet as parquet
import pytest
from support.command_line import NAMES, call, make_graph, refused
from support.matrix import matrix

from accord.app.commands.predict import Wanted, predict_blocks
from accord.app.runs import open_model
from accord.datasets import write_graphs
from accord.distributed.engines import LocalEngine, RayEngine

GRAPHS = 10_000
SIZE = 500  # graphs of a block


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """10,000 small graphs in two Parquet files; blocks cross the border of the files."""
    folder = tmp_path_factory.mktemp("many")
    graphs = [make_graph(number, 3 + number % 3, with_labels=False) for number in range(GRAPHS)]
    for number, graph in enumerate(graphs):
        graph.graph_name = f"g{number:05d}"
    write_graphs(graphs[:3700], folder / "a.parquet")
    write_graphs(graphs[3700:], folder / "b.parquet")
    return folder


def label(trained, source, out, engine):
    return predict_blocks(open_model(trained), source, out, engine, Wanted(), SIZE)


@pytest.fixture(scope="module")
def local_folder(trained, many, tmp_path_factory):
    out = tmp_path_factory.mktemp("local")
    done = label(trained, many, out, LocalEngine())
    assert (done.graphs, done.blocks, done.before) == (GRAPHS, GRAPHS // SIZE, 0)
    return out


@pytest.fixture(scope="module")
def local(local_folder):
    return rows(local_folder)


def rows(out):
    """All rows of a folder, in the order of its blocks."""
    return [row for file in sorted(out.glob("*.parquet")) for row in parquet.read_table(file).to_pylist()]


def same(found, wanted):
    """Equal labels; probabilities as far as the number of threads does not change them."""
    plain = [{name: value for name, value in row.items() if name != "probability"} for row in found]
    return plain == [{name: value for name, value in row.items() if name != "probability"} for row in wanted] and all(
        abs(mine["probability"] - theirs["probability"]) < 1e-5 for mine, theirs in zip(found, wanted, strict=True)
    )


def test_blocks_hold_what_one_table_holds(trained, many, local, tmp_path):
    out = tmp_path / "labels.csv"
    assert call("predict", trained, many, "--out", out).exit_code == 0
    with out.open() as file:
        table = [row | {"probability": float(row["probability"])} for row in csv.DictReader(file)]
    assert len({row["graph"] for row in local}) == GRAPHS
    assert same(local, table)


class NotedEngine(RayEngine):
    """Its workers note their process ids in a folder, so that a test can kill one of them and no other process.

    None begins before all have come, so each has a share of the work.
    """

    def __init__(self, workers, notes):
        super().__init__(workers)
        self.notes = notes

    def map_prepared(self, prepare, tasks):
        notes, workers = self.notes, self.workers

        def noting():
            (notes / str(os.getpid())).touch()
            until = time.monotonic() + 120
            while len(list(notes.iterdir())) < workers and time.monotonic() < until:
                time.sleep(0.01)
            return prepare()

        return super().map_prepared(noting, tasks)


@pytest.mark.parametrize("workers", [2, matrix(4)])
def test_ray_labels_like_this_process_although_a_worker_is_killed(trained, many, local, tmp_path, ray_cluster, workers):
    notes, out = tmp_path / "workers", tmp_path / "labels"
    notes.mkdir()
    killed, stop = [], Event()

    def kill_one():
        """As soon as the first block is there, kill a worker."""
        while not stop.wait(0.01):
            if list(out.glob("*.parquet")):
                killed.append(min(int(note.name) for note in notes.iterdir()))
                os.kill(killed[0], signal.SIGKILL)
                return

    killer = Thread(target=kill_one)
    killer.start()
    try:
        with NotedEngine(workers, notes) as engine:
            done = label(trained, many, out, engine)
    finally:
        stop.set()
        killer.join()
    # There is a replacement too if anything was left to do when it came.
    assert killed and len(list(notes.iterdir())) in (workers, workers + 1)
    assert (done.graphs, done.blocks, done.rows) == (GRAPHS, GRAPHS // SIZE, len(local))
    assert same(rows(out), local)


def test_a_stopped_job_goes_on_where_it_stopped(trained, many, local_folder, local, tmp_path, ray_cluster):
    out = shutil.copytree(local_folder, tmp_path / "labels")
    files = sorted(out.glob("*.parquet"))
    written = {file: file.stat().st_mtime_ns for file in files[3:]}
    for file in files[:3]:
        file.unlink()
    (out / f".{files[0].name}.99999999").write_bytes(b"half a block")  # of a process that died
    with RayEngine(2) as engine:
        done = label(trained, many, out, engine)
    assert (done.blocks, done.graphs, done.before) == (3, 3 * SIZE, len(files) - 3)
    assert {file: file.stat().st_mtime_ns for file in files[3:]} == written
    assert same(rows(out), local)


def test_the_command_writes_blocks_and_goes_on(trained, data_folder, tmp_path, ray_cluster):
    source, out = data_folder / "test", tmp_path / "labels"
    asked = ("predict", trained, source, "--out", out, "--block-graphs", 4)
    first = call(*asked, "--engine", "ray", "--workers", 2)
    assert first.exit_code == 0 and "6 graphs, 42 rows in 2 blocks written" in first.stderr
    again = call(*asked, "--engine", "local")
    assert "0 graphs, 0 rows in 0 blocks written" in again.stderr and "2 blocks were there before" in again.stderr
    assert {row["label"] for row in rows(out)} <= set(NAMES)


@pytest.fixture
def tables(tmp_path):
    """Two graphs as tables, with a second column that could be the id of nodes."""
    source = tmp_path / "graphs"
    for name in ("g0", "g1"):
        (source / name).mkdir(parents=True)
        (source / name / "nodes.csv").write_text("id,key,x0,x1,x2\n0,1,1,0,0\n1,2,0,1,0\n2,0,0,0,1\n")
        (source / name / "edges.csv").write_text("source,target\n0,1\n")
    return source


def test_results_of_different_mappings_are_not_mixed(trained, tables, tmp_path):
    out, mapping = tmp_path / "labels", tmp_path / "other.toml"
    asked = ("predict", trained, tables, "--engine", "local", "--out", out)
    first = call(*asked)
    assert first.exit_code == 0, first.output
    mapping.write_text('[nodes]\nid = "key"\nignore = ["id"]\n')
    for other in (("--mapping", mapping), ("--map", "nodes.id=key")):
        assert "another job (mapping differ)" in refused(*asked, *other)
    (tables / "accord.toml").write_bytes(mapping.read_bytes())
    assert "another job (mapping differ)" in refused(*asked)
    (tables / "accord.toml").unlink()
    assert "2 graphs, 6 rows in 1 block written" in call(*asked[:-1], tmp_path / "mapped", "--mapping", mapping).stderr
    mapping.rename(tmp_path / "moved.toml")  # what it says counts, not where it is
    again = call(*asked[:-1], tmp_path / "mapped", "--mapping", tmp_path / "moved.toml")
    assert again.exit_code == 0 and "1 block was there before" in again.stderr


def test_a_damaged_note_of_the_job_is_refused(trained, tables, tmp_path):
    out = tmp_path / "labels"
    call("predict", trained, tables, "--engine", "local", "--out", out)
    (out / "_job.json").write_text("{")
    assert "_job.json: is damaged" in refused("predict", trained, tables, "--engine", "local", "--out", out)


def test_jobs_that_do_not_fit_are_refused(trained, data_folder, tmp_path):
    source, out = data_folder / "test", tmp_path / "labels"
    assert "Give one with --out" in refused("predict", trained, source, "--engine", "local")
    assert "need an engine" in refused("predict", trained, source, "--workers", 2)
    assert "Give the name of a folder" in refused(
        "predict", trained, source, "--engine", "local", "--out", tmp_path / "labels.csv"
    )
    assert call("predict", trained, source, "--engine", "local", "--out", out).exit_code == 0
    assert "another job (options differ)" in refused(
        "predict", trained, source, "--engine", "local", "--out", out, "--marginals"
    )
    assert "holds no job" in refused("predict", trained, source, "--engine", "local", "--out", data_folder)
