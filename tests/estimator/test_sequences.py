"""Sentences in a `NodeClassifier`: words, chains solved exactly, the BIO scheme, saving and going on."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.encoders import MLP, BiGRU, BiLSTM, Convolution
from accord.errors import GraphError, InfeasibleError, InputTypeError, MajorityWarning, OptionError
from accord.graphs import WordOptions, path_edges

NAMES = ["B-person", "I-person", "O"]
FIRST, LAST, OTHER = ["ann", "bob", "eve"], ["stone", "hill"], ["we", "saw", "a", "lot", "of", "rain"]
SMALL = WordOptions(channels=8, character_channels=4)


def sentences(count, seed):
    """Names of one or two words among others: the second word of a name also occurs outside of names."""
    random = np.random.default_rng(seed)
    graphs = []
    for _ in range(count):
        tokens, labels = [], []
        for _ in range(random.integers(2, 5)):
            if random.random() < 0.4:
                tokens += [str(random.choice(FIRST)).capitalize(), str(random.choice(LAST))]
                labels += [0, 1]
            else:
                tokens.append(str(random.choice(OTHER + LAST)))
                labels.append(2)
        graphs.append(Data(tokens=tokens, y=torch.tensor(labels)))
    return graphs


TRAIN, VAL, TEST = sentences(40, 0), sentences(20, 1), sentences(20, 2)


def model(method="spn", **more):
    chosen = {"encoder": BiLSTM(16, dropout=0.1, input_dropout=0.0), "label_names": NAMES, "words": SMALL}
    return NodeClassifier(method=method, **{**chosen, "max_epochs": 14, **more})


@pytest.fixture(scope="module")
def crf():
    return model("crf").fit(TRAIN, VAL)


@pytest.fixture(scope="module")
def spn():
    return model("spn").fit(TRAIN, VAL)


@pytest.mark.parametrize("method", ["gnn", "crf", "spn"])
def test_every_method_learns_names(method, crf, spn):
    fitted = {"crf": crf, "spn": spn}.get(method) or model(method).fit(TRAIN, VAL)
    assert fitted.treatment_.name == "words"
    assert fitted.score(TEST) > 0.9


def test_labels_obey_the_scheme_whatever_the_weights_say(crf, spn):
    for fitted in (crf, spn):
        assert fitted.recipe_.transitions is not None
        with torch.no_grad():
            weights = [p.clone() for part in fitted.model_.parts.values() for p in part.parameters()]
            for part in fitted.model_.parts.values():
                for parameter in part.parameters():
                    parameter.normal_(generator=torch.Generator().manual_seed(3))
        labels = fitted.predict(TEST)
        with torch.no_grad():
            for parameter, before in zip(
                (p for part in fitted.model_.parts.values() for p in part.parameters()), weights, strict=True
            ):
                parameter.copy_(before)
        assert all(fitted.recipe_.transitions.violation(own.tolist()) is None for own in labels)


def test_k_best_and_spans_equal_enumeration(crf, spn):
    graph = Data(tokens=["Ann", "stone", "saw"])
    for fitted in (crf, spn):
        field = fitted.model_.field(fitted.collate([graph]))
        every = list(itertools.product(range(3), repeat=3))
        scores = torch.stack([field.score(torch.tensor(one))[0, 0] for one in every]).double()
        chances = scores.softmax(0)
        found = fitted.k_best(graph, 30)
        possible = int((scores > -torch.inf).sum())
        assert len(found.labels) == possible < 27
        torch.testing.assert_close(
            found.probabilities.double(), chances.sort(descending=True).values[:possible], rtol=1e-5, atol=1e-6
        )
        assert found.labels[0].tolist() == fitted.predict(graph).tolist()
        for first, span in ((0, ["B-person", "I-person"]), (1, ["O"]), (0, [0, 1, 2]), (1, ["O", "I-person"])):
            wanted = [NAMES.index(one) if isinstance(one, str) else one for one in span]
            pairs = zip(every, chances, strict=True)
            expected = sum(p for one, p in pairs if list(one[first : first + len(span)]) == wanted)
            assert fitted.span_probability(graph, first, span) == pytest.approx(float(expected), abs=1e-5)
        assert fitted.span_probability(graph, 0, ["I-person"]) == 0.0


def test_a_saved_model_keeps_its_words_and_its_scheme(tmp_path, crf):
    crf.save(tmp_path)
    again = NodeClassifier.load(tmp_path)
    assert again.treatment_.vocabulary == crf.treatment_.vocabulary
    assert again.recipe_.transitions == crf.recipe_.transitions
    assert again.words == SMALL and again.scheme == "auto"
    unknown = Data(tokens=["Zoë", "hill", "\n"])
    for graph in (*TEST, unknown):
        assert torch.equal(again.predict(graph), crf.predict(graph))
        torch.testing.assert_close(again.predict_proba(graph), crf.predict_proba(graph))
    torch.testing.assert_close(crf.predict_proba(unknown).sum(-1), torch.ones(3))


def test_training_goes_on_from_a_model(spn):
    more = model("spn", max_epochs=1, refine=True).fit(TRAIN, VAL, start=spn)
    assert more.treatment_ is spn.treatment_ and more.recipe_.transitions == spn.recipe_.transitions
    assert more.score(VAL) >= spn.score(VAL)
    broken = [*TRAIN, Data(tokens=["a", "hill"], y=torch.tensor([2, 1]))]
    assert model("spn", max_epochs=1).fit(broken, VAL, start=spn).recipe_.transitions is None
    assert model("spn", max_epochs=1, scheme=None).fit(TRAIN, VAL, start=spn).recipe_.transitions is None
    with pytest.raises(GraphError, match="which the BIO scheme rules out"):
        model("spn", max_epochs=1, scheme="bio").fit(broken, VAL, start=spn)


def test_word_vectors_start_the_words(tmp_path):
    words = ["ann", "bob", "zebra"]
    vectors = np.arange(9, dtype=np.float16).reshape(3, 3)
    np.savez(tmp_path / "vectors.npz", words=np.array(words), vectors=vectors)
    options = WordOptions(vectors=tmp_path / "vectors.npz", character_channels=0)
    fitted = model("gnn", words=options, max_epochs=0).fit(TRAIN, VAL)
    inputs, known = fitted.model_.parts["node"].encoder.inputs, fitted.treatment_.vocabulary
    assert inputs.word[0, 1 + known.words.index("bob")].tolist() == vectors[1].tolist()
    assert known.more_words == ("zebra",) and inputs.fixed[0, 0].tolist() == vectors[2].tolist()
    fixed = model("gnn", words=WordOptions(vectors=tmp_path / "vectors.npz", tune=False, character_channels=0))
    fixed.set_params(max_epochs=1).fit(TRAIN, VAL)
    assert fixed.model_.parts["node"].encoder.inputs.fixed[0].tolist() == vectors.tolist()
    with pytest.raises(OptionError, match="channels is 7, but the vectors have 3"):
        model("gnn", words=WordOptions(vectors=tmp_path / "vectors.npz", channels=7)).fit(TRAIN, VAL)


def test_ordinary_features_need_no_tokens():
    random = np.random.default_rng(0)
    graphs = []
    for _ in range(40):
        y = torch.from_numpy(random.integers(0, 2, 5))
        x = torch.nn.functional.one_hot(y, 2) + 0.3 * torch.from_numpy(random.normal(size=(5, 2)))
        graphs.append(Data(x=x.float(), y=y, edge_index=path_edges(5)))
    fitted = NodeClassifier(encoder=Convolution(8, 1), max_epochs=10).fit(graphs[:30], graphs[30:])
    assert fitted.score(graphs[30:]) > 0.8 and fitted.directed_ and fitted.treatment_.vocabulary is None


def test_auto_takes_a_bilstm_for_tokens():
    plain = NodeClassifier(label_names=NAMES)
    assert plain.resolve_recipe(TRAIN).encoder.kind == "bilstm" and plain.resolve_features(TRAIN) == "words"


def test_what_is_known_counts_for_sentences_too(spn):
    sentence = Data(tokens=["Ann", "stone", "saw"])
    assert spn.predict(sentence, known={1: "O"}).tolist()[1] == 2
    assert spn.predict([sentence], known=[{0: "B-person"}])[0][0] == 0
    told = spn.explain(sentence, 1, known={0: "B-person"})
    assert set(told.messages) == {0, 2}


@pytest.mark.parametrize("call", ["predict", "predict_proba", "answers", "diagnose"])
def test_what_is_known_against_the_scheme_is_named(crf, call):
    sentence = Data(tokens=["Ann", "stone", "saw"])
    with pytest.raises(InfeasibleError, match=rf"NodeClassifier.{call}: the label 'I-person' is known at node 0.*BIO"):
        getattr(crf, call)(sentence, known={0: "I-person"})
    with pytest.raises(InfeasibleError, match="'O' at node 1 .*'I-person' at node 2 .*rules this pair out"):
        getattr(crf, call)([TRAIN[0], sentence], known=[None, {1: "O", 2: "I-person"}])
    assert crf.predict(sentence, known={2: "I-person"})[1] != 2


def test_words_without_information_are_told_what_to_try():
    mostly = [Data(tokens=graph.tokens, y=(torch.arange(len(graph.y)) == 0).long()) for graph in TRAIN]
    with pytest.warns(MajorityWarning, match="'bigru', 'transformer' or 'convolution'"):
        model("gnn", label_names=["a", "b"], max_epochs=1).fit(mostly, mostly[:5])


def test_empty_sentences_take_part():
    empty = Data(tokens=[], y=torch.zeros(0, dtype=torch.long))
    fitted = model("spn", max_epochs=2).fit([*TRAIN[:8], *[empty] * 8], VAL)
    assert fitted.predict(empty).shape == (0,)


def test_bad_calls_say_what_to_do(spn):
    with pytest.raises(OptionError, match="the search does not know"):
        model(search=2).fit(TRAIN, VAL)
    with pytest.raises(OptionError, match="'gmnn' cannot read words"):
        model("gmnn").fit(TRAIN, VAL)
    with pytest.raises(OptionError, match="encoder is 'gcn'. Choose 'bilstm'"):
        NodeClassifier(encoder="gcn", label_names=NAMES).fit(TRAIN, VAL)
    with pytest.raises(InputTypeError, match="words is a dict"):
        NodeClassifier(words={}).fit(TRAIN, VAL)
    with pytest.raises(OptionError, match="scheme 'iob'"):
        NodeClassifier(scheme="iob").fit(TRAIN, VAL)
    broken = [*TRAIN, Data(tokens=["a", "hill"], y=torch.tensor([2, 1]))]
    with pytest.raises(GraphError, match=r"2 nodes \(a hill \.\.\.\) has the label 'I-person' at node 1 after 'O'"):
        model(scheme="bio").fit(broken, VAL)
    with pytest.raises(
        OptionError, match="features is 'standardised', but the graphs have tokens and no x. Use features="
    ):
        model(features="standardised").fit(TRAIN, VAL)
    with pytest.raises(InputTypeError, match=r"tokens is a ndarray, not a list of strings.*Use its tolist\(\)"):
        spn.predict(Data(tokens=np.array(["a", "b"])))
    with pytest.raises(GraphError, match="has no tokens"):
        spn.predict(Data(x=torch.zeros(2, 0), edge_index=path_edges(2)))
    with pytest.raises(GraphError, match="not a sequence"):
        spn.predict(Data(tokens=["a", "b", "c"], edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]])))
    with pytest.raises(InputTypeError, match="labels is the text 'B-person'"):
        spn.span_probability(Data(tokens=["a", "b"]), 0, "B-person")
    with pytest.raises(OptionError, match="nodes 0 to 1"):
        spn.span_probability(Data(tokens=["a", "b"]), 1, ["O", "O"])


def steps(count, seed):
    """Paths with features: B-x, I-x or O by chance within the scheme; features tell O from the rest, noisily."""
    random = np.random.default_rng(seed)
    graphs = []
    for _ in range(count):
        labels = [int(random.choice([0, 2]))]
        for _ in range(random.integers(1, 6)):
            labels.append(int(random.choice([0, 2] if labels[-1] == 2 else [0, 1, 2])))
        y = torch.tensor(labels)
        x = torch.stack([y == 2, y != 2], 1) + 0.3 * torch.from_numpy(random.normal(size=(len(y), 2)))
        graphs.append(Data(x=x.float(), y=y, edge_index=path_edges(len(y))))
    return graphs


NETWORKS = {"node": (BiLSTM(4), MLP(hidden=4)), "edge": (MLP(hidden=4), BiLSTM(4)), "both": (BiLSTM(4), BiGRU(4))}


@pytest.mark.parametrize("method", ["spn", "crf"])
@pytest.mark.parametrize("networks", NETWORKS.values(), ids=NETWORKS)
def test_node_edge_or_both_networks_read_sequences(networks, method, tmp_path):
    """Any of the three makes a field on sequences: solved exactly, with a direction and the scheme."""
    encoder, edge_encoder = networks
    given = {"encoder": encoder, "edge_encoder": edge_encoder, "label_names": NAMES, "scheme": "bio"}
    fitted = NodeClassifier(method, max_epochs=2, **given).fit(steps(30, 0), steps(10, 1))
    recipe = fitted.recipe_
    assert (recipe.encoder, recipe.edge_encoder) == networks and not recipe.shared
    assert recipe.game.exact and not recipe.scorer.symmetric and fitted.directed_
    test = steps(20, 2)
    assert all(recipe.transitions.violation(own.tolist()) is None for own in fitted.predict(test))
    fitted.save(tmp_path)
    again = NodeClassifier.load(tmp_path)
    assert again.recipe_.transitions == recipe.transitions
    assert all(map(torch.equal, again.predict(test), fitted.predict(test)))


def test_the_steps_of_a_sequence_reach_the_edge_network_alone():
    """With an edge network of sequences, an edge's table depends on nodes that neither of its ends is."""
    given = {"encoder": MLP(hidden=4), "edge_encoder": BiLSTM(4), "max_epochs": 1}
    fitted = NodeClassifier("crf", **given).fit(steps(30, 0), steps(10, 1))
    graph, other = Data(x=torch.zeros(4, 2), edge_index=path_edges(4)), Data(x=torch.zeros(4, 2))
    other.edge_index, other.x = path_edges(4), graph.x.clone().index_fill_(0, torch.tensor([3]), 5.0)
    first, second = (fitted.model_.field(fitted.collate([one])) for one in (graph, other))
    assert torch.equal(first.node[..., :3, :], second.node[..., :3, :])
    assert not torch.allclose(first.edge[..., 0, :, :], second.edge[..., 0, :, :])


def test_auto_reads_sequences_beside_an_edge_network_that_does():
    chosen = NodeClassifier(edge_encoder="bigru").resolve_recipe(steps(10, 0))
    assert (chosen.encoder.kind, chosen.edge_encoder.kind) == ("bilstm", "bigru")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "gnn", "encoder": BiLSTM(4)}, "method 'gnn' does not have"),
        ({"method": "smooth", "encoder": BiLSTM(4)}, "method 'smooth' does not have"),
        ({"method": "gmnn", "encoder": BiLSTM(4)}, "method 'gmnn' does not have"),
        ({"encoder": MLP(hidden=4)}, "encoder is 'mlp' and edge_encoder 'mlp'. Choose 'bilstm'"),
        ({"encoder": "auto"}, "needs an encoder of sequences, but encoder is 'gcnii'"),
        ({"encoder": "auto", "search": 2}, "needs an encoder of sequences"),
    ],
)
def test_a_scheme_is_kept_or_refused(given, message):
    with pytest.raises(OptionError, match=message):
        NodeClassifier(**given, scheme="bio", label_names=NAMES, max_epochs=1).fit(steps(10, 0), steps(5, 1))


def test_a_crf_has_start_and_end_scores(crf, spn):
    """Trained scores that are added at the two ends of a sequence, and nowhere else."""
    assert crf.recipe_.encoder.ends and not spn.recipe_.encoder.ends
    ends = crf.model_.parts["node"].encoder.ends
    assert bool((ends.detach().abs().amax(-1) > 0).all())
    more = torch.tensor([[1.0, 2.0, 3.0], [40.0, 50.0, 60.0]])
    for length in (1, 2, 4):
        batch = crf.collate([Data(tokens=["Ann", "stone", "saw", "rain"][:length])])
        before = crf.model_.field(batch).node[0]
        with torch.no_grad():
            ends += more
            after = crf.model_.field(batch).node[0]
            ends -= more
        expected = torch.zeros(length, 3)
        expected[0] += more[0]
        expected[-1] += more[1]
        possible = before > -torch.inf
        assert torch.equal(possible, after > -torch.inf) and int((~possible).sum()) == 1  # I-person at the start
        torch.testing.assert_close((after - before)[possible], expected[possible], atol=1e-4, rtol=0)


def test_order_3_on_sequences_is_order_2():
    """A path has no triangles: same labels, same probabilities, same best labellings."""
    given = {"encoder": BiLSTM(4), "label_names": NAMES, "max_epochs": 2}
    two, three = (NodeClassifier(**given, order=order).fit(steps(30, 0), steps(10, 1)) for order in (2, 3))
    assert three.recipe_.triangles is not None and three.recipe_.transitions == two.recipe_.transitions is not None
    for graph in steps(5, 2):
        assert torch.equal(three.predict(graph), two.predict(graph))
        torch.testing.assert_close(three.predict_proba(graph), two.predict_proba(graph))
        best = [fitted.k_best(graph, 3) for fitted in (two, three)]
        assert torch.equal(best[0].labels, best[1].labels)
        torch.testing.assert_close(best[0].probabilities, best[1].probabilities)
