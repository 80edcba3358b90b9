"""What a user knows about graphs, applied to the field that labels them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import InfeasibleError, InputTypeError, OptionError
from accord.estimator.knowledge._known import FREE, States, known_labels
from accord.estimator.knowledge._pairs import PairTables, is_of_each_graph
from accord.estimator.knowledge._places import Places
from accord.field import PairwiseField
from accord.field.triangles import TriangleField
from accord.graphs import GraphBatch, Topology
from accord.inference import possible_states

Field = TypeVar("Field", bound=PairwiseField | TriangleField)
PAIR_OPTIONS = ("forbid", "forbid_directed", "require")
SHOWN_NODES = 8  # named in a message
SCHEME = "the scheme of the labels (BIO, or transitions of the recipe)"


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Known labels, constraints and preferences of the graphs of one batch; the same pairs for each task."""

    known: Tensor | None  # [tasks, nodes], -1 where nothing is known
    barred: Tensor | None  # [edges or 1, states, states]
    edge: Tensor | None  # the same, nats
    node: Tensor | None  # [nodes or 1, states], nats
    places: list[Places]  # of each graph
    first: int  # the number of the first graph among those of the call
    states: States
    where: str

    @property
    def is_hard(self) -> bool:
        """Whether pairs of labels are constrained, so that there may be no labelling at all."""
        return self.barred is not None

    @property
    def is_of_pairs(self) -> bool:
        """Whether anything but labels is known."""
        return not (self.barred is None and self.edge is None and self.node is None)

    def apply(self, field: Field) -> Field:
        """The field with what is known; labels that cannot be are refused.

        Raises:
            InfeasibleError: arc consistency shows that no labelling obeys the constraints.
        """
        node, edge = field.node, field.edge
        if self.node is not None:
            node = node + self.node.to(node)
        if self.edge is not None:
            edge = edge + self.edge.to(edge)
        if self.barred is not None:
            edge = edge.masked_fill(self.barred.to(edge.device), -torch.inf)
        if self.known is not None:
            node = self._clamped(node)
            self._check_known_pairs(field)
        changed = field.with_potentials(node=node, edge=edge)
        if self.is_hard:
            with self.naming_nodes():
                possible_states(changed.pairs if isinstance(changed, TriangleField) else changed)
        return cast(Field, changed)

    def _clamped(self, node: Tensor) -> Tensor:
        assert self.known is not None
        known = self.known.to(node.device)[..., None]
        other = (known != FREE) & (known != torch.arange(node.shape[-1], device=node.device))
        clamped = node.masked_fill(other, -torch.inf)
        barred = (clamped == -torch.inf).all(-1).nonzero()
        if len(barred):
            task, place = barred[0].tolist()
            state = int(self.known[task, place])
            name = state if self.states.names is None else repr(self.states.names[state])
            raise InfeasibleError(
                f"NodeClassifier.{self.where}: the label {name} is known at node {self.title(place)}, but "
                f"{self._why_barred(node[..., state])}",
                [self._local(place)[1]],
            )
        return clamped

    def _why_barred(self, state: Tensor) -> str:
        """Why a state cannot be somewhere, from its potentials [*tasks, nodes]."""
        if bool((state == -torch.inf).all()):
            return (
                "no training label has this state, so the model never gives it. Leave the node free (-1), or train on "
                "such labels."
            )
        return f"{SCHEME}, or what was known before, rules it out there. Correct it, or leave the node free (-1)."

    def _check_known_pairs(self, field: Field) -> None:
        """Refuse known labels of neighbours that the model itself rules out together."""
        assert self.known is not None
        ends = self.known.to(field.edge.device)[:, field.edge_index]
        task, edge = (ends != FREE).all(1).nonzero().unbind(1)
        first, second = ends[task, :, edge].unbind(1)
        tables = field.edge.expand(len(ends), *field.edge.shape[-3:])
        barred = (tables[task, edge, first, second] == -torch.inf).nonzero()
        if not len(barred):
            return
        pair = barred[0, 0]
        nodes = field.edge_index[:, edge[pair]].tolist()
        states = (int(first[pair]), int(second[pair]))
        names = [state if self.states.names is None else repr(self.states.names[state]) for state in states]
        told = [f"{name} at node {self.title(node)}" for name, node in zip(names, nodes, strict=True)]
        raise InfeasibleError(
            f"NodeClassifier.{self.where}: the labels {told[0]} and {told[1]} are known, but {SCHEME}, or "
            "forbid, forbid_directed or require, rules this pair out. Correct one of them, or leave it free (-1).",
            [self._local(node)[1] for node in nodes],
        )

    @contextmanager
    def naming_nodes(self) -> Iterator[None]:
        """Turn an error about nodes of the batch into one that names nodes of the user's graphs."""
        try:
            yield
        except InfeasibleError as error:
            if str(error).startswith(f"NodeClassifier.{self.where}: "):  # names them already
                raise
            raise self.refusal(error) from error

    def keep(self, labels: Tensor) -> Tensor:
        """Labels [tasks, nodes], with the known ones in their places."""
        if self.known is None:
            return labels
        known = self.known.to(labels.device)
        return torch.where(known == FREE, labels, known)

    def refusal(self, error: InfeasibleError) -> InfeasibleError:
        """The error in words of the user's graphs: nodes by name, or by their number within their graph."""
        nodes = list(dict.fromkeys(error.nodes))
        known = [] if self.known is None else (self.known != FREE).any(0).nonzero().flatten().tolist()
        shown = sorted(set(nodes) & set(known)) or sorted(nodes)
        titles = ", ".join(self.title(node) for node in shown[:SHOWN_NODES])
        more = f" and {len(shown) - SHOWN_NODES} more" if len(shown) > SHOWN_NODES else ""
        what = (
            "no labels can obey the constraints together"
            if error.proved
            else "no labels that obey the constraints together were found by a search of bounded length; there may be "
            "some"
        )
        kind = "known labels" if set(nodes) & set(known) else "labels"
        place = f" They fail at the {kind} of nodes {titles}{more}." if nodes else ""
        free = "Free one of these labels" if nodes else "Free some known labels"
        return InfeasibleError(
            f"NodeClassifier.{self.where}: {what}.{place} {free}, or relax forbid, forbid_directed or require there.",
            [self._local(node)[1] for node in sorted(nodes)],
            error.proved,
        )

    def title(self, node: int) -> str:
        """A node of the batch in a message."""
        graph, place = self._local(node)
        title = self.places[graph].title(place)
        return title if len(self.places) == 1 and not self.first else f"{title} of graph {self.first + graph}"

    def _local(self, node: int) -> tuple[int, int]:
        """The graph that a node of the batch belongs to, and its number there."""
        graph = 0
        while node >= self.places[graph].num_nodes:
            node -= self.places[graph].num_nodes
            graph += 1
        return graph, node


@dataclass(frozen=True)
class Given:
    """The arguments of a call, before they are matched with its graphs.

    Args:
        known: labels of one graph, or a list with those of each.
        pairs: forbid, forbid_directed, require and prefer, by name; those that are None are left out.
        states: of the model.
        where: the method, for messages.
        count: how many graphs there are; None for a single one.
    """

    known: Any
    pairs: dict[str, Any]
    states: States
    where: str
    count: int | None

    @classmethod
    def read(cls, arguments: dict[str, Any], states: States, where: str, count: int | None) -> "Given | None":
        """The arguments that are not None; None where nothing is given."""
        given = {name: value for name, value in arguments.items() if value is not None}
        if not given:
            return None
        known = given.pop("known", None)
        read = cls(known, given, states, where, count)
        if count is not None:
            read._check_count(count)
        return read

    def _check_count(self, count: int) -> None:
        """Refuse lists that do not have one entry for each of several graphs."""
        lists = {name: value for name, value in self.pairs.items() if is_of_each_graph(value)}
        if self.known is not None and not isinstance(self.known, str):
            if not isinstance(self.known, (list, tuple)):
                raise InputTypeError(
                    f"NodeClassifier.{self.where}: known is a {type(self.known).__name__}, but there is a list of "
                    f"{count} graphs. Give a list with the known labels of each, None where nothing is known."
                )
            lists["known"] = self.known
        for name, value in lists.items():
            if len(value) != count:
                raise OptionError(
                    f"NodeClassifier.{self.where}: {name} has {len(value)} entries for {count} graphs. Give one for "
                    "each, None where there is nothing to say."
                )

    def bind(self, graphs: Sequence[Data], first: int, batch: GraphBatch) -> Knowledge:
        """What is known about some of the graphs.

        Args:
            graphs: consecutive graphs of the call.
            first: the number of the first of them.
            batch: the same graphs side by side.
        """
        places = self._places(graphs, first, batch.topology)
        numbers = range(first, first + len(graphs))
        known = None
        if self.known is not None:
            known = torch.cat([self._known_of(number, place) for number, place in zip(numbers, places, strict=True)], 1)
        tables = [
            self._tables_of(number, place, graph) for number, place, graph in zip(numbers, places, graphs, strict=True)
        ]
        edges = [place.edge_index.shape[1] for place in places]
        nodes = [place.num_nodes for place in places]
        barred = self._joined([table.barred for table in tables], edges, any(n in self.pairs for n in PAIR_OPTIONS))
        prefer = "prefer" in self.pairs
        return Knowledge(
            known,
            barred,
            self._joined([table.edge for table in tables], edges, prefer),
            self._joined([table.node for table in tables], nodes, prefer),
            places,
            first,
            self.states,
            self.where,
        )

    def _places(self, graphs: Sequence[Data], first: int, topology: Topology) -> list[Places]:
        """Nodes and edges of each graph; edges as in the batch, numbered within the graph."""
        sizes = torch.tensor([graph.num_nodes for graph in graphs])
        ends = sizes.cumsum(0)
        edge_index = topology.edge_index.cpu()
        owner = torch.bucketize(edge_index[0], ends, right=True)
        counts = torch.bincount(owner, minlength=len(graphs)).tolist()
        local = edge_index - (ends - sizes)[owner]
        return [
            Places(graph, own, f"NodeClassifier.{self.where}" + ("" if self.count is None else f": graph {first + n}"))
            for n, (graph, own) in enumerate(zip(graphs, local.split(counts, dim=1), strict=True))
        ]

    def _known_of(self, number: int, places: Places) -> Tensor:
        given = self.known if self.count is None or isinstance(self.known, str) else self.known[number]
        if given is None:
            return torch.full((self.states.num_tasks, places.num_nodes), FREE)
        return known_labels(given, places, self.states)

    def _tables_of(self, number: int, places: Places, graph: Data) -> PairTables:
        tables = PairTables(places, self.states, _listed_both_ways(places, graph))
        for option, value in self.pairs.items():
            if self.count is not None and is_of_each_graph(value):
                value = value[number]
            if value is not None:
                getattr(tables, option)(value)
        return tables

    def _joined(self, parts: list[Tensor], sizes: list[int], wanted: bool) -> Tensor | None:
        """Tables of all graphs [edges or nodes or 1, ...]; None where nothing was given."""
        if not wanted:
            return None
        if len(parts) == 1 or (all(len(part) == 1 for part in parts) and all(torch.equal(parts[0], p) for p in parts)):
            return parts[0]
        return torch.cat([part.expand(size, *part.shape[1:]) for part, size in zip(parts, sizes, strict=True)])


def _listed_both_ways(places: Places, graph: Data) -> Tensor:
    """[edges], True for edges that the graph lists in both directions."""
    if graph.edge_index is None or not places.edge_index.shape[1]:
        return torch.zeros(places.edge_index.shape[1], dtype=torch.bool)
    listed = graph.edge_index.cpu().long()
    keys = listed[0] * places.num_nodes + listed[1]
    source, target = places.edge_index
    along, against = (
        torch.isin(key, keys) for key in (source * places.num_nodes + target, target * places.num_nodes + source)
    )
    return along & against
