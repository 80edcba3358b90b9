"""Small graph files in every form that the readers accept."""

import json

import numpy as np
import torch
from torch_geometric.data import Data

X = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.5]]
EDGES = [[0, 1], [1, 2]]


def graph(y=(0, 1, -1), **more):
    return Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), y=None if y is None else torch.tensor(y), **more)


def write_tables(folder, nodes="id,label,a,b\nu,cat,0,1\nv,dog,2,3\nw,,4,5.5\n", edges="source,target\nu,v\nv,w\n"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nodes.csv").write_text(nodes)
    if edges is not None:
        (folder / "edges.csv").write_text(edges)
    return folder


def write_npz(path, **more):
    np.savez(path, **({"x": np.array(X), "edge_index": np.array(EDGES)} | more))
    return path


def write_json(path, content=None, **more):
    content = {"x": X, "edge_index": EDGES} | more if content is None else content
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
