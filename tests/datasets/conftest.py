"""Data sets are tested without a network: one that is reached for by accident fails the test."""

import socket

import pytest


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a test tried to reach the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def no_files(monkeypatch, tmp_path):
    """A machine without benchmark files: both folders exist and are empty. Gives the cache."""
    (tmp_path / "data").mkdir()
    (tmp_path / "home" / "accord").mkdir(parents=True)
    monkeypatch.setenv("ACCORD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "accord"
