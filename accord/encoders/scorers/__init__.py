"""Edge scorers: node representations in, a table of scores for each undirected edge out."""
