"""Gradients through message passing, whichever kernel passed the messages."""
