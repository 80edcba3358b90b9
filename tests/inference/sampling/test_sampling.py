"""Samples against exact probabilities, within five standard deviations and with fixed seeds."""

import pytest
import torch
from support.strategies import DTYPE, union

from accord import PairwiseField, enumerate_beliefs
from accord.errors import FieldError, InfeasibleError, InputTypeError, OptionError, TooLargeError
from accord.inference import eliminate_beliefs, sample_exact, sample_gibbs
from accord.inference.sampling._sampling import draw

LOOPY = torch.tensor([[0, 2, 2, 3, 5, 4, 6], [1, 1, 3, 0, 3, 5, 0]])  # a square with a tail, and a separate pair
SAMPLERS = [sample_exact, sample_gibbs]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def loopy_field(num_states=3, replicas=(), scale=0.8):
    generator = seeded(1)
    node = scale * torch.randn(*replicas, 7, num_states, generator=generator, dtype=DTYPE)
    edge = scale * torch.randn(*replicas, 7, num_states, num_states, generator=generator, dtype=DTYPE)
    return PairwiseField(LOOPY, node, edge)


def assert_frequencies(counted, probability, num_samples):
    """Frequencies are binomial: within five standard deviations, and zero where the probability is zero."""
    deviation = (probability * (1 - probability) / num_samples).sqrt()
    assert bool(((counted - probability).abs() <= 5 * deviation + 1e-12).all())


def assert_marginals(field, samples):
    """Node and edge frequencies of samples [samples, *replicas, nodes] against exact marginals."""
    exact = eliminate_beliefs(field)
    one_hot = torch.nn.functional.one_hot(samples, field.num_states).to(DTYPE)
    assert_frequencies(one_hot.mean(0), exact.node.exp(), len(samples))
    source, target = field.edge_index
    pairs = torch.einsum("m...ea,m...eb->...eab", one_hot[..., source, :], one_hot[..., target, :]) / len(samples)
    assert_frequencies(pairs, exact.edge.exp(), len(samples))


def test_exact_samples_follow_the_joint_distribution():
    field = loopy_field(num_states=2)
    samples = sample_exact(field, 50_000, generator=seeded())
    assert samples.shape == (50_000, 7) and samples.dtype == torch.long
    every = torch.cartesian_prod(*[torch.arange(2)] * 7)
    probability = (field.score(every)[:, 0] - enumerate_beliefs(field).log_partition).exp()
    number = (samples * 2 ** torch.arange(6, -1, -1)).sum(-1)
    assert_frequencies(torch.bincount(number, minlength=128) / len(samples), probability, len(samples))


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("replicas", [(), (2, 2)])
def test_marginals(sampler, replicas):
    field = loopy_field(replicas=replicas)
    samples = sampler(field, 20_000, generator=seeded(2))
    assert samples.shape == (20_000, *replicas, 7)
    assert_marginals(field, samples)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_forbidden_states_and_pairs_are_never_drawn(sampler):
    field = loopy_field().forbid([(0, 1)], edges=torch.tensor([0, 2, 4]), symmetric=False)
    field = field.clamp(torch.tensor([-1, -1, -1, -1, 2, -1, -1]))
    samples = sampler(field, 20_000, generator=seeded(3))
    assert bool(field.score(samples).isfinite().all())
    assert_marginals(field, samples)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_one_kind_of_replicas_and_batches(sampler):
    field = loopy_field(replicas=(2,))
    field = union([PairwiseField(LOOPY, field.node, field.edge), PairwiseField(LOOPY, field.node, field.edge)])
    field = field.with_potentials(node=field.node[0])
    samples = sampler(field, 10_000, generator=seeded(4))
    assert samples.shape == (10_000, 2, 14)
    assert_marginals(field, samples)


def test_exact_samples_of_a_long_chain():
    generator = seeded(5)
    node = torch.randn(2000, 3, generator=generator)
    edge = torch.randn(1999, 3, 3, generator=generator)
    field = PairwiseField(torch.stack([torch.arange(1999), torch.arange(1, 2000)]), node, edge)
    samples = sample_exact(field, 500, generator=generator)
    # Six thousand frequencies at once: the normal approximation holds for probabilities above a few per thousand.
    share = torch.nn.functional.one_hot(samples, 3).double().mean(0)
    probability = eliminate_beliefs(field).node.double().exp()
    likely = (probability > 0.02) & (probability < 0.98)
    deviation = (probability * (1 - probability) / 500).sqrt()
    assert bool(((share - probability).abs() <= 6 * deviation)[likely].all())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_samples_depend_on_the_generator_only(sampler):
    field = loopy_field(replicas=(2,))
    before = torch.random.get_rng_state()
    first, again = (sampler(field, 20, generator=seeded(6)) for _ in range(2))
    other = sampler(field, 20, generator=seeded(7))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(("num_nodes", "num_states"), [(0, 2), (3, 1), (3, 2)])
def test_no_edges(sampler, num_nodes, num_states):
    field = PairwiseField(
        torch.empty(2, 0, dtype=torch.long), torch.zeros(num_nodes, num_states), torch.zeros(0, num_states, num_states)
    )
    assert sampler(field, 5).shape == (5, num_nodes)


@pytest.mark.parametrize("uniform", [0.0, 1.0])  # both ends; 0.99999999 may round to 1
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_avoid_what_is_forbidden_at_both_ends(monkeypatch, uniform, dtype):
    monkeypatch.setattr(torch, "rand", lambda shape, **options: torch.full(shape, uniform, dtype=dtype))
    logits = torch.tensor([-torch.inf, -3.0, -torch.inf, 0.7, -torch.inf], dtype=dtype)
    assert draw(logits, None).item() == (1 if uniform == 0 else 3)


def test_gibbs_starts_from_given_labels():
    field = loopy_field(replicas=(2,))
    start = torch.randint(3, (4, 1, 7), generator=seeded(8))
    assert torch.equal(sample_gibbs(field, 4, sweeps=0, start=start), start.expand(4, 2, 7))
    assert torch.equal(sample_gibbs(field, 2, sweeps=0, start=start[0, 0])[1, 1], start[0, 0])


def test_gibbs_does_not_write_into_its_start():
    start = torch.zeros(7, dtype=torch.long)
    sample_gibbs(loopy_field(), 3, sweeps=5, start=start, generator=seeded())
    assert start.eq(0).all()


def test_gibbs_without_forbidden_pairs_starts_from_the_nodes_own_potentials():
    field = loopy_field()
    samples = sample_gibbs(field, 20_000, sweeps=0, generator=seeded(9))
    share = torch.nn.functional.one_hot(samples, 3).to(DTYPE).mean(0)
    assert_frequencies(share, field.node.softmax(-1), 20_000)


def test_gibbs_cannot_change_two_nodes_that_must_agree():
    # As documented: two nodes that must agree can never change one at a time. Exact samples have both labellings.
    field = PairwiseField(torch.tensor([[0], [1]]), torch.zeros(2, 2), torch.zeros(1, 2, 2)).forbid([(0, 1)])
    stuck = sample_gibbs(field, 50, sweeps=20, start=torch.tensor([1, 1]), generator=seeded())
    assert stuck.eq(1).all()
    assert 10 < int(sample_exact(field, 50, generator=seeded())[:, 0].sum()) < 40


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_infeasible_fields_are_refused(sampler):
    no_state = loopy_field().node.index_fill(0, torch.tensor([2]), -torch.inf)
    with pytest.raises(InfeasibleError):
        sampler(loopy_field().with_potentials(node=no_state))
    triangle = PairwiseField(torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.zeros(3, 2), torch.zeros(3, 2, 2))
    with pytest.raises(InfeasibleError):
        sampler(triangle.forbid([(0, 0), (1, 1)]))


def test_wide_graphs_are_refused_by_exact_sampling_only():
    edge_index = torch.combinations(torch.arange(30)).t()
    field = PairwiseField(edge_index, torch.zeros(30, 3), 0.01 * torch.eye(3).expand(edge_index.shape[1], 3, 3))
    with pytest.raises(TooLargeError, match="sample_exact: elimination meets a clique of"):
        sample_exact(field)
    assert sample_gibbs(field, 2, sweeps=3, generator=seeded()).shape == (2, 30)


@pytest.mark.parametrize(
    ("sampler", "options", "error", "words"),
    [
        (sample_exact, {"num_samples": 0}, OptionError, "num_samples is 0"),
        (sample_exact, {"num_samples": 2.0}, InputTypeError, "num_samples is a float"),
        (sample_exact, {"max_table": -1}, OptionError, "max_table"),
        (sample_exact, {"field": None}, InputTypeError, "PairwiseField"),
        (sample_gibbs, {"num_samples": -1}, OptionError, "num_samples is -1"),
        (sample_gibbs, {"sweeps": -1}, OptionError, "sweeps is -1"),
        (sample_gibbs, {"sweeps": True}, InputTypeError, "sweeps is a bool"),
        (sample_gibbs, {"field": None}, InputTypeError, "PairwiseField"),
        (sample_gibbs, {"start": torch.zeros(6, dtype=torch.long)}, FieldError, "does not broadcast"),
        (sample_gibbs, {"start": torch.full((7,), 3)}, FieldError, "labels run from 3"),
        (sample_gibbs, {"start": torch.zeros(7)}, InputTypeError, "start has dtype"),
        (sample_gibbs, {"start": [0] * 7}, InputTypeError, "start is a list"),
    ],
)
def test_bad_options(sampler, options, error, words):
    with pytest.raises(error, match=words):
        sampler(**{"field": loopy_field(), **options})


def test_a_forbidden_start_is_refused():
    field = loopy_field().forbid([(0, 0)])
    with pytest.raises(InfeasibleError, match="starts from are forbidden in graph 0"):
        sample_gibbs(field, start=torch.zeros(7, dtype=torch.long))
