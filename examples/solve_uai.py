"""A model file: write a small Bayesian network, read it, and ask for the best states and the marginals.

python examples/solve_uai.py
"""

from pathlib import Path

import accord
from accord.field.files import write_map
from accord.inference import eliminate_beliefs

# Rain makes the sprinkler unlikely; either makes the grass wet. State 1 is "yes".
Path("garden.uai").write_text("""BAYES
3
2 2 2
3
1 0
2 0 1
3 0 1 2

2
 0.8 0.2            # rain

4
 0.6 0.4            # sprinkler, if there is no rain
 0.99 0.01          # if there is

8
 1.0 0.0  0.1 0.9   # wet grass, if there is no rain: sprinkler off, on
 0.2 0.8  0.01 0.99
""")
names = ["rain", "sprinkler", "wet grass"]
field = accord.read_uai("garden.uai", evidence={2: 1})  # the grass is wet

found = accord.maximise(field)
print("most likely:", dict(zip(names, found.labels.tolist(), strict=True)))
print(f"log-probability {float(found.score):.4f}, proved: {bool(found.optimal)}")
write_map(found.labels, "garden.uai.MAP")  # what `accord solve garden.uai` writes

beliefs = eliminate_beliefs(field)
for name, probability in zip(names, beliefs.node.exp()[:, 1].tolist(), strict=True):
    print(f"P({name} | wet grass) = {probability:.3f}")
