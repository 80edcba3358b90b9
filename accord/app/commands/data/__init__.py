"""`accord data`: list, check and split data."""

from accord.app.commands.data._command import ColumnsOption, MappingOption, data_app

__all__ = ["ColumnsOption", "MappingOption", "data_app"]
