"""Labels that depend on two others at a time: order 2 learns nothing from edges, order 3 does.

python examples/triangles.py
"""

from torch_geometric.data import Batch

import accord
from accord.datasets import make_triples
from accord.inference import eliminate_beliefs

# Of three linked nodes, all labels are equal or all differ. Any two of them are independent of each other.
made = make_triples(num_train=120, num_val=80, num_test=100)
for order in (2, 3):
    model = accord.NodeClassifier(encoder="mlp", order=order, max_epochs=60)
    model.fit(made.train, made.val)
    print(f"order {order}: {model.score(made.test):.1%} of nodes")

whole = Batch.from_data_list(made.test)
best = eliminate_beliefs(made.truth.field(whole)).node.argmax(-1)  # by the field that generated the labels
print(f"best possible: {float((best == whole.y).double().mean()):.1%}")
