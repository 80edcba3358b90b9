"""Topology of graphs: undirected edges once, the arcs messages travel on, and checks of what comes in."""

from accord.graphs._checks import check_edge_index, check_graph_vector, check_integer
from accord.graphs._colouring import colour_nodes
from accord.graphs._ego import ego_network, ego_networks
from accord.graphs._peeling import Peeling, PeelingRound, peel
from accord.graphs._topology import Arcs, Topology, first_columns, graph_topology, topology

__all__ = [
    "Arcs",
    "Peeling",
    "PeelingRound",
    "Topology",
    "check_edge_index",
    "check_graph_vector",
    "check_integer",
    "colour_nodes",
    "ego_network",
    "ego_networks",
    "first_columns",
    "graph_topology",
    "peel",
    "topology",
]
