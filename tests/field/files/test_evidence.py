import pytest
from field.files.model_files import SMALL

from accord import read_uai
from accord.errors import FieldError, InfeasibleError, InputTypeError
from accord.field.files import read_evidence


@pytest.mark.parametrize(
    "text, known",
    [
        ("0", {}),
        ("1\n0", {}),
        ("2 1 0 5 1", {1: 0, 5: 1}),
        ("1\n2 1 0 5 1\n", {1: 0, 5: 1}),
        ("2 1 0 1 0", {1: 0}),
        ("1 1 1", {1: 1}),
    ],
)
def test_both_forms_of_the_file(text, known, tmp_path):
    (tmp_path / "a.evid").write_text(text)
    assert read_evidence(tmp_path / "a.evid") == known


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is empty. Write 0"),
        ("2\n1 0 1\n1 0 0", "2 numbers follow|ends after|samples"),
        ("2 1 0 5", "2 samples are announced"),
        ("2 1 0 1 1", "variable 1 has state 0 and state 1"),
        ("1 1 0.5", "line 1: holds 0.5"),
        ("3 1 0 2 1", "ends after 5 numbers"),
    ],
)
def test_faults_are_named(text, message, tmp_path):
    (tmp_path / "a.evid").write_text(text)
    with pytest.raises(FieldError, match=message) as error:
        read_evidence(tmp_path / "a.evid")
    assert str(error.value).startswith(str(tmp_path / "a.evid"))


@pytest.mark.parametrize(
    "evidence, kind, message",
    [
        ({3: 0}, FieldError, "names variable 3, but .*model.uai has 3, numbered from 0"),
        ({1: 2}, FieldError, "gives variable 1 state 2, but it has states 0 to 1"),
        ({1: -1}, FieldError, "gives variable 1 state -1"),
        ({"a": 1}, InputTypeError, "evidence holds a str"),
        ({1: True}, InputTypeError, "evidence holds a bool"),
        (7, InputTypeError, "path: is a int"),
    ],
)
def test_evidence_that_does_not_fit_the_model(evidence, kind, message, tmp_path):
    (tmp_path / "model.uai").write_text(SMALL)
    with pytest.raises(kind, match=message):
        read_uai(tmp_path / "model.uai", evidence)


def test_impossible_evidence(tmp_path):
    (tmp_path / "model.uai").write_text("MARKOV 1 2 1 1 0 2 1 0")
    with pytest.raises(InfeasibleError, match="model.uai: .*clamped to a state that the field forbids"):
        read_uai(tmp_path / "model.uai", {0: 1})
