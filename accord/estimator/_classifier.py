"""`NodeClassifier`: learn from labelled graphs, label new ones jointly, save and load."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch_geometric.data import Data

from accord._files import locked
from accord._launched import launched_rank
from accord.encoders import EncoderSpec
from accord.encoders.scorers.triangles import check_table_size
from accord.errors import OptionError
from accord.estimator._checks import check_parameters, short_repr
from accord.estimator._saving import write_model
from accord.estimator._stored import config_of, load_model, tensors_of
from accord.estimator.fitting._automatic import (
    AUTO,
    edge_columns_for,
    fixed_encoders,
    is_automatic,
    portfolio_for,
    recipe_for,
    treatment_for,
    with_direction,
    with_edge_columns,
    with_training,
)
from accord.estimator.fitting._inputs import Known, read_training
from accord.estimator.fitting._search import fit_searched
from accord.estimator.fitting._start import check_start, fit_once
from accord.estimator.fitting._streaming import check_streaming
from accord.estimator.fitting._unlabelled import learn_from, read_unlabelled
from accord.estimator.fitting._weights import ClassWeight, check_class_weight, state_weights
from accord.estimator.labelling._labelling import Labelling
from accord.estimator.labelling._trust import warn_of_majority
from accord.estimator.sequences import WORDS, check_sequence_options, fit_inputs, reads_words
from accord.evaluation import check_level
from accord.graphs import WordOptions, each, training_nodes
from accord.learning import RefinementOptions, Replicas, Report, TrainingRun
from accord.learning.training import usual_torch
from accord.methods import (
    METHODS,
    GMNNRecipe,
    Method,
    Recipe,
    SPNRecipe,
    TriangleRecipe,
    check_order,
    check_refit,
    preset_features,
    preset_recipe,
    refit,
)
from accord.tuning import fit_portfolio, read_recipe


class NodeClassifier(Labelling, ClassifierMixin, BaseEstimator):
    """Labels the nodes of new graphs jointly.

    Graphs are PyG `Data` with `x` [nodes, features], `edge_index`, and for training `y` [nodes] (or [nodes, tasks],
    one binary or multi-state label each); -1 stands for a missing label. Features are given raw: the model treats
    them as it was trained, in `predict`, `score` and on the command line alike.

    Args:
        method: "spn" (joint labels), "crf" (a field trained as a whole), "gmnn", "gnn" (the node network alone) or
            "smooth" (its predictions smoothed over the graph).
        encoder: "gcn", "sage", "gat", "unet", "gcnii", "mlp", "linear", an encoder of your own, or "auto": the best on
            validation data of several (gcnii for a benchmark, or where the method trains its networks together). For
            sequences (paths in node order): "bilstm" (what "auto" takes for graphs with tokens), "bigru",
            "transformer" or "convolution".
        edge_encoder: the same for the edge network; None takes the node network's, or "auto" where that is.
        level: the score on validation data that decides all choices: accuracy of "node"s or of "graph"s (every node
            right), "f1", "likelihood" or "auc" (`accord.evaluation.LEVELS`).
        refine: train the SPN further through its field, by the maximin game.
        max_epochs: None takes the preset's.
        seed: of weights, dropout and held-out graphs.
        preset: "accord", "authors" or "paper".
        benchmark: take the preset's recipe and treatment of features for this benchmark.
        recipe: every choice at once; overrides preset, encoder and benchmark, and includes refinement if it has
            options for it. A path is that of a recipe file, as `accord tune` writes it, with a treatment of features.
        num_states: how many values a label can take; None counts them in the training labels.
        label_names: names of the states, kept with the model; None takes those that graphs carry
            (`Data.label_names`, as `accord.datasets.read_graphs` sets them), sorted. Labels are then matched by name.
        accelerator: "auto", "cpu" or "cuda".
        devices: processes of each machine that train together, started by torchrun or `accord fit --devices`. They
            share every batch of graphs, with the result of one process; the first one writes files.
        nodes: machines that train together.
        training: options of `TrainingOptions` by name, such as {"clusters": 32}; all else is decided as without them.
        features: "raw", "row-normalised", "standardised" (by the training nodes), "words" (`Data.tokens`, a list of
            strings, by a vocabulary of the training graphs), or "auto": words where graphs have tokens; for a benchmark
            the preset's choice, else the benchmark's own; for other data standardised, unless features are sparse.
        task_names: names of the labels of a node where it has several, kept with the model.
        symmetric: whether the edge network ignores the direction in which edges are stored. "auto" decides on
            validation data where edges come in one direction only, or with other attributes in each direction.
        ensemble: how many members are trained side by side, with seeds `seed`, `seed` + 1 and so on; their evidence
            on nodes and edges is averaged, and one field is built of it.
        refit: after every choice is made, train again on training and validation graphs together, for as many updates
            as were chosen.
        class_weight: weights of training labels: "balanced" (every state counts the same in total, task by task), a
            list of numbers by state, or a dict by label name or state, where others weigh 1. Only their ratios count.
        fallback: `predict` gives the node network's labels for a graph whose joint labels differ from them far more
            often than on validation graphs.
        search: how many settings to try on validation data before the best are trained; None tries none. Encoders and
            features that are given stay; what is left at its default is searched. Trials know class weights; they have
            one member each. The best settings are then trained with `ensemble`, and kept if they are better on
            validation data than the same model without a search.
        order: 2 for a field of pairs, 3 for one of pairs and triangles (method "spn"): a third network scores the
            labels of linked triples, and counts as far as that gains on validation data.
        words: how tokens are read (`accord.graphs.WordOptions`): vectors of words, characters; None for the defaults.
        scheme: of the labels of sequences. "bio" rules out I-x at the start and after anything but B-x and I-x, in
            training and prediction; "auto" does so where all labels have such names and all graphs obey; None never.

    Attributes:
        treatment_: the fitted treatment of features.
        label_names_: names of the states, or None where labels are numbers.
        feature_names_: names of the feature columns (`Data.feature_names`), or None.
        columns_: names and kinds of the columns of nodes and edges, for `accord.datasets.read_graphs`.
        classes_: the states, numbered from 0.
        candidates_: networks that were tried, with validation score and loss; empty where nothing was to be chosen.
        search_results_: with `search`, the trials as dictionaries, best first.
        unlabelled_: what came of unlabelled graphs: "graphs" (how many), "share" (of their labels that were used),
            "kept" (whether the training with them was) and "scores" (on validation data, without and with them); None
            where none were given.
    """

    def __init__(
        self,
        method: str = "spn",
        encoder: str | EncoderSpec = AUTO,
        edge_encoder: str | EncoderSpec | None = None,
        level: str = "node",
        refine: bool = False,
        max_epochs: int | None = None,
        seed: int = 0,
        preset: str = "accord",
        benchmark: str | None = None,
        recipe: Recipe | str | Path | None = None,
        num_states: int | None = None,
        label_names: Sequence[str] | None = None,
        accelerator: str = "auto",
        features: str = "auto",
        task_names: Sequence[str] | None = None,
        symmetric: bool | str = AUTO,
        ensemble: int = 1,
        refit: bool = False,
        class_weight: ClassWeight = None,
        fallback: bool = False,
        search: int | None = None,
        order: int = 2,
        words: WordOptions | None = None,
        scheme: str | None = AUTO,
        devices: int = 1,
        nodes: int = 1,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.edge_encoder = edge_encoder
        self.level = level
        self.refine = refine
        self.max_epochs = max_epochs
        self.seed = seed
        self.preset = preset
        self.benchmark = benchmark
        self.recipe = recipe
        self.num_states = num_states
        self.label_names = label_names
        self.accelerator = accelerator
        self.features = features
        self.task_names = task_names
        self.symmetric = symmetric
        self.ensemble = ensemble
        self.refit = refit
        self.class_weight = class_weight
        self.fallback = fallback
        self.search = search
        self.order = order
        self.words = words
        self.scheme = scheme
        self.devices, self.nodes = devices, nodes
        self.training = training

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Parameters that differ from their defaults, each in a few characters; scikit-learn gives the limit."""
        return short_repr(self)[:N_CHAR_MAX]

    # What the parameters stand for

    def resolve_recipe(self, graphs: Sequence[Data] | None = None) -> Recipe:
        """The recipe that `fit` starts from; parameters that cannot be used are refused here.

        With training graphs, batches and epochs follow them. Encoders and direction that are "auto" are chosen by
        `fit`; `recipe_` then has the result.
        """
        recipe = self._plain_recipe(reads_words(graphs, self.features))
        return recipe if graphs is None else recipe_for(recipe, self.get_params(deep=False), graphs)

    def _plain_recipe(self, words: bool) -> Recipe:
        """The recipe for graphs with or without tokens."""
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise OptionError(f"NodeClassifier: method {self.method!r} is unknown. Choose one of {sorted(METHODS)}.")
        if self.refine and self.method != "spn":
            raise OptionError(f"NodeClassifier: method {self.method!r} has no refinement. Set refine=False.")
        check_order(self.order)
        if self.order == 3 and self.method != "spn":
            raise OptionError(f"NodeClassifier: method {self.method!r} has no order 3. Set order=2, or method='spn'.")
        check_level(self.level)
        check_parameters(self.get_params(deep=False))
        check_sequence_options(self.words, self.scheme)
        encoder, edge_encoder = fixed_encoders(self.get_params(deep=False), words)
        given = read_recipe(self.recipe).recipe if isinstance(self.recipe, (str, Path)) else self.recipe
        recipe = given or preset_recipe(self.preset, encoder, edge_encoder, self.benchmark, self.method, self.refine)
        if self.refine and isinstance(recipe, SPNRecipe) and recipe.refinement is None:
            recipe = replace(recipe, refinement=RefinementOptions())
        if self.order == 3 and isinstance(recipe, SPNRecipe) and recipe.triangles is None:
            recipe = replace(recipe, triangles=TriangleRecipe())
        check_class_weight(self.class_weight, self.method, getattr(recipe, "refinement", None) is not None)
        recipe = with_training(recipe, self.get_params(deep=False))
        method = METHODS[self.method](recipe, self.level, self.ensemble)
        if self.refit:
            check_refit(method)
        return recipe

    def resolve_features(self, graphs: Sequence[Data]) -> str:
        """The treatment of features that `fit` will use on these training graphs, if they are raw."""
        if self.features != AUTO:
            return self.features
        if isinstance(self.recipe, (str, Path)):
            return read_recipe(self.recipe).features
        if reads_words(graphs, self.features):
            return WORDS
        own = self.benchmark is None and self.preset == "accord"
        return treatment_for(graphs) if own else preset_features(self.preset, self.benchmark)

    def candidates(self, graphs: Sequence[Data]) -> list[list[str]]:
        """Kinds of encoders that `fit` will train on these graphs: of the node network, and of a second one."""
        recipe = self.resolve_recipe(graphs)
        portfolio = portfolio_for(recipe, self.get_params(deep=False), graphs)
        kinds = [[one.encoder.kind for one in part] for part in (portfolio.nodes, portfolio.edges) if part]
        if isinstance(recipe, GMNNRecipe):
            kinds.append([recipe.label_encoder.kind])
        return kinds[:1] if kinds[0] == kinds[-1] else kinds

    def planned_epochs(self, graphs: Sequence[Data], unlabelled: bool = False, start: bool = False) -> int:
        """How many epochs `fit` takes at most on these training graphs, over all candidates and stages.

        Args:
            graphs: the training graphs.
            unlabelled: whether there are unlabelled graphs too.
            start: whether training goes on from a model, whose networks are the only candidates then.
        """
        recipe = self.resolve_recipe(graphs)
        portfolio = portfolio_for(recipe, self.get_params(deep=False), graphs)
        whole = METHODS[self.method](recipe, self.level).epochs
        extra = portfolio.trainings(recipe) - 1 if portfolio.is_choice and not start else 0
        return (1 + self.refit + unlabelled) * whole + extra * recipe.training.max_epochs

    # Learning

    def fit(
        self,
        graphs: Sequence[Data],
        validation: Sequence[Data] | None = None,
        folder: str | Path | None = None,
        report: Report | None = None,
        *,
        unlabelled: Sequence[Data] | None = None,
        start: "NodeClassifier | None" = None,
    ) -> "NodeClassifier":
        """Learn from labelled graphs.

        Args:
            graphs: training graphs, with raw features: a list, a single `Data`, or `accord.datasets.GraphFiles`, which
                are read from disk batch by batch. Of a graph with a `train_mask`, only the labels in it are trained
                on, and features are scaled by these nodes.
            validation: graphs to choose by, of a graph with a `val_mask` the labels in it. None takes the labels in
                `val_mask` of the training graphs; without such labels, a fifth of the training graphs is held out,
                or of a single graph a fifth of its training labels.
            folder: where to keep checkpoints; a run that was interrupted continues from there. It is locked: a second
                process that trains in it is refused.
            report: called with a row of numbers at every evaluation on validation data.
            unlabelled: more graphs, whose labels are not read. After training, joint labels of them with a probability
                of at least 0.8 become training labels and the same networks are trained again; the result is kept only
                if it is better on validation data beyond noise (`unlabelled_`).
            start: a fitted or loaded model to go on from. Its weights, label names and treatment of features are
                taken over. Method, networks, feature columns and labels must be the same. The result is never worse on
                validation data than these weights.

        Gradients are recorded and weights are float32 whatever torch is set to (`torch.no_grad`, default type).
        """
        with usual_torch(), nullcontext() if folder is None else locked(Path(folder)):
            return self._fit(graphs, validation, None if folder is None else Path(folder), report, unlabelled, start)

    def _fit(
        self,
        graphs: Sequence[Data],
        validation: Sequence[Data] | None,
        folder: Path | None,
        report: Report | None,
        unlabelled: Sequence[Data] | None,
        start: "NodeClassifier | None",
    ) -> "NodeClassifier":
        check_streaming(graphs, validation, search=self.search, refit=self.refit, unlabelled=unlabelled)
        train, held_out = self._read(graphs, validation, start)
        others = None if unlabelled is None else read_unlabelled(self, unlabelled)
        if self.search is None:
            features = self.resolve_features(each(train, training_nodes))
            run = self._learn(train, held_out, features, folder, report, start)
        else:
            run = fit_searched(self, train, held_out, folder, report)
        self.unlabelled_ = None
        if others is not None:
            self.model_, run, self.unlabelled_ = learn_from(self, others, run, lambda more: fit_once(self, more, start))
        if self.refit:
            refit(self.model_, self._method(), run, self.shape_, self._members())
        warn_of_majority(self.model_, self.treatment_.name == WORDS)
        return self

    def _learn(
        self,
        train: Sequence[Data],
        validation: Sequence[Data],
        features: str,
        folder: Path | None,
        report: Report | None,
        start: "NodeClassifier | None" = None,
    ) -> TrainingRun:
        """Treat graphs that have been read, and train the networks on them. Returns their run."""
        self.treatment_, self.recipe_, self.shape_ = fit_inputs(self, train, validation, features, start)
        train, validation = (each(part, self.treatment_.apply) for part in (train, validation))
        weights = state_weights(self.class_weight, train, self.shape_, self.label_names_)
        return self._train(TrainingRun(train, validation, folder, report, weights), start)

    def _train(self, run: TrainingRun, start: "NodeClassifier | None") -> TrainingRun:
        """Train the networks; of several candidates the best on validation data are kept. Returns their run."""
        parameters = self.get_params(deep=False)
        self.recipe_ = recipe_for(self.recipe_, parameters, run.train)
        portfolio = portfolio_for(self.recipe_, parameters, run.train)
        self.candidates_, plain = [], (run, self.shape_)
        if start is None:
            wanted = (self.recipe_, portfolio, self.symmetric, run.train, self.shape_.edge_attributes)
            self.edge_columns_ = edge_columns_for(*wanted)
        else:
            self.edge_columns_ = start.edge_columns_
            self.recipe_ = replace(self.recipe_, edge_inputs=start.recipe_.edge_inputs)
        run, self.shape_ = with_edge_columns(self.edge_columns_, run, self.shape_)
        if start is not None or not portfolio.is_choice:
            self.recipe_ = with_direction(self.recipe_, portfolio) if start is None else self.recipe_
            self.model_ = fit_once(self, run, start)
            return run
        tried = plain if self.edge_columns_ is not None and portfolio.edge_inputs else None
        fitted = fit_portfolio(portfolio, self._method(), run, self.shape_, self._members(), tried)
        self.model_, self.recipe_, self.candidates_ = fitted.model, fitted.recipe, fitted.table
        self.shape_, self.edge_columns_ = fitted.shape, self.edge_columns_ if fitted.shape.edge_columns else None
        return fitted.run

    def _read(
        self, graphs: Sequence[Data], validation: Sequence[Data] | None, start: "NodeClassifier | None" = None
    ) -> tuple[Sequence[Data], Sequence[Data]]:
        """Training and validation graphs, with labels as states; sets what the data alone decide."""
        self.recipe_ = self._plain_recipe(reads_words(graphs, self.features))
        if start is not None:
            if is_automatic(self.get_params(deep=False)):
                self.recipe_ = replace(start.recipe_, training=self.recipe_.training)  # its networks go on
            check_start(start, self, self.recipe_)
        known = None if start is None else Known(start.columns_, start.label_names_, start.given_shape_)
        names, scaled = (self.label_names, self.task_names), self.features != "raw"
        data = read_training(graphs, validation, self.seed, self.num_states, *names, known, scaled)
        self.columns_, self.label_names_, self.shape_ = data.columns, data.label_names, data.shape
        if getattr(self.recipe_, "triangles", None) is not None:
            check_table_size(self.shape_.num_states)
        self.given_shape_ = data.shape
        self.classes_ = torch.arange(self.shape_.num_states).numpy()
        self.replicas_ = Replicas((self.seed,), self.shape_.num_tasks)
        return data.train, data.validation

    def _method(self) -> Method:
        return METHODS[self.method](self.recipe_, self.level, self.ensemble)

    def _members(self) -> Replicas:
        """The replicas of all members of the ensemble; `replicas_` has one seed, that of their average."""
        return replace(self.replicas_, seeds=tuple(range(self.seed, self.seed + self.ensemble)))

    # Saving

    def save(self, folder: str | Path) -> None:
        """Write weights (safetensors), configuration (json) and a model card; nothing that could run code."""
        self._check_fitted()
        if self.devices * self.nodes == 1 or launched_rank() == 0:
            write_model(Path(folder), tensors_of(self), config_of(self))

    @classmethod
    def load(cls, folder: str | Path, accelerator: str = "cpu") -> "NodeClassifier":
        """Read a model that `save` wrote, for use on the CPU or (accelerator "cuda") a GPU."""
        return load_model(cls, Path(folder), accelerator)
