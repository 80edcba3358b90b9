"""Preset `paper`: the paper's letter.

Sizes, learning rates, sharpness and scorers of its appendix; the field of Eq. 5, divided by the node network's
marginals; plain belief propagation (Eq. 12), without damping. What the paper leaves open comes from the authors' code:
64 edge channels, dropout before the edge scorer, how often networks are evaluated on PPI.
"""

from dataclasses import replace
from typing import Any

from accord.encoders import (
    GAT,
    GCN,
    GCNII,
    MLP,
    BilinearScorer,
    EncoderSpec,
    GraphSAGE,
    GraphUNet,
    Linear,
    LinearScorer,
    encoder_spec,
)
from accord.errors import OptionError
from accord.learning import CombinationGrid, PartOptions, RefinementOptions, TrainingOptions
from accord.methods.recipes._recipe import CRFRecipe, GMNNRecipe, Recipe, SPNRecipe

# How the combination is chosen on benchmarks: the best score on validation data, no caution.
BY_SCORE: dict[str, Any] = {"rule": "score", "shrinkage": 0.0}

# Appendix, "Architecture Choices". GCNII is wider on citation graphs and normalised on PPI.
PAPER_ENCODERS: dict[str, EncoderSpec] = {
    "gcn": GCN(hidden=16, layers=2),
    "sage": GraphSAGE(hidden=64, layers=2),
    "gat": GAT(hidden=256, heads=(4, 4, 6)),
    "unet": GraphUNet(hidden=64, depth=3),
    "gcnii": GCNII(hidden=2048, layers=9, alpha=0.5, theta=1.0),
    "mlp": MLP(hidden=64, layers=2),
    "linear": Linear(),
}
PAPER_GCNII_PPI = GCNII(hidden=256, layers=9, alpha=0.5, theta=1.0, normalisation="layer")

# Appendix, "Hyperparameter Choices": rows by encoder, columns as below.
PAPER_COLUMNS = ("ppi", "cora*", "citeseer*", "pubmed*", "dblp")
STAND_INS = {"citation-domains": "dblp"}  # other sets of the same kind, which take the values of these columns
PAPER_NODE_RATES: dict[str, tuple[float | None, ...]] = {
    "gcn": (5e-3, 5e-3, 1e-2, 1e-2, 1e-2),
    "sage": (5e-3, 5e-3, 5e-3, 5e-3, 5e-3),
    "gat": (5e-3, 1e-2, 1e-3, 1e-3, 1e-3),
    "unet": (5e-3, 1e-2, 1e-2, 1e-2, None),
    "gcnii": (5e-3, 1e-2, 1e-2, 1e-2, 1e-3),
}
PAPER_EDGE_RATES: dict[str, tuple[float | None, ...]] = {
    "gcn": (1e-3, 1e-2, 5e-2, 1e-2, 5e-3),
    "sage": (1e-3, 1e-3, 1e-3, 1e-3, 1e-3),
    "gat": (1e-3, 1e-3, 5e-4, 5e-4, 5e-4),
    "unet": (1e-3, 1e-2, 1e-2, 1e-2, None),
    "gcnii": (1e-3, 5e-3, 1e-3, 1e-3, 1e-4),
}
PAPER_SHARPNESS: dict[str, tuple[float | None, ...]] = {
    "gcn": (10, 0.2, 1, 2, 2),
    "sage": (10, 10, 10, 10, 10),
    "gat": (10, 0.2, 10, 0.2, 0.2),
    "unet": (10, 0.5, 1, 0.2, None),
    "gcnii": (10, 0.5, 0.5, 0.5, 2),
}

PPI_TRAINING = TrainingOptions(max_epochs=400, batch_graphs=1)
PAPER_LINEAR_CRF_RATE, PAPER_GAME_RATE, PAPER_GMNN_RATE = 5e-4, 1e-5, 5e-3
PAPER_GAME_GRAPHS = 20  # per update; with all graphs at once, 1,000 steps of 1e-5 hardly change deep encoders


def paper_recipe(encoder: str | EncoderSpec, benchmark: str | None) -> SPNRecipe:
    """The recipe of an SPN; `encoder` is a canonical name, or an encoder with sizes of its own."""
    column = paper_column(benchmark)
    name, spec = named_encoder(encoder)
    if (name, column) == ("gcnii", "ppi") and isinstance(encoder, str):
        spec = PAPER_GCNII_PPI
    linear = column in ("ppi", "dblp")
    return SPNRecipe(
        encoder=spec,
        edge_encoder=spec,
        scorer=LinearScorer(dropout=0.5) if linear else BilinearScorer(dropout=0.5),
        node=PartOptions(learning_rate=paper_value(PAPER_NODE_RATES, name, column)),
        edge=PartOptions(learning_rate=paper_value(PAPER_EDGE_RATES, name, column)),
        training=PPI_TRAINING if column == "ppi" else TrainingOptions(max_epochs=200),
        grid=CombinationGrid(
            sharpness=(paper_value(PAPER_SHARPNESS, name, column),),
            power=(1.0,),
            node_weight=(1.0,),
            normaliser=("node",),
        ),
        damping=0.0,
        **BY_SCORE,
    )


def named_encoder(encoder: str | EncoderSpec) -> tuple[str, EncoderSpec]:
    """The name whose rates apply, and the specification; encoders of one's own take the rates of the simplest one."""
    if isinstance(encoder, str):
        return encoder, PAPER_ENCODERS.get(encoder, encoder_spec(encoder))
    return "gcn", encoder_spec(encoder)


def paper_value(table: dict[str, tuple[float | None, ...]], name: str, column: str) -> float:
    """A number of the appendix."""
    found = table.get(name, table["gcn"])[PAPER_COLUMNS.index(column)]
    if found is None:
        raise OptionError(f"preset 'paper': the paper has no {name} on {column}. Use preset 'accord' or 'authors'.")
    return found


def paper_method(recipe: Recipe) -> Recipe:
    """Appendix, "Hyperparameter Choices": rates of CRFs and GMNN; CRFs run 1,000 epochs as in its run-time table."""
    if isinstance(recipe, CRFRecipe):
        linear = isinstance(recipe.encoder, Linear)
        part = PartOptions(learning_rate=PAPER_LINEAR_CRF_RATE if linear else PAPER_GAME_RATE)
        graphs = recipe.training.batch_graphs if linear else recipe.training.batch_graphs or PAPER_GAME_GRAPHS
        training = replace(recipe.training, max_epochs=1000, batch_graphs=graphs)
        return replace(recipe, node=part, edge=part, training=training)
    if isinstance(recipe, GMNNRecipe):
        part = PartOptions(learning_rate=PAPER_GMNN_RATE)
        return replace(recipe, node=part, label=part)
    return recipe


def paper_column(benchmark: str | None) -> str:
    """The column of the appendix's tables that a benchmark takes its values from."""
    if benchmark is None:
        return "cora*"
    name = "ppi" if benchmark.startswith("ppi") else STAND_INS.get(benchmark, benchmark)
    if name not in PAPER_COLUMNS:
        raise OptionError(f"the paper has no column for {benchmark!r}. It has {', '.join(PAPER_COLUMNS)}.")
    return name


PAPER_REFINEMENT = RefinementOptions(learning_rate=PAPER_GAME_RATE, max_epochs=50)
