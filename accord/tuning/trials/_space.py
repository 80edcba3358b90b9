"""What a search may set: encoders and their sizes, rates, regularisation, scorers, direction, batches and features."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from torch_geometric.data import Data

from accord.encoders import (
    GAT,
    GCN,
    GCNII,
    MLP,
    AgreementScorer,
    BilinearScorer,
    EncoderSpec,
    GraphSAGE,
    LinearScorer,
    ScorerSpec,
    encoder_spec,
)
from accord.graphs import TREATMENTS
from accord.learning import PartOptions
from accord.methods import PairRecipe, Recipe

ENCODERS = ("mlp", "sage", "gcn", "gcnii", "gat")
EDGE_ENCODERS = ("mlp", "sage", "gcn", "gcnii")
RATES = (5e-4, 1e-3, 3e-3, 1e-2)
DECAYS = (0.0, 1e-5, 1e-4, 5e-4, 2e-3, 1e-2)
HIDDEN = (64, 128, 256)
WIDE = (32, *HIDDEN, 512)  # of benchmarks, whose recipes are used many times, and where one encoder leaves time for it
SMALL_BATCHES = (8, 32)  # graphs an update, where there are at least twice as many


@dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """The candidates of each choice; an encoder that is a specification keeps its sizes."""

    encoders: tuple[str | EncoderSpec, ...] = ENCODERS
    edge_encoders: tuple[str | EncoderSpec, ...] = EDGE_ENCODERS
    features: tuple[str, ...] = ("raw",)
    batch_graphs: tuple[int | None, ...] = (None,)
    symmetric: tuple[bool, ...] = (True,)
    hidden: tuple[int, ...] = HIDDEN
    edge_inputs: tuple[bool, ...] = (False,)  # whether networks read edge attributes, see `Recipe.edge_inputs`

    def to_config(self) -> dict[str, Any]:
        """The space as JSON values; `edge_inputs` only where there is a choice, as in earlier versions."""
        names = {
            name: [entry.to_config() if isinstance(entry, EncoderSpec) else entry for entry in getattr(self, name)]
            for name in ("encoders", "edge_encoders")
        }
        config = {entry.name: list(getattr(self, entry.name)) for entry in fields(self)} | names
        return config if len(self.edge_inputs) > 1 else {name: v for name, v in config.items() if name != "edge_inputs"}


def space_for(
    train: Sequence[Data],
    encoder: str | EncoderSpec | None = None,
    edge_encoder: str | EncoderSpec | None = None,
    features: str | None = None,
    symmetric: bool | None = None,
    wide: bool = False,
) -> SearchSpace:
    """The space for training graphs.

    Args:
        train: the training graphs, with raw features.
        encoder: the only encoder of node networks; None leaves it open.
        edge_encoder: the only encoder of edge networks; None leaves it open.
        features: the only treatment of features; None leaves it open.
        symmetric: whether the scorer ignores the direction of edges; None leaves it open where edges have one.
        wide: try larger and smaller networks too, also where several encoders are tried.
    """
    encoder, edge_encoder = (_named(one) for one in (encoder, edge_encoder))
    edges: tuple[str | EncoderSpec, ...] = EDGE_ENCODERS
    if edge_encoder is not None:
        edges = (edge_encoder,)
    elif encoder is not None:  # the node network's is the first guess
        edges = tuple(dict.fromkeys([encoder, "gcn", "gcnii", "mlp"]))
    counts = all(bool((graph.x >= 0).all()) for graph in train)  # rows of other numbers have no meaningful sum
    treatments = tuple(name for name in TREATMENTS if name != "words" and (counts or name != "row-normalised"))
    # An edge without its reverse, or with other attributes in the other direction, has an orientation.
    directed = any(graph.edge_index is not None and not graph.is_undirected() for graph in train)
    return SearchSpace(
        encoders=ENCODERS if encoder is None else (encoder,),
        edge_encoders=edges,
        features=treatments if features is None else (features,),
        batch_graphs=(None, *(size for size in SMALL_BATCHES if len(train) >= 2 * size)),
        symmetric=((True, False) if directed else (True,)) if symmetric is None else (symmetric,),
        hidden=WIDE if wide or encoder is not None else HIDDEN,
    )


def _named(encoder: str | EncoderSpec | None) -> str | EncoderSpec | None:
    """The canonical name of an encoder; anything but a name is a specification."""
    if encoder is None:
        return None
    spec = encoder_spec(encoder)
    return spec.kind if isinstance(encoder, str) else spec


def draw_node(base: Recipe, space: SearchSpace, number: int, width: int, seed: int) -> tuple[str, list[Recipe]]:
    """Draw a treatment of features, and recipes whose node networks differ in rate and weight decay alone.

    Args:
        base: the recipe that gives everything else.
        space: the candidates.
        number: of the draw; encoders take turns.
        width: how many recipes.
        seed: of the search.
    """
    rng = random.Random(f"node {seed} {number}")
    kind = _in_turn(space.encoders, number, seed)
    training = replace(base.training, batch_graphs=rng.choice(space.batch_graphs))
    drawn = replace(base, encoder=draw_encoder(kind, rng, space.hidden), training=training)
    options = draw_options(rng, width)
    features = rng.choice(space.features)
    if len(space.edge_inputs) > 1:
        drawn = replace(drawn, edge_inputs=rng.choice(space.edge_inputs))
    return features, [replace(drawn, node=own) for own in options]


def draw_edge(base: PairRecipe, space: SearchSpace, number: int, width: int, seed: int) -> list[PairRecipe]:
    """Draw recipes whose edge networks differ in rate and weight decay alone; batches are those of `base`."""
    rng = random.Random(f"edge {seed} {number}")
    kind = _in_turn(space.edge_encoders, number, seed)
    symmetric = space.symmetric[number % len(space.symmetric) - 1]  # where edges have a direction, it is kept first
    drawn = replace(base, edge_encoder=draw_encoder(kind, rng, space.hidden), scorer=draw_scorer(rng, symmetric))
    return [replace(drawn, edge=own) for own in draw_options(rng, width)]


def draw_whole(base: Recipe, space: SearchSpace, number: int, seed: int) -> tuple[str, Recipe]:
    """Draw a treatment of features and a recipe of any method, both of its networks included."""
    features, (recipe,) = draw_node(base, space, number, 1, seed)
    rng = random.Random(f"whole {seed} {number}")
    own = {entry.name for entry in fields(base)}
    values: dict[str, Any] = {}
    for part, encoder in (("edge", "edge_encoder"), ("label", "label_encoder")):
        if encoder in own:
            values |= {
                encoder: draw_encoder(rng.choice(space.edge_encoders), rng, space.hidden),
                part: draw_options(rng, 1)[0],
            }
    if "scorer" in own:
        values["scorer"] = draw_scorer(rng, rng.choice(space.symmetric))
    return features, replace(recipe, **values)


def draw_encoder(kind: str | EncoderSpec, rng: random.Random, sizes: Sequence[int] = HIDDEN) -> EncoderSpec:
    """An encoder of a kind, with sizes and regularisation drawn; a specification is returned unchanged."""
    if isinstance(kind, EncoderSpec):
        return kind
    hidden = rng.choice(sizes)
    dropout = rng.choice([0.0, 0.2, 0.3, 0.5, 0.6, 0.7])
    input_dropout = rng.choice([0.0, 0.0, 0.3, 0.5, 0.6, 0.7])
    normalisation = rng.choice([None, None, "layer"])
    if kind == "gcn":
        return GCN(
            hidden=hidden,
            layers=rng.choice([2, 2, 3]),
            dropout=dropout,
            input_dropout=input_dropout,
            normalisation=normalisation,
            skip=rng.choice([False, True]),
        )
    if kind in ("sage", "mlp"):
        spec = GraphSAGE if kind == "sage" else MLP
        return spec(
            hidden=hidden,
            layers=rng.choice([2, 2, 3]),
            dropout=dropout,
            input_dropout=input_dropout,
            normalisation=normalisation,
        )
    if kind == "gat":
        layers = rng.choice([1, 2])
        return GAT(
            hidden=rng.choice([8, 16, 32, 64]),
            heads=(rng.choice([4, 8]),) * layers + (rng.choice([1, 4, 8]),),
            dropout=dropout,
            input_dropout=input_dropout,
            skip=rng.choice([False, True]),
        )
    if kind == "gcnii":
        return GCNII(
            hidden=hidden,
            layers=rng.choice([2, 4, 6, 8]),
            alpha=rng.choice([0.1, 0.3, 0.5]),
            theta=rng.choice([0.5, 1.0, 1.5]),
            dropout=dropout,
            input_dropout=input_dropout,
        )
    return encoder_spec(kind)


def draw_options(rng: random.Random, width: int) -> list[PartOptions]:
    """Different rates and weight decays with one label smoothing."""
    smoothing = rng.choice([0.0, 0.0, 0.1])
    pairs = rng.sample([(rate, decay) for rate in RATES for decay in DECAYS], width)
    return [PartOptions(learning_rate=rate, weight_decay=decay, label_smoothing=smoothing) for rate, decay in pairs]


def draw_scorer(rng: random.Random, symmetric: bool) -> ScorerSpec:
    """A scorer and its dropout."""
    kind: Any = rng.choice([BilinearScorer, LinearScorer, AgreementScorer, AgreementScorer])
    drawn: ScorerSpec = kind(dropout=rng.choice([0.0, 0.3, 0.5]), symmetric=symmetric)
    return drawn


def _in_turn(kinds: Sequence[str | EncoderSpec], number: int, seed: int) -> str | EncoderSpec:
    """Each kind once in every round: first as listed, which is from cheap to expensive, then in random orders."""
    turn, place = divmod(number, len(kinds))
    order = list(range(len(kinds)))
    return kinds[(random.Random(f"order {seed} {turn}").sample(order, len(kinds)) if turn else order)[place]]
