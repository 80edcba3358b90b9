import gzip
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from conftest import require_file
from field.files.model_files import SMALL, all_labels, any_fields, factor_fields, small_score
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import fields

import accord
from accord import AtMostOneFactors, FactorField, OrFactors, PairwiseField, PottsFactors, read_uai, write_uai
from accord.errors import AccordError, DataNotFoundError, FieldError, InputTypeError, TooLargeError
from accord.field.factors import RaggedField
from accord.field.files import read_map
from accord.field.files._numbers import Numbers
from accord.field.files._uai import HEADERS, _read_tables


def written(folder, text, name="model.uai"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_example_of_the_format(tmp_path):
    field = read_uai(written(tmp_path, SMALL))
    assert isinstance(field, RaggedField) and field.states.tolist() == [2, 2, 3]
    labels = all_labels(field)
    torch.testing.assert_close(field.score(labels)[:, 0], small_score(labels))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", " "),
        lambda text: text.replace(" ", "\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n\t"),
        lambda text: text.replace("MARKOV", "bayes"),
        lambda text: "\n# first\n" + text.replace("4\n", "4 # entries, 17 of them\n"),
        lambda text: "\ufeff" + text,
        lambda text: gzip.compress(text.encode()),
    ],
)
def test_the_layout_of_the_text_does_not_matter(change, tmp_path):
    field = read_uai(written(tmp_path, change(SMALL)))
    labels = all_labels(field)
    torch.testing.assert_close(field.score(labels)[:, 0], small_score(labels))


def test_the_narrowest_kind_is_returned(tmp_path):
    def kind(states, scopes):
        sizes = [int(np.prod([states[v] for v in scope])) for scope in scopes]
        lines = ["MARKOV", len(states), *states, len(scopes)]
        lines += [f"{len(scope)} {' '.join(map(str, scope))}" for scope in scopes]
        lines += [f"{size} {'1 ' * size}" for size in sizes]
        return type(read_uai(written(tmp_path, "\n".join(map(str, lines)))))

    assert kind([2, 2], [[0, 1]]) is PairwiseField
    assert kind([2, 2], []) is PairwiseField
    assert kind([2, 3], [[0, 1]]) is RaggedField
    assert kind([2, 3], [[1]]) is RaggedField
    assert kind([2, 2, 2], [[0, 1], [0, 1, 2]]) is FactorField


def test_tables_of_the_same_variables_are_added(tmp_path):
    text = "MARKOV 2  2 2  6  2 0 1  2 1 0  1 0  1 0  0  0  4 1 2 3 4  4 5 6 7 8  2 2 3  2 5 7  1 0.5  1 3"
    field = read_uai(written(tmp_path, text))
    assert isinstance(field, PairwiseField) and field.num_edges == 1
    expected = torch.tensor([[1.0, 2], [3, 4]]) * torch.tensor([[5.0, 7], [6, 8]])
    expected = (expected * torch.tensor([[10.0], [21]]) * 1.5).double().log()
    torch.testing.assert_close(field.score(all_labels(field))[:, 0].reshape(2, 2), expected)


def test_larger_factors_keep_their_variables_in_order(tmp_path):
    values = torch.arange(1.0, 13, dtype=torch.float64).reshape(3, 2, 2)
    text = "MARKOV 3  2 3 2  2  3 1 0 2  2 1 0  12 " + " ".join(map(str, values.flatten().tolist())) + " 6 1 2 3 4 5 6"
    field = read_uai(written(tmp_path, text))
    pair = torch.arange(1.0, 7, dtype=torch.float64).reshape(3, 2)
    labels = all_labels(field)
    one, two, three = labels.unbind(1)
    torch.testing.assert_close(field.score(labels)[:, 0], (values[two, one, three] * pair[two, one]).log())


@given(field=any_fields, suffix=st.sampled_from([".uai", ".uai.gz"]))
def test_what_is_written_is_read_with_the_same_scores(field, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("uai") / f"model{suffix}"
    write_uai(field, path)
    labels = all_labels(field)
    again = read_uai(path)
    torch.testing.assert_close(again.score(labels), field.score(labels).reshape(-1, 1))
    write_uai(again, path)
    torch.testing.assert_close(read_uai(path).score(labels), again.score(labels))


@given(field=factor_fields(scale=120.0), level=st.sampled_from([-5000.0, 0.0, 900.0]))
def test_potentials_beyond_the_range_of_numbers_keep_their_scores(field, level, tmp_path_factory):
    path = tmp_path_factory.mktemp("uai") / "model.uai"
    field = field.with_potentials(node=field.node + level)
    write_uai(field, path)
    labels = all_labels(field)
    torch.testing.assert_close(read_uai(path).score(labels), field.score(labels))


def test_a_batch_becomes_one_model(tmp_path):
    field = PairwiseField(torch.tensor([[0], [1]]), torch.randn(3, 2), torch.randn(1, 2, 2), torch.tensor([0, 0, 1]))
    write_uai(field, tmp_path / "model.uai")
    labels = all_labels(field)
    expected = field.score(labels).sum(1, keepdim=True).double()
    torch.testing.assert_close(read_uai(tmp_path / "model.uai").score(labels), expected, rtol=1e-5, atol=1e-5)


def test_rules_become_tables(tmp_path):
    node = torch.randn(5, 2, dtype=torch.float64)
    rules = [OrFactors(torch.tensor([[4, 0, 2]])), AtMostOneFactors(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))]
    field = FactorField(node, [*rules, PottsFactors(torch.tensor([[0, 3, 1], [2, 1, 4]]), torch.tensor([0.5, -2]), 2)])
    write_uai(field, tmp_path / "model.uai")
    again = read_uai(tmp_path / "model.uai")
    assert again.num_nodes == 5
    torch.testing.assert_close(again.score(all_labels(field)), field.score(all_labels(field)))


def test_large_rules_become_chains(tmp_path):
    field = FactorField(torch.zeros(20, 2), [AtMostOneFactors(torch.arange(20)[None])])
    write_uai(field, tmp_path / "model.uai")
    again = read_uai(tmp_path / "model.uai")
    assert again.num_nodes == 39 and again.states.tolist() == [2] * 39
    none = torch.zeros(39, dtype=torch.long)
    assert float(again.score(none)) == 0.0
    none[[3, 5]] = 1
    assert float(again.score(none)) == -torch.inf


def test_evidence_is_clamped(tmp_path):
    path = written(tmp_path, SMALL)
    evid = written(tmp_path, "1 1 0", "model.evid")
    for evidence in (evid, str(evid), {1: 0}):
        field = read_uai(path, evidence)
        labels = all_labels(field)
        expected = small_score(labels).where(labels[:, 1] == 0, -torch.inf)
        torch.testing.assert_close(field.score(labels)[:, 0], expected)


FAULTS = {
    "header": (lambda t: t.replace("MARKOV", "MARKUP"), "begins with 'MARKUP', but the first word must be MARKOV"),
    "empty": (lambda t: "", "is empty"),
    "binary": (lambda t: bytes(range(256)), "begins with"),
    "nothing after the header": (lambda t: "MARKOV", "ends after 0 numbers, before the number of variables"),
    "word": (lambda t: t.replace("3.75", "abc"), "line 13: holds 'abc.*' where a number is needed"),
    "two numbers in one": (lambda t: t.replace("3.7500", "3-7500"), "line 13: holds '3-7500'"),
    "nan": (lambda t: t.replace("2.2500", "nan"), "line 13: holds nan, which is no finite number"),
    "infinity": (lambda t: t.replace("2.2500", "1e999"), "line 13: holds 1e999, which is no finite number"),
    "negative": (lambda t: t.replace("2.2500", "-2.25"), "line 13: holds -2.25, but tables hold no negative"),
    "cut off": (lambda t: t[:-6], "ends after 22 numbers, before the end of the table of factor 1 of 2"),
    "cut off in scopes": (lambda t: t[:21], "ends after"),
    "more": (lambda t: t + " 1 2", "line 15: 2 numbers follow the last one"),
    "variable out of range": (lambda t: t.replace("2 1 2", "2 1 3", 1), "line 6: factor 1 names variable 3"),
    "variable twice": (lambda t: t.replace("2 1 2\n", "2 1 1\n", 1), "line 6: factor 1 names a variable twice"),
    "fraction": (lambda t: t.replace("2 0 1", "2 0.5 1"), "line 5: holds 0.5, but a whole number"),
    "negative count": (lambda t: t.replace("2 2 3", "2 -2 3"), "line 3: holds -2, but a whole number"),
    "no states": (lambda t: t.replace("2 2 3", "2 0 3"), "line 3: variable 1 has no states"),
    "no variables": (lambda t: "MARKOV 0 0", "has no variables"),
    "wrong size": (lambda t: t.replace("\n4\n", "\n5\n"), "line 8: the table of factor 0 should have 4 entries"),
    "missing entry": (lambda t: t.replace(" 0.000\n", "\n"), "line 13: the table of factor 1 should have 6 entries"),
    "many factors": (lambda t: "MARKOV 1 2 1000000000000", "ends after 3 numbers, before the variables of 10+ factors"),
    "large table": (lambda t: "MARKOV 40" + " 10" * 40 + " 1 40 " + " ".join(map(str, range(40))) + " 1 1", "entries"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named_with_their_place(name, tmp_path):
    change, message = FAULTS[name]
    with pytest.raises(FieldError, match=message) as error:
        read_uai(written(tmp_path, change(SMALL)))
    assert str(error.value).startswith(str(tmp_path / "model.uai"))


def test_absurd_sizes_are_refused_before_memory_is_taken(tmp_path):
    with pytest.raises(TooLargeError, match="1 variables of up to 1000000000000 states"):
        read_uai(written(tmp_path, "MARKOV 1 1000000000000 0"))
    with pytest.raises(TooLargeError, match="model.uai: 2 variables"):
        read_uai(written(tmp_path, "MARKOV 2 1000000000000 2 0"))


def test_files_that_are_no_files(tmp_path):
    with pytest.raises(DataNotFoundError, match="none.uai: no such file"):
        read_uai(tmp_path / "none.uai")
    with pytest.raises(FieldError, match="is not a regular file"):
        read_uai(tmp_path)
    with pytest.raises(FieldError, match="is not compressed with gzip"):
        read_uai(written(tmp_path, SMALL, "model.uai.gz"))
    with pytest.raises(FieldError, match="cannot be decompressed"):
        read_uai(written(tmp_path, gzip.compress(SMALL.encode())[:-20], "model.uai.gz"))
    with pytest.raises(InputTypeError, match="path: is a int"):
        read_uai(3)
    os.mkfifo(tmp_path / "pipe.uai")
    with pytest.raises(FieldError, match="is not a regular file"):
        read_uai(tmp_path / "pipe.uai")


@given(data=st.data())
def test_damaged_files_give_a_field_or_an_error_of_accord(data, tmp_path_factory):
    content = bytearray(SMALL.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        piece = data.draw(
            st.sampled_from([b"", b"9", b"-", b".", b" ", b"e9", b"nan", b"\0", b"99999999999", b"\xff#"])
        )
        content[place : place + data.draw(st.integers(0, 3))] = piece
    path = tmp_path_factory.mktemp("uai") / "model.uai"
    path.write_bytes(content)
    try:
        field = read_uai(path)
    except AccordError as error:
        assert str(error).startswith(str(path))
    else:
        assert not bool(field.node.isnan().any())


@given(st.binary(max_size=300), st.sampled_from([b"", b"MARKOV ", b"BAYES 2 2 2 1 "]))
def test_junk_gives_an_error_of_accord(junk, begin):
    try:
        _read_tables(Numbers(Path("junk.uai"), begin + junk, HEADERS))
    except AccordError as error:
        assert str(error).startswith("junk.uai")


@pytest.mark.parametrize(
    "field, message",
    [
        (PairwiseField(torch.empty(2, 0).long(), torch.zeros(2, 3, 2), torch.zeros(0, 2, 2)), "has replicas"),
        (PairwiseField(torch.empty(2, 0).long(), torch.tensor([[0.0, -2000]]), torch.zeros(0, 2, 2)), "1400 at most"),
        (PairwiseField(torch.empty(2, 0).long(), torch.full((1, 2), 1e30), torch.zeros(0, 2, 2)), "more than the file"),
        (PairwiseField(torch.empty(2, 0).long(), torch.zeros(0, 2), torch.zeros(0, 2, 2)), "no variables"),
    ],
)
def test_fields_that_cannot_be_written(field, message, tmp_path):
    with pytest.raises(FieldError, match=message):
        write_uai(field, tmp_path / "model.uai")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputTypeError, match="not a PairwiseField or FactorField"):
        write_uai("field", tmp_path / "model.uai")


@given(fields(replicas=((),)))
def test_log_partition_is_that_of_the_file(field):
    with TemporaryDirectory() as folder:
        write_uai(field, Path(folder) / "model.uai")
        again = read_uai(Path(folder) / "model.uai")
    ours, theirs = accord.enumerate_beliefs(field), accord.enumerate_beliefs(again)
    torch.testing.assert_close(ours.log_partition, theirs.log_partition)
    torch.testing.assert_close(ours.node, theirs.node)


@pytest.mark.data("uai/map_Segmentation_17.uai.gz")
def test_large_files_are_read_quickly():
    path = require_file("uai/map_Segmentation_17.uai.gz")
    read_uai(path)
    begun = time.process_time()
    field = read_uai(path)
    assert time.process_time() - begun < 3.0  # 0.3 s on an idle machine
    assert isinstance(field, PairwiseField) and field.num_states == 21


@pytest.mark.data("uai/map_Promedas_52.uai.gz", "uai/map_Promedas_52.MAP")
def test_a_model_of_the_competition_and_its_labels(tmp_path):
    field = read_uai(require_file("uai/map_Promedas_52.uai.gz"))
    labels = read_map(require_file("uai/map_Promedas_52.MAP"))
    assert isinstance(field, FactorField) and float(field.score(labels)) == pytest.approx(-24.832, abs=1e-3)
    write_uai(field, tmp_path / "again.uai.gz")
    draws = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (20, field.num_nodes)))
    torch.testing.assert_close(read_uai(tmp_path / "again.uai.gz").score(draws), field.score(draws))
