"""Sequences in a `NodeClassifier`: words as ids, vectors of words, and transitions that a scheme rules out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.encoders import EncoderSpec, Identity, SequenceSpec, TransitionScorer
from accord.encoders.sequences import Words
from accord.errors import GraphError, InputTypeError, OptionError
from accord.field import Transitions, bio_transitions
from accord.field._transitions import is_bio
from accord.graphs import FeatureTreatment, GraphStream, common_treatment, fit_treatment
from accord.graphs.sequences import Vocabulary, WordOptions, WordVectors, has_tokens, read_word_vectors
from accord.graphs.sequences._vocabulary import FIRST_CHARACTER
from accord.methods import PairRecipe, Recipe, Shape

if TYPE_CHECKING:
    from accord.estimator._classifier import NodeClassifier

WORDS = "words"  # the treatment of features
SCHEMES = ("auto", "bio")
WORD_CHANNELS = 100  # of words without given vectors
SHOWN_WORDS = 6  # of a sentence, in messages
ENCODERS = ("encoder", "edge_encoder", "label_encoder")  # fields of recipes


def check_sequence_options(words: object, scheme: object) -> None:
    """Refuse options of sequences that cannot be used."""
    if words is not None and not isinstance(words, WordOptions):
        raise InputTypeError(
            f"NodeClassifier: words is a {type(words).__name__}. Give accord.graphs.WordOptions(...), or None."
        )
    if scheme is not None and scheme not in SCHEMES:
        raise OptionError(f"NodeClassifier: scheme {str(scheme)[:80]!r} is unknown. Choose 'auto', 'bio' or None.")


def check_scheme(scheme: str | None, method: str, recipe: Recipe) -> None:
    """Refuse a scheme that a model of this method and recipe would not keep to."""
    if scheme != "bio":
        return
    if not isinstance(recipe, PairRecipe):
        raise OptionError(
            f"NodeClassifier: scheme 'bio' is kept by a field on sequences, which method {method!r} does not "
            "have. Use 'spn' or 'crf', or set scheme='auto'."
        )
    if not recipe.reads_sequences:
        raise OptionError(
            f"NodeClassifier: scheme 'bio' needs an encoder of sequences, but encoder is {recipe.encoder.kind!r} and "
            f"edge_encoder {recipe.edge_encoder.kind!r}. Choose 'bilstm', 'bigru', 'transformer' or 'convolution' for "
            "one of them, or set scheme='auto'."
        )


def reads_words(graphs: Sequence[Data] | None, features: str) -> bool:
    """Whether a model is to read the tokens of graphs."""
    given = graphs if isinstance(graphs, Sequence) else [] if graphs is None else [graphs]
    given = given[:1] if isinstance(given, GraphStream) else given  # either all of its graphs have tokens, or none
    some = any(isinstance(graph, Data) and has_tokens(graph) for graph in given)
    return features == WORDS or (features == "auto" and some)


def fit_inputs(
    model: "NodeClassifier",
    train: Sequence[Data],
    held_out: Sequence[Data],
    features: str,
    start: "NodeClassifier | None",
) -> tuple[FeatureTreatment, Recipe, Shape]:
    """What a model needs to read graphs: the treatment of features, and the recipe and sizes that go with it.

    Graphs that have been treated already bring their treatment, and a model that training goes on from has its own.

    Args:
        model: whose parameters, recipe, label names and sizes of the given graphs are known.
        train: training graphs.
        held_out: validation graphs.
        features: the treatment of raw features.
        start: a fitted model that training goes on from, or None.
    """
    recipe, shape = model.recipe_, model.shape_
    if start is not None:
        recipe, treatment = _as_before(recipe, start.recipe_), start.treatment_
        recipe = _with_scheme(model, recipe, chain(train, held_out))
    elif features == WORDS:
        treatment, recipe, shape = fit_words(train, recipe, model.words, shape)
        return treatment, _with_scheme(model, recipe, chain(train, held_out)), shape
    else:
        before = common_treatment(train)
        if before is None and not shape.num_features and has_tokens(train[0]):
            raise OptionError(
                f"NodeClassifier: features is {features!r}, but the graphs have tokens and no x. Use features='words'."
            )
        taken = before is not None and model.features in ("auto", before.name)
        treatment = before if before is not None and taken else fit_treatment(features, train)
        recipe = _with_scheme(model, recipe, chain(train, held_out))
    return treatment, recipe, replace(shape, num_features=shape.num_features + treatment.added)


def _with_scheme(model: "NodeClassifier", recipe: Recipe, graphs: Iterable[Data]) -> Recipe:
    found = find_transitions(model.scheme, recipe, model.label_names_, graphs)
    return recipe if found is None else replace(recipe, transitions=found)  # type: ignore[call-arg]


def _as_before(recipe: Recipe, before: Recipe) -> Recipe:
    """The recipe with the vocabulary of another one."""
    changed: dict[str, Any] = {}
    for name in ENCODERS:
        own, other = getattr(recipe, name, None), getattr(before, name, None)
        if isinstance(own, SequenceSpec) and isinstance(other, SequenceSpec):
            changed[name] = replace(own, words=other.words)
    return replace(recipe, **changed)


def fit_words(
    train: Sequence[Data], recipe: Recipe, options: WordOptions | None, shape: Shape
) -> tuple[FeatureTreatment, Recipe, Shape]:
    """The vocabulary of training graphs, the recipe whose networks read it, and the sizes of its ids.

    Args:
        train: training graphs with tokens.
        recipe: with encoders of sequences.
        options: how words are read; None for the defaults.
        shape: sizes of the graphs without ids.
    """
    options = options or WordOptions()
    _check_encoders(recipe)
    vectors = None if options.vectors is None else read_word_vectors(options.vectors)
    if vectors is not None and options.channels not in (None, vectors.vectors.shape[1]):
        raise OptionError(
            f"WordOptions: channels is {options.channels}, but the vectors have {vectors.vectors.shape[1]}. Leave it "
            "out."
        )
    treatment = fit_treatment(WORDS, train, options, () if vectors is None else vectors.words)
    assert treatment.vocabulary is not None
    words = word_inputs(treatment.vocabulary, options, vectors)
    changed: dict[str, Any] = {}
    for name in ENCODERS:
        encoder = getattr(recipe, name, None)
        if isinstance(encoder, SequenceSpec):
            changed[name] = replace(encoder, words=words)
    return treatment, replace(recipe, **changed), replace(shape, num_features=shape.num_features + treatment.added)


def word_inputs(vocabulary: Vocabulary, options: WordOptions, vectors: WordVectors | None) -> Words:
    """How encoders read the ids of a vocabulary."""
    channels = options.channels or (WORD_CHANNELS if vectors is None else int(vectors.vectors.shape[1]))
    return Words(
        words=1 + len(vocabulary.words),
        fixed_words=len(vocabulary.more_words),
        channels=channels,
        characters=FIRST_CHARACTER + len(vocabulary.characters) if vocabulary.width else 0,
        width=vocabulary.width,
        character_channels=options.character_channels if vocabulary.width else 0,
        word_dropout=options.word_dropout,
        vectors=None if vectors is None else _rows(vocabulary, vectors, channels),
    )


def _rows(vocabulary: Vocabulary, vectors: WordVectors, channels: int) -> Tensor:
    """The vector of each id [ids, channels]; NaN for the unknown word, and for words that have none."""
    place = {word: number for number, word in enumerate(vectors.words)}
    known = [place.get(word, -1) for word in (*vocabulary.words, *vocabulary.more_words)]
    rows = torch.cat([vectors.vectors, torch.full((1, channels), torch.nan)])
    return rows[torch.tensor([-1, *known])]


def _check_encoders(recipe: Recipe) -> None:
    """Refuse networks that would take ids of words for numbers."""
    if recipe.method == "gmnn":
        raise OptionError("NodeClassifier: method 'gmnn' cannot read words. Use 'spn', 'crf' or 'gnn'.")
    found: dict[str, EncoderSpec] = {"encoder": recipe.encoder}
    if isinstance(recipe, PairRecipe) and not recipe.shared:
        found["edge_encoder"] = recipe.edge_encoder
    for name, encoder in found.items():
        blind = name == "edge_encoder" and isinstance(getattr(recipe, "scorer", None), TransitionScorer)
        if not isinstance(encoder, SequenceSpec) and not (blind and isinstance(encoder, Identity)):
            raise OptionError(
                f"NodeClassifier: features 'words' need an encoder of sequences, but {name} is {encoder.kind!r}. "
                "Choose 'bilstm', 'bigru', 'transformer' or 'convolution'."
            )


def find_transitions(
    scheme: str | None, recipe: Recipe, names: Sequence[str] | None, graphs: Iterable[Data]
) -> Transitions | None:
    """What the scheme of the labels rules out; None for no scheme.

    Args:
        scheme: "bio", "auto" (BIO if all labels have such names and all graphs obey it), or None.
        recipe: only fields on sequences have transitions.
        names: of the states.
        graphs: training and validation graphs, with states as labels.
    """
    fits = isinstance(recipe, PairRecipe) and recipe.reads_sequences
    if scheme is None or not fits or (scheme == "auto" and (names is None or not is_bio(names))):
        return None
    if names is None:
        raise OptionError("NodeClassifier: scheme 'bio' needs names of labels. Give label_names, such as O and B-x.")
    found = bio_transitions(names)
    for graph in graphs:
        if graph.y is None or graph.y.dim() != 1:
            continue
        labels = graph.y.tolist()
        place = found.violation(labels)
        if place is not None and scheme == "auto":
            return None
        if place is not None:
            before = "the start" if place == 0 else repr(names[labels[place - 1]])
            raise GraphError(
                f"NodeClassifier.fit: a sequence of {len(labels)} nodes{_opening(graph)} has the label "
                f"{names[labels[place]]!r} at node {place} after {before}, which the BIO scheme rules out. Correct "
                "it, or set scheme=None."
            )
    return found


def _opening(graph: Data) -> str:
    """The first words of a sentence, by which it is found; its number changes where validation graphs are held out."""
    return f" ({' '.join(graph.tokens[:SHOWN_WORDS])} ...)" if has_tokens(graph) else ""
