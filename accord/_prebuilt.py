"""Kernels that a wheel brings compiled: for which CPUs, and which of them fits this one.

Needs nothing but Python, because setup.py loads this file before anything is installed. A folder `native/` holds the
sources of one library; its main file gives the library its name.
"""

import hashlib
import json
import platform
import sys
from pathlib import Path

# -fno-math-errno etc. are not needed: exp and log are our own. No -ffast-math: infinities have a meaning.
# No second scheduling of instructions: g++ 13 and 14 spend 40 to 75 seconds on it when tuning for Sapphire Rapids (20
# on everything else), and the CPU reorders instructions itself. Clang has no such flag; -w silences its warning.
FLAGS = ("-std=c++17", "-O3", "-fno-schedule-insns2", "-fPIC", "-shared", "-pthread", "-w")
# The C++ library comes along, out of sight of others: the machine may have another one, or none.
WHEEL_FLAGS = (*FLAGS, "-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL", "-s")

# Levels of x86-64 as compilers name them, best first, and how /proc/cpuinfo spells what each adds to the next.
_V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
_V3 = f"{_V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
_V4 = f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl"
LEVELS = {"x86-64-v4": _V4.split(), "x86-64-v3": _V3.split(), "x86-64-v2": _V2.split()}
GENERIC = "generic"  # the only level of other machines

FOLDER = Path(__file__).parent / "_libraries"
SHARED = Path(__file__).parent / "inference" / "kernels" / "cpu" / "native"  # headers here serve several libraries
MANIFEST = "manifest.json"  # by library: the fingerprint of its sources, and a checksum for each level


def fingerprint_sources(folder: Path) -> str:
    """A checksum of the sources of a library and of how they are compiled."""
    digest = hashlib.sha256(" ".join(WHEEL_FLAGS).encode())
    files = {path.name: path for path in SHARED.glob("*.hpp")}
    files |= {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.[ch]pp")}
    for name, path in sorted(files.items()):
        digest.update(f"\0{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def library_name(name: str, level: str) -> str:
    """The file of a library for a level."""
    return f"{name}-{level}.so"


def fitting_levels() -> list[str]:
    """Levels whose code this machine can run, best first; none if it is not Linux with glibc."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return []
    if platform.machine() != "x86_64":
        return [GENERIC]
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
    # The cores of a machine may differ: what any of them lacks is not used.
    cores = [set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")]
    return [level for level, needed in LEVELS.items() if cores and all(core.issuperset(needed) for core in cores)]


def find_prebuilt(name: str, sources: Path) -> Path | None:
    """The best library for this machine that was compiled from these sources, if the wheel brought one."""
    try:
        entry = json.loads((FOLDER / MANIFEST).read_text())[name]
        if entry["sources"] != fingerprint_sources(sources):
            return None
        for level in fitting_levels():
            path = FOLDER / library_name(name, level)
            if level in entry["levels"] and checksum(path) == entry["levels"][level]:
                return path
    except (OSError, ValueError, KeyError, TypeError):  # none was brought, or the files are damaged
        pass
    return None


def checksum(path: Path) -> str:
    """Of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
