"""Files on disk: writes are whole or absent, locks keep other processes out, checksums find damage."""

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from accord import _files
from accord._files import (
    LOCK_FILE,
    cache_folder,
    check_seal,
    file_checksum,
    is_leftover,
    locked,
    remove_leftovers,
    replacing,
    sealed,
    write_bytes,
    write_json,
    write_text,
)
from accord.errors import InputError

HOLD = "import sys; from pathlib import Path; from accord._files import locked\nwith locked(Path(sys.argv[1])):\n"


@pytest.fixture
def dead():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def holder(tmp_path):
    """A process that holds `tmp_path`."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"{HOLD}    print('held', flush=True); sys.stdin.read()", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_write_removes_what_a_killed_write_left(tmp_path, dead):
    alive = tmp_path / f".notes.json.{os.getppid()}"
    alive.mkdir()
    for name in (f".notes.json.{dead}", f".other.json.{dead}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".tmpAbCdEf").write_bytes(b"48 MB")
    (tmp_path / f".notes[1].csv.{dead}").write_text("of an older version, which used files")
    write_json(tmp_path / "notes.json", [1])
    write_text(tmp_path / "notes[1].csv", "a")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"notes.json", "notes[1].csv", alive.name, f".other.json.{dead}"}


def test_leftovers_of_a_whole_folder_are_removed_and_other_files_stay(tmp_path, dead):
    mine = [".notes.42", ".hidden", f".thesis.tex.{dead}", f"results.json.{dead}", f".run.json.{os.getppid()}"]
    for name in (*mine, f".model.safetensors.{dead}", f".metrics.csv.{os.getpid()}"):
        (tmp_path / name).touch()
    stage = tmp_path / "stage" / f".checkpoint.safetensors.{dead}"
    stage.mkdir(parents=True)
    (stage / "new").touch()
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*mine, "stage"])
    assert not stage.exists()
    assert is_leftover(stage) and is_leftover(tmp_path / LOCK_FILE) and not is_leftover(tmp_path / ".notes.42")


def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path):
    path = tmp_path / "notes.json"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # the system refuses longer files
    try:
        with pytest.raises(OSError, match="not written") as caught:
            write_bytes(path, b"x" * 200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG and caught.value.filename == str(path)
    assert path.read_text() == "old" and [entry.name for entry in tmp_path.iterdir()] == ["notes.json"]


def test_an_error_in_the_block_leaves_the_old_file(tmp_path):
    path = tmp_path / "notes.json"
    path.write_text("old")
    with pytest.raises(FileNotFoundError, match="absent.csv"), replacing(path) as beside:
        beside.write_text("new")
        (tmp_path / "absent.csv").read_text()
    assert path.read_text() == "old" and [entry.name for entry in tmp_path.iterdir()] == ["notes.json"]


def test_a_locked_folder_is_refused_by_name_and_process(tmp_path, holder):
    message = f"{tmp_path}: is in use by process {holder.pid}. Wait until it has ended"
    for _ in range(2):  # a refused attempt changes nothing
        with pytest.raises(InputError, match=message), locked(tmp_path):
            pass
    (tmp_path / LOCK_FILE).write_text("nonsense")
    with pytest.raises(InputError, match="is in use by another process"), locked(tmp_path):
        pass


def test_a_killed_holder_releases_the_folder(tmp_path, holder):
    holder.kill()
    holder.wait()
    with locked(tmp_path):
        assert (tmp_path / LOCK_FILE).read_text() == f"{os.getpid()}\n"


def test_a_thread_may_lock_a_folder_twice(tmp_path):
    with locked(tmp_path / "new"), locked(tmp_path / "." / "new"):
        attempt = subprocess.run([sys.executable, "-c", f"{HOLD}    pass", tmp_path / "new"], capture_output=True)
        assert b"is in use by process" in attempt.stderr
    with pytest.raises(KeyError), locked(tmp_path / "new"):
        raise KeyError
    subprocess.run([sys.executable, "-c", f"{HOLD}    pass", tmp_path / "new"], check=True)


def launched(monkeypatch, **numbers):
    """Let the environment be that of one of four processes of a launcher."""
    shared = {"LOCAL_RANK": 0, "WORLD_SIZE": 4, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
    for name, value in (shared | numbers).items():
        monkeypatch.setenv(name, str(value))


def test_further_processes_of_one_job_share_the_lock(tmp_path, holder, monkeypatch):
    launched(monkeypatch, RANK=1, LOCAL_RANK=0)
    with locked(tmp_path), locked(tmp_path / "new"):
        pass
    assert not (tmp_path / "new").exists()  # the first process makes it


@pytest.mark.parametrize(
    "numbers",
    [{"SLURM_PROCID": 1, "RANK": 0}, {"LOCAL_RANK": 3, "NODE_RANK": 1, "RANK": 0}],
    ids=["task 1 of SLURM", "third process of the second machine"],
)
def test_the_rank_alone_says_which_process_is_the_first(tmp_path, monkeypatch, numbers):
    launched(monkeypatch, **numbers)
    with locked(tmp_path / "new"):
        assert (tmp_path / "new" / LOCK_FILE).exists()


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID"])
def test_without_a_launcher_every_process_takes_the_lock(tmp_path, holder, monkeypatch, name):
    monkeypatch.setenv(name, "1")  # such as a task of srun, which is a job of its own
    with locked(tmp_path / "new"):
        assert (tmp_path / "new" / LOCK_FILE).exists()
    with pytest.raises(InputError, match="is in use"), locked(tmp_path):
        pass


def test_a_checksum_finds_changed_values():
    values = sealed({"b": [1, 2.5], "a": {"c": None}})
    path = Path("notes.json")
    check_seal(json.loads(json.dumps(values)), path)
    check_seal(dict(reversed(values.items())), path)  # the order of keys does not count
    check_seal({"a": 1}, path)  # older files have no checksum
    assert sealed(values) == values
    for broken in (values | {"b": [1, 2.25]}, values | {"more": 1}, values | {"sha256": None}):
        with pytest.raises(InputError, match="notes.json: is damaged: its content does not match its checksum"):
            check_seal(broken, path)


def test_checksums_of_files_are_those_of_sha256sum(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "CHUNK", 2)
    (tmp_path / "abc").write_text("abc")
    assert file_checksum(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_the_cache_needs_no_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "accord"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "accord"

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_folder() == tmp_path / f"accord-{os.getuid()}"
