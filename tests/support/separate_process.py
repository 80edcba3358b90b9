"""Run code in other processes, for tests of what would end the process itself.

One server imports Accord, which takes seconds, and forks a process for each piece of code.
"""

import json
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

SERVER = """
import json, os, sys, traceback
import torch, torch._dynamo, accord
from accord import PairwiseField, propagate
def outcome(work):
    # What `work` does in a process of its own: its result as text, the name of its error, or the signal that ended it.
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            found = str(work())
        except Exception as error:
            found = type(error).__name__
        os.write(writer, found.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        found = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return found if status == 0 else f"signal {-status}"
def run(code, output, errors, environment):
    for path, number in ((output, 1), (errors, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    try:
        exec(code, {"outcome": outcome, "__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
for line in sys.stdin:
    child = os.fork()
    if not child:
        run(**json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@lru_cache(maxsize=1)
def _server():
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def run_separately(code):
    """The lines that `code` prints, which may use `outcome`. A crash or an error fails the test."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        request = {"code": code, "output": str(output), "errors": str(errors), "environment": dict(os.environ)}
        server = _server()
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        assert status == 0, f"exit status {status}: {errors.read_text()[-2000:]}"
        return output.read_text().splitlines()
