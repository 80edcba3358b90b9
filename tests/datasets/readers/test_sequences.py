"""Files of tagged sentences."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.datasets import read_folder, read_graphs, read_sentences, write_sentences
from accord.errors import DataNotFoundError, GraphError

TEXT = "-DOCSTART- O\n\n# a remark\nThe O\ncat B-x\nsat I-x\n\n\n#cats B-y\n"
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=5)


def test_conll_files_become_paths_with_tokens(tmp_path):
    path = tmp_path / "new.conll"
    path.write_text(TEXT)
    graphs = read_graphs(path)
    assert [graph.tokens for graph in graphs] == [["The", "cat", "sat"], ["#cats"]]
    assert graphs[0].edge_index.tolist() == [[0, 1], [1, 2]] and graphs[0].x.shape == (3, 0)
    names = graphs[0].label_names
    assert [names[state] for state in graphs[0].y.tolist()] == ["O", "B-x", "I-x"]
    assert [graph.graph_name for graph in graphs] == ["new.conll:1", "new.conll:2"]


def test_columns_universal_dependencies_and_missing_labels(tmp_path):
    (tmp_path / "a.tsv").write_text("the\tDET\tDT\ncat\tNOUN\tNN\n")
    assert read_sentences(tmp_path / "a.tsv")[0].label_names == ["DT", "NN"]
    assert read_sentences(tmp_path / "a.tsv", label_column=1)[0].label_names == ["DET", "NOUN"]
    rows = ["# text = don't", "1-2\tdon't\t_\t_", "1\tdo\tdo\tAUX", "2\tn't\tnot\tPART", "2.1\tx\tx\t_"]
    (tmp_path / "b.conllu").write_text("\n".join(rows) + "\n")
    graph = read_sentences(tmp_path / "b.conllu")[0]
    assert graph.tokens == ["do", "n't"] and graph.label_names == ["AUX", "PART"]
    (tmp_path / "c.tsv").write_text("a\tX\nb\t_\n")
    assert read_sentences(tmp_path / "c.tsv")[0].y.tolist() == [0, -1]
    (tmp_path / "d.conll").write_text("just\nwords\n")
    assert read_sentences(tmp_path / "d.conll")[0].y is None


@given(
    st.lists(st.lists(st.tuples(WORDS, st.sampled_from(["N", "V"])), min_size=1, max_size=4), min_size=1, max_size=3)
)
def test_what_is_written_is_read_back(tmp_path_factory, sentences):
    folder = tmp_path_factory.mktemp("corpus")
    pairs = [([word for word, _ in one], [label for _, label in one]) for one in sentences]
    for name in ("a.tsv", "a.conll.gz"):
        write_sentences(pairs, folder / name)
        graphs = read_sentences(folder / name, label_names=["N", "V"])
        assert [graph.tokens for graph in graphs] == [words for words, _ in pairs]
        assert [["NV"[state] for state in graph.y.tolist()] for graph in graphs] == [labels for _, labels in pairs]


def test_a_corpus_is_a_folder_of_splits(tmp_path):
    for name in ("train.conll", "dev.conll"):
        (tmp_path / name).write_text(TEXT)
    with gzip.open(tmp_path / "test.conll.gz", "wt") as file:
        file.write(TEXT)
    data = read_folder(tmp_path)
    assert [len(part) for part in (data.train, data.val, data.test)] == [2, 2, 2]
    assert data.label_names == ["B-x", "B-y", "I-x", "O"] and data.num_states == 4


@pytest.mark.parametrize(
    "text, problem",
    [
        ("a\tO\nb\tI-x\nc\tB-x\n", r"line 2: I-x stands after O.*B-x"),
        ("c\tB-x\n\nb\tI-x\n", r"line 3: I-x stands at the start of a sentence"),
        ("a\tO\nb\n", r"line 2: has 1 columns, the line before 2"),
        ("\tO\n", r"line 1: the word is empty"),
        ("\n\n", r"holds no words"),
    ],
)
def test_faults_are_reported_with_file_and_line(tmp_path, text, problem):
    path = tmp_path / "bad.tsv"
    path.write_text(text)
    with pytest.raises(GraphError, match=rf"bad\.tsv.*{problem}"):
        read_sentences(path)


def test_labels_that_are_not_read_are_not_checked(tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text("a\tO\nb\tI-x\nc\tB-x\n")
    assert read_sentences(path, with_labels=False)[0].y is None


def test_other_faults(tmp_path):
    (tmp_path / "bad.conll.gz").write_bytes(b"not gzip")
    with pytest.raises(GraphError, match="utf-8"):
        read_sentences(tmp_path / "bad.conll.gz")
    (tmp_path / "short.tsv").write_text("a\tO\n")
    with pytest.raises(GraphError, match="no column 5"):
        read_sentences(tmp_path / "short.tsv", label_column=5)
    with pytest.raises(DataNotFoundError):
        read_sentences(tmp_path / "none.tsv")
    with pytest.raises(GraphError, match="read from .conll"):
        read_sentences(tmp_path / "x.csv")
    with pytest.raises(GraphError, match="ends in .conll"):
        write_sentences([], tmp_path / "x.csv")
    with pytest.raises(GraphError, match="holds a tab"):
        write_sentences([(["a\tb"], ["O"])], tmp_path / "x.tsv")


def test_the_word_that_starts_remarks_is_not_lost(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("win O\n# O\n1 O\n")
    assert read_sentences(path)[0].tokens == ["win", "#", "1"]
    path.write_text("a O\n\n# O\nwin O\n")
    with pytest.raises(GraphError, match=r"a\.conll, line 3: may be a remark, or the word '#'"):
        read_sentences(path)
