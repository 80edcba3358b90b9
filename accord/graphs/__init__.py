"""Topology of graphs: undirected edges once, the arcs messages travel on, and checks of what comes in."""

from accord.graphs._batch import GraphBatch
from accord.graphs._checks import (
    check_count,
    check_edge_index,
    check_features,
    check_graph_vector,
    check_integer,
    check_number,
    check_numbers,
    check_same_device,
    check_tensor,
)
from accord.graphs._colouring import colour_nodes
from accord.graphs._ego import ego_network, ego_networks
from accord.graphs._features import (
    TREATMENTS,
    FeatureTreatment,
    check_treatment,
    common_treatment,
    fit_treatment,
    treatment_of,
)
from accord.graphs._fingerprint import fingerprint_graphs
from accord.graphs._peeling import Peeling, PeelingRound, peel
from accord.graphs._topology import Arcs, Topology, first_columns, graph_topology, topology

__all__ = [
    "TREATMENTS",
    "Arcs",
    "FeatureTreatment",
    "GraphBatch",
    "Peeling",
    "PeelingRound",
    "Topology",
    "check_count",
    "check_edge_index",
    "check_features",
    "check_graph_vector",
    "check_integer",
    "check_number",
    "check_numbers",
    "check_same_device",
    "check_tensor",
    "check_treatment",
    "colour_nodes",
    "common_treatment",
    "ego_network",
    "ego_networks",
    "fingerprint_graphs",
    "first_columns",
    "fit_treatment",
    "graph_topology",
    "peel",
    "topology",
    "treatment_of",
]
