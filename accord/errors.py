"""Every error and warning that Accord raises on purpose.

    AccordError
    ├── InputError (ValueError)         a value that cannot be used
    │   ├── GraphError                  nodes, edges, features or labels of a graph
    │   ├── FieldError                  potentials, or labels scored against them
    │   │   └── InfeasibleError         the constraints leave no labelling at all
    │   ├── OptionError                 a setting out of its range, or an unknown name
    │   └── TooLargeError               a call that asks for more memory than there is
    ├── InputTypeError (TypeError)      an object of the wrong kind
    └── DataNotFoundError (FileNotFoundError)   a benchmark file that is nowhere to be had

So `except ValueError` catches every bad value, and `except AccordError` everything of ours.
"""


class AccordError(Exception):
    """Base of all errors raised on purpose."""


class InputError(AccordError, ValueError):
    """A value that cannot be used."""


class GraphError(InputError):
    """Nodes, edges, features or labels of a graph do not fit together."""


class FieldError(InputError):
    """Potentials of a field, or labels scored against it, cannot be used."""


class InfeasibleError(FieldError):
    """The constraints (forbidden states or pairs, clamped labels) leave no labelling."""


class OptionError(InputError):
    """A setting is out of its range, or a name is not in its table."""


class TooLargeError(InputError):
    """A call needs more memory than there is, or an exact method more states than it can hold."""


class InputTypeError(AccordError, TypeError):
    """An object is not of the kind that is needed."""


class DataNotFoundError(AccordError, FileNotFoundError):
    """A benchmark's files were not found and could not be fetched."""


class ConvergenceWarning(UserWarning):
    """Belief propagation stopped before its messages settled."""


class DivergenceWarning(UserWarning):
    """Training left the road: a loss or weights were no longer finite, and the best parameters so far were kept."""


class UnusedLabelsWarning(UserWarning):
    """Some labels teach a model nothing, the way it is trained."""
