"""Words as ids."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from accord.errors import DataNotFoundError, GraphError, InputError, InputTypeError, OptionError
from accord.graphs import WordOptions, fit_treatment
from accord.graphs.sequences import Vocabulary, as_sequence, fit_vocabulary, read_word_vectors


def sentence(text, **more):
    return as_sequence(Data(tokens=text.split(), **more), "test")


def test_words_and_characters_have_ids_and_others_are_unknown():
    known = fit_vocabulary([sentence("The cat sat"), sentence("the dog")], WordOptions())
    assert known.words == ("cat", "dog", "sat", "the") and known.width == 3
    ids = known.encode(["THE", "cow"]).tolist()
    assert ids[0][0] == 1 + known.words.index("the") and ids[1][0] == 0
    assert ids[0][1] == 2 + known.characters.index("T") and ids[0][2] == 1  # no training word has H
    assert [row[0] for row in known.encode(["cat", "sat"]).tolist()] == [1, 3]


def test_long_words_keep_both_ends():
    known = fit_vocabulary([sentence("abcdefghijklmnopqrstuvwxyz")], WordOptions())
    spelt = known.encode(["abcdefghijklmnopqrstuvwxyz"])[0, 1:].tolist()
    assert spelt == [2 + known.characters.index(c) for c in "abcdefghijqrstuvwxyz"]


def test_vectors_add_words_and_fixed_ones_come_last():
    train = [sentence("the cat sat")]
    tuned = fit_vocabulary(train, WordOptions(), ["cat", "zebra"])
    assert tuned.words == ("cat", "sat", "the") and tuned.more_words == ("zebra",)
    fixed = fit_vocabulary(train, WordOptions(tune=False), ["cat", "zebra"])
    assert fixed.words == ("sat", "the") and fixed.more_words == ("cat", "zebra")
    rare = fit_vocabulary([sentence("a a b cat")], WordOptions(min_count=2), ["cat"])
    assert rare.words == ("a", "cat")


def test_only_training_nodes_count():
    mask = torch.tensor([True, False, True])
    known = fit_vocabulary([sentence("the cat sat", train_mask=mask)], WordOptions())
    assert known.words == ("sat", "the")


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=6), st.booleans(), st.integers(0, 1))
def test_a_vocabulary_is_read_back_from_json(tokens, lower, characters):
    options = WordOptions(lower=lower, character_channels=characters)
    known = fit_vocabulary([as_sequence(Data(tokens=tokens), "test")], options)
    again = Vocabulary.from_config(json.loads(json.dumps(known.to_config())))
    assert torch.equal(again.encode(tokens), known.encode(tokens))
    assert bool((known.encode(tokens)[:, 0] > 0).all())


def test_the_treatment_puts_ids_before_features_and_is_applied_once():
    graph = sentence("the cat", x=torch.tensor([[5.0], [6.0]]))
    treatment = fit_treatment("words", [graph])
    treated = treatment.apply(graph)
    assert treated.x.shape == (2, 1 + 3 + 1) and treated.x[:, -1].tolist() == [5.0, 6.0]
    assert treatment.added == 4 and treatment.apply(treated) is treated
    with pytest.raises(GraphError, match="has no tokens"):
        treatment.apply(Data(x=torch.zeros(2, 1)))
    with pytest.raises(GraphError, match="training graph 0 has no tokens"):
        fit_treatment("words", [Data(x=torch.zeros(2, 1))])


def test_tokens_are_checked():
    with pytest.raises(InputTypeError, match="not a list of strings"):
        as_sequence(Data(tokens="the cat"), "fit")
    with pytest.raises(InputTypeError, match="token 1 is a int"):
        as_sequence(Data(tokens=["the", 3]), "fit")
    with pytest.raises(GraphError, match="2 tokens for 3 nodes"):
        as_sequence(Data(tokens=["the", "cat"], x=torch.zeros(3, 1)), "fit")
    complete = as_sequence(Data(tokens=["a", "b", "c"]), "fit")
    assert complete.edge_index.tolist() == [[0, 1], [1, 2]] and complete.x.shape == (3, 0)


def test_word_vectors_are_read_in_both_forms(tmp_path):
    vectors = np.arange(6, dtype=np.float16).reshape(3, 2)
    words = ["the", "cât", "x"]
    np.savez(tmp_path / "bytes.npz", words=np.frombuffer("\n".join(words).encode(), np.uint8), vectors=vectors)
    np.savez(tmp_path / "text.npz", words=np.array(words), vectors=vectors)
    for name in ("bytes.npz", "text.npz"):
        found = read_word_vectors(tmp_path / name)
        assert list(found.words) == words and found.vectors.tolist() == vectors.tolist()


def test_bad_word_vectors_are_refused(tmp_path):
    with pytest.raises(DataNotFoundError, match="no such file"):
        read_word_vectors(tmp_path / "none.npz")
    (tmp_path / "damaged.npz").write_bytes(b"PK\x03\x04 not an archive")
    np.savez(tmp_path / "short.npz", words=np.array(["a"]), vectors=np.zeros((2, 2)))
    np.savez(tmp_path / "nan.npz", words=np.array(["a"]), vectors=np.full((1, 2), np.nan))
    for name in ("damaged.npz", "short.npz", "nan.npz"):
        with pytest.raises(InputError, match=name):
            read_word_vectors(tmp_path / name)


def test_bad_options_are_refused():
    for bad in ({"min_count": 0}, {"word_dropout": 1.0}, {"character_channels": -1}, {"channels": 0}):
        with pytest.raises(OptionError, match=next(iter(bad))):
            WordOptions(**bad)
    with pytest.raises(InputTypeError, match="tune"):
        WordOptions(tune="no")
    with pytest.raises(InputTypeError, match="vectors"):
        WordOptions(vectors=3)
