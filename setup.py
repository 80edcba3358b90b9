"""Compiles the CPU kernels into a wheel: `pip wheel --config-settings=--build-option=--kernels .`

Everything else is in pyproject.toml. Without the option, and where there is no C++ compiler, the wheel holds sources
only, and kernels are compiled at first use.
"""

import importlib.util
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

PACKAGE = Path(__file__).resolve().parent / "accord"

# Not imported as a part of accord, which needs torch.
spec = importlib.util.spec_from_file_location("_prebuilt", PACKAGE / "_prebuilt.py")
prebuilt = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prebuilt)


def find_compiler():
    """The command of a C++ compiler, or None."""
    named = shlex.split(os.environ.get("CXX", ""))
    commands = [named] if named else [["c++"], ["g++"], ["clang++"]]
    return next((command for command in commands if shutil.which(command[0])), None)


def tuning(level):
    """The flags of a level."""
    return [] if level == prebuilt.GENERIC else [f"-march={level}"]


def levels_of(compiler):
    """The levels that a compiler can produce code for on this machine."""
    if compiler is None or sys.platform != "linux":
        return []
    known = list(prebuilt.LEVELS) if platform.machine() == "x86_64" else [prebuilt.GENERIC]
    probe = [*compiler, "-x", "c++", "-E", os.devnull, "-o", os.devnull]
    return [level for level in known if subprocess.run([*probe, *tuning(level)], capture_output=True).returncode == 0]


def compile_kernels(compiler, levels, folder):
    """Compile every library for every level into a folder, and list them in its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    mains = sorted(PACKAGE.glob("**/native/*.cpp"))
    jobs = [(main, level) for main in mains for level in levels]

    def build(job):
        main, level = job
        path = folder / prebuilt.library_name(main.stem, level)
        begun = time.monotonic()
        flags = [*prebuilt.WHEEL_FLAGS, *tuning(level), f"-I{main.parent}", f"-I{prebuilt.SHARED}"]
        subprocess.run([*compiler, *flags, str(main), "-o", str(path)], check=True)
        print(f"compiled {path.name} in {time.monotonic() - begun:.0f} s", flush=True)
        return prebuilt.checksum(path)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sums = dict(zip(jobs, pool.map(build, jobs), strict=True))
    manifest = {
        main.stem: {
            "sources": prebuilt.fingerprint_sources(main.parent),
            "levels": {level: sums[main, level] for level in levels},
        }
        for main in mains
    }
    (folder / prebuilt.MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


class BuildPython(build_py):
    """Adds compiled kernels to the package, if the wheel wants them."""

    kernels = None  # compiler and levels

    def run(self):
        """Copy the package, then compile."""
        super().run()
        if self.kernels and not self.editable_mode:
            compile_kernels(*self.kernels, Path(self.build_lib) / "accord" / prebuilt.FOLDER.name)


class BuildWheel(bdist_wheel):
    """A wheel for one platform if it holds compiled kernels, otherwise for all."""

    user_options = [*bdist_wheel.user_options, ("kernels", None, "compile the CPU kernels into the wheel")]
    boolean_options = [*bdist_wheel.boolean_options, "kernels"]

    def initialize_options(self):
        """Without kernels, unless the option is given."""
        super().initialize_options()
        self.kernels = False

    def finalize_options(self):
        """Decide whether kernels are compiled, which the name of the wheel depends on."""
        compiler = find_compiler() if self.kernels else None
        levels = levels_of(compiler)
        if levels:
            self.distribution.get_command_obj("build_py").kernels = compiler, levels
            self.distribution.has_ext_modules = lambda: True  # installs into the folder for compiled packages
        elif self.kernels:
            self.warn("no C++ compiler was found: the wheel holds the sources of the kernels only")
        super().finalize_options()

    def get_tag(self):
        """Kernels are called through ctypes: any Python 3 of the platform will do."""
        platform_tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        return super().get_tag() if self.root_is_pure else ("py3", "none", platform_tag)


setup(cmdclass={"build_py": BuildPython, "bdist_wheel": BuildWheel})
