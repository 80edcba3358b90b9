"""Small recipes of every method, made of one set of values."""

from dataclasses import fields

RENAMED = {"edge_encoder": "label_encoder", "edge_channels": "label_channels", "edge": "label"}  # of a GMNN


def recipe_for(method, values):
    """The method's recipe with those of the values that it has; a GMNN's label network takes the edge network's."""
    known = {entry.name for entry in fields(method.recipe_type)}
    renamed = {RENAMED.get(name, name) if name not in known else name: value for name, value in values.items()}
    return method.recipe_type(**{name: value for name, value in renamed.items() if name in known})
