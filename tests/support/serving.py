"""What tests of the server share: the application with a worker in this process, and `accord serve` in another."""

import os
import re
import signal
import subprocess
import sys
import time

import httpx2

from accord.app.server.app import build_app
from accord.app.server.desk import Desk
from accord.app.server.guard import Guard
from accord.app.server.pool import Pool
from accord.app.server.shelf import Shelf
from accord.app.server.uploads import Uploads

COMMAND = [sys.executable, "-c", "from accord.app.cli import main; main()", "serve"]
ADDRESS = re.compile(r"at (http://\S+)")


class HereWorker:
    """Answers in this process; may be slow or die, as a real worker may."""

    def __init__(self, answer):
        self.answer, self.restarts = answer, 0

    def ask(self, kind, body):
        return self.answer(kind, body)

    def kill(self):
        pass

    def restart(self):
        self.restarts += 1

    def stop(self):
        pass


def here_app(model, folder, limits, data=None, token=None):
    """The guarded application with the model in this process; names as a test client sends them are accepted."""
    desk = Desk("fruit", model, Shelf(folder, limits, {}, data, model.columns_), limits)
    pool = Pool([HereWorker(desk.answer)], limits)
    app = build_app(pool, Uploads(folder, limits), pool.close)
    return Guard(app, limits, token, frozenset({"testserver"}))


class Server:
    """`accord serve` in a process of its own."""

    def __init__(self, run, *options, port=0, env=None):
        self.command = [*COMMAND, str(run), "--port", str(port), *map(str, options)]
        self.env = os.environ | {"OMP_NUM_THREADS": "1"} | (env or {})

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True, env=self.env)
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            if ADDRESS.search(line):
                self.url = ADDRESS.search(line)[1]
                break
        else:
            raise AssertionError("".join(self.lines))
        self.client = httpx2.Client(base_url=self.url.partition("/#")[0], timeout=30)
        for _ in range(100):  # the socket is open before the server runs
            try:
                self.client.get("/api/health")
                break
            except httpx2.TransportError:
                time.sleep(0.05)
        return self

    @property
    def port(self):
        return int(self.client.base_url.port)

    def __exit__(self, *_):
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.process.stderr.close()
