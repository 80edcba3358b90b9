"""Calibration: two numbers fitted on validation labels."""

import math

import pytest
import torch

from accord.evaluation import calibrate, expected_calibration_error, fit_calibration, mean_log_likelihood

NODES, STATES = 4000, 3


def drawn(seed=0):
    """Log-probabilities that are right, and labels drawn from them."""
    generator = torch.Generator().manual_seed(seed)
    logs = (2 * torch.randn(1, NODES, STATES, generator=generator)).log_softmax(-1)
    return logs, torch.multinomial(logs[0].exp(), 1, generator=generator)[:, 0][None]


@pytest.mark.parametrize("temperature", [0.2, 1.0, 6.0])
def test_a_known_temperature_is_found(temperature):
    logs, truth = drawn()
    beliefs = (logs * temperature).log_softmax(-1)
    share, found = fit_calibration(beliefs, beliefs, truth)
    assert share.tolist() == [0.0]
    assert float(found) == pytest.approx(temperature, rel=0.08)
    fixed = calibrate(beliefs, beliefs, share, found)
    assert expected_calibration_error(fixed[0], truth[0]) < 0.02
    assert torch.equal(fixed.argmax(-1), beliefs.argmax(-1))


def test_beliefs_that_are_certain_of_what_is_wrong_are_left_to_the_evidence():
    evidence, truth = drawn()
    wrong = torch.rand(1, NODES, generator=torch.Generator().manual_seed(1)) < 0.5
    beliefs = torch.where(wrong[..., None], 20 * torch.randn(1, NODES, STATES), evidence).log_softmax(-1)
    share, temperature = fit_calibration(beliefs, evidence, truth)
    assert float(share) >= 0.8
    mixed = calibrate(beliefs, evidence, share, temperature).log()
    _, alone = fit_calibration(beliefs, beliefs, truth)
    cooled = calibrate(beliefs, beliefs, torch.zeros(1), alone).log()
    assert float(mean_log_likelihood(mixed, truth)) > float(mean_log_likelihood(cooled, truth)) + 0.05


def test_impossible_states_stay_impossible_and_few_labels_change_little():
    beliefs = torch.tensor([[[0.9, 0.1, 0.0], [0.3, 0.7, 0.0]]]).log()
    share, temperature = fit_calibration(beliefs, beliefs, torch.tensor([[2, -1]]))  # an impossible true label
    assert share.tolist() == [0.0] and float(temperature) == pytest.approx(1, abs=1e-3)
    share, temperature = fit_calibration(beliefs, beliefs, torch.tensor([[0, 1]]))
    assert 0.3 < float(temperature) < 1
    fixed = calibrate(beliefs, beliefs, torch.tensor([0.4]), torch.tensor([2.0]))
    assert fixed[..., 2].tolist() == [[0.0, 0.0]] and bool(fixed.isfinite().all())
    assert torch.equal(calibrate(beliefs, beliefs, torch.zeros(1), torch.ones(1)), beliefs.exp())


def test_replicas_are_calibrated_one_by_one():
    logs, truth = drawn()
    hot = torch.cat([(logs * 3).log_softmax(-1), logs, (logs / 3).log_softmax(-1)])
    _, found = fit_calibration(hot, hot, truth)
    assert [math.log(value) for value in found.tolist()] == pytest.approx([math.log(3), 0, -math.log(3)], abs=0.1)


def test_few_labels_do_not_make_probabilities_certain():
    """Thirty labels that happen to be right say little; three thousand that are right more often than expected do."""
    logs, truth = drawn()
    dull = (logs / 2).log_softmax(-1)
    lucky = (dull[0].argmax(-1) == truth[0]).nonzero().flatten()[:30]
    weight = torch.ones(1)
    _, eager = fit_calibration(dull[:, lucky], dull[:, lucky], truth[:, lucky])
    _, cautious = fit_calibration(dull[:, lucky], dull[:, lucky], truth[:, lucky], weight)
    assert float(eager) < 0.5 < 0.6 < float(cautious) < 1
    _, shown = fit_calibration(dull, dull, truth, weight)
    assert float(shown) == pytest.approx(0.5, rel=0.1)
    halved = dull * 0.5  # as a field holds them if the node network weighs half
    _, found = fit_calibration(halved[:, lucky], halved[:, lucky], truth[:, lucky], torch.tensor([0.5]))
    assert float(found) == pytest.approx(float(cautious) / 2, rel=0.02)


def test_beliefs_that_fail_on_denser_graphs_are_left_to_the_evidence():
    evidence, truth = drawn()
    better = 1.5 * torch.nn.functional.one_hot(truth, STATES) + evidence
    beliefs = better.log_softmax(-1)
    collapsed = torch.tensor([9.0, 0.0, 0.0]).expand_as(beliefs).log_softmax(-1)
    weight = torch.ones(1)
    assert float(fit_calibration(beliefs, evidence, truth, weight)[0]) == 0
    assert float(fit_calibration(beliefs, evidence, truth, weight, beliefs)[0]) == 0
    share, temperature = fit_calibration(beliefs, evidence, truth, weight, collapsed)
    assert float(share) == 1 and float(temperature) == pytest.approx(1, rel=0.1)


def test_beliefs_replace_the_evidence_only_where_labels_show_that_they_are_better():
    """The same beliefs, a little better than the evidence: forty labels do not show it, four thousand do."""
    evidence, truth = drawn()
    generator = torch.Generator().manual_seed(1)
    told = 0.2 * torch.nn.functional.one_hot(truth, STATES) + 0.4 * torch.randn(1, NODES, STATES, generator=generator)
    beliefs = (evidence + told).log_softmax(-1)
    weight = torch.ones(1)
    few = slice(0, 40)
    assert float(fit_calibration(beliefs[:, few], evidence[:, few], truth[:, few])[0]) < 1
    assert float(fit_calibration(beliefs[:, few], evidence[:, few], truth[:, few], weight)[0]) == 1
    assert float(fit_calibration(beliefs, evidence, truth, weight)[0]) < 0.9
    same, _ = fit_calibration(evidence, evidence, truth, weight)
    assert float(same) == 1
