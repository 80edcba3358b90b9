"""Use an installed Accord outside its checkout: version, native kernel, `accord fit` and `accord predict`.

Run with the Python of the environment that Accord is installed in; needs nothing but Accord.
"""

import json
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import torch
from torch_geometric.data import Data

import accord
from accord.datasets import write_graph
from accord.inference.kernels import cpu

CHECKOUT = Path(__file__).resolve().parents[1]


def ring(seed: int) -> Data:
    """A labelled ring; its first feature shows the label."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (6,), generator=generator)
    x = torch.stack([y + 0.1 * torch.randn(6, generator=generator), torch.ones(6)], 1)
    return Data(x=x, y=y, edge_index=torch.stack([torch.arange(6), torch.arange(6).roll(-1)]))


def call(folder: Path, *arguments: str) -> str:
    """Run `accord` of this environment in a folder; returns what it prints."""
    command = [str(Path(sys.executable).with_name("accord")), *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def solve_without_compiler(libraries: Path) -> None:
    """Every library of the wheel loads where there is neither a compiler nor a cache."""
    code = """
import torch
from accord import PairwiseField, maximise, propagate
field = PairwiseField(torch.tensor([[0, 1], [1, 2]]), torch.randn(3, 2), torch.randn(2, 2, 2))
assert propagate(field, backend="native").backend == "native"
maximise(field)
print(*(line.split("/")[-1].strip() for line in open("/proc/self/maps") if "accord/_libraries" in line))
"""
    names = set(json.loads((libraries / "manifest.json").read_text()))
    with tempfile.TemporaryDirectory() as empty:
        surroundings = {"PATH": empty, "HOME": empty, "XDG_CACHE_HOME": empty, "CXX": "/nonexistent"}
        run = subprocess.run([sys.executable, "-c", code], env=surroundings, cwd=empty, capture_output=True, text=True)
    assert run.returncode == 0, f"the compiled kernels of the wheel do not work: {run.stderr}"
    loaded = set(run.stdout.split())
    assert {"propagate", "maximise"} <= names, f"the wheel lacks compiled kernels: {names}"
    for name in ("propagate-", "maximise-"):
        assert any(file.startswith(name) for file in loaded), f"the kernels in use are not those of the wheel: {loaded}"


def main() -> None:
    """Fail with a message if anything of the installed package is missing or does not work."""
    package = Path(accord.__file__).resolve()
    assert CHECKOUT / "accord" not in package.parents, f"accord comes from the checkout: {package}"
    sources = [entry.name for entry in (files("accord") / "inference/kernels/cpu/native").iterdir()]
    assert any(name.endswith(".cpp") for name in sources), f"the wheel has no kernel sources: {sources}"
    page = [entry.name for entry in (files("accord") / "app/server/page").iterdir()]
    assert {"index.html", "main.js", "style.css", "vendor"} <= set(page), f"the wheel has no page: {page}"
    assert cpu.unavailable() is None, f"the native kernel does not build: {cpu.unavailable()}"
    libraries = package.parent / "_libraries"
    if libraries.exists():  # the wheel was built with a compiler
        solve_without_compiler(libraries)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for split, seeds in (("train", range(8)), ("val", range(8, 12)), ("test", range(12, 16))):
            for seed in seeds:
                write_graph(ring(seed), folder / "data" / split / f"{seed:02d}.json")
        version = call(folder, "--version").strip()
        assert version == f"accord {accord.__version__}", version
        call(folder, "fit", "data", "--run", "run", "--encoder", "mlp", "--max-epochs", "40", "--accelerator", "cpu")
        lines = call(folder, "predict", "run", "data/test/12.json").split()
        labels = [int(line.split(",")[1]) for line in lines[1:]]
        assert labels == ring(12).y.tolist(), f"wrong labels of an easy graph: {labels}"
    print(f"{version}: installed in {package.parent}, fitted and labelled a graph")


if __name__ == "__main__":
    main()
