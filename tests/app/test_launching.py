"""`accord fit` in several processes: one writer, one result, and no process that waits for another that has failed."""

import os
import socket
import subprocess
import sys

import pytest
import torch
from learning.process_cases import start_processes
from safetensors.torch import load_file
from support.command_line import QUICK, call
from support.matrix import matrix

from accord._launched import NEEDED, PORTS, free_port
from accord.app import launching
from accord.app.settings import FitSettings
from accord.errors import AccordError, OptionError

TWO = FitSettings(devices=2)


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in NEEDED:
        monkeypatch.delenv(name, raising=False)


def accord_command(*arguments):
    return [sys.executable, "-m", "accord", *map(str, arguments)]


def run_accord(*arguments):
    """What one command does."""
    return finished([start(accord_command(*arguments))])


def run_on_two_machines(*arguments):
    """What torchrun does with one process on each of two machines, which are this one."""
    meeting = f"127.0.0.1:{free_port()}"
    machines = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", meeting]
    command = [sys.executable, "-m", "torch.distributed.run", *machines, "-m", "--", "accord", *map(str, arguments)]
    return finished([start(command), start(command)])


def start(command):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finished(processes):
    """The largest exit code, and all that was written."""
    wrote = [process.communicate(timeout=240) for process in processes]
    out, err = ("".join(texts) for texts in zip(*wrote, strict=True))
    code = max((process.returncode for process in processes), key=abs)
    return subprocess.CompletedProcess([], code, out, err)


def files_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("run", "more"),
    [(run_accord, ("--devices", 2)), matrix(run_on_two_machines, ("--devices", 1, "--nodes", 2))],
    ids=["--devices 2", "torchrun of two machines"],
)
def test_two_processes_write_the_run_of_one(trained, data_folder, tmp_path, run, more):
    result = run("fit", data_folder, "--run", tmp_path / "fruit", *QUICK, *more)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Report:") == 1 and result.stderr.count("training graphs") <= 1
    assert "distributed" not in result.stderr  # no announcements of libraries
    assert files_of(tmp_path / "fruit") == files_of(trained)
    one, two = (load_file(folder / "model.safetensors") for folder in (trained, tmp_path / "fruit"))
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-3, atol=1e-4)
    # A finished run is finished for any number of processes.
    assert "already finished" in call("fit", data_folder, "--run", tmp_path / "fruit", *QUICK).output


@pytest.fixture
def run_script(tmp_path, capfd, monkeypatch):
    """Launch a short script in two processes; returns the exit code, and what they wrote."""
    monkeypatch.setattr(launching, "PATIENCE", 0.5)

    def run(code):
        script = tmp_path / "script.py"
        script.write_text(f"import os, sys, time\nrank = int(os.environ['RANK'])\n{code}")
        return launching.launch(TWO, [sys.executable, str(script)]), *capfd.readouterr()

    return run


def test_only_the_first_process_writes_to_the_terminal(run_script):
    code, out, err = run_script("print('out', rank)\nprint('err', rank, file=sys.stderr)")
    assert (code, out, err) == (0, "out 0\n", "err 0\n")


def test_a_process_that_fails_ends_the_others_and_its_message_is_shown(run_script):
    code, _, err = run_script("if rank: sys.exit('Error: the disk is full')\ntime.sleep(600)")
    assert code == 1 and err == "Error: the disk is full\n"


def test_an_error_of_all_processes_is_shown_once(run_script):
    code, _, err = run_script("sys.stderr.write('Error: no such file\\n')\nsys.exit(2)")
    assert code == 2 and err == "Error: no such file\n"


def test_a_killed_process_is_named(run_script):
    code, _, err = run_script("if rank: os.kill(os.getpid(), 9)\ntime.sleep(600)")
    assert code == 137 and "process 1 was ended by SIGKILL" in err


LOSING = """
import os
from accord.errors import ProcessLostError
from accord.learning import TrainingOptions
from accord.learning.training import join_processes
processes = join_processes(TrainingOptions(devices=2, accelerator="cpu"))
if processes.is_first:
    try:
        processes.from_first("waiting")  # returns: the message is sent without an answer
        processes.sum_number(1)
    except ProcessLostError:
        os._exit(3)  # threads of torch that still wait may abort an orderly exit
"""


def test_a_process_notices_that_another_has_gone():
    first, second = start_processes(["-c", LOSING], 2)
    errors = first.communicate(timeout=120)[1]
    second.communicate(timeout=120)
    assert (first.returncode, second.returncode) == (3, 0), errors


def test_settings_follow_the_launcher(monkeypatch):
    assert launching.is_to_launch(TWO) and not launching.is_to_launch(FitSettings())
    assert launching.with_processes(FitSettings()) == FitSettings()
    for name, value in zip(NEEDED, ("1", "1", "4", "here", "1"), strict=True):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert launching.with_processes(FitSettings()) == FitSettings(devices=2, nodes=2)
    assert not launching.is_to_launch(TWO)
    with pytest.raises(OptionError, match="has started 2 processes on each of 2 machines"):
        launching.with_processes(FitSettings(devices=4))


def test_other_machines_need_a_launcher(data_folder, tmp_path):
    result = call("fit", data_folder, "--run", tmp_path / "run", *QUICK, "--devices", 2, "--nodes", 2)
    assert result.exit_code == 2 and "torchrun --nnodes 2 --nproc-per-node 2" in result.output
    assert not (tmp_path / "run").exists()


def test_a_search_is_not_shared(data_folder):
    from accord import NodeClassifier

    with pytest.raises(OptionError, match="search tries settings in one process"):
        NodeClassifier(search=2, devices=2).resolve_recipe()


def test_processes_meet_at_a_port_that_nothing_else_is_given(monkeypatch):
    """Systems choose ports of outgoing connections, and of listeners that name none, from 32768 up."""
    with socket.socket() as listening:
        listening.bind(("", free_port()))
        taken = listening.getsockname()[1]
        assert taken in PORTS and PORTS.stop <= 32768
        monkeypatch.setattr("random.SystemRandom.sample", lambda self, ports, count: [taken, taken])
        with pytest.raises(AccordError, match="No port from 20000 to 29999 is free"):
            free_port()
