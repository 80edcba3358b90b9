import pytest
import torch
from conftest import require_file
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import FieldError, InputTypeError
from accord.field.files import read_map, read_mar, read_pr, write_map, write_mar, write_pr


def test_files_look_as_those_of_the_competition(tmp_path):
    write_map(torch.tensor([1, 0, 2]), tmp_path / "a.MAP")
    assert (tmp_path / "a.MAP").read_text() == "MAP\n3 1 0 2\n"
    write_mar([torch.tensor([0.25, 0.75]), torch.tensor([1.0, 0.0, 0.0])], tmp_path / "a.MAR")
    assert (tmp_path / "a.MAR").read_text() == "MAR\n2 2 0.25 0.75 3 1 0 0\n"
    write_pr(-3.5, tmp_path / "a.PR")
    assert (tmp_path / "a.PR").read_text() == "PR\n-3.5\n"


@given(labels=st.lists(st.integers(0, 5), min_size=1))
def test_labels_are_read_as_they_were_written(labels, tmp_path_factory):
    path = tmp_path_factory.mktemp("map") / "a.MAP"
    write_map(torch.tensor(labels), path)
    assert read_map(path).tolist() == labels
    path.write_text(f"MPE\n1\n{len(labels)} {' '.join(map(str, labels))}\n")  # the form of 2010
    assert read_map(path).tolist() == labels


def test_marginals_and_partition_are_read_as_they_were_written(tmp_path):
    marginals = [torch.rand(size, dtype=torch.float64).softmax(0) for size in (1, 2, 5)]
    write_mar(marginals, tmp_path / "a.MAR")
    for one, two in zip(read_mar(tmp_path / "a.MAR"), marginals, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-8)
    write_pr(123.456789, tmp_path / "a.PR")
    assert read_pr(tmp_path / "a.PR") == pytest.approx(123.456789)


@pytest.mark.parametrize(
    "read, text, message",
    [
        (read_map, "MAR\n1 0", "begins with 'MAR', but the first word must be MAP or MPE"),
        (read_map, "MAP\n3 0 1", "before the states of all variables"),
        (read_map, "MAP\n1 0 1", "numbers follow"),
        (read_mar, "MAR\n2 2 0.5", "before the probabilities of variable 0"),
        (read_pr, "PR\n", "before the partition function"),
        (read_pr, "PR\nmany", "holds 'many' where a number is needed"),
    ],
)
def test_damaged_files_are_refused(read, text, message, tmp_path):
    (tmp_path / "a").write_text(text)
    with pytest.raises(FieldError, match=message):
        read(tmp_path / "a")


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(FieldError, match=r"\[variables\] is needed"):
        write_map(torch.zeros(2, 2, dtype=torch.long), tmp_path / "a.MAP")
    with pytest.raises(FieldError, match="no finite number"):
        write_pr(float("-inf"), tmp_path / "a.PR")
    with pytest.raises(InputTypeError, match="not a number"):
        write_pr("1", tmp_path / "a.PR")
    assert not list(tmp_path.iterdir())


@pytest.mark.data("uai/mar_CSP_12.MAR", "uai/mar_CSP_12.PR")
def test_results_of_the_competition():
    marginals = read_mar(require_file("uai/mar_CSP_12.MAR"))
    assert len(marginals) == 67 and all(abs(float(own.sum()) - 1) < 1e-4 for own in marginals)
    assert read_pr(require_file("uai/mar_CSP_12.PR")) == 16.4536
