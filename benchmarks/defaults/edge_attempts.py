"""Can edge networks learn more about which edges join equal labels? Attempts, each compared with the default's.

    python benchmarks/defaults/edge_attempts.py results/edges --seeds 0 1
    python benchmarks/defaults/edge_attempts.py results/edges --seeds 2 3 4    # adds to the records
    python benchmarks/defaults/edge_attempts.py OUT --tasks "cora*" --seeds 0 --updates 300

The first node network and the edge networks of the default model are trained once, then each attempt in `attempt_all`.
Validation graphs are divided in two: one half ends trainings, fits what is fitted and chooses how networks combine; the
other half judges. Test graphs are read once, after every attempt of a task is trained and its combination is chosen.
"""

import argparse
import json
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from edge_networks import STRUCTURE, Network, PairObjective, numbered
from edge_page import ALONE, CEILING, DEFAULT, markdown
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch_geometric.data import Data

from accord._files import write_json, write_text
from accord.bench.defaults import TASKS, load_task
from accord.encoders import AgreementScorer, ScorerSpec
from accord.estimator.fitting._automatic import treatment_for
from accord.evaluation import graph_accuracy, joint_gain, macro_auc, node_accuracy
from accord.experiments import provenance
from accord.graphs import GraphBatch, fit_treatment
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import edge_loss
from accord.learning.selection import FieldChoice, choose_carefully
from accord.learning.training import Trainer, learned
from accord.methods import Shape, SPNRecipe, preset_recipe
from accord.methods._networks import edge_keys
from accord.tuning import edge_candidates, fit_schedule, node_candidates
from accord.tuning._candidates import Candidate
from accord.tuning._parts import train_node_part

DEFAULT_TASKS = ("cora*", "citeseer*", "pubmed*", "photo-egos")
SPLIT = 10  # seed of the split of tasks that are cut out of one graph
TWO_HOPS = 0.3  # weight of the loss of pairs within two hops
FOLDS = 3  # of training nodes, for the node network's probabilities of nodes that it was not trained on


@dataclass(eq=False)
class Setting:
    """Everything that the attempts on one task share."""

    level: str
    recipe: SPNRecipe
    edges: tuple[Candidate, ...]
    shape: Shape
    replicas: Replicas
    graphs: dict[str, list[Data]]  # "train", "fit", "judge" and "test"; numbered, with structure as edge_attr
    node: Tensor  # [R, numbers, states], log-probabilities by the node network
    node_part: nn.Module

    def __post_init__(self) -> None:
        self.batches = {name: GraphBatch.collate(own).to("cpu", torch.float32) for name, own in self.graphs.items()}

    def nodes_of(self, split: str) -> Tensor:
        """Log-probabilities of the nodes of a split [R, nodes, states]."""
        return self.node[:, self.batches[split].x[:, -1].long()]

    def truth(self, split: str) -> Tensor:
        """Labels [R, nodes]."""
        return self.replicas.targets(self.batches[split].y)

    def equal(self, split: str) -> Tensor:
        """1 for edges that join equal labels, 0 for others, -1 where a label is missing [R, edges]."""
        source, target = (self.truth(split)[:, end] for end in self.batches[split].topology.edge_index)
        return torch.where((source >= 0) & (target >= 0), (source == target).long(), -1)

    def node_pairs(self, split: str) -> Tensor:
        """Log-probabilities of pairs by the node network alone [R, edges, states, states]."""
        source, target = (self.nodes_of(split)[:, end] for end in self.batches[split].topology.edge_index)
        return source[..., :, None] + target[..., None, :]


def load_setting(name: str, seeds: tuple[int, ...], updates: int) -> Setting:
    """Load a task, divide its validation graphs and train the node network."""
    task = load_task(name, SPLIT)
    treatment = fit_treatment(treatment_for(task.train), task.train)
    train, val, test = ([treatment.apply(graph) for graph in part] for part in task.splits)
    order = torch.randperm(len(val), generator=torch.Generator().manual_seed(SPLIT)).tolist()
    fit, judge = ([val[i] for i in order[first::2]] for first in (0, 1))
    recipe = preset_recipe("accord", "gcnii")
    training = replace(fit_schedule(recipe.training, train), accelerator="cpu")
    per_epoch = -(-len(train) // (training.batch_graphs or len(train)))
    training = replace(training, max_epochs=min(training.max_epochs, max(updates // per_epoch, 1)))
    own = node_candidates(train)[0]
    recipe = replace(recipe, encoder=own.encoder, node=own.options, training=training)
    shape, replicas = Shape(train[0].x.shape[1], task.num_states), Replicas(seeds)
    part = train_node_part(recipe, TrainingRun(train, fit), shape, replicas).part
    splits = {"train": train, "fit": fit, "judge": judge, "test": test}
    with torch.no_grad():
        node = torch.cat([part(GraphBatch.collate(own)).log_softmax(-1) for own in splits.values()], 1)
    return Setting(task.level, recipe, edge_candidates(train), shape, replicas, numbered(splits), node, part)


def held_out_node(setting: Setting) -> Tensor:
    """Log-probabilities as `Setting.node`; those of training nodes come from networks that never saw their labels.

    Nodes are divided by their number in the whole graph, because ego networks overlap.
    """

    def masked(graph: Data, fold: Tensor | None) -> Data:
        labels = graph.y[:, None].repeat(1, FOLDS)
        if fold is not None:
            labels[fold[:, None] == torch.arange(FOLDS)] = -1
        return Data(x=graph.x[:, :-1], y=labels, edge_index=graph.edge_index)

    train = setting.graphs["train"]
    folds = [graph.node_id % FOLDS for graph in train]
    run = TrainingRun(
        [masked(graph, fold) for graph, fold in zip(train, folds, strict=True)],
        [masked(graph, None) for graph in setting.graphs["fit"]],
    )
    replicas, shape = replace(setting.replicas, num_tasks=FOLDS), replace(setting.shape, num_tasks=FOLDS)
    part = train_node_part(setting.recipe, run, shape, replicas).part
    with torch.no_grad():
        logs = part(GraphBatch.collate(run.train)).log_softmax(-1).unflatten(0, (-1, FOLDS))  # [R, folds, nodes, K]
    fold, found = torch.cat(folds), setting.node.clone()
    found[:, : len(fold)] = logs[:, fold, torch.arange(len(fold))]
    return found


def train(
    setting: Setting,
    candidate: Candidate,
    scorer: ScorerSpec | None = None,
    prior: Tensor | None = None,
    structure: bool = False,
    two_hops: float = 0.0,
    by_loss: bool = False,
    start: nn.Module | None = None,
) -> Network:
    """Train one edge network.

    Args:
        setting: data, sizes and seeds.
        candidate: encoder and options.
        scorer: None takes the default's.
        prior: see `Network`.
        structure: whether the scorer reads the structure of edges.
        two_hops: weight of pairs within two hops.
        by_loss: what parameters are kept by.
        start: a node network whose weights the encoder starts from, wherever shapes agree.
    """
    recipe, keys = setting.recipe, edge_keys(setting.replicas)
    encoder = candidate.encoder.build(setting.shape.num_features, recipe.edge_channels, keys)
    if start is not None:
        theirs = learned(start.encoder)
        with torch.no_grad():
            for name, value in learned(encoder).items():
                if theirs[name].shape == value.shape:
                    value.copy_(theirs[name])
    attributes = len(STRUCTURE) if structure else 0
    built = (scorer or recipe.scorer).build(recipe.edge_channels, setting.shape.num_states, keys, attributes)
    network = Network(encoder, built, prior)
    objective = PairObjective(network, candidate.options, two_hops, by_loss)
    Trainer(objective, setting.replicas, recipe.training).fit(
        TrainingRun(setting.graphs["train"], setting.graphs["fit"])
    )
    return network


def tables_of(setting: Setting, network: Network) -> dict[str, Tensor]:
    """Log-probabilities of pairs [R, edges, states, states] on each split but training."""
    found = {}
    for split in ("fit", "judge", "test"):
        with torch.no_grad():
            scores = network(setting.batches[split])
        found[split] = scores.flatten(-2).log_softmax(-1).view_as(scores)
    return found


def agreement_of(tables: Tensor) -> Tensor:
    """Probability of equal labels [R, edges]."""
    return tables.diagonal(dim1=-2, dim2=-1).logsumexp(-1).exp()


def calibrated(setting: Setting, tables: dict[str, Tensor], base: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tables whose agreement is a logistic regression of all that is known, fitted on one half of the validation data.

    Inputs: the logits of agreement by the node and by the edge network, and the structure of the edge.

    Args:
        setting: the data.
        tables: of the edge network.
        base: tables that keep their proportions within equal and within different pairs.
    """

    def inputs(split: str, replica: int) -> Tensor:
        both = agreement_of(setting.node_pairs(split)), agreement_of(tables[split])
        logits = [own[replica].double().clamp(1e-4, 1 - 1e-4).logit() for own in both]
        return torch.cat([torch.stack(logits, 1), setting.batches[split].edge_attr.double()], 1)

    found: dict[str, list[Tensor]] = {split: [] for split in tables}
    same = torch.eye(setting.shape.num_states, dtype=torch.bool)
    for replica in range(setting.replicas.count):
        equal = setting.equal("fit")[replica]
        model = LogisticRegression(max_iter=1000).fit(inputs("fit", replica)[equal >= 0], equal[equal >= 0])
        for split, own in base.items():
            wanted = torch.from_numpy(model.predict_proba(inputs(split, replica))[:, 1]).float()
            now = agreement_of(own[replica]).clamp(1e-6, 1 - 1e-6)
            shifts = [ratio.log()[:, None, None] for ratio in (wanted / now, (1 - wanted) / (1 - now))]
            found[split].append(own[replica] + torch.where(same, *shifts))
    return {split: torch.stack(own) for split, own in found.items()}


def combination(setting: Setting, tables: Tensor) -> FieldChoice:
    """How node network and tables combine, chosen on the half of the validation data that fits."""
    batch, recipe = setting.batches["fit"], setting.recipe
    known = setting.truth("train") >= 0
    source, target = setting.batches["train"].topology.edge_index
    counts = known.sum(-1), (known[:, source] & known[:, target]).sum(-1)
    nodes, edges = (recipe.shrinkage / (count + recipe.shrinkage) for count in counts)
    args = (setting.nodes_of("fit"), tables, setting.truth("fit"), batch.topology)
    return choose_carefully(*args, setting.level, recipe.grid, recipe.damping, (nodes, edges))


def scores_of(setting: Setting, split: str, tables: Tensor, choice: FieldChoice | None) -> dict[str, list[float]]:
    """AUC of agreement, loss of pairs and accuracies [R]; without a choice the node network labels alone."""
    edges, truth = setting.batches[split].topology, setting.truth(split)
    same, node = agreement_of(tables), setting.nodes_of(split)
    labels = node.argmax(-1)
    if choice is not None:
        labels = choice.labels(choice.field(node, tables, edges), setting.recipe.damping)
    return {
        "auc": macro_auc(torch.stack([-same, same], -1), setting.equal(split)).tolist(),
        "loss": edge_loss(tables, truth, edges).tolist(),
        "graph": graph_accuracy(labels, truth, edges).tolist(),
        "node": node_accuracy(labels, truth).tolist(),
    }


def ceiling_of(setting: Setting, split: str) -> dict[str, list[float]]:
    """Accuracies by the node network if agreement were known [R]."""
    edges, truth, node = setting.batches[split].topology, setting.truth(split), setting.nodes_of(split)
    gains = [joint_gain(node[[r]], {}, truth[[r]], edges) for r in range(len(node))]
    return {"graph": [gain.graph_accuracy for gain in gains], "node": [gain.node_accuracy for gain in gains]}


def attempt_all(setting: Setting) -> tuple[dict[str, dict[str, Tensor]], str]:
    """Tables of every attempt, by name, and the kind of the default's encoder."""
    found: dict[str, dict[str, Tensor]] = {}

    def note(name: str, network: Network) -> float:
        found[name] = tables_of(setting, network)
        loss = float(edge_loss(found[name]["fit"], setting.truth("fit"), setting.batches["fit"].topology).mean())
        print(f"  {time.strftime('%H:%M:%S')} {name}: loss {loss:.3f}", flush=True)
        return loss

    losses = [note(f"default, {own.encoder.kind}", train(setting, own)) for own in setting.edges]
    best = setting.edges[losses.index(min(losses))]
    found[DEFAULT] = found[f"default, {best.encoder.kind}"]
    note("kept by loss", train(setting, best, by_loss=True))
    note("two hops", train(setting, best, two_hops=TWO_HOPS))
    note("structure", train(setting, best, structure=True))
    scorer = AgreementScorer(dropout=setting.recipe.scorer.dropout)
    note("agreement", train(setting, best, scorer, by_loss=True))
    note("agreement, structure", train(setting, best, scorer, structure=True, by_loss=True))
    note("node prior", train(setting, best, scorer, setting.node, by_loss=True))
    held_out = held_out_node(setting)
    note("held-out prior", train(setting, best, scorer, held_out, by_loss=True))
    note("held-out prior, structure", train(setting, best, scorer, held_out, structure=True, by_loss=True))
    own = Candidate(setting.recipe.encoder, setting.recipe.node)
    note("node encoder, scratch", train(setting, own))
    note("node encoder, node weights", train(setting, own, start=setting.node_part))
    alone = {split: setting.node_pairs(split) for split in found[DEFAULT]}
    found["logistic"] = calibrated(setting, found[DEFAULT], found[DEFAULT])
    found["logistic on node pairs"] = calibrated(setting, found[DEFAULT], alone)
    return {name: own for name, own in found.items() if not name.startswith("default, ")}, best.encoder.kind


def run_task(name: str, seeds: tuple[int, ...], updates: int) -> list[dict]:
    """One record for each attempt."""
    began = time.perf_counter()
    setting = load_setting(name, seeds, updates)
    print(f"{name}: node network after {time.perf_counter() - began:.0f} s", flush=True)
    attempts, kind = attempt_all(setting)
    choices = {attempt: combination(setting, tables["fit"]) for attempt, tables in attempts.items()}
    alone = {split: setting.node_pairs(split) for split in ("judge", "test")}
    records = []
    for attempt, tables in {ALONE: alone, **attempts}.items():
        scores = {split: scores_of(setting, split, tables[split], choices.get(attempt)) for split in ("judge", "test")}
        chosen = None if attempt == ALONE else choices[attempt].to_config()
        records.append({"task": name, "seeds": list(seeds), "attempt": attempt, **scores, "combination": chosen})
    ceiling = {split: ceiling_of(setting, split) for split in ("judge", "test")}
    records.append({"task": name, "seeds": list(seeds), "attempt": CEILING, **ceiling})
    return [
        record | {"edge_encoder": kind, "updates": updates, "seconds": time.perf_counter() - began}
        for record in records
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="+", default=list(DEFAULT_TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--updates", type=int, default=600, help="of each network at most")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    path = given.out / "records.json"
    records = json.loads(path.read_text())["records"] if path.is_file() else []
    for task in given.tasks:
        if any((record["task"], record["seeds"]) == (task, given.seeds) for record in records):
            continue
        records += run_task(task, tuple(given.seeds), given.updates)
        where = provenance(torch.device("cpu"))
        write_json(path, {"records": records, "provenance": where})
        write_text(given.out / "README.md", markdown(records, where))
    write_text(given.out / "README.md", markdown(records, json.loads(path.read_text())["provenance"]))


if __name__ == "__main__":
    main()
