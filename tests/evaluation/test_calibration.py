import pytest
import torch

from accord.evaluation import expected_calibration_error, reliability


def test_bins_of_the_reliability_diagram():
    probabilities = torch.tensor([[0.95, 0.05], [0.37, 0.63], [0.94, 0.06], [0.96, 0.04], [1.0, 0.0], [0.5, 0.5]])
    bins = reliability(probabilities, torch.tensor([0, 1, 0, 1, 0, -1]))
    assert bins.nodes == [1, 3, 1]  # a confidence of exactly 1 has a bin of its own
    assert bins.accuracy == pytest.approx([1.0, 2 / 3, 1.0])
    assert bins.confidence == pytest.approx([0.63, 0.95, 1.0])


@pytest.mark.parametrize("states", [2, 5])
@pytest.mark.parametrize("sharpness", [1.0, 4.0, 60.0])
def test_the_diagram_and_the_error_use_the_same_bins(states, sharpness):
    generator = torch.Generator().manual_seed(states)
    probabilities = (sharpness * torch.randn(400, states, generator=generator)).softmax(-1)
    truth = torch.randint(-1, states, (400,), generator=generator)
    bins = reliability(probabilities, truth)
    gaps = [abs(a - c) * n for a, c, n in zip(bins.accuracy, bins.confidence, bins.nodes, strict=True)]
    assert sum(gaps) / sum(bins.nodes) == pytest.approx(expected_calibration_error(probabilities, truth), abs=1e-6)
