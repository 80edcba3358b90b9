"""What a practitioner would write first: logistic regression, and two-layer GCN and GraphSAGE in plain PyG."""

import copy
from collections.abc import Callable

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import to_undirected

from accord.bench.defaults._tasks import Task
from accord.evaluation import Answers
from accord.graphs import GraphBatch

HIDDEN, DROPOUT, RATE, DECAY = 64, 0.5, 5e-3, 5e-4
BATCH = 8  # graphs an update
# Epochs at most, and without improvement before stopping; or as many as make that many updates, if these are more.
EPOCHS, PATIENCE, UPDATES, PATIENT_UPDATES = 100, 10, 1000, 200
Predict = Callable[[list[Data]], Tensor]  # graphs -> probabilities [nodes, states]


class PlainGNN(nn.Module):
    """Two convolutions with ReLU and dropout between them."""

    def __init__(self, convolution: type[nn.Module], inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = convolution(inputs, HIDDEN), convolution(HIDDEN, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of the states."""
        hidden = functional.dropout(torch.relu(self.first(x, edge_index)), DROPOUT, self.training)
        out: Tensor = self.second(hidden, edge_index)
        return out


def fit_plain_gnn(kind: str, task: Task, seed: int, device: torch.device) -> Predict:
    """Train a plain GNN, batches of 8 graphs, early stopping on node accuracy of the validation graphs."""
    torch.manual_seed(seed)
    train, val = ([_undirected(graph) for graph in graphs] for graphs in (task.train, task.val))
    model = PlainGNN({"gcn": GCNConv, "sage": SAGEConv}[kind], train[0].num_features, task.num_states).to(device)
    optimiser = torch.optim.Adam(model.parameters(), RATE, weight_decay=DECAY)
    loader = DataLoader(train, batch_size=BATCH, shuffle=True)
    held_out = Batch.from_data_list(val).to(device)
    ready = [batch.to(device) for batch in loader] if len(train) == 1 else None
    best, best_score, stale = copy.deepcopy(model.state_dict()), -1.0, 0
    epochs, patience = max(EPOCHS, UPDATES // len(loader)), max(PATIENCE, PATIENT_UPDATES // len(loader))
    for _ in range(epochs):
        model.train()
        for batch in ready or loader:
            batch = batch.to(device)
            optimiser.zero_grad()
            functional.cross_entropy(model(batch.x, batch.edge_index), batch.y).backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            score = float((model(held_out.x, held_out.edge_index).argmax(-1) == held_out.y).float().mean())
        stale += 1
        if score > best_score:
            best, best_score, stale = copy.deepcopy(model.state_dict()), score, 0
        if stale >= patience:
            break
    model.load_state_dict(best)
    model.eval()

    @torch.no_grad()
    def predict(graphs: list[Data]) -> Tensor:
        batch = Batch.from_data_list([_undirected(graph) for graph in graphs]).to(device)
        scores: Tensor = model(batch.x, batch.edge_index)
        return scores.softmax(-1).cpu()

    return predict


def fit_logistic_regression(task: Task) -> Predict:
    """Each node by its own features; the strength of regularisation is chosen on validation nodes."""
    train, val = (GraphBatch.collate(graphs) for graphs in (task.train, task.val))
    assert train.y is not None and val.y is not None
    best, best_score = None, -1.0
    for strength in (0.1, 1.0, 10.0):
        model = make_pipeline(MaxAbsScaler(), LogisticRegression(C=strength, max_iter=200))
        model.fit(train.x.numpy(), train.y.numpy())
        score = float(np.mean(model.predict(val.x.numpy()) == val.y.numpy()))
        if score > best_score:
            best, best_score = model, score

    def predict(graphs: list[Data]) -> Tensor:
        assert best is not None
        found = torch.zeros(sum(graph.num_nodes for graph in graphs), task.num_states)
        x = torch.cat([graph.x for graph in graphs]).numpy()
        found[:, torch.from_numpy(best.classes_)] = torch.from_numpy(best.predict_proba(x)).float()
        return found

    return predict


def answers_of(predict: Predict, graphs: list[Data], name: str) -> Answers:
    """What a peer says about graphs."""
    whole = GraphBatch.collate(graphs)
    assert whole.y is not None
    probabilities = predict(graphs)[None]
    return Answers(whole.topology, whole.y[None], {name: probabilities.argmax(-1)}, {name: probabilities})


def _undirected(graph: Data) -> Data:
    return Data(x=graph.x, y=graph.y, edge_index=to_undirected(graph.edge_index, num_nodes=graph.num_nodes))
