"""Load on `accord serve`: 16 connections that send 1,000 requests each, one after the other, on loopback.

    python benchmarks/app/serve_load.py RUN --data DATA

Every request asks for the labels of one graph. The answers are compared with those of the library. Writes
results/serve/load.json.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from pathlib import Path

from serve_process import REPOSITORY, cpu_seconds, machine, serving

from accord._files import write_json
from accord.app.server.shelf import load_listed, without_labels
from accord.estimator import NodeClassifier

CONNECTIONS, REQUESTS, GRAPHS = 16, 1000, 50
ALONE = 200  # requests of a single connection, before the others


async def ask(reader, writer, body):
    """Send one request on an open connection; returns status and body."""
    head = (
        "POST /api/predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    length = next(int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length"))
    return int(lines[0].split()[1]), await reader.readexactly(length)


async def connection(port, number, requests, seconds, wrong, wanted):
    """All requests of one connection; a lost or refused one counts as wrong."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in range(requests):
        graph = (number * requests + request) % len(wanted)
        body = json.dumps({"graphs": [{"graph": {"id": f"test-{graph}"}}]}).encode()
        began = time.perf_counter()
        try:
            status, answer = await asyncio.wait_for(ask(reader, writer, body), 120)
        except Exception as error:
            wrong.append(repr(error))
            return
        seconds.append(time.perf_counter() - began)
        if status != 200 or json.loads(answer)["graphs"][0]["labels"] != wanted[graph]:
            wrong.append(f"{status}: {answer[:200]!r}")
    writer.close()


async def load(port, connections, requests, wanted):
    """Time of every request, and what went wrong."""
    seconds, wrong = [], []
    await connection(port, 0, 20, [], wrong, wanted)  # the first requests build caches
    began = time.perf_counter()
    await asyncio.gather(*(connection(port, n, requests, seconds, wrong, wanted) for n in range(connections)))
    return seconds, wrong, time.perf_counter() - began


def main():
    """Run and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results/serve/load.json")
    options = parser.parse_args()
    model = NodeClassifier.load(options.run)
    config = options.run / "config.json"
    trained = json.loads(config.read_text()) if config.is_file() else {}
    graphs = [graph for _, graph in load_listed(trained, options.data)][:GRAPHS]
    names = model.label_names_ or [str(state) for state in range(model.shape_.num_states)]
    wanted = [[names[state] for state in model.predict(without_labels(graph)).tolist()] for graph in graphs]
    with serving(options.run, options.data) as (port, pid):
        alone, wrong, _ = asyncio.run(load(port, 1, ALONE, wanted))
        before = cpu_seconds(pid)
        seconds, more, whole = asyncio.run(load(port, options.connections, options.requests, wanted))
        used = cpu_seconds(pid) - before
    wrong += more
    seconds.sort()
    expected = options.connections * options.requests
    at = {f"p{share}_ms": round(1000 * seconds[int(len(seconds) * share / 100)], 2) for share in (50, 90, 99)}
    result = {
        "connections": options.connections,
        "requests": expected,
        "answered": len(seconds),
        "lost_or_wrong": len(wrong),
        "nodes_a_graph": round(sum(len(graph.x) for graph in graphs) / len(graphs), 1),
        **at,
        "largest_ms": round(1000 * seconds[-1], 2),
        "p50_alone_ms": round(1000 * statistics.median(alone), 2),
        "cpu_ms_a_request": round(1000 * used / len(seconds), 2),
        "requests_a_second": round(len(seconds) / whole, 1),
        "load_average_at_end": round(os.getloadavg()[0], 2),
        **machine(),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, result)
    print(json.dumps(result, indent=1))
    for line in wrong[:5]:
        print(line)
    return int(bool(wrong) or len(seconds) != expected)


if __name__ == "__main__":
    raise SystemExit(main())
