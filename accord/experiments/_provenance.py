"""Where a result comes from: versions, hardware, commit."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import torch

from accord._version import library_versions


def provenance(device: torch.device | None = None) -> dict[str, str]:
    """What a reader needs to judge or repeat a result.

    Args:
        device: where it was computed; None for where torch would compute by default.
    """
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {
        **library_versions(),
        "python": platform.python_version(),
        "device": f"{device.type}: {name}",
        "matrix products": torch.get_float32_matmul_precision(),  # torch's word: "high" is tf32 on a GPU
        "commit": _commit(),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
    }


def _commit() -> str:
    """The commit of the checkout this package lies in, marked where files have changed; "unknown" outside one.

    A machine that holds a copy without history can be told by ACCORD_COMMIT.
    """
    told = os.environ.get("ACCORD_COMMIT")
    if told:
        return told
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
