"""What is computed from edges alone: ego networks, triangles, clusters, colourings, cores."""
