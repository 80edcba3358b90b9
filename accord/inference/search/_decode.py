"""From beliefs to one labelling of a field with factors, by a search with a fixed amount of work.

Components that elimination solves quickly, trees of factors among them, are decoded exactly, with ties. In others the
states with the highest beliefs are improved by changes of single variables, and then by the search of `maximise`, for
an amount of work that depends on their size only, so that decoding never depends on time.
"""

import numpy as np
import torch
from torch import Tensor

from accord.errors import InfeasibleError
from accord.field.factors import FactorField
from accord.inference.kernels.cpu._build import BuildError
from accord.inference.search import _native, _reference
from accord.inference.search._fixed import PATIENCE, SEED, UNLIMITED, WAYS, WORK
from accord.inference.search._ragged import Components, Ragged, ragged

PASSES = 20  # of the reference, where there is no compiler


def decode_factors(field: FactorField, beliefs: Tensor) -> Tensor:
    """Labels [R, nodes] of all replicas from beliefs [R, nodes, states].

    Raises:
        InfeasibleError: a component has no labelling without forbidden states or combinations (`proved`), or none was
            found.
    """
    model = ragged(field)
    replicas, nodes = len(beliefs), field.num_nodes
    found = _search(model, model.whole(beliefs.detach().argmax(-1).cpu().numpy()))
    if found.infeasible.any() or (found.labels < 0).any():
        raise _failure(model, found)
    return torch.from_numpy(model.own_labels(found.labels)).reshape(replicas, nodes).to(beliefs.device)


def _search(model: Ragged, start: np.ndarray) -> Components:
    try:
        _native.load()
    except BuildError:
        return _reference.solve(model, UNLIMITED, SEED, passes=PASSES, start=start)
    return _native.solve(model, UNLIMITED, SEED, work=WORK, ways=WAYS, start=start, patience=PATIENCE)


def _failure(model: Ragged, found: Components) -> InfeasibleError:
    proved = bool(found.infeasible.any())
    bad = found.infeasible[found.component] if proved else found.labels < 0
    component = model.components()
    inside = np.nonzero(component == component[bad.argmax()])[0] % len(model.graph)
    nodes = inside[inside < model.num_own]
    size = f"the component of node {nodes[0]} ({len(nodes)} nodes)"
    reason = (
        f"{size} has no labelling without forbidden states or combinations."
        if proved
        else f"no labelling without forbidden states or combinations was found for {size}; there may be one. It is "
        "too wide to be solved exactly, and the search reached its limit."
    )
    return InfeasibleError(
        f"decode: {reason} Relax a clamped label or a forbidden combination there.", nodes.tolist(), proved
    )
