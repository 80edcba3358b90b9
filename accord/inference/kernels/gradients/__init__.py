"""Gradients through message passing, whichever kernel passed the messages.

`_adjoint` differentiates a fixed point, `_unrolling` a given number of sweeps; `_propagation` chooses between them for
each replica and graph.
"""

from accord.inference.kernels.gradients._propagation import with_gradient

__all__ = ["with_gradient"]
