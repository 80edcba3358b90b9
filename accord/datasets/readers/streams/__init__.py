"""Graphs of files and folders as streams: training sets that may be larger than memory."""

from accord.datasets.readers.streams._files import GraphFiles
from accord.datasets.readers.streams._folder import stream_folder

__all__ = ["GraphFiles", "stream_folder"]
