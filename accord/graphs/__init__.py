"""Topology of graphs: undirected edges once, the arcs that messages travel on, batches, ego networks and features.

Checks of input, peeling and colouring are internal: other folders of this package import them from their modules.
"""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names

if TYPE_CHECKING:
    from accord.graphs._batch import GraphBatch
    from accord.graphs._data import graph_topology
    from accord.graphs._fingerprint import fingerprint_graphs
    from accord.graphs._masks import (
        MASKS,
        TEST_MASK,
        TRAIN_MASK,
        VAL_MASK,
        has_labels,
        have_mask,
        labels_within,
        training_nodes,
    )
    from accord.graphs._share import Rows, Share
    from accord.graphs._stream import GraphStream, batches_of, each, each_numbered, portions_of
    from accord.graphs._topology import Arcs, Topology, topology
    from accord.graphs.features._columns import (
        EDGES,
        NODES,
        Columns,
        GraphColumns,
        align,
        column_difference,
        columns_of,
        common_columns,
        fit_fill,
    )
    from accord.graphs.features._edge_columns import EdgeColumns, fit_edge_columns
    from accord.graphs.features._treatment import (
        TREATMENTS,
        FeatureTreatment,
        check_treatment,
        common_treatment,
        fit_treatment,
        scale_ratio,
        treatment_of,
    )
    from accord.graphs.sequences import WordOptions, has_tokens, path_edges
    from accord.graphs.structure._clusters import cluster_nodes
    from accord.graphs.structure._ego import ego_network, ego_networks
    from accord.graphs.structure._triangles import SIDES, Triangles, find_sides, topology_triangles, triangles

__all__ = [
    "EDGES",
    "MASKS",
    "NODES",
    "SIDES",
    "TEST_MASK",
    "TRAIN_MASK",
    "TREATMENTS",
    "VAL_MASK",
    "Arcs",
    "Columns",
    "EdgeColumns",
    "FeatureTreatment",
    "GraphBatch",
    "GraphColumns",
    "GraphStream",
    "Rows",
    "Share",
    "Topology",
    "Triangles",
    "WordOptions",
    "align",
    "batches_of",
    "check_treatment",
    "cluster_nodes",
    "column_difference",
    "columns_of",
    "common_columns",
    "common_treatment",
    "each",
    "each_numbered",
    "ego_network",
    "ego_networks",
    "find_sides",
    "fingerprint_graphs",
    "fit_edge_columns",
    "fit_fill",
    "fit_treatment",
    "graph_topology",
    "has_labels",
    "has_tokens",
    "have_mask",
    "labels_within",
    "path_edges",
    "portions_of",
    "scale_ratio",
    "topology",
    "topology_triangles",
    "training_nodes",
    "treatment_of",
    "triangles",
]

# Most of these need PyG, which takes longer to load than solving a field does.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_batch": ["GraphBatch"],
        "structure._clusters": ["cluster_nodes"],
        "features._columns": [
            "Columns",
            "EDGES",
            "GraphColumns",
            "NODES",
            "align",
            "column_difference",
            "columns_of",
            "common_columns",
            "fit_fill",
        ],
        "_data": ["graph_topology"],
        "features._edge_columns": ["EdgeColumns", "fit_edge_columns"],
        "structure._ego": ["ego_network", "ego_networks"],
        "features._treatment": [
            "FeatureTreatment",
            "TREATMENTS",
            "check_treatment",
            "common_treatment",
            "fit_treatment",
            "scale_ratio",
            "treatment_of",
        ],
        "_fingerprint": ["fingerprint_graphs"],
        "_masks": [
            "MASKS",
            "TEST_MASK",
            "TRAIN_MASK",
            "VAL_MASK",
            "has_labels",
            "have_mask",
            "labels_within",
            "training_nodes",
        ],
        "_share": ["Rows", "Share"],
        "_stream": ["GraphStream", "batches_of", "each", "each_numbered", "portions_of"],
        "_topology": ["Arcs", "Topology", "topology"],
        "structure._triangles": ["SIDES", "Triangles", "find_sides", "topology_triangles", "triangles"],
        "sequences": ["WordOptions", "has_tokens", "path_edges"],
    },
)
