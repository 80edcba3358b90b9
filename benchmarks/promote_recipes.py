"""Write the best recipes of `search_recipes.py` into preset `accord`.

    python benchmarks/promote_recipes.py

Reads results/search/node.json and edge.json (rankings on validation data) and writes the table that the preset reads.
Where the edge network's search was not finished, the edge network found for GCNII on the same data is used.
"""

import json
from pathlib import Path

from accord._files import write_json

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "accord" / "methods" / "accord_benchmarks.json"


def main():
    node = json.loads((ROOT / "results/search/node.json").read_text())
    edge = json.loads((ROOT / "results/search/edge.json").read_text())
    table = {}
    for name, found in sorted(node.items()):
        _, benchmark, encoder = name.removesuffix(".json").split("-")
        best = found["ranked"][0]
        other = edge.get(f"edge-{benchmark}-{encoder}.json", edge[f"edge-{benchmark}-gcnii.json"])["ranked"][0]
        row = {key: best[key] for key in ("encoder", "node")}
        row |= {key: other[key] for key in ("edge_encoder", "edge", "scorer")}
        table.setdefault(encoder, {})[f"{benchmark}*"] = row
    write_json(TABLE, table)


if __name__ == "__main__":
    main()
