"""Where a result comes from: versions, hardware, commit."""

import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

import torch

from accord._version import library_versions

UNKNOWN = "unknown"
SHORT = 12  # digits of a commit
GIT_SECONDS = 10  # a slow file system must not hold up an experiment


def provenance(device: torch.device | None = None) -> dict[str, str]:
    """What a reader needs to judge or repeat a result.

    Args:
        device: where it was computed; None for torch's default.
    """
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {
        **library_versions(),
        "python": platform.python_version(),
        "device": f"{device.type}: {name}",
        "matrix products": torch.get_float32_matmul_precision(),  # torch's word: "high" is tf32 on a GPU
        # The variable names the commit of a copy without history.
        "commit": os.environ.get("ACCORD_COMMIT", "")[:SHORT] or _commit_of(Path(__file__).resolve().parents[1]),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
    }


@cache
def _commit_of(package: Path) -> str:
    """The commit of the checkout of Accord that holds this package, with "-dirty" where files have changed.

    "unknown" for an installed package, even if its environment lies inside another repository.
    """
    root = package.parent
    try:
        project = (root / "pyproject.toml").read_text(encoding="utf-8", errors="replace")
        if re.search(r'^name\s*=\s*"accord"', project, re.MULTILINE) is None or not (root / ".git").exists():
            return UNKNOWN
        _git(root, "ls-files", "--error-unmatch", f"{package.name}/__init__.py")  # fails for an untracked file
        return _git(root, "describe", "--always", "--dirty", f"--abbrev={SHORT}")
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=GIT_SECONDS)
    return done.stdout.strip()
