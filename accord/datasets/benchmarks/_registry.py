"""The benchmarks by name: a table, and the functions that look names up in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from accord.datasets.benchmarks._benchmark import Benchmark, Counted, Level, Splits
from accord.datasets.benchmarks._citation import PLANETOID, load_citation, planetoid_file
from accord.datasets.benchmarks._dblp import DBLP_FILE, DOMAINS, load_dblp
from accord.datasets.benchmarks._domains import DOMAINS_FILE, load_domains
from accord.datasets.benchmarks._fetch import fetched_folder
from accord.datasets.benchmarks._files import find_file
from accord.datasets.benchmarks._ppi import PPI, PPI_FILE, load_ppi
from accord.errors import GraphError, InputTypeError, OptionError
from accord.graphs import check_treatment, fit_treatment

# Planetoid numbers its topics without naming them; the number of papers of each tells which is which.
TOPICS = {
    "Cora": (
        "theory",
        "reinforcement learning",
        "genetic algorithms",
        "neural networks",
        "probabilistic methods",
        "case-based",
        "rule learning",
    ),
    "CiteSeer": (
        "artificial intelligence",
        "machine learning",
        "information retrieval",
        "databases",
        "agents",
        "human-computer interaction",
    ),
}


@dataclass(frozen=True, kw_only=True)
class BenchmarkSpec:
    """One row of the table."""

    name: str
    description: str
    load: Callable[[], Splits]  # with raw features
    features: str  # treatment of the features unless another is asked for
    file: str
    fetched: str | None  # what PyG leaves in the cache when it has fetched the data; None if it does not know it
    num_states: int
    num_tasks: int
    level: Level
    counted: Counted
    label_names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class BenchmarkEntry:
    """A benchmark as `list_benchmarks` shows it."""

    name: str
    description: str
    present: bool  # whether loading it needs no download


def _citation(dataset: str, num_states: int) -> BenchmarkSpec:
    return BenchmarkSpec(
        name=f"{dataset.lower()}*",
        description=f"ego networks of {dataset}; {num_states} topics; a graph counts if every node is right",
        load=partial(load_citation, dataset),
        # Measured: raw word counts score 2 to 3 points above row-normalised ones on Cora* and Citeseer*.
        features="raw",
        file=planetoid_file(dataset),
        fetched=f"{PLANETOID}/{dataset}/processed/data.pt",
        num_states=num_states,
        num_tasks=1,
        level="graph",
        counted="edges",
        label_names=TOPICS.get(dataset),
    )


def _ppi(num_train_graphs: int) -> BenchmarkSpec:
    graphs = f"{num_train_graphs} training graph{'s' if num_train_graphs > 1 else ''}"
    return BenchmarkSpec(
        name=f"ppi-{num_train_graphs}",
        description=f"protein interactions, {graphs}; 121 yes/no labels a node, each counts",
        load=partial(load_ppi, num_train_graphs),
        features="standardised",
        file=PPI_FILE,
        fetched=f"{PPI}/processed/train.pt",
        num_states=2,
        num_tasks=121,
        level="node",
        counted="arcs",
    )


def _one_graph_a_split(
    name: str, description: str, load: Callable[[], Splits], file: str, label_names: tuple[str, ...] | None, states: int
) -> BenchmarkSpec:
    return BenchmarkSpec(
        name=name,
        description=description,
        load=load,
        features="raw",
        file=file,
        fetched=None,
        num_states=states,
        num_tasks=1,
        level="node",
        counted="edges",
        label_names=label_names,
    )


BENCHMARKS: dict[str, BenchmarkSpec] = {
    spec.name: spec
    for spec in (
        _citation("Cora", 7),
        _citation("CiteSeer", 6),
        _citation("PubMed", 3),
        _ppi(1),
        _ppi(2),
        _ppi(10),
        _ppi(20),
        _one_graph_a_split(
            "dblp",
            "papers of eight conferences; 3 domains; built by `accord data dblp`",
            load_dblp,
            DBLP_FILE,
            DOMAINS,
            3,
        ),
        _one_graph_a_split(
            "citation-domains",
            "three citation networks, one each to train, select and test on; 5 topics",
            load_domains,
            DOMAINS_FILE,
            None,
            5,
        ),
    )
}
ALIASES = {"ppi": "ppi-20"}


def list_benchmarks() -> tuple[BenchmarkEntry, ...]:
    """Every benchmark with one line about it, and whether its files are here already."""
    return tuple(
        BenchmarkEntry(
            spec.name,
            spec.description,
            present=find_file(spec.file) is not None
            or (spec.fetched is not None and fetched_folder(spec.fetched).is_file()),
        )
        for spec in BENCHMARKS.values()
    )


def resolve_benchmark(name: object, also: Sequence[str] = ()) -> str:
    """The name of a benchmark as the tables write it: case is ignored, "cora" means "cora*", "ppi" means "ppi-20".

    Args:
        name: what a user wrote.
        also: further names that are accepted as they are.

    Raises:
        OptionError: there is no such benchmark.
    """
    if not isinstance(name, str):
        raise InputTypeError(f"benchmark: the name is a {type(name).__name__}, not a str.")
    key = name.strip().lower()
    for candidate in (key, f"{key}*", ALIASES.get(key)):
        if candidate in BENCHMARKS or candidate in also:
            return str(candidate)
    known = ", ".join([*BENCHMARKS, *ALIASES, *also])
    raise OptionError(f"There is no benchmark called {name!r}. Choose one of: {known}.")


def benchmark_features(name: str) -> str:
    """The treatment of features that a benchmark is usually used with."""
    return BENCHMARKS[resolve_benchmark(name)].features


def load_benchmark(name: str, features: str | None = None) -> Benchmark:
    """Load a benchmark by name.

    Files are looked for in `$ACCORD_DATA`, then in the user's cache (`$XDG_CACHE_HOME/accord` or
    `~/.cache/accord`); where there is none, PyG's own dataset class downloads the data into the cache.

    Args:
        name: `cora*`, `citeseer*`, `pubmed*`, `ppi-1`, `ppi-2`, `ppi-10`, `ppi-20`, or `ppi` for all of it, `dblp`,
            `citation-domains`.
        features: "raw", "row-normalised", "standardised" (by the nodes of the training graphs in use), or None
            for the benchmark's own choice: raw for the citation sets, standardised for PPI. Treated graphs carry
            their treatment, which `NodeClassifier` takes over.

    Raises:
        OptionError: there is no such benchmark, or no such treatment of features.
        DataNotFoundError: the data was not found and could not be fetched.
    """
    spec = BENCHMARKS[resolve_benchmark(name)]
    features = spec.features if features is None else features
    check_treatment(features)
    splits = spec.load()
    _check_labels(splits, spec)
    treatment = fit_treatment(features, splits.train)
    train, val, test = ([treatment.apply(graph) for graph in split] for split in splits[:3])
    return Benchmark(
        name=spec.name,
        train=train,
        val=val,
        test=test,
        num_states=spec.num_states,
        num_tasks=spec.num_tasks,
        level=spec.level,
        counted=spec.counted,
        source=splits.source,
        features=features,
        label_names=None if spec.label_names is None else list(spec.label_names),
    )


def _check_labels(splits: Splits, spec: BenchmarkSpec) -> None:
    """Refuse a file whose labels differ from the table; training on it would fail later with an unclear error."""
    for graph in (*splits.train, *splits.val, *splits.test):
        tasks = graph.y.shape[1] if graph.y.dim() == 2 else 1
        low, high = int(graph.y.min()), int(graph.y.max())
        if tasks != spec.num_tasks or low < 0 or high >= spec.num_states:
            raise GraphError(
                f"load_benchmark: {splits.source} has {tasks} labels a node, from {low} to {high}, but "
                f"{spec.name} has {spec.num_tasks}, from 0 to {spec.num_states - 1}. Replace or remove the file."
            )
