"""Propagation on parts of a graph is propagation on the graph."""

import json
import multiprocessing
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.matrix import matrix

from accord.datasets import load_benchmark
from accord.distributed import cut_part, partition
from accord.errors import FieldError, OptionError
from accord.graphs import topology
from accord.inference import propagate
from accord.inference.decoding._decoding import decode
from tests.distributed.in_parts import run_in_parts
from tests.distributed.propagation_cases import (
    contradicted,
    grid,
    killed_midway,
    power_law,
    random_field,
    refused,
    repeated,
    solve_all,
)


def whole(parts, name):
    """What all processes found, in the order of nodes."""
    order = np.concatenate([part["nodes"] for part in parts]).argsort()
    return torch.from_numpy(np.concatenate([part[name] for part in parts])[order])


def check(field, parts, **options):
    one = propagate(field, **options)
    torch.testing.assert_close(whole(parts, "node"), one.node, rtol=1e-6, atol=1e-6, check_dtype=True)
    assert {part["sweeps"] for part in parts} == {int(one.sweeps)}
    assert {part["converged"] for part in parts} == {bool(one.converged)}
    for part in parts:  # with "max" the score of labels
        assert part["log_partition"] == pytest.approx(float(one.log_partition), rel=1e-6)
    labels = decode(field, one.node)  # parts are not searched where messages do not converge, see ADR 26
    assert torch.equal(whole(parts, "labels"), labels)


def cases():
    lattice, scale_free = grid(20), power_law(400, 3)
    for backend in ("native", "reference"):
        for states in (2, 5):
            for edges in (lattice, scale_free):
                field = random_field(edges, states)
                weights = torch.rand(field.num_edges, generator=torch.Generator().manual_seed(1)).double() * 0.5 + 0.5
                yield field, "hash", {"max_sweeps": 60, "backend": backend}
                yield field, "metis", {"damping": 0.3, "backend": backend, "tolerance": 1e-8}
                yield field, "metis", {"edge_appearance": weights, "backend": backend, "tolerance": 1e-8}
                yield field, "metis", {"semiring": "max", "damping": 0.5, "max_sweeps": 40, "backend": backend}
        barred = random_field(lattice, 3, barred=True)
        yield barred, "hash", {"backend": backend, "edge_appearance": 0.7, "tolerance": 1e-8}
        yield random_field(lattice, 3, torch.float32), "metis", {"backend": backend, "max_sweeps": 30, "tolerance": 0.0}


@pytest.mark.parametrize("ranks", [2, matrix(4)])
def test_parts_equal_the_whole(ranks):
    given = list(cases())
    found = run_in_parts(solve_all, ranks, given)
    for (field, _, options), parts in zip(given, zip(*found, strict=True), strict=True):
        check(field, parts, **options)
        assert {part["backend"] for part in parts} == {options["backend"]}


def test_nodes_of_many_edges():
    # More than 2048 edges: totals are added up in double precision, also where some come from another process.
    edges = torch.cat(
        [torch.stack([torch.zeros(5000, dtype=torch.long), torch.arange(1, 5001)]), grid(70)[:, 5000:]], 1
    )
    edges = torch.unique(edges, dim=1)
    field = random_field(edges, 3, torch.float32)
    options = {"max_sweeps": 12, "tolerance": 0.0}
    check(field, [found[0] for found in run_in_parts(solve_all, 2, [(field, "hash", options)])], **options)


def test_border_nodes_are_sent_once_to_each_process():
    field = random_field(grid(12), 3)
    for part in run_in_parts(solve_all, 2, [(field, "blocks", {})]):
        assert part[0]["bytes"] == part[0]["rows"] * 3 * 8
    forbidden = random_field(grid(12), 3, barred=True)
    for part in run_in_parts(solve_all, 2, [(forbidden, "blocks", {})]):
        assert part[0]["bytes"] == part[0]["rows"] * 6 * 8  # with numbers of infinities


def test_more_processes_than_nodes_with_edges():
    field = random_field(torch.tensor([[0], [1]]), 2)
    check(field, [found[0] for found in run_in_parts(solve_all, 4, [(field, "blocks", {})])])


@pytest.mark.data("planetoid_cora.npz")
@pytest.mark.parametrize("ranks", [2, matrix(4)])
def test_citation_graph(ranks):
    graph = load_benchmark("cora").train[0]
    field = random_field(topology(graph.edge_index, graph.num_nodes).edge_index, 7)
    weights = 0.5 + 0.5 * torch.rand(field.num_edges, generator=torch.Generator().manual_seed(1)).double()
    ways = [{"damping": 0.2, "tolerance": 1e-8}, {"edge_appearance": weights, "tolerance": 1e-8}]
    found = run_in_parts(solve_all, ranks, [(field, "metis", options) for options in ways])
    for options, parts in zip(ways, zip(*found, strict=True), strict=True):
        check(field, parts, **options)


@pytest.mark.parametrize(("ranks", "edges"), [(2, grid(20)), (4, power_law(400, 3))], ids=["grid", "power law"])
def test_a_killed_process_is_survived(tmp_path, ranks, edges):
    field, options = random_field(edges, 3), {"tolerance": 1e-10, "damping": 0.5}
    context = multiprocessing.get_context("forkserver")
    for attempt in ("first", "second"):  # the second one dies too, further on
        address = f"file://{tmp_path}/{attempt}"
        arguments = (ranks, address, field, str(tmp_path / "kept"), 2)
        started = [context.Process(target=killed_midway, args=(rank, *arguments)) for rank in range(ranks)]
        for process in started:
            process.start()
        for process in started:
            process.join(60)
        assert [process.exitcode for process in started] == [3, -9, 3, 3][:ranks]
    kept = options | {"checkpoint": str(tmp_path / "kept"), "every": 2}
    assert json.loads((tmp_path / "kept" / "complete.json").read_text())["sweep"] == 8  # twice two checkpoints
    check(field, [found[0] for found in run_in_parts(solve_all, ranks, [(field, "metis", kept)])], **options)


@pytest.mark.parametrize("method", ["hash", "metis", "blocks"])
def test_partitions_are_balanced(method):
    for nodes, parts in ((12, 4), (400, 3)):
        edges = grid(int(nodes**0.5)) if method == "metis" else torch.zeros(2, 0, dtype=torch.long)
        sizes = torch.bincount(partition(edges, nodes, parts, method), minlength=parts)
        assert sizes.max() - sizes.min() <= (1 if method != "metis" else 0.15 * nodes)


def test_wrong_input_is_refused():
    from accord.distributed import cut_field
    from accord.distributed import propagate as propagate_parts

    field = random_field(grid(4), 2)
    part = cut_part(field.edge_index, partition(field.edge_index, field.num_nodes, 2, "blocks"), 0, 2)
    with pytest.raises(FieldError, match="not those of the part"):
        propagate_parts(part, field)
    with pytest.raises(OptionError, match="'spanning' needs the whole graph"):
        propagate_parts(part, cut_field(field, part), edge_appearance="spanning")
    with pytest.raises(OptionError, match="every is 0"):
        propagate_parts(part, cut_field(field, part), every=0)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_what_one_process_finds_impossible_all_raise(backend):
    first, second = run_in_parts(contradicted, 2, backend)
    assert len(first) == len(second) == 2
    assert all("no state is left" in text for text in first)
    assert all(text.endswith("Relax one of them. (process 0)") for text in second)


def test_what_is_wrong_in_one_process_all_refuse(tmp_path):
    first, second = run_in_parts(refused, 2, tmp_path)
    wanted = {
        "field": ("FieldError", "not those of the part"),
        "options": ("OptionError", "every is 0"),
        "potentials": ("OptionError", "edge_appearance must lie in"),
        "folder": ("NotADirectoryError", "Not a directory"),
        "made apart": None,
        "made": None,
        "damaged": ("InputError", "not a checkpoint of Accord"),
        "not shared": ("InputError", "Give all processes a folder that they share"),
    }
    for name, found in wanted.items():
        if found is None:
            assert first[name] is second[name] is None
            continue
        for kind, text in (first[name], second[name]):
            assert kind == found[0] and found[1] in text, (name, text)
        assert "(process 1)" in first[name][1] and "(process 1)" not in second[name][1]
    for _, text in (first["bad marker"], second["bad marker"]):
        assert "is damaged" in text and "Delete the folder" in text


def test_a_finished_call_can_be_repeated(tmp_path):
    for found, kind, text in run_in_parts(repeated, 2, tmp_path):
        some, converged, whole = found
        assert some[0] == some[1] == some[2] and some[0][:2] == (6, False) and 0 < some[0][2] < torch.inf
        assert whole[0] == whole[1] == whole[2] and whole[0][0] == 6
        assert converged[1] == converged[2] and converged[1][:2] == converged[0][:2] and converged[0][1]
        assert kind == "OptionError" and "of sweep 6, but max_sweeps is 4. Use another folder, or allow 6" in text


def test_a_field_is_cut_on_its_device(monkeypatch):
    from accord.distributed.propagation import _propagate

    made = []
    monkeypatch.setattr(_propagate, "PairwiseField", lambda *tensors: made.extend(tensors))
    part = cut_part(torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 0, 1]), 0, 2)
    field = SimpleNamespace(node=torch.zeros(3, 2, device="meta"), edge=torch.zeros(2, 2, 2, device="meta"))
    _propagate.cut_field(field, part)
    assert [tensor.device.type for tensor in made] == ["meta"] * 3
