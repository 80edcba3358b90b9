"""Run code in another process, for tests of what would end the process itself."""

import os
import subprocess
import sys

PRELUDE = """
import os, sys
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
"""


def run_separately(code, timeout=120, **environment):
    """The lines that `code` prints, which may use `outcome`."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + code],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout.splitlines()
