"""`accord solve`: files of discrete fields."""

from accord.app.commands.solve._command import solve

__all__ = ["solve"]
