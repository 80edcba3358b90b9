"""Features of nodes and edges: named columns, their treatment, and what edges add to nodes."""
