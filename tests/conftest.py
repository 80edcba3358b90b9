"""Shared by all tests: the hypothesis profile, and what happens if benchmark files are missing."""

import os
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

# No deadline and fixed draws: a slow or busy machine must not make a test fail.
settings.register_profile(
    "accord",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "accord"))

if not torch.cuda.is_available():
    # Triton decides when it is first imported (by torch_geometric) whether it interprets kernels or compiles them.
    os.environ.setdefault("TRITON_INTERPRET", "1")

if "PYTEST_XDIST_WORKER" in os.environ:
    # There is one process per core: more threads would compete for the cores and be up to 50 times slower.
    torch.set_num_threads(1)

BENCHMARK_FILES = ("planetoid_cora.npz", "planetoid_citeseer.npz", "planetoid_pubmed.npz", "ppi_recon.npz")


def require_file(name: str) -> Path:
    """The file's path; without the file the test is skipped, or fails if ACCORD_REQUIRE_DATA=1 (CI)."""
    from accord.datasets import find_file

    path = find_file(name)
    if path is None:
        reason = f"{name} is neither under $ACCORD_DATA nor in the user's cache"
        if os.environ.get("ACCORD_REQUIRE_DATA") == "1":
            pytest.fail(f"{reason}, but ACCORD_REQUIRE_DATA=1 says it must be.", pytrace=False)
        pytest.skip(reason)
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in folders called `triton` run its kernels."""
    for item in items:
        if "triton" in item.path.parent.parts:
            item.add_marker(pytest.mark.interpreter)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.data("file.npz")`: the test needs that file."""
    for marker in item.iter_markers("data"):
        for name in marker.args:
            require_file(name)


@pytest.fixture(scope="session")
def ray_cluster():
    """A small Ray cluster on this machine, for all tests of the session.

    Without the package they are skipped, or fail where everything has to be there (CI).
    """
    if os.environ.get("ACCORD_REQUIRE_DATA") == "1":
        import ray
    else:
        ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(
            address="local",
            num_cpus=4,
            num_gpus=1,  # a number to Ray: it may be shared out where there is none
            include_dashboard=False,
            object_store_memory=200 * 2**20,
            log_to_driver=False,
            logging_level="ERROR",
        )
    yield ray
    ray.shutdown()


@pytest.fixture
def benchmark_files() -> dict[str, Path]:
    """All benchmark files, by name."""
    return {name: require_file(name) for name in BENCHMARK_FILES}
