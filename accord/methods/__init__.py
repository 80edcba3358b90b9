"""What a row of the paper's tables is: each method a short composition of encoders, learning and inference."""

from accord.methods._config import recipe_from_config, recipe_to_config
from accord.methods._crf import CRF, CRFModel
from accord.methods._gmnn import GMNN, GMNNModel
from accord.methods._gnn import GNN, GNNModel
from accord.methods._model import FieldModel, Method, Shape
from accord.methods._networks import NetworkPair, Networks
from accord.methods._presets import DENSE_GRID, PRESETS, preset_features, preset_recipe
from accord.methods._recipe import CRFRecipe, GMNNRecipe, GNNRecipe, PairRecipe, Recipe, SPNRecipe
from accord.methods._registry import METHODS
from accord.methods._smoothing import SmoothedGNN, SmoothedModel
from accord.methods._spn import ProxyModel, StructuredProxyNetwork

__all__ = [
    "CRF",
    "DENSE_GRID",
    "GMNN",
    "GNN",
    "METHODS",
    "PRESETS",
    "CRFModel",
    "CRFRecipe",
    "FieldModel",
    "GMNNModel",
    "GMNNRecipe",
    "GNNModel",
    "GNNRecipe",
    "Method",
    "NetworkPair",
    "Networks",
    "PairRecipe",
    "ProxyModel",
    "Recipe",
    "SPNRecipe",
    "Shape",
    "SmoothedGNN",
    "SmoothedModel",
    "StructuredProxyNetwork",
    "preset_features",
    "preset_recipe",
    "recipe_from_config",
    "recipe_to_config",
]
