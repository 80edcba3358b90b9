"""A short form of the attack on the readers, and checks that the attack can fail."""

import pytest
from attack import mutated_files
from attack.mutated_files import run_guarded, run_mutations


def test_damaged_files_are_refused_or_read_as_a_valid_graph():
    failures, refused = run_mutations(150, seed=0)
    assert not failures, "\n".join(map(str, failures))
    assert refused >= 100, "most files are valid after all: this test shows nothing"


def test_other_errors_are_failures_that_can_be_repeated(monkeypatch):
    def fail(reader, folder, path):
        raise KeyError("not an error of Accord")

    monkeypatch.setattr(mutated_files, "_read", fail)
    failures, refused = run_mutations(5, seed=3, first=7)
    assert refused == 0 and [failure.number for failure in failures] == [7, 8, 9, 10, 11]
    assert "seed 3, case 7" in str(failures[0]) and "KeyError" in str(failures[0])


def test_an_invalid_graph_is_a_failure(monkeypatch):
    whole = mutated_files._read

    def invalid(reader, folder, path):
        graphs = whole(reader, folder, path)
        for graph in graphs:
            graph.x[0, 0] = float("nan")
        return graphs

    monkeypatch.setattr(mutated_files, "_read", invalid)
    failures, refused = run_mutations(60, seed=0)
    assert failures and len(failures) + refused == 60
    assert all("AssertionError: x" in str(failure) for failure in failures)


@pytest.mark.parametrize("code", [-11, 1, "a hang"])
def test_a_crash_is_traced_to_its_case(monkeypatch, code):
    def crash(arguments, seconds):
        _, count, _, _, _, first = arguments
        holds = int(first) <= 5 < int(first) + int(count)
        return (code, "") if holds else (0, f"{count} files, {count} refused, 0 failures\n")

    monkeypatch.setattr(mutated_files, "_run_process", crash)
    assert run_guarded(20, seed=1, chunk=8) == ([f"seed 1, case 5: the process ended with {code}"], 19)
