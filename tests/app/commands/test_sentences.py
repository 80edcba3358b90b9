"""Files of sentences on the command line: fit, predict, evaluate."""

import numpy as np
import pytest
from support.command_line import call, refused

from accord.app.runs import open_run
from accord.datasets import read_sentences, write_sentences

QUICK = ["--max-epochs", "2", "--accelerator", "cpu", "--encoder", "convolution"]


def corpus(count, seed):
    random = np.random.default_rng(seed)
    sentences = []
    for _ in range(count):
        words = [str(random.choice(["Ann", "Bob", "saw", "rain", "hill"])) for _ in range(random.integers(2, 6))]
        sentences.append((words, ["B-x" if word.istitle() else "O" for word in words]))
    return [*sentences, (["Ann", "Stone", "saw"], ["B-x", "I-x", "O"])]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    for number, (name, count) in enumerate((("train.conll", 30), ("dev.tsv", 10), ("test.conll.gz", 10))):
        write_sentences(corpus(count, number), folder / "corpus" / name)
    words = ["ann", "bob", "tree"]
    np.savez(folder / "vectors.npz", words=np.array(words), vectors=np.eye(3, dtype=np.float16))
    options = ["--word-vectors", folder / "vectors.npz", *QUICK]
    result = call("fit", folder / "corpus", "--run", folder / "run", *options)
    assert result.exit_code == 0, result.output
    assert "entity" in result.stdout
    return folder


def test_labels_are_written_as_sentences(trained):
    (trained / "new.conll").write_text("Ann\nStone\n\nrain\n")
    out = trained / "labels.conll"
    assert call("predict", trained / "run", trained / "new.conll", "--out", out).exit_code == 0
    graphs = read_sentences(out)
    assert [graph.tokens for graph in graphs] == [["Ann", "Stone"], ["rain"]]
    table = call("predict", trained / "run", trained / "new.conll").stdout.splitlines()
    assert table[0] == "graph,node,token,label,probability" and table[1].startswith("new.conll:1,0,Ann,")


def test_evaluate_counts_entities(trained):
    from accord.app.commands.evaluate import evaluate_run

    for data, split in ((trained / "corpus", "test"), (trained / "corpus", "val")):
        scores, _, count = evaluate_run(open_run(trained / "run"), str(data), split)
        assert count == 11 and {"entity_precision", "entity_recall", "entity_f1"} <= set(scores["spn"])
    assert call("evaluate", trained / "run", trained / "corpus").exit_code == 0


def test_a_broken_scheme_is_reported_with_file_and_line(trained, tmp_path):
    (tmp_path / "train.conll").write_text("Ann B-x\nsaw O\nStone I-x\n")
    message = refused("fit", tmp_path, "--run", tmp_path / "run", *QUICK)
    assert "train.conll, line 3: I-x stands after O" in message


def test_labels_that_predict_does_not_need_may_break_the_scheme(trained):
    (trained / "wrong.conll").write_text("Ann O\nStone I-person\n\nshe B-person\n")
    told = call("predict", trained / "run", trained / "wrong.conll")
    assert told.exit_code == 0 and "wrong.conll:1,1,Stone," in told.stdout


def test_graphs_without_words_are_no_sentences(trained, tmp_path):
    (trained / "new.conll").write_text("Ann\n")
    message = refused("predict", trained / "run", trained / "new.conll", "--out", tmp_path / "x.xls")
    assert ".conll" in message
