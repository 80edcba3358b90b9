"""Sentences: learn who is named in a text, label a new sentence, and ask how sure the labels are.

python examples/sentence.py
"""

import random

import torch
from torch_geometric.data import Data

import accord
from accord.datasets import write_sentences
from accord.encoders import BiLSTM
from accord.evaluation import entity_scores
from accord.graphs import WordOptions

NAMES = ["B-person", "I-person", "O"]
first, last = "Ann Bob Eve Jim Kim Liz".split(), "Stone Hill Rain Field".split()
other = "we saw a lot of rain on the hill near a field stone".split()


def sentence(generator: random.Random) -> Data:
    """Names of one or two words among others; last names are also ordinary words."""
    tokens, labels = [], []
    for _ in range(generator.randint(3, 7)):
        if generator.random() < 0.3:
            name = [generator.choice(first), *([generator.choice(last)] if generator.random() < 0.7 else [])]
            tokens, labels = tokens + name, labels + [0, 1][: len(name)]
        else:
            tokens, labels = [*tokens, generator.choice(other)], [*labels, 2]
    return Data(tokens=tokens, y=torch.tensor(labels))


generator = random.Random(0)
train, validation, test = ([sentence(generator) for _ in range(count)] for count in (150, 50, 50))
model = accord.NodeClassifier(
    encoder=BiLSTM(hidden=24, dropout=0.2), label_names=NAMES, max_epochs=8, words=WordOptions(channels=16)
)
model.fit(train, validation)

labels = [[NAMES[state] for state in own.tolist()] for own in model.predict(test)]
truth = [[NAMES[state] for state in graph.y.tolist()] for graph in test]
print(f"tokens right {model.score(test):.3f}, sentences right {model.score(test, 'graph'):.3f}")
print(f"entity F1 {entity_scores(labels, truth).f1:.3f}")

new = Data(tokens="we saw Kim Stone near a hill".split())
for rank, (best, chance) in enumerate(zip(*vars(model.k_best(new, 3)).values(), strict=True), 1):
    print(f"{rank}. {' '.join(NAMES[state] for state in best.tolist())}  {chance:.3f}")
chance = model.span_probability(new, 2, ["B-person", "I-person", "O"])
print(f"'Kim Stone' is one person with probability {chance:.3f}")
write_sentences([(new.tokens, [NAMES[state] for state in model.predict(new).tolist()])], "labels.conll")
assert model.score(test) > 0.9
