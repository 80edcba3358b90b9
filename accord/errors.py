"""Every error and warning that Accord raises on purpose.

    AccordError
    ├── InputError (ValueError)         a value that cannot be used
    │   ├── GraphError                  nodes, edges, features or labels of a graph
    │   ├── FieldError                  potentials, or labels scored against them
    │   │   └── InfeasibleError         the constraints leave no labelling at all
    │   ├── OptionError                 a setting out of its range, or an unknown name
    │   └── TooLargeError               a call that needs more memory than is available
    ├── InputTypeError (TypeError)      an object of the wrong type
    ├── WorkerError (RuntimeError)      a process that did part of the work died again and again
    ├── DataNotFoundError (FileNotFoundError)   a file or folder that is not there
    └── ProcessLostError (RuntimeError) another process of one job ended, or does not answer

`except ValueError` catches every bad value, and `except AccordError` every error of this list.
"""

from collections.abc import Sequence


class AccordError(Exception):
    """Base of all errors raised on purpose."""


class InputError(AccordError, ValueError):
    """A value that cannot be used."""


class GraphError(InputError):
    """Nodes, edges, features or labels of a graph do not fit together."""


class FieldError(InputError):
    """Potentials of a field, or labels scored against it, cannot be used."""


class InfeasibleError(FieldError):
    """The constraints (forbidden states or pairs, clamped labels) leave no labelling.

    Args:
        message: what is wrong, where, and how to fix it.
        nodes: nodes whose constraints contradict each other, as far as they are known.
        proved: True where no labelling exists; False where none was found, though there may be one.
    """

    def __init__(self, message: str, nodes: Sequence[int] = (), proved: bool = True) -> None:
        super().__init__(message)
        self.nodes, self.proved = list(nodes), proved


class OptionError(InputError):
    """A setting is out of its range, or a name is unknown."""


class TooLargeError(InputError):
    """A call needs more memory than is available, or an exact method larger tables than it can hold."""


class InputTypeError(AccordError, TypeError):
    """An object is of the wrong type."""


class WorkerError(AccordError, RuntimeError):
    """A process that did part of the work died, and so did those that took its place."""


class DataNotFoundError(AccordError, FileNotFoundError):
    """A file or folder was not found; a benchmark's files could not be fetched either."""


class ProcessLostError(AccordError, RuntimeError):
    """Another process of the same job ended, or does not answer."""


class ConvergenceWarning(UserWarning):
    """Belief propagation stopped before its messages converged."""


class DamagedFileWarning(UserWarning):
    """A damaged file was left out."""


class DepartureWarning(UserWarning):
    """Joint labels of a graph differ from the node network's far more often than on validation graphs."""


class DivergenceWarning(UserWarning):
    """Training diverged: a loss or weights were no longer finite. The best parameters so far were kept."""


class MajorityWarning(UserWarning):
    """A trained model is not better on validation data than the most frequent training label."""


class MissingValuesWarning(UserWarning):
    """A number is missing in a graph, but never was in training; the training mean is used."""


class UnseenCategoriesWarning(UserWarning):
    """A column of text holds values that the training graphs do not have."""


class UnusedLabelsWarning(UserWarning):
    """Training cannot use some of the labels."""


class UnseenStatesWarning(UserWarning):
    """Some states never occur in the training labels, so they cannot be learned but still cost time and memory."""
