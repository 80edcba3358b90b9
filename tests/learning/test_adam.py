"""Adam with a rate for each replica equals torch's Adam on each replica alone."""

import torch
from torch.nn import Parameter
from torch.testing import assert_close

from accord.learning import ReplicaAdam


def train(parameters, optimiser, target):
    for _ in range(20):
        optimiser.zero_grad()
        sum(((p - t).square() * (p + 2)).sum() for p, t in zip(parameters, target, strict=True)).backward()
        optimiser.step()


def test_every_replica_trains_as_if_alone():
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 4, 2, generator=generator), torch.randn(3, 5, generator=generator)]
    target = [torch.randn(3, 4, 2, generator=generator), torch.randn(3, 5, generator=generator)]
    rates, decays = torch.tensor([1e-2, 1e-1, 3e-3]), torch.tensor([0.0, 1e-2, 0.5])
    together = [Parameter(value.clone()) for value in start]
    train(together, ReplicaAdam(together, rates, decays), target)
    for r in range(3):
        alone = [Parameter(value[r].clone()) for value in start]
        own = torch.optim.Adam(alone, lr=float(rates[r]), weight_decay=float(decays[r]))
        train(alone, own, [value[r] for value in target])
        for ours, theirs in zip(together, alone, strict=True):
            assert_close(ours[r], theirs, rtol=1e-4, atol=1e-6)


def test_parameters_of_a_single_replica_take_its_rate():
    slow, fast = Parameter(torch.zeros(3)), Parameter(torch.zeros(3))
    slow.replica, fast.replica = 0, 1
    optimiser = ReplicaAdam([slow, fast], torch.tensor([1e-3, 1e-1]))
    (slow.sum() + fast.sum()).backward()
    optimiser.step()
    assert_close(slow, torch.full((3,), -1e-3), rtol=1e-4, atol=0)
    assert_close(fast, torch.full((3,), -1e-1), rtol=1e-4, atol=0)
