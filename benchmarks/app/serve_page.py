"""How fluid the page is with a large graph, in a real browser without a GPU.

    python benchmarks/app/serve_page.py --nodes 5000

Trains a small model, makes a graph of communities, uploads it, and measures frames while the drawing is dragged and
zoomed, and the time from an action to its result. Writes results/serve/page.json and a screenshot.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import torch
from playwright.sync_api import sync_playwright
from serve_process import REPOSITORY, machine, serving
from torch_geometric.data import Data

from accord._files import write_json
from accord.datasets import write_graph
from accord.estimator import NodeClassifier

STATES, NAMES = 5, ["ash", "birch", "cedar", "elm", "oak"]
FLAGS = (
    "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --disable-quic"
)
FRAMES = """() => { const times = []; window.frames_ = times; let last = performance.now(); window.counting_ = true;
  const tick = (now) => { times.push(now - last); last = now; if (window.counting_) requestAnimationFrame(tick); };
  requestAnimationFrame(tick); }"""


def communities(nodes, seed, shares=0.9):
    """A graph whose edges lie mostly inside communities; the features show a node's label with much noise."""
    generator = torch.Generator().manual_seed(seed)
    groups = max(STATES, nodes // 150)
    group = torch.randint(groups, (nodes,), generator=generator)
    y = group % STATES
    order = torch.argsort(group)
    source = torch.arange(nodes).repeat(2)
    place = torch.empty_like(order)
    place[order] = torch.arange(nodes)
    near = order[(place[source] + torch.randint(1, 40, (2 * nodes,), generator=generator)) % nodes]
    far = torch.randint(nodes, (2 * nodes,), generator=generator)
    target = torch.where(torch.rand(2 * nodes, generator=generator) < shares, near, far)
    x = torch.nn.functional.one_hot(y, STATES) + 1.0 * torch.randn(nodes, STATES, generator=generator)
    return Data(x=x, y=y, edge_index=torch.stack([source, target]))


def frames(page, action):
    """Milliseconds between frames while something is done."""
    page.evaluate(FRAMES)
    action()
    page.evaluate("() => { window.counting_ = false; }")
    found = sorted(page.evaluate("() => window.frames_")[2:])
    return {
        "frames": len(found),
        "median_ms": round(statistics.median(found), 1),
        "p95_ms": round(found[int(0.95 * len(found))], 1),
        "largest_ms": round(found[-1], 1),
    }


def seconds(page, action):
    """Time until the page has done what it was asked."""
    began = time.perf_counter()
    action()
    page.wait_for_selector("body:not(.busy)")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return round(time.perf_counter() - began, 3)


def measure(page, path):
    """All figures of one visit."""
    canvas = page.locator(".canvas").last

    def drag():
        box = canvas.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        for step in range(60):
            page.mouse.move(x + 150 * (step % 20) / 20, y + 3 * step)
            page.wait_for_timeout(16)
        page.mouse.up()

    def zoom():
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for step in range(40):
            page.mouse.wheel(0, -60 if step < 20 else 60)
            page.wait_for_timeout(16)

    result = {"upload_and_draw_s": seconds(page, lambda: page.set_input_files("#upload", path))}
    result["idle"] = frames(page, lambda: page.wait_for_timeout(1000))
    result["drag"] = frames(page, drag)
    result["zoom"] = frames(page, zoom)
    result["pick_node_s"] = seconds(page, lambda: page.click("#node-list li:nth-child(3) button"))
    result["clamp_s"] = seconds(page, lambda: page.select_option("#clamp", label="elm"))
    result["colour_s"] = seconds(page, lambda: page.click("[data-colouring=uncertainty]"))
    result["first_sweep_s"] = seconds(page, lambda: page.click("#sweep-back"))
    page.wait_for_selector('#sweep-text:has-text("After")')
    result["next_sweep_s"] = seconds(page, lambda: page.click("#sweep-back"))
    page.click("[data-colouring=label]")
    return result


def main():
    """Run and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results/serve/page.json")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        model = NodeClassifier(encoder="mlp", max_epochs=40, accelerator="cpu", label_names=NAMES)
        model.fit([communities(300, seed) for seed in range(6)], [communities(300, seed) for seed in range(6, 8)])
        model.save(Path(scratch) / "run")
        path = Path(scratch) / "large.npz"
        write_graph(communities(options.nodes, 99), path, NAMES)
        with serving(Path(scratch) / "run") as (port, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
            page = browser.new_page(viewport={"width": 1366, "height": 800})
            page.set_default_timeout(120_000)
            page.goto(f"http://127.0.0.1:{port}")
            page.wait_for_selector("#notice:not([hidden])")
            figures = measure(page, path)
            if options.picture:
                page.click("#node-close")
                page.wait_for_timeout(500)
                page.screenshot(path=options.picture)
            version = browser.version
            browser.close()
    result = {"nodes": options.nodes, "edges": 2 * options.nodes, **figures, "chromium": version, "gpu": "none",
              "load_average_at_end": round(os.getloadavg()[0], 2), **machine()}  # fmt: skip
    write_json(options.out, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
