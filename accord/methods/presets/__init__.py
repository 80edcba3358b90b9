"""Presets: where recipes come from. `accord` is ours, `paper` the paper's letter, `authors` the authors' code."""

from accord.methods.presets._choice import DENSE_GRID, preset_features, preset_recipe

__all__ = ["DENSE_GRID", "preset_features", "preset_recipe"]
