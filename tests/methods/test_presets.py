"""Presets: the values of the paper's appendix, and values for benchmarks."""

import pytest

from accord.encoders import GAT, GCNII
from accord.errors import OptionError
from accord.methods import DENSE_GRID, preset_features, preset_recipe


def test_the_papers_values_by_encoder_and_data_set():
    recipe = preset_recipe("paper", "gat", benchmark="citeseer*")
    assert recipe.encoder == GAT(hidden=256, heads=(4, 4, 6))
    assert (recipe.node.learning_rate, recipe.edge.learning_rate) == (1e-3, 5e-4)
    assert recipe.grid.sharpness == (10,)
    assert preset_recipe("paper", "gcnii", benchmark="ppi-2").encoder == GCNII(
        hidden=256, layers=9, alpha=0.5, theta=1.0, normalisation="layer"
    )
    with pytest.raises(OptionError, match="no unet on dblp"):
        preset_recipe("paper", "unet", benchmark="dblp")


def test_the_game_trains_on_batches_of_graphs():
    """All citation graphs at once would give too few updates at the paper's rate; PPI has one graph per update."""
    game = preset_recipe("paper", "gcnii", benchmark="cora*", method="crf").training
    assert (game.batch_graphs, game.max_epochs) == (20, 1000)
    assert preset_recipe("paper", "gcnii", benchmark="ppi-1", method="crf").training.batch_graphs == 1
    assert preset_recipe("paper", "linear", benchmark="cora*", method="crf").training.batch_graphs is None
    assert preset_recipe("paper", "gcnii", benchmark="cora*").training.batch_graphs is None


def test_ppi_has_candidates_of_low_sharpness():
    assert preset_recipe("accord", "sage", benchmark="ppi-1").grid == DENSE_GRID
    assert preset_recipe("accord", "sage", benchmark="cora*").grid != DENSE_GRID


@pytest.mark.parametrize("preset", ["accord", "paper"])
@pytest.mark.parametrize("written", ["GCN", "GraphSAGE", "GCNII"])
def test_names_of_encoders_ignore_case(preset, written):
    assert preset_recipe(preset, written) == preset_recipe(preset, written.lower())
    assert preset_recipe(preset, "gcn", written).edge_encoder == preset_recipe(preset, written).encoder


@pytest.mark.parametrize(("written", "name"), [("Cora", "cora*"), ("PPI", "ppi-20"), ("pubmed*", "pubmed*")])
def test_benchmarks_have_the_names_of_load_benchmark(written, name):
    assert preset_recipe("accord", "gcnii", benchmark=written) == preset_recipe("accord", "gcnii", benchmark=name)
    assert preset_features("paper", written) == preset_features("paper", name)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(OptionError, match="no benchmark called 'corra'. Choose one of: cora.*digits"):
        preset_recipe("accord", "gcn", benchmark="corra")
    with pytest.raises(OptionError, match="preset 'mine' is unknown"):
        preset_recipe("mine")
