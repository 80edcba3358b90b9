"""`accord predict` in processes that a launcher has started."""

import os

import torch.distributed as dist

from accord.app.commands.predict._parts import predict_parts
from accord.app.runs import open_model


def predict_launched(rank, ranks, port, model, graph, out):
    """What the command says in a process whose environment is that of torchrun."""
    dist.destroy_process_group()
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    first = predict_parts(open_model(model), graph, out, marginals=True)
    again = predict_parts(open_model(model), graph, out, marginals=True)
    dist.init_process_group("gloo")
    return first, again
