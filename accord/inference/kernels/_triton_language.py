"""Triton where it is installed, and where it is not, just enough for modules of device code to be imported."""

from typing import Any

try:
    import triton.language as tl  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from triton import jit  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError:

    class _Absent:
        """Stands for anything that Triton would offer."""

        def __getattr__(self, name: str) -> "_Absent":
            return self

        def __call__(self, *_: object, **__: object) -> "_Absent":
            return self

    tl: Any = _Absent()  # type: ignore[no-redef]
    jit: Any = _Absent()  # type: ignore[no-redef]

__all__ = ["jit", "tl"]
