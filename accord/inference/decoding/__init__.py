"""From beliefs to one labelling: exact on trees, local search on loops, and labels without forbidden pairs."""
