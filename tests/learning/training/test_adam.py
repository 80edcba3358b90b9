"""Adam with a rate for each replica equals torch's Adam on each replica alone."""

import pytest
import torch
from torch.nn import Parameter
from torch.testing import assert_close

from accord.learning.training import ReplicaAdam
from accord.learning.training._checkpoint import flatten_optimiser, restore_optimiser

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def train(parameters, optimiser, target):
    for _ in range(20):
        optimiser.zero_grad()
        sum(((p - t).square() * (p + 2)).sum() for p, t in zip(parameters, target, strict=True)).backward()
        optimiser.step()


def test_every_replica_equals_torchs_adam():
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


def equations(parameter, gradients, lr, decay, betas=(0.9, 0.999), eps=1e-8):
    """Adam on one tensor, in float64."""
    value = parameter.double()
    mean, square = torch.zeros_like(value), torch.zeros_like(value)
    for step, gradient in enumerate(gradients, 1):
        gradient = gradient.double() + decay * value
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient.square()
        value = value - lr * (mean / (1 - betas[0] ** step)) / ((square / (1 - betas[1] ** step)).sqrt() + eps)
    return value


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
@pytest.mark.parametrize("decay", [0.0, 1e-2])
@pytest.mark.parametrize("each", [False, True])
def test_fused_and_plain_follow_the_equations(each, decay, device):
    """One rate for all goes through torch's fused kernel, one for each replica through the plain version."""
    generator = torch.Generator().manual_seed(1)
    start = [torch.randn(3, 41, generator=generator), torch.randn(3, 2, 2, generator=generator)]
    gradients = [[torch.randn(value.shape, generator=generator) for _ in range(25)] for value in start]
    parameters = [Parameter(value.clone().to(device)) for value in start]
    rate = torch.full((3,), 3e-2) if each else 3e-2
    optimiser = ReplicaAdam(parameters, rate, torch.full((3,), decay) if each else decay)
    for number in range(25):
        for parameter, own in zip(parameters, gradients, strict=True):
            parameter.grad = own[number].to(device)
        optimiser.step()
    for parameter, value, own in zip(parameters, start, gradients, strict=True):
        assert_close(parameter.detach().cpu(), equations(value, own, 3e-2, decay).float(), rtol=1e-6, atol=1e-6)


def test_state_is_restored_from_old_and_new_checkpoints():
    """Old checkpoints hold the number of steps in float64, on the CPU."""
    start = torch.randn(2, 5, generator=torch.Generator().manual_seed(2))
    whole, half = Parameter(start.clone()), Parameter(start.clone())
    train([whole], through := ReplicaAdam([whole], 1e-2), [torch.ones(2, 5)])
    train([whole], through, [torch.ones(2, 5)])
    train([half], first := ReplicaAdam([half], 1e-2), [torch.ones(2, 5)])
    saved = {name: value.clone() for name, value in flatten_optimiser(first).items()}
    assert set(saved) == {"0.step", "0.mean", "0.square"}
    saved["0.step"] = saved["0.step"].double()
    restore_optimiser(second := ReplicaAdam([half], 1e-2), saved)
    train([half], second, [torch.ones(2, 5)])
    assert torch.equal(half, whole)


def test_remaining_replicas_are_not_changed_by_those_that_leave():
    start = torch.randn(3, 4, generator=torch.Generator().manual_seed(3))
    rates = torch.tensor([1e-2, 1e-1, 3e-3])
    whole, cut = Parameter(start.clone()), Parameter(start.clone())
    optimisers = ReplicaAdam([whole], rates), ReplicaAdam([cut], rates)
    for parameter, optimiser in zip((whole, cut), optimisers, strict=True):
        train([parameter], optimiser, [torch.zeros(3, 4)])
    cut.grad, cut.data = None, cut.data[[0, 2]]
    optimisers[1].keep(torch.tensor([0, 2]))
    for parameter, optimiser in zip((whole, cut), optimisers, strict=True):
        train([parameter], optimiser, [torch.zeros_like(parameter)])
    assert torch.equal(cut, whole[[0, 2]])
