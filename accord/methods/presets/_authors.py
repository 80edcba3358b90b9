"""Preset `authors`: what the authors' published code does where it differs from the paper.

Networks: GCNII has 256 channels on every data set (the paper says 2,048 on citation sets), adds each layer's input to
its output, normalises the sum (its options cannot turn that off; the paper names it for PPI alone) and has a second
weight for the initial representation; U-Net pools over all
graphs of a batch and ends in a linear map; the edge network has dropout before its last layer, and where there is no
such layer (GCNII, U-Net) the scorer reads the encoder's full width. The scorer on citation sets is a full bilinear
form: the code's option for what the paper writes; its default is linear in both ends, as on PPI. Training: both
networks at the node rate (the edge rate only scales a loss under Adam); the edge network is kept by the share of graphs
with all pairs right; evaluations are rare. The field: tables divided by their own sums to the power 0.1, sharpness
picked on validation data from a list, five sweeps of max-product in which incoming messages count half and tables are
not divided by that weight. That is tree-reweighted propagation with appearance 0.5 of a field with twice the node
evidence, up to a factor that decoding does not see.

Not taken over: sums of logs in place of sum-product; two tables an edge, one for each direction; and of CRFs and
refinement, two sweeps in the game and five in decoding with incoming messages that count half (ours: up to 20 damped
sweeps of plain propagation).
"""

from dataclasses import replace

from accord.encoders import GCNII, EncoderSpec, FullBilinearScorer, GraphUNet, Linear, LinearScorer
from accord.errors import OptionError
from accord.learning import CombinationGrid, PartOptions, RefinementOptions, TrainingOptions
from accord.methods.presets._paper import (
    BY_SCORE,
    PAPER_GAME_RATE,
    PAPER_GMNN_RATE,
    PAPER_LINEAR_CRF_RATE,
    PAPER_NODE_RATES,
    named_encoder,
    paper_column,
    paper_value,
)
from accord.methods.recipes._recipe import CRFRecipe, GMNNRecipe, Recipe, SPNRecipe

AUTHORS_GCNII = GCNII(
    hidden=256,
    layers=9,
    alpha=0.5,
    theta=1.0,
    normalisation="layer",
    skip=True,
    shared_weights=False,
    normalise_skip=True,
)
AUTHORS_UNET = GraphUNet(hidden=64, depth=3, pool_batch=True, head=True)
AUTHORS_SHARPNESS = (100.0, 10.0, 2.0, 1.0, 0.5, 0.2, 0.1)
AUTHORS_GRID = CombinationGrid(
    sharpness=AUTHORS_SHARPNESS, power=(0.1,), node_weight=(2.0,), appearance=(0.5,), sweeps=(5,)
)
DROPOUT = 0.5  # in the edge network
RATE = 5e-3  # the default of the code, where the appendix has none
# Epochs and evaluations: of its example for citation sets, elsewhere its defaults.
CITATION_TRAINING = TrainingOptions(max_epochs=200, evaluate_every=20)
OTHER_TRAINING = TrainingOptions(max_epochs=400, evaluate_every=25, batch_graphs=1)
CITATION_CRF_EPOCHS, OTHER_CRF_EPOCHS = 5000, 1000  # of its example; of the paper's run-time table
CRF_EVALUATE_EVERY = 50


def authors_recipe(encoder: str | EncoderSpec, benchmark: str | None) -> SPNRecipe:
    """The recipe of an SPN; `encoder` is a canonical name, or an encoder with sizes of its own."""
    column = paper_column(benchmark)
    name, spec = named_encoder(encoder)
    if isinstance(encoder, str):
        spec = {"gcnii": AUTHORS_GCNII, "unet": AUTHORS_UNET}.get(name, spec)
    citation = column in ("cora*", "citeseer*", "pubmed*")
    edge, dropout = _edge_encoder(spec)
    try:
        part = PartOptions(learning_rate=paper_value(PAPER_NODE_RATES, name, column))
    except OptionError:
        part = PartOptions(learning_rate=RATE)
    return SPNRecipe(
        encoder=spec,
        edge_encoder=edge,
        scorer=FullBilinearScorer(dropout=dropout) if citation else LinearScorer(dropout=dropout),
        node=part,
        edge=part,
        training=CITATION_TRAINING if citation else OTHER_TRAINING,
        grid=AUTHORS_GRID,
        damping=0.0,
        edge_level="graph" if citation else "edge",
        **BY_SCORE,
    )


def _edge_encoder(spec: EncoderSpec) -> tuple[EncoderSpec, float]:
    """The edge network's encoder, and the dropout of its scorer: before the last layer, if there is one."""
    if isinstance(spec, GCNII | GraphUNet):
        return replace(spec, head=False), DROPOUT
    if hasattr(spec, "last_dropout"):
        return replace(spec, last_dropout=DROPOUT), 0.0  # type: ignore[type-var]
    return spec, DROPOUT


def authors_method(recipe: Recipe) -> Recipe:
    """CRFs: long, all graphs in one update (one of PPI). GMNN is not in the code; it has the paper's rate."""
    if isinstance(recipe, CRFRecipe):
        linear, citation = isinstance(recipe.encoder, Linear), recipe.training.batch_graphs is None
        part = PartOptions(learning_rate=PAPER_LINEAR_CRF_RATE if linear else PAPER_GAME_RATE)
        epochs = CITATION_CRF_EPOCHS if citation else OTHER_CRF_EPOCHS
        training = replace(recipe.training, max_epochs=epochs, evaluate_every=CRF_EVALUATE_EVERY)
        return replace(recipe, node=part, edge=part, training=training)
    if isinstance(recipe, GMNNRecipe):
        part = PartOptions(learning_rate=PAPER_GMNN_RATE)
        return replace(recipe, node=part, label=part, label_encoder=recipe.encoder)
    return recipe


AUTHORS_REFINEMENT = RefinementOptions(learning_rate=PAPER_GAME_RATE, max_epochs=300)
