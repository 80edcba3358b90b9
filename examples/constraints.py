"""Constraints: colour a map so that no two neighbours share a colour, with two countries coloured already.

python examples/constraints.py
"""

import torch

import accord

countries = ["Austria", "Czechia", "Germany", "Hungary", "Italy", "Poland", "Slovakia", "Slovenia", "Switzerland"]
borders = "AC AG AH AI AS AL AW CG CP CS GP GW HS HL IL IW PS".split()
letter = dict(zip("ACGHIPSLW", range(9), strict=True))
edge_index = torch.tensor([[letter[a], letter[b]] for a, b in borders]).t()

field = accord.PairwiseField(edge_index, torch.zeros(9, 4), torch.zeros(len(borders), 4, 4))
field = field.forbid([(colour, colour) for colour in range(4)])
known = torch.full((9,), -1)
known[letter["A"]], known[letter["P"]] = 0, 0  # these two are red already
labels = accord.propagate(field.clamp(known), semiring="max").decode()
for name, colour in zip(countries, labels.tolist(), strict=True):
    print(f"{name:12} {'red green blue yellow'.split()[colour]}")
assert bool((labels[edge_index[0]] != labels[edge_index[1]]).all())
