"""Calls that once ended the process: each gives the right result or an error, and the next call works."""

import pytest
from support.separate_process import run_separately

from accord.inference.kernels.cpu import _solve as _native

pytestmark = pytest.mark.skipif(_native.unavailable() is not None, reason="no compiled kernel")

FIELD = """
import os, resource, torch
from accord import PairwiseField, propagate
from accord._memory import is_out_of_memory
def chords(nodes, states, graphs=1):
    torch.manual_seed(0)
    first = torch.arange(nodes)
    each = nodes // graphs
    index = torch.cat([torch.stack([first, first // each * each + (first % each + step) % each]) for step in (1, 7)], 1)
    return PairwiseField(index, torch.randn(nodes, states), torch.randn(2 * nodes, states, states), first // each)
def run(field, **options):
    return propagate(field, max_sweeps=5, tolerance=0.0, backend="native", **options)
"""


def test_compiled_functions_give_the_beliefs_of_eager_ones():
    code = """
torch._logging.set_logs(dynamo=50, graph_breaks=False)
def beliefs(node, edge, index):
    field = PairwiseField(index, 2 * node, edge.mT)  # not contiguous: the kernel gets a copy
    return run(field).node.exp() + 1
compiled = torch.compile(beliefs, backend="eager")
field = chords(50_000, 3)
for scale in (1.0, 0.5):
    inputs = scale * field.node, scale * field.edge, field.edge_index
    assert torch.equal(compiled(*inputs), beliefs(*inputs))
def gradient(function):
    node = field.node.clone().requires_grad_()
    (field.node * function(node)).sum().backward()
    return node.grad
def loss(node):
    return propagate(field.with_potentials(node=node), max_sweeps=3).node
assert torch.equal(gradient(torch.compile(loss, backend="eager")), gradient(loss))
print("same")
"""
    assert run_separately(FIELD + code) == ["same"]


def test_fields_that_were_changed_or_resized_are_refused():
    code = """
def changed(change):
    field = chords(4000, 3, graphs=4)
    def work():
        change(field)
        return run(field).node.isfinite().all()
    return work
run(chords(40, 3))  # loads the kernel once, for all processes
def take_memory(tensor):
    tensor.untyped_storage().resize_(0)
for change in (
    lambda field: field.edge_index.mul_(10**9),
    lambda field: field.edge_index.sub_(10**9),
    lambda field: field.edge_index.numpy().__setitem__((0, 3), 10**12),
    lambda field: field.edge_index.numpy().__setitem__((1, 3), -(10**6)),
    lambda field: field.edge_index.numpy().__setitem__((1, 3), 3999),
    lambda field: field.edge_index.resize_(2, 10**6),
    lambda field: field.edge_index.resize_(2, 10),
    lambda field: field.node.resize_(10, 3),
    lambda field: field.node.set_(torch.zeros(5, 3)),
    lambda field: field.edge.resize_(10, 3, 3),
    lambda field: field.edge.set_(torch.zeros(1, 1, 1)),
    lambda field: setattr(field.edge, "data", torch.zeros(8, 3, 3)),
    lambda field: field.graph.add_(10**9),
    lambda field: field.graph.numpy().__setitem__(7, 3),
    lambda field: field.graph.numpy().__setitem__(7, 10**9),
    lambda field: field.edge[5].fill_(torch.nan),
    lambda field: take_memory(field.edge),
    lambda field: take_memory(field.edge_index),
):
    print(outcome(changed(change)))
"""
    found = run_separately(FIELD + code)
    assert len(found) == 18 and set(found) <= {"FieldError", "GraphError"}


def test_running_out_of_memory_is_an_error():
    code = """
torch.set_num_threads(3)
field = chords(125_000, 7)
field = field.forbid([(0, 0)], edges=torch.arange(5), symmetric=False)  # needs the kernel that takes most memory
expected = run(field).messages
def used():
    return int([line for line in open("/proc/self/status") if line.startswith("VmSize")][0].split()[1]) * 1024
failures = 0
for megabytes in range(10, 150, 10):
    resource.setrlimit(resource.RLIMIT_AS, (used() + megabytes * 2**20, resource.RLIM_INFINITY))
    found = expected
    try:
        found = run(field).messages
    except Exception as error:
        assert is_out_of_memory(error), error
        failures += "kernel" in str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    torch.testing.assert_close(found, expected)
torch.testing.assert_close(run(field).messages, expected)
print(failures > 0)
"""
    assert run_separately(FIELD + code) == ["True"]


def test_fewer_threads_solve_what_not_all_threads_can_be_started_for():
    """The system may refuse the first new thread, or a later one while those before it already run."""
    code = """
from pathlib import Path
torch.set_num_threads(4)
field = chords(140_000, 3)  # so many edges that threads sort them, too
expected = run(field).messages  # starts the threads of torch
if os.geteuid() == 0:
    os.setuid(65534)  # root may start any number
def owned():
    # Threads of this user, which is what the limit counts.
    total = 0
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            facts = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        except OSError:
            continue  # it has ended
        if int(facts["Uid"].split()[0]) == os.getuid():
            total += int(facts["Threads"])
    return total
_, hard = resource.getrlimit(resource.RLIMIT_NPROC)
for more in (-1, 0, 1, 2, 3):
    resource.setrlimit(resource.RLIMIT_NPROC, (owned() + more, hard))
    torch.testing.assert_close(run(field).messages, expected)
print("same")
"""
    assert run_separately(FIELD + code) == ["same"]
