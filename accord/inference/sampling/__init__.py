"""Labellings drawn from a field: exactly, or by Gibbs sampling."""
