"""The Triton kernel equals the reference: on a GPU if there is one, otherwise in Triton's interpreter.

The interpreter takes 50 us for every operation of a kernel, so problems are small and sweeps few.
"""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.kernel_cases import EXACT, SINGLE, assert_same, barred, problem_of, random_field
from support.matrix import matrix
from support.strategies import fields

from accord import PairwiseField, propagate
from accord._triton import jit, tl
from accord.errors import InfeasibleError
from accord.inference.kernels import KERNELS
from accord.inference.kernels.triton import _layout as _triton_layout
from accord.inference.kernels.triton import _plan as _triton_plan
from accord.inference.kernels.triton import _solve as _triton
from accord.inference.kernels.triton.device._kernels import share_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

pytestmark = [
    pytest.mark.skipif(_triton.unavailable() is not None, reason="Triton is not installed"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy's, on -inf and lanes that hold no edge
]


@pytest.fixture(params=["groups", "sweeps"])
def driver(request, monkeypatch):
    """Solve by one program for each group of small graphs, or by a launch for each sweep."""
    if request.param == "sweeps":
        monkeypatch.setattr(_triton_plan, "SMALL", (0, 0))
        monkeypatch.setattr(_triton, "CHECK_EVERY", 2)


@jit(do_not_specialize=["programs", "total"])
def last_share(found, programs, total):
    """The share of the last of many programs."""
    first, last = share_of(programs - 1, programs, total, 32)
    tl.store(found, first)
    tl.store(found + 1, last)


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def check(field, tolerances=EXACT, start=None, **options):
    if start is not None:
        options["start"] = start.to(DEVICE)
    assert_same(field.to(DEVICE), "triton", tolerances, **options)


def shuffled(field, seed=0):
    """The same graphs with nodes and edges in random order."""
    generator = torch.Generator().manual_seed(seed)
    node = torch.randperm(field.num_nodes, generator=generator)
    edge = torch.randperm(field.num_edges, generator=generator)
    index = node.argsort()[field.edge_index[:, edge]]
    return PairwiseField(index, field.node[..., node, :], field.edge[..., edge, :, :], field.graph[node])


# ---- equality with the reference


@settings(max_examples=10)
@given(
    field=fields(max_nodes=6, max_states=4, replicas=((), (2,))),
    damping=st.sampled_from([0.0, 0.3]),
    appearance=st.sampled_from([1.0, 0.6, "spanning"]),
    tolerance=st.sampled_from([0.0, 1e-3]),
    semiring=st.sampled_from(["sum", "max"]),
)
def test_same_as_reference(field, damping, appearance, tolerance, semiring):
    options = {"damping": damping, "edge_appearance": appearance, "tolerance": tolerance, "max_sweeps": 5}
    check(field, semiring=semiring, **options)


@settings(max_examples=8)
@given(
    field=fields(max_nodes=6, max_states=4, barred=0.1, replicas=((),)),
    damping=st.sampled_from([0.0, 0.3]),
    semiring=st.sampled_from(["sum", "max"]),
)
def test_same_with_forbidden_entries(field, damping, semiring):
    check(field, semiring=semiring, damping=damping, max_sweeps=5, tolerance=1e-4)


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [1, 2, 3, matrix(4), matrix(5), matrix(7)])
def test_same_for_few_states(driver, states, semiring):
    field = random_field(12, 20, states, lead=(2,), graphs=2)
    check(field, semiring=semiring, max_sweeps=3, tolerance=0.0)
    check(field.to(torch.float32), SINGLE, semiring=semiring, max_sweeps=2, tolerance=0.0, damping=0.2)


@pytest.mark.parametrize(("states", "semiring"), [(9, "sum"), (16, "max"), (17, "max"), (18, "sum")])
def test_same_for_many_states(states, semiring):
    check(random_field(5, 6, states), semiring=semiring, max_sweeps=2, tolerance=0.0)


@pytest.mark.skipif(DEVICE == "cpu", reason="takes minutes in the interpreter")
@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [10, 24, 31, 40, 64])
def test_same_for_many_states_on_a_gpu(driver, states, semiring):
    field = random_field(60, 150, states, lead=(2,), graphs=2)
    check(field, semiring=semiring, max_sweeps=8, tolerance=0.0)
    check(field.to(torch.float32), SINGLE, semiring=semiring, max_sweeps=8, tolerance=0.0)
    check(field.with_potentials(edge=barred(field.edge, 0.1 / states)), semiring=semiring, max_sweeps=8, damping=0.2)


@pytest.mark.parametrize("states", [2, 3, matrix(5)])
def test_same_for_wide_tables_and_forbidden_states(driver, states):
    options = {"max_sweeps": 3, "tolerance": 0.0}
    wide = random_field(9, 14, states, scale=250.0)
    check(wide, {"rtol": 0, "atol": 1e-8}, **options)
    check(wide.with_potentials(edge=barred(wide.edge, 0.03)), {"rtol": 0, "atol": 1e-8}, **options)
    moderate = random_field(9, 14, states)
    check(moderate.with_potentials(node=barred(moderate.node, 0.1)), damping=0.2, **options)
    check(moderate.with_potentials(node=barred(moderate.node, 0.1)), semiring="max", **options)


@pytest.mark.parametrize(("states", "semiring", "scale"), [(18, "max", 1.0), (18, "sum", 1.0), (3, "sum", 250.0)])
def test_padding_contributes_nothing(driver, states, semiring, scale):
    """Rows are padded to 32 or 4 states; potentials near -1,000 must still outweigh the padding."""
    field = random_field(5, 6, states, scale=scale)
    low = field.with_potentials(edge=field.edge - 1000.0)
    check(low, {"rtol": 0, "atol": 1e-8}, semiring=semiring, max_sweeps=2, tolerance=0.0)


@pytest.mark.parametrize("semiring", ["sum", "max"])
def test_two_states_by_ratios_at_the_extremes(driver, semiring):
    """Nearly certain nodes, tables that nearly forbid pairs, and messages to start from of large span."""
    options = {"semiring": semiring, "max_sweeps": 3, "tolerance": 0.0}
    field = random_field(9, 14, 2, lead=(2,))
    certain = field.with_potentials(node=1e4 * field.node)
    check(certain, **options)
    check(certain, damping=0.3, edge_appearance=0.7, **options)
    check(certain.to(torch.float32), {"rtol": 1e-6, "atol": 5e-3}, **options)  # float32 has steps of 1e-3 near 1e4
    steep = field.with_potentials(edge=500 * field.edge)
    check(steep, {"rtol": 0, "atol": 1e-8}, damping=0.3, **options)
    widest = field.with_potentials(edge=torch.tensor([[0.0, -1000.0], [-1000.0, -3.0]]).double().expand_as(field.edge))
    check(widest, **options)
    start = 300 * torch.randn(2, 28, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    check(field, start=start, **options)
    check(certain, start=start, damping=0.5, **options)


def test_ratios_are_for_two_states_without_infinities():
    """An infinite ratio cannot be subtracted from a total again, so one -inf anywhere means rows of two numbers."""
    problem = problem_of(random_field(6, 8, 2).to(DEVICE))
    start = torch.zeros(1, 16, 2, dtype=torch.float64, device=DEVICE)

    def form_of(**changed):
        return _triton_plan.make_plan(dataclasses.replace(problem, **changed)).form

    assert form_of().ratios and form_of(start=start).ratios
    for name, values in (("node", problem.node), ("edge", problem.edge), ("start", start)):
        fifth = torch.tensor(5, device=DEVICE)
        form = form_of(**{name: values.flatten().index_fill(0, fifth, -torch.inf).view_as(values)})
        assert not form.ratios and form.numbers == form.padded == 2
    assert not _triton_plan.make_plan(problem_of(random_field(6, 8, 3).to(DEVICE))).form.ratios


@pytest.mark.parametrize("states", [2, 3])
def test_forbidden_pairs_do_not_hide_unlikely_states(states):
    """The best state of the source excludes state 0 of the target, which only states e^-300 as likely allow."""
    node = torch.zeros(2, states)
    node[0, 1:] = -300.0
    edge = torch.zeros(1, states, states)
    edge[0, 0, 0] = -torch.inf
    field = PairwiseField(torch.tensor([[0], [1]]), node, edge)
    check(field, SINGLE, max_sweeps=3)
    assert float(propagate(field.to(DEVICE), backend="triton").messages[0, 0]) < -290


def test_graphs_of_a_batch_stop_one_by_one(driver):
    """Graphs that converge at different sweeps, in any order, one without edges: as if each were alone."""
    field = random_field(6 * 12, 7 * 12, 3, graphs=12, lead=(2,), scale=0.7)
    lone = PairwiseField(
        field.edge_index,
        torch.cat([field.node, field.node[:, :1]], 1),
        field.edge,
        torch.cat([field.graph, torch.tensor([12])]),
    )
    for each in (lone, shuffled(lone)):
        check(each, max_sweeps=9, tolerance=3e-2)
        beliefs = propagate(each.to(DEVICE), max_sweeps=9, tolerance=3e-2, backend="triton")
        assert len(beliefs.sweeps.unique()) > 2, "otherwise the test shows nothing"


@pytest.mark.skipif(DEVICE == "cpu", reason="takes minutes in the interpreter")
@pytest.mark.parametrize("states", [10, 20, 40])
def test_graphs_of_a_batch_stop_one_by_one_on_a_gpu(driver, states):
    """With many states a program is one warp, and there are more graphs than it has threads."""
    field = random_field(6 * 50, 7 * 50, states, graphs=50, scale=0.7)
    check(field, max_sweeps=30, tolerance=1e-6)
    check(shuffled(field), max_sweeps=30, tolerance=1e-6)


def test_nodes_and_graphs_may_outnumber_threads(driver):
    """Each program clears and counts its share, however few programs there are."""
    field = random_field(400, 30, 3, scale=0.7)
    check(field, max_sweeps=4, tolerance=0.0)
    graph = torch.arange(400) // 2
    sparse = PairwiseField(torch.tensor([[0, 4, 398], [1, 5, 399]]), field.node, field.edge[:3], graph)
    check(sparse, max_sweeps=5, tolerance=1e-6)
    beliefs = propagate(sparse.to(DEVICE), max_sweeps=5, tolerance=0.0, backend="triton")
    assert beliefs.sweeps.nonzero().flatten().tolist() == [0, 2, 199] and beliefs.sweeps.max() == 5


@pytest.mark.parametrize("programs", [2**26 + 1, 2**30 - 1])
def test_programs_without_work_have_an_empty_share(programs):
    """There are so many programs that the product of number and share exceeds 32 bits."""
    found = torch.zeros(2, dtype=torch.int32, device=DEVICE)
    last_share[(1,)](found, programs, 40)
    assert found.tolist() == [40, 40]


@pytest.mark.parametrize("states", [2, matrix(3)])
def test_node_beliefs_survive_sweeps_after_convergence(monkeypatch, states):
    """Replicas converge at different sweeps, and launches continue until the next check."""
    monkeypatch.setattr(_triton_plan, "SMALL", (0, 0))
    field = random_field(12, 20, states, lead=(5,), scale=0.5)
    scale = torch.tensor([0.0, 0.01, 0.1, 0.5, 1.0], dtype=torch.float64)[:, None, None, None]
    field = field.with_potentials(edge=field.edge * scale)
    sweeps = propagate(field.to(DEVICE), tolerance=0.05, backend="triton").sweeps.flatten().tolist()
    assert {number % 3 for number in sweeps} == {0, 1, 2} and min(sweeps) < max(sweeps) - 1
    check(field, tolerance=0.05)
    check(field.with_potentials(edge=barred(field.edge, 0.05)), tolerance=0.05)


@pytest.mark.parametrize(("states", "edges"), [matrix(2, 600), matrix(3, 140), (18, 3)])
def test_tables_may_have_any_strides(states, edges):
    """Shared by replicas, transposed, or with gaps between them; across the borders of blocks."""
    field = random_field(40, edges, states, lead=(2,), scale=0.5)
    shared = field.with_potentials(edge=field.edge[0])
    turned = field.with_potentials(edge=field.edge.mT)
    apart = field.with_potentials(edge=field.edge.repeat_interleave(2, 1)[:, ::2])
    strides = [problem_of(each).edge.stride() for each in (shared, turned, apart)]
    assert strides[0][0] == 0 and strides[1][-1] == states and strides[2][1] == 2 * states**2
    for each in (shared, turned, apart):
        check(each, max_sweeps=2, tolerance=0.0)
        check(each, max_sweeps=2, tolerance=0.0, semiring="max", edge_appearance=0.8)
        check(each.with_potentials(edge=each.edge * 100.0), {"rtol": 0, "atol": 1e-8}, max_sweeps=1, tolerance=0.0)


def test_graph_numbers_need_not_be_contiguous():
    field = random_field(24, 40, 3, graphs=4)
    apart = torch.stack([field.graph, field.graph], 1)[:, 0]
    assert not apart.is_contiguous()
    check(PairwiseField(field.edge_index, field.node, field.edge, apart, 4), max_sweeps=2, tolerance=0.0)


def test_same_on_more_than_one_block(driver):
    field = random_field(150, 300, 2, scale=0.5)
    generator = torch.Generator().manual_seed(1)
    appearance = torch.rand(field.num_edges, dtype=torch.float64, generator=generator) * 0.5 + 0.5
    check(field, damping=0.4, edge_appearance=appearance.to(DEVICE), max_sweeps=4, tolerance=0.1)


@pytest.mark.parametrize("states", [2, matrix(3), matrix(18)])
def test_indices_of_large_graphs_are_not_copied(monkeypatch, states):
    for module, name, value in ((_triton_plan, "SMALL", (0, 0)), (_triton_layout, "LARGE", 14)):
        monkeypatch.setattr(module, name, value)
    if states > _triton_layout.FEW:
        memory = _triton_plan.make_plan(problem_of(random_field(9, 14, states).to(DEVICE))).memory
        assert memory.source.dtype == torch.int32, "with many states, a copy of the indices takes little memory"
        monkeypatch.setattr(_triton_layout, "FEW", states)
    field = random_field(9, 14, states)
    on_device = field.to(DEVICE)
    memory = _triton_plan.make_plan(problem_of(on_device)).memory
    assert memory.source.data_ptr() == on_device.edge_index.data_ptr() and memory.target.dtype == torch.long
    for semiring in ("sum", "max"):
        check(field, semiring=semiring, max_sweeps=3, tolerance=0.0)
    check(field.with_potentials(edge=barred(field.edge, 0.02)), max_sweeps=3, tolerance=0.0)
    by_columns = field.edge_index.t().contiguous().t()
    check(PairwiseField(by_columns, field.node, field.edge), max_sweeps=3, tolerance=0.0)
    odd = PairwiseField(by_columns[:, 1:], field.node, field.edge[1:])
    monkeypatch.setattr(_triton_layout, "LARGE", 13)
    check(odd, max_sweeps=3, tolerance=0.0)


def test_limits_of_sweeps_and_tolerance(driver):
    """As many sweeps as 32 bits can count, and tolerances outside the range of float32."""
    tree = random_field(3, 2, 3, dtype=torch.float32)
    for max_sweeps in (2**31 - 3, 2**31 - 2, 2**31 - 1):
        check(tree, SINGLE, max_sweeps=max_sweeps, tolerance=1e-3)
    check(tree, SINGLE, max_sweeps=5, tolerance=1e39)
    # Sums of integers are exact in any order, so messages converge to the bit.
    whole = tree.with_potentials(node=tree.node.mul(4).round(), edge=tree.edge.mul(4).round())
    check(whole, SINGLE, semiring="max", max_sweeps=5, tolerance=1e-60)


@pytest.mark.parametrize(
    ("states", "semiring"),
    [(2, "sum"), matrix(2, "max"), matrix(3, "sum"), (3, "max"), matrix(5, "sum"), matrix(5, "max")],
)
def test_edges_of_the_same_source_are_added_up_first(monkeypatch, states, semiring):
    """In the given order if that is by source, otherwise sorted; across blocks, in batches and replicas."""
    for name, value in {"SMALL": (0, 0), "RUNS": (1, 1), "SORTED_SWEEPS": 2}.items():
        monkeypatch.setattr(_triton_plan, name, value)
    options = {"semiring": semiring, "tolerance": 0.0}
    field = random_field(30, 280, states, lead=(2,), graphs=2, scale=0.5)
    order = field.edge_index[0].argsort()
    by_source = PairwiseField(field.edge_index[:, order], field.node, field.edge[:, order], field.graph)
    for each, sweeps in ((field, 3), (by_source, 1)):
        plan = _triton_plan.make_plan(dataclasses.replace(problem_of(each.to(DEVICE), **options), max_sweeps=sweeps))
        assert plan.form.runs and (plan.order is None) == (each is by_source)
        check(each, max_sweeps=sweeps, **options)
    check(field, max_sweeps=3, damping=0.2, edge_appearance=0.7, **options)
    check(field.with_potentials(edge=barred(field.edge, 0.01)), max_sweeps=3, **options)
    plan = _triton_plan.make_plan(dataclasses.replace(problem_of(field.to(DEVICE), **options), max_sweeps=1))
    assert not plan.form.runs, "a sort does not pay for a single sweep"
    monkeypatch.setattr(_triton_plan, "RUNS", (1, 100))
    for each in (field, by_source):
        plan = _triton_plan.make_plan(dataclasses.replace(problem_of(each.to(DEVICE), **options), max_sweeps=3))
        assert plan.form.runs == (each is by_source), "a sort does not pay with few edges per node"


@pytest.mark.skipif(DEVICE == "cpu", reason="takes minutes in the interpreter")
@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [2, 3, 10])
def test_same_on_one_large_graph_on_a_gpu(states, semiring):
    field = random_field(9000, 42000, states, scale=0.5)
    check(field, semiring=semiring, max_sweeps=3, tolerance=0.0)
    check(field.with_potentials(edge=barred(field.edge, 0.001)), semiring=semiring, max_sweeps=3, tolerance=0.0)
    star = torch.stack([torch.zeros(4200, dtype=torch.long), torch.arange(1, 4201)])
    node = torch.randn(4201, states, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    check(PairwiseField(star, node, field.edge[:4200]), semiring=semiring, max_sweeps=3, tolerance=0.0)


@pytest.mark.parametrize("states", [1, 2, 3])
def test_starts_and_no_sweeps(driver, states):
    field = random_field(8, 12, states, lead=(2,))
    start = torch.randn(2, 24, states, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for semiring in ("sum", "max"):
        check(field, semiring=semiring, max_sweeps=0)
        check(field, start=start, semiring=semiring, max_sweeps=0)
        check(field, start=start, semiring=semiring, max_sweeps=2, damping=0.5)
    batch = shuffled(random_field(12, 14, states, graphs=3))
    start = torch.randn(2 * batch.num_edges, states, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    check(batch, start=start, max_sweeps=2)


@pytest.mark.parametrize("states", [2, matrix(3)])
def test_deterministic_mode_gives_the_same_bits_every_time(driver, deterministic, states):
    """Messages are added in a fixed order."""
    field = random_field(60, 150, states, dtype=torch.float32, lead=(2,), graphs=2)
    check(field, SINGLE, max_sweeps=3, tolerance=0.0, edge_appearance=0.8)
    check(field.with_potentials(edge=barred(field.edge, 0.02)), SINGLE, max_sweeps=2, tolerance=0.0)
    runs = [propagate(field.to(DEVICE), max_sweeps=3, backend="triton").messages for _ in range(3)]
    assert torch.equal(runs[0], runs[1]) and torch.equal(runs[0], runs[2])


# ---- special cases


def test_graphs_without_edges():
    empty = PairwiseField(torch.empty(2, 0, dtype=torch.long), torch.zeros(3, 2), torch.empty(0, 2, 2)).to(DEVICE)
    beliefs = propagate(empty, backend="triton")
    assert beliefs.converged.tolist() == [True] and beliefs.sweeps.tolist() == [0]
    assert beliefs.messages.shape == (0, 2)


def test_contradictions_are_reported(driver):
    index, node, edge = torch.tensor([[0, 1], [1, 2]]), torch.zeros(3, 2), torch.zeros(2, 2, 2)
    edge[1] = -torch.inf
    with pytest.raises(InfeasibleError, match="no state is left for node [12] in graph 0"):
        propagate(PairwiseField(index, node, edge).to(DEVICE), max_sweeps=3, backend="triton")
    problem = problem_of(PairwiseField(index, node, torch.zeros_like(edge)).to(DEVICE))
    node[0] = -torch.inf  # `propagate` itself would refuse this, so the kernel is called directly
    with pytest.raises(InfeasibleError, match="no state is left for node 1 in graph 0"):
        KERNELS["triton"](dataclasses.replace(problem, node=node[None].to(DEVICE)))


def test_the_input_is_left_alone():
    field = random_field(8, 12, 3).to(DEVICE)
    node, edge = field.node.clone(), field.edge.clone()
    start = torch.zeros(24, 3, dtype=torch.float64, device=DEVICE)
    propagate(field, start=start, max_sweeps=2, backend="triton")
    assert torch.equal(field.node, node) and torch.equal(field.edge, edge) and not bool(start.any())
