"""Recipes: every choice that a method needs to train, as values, as json, and by the name of the method."""
