"""Words as input of encoders."""

import json

import pytest
import torch
from torch.nn import functional
from torch_geometric.data import Data

from accord.encoders import BiLSTM, Convolution, Noise, encoder_from_config
from accord.encoders.sequences import WordInputs, Words
from accord.errors import GraphError, OptionError
from accord.graphs import GraphBatch, WordOptions, fit_treatment
from accord.graphs.sequences import as_sequence

SPEC = Words(words=4, fixed_words=2, channels=3, characters=6, width=4, character_channels=5)


def batch_of(*rows):
    return GraphBatch.collate([as_sequence(Data(tokens=["w"] * len(rows), x=torch.tensor(rows)), "test")])


def test_characters_are_a_convolution_over_one_hot_letters():
    inputs = WordInputs(SPEC, [7]).double()
    spelt = [[2, 3, 4, 0], [5, 0, 0, 0], [2, 3, 4, 0], [1, 2, 3, 4]]
    out = inputs(batch_of(*[[1.0, *map(float, row)] for row in spelt]), None)[:, 0, 3:]
    kernel = inputs.character[0].view(3, 6, 5)  # place in the window, character, output
    for row, got in zip(spelt, out, strict=True):
        letters = functional.one_hot(torch.tensor(row), 6).double()
        values = functional.conv1d(letters.t()[None], kernel.permute(2, 1, 0), inputs.character_bias[0], padding=1)[0]
        # Padding of the word is character 0, which has weights of its own; torch pads with nothing.
        count = sum(1 for id in row if id)
        values[:, 0] += kernel[0, 0]
        values[:, -1] += kernel[2, 0]
        torch.testing.assert_close(got, torch.relu(values[:, :count].amax(1)))


def test_words_beyond_the_trained_ones_have_fixed_vectors():
    vectors = torch.arange(18.0).view(6, 3)
    vectors[0], vectors[2] = torch.nan, torch.nan
    inputs = WordInputs(Words(words=4, fixed_words=2, channels=3, vectors=vectors), [7, 8])
    out = inputs(batch_of([1.0], [2.0], [3.0], [4.0], [5.0], [0.0]), None)
    for place, row in ((0, 1), (2, 3), (3, 4), (4, 5)):
        assert torch.equal(out[place], vectors[row].expand(2, 3))
    assert bool(out.isfinite().all()) and not torch.equal(out[1, 0], out[1, 1])  # drawn from each replica's seed
    out.sum().backward()
    assert inputs.word.grad[0].abs().sum(1).tolist() == [3.0, 3.0, 3.0, 3.0]
    assert [name for name, _ in inputs.named_parameters()] == ["word"]


def test_dropped_words_become_the_unknown_word():
    inputs = WordInputs(Words(words=4, channels=3, word_dropout=0.5), [7])
    batch = batch_of(*[[1.0]] * 400)
    out = inputs(batch, Noise([7], 3))[:, 0]
    unknown = (out == inputs.word[0, 0]).all(1)
    assert bool(((out == inputs.word[0, 1]).all(1) | unknown).all())
    assert 0.4 < float(unknown.float().mean()) < 0.6
    assert not bool((inputs(batch, None)[:, 0] == inputs.word[0, 0]).all(1).any())


def test_a_vocabulary_fits_its_encoder_and_survives_json():
    graphs = [as_sequence(Data(tokens=text.split()), "test") for text in ("the cat sat", "a dog")]
    treatment = fit_treatment("words", graphs, WordOptions())
    known = treatment.vocabulary
    words = Words(1 + len(known.words), 0, 8, 2 + len(known.characters), known.width, 6)
    batch = GraphBatch.collate([treatment.apply(graph) for graph in graphs])
    for spec in (BiLSTM(4, words=words), Convolution(4, words=words, ends=True)):
        again = encoder_from_config(json.loads(json.dumps(spec.to_config())))
        assert again == spec
        out = [one.build(batch.num_features, 3, [1, 2])(batch) for one in (spec, again)]
        assert torch.equal(*out) and out[0].shape == (5, 2, 3)
    with pytest.raises(GraphError, match="columns of ids"):
        BiLSTM(words=words).build(2, 3, [1])


def test_bad_sizes_are_refused():
    for bad in ({"words": 0}, {"channels": -1}, {"word_dropout": 1.5}, {"vectors": torch.zeros(1, 2)}):
        with pytest.raises(OptionError, match=next(iter(bad))):
            Words(**bad)
