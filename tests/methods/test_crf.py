"""Fields trained as a whole: convergence where the loss is convex, divergence, and every variant."""

from dataclasses import replace

import pytest
import torch
from support.made_graphs import made_trees
from support.made_recipes import recipe_for
from torch.testing import assert_close

from accord.encoders import GCN, MLP, BilinearScorer, Identity, Linear, LinearScorer, Noise
from accord.errors import DivergenceWarning, InputError, OptionError, UnusedLabelsWarning
from accord.graphs import GraphBatch
from accord.inference import eliminate_beliefs
from accord.learning import GameOptions, PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.objectives import FieldObjective, game_loss, maximin_objective, raw_field
from accord.methods import CRF, GMNN, GNN, CRFRecipe, Shape, SmoothedGNN, StructuredProxyNetwork, preset_recipe

TRAIN, VAL, TEST = made_trees(60, 0, states=3), made_trees(30, 1, states=3), made_trees(60, 2, states=3)
SHAPE = Shape(3, 3)
RECIPE = CRFRecipe(
    encoder=MLP(hidden=8),
    edge_encoder=GCN(hidden=8),
    edge_channels=8,
    scorer=LinearScorer(),
    node=PartOptions(learning_rate=2e-2),
    edge=PartOptions(learning_rate=2e-2),
    training=TrainingOptions(max_epochs=30, accelerator="cpu"),
)
LINEAR = CRFRecipe(
    encoder=Linear(),
    edge_encoder=Identity(),
    scorer=LinearScorer(),
    node=PartOptions(learning_rate=0.1),
    edge=PartOptions(learning_rate=0.1),
    game=GameOptions(exact=True),
    training=TrainingOptions(max_epochs=300, evaluate_every=300, accelerator="cpu"),
)


def in_double(model, graphs):
    """A batch in float64 and the training loss of the whole field on it."""
    for part in model.parts.values():
        part.double().zero_grad()
    batch = GraphBatch.collate(graphs).to(torch.device("cpu"), torch.float64)
    game = game_loss(GameOptions(exact=True))
    objective = FieldObjective(model.networks, {}, "node", raw_field, game, model.labels_of)
    return batch, objective.losses(batch, batch.y[None], Noise(torch.tensor([0]), 0))["field"].sum()


def test_a_linear_crf_on_trees_converges_to_moment_matching():
    graphs = made_trees(150, 0)
    method = CRF(LINEAR)
    shape, replicas = Shape(2, 2), Replicas((0,))
    model, start = method.fit(TrainingRun(graphs, graphs), shape, replicas), method.build(shape, replicas)
    batch, loss = in_double(model, graphs)
    loss.backward()
    gradients = [parameter.grad for part in model.parts.values() for parameter in part.parameters()]
    norm = torch.sqrt(sum(gradient.square().sum() for gradient in gradients))
    assert norm < 1e-4
    assert loss < in_double(start, graphs)[1] - 0.1  # the exact log-likelihood has risen, in nats per node
    # The paper's conditions (Eq. 4) for log-linear potentials: expectations of the features under the field equal those
    # under the labels, at nodes and at edges.
    with torch.no_grad():
        node, edge = model.parts["node"](batch), model.parts["edge"](batch)
    beliefs = eliminate_beliefs(raw_field(node, edge, batch.topology))
    truth = torch.nn.functional.one_hot(batch.y, 2).double()
    count = len(batch.y)
    assert_close(batch.x.t() @ beliefs.node[0].exp() / count, batch.x.t() @ truth / count, rtol=0, atol=1e-4)
    source, target = batch.topology.edge_index
    pairs = truth[source][:, :, None] * truth[target][:, None, :]
    gap = (beliefs.edge[0].exp() - pairs).sum(0)
    both = gap + gap.t()  # the scorer is symmetric: a pair and its mirror image share their parameters
    assert_close(both / count, torch.zeros(2, 2, dtype=torch.float64), rtol=0, atol=1e-4)


def test_the_loss_is_the_negative_log_likelihood_with_the_gradient_of_the_game():
    model = CRF(LINEAR).build(SHAPE, Replicas((3,)))
    batch, loss = in_double(model, TRAIN)
    node, edge = model.parts["node"](batch), model.parts["edge"](batch)
    field = raw_field(node, edge, batch.topology)
    exact = field.score(batch.y[None]) - eliminate_beliefs(field).log_partition
    assert_close(loss.detach(), -exact.sum().detach() / len(batch.y))
    objective, likelihood = maximin_objective(field, batch.y[None], GameOptions(exact=True))
    assert_close(likelihood, exact.detach())
    weights = [parameter for part in model.parts.values() for parameter in part.parameters()]
    ours = torch.autograd.grad(loss, weights)
    theirs = torch.autograd.grad(-objective.sum() / len(batch.y), weights)
    for mine, other in zip(ours, theirs, strict=True):
        assert_close(mine, other)


@pytest.mark.parametrize("objective", ["maximin", "pseudolikelihood"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_trained_crf_labels_better_than_its_node_scores_alone(objective, shared):
    recipe = replace(RECIPE, objective=objective, shared=shared)
    model = CRF(recipe, "graph").fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0, 1)))
    batch = GraphBatch.collate(TEST)
    jointly = (model.labels(batch) == batch.y).double().mean(-1)
    alone = (model.node_logits(batch).argmax(-1) == batch.y).double().mean(-1)
    assert bool((jointly > alone).all()) and bool((jointly > 0.6).all())
    assert_close(model.beliefs(batch, "sum").node.exp().sum(-1), torch.ones(2, len(batch.y)))


def test_pseudolikelihood_reports_labels_that_it_cannot_use():
    """A node counts only if all its neighbours are labelled."""
    graphs = [graph.clone() for graph in TRAIN[:4]]
    recipe = replace(RECIPE, objective="pseudolikelihood", training=replace(RECIPE.training, max_epochs=1))
    labelled = sum(int(graph.num_nodes) for graph in graphs) - 1
    graphs[0].y = graphs[0].y.clone()
    graphs[0].y[0] = -1
    beside = int((graphs[0].edge_index[0] == 0).sum())
    with pytest.warns(UnusedLabelsWarning, match=f"{beside} of {labelled} labels are of nodes with an unlabelled"):
        CRF(recipe).fit(TrainingRun(graphs, VAL), SHAPE, Replicas((0,)))
    for graph in graphs:
        graph.y = torch.full_like(graph.y, -1)
        graph.y[0] = 0
    with pytest.raises(InputError, match="all 4 labels of replica 0 .* use objective 'maximin'"):
        CRF(recipe).fit(TrainingRun(graphs, VAL), SHAPE, Replicas((0,)))
    for graph, whole in zip(graphs, TRAIN, strict=False):  # the second of two tasks has no usable label
        graph.y = torch.stack([whole.y, graph.y], 1)
    with pytest.raises(InputError, match="all 4 labels of replica 1 "):
        CRF(recipe).fit(TrainingRun(graphs, VAL), replace(SHAPE, num_tasks=2), Replicas((0,), 2))


def test_propagated_beliefs_train_as_exact_ones_do_on_trees():
    exact = replace(RECIPE, game=GameOptions(exact=True))
    passed = replace(RECIPE, game=GameOptions(damping=0.0, max_sweeps=30))
    models = [CRF(recipe).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0,))) for recipe in (exact, passed)]
    for ours, theirs in zip(models[0].history, models[1].history, strict=True):
        assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", [CRF, GNN, StructuredProxyNetwork])
def test_a_diverging_run_keeps_its_best_parameters_and_warns(method):
    huge = 1e30 if method is CRF else 1e38
    part = PartOptions(learning_rate=huge)
    recipe = recipe_for(method, vars(RECIPE) | {"node": part, "edge": part})
    with pytest.warns(DivergenceWarning, match=r"seed 5 in epoch \d+ \(kept: .* Lower the learning rate"):
        model = method(recipe).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((5,)))
    batch = GraphBatch.collate(TEST)
    assert bool(model.node_logits(batch).isfinite().all())
    assert bool(model.beliefs(batch, "sum").node.exp().isfinite().all())
    assert model.labels(batch).shape == (1, len(batch.y))


@pytest.mark.parametrize("rate", [1e4, 1e15, 1e30])
@pytest.mark.parametrize("method", [CRF, GMNN, GNN, SmoothedGNN, StructuredProxyNetwork])
@pytest.mark.filterwarnings("ignore::accord.errors.DivergenceWarning")
def test_broken_networks_are_never_kept(method, rate):
    """After one step that is too long, weights may still be finite while scores are not."""
    part = PartOptions(learning_rate=rate)
    training = TrainingOptions(max_epochs=3, evaluate_every=1, accelerator="cpu")
    recipe = recipe_for(method, vars(RECIPE) | {"node": part, "edge": part, "training": training})
    model = method(recipe).fit(TrainingRun(TRAIN[:20], VAL[:10]), SHAPE, Replicas((0, 1, 2, 3)))
    batch = GraphBatch.collate(TEST)
    assert bool((model.node_logits(batch).abs() < 1e7).all())
    assert bool(model.beliefs(batch, "sum").node.exp().isfinite().all())
    assert model.labels(batch).shape == (4, len(batch.y))


def test_a_checkpoint_of_another_loss_or_method_is_refused(tmp_path):
    quick = replace(RECIPE, training=TrainingOptions(max_epochs=2, checkpoint_every=1, accelerator="cpu"))
    CRF(quick).fit(TrainingRun(TRAIN, VAL, tmp_path), SHAPE, Replicas((0,)))
    others = [
        (CRF, replace(quick, objective="pseudolikelihood")),
        (CRF, replace(quick, game=GameOptions(exact=True))),
        (CRF, replace(quick, training=replace(quick.training, batch_graphs=5))),
        (StructuredProxyNetwork, recipe_for(StructuredProxyNetwork, vars(quick))),
    ]
    for method, recipe in others:
        with pytest.raises(InputError, match="other seeds, settings, graphs or networks"):
            method(recipe).fit(TrainingRun(TRAIN, VAL, tmp_path), SHAPE, Replicas((0,)))
    again = CRF(replace(quick, training=replace(quick.training, max_epochs=3)))
    again.fit(TrainingRun(TRAIN, VAL, tmp_path), SHAPE, Replicas((0,)))  # a longer run resumes


def test_a_diverging_replica_does_not_change_the_others(tmp_path):
    calm = CRF(RECIPE).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((1,)))

    class Steep(CRF):
        """The second replica's weights become infinite at once."""

        def build(self, shape, replicas):
            model = super().build(shape, replicas)
            if replicas.count > 1:
                with torch.no_grad():
                    next(model.parts["node"].parameters())[1] = 1e30
            return model

    with pytest.warns(DivergenceWarning, match="seed 2"):
        pair = Steep(RECIPE).fit(TrainingRun(TRAIN, VAL, tmp_path), SHAPE, Replicas((1, 2)))
    for name, value in calm.tensors().items():
        assert_close(pair.tensors()[name][:1], value, rtol=1e-4, atol=1e-5)
    with pytest.warns(DivergenceWarning, match="seed 2"):  # a finished run that is resumed warns again
        again = Steep(RECIPE).fit(TrainingRun(TRAIN, VAL, tmp_path), SHAPE, Replicas((1, 2)))
    assert all(torch.equal(again.tensors()[name], value) for name, value in pair.tensors().items())


def test_the_paper_gives_crfs_their_own_rates():
    assert preset_recipe("paper", "gat", benchmark="cora*", method="crf").node.learning_rate == 1e-5
    linear = preset_recipe("paper", "linear", benchmark="cora*", method="crf")
    assert linear.edge.learning_rate == 5e-4 and linear.edge_encoder == Identity()
    assert isinstance(preset_recipe("paper", "gat", benchmark="cora*", method="crf").scorer, BilinearScorer)
    assert preset_recipe("paper", "gat", benchmark="cora*", method="gmnn").node.learning_rate == 5e-3


def test_the_identity_encoder_cannot_label_nodes():
    with pytest.raises(OptionError, match="It can serve edges only"):
        CRF(replace(RECIPE, encoder=Identity())).build(Shape(5, 3), Replicas((0,)))
    with pytest.raises(OptionError, match="CRFRecipe: objective 'guess' is unknown"):
        replace(RECIPE, objective="guess")
    for wrong in ({"exact": 1}, {"damping": 1.0}, {"max_sweeps": 0}):
        with pytest.raises(OptionError):
            GameOptions(**wrong)
