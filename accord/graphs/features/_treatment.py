"""Treatment of node features: as given, rows that sum to one, columns standardised by the training nodes, or words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, OptionError
from accord.graphs._masks import training_nodes
from accord.graphs._stream import each, portions_of
from accord.graphs.features._moments import Moments
from accord.graphs.sequences import Vocabulary, WordOptions, fit_vocabulary

TREATMENTS = ("raw", "row-normalised", "standardised", "words")
MARK = "feature_treatment"  # attribute of a `Data` that holds the treatment of its features


@dataclass(frozen=True, eq=False)
class FeatureTreatment:
    """What is done to features before a network reads them; fitted once, on training nodes.

    Graphs that have been treated carry the treatment, so that none is applied twice.
    """

    name: str
    mean: Tensor | None = None  # [features], float64; of standardised features only
    deviation: Tensor | None = None  # [features], float64; 1 for columns that are constant in training
    vocabulary: Vocabulary | None = None  # of words only

    def __post_init__(self) -> None:
        check_treatment(self.name)

    @property
    def added(self) -> int:
        """Columns that treated features have in addition to the given ones."""
        return 0 if self.vocabulary is None else self.vocabulary.columns

    def treat(self, x: Tensor) -> Tensor:
        """Treated features [nodes, features], in the precision of the given ones."""
        if self.name == "raw":
            return x
        if self.name == "row-normalised":
            total = x.abs().sum(1, keepdim=True)
            return x / total.masked_fill(total == 0, 1)
        assert self.mean is not None and self.deviation is not None  # set wherever features are standardised
        return (x - self.mean.to(x.device)).div_(self.deviation.to(x.device)).to(x.dtype)

    def apply(self, graph: Data) -> Data:
        """The graph with treated features; the given graph itself where nothing is to be done."""
        before = treatment_of(graph)
        if before is not None:
            if not self.equals(before):
                raise GraphError(
                    f"The features of this graph have already been {_said(before.name)}, but the model needs them "
                    f"{_said(self.name)}{'' if before.name != self.name else ' by other training nodes'}. "
                    'Give the graph with raw features: load_benchmark(name, features="raw").'
                )
            return graph
        if self.name == "raw":
            return graph
        treated = graph.clone()
        treated.x = self.treat(graph.x) if self.vocabulary is None else self.vocabulary.apply(graph)
        setattr(treated, MARK, self)
        return treated

    def equals(self, other: "FeatureTreatment") -> bool:
        """Whether both do the same to every graph."""
        if self.name != other.name or self.vocabulary != other.vocabulary:
            return False
        pairs = ((self.mean, other.mean), (self.deviation, other.deviation))
        return all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)

    def tensors(self) -> dict[str, Tensor]:
        """What was fitted, by name."""
        return {name: value for name in ("mean", "deviation") if (value := getattr(self, name)) is not None}


def check_treatment(name: object) -> None:
    """Refuse a treatment that does not exist."""
    if name not in TREATMENTS:
        raise OptionError(f"features: there is no treatment called {name!r}. Choose one of: {', '.join(TREATMENTS)}.")


def fit_treatment(
    name: str, train: Sequence[Data], words: WordOptions | None = None, known_words: Sequence[str] = ()
) -> FeatureTreatment:
    """The treatment of that name, its mean and deviation taken over the nodes of the training graphs.

    Of a graph with a `train_mask`, the nodes in it count. Where training graphs overlap (every one has `node_id`), a
    node counts once.

    Args:
        name: one of `TREATMENTS`.
        train: the training graphs.
        words: how words are read; None for the defaults.
        known_words: words that have vectors.
    """
    check_treatment(name)
    if name == "words":
        return FeatureTreatment(name, vocabulary=fit_vocabulary(train, words or WordOptions(), known_words))
    if name != "standardised":
        return FeatureTreatment(name)
    moments = Moments()
    for rows in _distinct_rows(each(train, training_nodes)):
        moments.add(rows)
    return FeatureTreatment(name, moments.mean.cpu(), moments.scales().cpu())


def _distinct_rows(train: Sequence[Data]) -> Iterator[Tensor]:
    """Features of training nodes in portions; where every graph has `node_id`, each node once, as it first occurs."""
    overlapping = all("node_id" in graph for graph in train)
    seen = np.empty(0, np.int64)
    for portion in portions_of(train):
        rows = torch.cat([graph.x for graph in portion])
        if overlapping:
            found, first = np.unique(torch.cat([graph.node_id for graph in portion]).cpu().numpy(), return_index=True)
            new = ~np.isin(found, seen)
            seen = np.concatenate([seen, found[new]])
            rows = rows[torch.from_numpy(first[new]).to(rows.device)]
        yield rows


def treatment_of(graph: Data) -> FeatureTreatment | None:
    """How the features of a graph have been treated already; None for raw features."""
    found: Any = graph.get(MARK)
    return found if isinstance(found, FeatureTreatment) else None


def common_treatment(graphs: Sequence[Data]) -> FeatureTreatment | None:
    """How the features of all these graphs have been treated already; None where all are raw."""
    first = treatment_of(graphs[0])
    for number, other in enumerate(treatment_of(graph) for graph in graphs):
        if other is not first and (other is None or first is None or not first.equals(other)):
            raise GraphError(
                f"The features of graph {number} have another treatment than those of graph 0. "
                "Give all graphs with raw features, or all as load_benchmark returns them."
            )
    return first


def scale_ratio(graphs: Sequence[Data]) -> float:
    """The standard deviation of the widest feature column over that of the narrowest; constant columns are left out."""
    moments = Moments()
    for portion in portions_of(graphs):
        moments.add(torch.cat([graph.x for graph in portion]))
    spread = moments.variance.sqrt()
    spread = spread[spread > 0]
    return float(spread.max() / spread.min()) if spread.numel() else 1.0


def _said(name: str) -> str:
    return "left as they are" if name == "raw" else name
