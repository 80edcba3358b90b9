"""Parameters that only the full test run tries.

`make test` tries one representative of each kernel form; `make test-all`, which CI runs, tries every combination.
"""

import pytest


def matrix(*values):
    """A set of parameters that the full test run adds to the representatives."""
    return pytest.param(*values, marks=pytest.mark.matrix)
