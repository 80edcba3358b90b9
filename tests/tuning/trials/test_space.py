"""The space of a search holds every value of the committed recipes, so that `accord tune` can find them again."""

import random
from dataclasses import asdict

import pytest
import torch
from torch_geometric.data import Data

from accord.methods import preset_recipe
from accord.methods.presets._choice import _tuned_recipes
from accord.tuning import space_for
from accord.tuning.trials._space import draw_encoder, draw_options, draw_scorer

GRAPHS = [Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]])) for _ in range(64)]
DRAWS = 1500
COMMITTED = [(kind, name) for kind, rows in sorted(_tuned_recipes().items()) for name in rows]


def values(drawn):
    """By kind and option, every value that was drawn."""
    found = {}
    for spec in drawn:
        config = spec.to_config() if hasattr(spec, "to_config") else {"kind": "", **asdict(spec)}
        for name, value in config.items():
            found.setdefault((config["kind"], name), set()).add(str(value))
    return found


def draws(space):
    rng = random.Random(0)
    encoders = {
        part: values(draw_encoder(kind, rng, space.hidden) for kind in kinds for _ in range(DRAWS))
        for part, kinds in (("encoder", space.encoders), ("edge_encoder", space.edge_encoders))
    }
    options = values(own for _ in range(DRAWS) for own in draw_options(rng, 2))
    scorers = values(draw_scorer(rng, symmetric) for symmetric in space.symmetric for _ in range(DRAWS))
    return encoders | {"node": options, "edge": options, "scorer": scorers}


@pytest.fixture(scope="module", params=["one encoder", "all encoders"])
def spaces(request):
    kinds = sorted({kind for kind, _ in COMMITTED})
    if request.param == "all encoders":
        return dict.fromkeys(kinds, draws(space_for(GRAPHS, wide=True)))
    return {kind: draws(space_for(GRAPHS, kind)) for kind in kinds}


@pytest.mark.parametrize(("kind", "benchmark"), COMMITTED)
def test_every_value_of_a_committed_recipe_can_be_drawn(spaces, kind, benchmark):
    recipe = preset_recipe("accord", kind, benchmark=benchmark)
    for part, found in spaces[kind].items():
        own = getattr(recipe, part)
        config = own.to_config() if hasattr(own, "to_config") else {"kind": "", **asdict(own)}
        for name, value in config.items():
            assert str(value) in found[config["kind"], name], f"{part}.{name} = {value}"


def test_a_recipe_without_training_options_takes_all_graphs_an_update():
    for kind, benchmark in COMMITTED:
        assert (
            preset_recipe("accord", kind, benchmark=benchmark).training.batch_graphs in space_for(GRAPHS).batch_graphs
        )
