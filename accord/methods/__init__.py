"""What a row of the paper's tables is: each method a short composition of encoders, learning and inference."""

from accord.methods._crf import CRF
from accord.methods._ensemble import Ensemble
from accord.methods._gmnn import GMNN
from accord.methods._gnn import GNN
from accord.methods._model import Answer, FieldChange, FieldModel, Method, Shape
from accord.methods._networks import PairModel, flat_field
from accord.methods._proxy import ProxyModel
from accord.methods._refit import check_again, check_refit, merge_labels, refit
from accord.methods._smoothing import SmoothedGNN
from accord.methods._spn import StructuredProxyNetwork
from accord.methods._triangles import TriangleModel, check_order
from accord.methods.presets import DENSE_GRID, preset_features, preset_recipe
from accord.methods.recipes._config import LATER, recipe_from_config, recipe_to_config
from accord.methods.recipes._recipe import (
    CRFRecipe,
    GMNNRecipe,
    GNNRecipe,
    PairRecipe,
    Recipe,
    SPNRecipe,
    TriangleRecipe,
)
from accord.methods.recipes._registry import METHODS

__all__ = [
    "CRF",
    "DENSE_GRID",
    "GMNN",
    "GNN",
    "LATER",
    "METHODS",
    "Answer",
    "CRFRecipe",
    "Ensemble",
    "FieldChange",
    "FieldModel",
    "GMNNRecipe",
    "GNNRecipe",
    "Method",
    "PairModel",
    "PairRecipe",
    "ProxyModel",
    "Recipe",
    "SPNRecipe",
    "Shape",
    "SmoothedGNN",
    "StructuredProxyNetwork",
    "TriangleModel",
    "TriangleRecipe",
    "check_again",
    "check_order",
    "check_refit",
    "flat_field",
    "merge_labels",
    "preset_features",
    "preset_recipe",
    "recipe_from_config",
    "recipe_to_config",
    "refit",
]
