"""Why cells of preset `authors` are off the paper on the citation sets: the published code, rebuilt and varied.

Networks are built from PyG's layers, fields in plain torch, both apart from Accord's. Preset `authors` does not depend
on how near a variant comes to the paper.

    python benchmarks/paper/explain_authors_fields.py results/authors_fields             # what is missing, and the page
    python benchmarks/paper/explain_authors_fields.py OUT --models crf --benchmarks 'cora*' --seeds 1 --seconds 280
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from authors_code.fields import MESSAGES, Logits, arcs_right, joint_scores, play
from authors_code.graphs import Part, Scores, parts_of
from authors_code.networks import EdgeNetwork, node_network, one_table_an_edge, with_sparse_features
from authors_code.verdicts import PUBLISHED, page
from torch import nn
from torch.nn import functional as F

from accord._files import write_json, write_text
from accord.methods import preset_recipe

BENCHMARKS = ("pubmed*", "citeseer*", "cora*")
GAME_EPOCHS, GAME_EVERY = 5000, 50
GAMES = {  # of CRF-linear: name of what differs -> messages and rate; 1e-5 is the default of the code
    "": ("sums of logs", 5e-4),
    "sum-product": ("sum-product", 5e-4),
    "rate 1e-5": ("sums of logs", 1e-5),
}
GNN_RATES = {"": None, "rate 1e-2": 1e-2}  # the appendix's, and that of the code's example
NORMALISED = "layer normalisation"
BY_NODES = "kept by nodes"
STORE, EARLIER = Path("results/reproduction/records.jsonl"), Path("results/authors_preset")
Found = dict[str, dict[str, Scores]]  # by method and way


@dataclass(frozen=True)
class Keep:
    """Which evaluation of a training is kept: the best by a measure on validation data."""

    measure: str = "graph"
    every: int = 20
    epochs: int = 200


BY_GRAPHS, LONG = Keep(), Keep(every=25, epochs=400)  # of the code's example, and its defaults
KEPT = {"": BY_GRAPHS, BY_NODES: Keep("node")}


def train(
    network: nn.Module, parts: Sequence[Part], rate: float, edges: bool, kept: Mapping[str, Keep]
) -> dict[str, Logits]:
    """Train a node or an edge network; logits of validation and test graphs by each way to keep an evaluation."""
    training, val, test = parts
    optimizer = torch.optim.Adam(network.parameters(), lr=rate, fused=True)
    best: dict[str, tuple[float, dict[str, torch.Tensor]]] = {}
    for epoch in range(1, max(keep.epochs for keep in kept.values()) + 1):
        network.train()
        optimizer.zero_grad()
        logits = network(training.x, training.arcs)
        source, target = training.y[training.arcs]
        wanted = source * logits.shape[-1] + target if edges else training.y
        F.cross_entropy(logits.flatten(1), wanted).backward()
        optimizer.step()
        due = {way: keep for way, keep in kept.items() if epoch % keep.every == 0 and epoch <= keep.epochs}
        logits = _logits(network, val) if due else logits
        for way, keep in due.items():
            scores = arcs_right(val, logits, keep.measure) if edges else val.scores(logits.argmax(-1))[keep.measure]
            if way not in best or scores > best[way][0]:
                best[way] = scores, {name: value.clone() for name, value in network.state_dict().items()}
    found = {}
    for way, (_, weights) in best.items():
        network.load_state_dict(weights)
        found[way] = _logits(network, val), _logits(network, test)
    return found


@torch.no_grad()
def _logits(network: nn.Module, part: Part) -> torch.Tensor:
    network.eval()
    return network(part.x, part.arcs)


def gnn(benchmark: str, encoder: str, seed: int) -> Found:
    """GCN and GraphSAGE with what the code leaves open: rate, epochs, scaled outputs, measure of selection."""
    parts, states = parts_of(benchmark)
    own = preset_recipe("authors", encoder, benchmark=benchmark).node.learning_rate
    outputs = {"": "as it is"} | ({"scaled outputs": "l2-normalised outputs"} if encoder == "sage" else {})
    kept = KEPT | {"400 epochs, every 25th": LONG}
    found = {}
    for (scaled, variant), (told, rate) in product(outputs.items(), GNN_RATES.items()):
        if rate == own:
            continue
        torch.manual_seed(seed)
        network = node_network(encoder, variant, parts[0].x.shape[1], states)
        for way, logits in train(network, parts, rate or own, False, kept).items():
            found[_name(scaled, told, way)] = parts[2].scores(logits[1].argmax(-1))
    return {"gnn": found}


def spn(benchmark: str, encoder: str, seed: int) -> Found:
    """The GNN, and the SPN with what is open: scorer, tables of an edge, measure of selection."""
    parts, states = parts_of(benchmark)
    features = parts[0].x.shape[1]
    variant = NORMALISED if encoder == "gcnii" else "as it is"
    rate = preset_recipe("authors", encoder, benchmark=benchmark).node.learning_rate
    torch.manual_seed(seed)
    network = with_sparse_features(node_network(encoder, variant, features, states), (part.x for part in parts))
    nodes = train(network, parts, rate, False, KEPT)
    found: Found = {"gnn": {_name(way): parts[2].scores(own[1].argmax(-1)) for way, own in nodes.items()}, "spn": {}}
    for name, (scorer, averaged) in SCORERS[encoder].items():
        torch.manual_seed(1000 + seed)
        network = EdgeNetwork(encoder, variant, scorer, features, states, averaged)
        edges = train(with_sparse_features(network, (part.x for part in parts)), parts, rate, True, KEPT)
        for way, keep in KEPT.items():
            tables = {"": edges[way]}
            if not averaged:
                tables["tables averaged after training"] = tuple(one_table_an_edge(own) for own in edges[way])
            for told, own in tables.items():
                scores = joint_scores(*parts[1:], nodes[way], own, keep.measure)
                found["spn"][_name(name, told, way)] = scores
    return found


SCORERS = {  # by encoder: name of what differs -> the scorer, and whether tables are averaged in training
    "gat": {"": ("bilinear", False), "linear scorer": ("linear", False), "tables averaged": ("bilinear", True)},
    "unet": {"": ("bilinear", False), "linear scorer": ("linear", False)},
    "gcnii": {"": ("linear", False)},
}


def crf(benchmark: str, encoder: str, seed: int) -> Found:
    """CRF-linear with the code's messages and with sum-product, at the appendix's rate and the code's default."""
    parts, states = parts_of(benchmark)
    features = parts[0].x.shape[1]
    found = {}
    for name, (messages, rate) in GAMES.items():
        torch.manual_seed(seed)
        pair = node_network(encoder, "", features, states), EdgeNetwork(encoder, "", "linear", features, states)
        networks = tuple(with_sparse_features(own, (part.x for part in parts)) for own in pair)
        found[_name(name)] = play(parts, networks, MESSAGES[messages], rate, GAME_EPOCHS, GAME_EVERY)
    return {"crf": found}


def _name(*changes: str) -> str:
    return ", ".join(change for change in changes if change) or PUBLISHED


MODELS = {  # name: (what is trained, encoder)
    "spn-gat": (spn, "gat"),
    "spn-unet": (spn, "unet"),
    "crf-linear": (crf, "linear"),
    "spn-gcnii": (spn, "gcnii"),
    "sage": (gnn, "sage"),
    "gcn": (gnn, "gcn"),
}


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--benchmarks", nargs="+", default=list(BENCHMARKS), choices=BENCHMARKS)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing after so long")
    args = parser.parse_args()
    start = time.monotonic()
    for name, benchmark, seed in product(args.models, args.benchmarks, args.seeds):
        path = args.out / f"{name}-{benchmark[:-1]}-{seed}.json"
        if path.is_file() or time.monotonic() - start > args.seconds:
            continue
        method, encoder = MODELS[name]
        before = time.process_time()
        scores = method(benchmark, encoder, seed)
        cell = {"encoder": encoder, "benchmark": benchmark, "seed": seed, "seconds": time.process_time() - before}
        write_json(path, cell | {"scores": scores})
        print(path.stem, f"{cell['seconds']:.0f} s", flush=True)
    write_text(args.out / "README.md", page(stored(args.out), STORE))


def stored(folder: Path) -> list[dict]:
    """All records; later ones count where seeds are there twice."""
    return [*earlier(EARLIER), *(json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))]


def earlier(folder: Path) -> Iterator[dict]:
    """GCN and GraphSAGE of `explain_authors_preset.py`, seed by seed: the same networks and training."""
    outputs = {"as it is": "", "l2-normalised outputs": "scaled outputs"}
    kept = {"graphs, every 20th": "", "nodes, every 20th": BY_NODES}
    for path in sorted(folder.glob("*.json")):
        own = json.loads(path.read_text())
        if own["encoder"] in ("gcn", "sage") and own["variant"] in outputs:
            for seed, scores in zip(own["seeds"], own["scores"], strict=True):
                ways = {_name(outputs[own["variant"]], told): scores[way] for way, told in kept.items()}
                yield {key: own[key] for key in ("encoder", "benchmark")} | {"seed": seed, "scores": {"gnn": ways}}


if __name__ == "__main__":
    main()
