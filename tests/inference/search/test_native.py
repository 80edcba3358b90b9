"""The C++ search: bounds and proofs of every method hold on thousands of small fields."""

import signal
import threading
import time

import numpy as np
import pytest
from inference.search_cases import colouring, glass, small_fields, transmitters
from support.strategies import union

from accord.inference import eliminate_beliefs
from accord.inference.search import _dual, _native, _reference
from accord.inference.search._ragged import ragged

ELIMINATION, GROUPS, SEARCH, BRANCHING = 1, 2, 4, 8


def by_graph(field, model, found):
    """Bounds, scores and whether they are proved, for each graph of a batch."""
    graph, count = field.graph.numpy(), field.num_graphs
    owner = graph[np.unique(found.component, return_index=True)[1]]
    bound = np.bincount(owner, weights=found.bound, minlength=count)
    proved = np.bincount(owner, weights=found.proof == 0, minlength=count) == 0
    return bound, model.scores(found.labels, graph, count), proved


@pytest.mark.parametrize(
    ("ways", "budget", "count"),
    [
        (ELIMINATION, 60.0, 2000),
        (0, 60.0, 2000),  # the dual alone
        (GROUPS, 60.0, 2000),
        (SEARCH, 60.0, 2000),
        (BRANCHING, 60.0, 2000),
        (GROUPS | BRANCHING, 60.0, 2000),  # guided by mini-buckets
        (GROUPS | SEARCH | BRANCHING, 1e-4, 500),  # time is up at once
    ],
)
def test_no_bound_is_below_the_optimum(ways, budget, count):
    """12,500 fields in all, half of them with forbidden states and pairs."""
    field = small_fields(count, seed=ways + 10)
    best = eliminate_beliefs(field, semiring="max").log_partition.numpy()
    slack = 1e-9 * (1 + np.abs(best))
    model = ragged(field)
    work = 0.0 if budget < 1 else 1e-4 if ways & BRANCHING else 1e-6  # 0: turns until the budget ends
    found = _native.solve(model, budget, seed=0, work=work, ways=ways)
    bound, score, proved = by_graph(field, model, found)
    assert (bound >= best - slack).all()
    assert (score <= best + slack).all()
    assert (score[proved] >= best[proved] - slack[proved]).all()
    assert not found.infeasible.any()
    if ways & (ELIMINATION | BRANCHING) and budget > 1:
        assert proved.mean() > 0.99
    if ways & SEARCH and budget > 1:
        assert (score >= best - slack).mean() > 0.9


def test_the_dual_equals_the_reference():
    """Without time for anything else, the kernel makes one iteration of the dual."""
    field = small_fields(40, seed=3, forbidden=0.0)
    model = ragged(field)
    found = _native.solve(model, budget=0.0, seed=0, ways=0)
    for name in range(len(found.bound)):
        nodes = np.nonzero(found.component == name)[0]
        edges = np.nonzero(found.component[model.home] == name)[0]
        dual = _dual.Dual(model.part(nodes, edges))
        dual.iterate()
        score = model.part(nodes, edges).scores(dual.labels, np.zeros(len(nodes), dtype=np.int64), 1)[0]
        np.testing.assert_allclose(found.bound[name], max(dual.bound, score), rtol=1e-9, atol=1e-9)
        assert (found.labels[nodes] == dual.labels).all()


def test_mini_buckets_tighten_the_bound_of_a_glass():
    model = ragged(glass(16))
    plain = _native.solve(model, 60.0, seed=0, work=1e-4, ways=0)
    grouped = _native.solve(model, 60.0, seed=0, work=1e-4, ways=GROUPS)
    assert grouped.bound[0] < 0.95 * plain.bound[0]


def test_annealing_settles_small_costs_beside_large_ones():
    field = transmitters(150, 1000, 16, seed=0)
    model = ragged(field)
    found = _native.solve(model, 60.0, seed=0, work=1.0, most=1.0, ways=SEARCH)
    score = model.scores(found.labels, field.graph.numpy(), 1)[0]
    assert score >= -80  # -126 if annealing ends at temperatures of large costs


def test_a_fixed_amount_of_work_is_repeatable():
    model = ragged(glass(20))
    one, two = (_native.solve(model, 60.0, seed=4, work=2e-5) for _ in range(2))
    assert (one.labels == two.labels).all() and (one.bound == two.bound).all()


def test_components_are_searched_independently():
    """To the bit: the work of one leaves no rounding in the limits of the next."""
    models = [ragged(part) for part in (glass(20), glass(18, seed=1), glass(19, seed=2, signs=False))]
    found = [_native.solve(model, 60.0, seed=4, work=2e-5, ways=5).labels for model in models]
    whole = ragged(union([glass(20), glass(18, seed=1), glass(19, seed=2, signs=False)]))
    assert (_native.solve(whole, 60.0, seed=4, work=2e-5, ways=5).labels == np.concatenate(found)).all()


def test_patience_finds_labels_where_one_turn_does_not():
    fields = [colouring(500, 4.5, seed) for seed in range(6)]
    short = [_native.solve(ragged(field), 60.0, seed=0, work=1e-6, ways=5).labels for field in fields]
    long = [_native.solve(ragged(field), 60.0, seed=0, work=1e-6, ways=5, patience=4.0).labels for field in fields]
    assert sum((labels >= 0).all() for labels in short) < 6, "or the test shows nothing"
    assert all((labels >= 0).all() for labels in long)


def test_reference_bounds_hold():
    field = small_fields(40, seed=9)
    best = eliminate_beliefs(field, semiring="max").log_partition.numpy()
    model = ragged(field)
    bound, score, proved = by_graph(field, model, _reference.solve(model, budget=1.0, seed=0))
    slack = 1e-9 * (1 + np.abs(best))
    assert (bound >= best - slack).all() and (score <= best + slack).all()
    assert (score[proved] >= best[proved] - slack[proved]).all() and proved.mean() > 0.5


def test_an_interrupt_ends_the_search():
    model = ragged(glass(24))
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    # A shell that starts the tests in the background has interrupts ignored, and they would stay so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        begun = time.monotonic()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            _native.solve(model, budget=60.0, seed=0)
        assert time.monotonic() - begun < 20
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
