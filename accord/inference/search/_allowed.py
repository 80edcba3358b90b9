"""Labels without forbidden states and pairs, by the compiled search with a fixed amount of work."""

import torch
from torch import Tensor

from accord.errors import InfeasibleError
from accord.field import PairwiseField
from accord.inference.search import _native
from accord.inference.search._fixed import PATIENCE, SEED, UNLIMITED, WAYS, WORK
from accord.inference.search._ragged import ragged


def search_allowed(field: PairwiseField, labels: Tensor) -> Tensor:
    """Labels [nodes] without forbidden states and pairs, improved, of a connected field with a single replica.

    Args:
        field: the field.
        labels: [nodes], from which the search begins; they may hold forbidden states and pairs.

    Raises:
        BuildError: there is no compiler.
        InfeasibleError: there is no such labelling (`proved`), or none was found.
    """
    _native.load()
    model = ragged(field)
    start = model.places(labels.cpu().numpy())
    found = _native.solve(model, UNLIMITED, SEED, work=WORK, ways=WAYS, start=start, patience=PATIENCE)
    proved = bool(found.infeasible.any())
    if proved or (found.labels < 0).any():
        reason = "there is no labelling without" if proved else "none was found without"
        raise InfeasibleError(f"decode: {reason} forbidden states or pairs.", proved=proved)
    return torch.from_numpy(model.labels(found.labels)).to(labels.device)
