import pytest
import torch
from field.files.model_files import SMALL, SMALL_FG, all_labels, any_fields, small_score, states_of
from hypothesis import given
from hypothesis import strategies as st

from accord import read_fg, read_uai, write_fg, write_uai
from accord.errors import AccordError, FieldError, TooLargeError


def written(folder, text, name="model.fg"):
    path = folder / name
    path.write_text(text)
    return path


def test_the_first_variable_changes_fastest(tmp_path):
    field = read_fg(written(tmp_path, SMALL_FG))
    assert field.states.tolist() == [2, 2, 3]
    labels = all_labels(field)
    torch.testing.assert_close(field.score(labels)[:, 0], small_score(labels))


def test_both_formats_give_the_same_field(tmp_path):
    one = read_uai(written(tmp_path, SMALL, "model.uai"))
    two = read_fg(written(tmp_path, SMALL_FG), evidence={2: 0})
    labels = all_labels(one)
    expected = one.score(labels).where(labels[:, 2:] == 0, -torch.inf)
    torch.testing.assert_close(two.score(labels), expected)


@given(field=any_fields, suffix=st.sampled_from([".fg", ".fg.gz"]))
def test_what_is_written_is_read_with_the_same_scores(field, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("fg") / f"model{suffix}"
    write_fg(field, path)
    labels = all_labels(field)
    again = read_fg(path)
    assert states_of(again).tolist() == states_of(field).tolist()
    torch.testing.assert_close(again.score(labels), field.score(labels).reshape(-1, 1))
    write_uai(again, path.with_suffix(".uai"))
    torch.testing.assert_close(read_uai(path.with_suffix(".uai")).score(labels), again.score(labels))


def test_numbers_that_no_factor_names_get_one_state(tmp_path):
    field = read_fg(written(tmp_path, "2\n\n1\n3\n2\n2\n0 1\n1 3\n\n0\n\n\n1\n0 0.5\n"))
    assert states_of(field).tolist() == [1, 1, 1, 2]
    assert float(field.score(torch.tensor([0, 0, 0, 1]))) == pytest.approx(torch.tensor(1.5).log())


FAULTS = {
    "cut off": (SMALL_FG[:-3], "before the entries of factor 1"),
    "empty": ("", "ends after 0 numbers, before the number of factors"),
    "word": (SMALL_FG.replace("2.4", "x"), "line 10: holds 'x' where a number is needed"),
    "index out of range": (SMALL_FG.replace("5 10", "6 10"), "line 19: factor 1 has the entry 6 10, but an index of"),
    "negative value": (SMALL_FG.replace("2.4", "-2.4"), "line 10: factor 0 has the entry 2 -2.4, but tables hold no"),
    "variable twice": (SMALL_FG.replace("\n1 2\n", "\n1 1\n"), "line 12: factor 1 names a variable twice"),
    "other states": (
        SMALL_FG.replace("\n2 3\n", "\n4 3\n"),
        "variable 1 has 4 states in factor 1, but 2 in an earlier",
    ),
    "no states": (SMALL_FG.replace("\n2 3\n", "\n2 0\n"), "variable 2 of factor 1 has no states"),
    "far variable": (SMALL_FG.replace("\n1 2\n", "\n1 2000\n"), "names variable 2000. Number variables from 0"),
    "more": (SMALL_FG + "1", "line 20: 1 numbers follow"),
    "nothing": ("0", "has no variables"),
    "many factors": ("1000000000000 0", "ends after 2 numbers"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named_with_their_place(name, tmp_path):
    text, message = FAULTS[name]
    with pytest.raises(FieldError, match=message) as error:
        read_fg(written(tmp_path, text))
    assert str(error.value).startswith(str(tmp_path / "model.fg"))


def test_absurd_sizes_are_refused_before_memory_is_taken(tmp_path):
    with pytest.raises(TooLargeError, match=r"tables of 1e\+12 entries"):
        read_fg(written(tmp_path, "1  2  0 1  1000000 1000000  0"))


@given(data=st.data())
def test_damaged_files_give_a_field_or_an_error_of_accord(data, tmp_path_factory):
    content = bytearray(SMALL_FG.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        piece = data.draw(
            st.sampled_from([b"", b"9", b"-", b".", b" ", b"e9", b"nan", b"\0", b"99999999999", b"\xff#"])
        )
        content[place : place + data.draw(st.integers(0, 3))] = piece
    path = tmp_path_factory.mktemp("fg") / "model.fg"
    path.write_bytes(content)
    try:
        field = read_fg(path)
    except AccordError as error:
        assert str(error).startswith(str(path))
    else:
        assert not bool(field.node.isnan().any())
