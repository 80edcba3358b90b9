"""Random search behind preset `accord`: recipes are drawn, trained and ranked on validation data only.

    python benchmarks/search_recipes.py node cora* gcnii --draws 40 --out results/search
    python benchmarks/search_recipes.py edge cora* gcnii --draws 40 --out results/search

`node` ranks recipes of the node network alone. `edge` takes the preset's node network and ranks edge networks by the
validation score of the combined field.
"""

import argparse
import random
from dataclasses import replace
from pathlib import Path

from accord._files import write_json
from accord.datasets import load_benchmark
from accord.encoders import GAT, GCN, GCNII, MLP, AgreementScorer, BilinearScorer, GraphSAGE, LinearScorer
from accord.learning import PartOptions, Replicas, TrainingRun
from accord.methods import GNN, Shape, StructuredProxyNetwork, preset_features, preset_recipe, recipe_to_config

SEEDS = (101, 102, 103)  # not the seeds that results are reported on


def draw_encoder(kind, rng):
    dropout, input_dropout = rng.choice([0.3, 0.5, 0.6, 0.7]), rng.choice([0.0, 0.3, 0.5, 0.6, 0.7])
    if kind == "gcn":
        return GCN(
            hidden=rng.choice([32, 64, 128, 256, 512]),
            layers=rng.choice([2, 2, 3]),
            dropout=dropout,
            input_dropout=input_dropout,
            skip=rng.choice([False, True]),
        )
    if kind == "sage":
        return GraphSAGE(hidden=rng.choice([64, 128, 256]), layers=2, dropout=dropout, input_dropout=input_dropout)
    if kind == "gat":
        layers = rng.choice([1, 2])
        return GAT(
            hidden=rng.choice([8, 16, 32, 64]),
            heads=(rng.choice([4, 8]),) * layers + (rng.choice([1, 4, 8]),),
            dropout=dropout,
            input_dropout=input_dropout,
            skip=rng.choice([False, True]),
        )
    if kind == "mlp":
        return MLP(hidden=rng.choice([64, 128, 256]), layers=2, dropout=dropout, input_dropout=input_dropout)
    return GCNII(
        hidden=rng.choice([64, 128, 256, 512]),
        layers=rng.choice([2, 4, 6, 8]),
        alpha=rng.choice([0.1, 0.3, 0.5]),
        theta=rng.choice([0.5, 1.0, 1.5]),
        dropout=dropout,
        input_dropout=input_dropout,
    )


def draw_part(rng):
    return PartOptions(
        learning_rate=rng.choice([5e-4, 1e-3, 3e-3, 1e-2]),
        weight_decay=rng.choice([1e-5, 1e-4, 5e-4, 2e-3, 1e-2]),
        label_smoothing=rng.choice([0.0, 0.0, 0.1]),
    )


def draw_scorer(rng):
    kind = rng.choice([BilinearScorer, LinearScorer, AgreementScorer, AgreementScorer])
    return kind(dropout=rng.choice([0.0, 0.3, 0.5]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["node", "edge"])
    parser.add_argument("benchmark")
    parser.add_argument("encoder")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/search"))
    args = parser.parse_args()
    bench = load_benchmark(args.benchmark, features=preset_features("accord", args.benchmark))
    shape, replicas = Shape(bench.num_features, bench.num_states), Replicas(SEEDS)
    run = TrainingRun(bench.train, bench.val)
    rng = random.Random(f"{args.part}{args.benchmark}{args.encoder}{args.seed}")
    rows = []
    for draw in range(args.draws):
        method = "gnn" if args.part == "node" else "spn"
        base = recipe = preset_recipe("accord", args.encoder, benchmark=args.benchmark, method=method)
        if args.part == "node":
            if draw:  # the first draw is the preset's current recipe
                recipe = replace(base, encoder=draw_encoder(args.encoder, rng), node=draw_part(rng))
            model = GNN(recipe, bench.level).fit(run, shape, replicas)
            score = max(row["node_score"] for row in model.history)
        else:
            if draw:
                kind = rng.choice([args.encoder, args.encoder, "gcn", "gcnii", "mlp"])
                recipe = replace(
                    base, edge_encoder=draw_encoder(kind, rng), edge=draw_part(rng), scorer=draw_scorer(rng)
                )
            model = StructuredProxyNetwork(recipe, bench.level).fit(run, shape, replicas)
            score = float(model.chosen.score.mean())
        rows.append({"score": score, "draw": draw, **recipe_to_config(recipe)})
        print(f"{args.part} {args.benchmark} {args.encoder} {draw} {score:.4f}", flush=True)
    rows.sort(key=lambda row: -row["score"])
    path = args.out / f"{args.part}-{args.benchmark.rstrip('*')}-{args.encoder}.json"
    write_json(path, {"seeds": SEEDS, "draws": args.draws, "ranked": rows[:10]})


if __name__ == "__main__":
    main()
