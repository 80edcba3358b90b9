"""The folders are layers: each imports only from those above it, and the core needs few packages."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import accord
from accord.inference.kernels import cpu

PACKAGE = Path(accord.__file__).parent
LAYERS = [
    "_version",
    "_lazy",
    "_prebuilt",
    "errors",
    "_launched",
    "_files",
    "_memory",
    "_triton",
    "_eager",
    "graphs",
    "field",
    "inference",
    "datasets",
    "encoders",
    "evaluation",
    "learning",
    "methods",
    "distributed",
    "tuning",
    "estimator",
    "drawing",
    "experiments",
    "bench",
    "app",
    "__main__",
]
CORE = LAYERS[: LAYERS.index("estimator")]
CORE_PACKAGES = {
    "torch",
    "torch_geometric",
    "numpy",
    "scipy",
    "lightning",
    "torchmetrics",
    "safetensors",
    "filelock",
    "triton",
}
SOURCES = sorted(PACKAGE.rglob("*.py"))


def layer_of(path):
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return None if first == "__init__" else first


def imported_modules(tree, top_level_only=False):
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else node.module


def violations(layer, tree):
    """Modules of this tree's imports that its layer may not know."""
    if layer is None:
        return []
    rank = LAYERS.index(layer)
    named = [name.split(".") for name in imported_modules(tree) if name == "accord" or name.startswith("accord.")]
    return [
        ".".join(parts) for parts in named if len(parts) < 2 or parts[1] not in LAYERS or LAYERS.index(parts[1]) > rank
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_folder_imports_only_from_those_above_it(path):
    tree = ast.parse(path.read_text())
    assert layer_of(path) in (None, *LAYERS), "a new folder needs its place in LAYERS and in the design"
    assert not violations(layer_of(path), tree)
    assert "." not in set(imported_modules(tree)), "imports are absolute, so that this test can read them"


def test_the_layer_test_can_fail():
    upward = ast.parse("def f():\n    from accord.inference import propagate\n")
    assert violations("graphs", upward) == ["accord.inference"]
    assert violations("field", ast.parse("import accord")) == ["accord"]
    assert violations("inference", upward) == []


@pytest.mark.parametrize("path", [p for p in SOURCES if layer_of(p) in CORE], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_core_imports_few_packages_at_the_top(path):
    outside = {name.split(".")[0] for name in imported_modules(ast.parse(path.read_text()), top_level_only=True)}
    assert outside <= CORE_PACKAGES | {"accord"} | set(sys.stdlib_module_names)


def test_every_module_can_be_imported_and_lists_what_it_offers():
    for info in pkgutil.walk_packages(accord.__path__, "accord."):
        module = importlib.import_module(info.name)
        if info.ispkg and hasattr(module, "__all__"):
            assert module.__all__ == sorted(module.__all__, key=lambda n: (not n.isupper(), n[0].islower(), n)), (
                info.name
            )
            assert all(hasattr(module, name) for name in module.__all__), info.name


def test_public_surface():
    assert all(getattr(accord, name) for name in accord.__all__)
    hidden = {"TYPE_CHECKING", "lazy_names"}
    shown = {name for name in vars(accord) if not name.startswith("_")} | {"__version__"}
    assert shown - hidden - {info.name for info in pkgutil.iter_modules(accord.__path__)} == set(accord.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        accord.nonsense  # noqa: B018


def loaded(code, names):
    """Which of these modules a fresh process has loaded after some code."""
    code = f"{code}\nimport sys; print(*sorted({names} & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_importing_the_package_stays_light():
    """Nothing for plots, servers or the command line is loaded until it is used, and not torch either."""
    assert loaded("import accord", {"torch", "numpy", "matplotlib", "typer", "rich", "sklearn", "fastapi"}) == []


# Each takes longer to load than torch itself, or a good part of it. The last is torch's compiler.
SLOW = {"torch_geometric", "lightning", "torchmetrics", "scipy", "sklearn", "matplotlib", "pandas", "torch._dynamo"}
SOLVE = """
import torch
field = PairwiseField(torch.tensor([[0, 1], [1, 2]]), torch.zeros(3, 2), torch.zeros(2, 2, 2))
beliefs = propagate(field)
beliefs.node, beliefs.edge, beliefs.log_partition, beliefs.decode(), maximise(field)
"""


@pytest.mark.parametrize("call", ["", SOLVE], ids=["import", "solve"])
def test_fields_are_solved_without_what_is_slow_to_load(call):
    if cpu.unavailable():
        pytest.skip("without the compiled kernel, maximise needs scipy")
    assert loaded(f"from accord import PairwiseField, maximise, propagate\n{call}", SLOW) == []


@pytest.mark.parametrize("package", ["accord", "accord.graphs"])
def test_names_that_are_loaded_at_first_use_can_be_imported(package):
    module = importlib.import_module(package)
    code = f"import {package}; print(*set({module.__all__}) - {{*dir({package})}}); from {package} import *"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# Its pipes lead to processes that it started itself. Nothing is saved.
BETWEEN_PROCESSES = PACKAGE / "distributed" / "engines" / "_processes.py"


def test_no_pickle():
    """Saved models and data never run code when they are loaded."""
    assert BETWEEN_PROCESSES in SOURCES
    for path in SOURCES:
        if path == BETWEEN_PROCESSES:
            continue
        named = {name.split(".")[0] for name in imported_modules(ast.parse(path.read_text()))}
        assert "pickle" not in named and "joblib" not in named, path
