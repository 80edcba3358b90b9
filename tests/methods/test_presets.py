"""Presets: the values of the paper's appendix, and values for benchmarks."""

import pytest
import torch

from accord.encoders import GAT, GCNII, BilinearScorer, FullBilinearScorer, GraphUNet, LinearScorer
from accord.errors import OptionError
from accord.field import PairwiseField
from accord.inference import propagate
from accord.methods import DENSE_GRID, preset_features, preset_recipe


def test_the_papers_values_by_encoder_and_data_set():
    recipe = preset_recipe("paper", "gat", benchmark="citeseer*")
    assert recipe.encoder == GAT(hidden=256, heads=(4, 4, 6))
    assert (recipe.node.learning_rate, recipe.edge.learning_rate) == (1e-3, 5e-4)
    assert recipe.grid.sharpness == (10,)
    assert (recipe.grid.normaliser, recipe.grid.power, recipe.damping) == (("node",), (1.0,), 0.0)  # Eq. 5 and 12
    assert isinstance(recipe.scorer, BilinearScorer)
    assert preset_recipe("paper", "gcnii", benchmark="ppi-2").encoder == GCNII(
        hidden=256, layers=9, alpha=0.5, theta=1.0, normalisation="layer"
    )
    with pytest.raises(OptionError, match="no unet on dblp"):
        preset_recipe("paper", "unet", benchmark="dblp")


def test_the_authors_networks():
    """Each is a value: skip, norm and second weight of GCNII, pooling of U-Net, where dropout lies, the scorer."""
    gcnii = preset_recipe("authors", "gcnii", benchmark="cora*")
    own = {"skip": True, "shared_weights": False, "normalisation": "layer", "normalise_skip": True}
    assert gcnii.encoder == GCNII(hidden=256, layers=9, alpha=0.5, theta=1.0, **own)
    assert gcnii.edge_encoder.build(3, 64, [0]).out_channels == 256  # the scorer reads the full width
    assert gcnii.scorer == FullBilinearScorer(dropout=0.5)
    unet = preset_recipe("authors", "unet", benchmark="pubmed*")
    assert unet.encoder == GraphUNet(hidden=64, depth=3, pool_batch=True, head=True)
    assert (unet.edge_encoder, unet.scorer.dropout) == (GraphUNet(hidden=64, depth=3, pool_batch=True), 0.5)
    gat = preset_recipe("authors", "gat", benchmark="cora*")
    assert (gat.encoder.last_dropout, gat.edge_encoder.last_dropout, gat.scorer.dropout) == (0.0, 0.5, 0.0)
    assert gat.edge.learning_rate == gat.node.learning_rate == 1e-2
    ppi = preset_recipe("authors", "gcnii", benchmark="ppi-1")
    assert (ppi.encoder.normalisation, ppi.encoder.normalise_skip, ppi.scorer.kind) == ("layer", True, "linear")
    assert preset_recipe("authors", "gat", "gcnii", benchmark="cora*").edge_encoder == gcnii.edge_encoder


def test_the_authors_training_and_field():
    gat = preset_recipe("authors", "gat", benchmark="cora*", refine=True)
    assert gat.grid.sharpness == (100.0, 10.0, 2.0, 1.0, 0.5, 0.2, 0.1)
    assert (gat.grid.power, gat.grid.normaliser, gat.grid.sweeps, gat.damping) == ((0.1,), ("own",), (5,), 0.0)
    assert (gat.edge_level, gat.refinement.max_epochs, gat.training.max_epochs) == ("graph", 300, 200)
    assert preset_recipe("authors", "gat", benchmark="ppi-2").edge_level == "edge"
    crf = preset_recipe("authors", "gat", benchmark="cora*", method="crf")
    assert (crf.training.max_epochs, crf.training.batch_graphs, crf.node.learning_rate) == (5000, None, 1e-5)
    assert preset_recipe("authors", "linear", benchmark="cora*", method="crf").scorer == LinearScorer()
    gmnn = preset_recipe("authors", "gcnii", benchmark="cora*", method="gmnn")
    assert gmnn.label_encoder == gmnn.encoder


def test_the_authors_messages_are_tree_reweighted_ones_with_twice_the_node_evidence():
    """Their update, in words: what a source says is the best over its states of table + its evidence + half of all it
    hears - what the target said; labels are best by evidence + half of all that is heard."""
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    node, edge = torch.randn(4, 3, generator=generator), 2 * torch.randn(5, 3, 3, generator=generator)
    source, target = torch.cat([edge_index, edge_index.flip(0)], 1)
    tables = torch.cat([edge, edge.transpose(1, 2)])
    reverse = torch.arange(10).roll(5)
    messages = torch.zeros(10, 3)
    for _ in range(5):
        heard = torch.zeros(4, 3).index_add(0, target, messages)
        said = tables + (node[source] + 0.5 * heard[source] - messages[reverse])[:, :, None]
        messages = said.amax(1).log_softmax(-1)
    wanted = node + 0.5 * torch.zeros(4, 3).index_add(0, target, messages)
    field = PairwiseField(edge_index, 2 * node, edge)
    found = propagate(field, semiring="max", edge_appearance=0.5, max_sweeps=5, tolerance=0).node
    torch.testing.assert_close(found, 2 * (wanted - wanted.amax(-1, keepdim=True)), atol=1e-4, rtol=1e-4)


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


@pytest.mark.parametrize("preset", ["accord", "authors", "paper"])
@pytest.mark.parametrize("written", ["GCN", "GraphSAGE", "GCNII"])
def test_names_of_encoders_ignore_case(preset, written):
    assert preset_recipe(preset, written) == preset_recipe(preset, written.lower())
    same = preset_recipe(preset, "gcn", written.lower())
    assert preset_recipe(preset, "gcn", written) == same


@pytest.mark.parametrize(("written", "name"), [("Cora", "cora*"), ("PPI", "ppi-20"), ("pubmed*", "pubmed*")])
def test_benchmarks_have_the_names_of_load_benchmark(written, name):
    assert preset_recipe("accord", "gcnii", benchmark=written) == preset_recipe("accord", "gcnii", benchmark=name)
    assert preset_features("paper", written) == preset_features("paper", name)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(OptionError, match="no benchmark called 'corra'. Choose one of: cora.*digits"):
        preset_recipe("accord", "gcn", benchmark="corra")
    with pytest.raises(OptionError, match="preset 'mine' is unknown"):
        preset_recipe("mine")
