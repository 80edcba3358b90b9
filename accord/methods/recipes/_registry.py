"""Methods by name: the one place where a method's name becomes its class."""

from accord.errors import OptionError
from accord.methods._crf import CRF
from accord.methods._gmnn import GMNN
from accord.methods._gnn import GNN
from accord.methods._model import Method
from accord.methods._smoothing import SmoothedGNN
from accord.methods._spn import StructuredProxyNetwork

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (CRF, GMNN, GNN, SmoothedGNN, StructuredProxyNetwork)
}


def find_method(name: str) -> type[Method]:
    """The method of a name."""
    if not isinstance(name, str) or name not in METHODS:
        raise OptionError(f"method {name!r} is unknown. Choose one of {', '.join(METHODS)}.")
    return METHODS[name]
