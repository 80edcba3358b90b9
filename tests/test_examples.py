"""Every example runs unchanged."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# In a process of its own: packages of notebooks give warnings, which are errors in tests. ipc needs no free port.
EXECUTE = """
import sys, nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], 4)
manager = AsyncKernelManager(kernel_name="python3", transport="ipc")
NotebookClient(book, timeout=300, km=manager).execute()
print(sum(cell.cell_type == "code" for cell in book.cells))
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    # One thread: on a busy machine, two threads that wait for each other take many times as long.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout


@pytest.mark.matrix
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs_from_top_to_bottom(path, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    command = [sys.executable, "-c", EXECUTE, path]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_stored_without_outputs(path):
    # Outputs change with every run, and pictures in them make changes of the code hard to read.
    cells = json.loads(path.read_text())["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_there_are_examples_and_the_readme_lists_them():
    assert len(EXAMPLES) >= 2 and len(NOTEBOOKS) >= 1
    listed = re.findall(r"\]\(([\w.]+)\)", (FOLDER / "README.md").read_text())
    folders = [path for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))]
    assert sorted(listed) == sorted(path.name for path in (*EXAMPLES, *NOTEBOOKS, *folders))
