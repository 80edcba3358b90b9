"""A disk that is full: `fit` in a small tmpfs, at every size at which a write may fail."""

import ctypes
import os
import subprocess
from pathlib import Path

from attack.commands import load_everything, run_command
from attack.harness.trial import Skip, Trial
from attack.runs import METHODS, content, differences, finished_run, fit_arguments, fruit

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
PAGE = 4096


class FullDisk:
    """Fit until the disk is full, enlarge the disk, fit again, compare."""

    def __init__(self, folder: Path) -> None:
        own_mounts()
        load_everything()
        self.folder = folder
        self.data = fruit(folder)

    def attempt(self, trial: Trial) -> None:
        """One size of the disk."""
        method = list(METHODS)[trial.number % len(METHODS)]
        expected = finished_run(self.folder, method)
        whole = sum(path.stat().st_size for path in expected.rglob("*") if path.is_file())
        pages = trial.rng.randint(2, 2 * whole // PAGE)
        disk = trial.folder / "disk"
        disk.mkdir()
        run = disk / "run"
        mount("-t", "tmpfs", "-o", f"size={pages * PAGE}", "attack", str(disk))
        try:
            first = run_command(fit_arguments(self.data, run, method), trial.folder)
            trial.tried["full disks"] += first.code != 0
            trial.tried["small disks"] += 1
            if first.code != 0 and not first.refused:
                trial.fail(f"fit {method} on {pages} pages: {first.describe()}")
            mount("-o", f"remount,size={10 * whole + 2**20}", str(disk))
            again = run_command(fit_arguments(self.data, run, method), trial.folder)
            if again.code != 0:
                trial.fail(f"fit {method} on {pages} pages, then again with room: {again.describe()}")
                return
            for problem in differences(content(expected), content(run)):
                trial.fail(f"fit {method} on {pages} pages, then again with room: {problem}")
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)


def own_mounts() -> None:
    """Give this process its own mounts, which end with it. Not permitted everywhere."""
    user, group = os.getuid(), os.getgid()
    flags = CLONE_NEWNS | (CLONE_NEWUSER if user != 0 else 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare") or libc.unshare(flags) != 0:
        raise Skip(f"this machine permits no mounts ({os.strerror(ctypes.get_errno())})")
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    try:
        mount("--make-rprivate", "/")
    except (OSError, subprocess.CalledProcessError) as error:
        raise Skip(f"this machine permits no mounts ({error})") from error


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
