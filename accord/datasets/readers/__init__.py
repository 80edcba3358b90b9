"""Readers and writers of users' graph files."""
