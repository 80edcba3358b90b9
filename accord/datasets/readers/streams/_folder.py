"""A data folder whose training graphs are streamed from disk."""

from itertools import chain
from pathlib import Path

from torch_geometric.data import Data

from accord.datasets.readers._folder import FolderBenchmark, count_states, find_splits
from accord.datasets.readers._graphs import Reading, read_sources, to_data
from accord.datasets.readers.streams._files import GraphFiles
from accord.datasets.readers.tables import TableMapping
from accord.errors import DataNotFoundError, GraphError
from accord.graphs import TEST_MASK, has_labels, have_mask


def stream_folder(
    path: str | Path, mapping: TableMapping | str | Path | None = None, scratch: str | Path | None = None
) -> FolderBenchmark:
    """The graphs of a data folder, as `read_folder` reads them, with those of `train/` streamed (`GraphFiles`).

    Validation graphs, in `val/`, are needed: no training graphs are held out. They and test graphs are held in memory.

    Args:
        path: the folder.
        mapping: which columns of tables hold what, or the path of a mapping file; None looks for accord.toml.
        scratch: as for `GraphFiles`.
    """
    folder = Path(path)
    way = Reading.of(folder, mapping)
    found = find_splits(folder, way.mapping)
    if not found.get("val"):
        raise DataNotFoundError(
            f"{folder}: has no folder val/. Training graphs that are streamed are not held out: put them into train/ "
            "and validation graphs into val/. Leave out --stream to train on graphs in memory."
        )
    source = folder / "train"
    train = GraphFiles(source if source.is_dir() else found["train"][0], mapping=way.mapping, scratch=scratch)
    first = next((graph for graph in train if has_labels(graph)), None)
    if first is None:
        raise GraphError(f"{train.path}: no graph has labels. Write labels (`label` or `y`) into the files.")
    names = train.label_names
    val, test = (_read(found.get(split, []), names, way) for split in ("val", "test"))
    if not test and have_mask(train, TEST_MASK):
        raise GraphError(
            f"{train.path}: graphs have a test_mask, but training graphs that are streamed are not held for a test. "
            "Put test graphs into test/, or leave out --stream."
        )
    return FolderBenchmark(
        name=folder.resolve().name,
        train=train,
        val=val,
        test=test,
        num_states=count_states(names, chain(train, val)),
        num_tasks=1 if first.y.dim() == 1 else int(first.y.shape[1]),
        level="node",
        counted="edges",
        source=f"files of {folder.resolve().name}",
        feature_names=train[0].get("feature_names"),
        label_names=names,
        task_names=first.get("task_names"),
        findings=way.findings,
    )


def _read(paths: list[Path], names: list[str] | None, way: Reading) -> list[Data]:
    return to_data([source for path in paths for source in read_sources(path, way)], names, True, way)
