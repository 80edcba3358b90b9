"""exp and log of vectors do not rely on undefined behaviour, whatever numbers they are given."""

import subprocess

import pytest

from accord.inference.kernels.cpu import _build

PROGRAM = """
#include "simd.hpp"
#include <cmath>
#include <cstdio>
template <class R> void check(R largest) {
    for (R x : {R(0), R(1), R(-1), R(80), R(90), R(1000), R(-1000), R(1e30), R(-1e30), INF<R>, -INF<R>, R(NAN)}) {
        volatile R given = x;
        const Lanes<R> found = exp_positive(splat<R>(given)), back = log(found);
        if (std::abs(x) <= largest && !(std::abs(back[0] - x) < 1e-4)) std::printf("log(exp(%g)) is %g\\n", x, back[0]);
    }
}
int main() { check<float>(80), check<double>(90); }
"""


def test_exp_and_log_have_no_undefined_behaviour(tmp_path):
    (tmp_path / "program.cpp").write_text(PROGRAM)
    flags = ["-std=c++17", "-O1", "-w", "-fsanitize=undefined", f"-I{_build.SOURCES}"]
    try:
        compiler = _build.find_compiler()
    except _build.BuildError as error:
        pytest.skip(str(error))
    program = tmp_path / "program"
    built = subprocess.run(
        [*compiler, *flags, "program.cpp", "-o", str(program)], cwd=tmp_path, capture_output=True, text=True
    )
    if built.returncode != 0 and "ubsan" in built.stderr:
        pytest.skip("the compiler has no sanitizer of undefined behaviour")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
