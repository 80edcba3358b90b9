"""Available memory honours the limits of control groups, of either version, which containers and batch systems set."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from accord import PairwiseField, _memory, propagate
from accord._memory import available_memory, is_out_of_memory, peak_memory, release_memory
from accord.errors import TooLargeError
from accord.inference._options import PropagationOptions
from accord.inference._prepared import _prepare
from accord.inference.kernels import check_memory, needed_bytes

CPU = torch.device("cpu")
GB = 2**30
UNLIMITED_1 = 2**63 - 4096  # what version 1 reports for a group without a limit
NAMES = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("memory.max", "memory.current")}


class FakeLinux:
    """The files of /proc and of control groups that a Linux machine would show to this process."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.groups, self.mounts = folder / "proc", folder / "cgroup", []
        (self.proc / "self").mkdir(parents=True)
        self.groups.mkdir()

    def machine(self, available):
        text = f"MemTotal:       {available // 512} kB\nMemFree:  1 kB\nMemAvailable:   {available // 1024} kB\n"
        (self.proc / "meminfo").write_text(text)

    def own_groups(self, *lines):
        (self.proc / "self" / "cgroup").write_text("".join(f"{line}\n" for line in lines))

    def mount(self, version, folder=".", shown="/"):
        """Mount the hierarchy of a version in a folder, which shows the group `shown` at its top."""
        kind, options = ("cgroup2", "rw,nsdelegate") if version == 2 else ("cgroup", "rw,memory")
        self.mounts.append(f"{len(self.mounts)} 25 0:23 {shown} {self.groups / folder} rw - {kind} none {options}")
        (self.proc / "self" / "mountinfo").write_text("\n".join(["1 0 0:1 / / rw - ext4 /dev/vda rw", *self.mounts]))

    def group(self, version, path, limit, used=0, **stat):
        folder = self.groups / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in zip(NAMES[version], (limit, used), strict=True):
            (folder / name).write_text(f"{value}\n")
        (folder / "memory.stat").write_text("anon 1\n" + "".join(f"{name} {size}\n" for name, size in stat.items()))


@pytest.fixture
def linux(tmp_path, monkeypatch):
    fake = FakeLinux(tmp_path)
    monkeypatch.setattr(_memory, "PROC", fake.proc)
    return fake


def test_without_control_groups_the_machine_counts(linux):
    linux.machine(8 * GB)
    assert available_memory(CPU) == 8 * GB


@pytest.mark.parametrize(("limit", "available"), [(3 * GB, 2 * GB), (20 * GB, 8 * GB), ("max", 8 * GB)])
def test_the_limit_of_a_version_2_group(linux, limit, available):
    linux.machine(8 * GB)
    linux.own_groups("0::/job")
    linux.mount(2)
    linux.group(2, "job", limit, used=GB)
    assert available_memory(CPU) == available


@pytest.mark.parametrize(("limit", "available"), [(3 * GB, 2 * GB), (20 * GB, 8 * GB), (UNLIMITED_1, 8 * GB)])
def test_the_limit_of_a_version_1_group(linux, limit, available):
    linux.machine(8 * GB)
    linux.own_groups("9:name=systemd:/", "4:memory,hugetlb:/job", "3:cpuset:/job", "0::/")
    linux.mount(1, "memory")
    linux.mount(2, "unified")
    linux.group(1, "memory/job", limit, used=GB)
    assert available_memory(CPU) == available


@pytest.mark.parametrize("version", [1, 2])
def test_outer_groups_count_too(linux, version):
    linux.machine(64 * GB)
    linux.own_groups("4:memory:/user/job/step" if version == 1 else "0::/user/job/step")
    linux.mount(version)
    unlimited = UNLIMITED_1 if version == 1 else "max"
    linux.group(version, "user", 6 * GB, used=5 * GB)
    linux.group(version, "user/job", unlimited, used=4 * GB)
    linux.group(version, "user/job/step", 8 * GB, used=2 * GB)
    assert available_memory(CPU) == GB
    linux.group(version, "user", 60 * GB, used=5 * GB)
    assert available_memory(CPU) == 6 * GB


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_that_is_told_a_path_it_cannot_see(linux, version):
    """Without a namespace for control groups, the path is the host's, and the mount shows the container's group."""
    linux.machine(64 * GB)
    linux.own_groups("4:memory:/docker/abc" if version == 1 else "0::/docker/abc")
    linux.mount(version, shown="/docker/abc")
    linux.group(version, ".", 2 * GB, used=GB)
    assert available_memory(CPU) == GB


def test_a_group_inside_a_container(linux):
    linux.machine(64 * GB)
    linux.own_groups("4:memory:/docker/abc/worker")
    linux.mount(1, shown="/docker/abc")
    linux.group(1, ".", 8 * GB, used=GB)
    linux.group(1, "worker", 3 * GB, used=GB)
    assert available_memory(CPU) == 2 * GB


@pytest.mark.parametrize("path", ["/docker/abc", "/../elsewhere"])
def test_a_path_outside_of_the_mount_leaves_the_group_at_its_top(linux, path):
    linux.machine(64 * GB)
    linux.own_groups(f"0::{path}")
    linux.mount(2)
    linux.group(2, ".", 2 * GB, used=GB)
    assert available_memory(CPU) == GB


@pytest.mark.parametrize("version", [1, 2])
def test_page_cache_counts_as_available(linux, version):
    linux.machine(64 * GB)
    linux.own_groups("4:memory:/job" if version == 1 else "0::/job")
    linux.mount(version)
    cached = {"active_file": GB, "inactive_file": 2 * GB}
    own = {f"total_{name}": size for name, size in cached.items()} if version == 1 else cached
    linux.group(version, "job", 8 * GB, used=7 * GB, **own)
    assert available_memory(CPU) == 4 * GB


def test_a_group_beyond_its_limit_has_nothing_left(linux):
    linux.machine(64 * GB)
    linux.own_groups("0::/job")
    linux.mount(2)
    linux.group(2, "job", GB, used=2 * GB)
    assert available_memory(CPU) == 0


@pytest.mark.parametrize("lines", [(), ("nonsense",), ("0::/gone",)])
def test_files_that_make_no_sense_are_ignored(linux, lines):
    linux.machine(8 * GB)
    linux.own_groups(*lines)
    linux.mount(2)
    (linux.proc / "self" / "mountinfo").write_text("nonsense\n- - -\n" + "\n".join(linux.mounts))
    (linux.groups / "memory.max").write_text("nonsense")
    assert available_memory(CPU) == 8 * GB


def test_without_proc_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory, "PROC", tmp_path / "absent")
    assert available_memory(CPU) is None


def test_other_devices_are_unknown(linux):
    linux.machine(8 * GB)
    assert available_memory(torch.device("mps")) is None
    assert available_memory(torch.device("meta")) is None


def test_on_a_gpu_torch_is_asked(linux, monkeypatch):
    linux.machine(1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (5 * GB, 80 * GB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 3 * GB)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: GB)
    assert available_memory(torch.device("cuda")) == 7 * GB


# ---- propagate


def large_field():
    """About 0.4 GB of work on a field that itself takes little: all tables share one number."""
    count = 300_000
    index = torch.stack([torch.arange(count), torch.arange(1, count + 1)])
    return PairwiseField(index, torch.zeros(count + 1, 16), torch.zeros(1, 1, 1).expand(count, 16, 16))


@pytest.mark.parametrize("version", [1, 2])
def test_propagate_is_refused_where_the_container_has_too_little(linux, version):
    """The machine has enough, but the kernel would kill a process that takes more than its group may have."""
    field = large_field()
    problem = _prepare(field, PropagationOptions(max_sweeps=1)).problem(field, None)
    needed = needed_bytes("native", problem)
    linux.machine(64 * GB)
    linux.own_groups("4:memory:/docker/abc" if version == 1 else "0::/")
    linux.mount(version, shown="/docker/abc" if version == 1 else "/")
    linux.group(version, ".", GB + needed, used=GB)
    check_memory("native", problem)
    linux.group(version, ".", GB + needed - 1, used=GB)
    with pytest.raises(TooLargeError, match=r"300000 edges with 16 states take .* but .* GB is available on cpu"):
        propagate(field, max_sweeps=1)


# ---- peaks and errors


def test_the_peak_of_some_work():
    taken = peak_memory(lambda: torch.ones(50_000_000).sum(), CPU)
    assert taken is None or 1.5e8 < taken < 4e8


@pytest.mark.parametrize(("device", "proc"), [("cpu", "absent"), ("meta", "/proc")])
def test_work_is_done_even_if_its_peak_cannot_be_measured(tmp_path, monkeypatch, device, proc):
    monkeypatch.setattr(_memory, "PROC", tmp_path / proc)
    done = []
    assert peak_memory(lambda: done.append(1), torch.device(device)) is None
    assert done == [1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_peak_on_a_gpu_that_was_not_used_before():
    code = (
        "import torch; from accord._memory import peak_memory; "
        "print(peak_memory(lambda: torch.zeros(2**20, device='cuda'), torch.device('cuda')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 4 * 2**20


def test_errors_that_mean_too_little_memory():
    assert is_out_of_memory(MemoryError()) and is_out_of_memory(torch.OutOfMemoryError("out"))
    assert is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"))
    assert not is_out_of_memory(RuntimeError("shape mismatch")) and not is_out_of_memory(
        ValueError("not enough memory")
    )


def test_what_nothing_refers_to_is_freed():
    class Loop:
        def __init__(self, freed):
            self.own, self.freed = self, freed

        def __del__(self):
            self.freed.append(1)

    freed = []
    Loop(freed)
    release_memory(CPU)
    assert freed == [1]
