"""Start `accord serve` for a measurement, and say on what machine it ran."""

import os
import platform
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from accord._version import __version__

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from accord.app.cli import main; main()", "serve"]


@contextmanager
def serving(run, data=None, *options):
    """A server in a process of its own; gives its port and its process number."""
    data = [] if data is None else ["--data", str(data)]
    process = subprocess.Popen([*COMMAND, str(run), "--port", "0", *data, *options], stderr=subprocess.PIPE, text=True)
    try:
        port = None
        for line in process.stderr:
            found = re.search(r"at http://127\.0\.0\.1:(\d+)", line)
            if found:
                port = int(found[1])
                break
            print(line, end="", file=sys.stderr)
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health").read()
                break
            except OSError:
                time.sleep(0.05)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def cpu_seconds(pid):
    """Processor time of a process and those it started; unlike the clock, it does not depend on other programs."""
    parts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK") + sum(map(cpu_seconds, children))


def machine():
    """What a figure depends on."""
    return {"cores": os.cpu_count(), "python": platform.python_version(), "accord": __version__}
