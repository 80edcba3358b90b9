"""How long to train and in what batches, by the data: enough updates, and an end when nothing improves."""

import math
from collections.abc import Sequence
from dataclasses import replace

from torch_geometric.data import Data

from accord.learning import TrainingOptions

BATCH_NODES = 256  # nodes an update reads: few enough for many updates an epoch
MAX_BATCH = 32  # graphs
MAX_UPDATES = 3000
PATIENCE = 400  # updates without improvement on validation data
EVALUATE_EVERY = 25  # updates
SEQUENCES, FEWEST = 32, 4  # in a batch, at most and at least
LEAST_UPDATES = 20  # in an epoch, as far as the fewest sequences allow
SEQUENCE_UPDATES, SEQUENCE_EVALUATION = 4000, 100
LEAST_EPOCHS, MOST_EPOCHS = 10, 100
SEQUENCE_PATIENCE = 5  # evaluations without improvement


def fit_schedule(training: TrainingOptions, graphs: Sequence[Data], max_epochs: int | None = None) -> TrainingOptions:
    """The options with batches, epochs and patience for these training graphs.

    A single graph, or a few small ones, make one batch. Where nodes are divided into clusters, an update takes some of
    these. `max_epochs` bounds the epochs where it is given.
    """
    if training.clusters is not None:
        updates = math.ceil(training.clusters / training.batch_clusters)
        return pace(replace(training, batch_graphs=None), updates, max_epochs)
    nodes = sum(int(graph.num_nodes or 0) for graph in graphs) / len(graphs)
    batch = min(max(math.ceil(BATCH_NODES / max(nodes, 1)), 1), MAX_BATCH)
    updates = math.ceil(len(graphs) / batch)  # in an epoch
    return pace(replace(training, batch_graphs=batch if updates > 1 else None), updates, max_epochs)


def sequence_schedule(
    training: TrainingOptions, graphs: Sequence[Data], max_epochs: int | None = None
) -> TrainingOptions:
    """The options with batches, epochs and patience for sequences, which share weights over many positions."""
    batch = min(max(len(graphs) // LEAST_UPDATES, FEWEST), SEQUENCES, len(graphs))
    updates = math.ceil(len(graphs) / batch)
    epochs = min(max(math.ceil(SEQUENCE_UPDATES / updates), LEAST_EPOCHS), MOST_EPOCHS)
    epochs = epochs if max_epochs is None else max_epochs
    every = max(1, min(round(SEQUENCE_EVALUATION / updates), epochs // 3))
    batch_graphs = batch if updates > 1 else None
    return replace(
        training, batch_graphs=batch_graphs, max_epochs=epochs, evaluate_every=every, patience=SEQUENCE_PATIENCE
    )


def pace(training: TrainingOptions, updates: int, max_epochs: int | None = None) -> TrainingOptions:
    """The options with epochs, evaluations and patience for so many updates in an epoch."""
    epochs = math.ceil(MAX_UPDATES / updates) if max_epochs is None else max_epochs
    every = max(1, min(round(EVALUATE_EVERY / updates), epochs // 3))
    patience = max(3, math.ceil(PATIENCE / (updates * every)))
    return replace(training, max_epochs=epochs, evaluate_every=every, patience=patience)
