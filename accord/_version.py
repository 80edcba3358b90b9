"""The version of Accord, written here and nowhere else, and of what its results depend on."""

__version__ = "0.2.0.dev0"


def library_versions() -> dict[str, str]:
    """Versions that are stored with models and results."""
    import torch  # `accord --help` asks for the version, and need not wait for torch

    return {"accord": __version__, "torch": torch.__version__}
