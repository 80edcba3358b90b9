"""Results on disk, whole or not at all."""

import json
import os
from pathlib import Path


def write_json(path: Path, value: object) -> Path:
    """Write beside the place and move there, so that whoever reads sees the old or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(beside, path)
    return path
