"""Citation domains: three citation networks over the same words and topics, one each to train, select and test on.

It stands beside the paper's DBLP, whose files are not published, and keeps its own name: train on ACMv9, select on
Citationv1, test on DBLPv7. A paper with two topics takes the first.
"""

import torch
from torch_geometric.data import Data

from accord.datasets._sparse import SPARSE_ARRAYS, SPARSE_VALUES, dense_rows
from accord.datasets.benchmarks._benchmark import Splits
from accord.datasets.benchmarks._files import find_file, read_arrays, search_folders
from accord.errors import DataNotFoundError

DOMAINS_FILE = "citation_domains.npz"
NETWORKS = ("acmv9", "citationv1", "dblpv7")  # to train, select and test on


def load_domains() -> Splits:
    """Read the three networks."""
    path = find_file(DOMAINS_FILE)
    if path is None:
        folders = ", ".join(str(folder) for folder in search_folders())
        raise DataNotFoundError(
            f"{DOMAINS_FILE} was not found in {folders}. Put it into one of these folders; it is made of the three "
            "networks of the ACDNE repository (ACDNE_codes/input)."
        )
    required = [f"{name}_{key}" for name in NETWORKS for key in (*SPARSE_ARRAYS, "y", "edge_index")]
    arrays = read_arrays(path, required, optional=[f"{name}_{SPARSE_VALUES}" for name in NETWORKS])
    graphs = []
    for name in NETWORKS:
        own = {key.removeprefix(f"{name}_"): value for key, value in arrays.items() if key.startswith(f"{name}_")}
        graphs.append(
            Data(
                x=torch.from_numpy(dense_rows(own, path.name)).float(),
                y=torch.from_numpy(own["y"]).long().argmax(1),
                edge_index=torch.from_numpy(own["edge_index"]).long(),
            )
        )
    return Splits([graphs[0]], [graphs[1]], [graphs[2]], source=path.name)
