"""The README's picture and demo table, from a run of `accord demo` (see `make figures`).

accord demo --run runs/demo && python benchmarks/app/readme_figures.py
"""

import json
from pathlib import Path

from accord._files import write_bytes, write_json, write_text
from accord.app.commands.demo import ROW_TITLES
from accord.drawing import draw_case
from accord.evaluation import Case

ROOT = Path(__file__).parents[2]
RUN, OUT = ROOT / "runs" / "demo", ROOT / "results" / "demo"


def main():
    results = json.loads((RUN / "results.json").read_text())
    case = Case(**json.loads((RUN / "cases.json").read_text())["cases"][0])
    write_bytes(OUT / "case.png", draw_case(case, [str(digit) for digit in range(10)], ROW_TITLES))
    rows = ["| test graphs | nodes right | graphs all right |", "|---|---|---|"]
    for part, scores in results["test"].items():
        rows.append(
            f"| {ROW_TITLES[part]} | {100 * scores['node_accuracy']:.1f} % | {100 * scores['graph_accuracy']:.1f} % |"
        )
    head = "# The demo's table\n\nWritten by `make figures` from a run of `accord demo`, seed 0.\n\n"
    write_text(OUT / "README.md", head + "\n".join(rows) + "\n")
    kept = {key: value for key, value in results.items() if key != "reliability"}
    write_json(OUT / "results.json", kept)


if __name__ == "__main__":
    main()
