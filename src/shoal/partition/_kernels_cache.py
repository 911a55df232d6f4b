"""A function in, its compiled form out, kept on disk until the source of a kernel changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

from numba import njit


def _stamp() -> str:
    """One number for the text of all kernels that call each other."""
    total = 0
    for name in ("vector", "brute", "tree", "build", "rounds"):
        total = crc32(Path(__file__).with_name(f"_kernels_{name}.py").read_bytes(), total)
    return f"{total:08x}"


def cached(function: Callable[..., Any]) -> Any:
    """Compile on first use without the interpreter's lock; keep the result on disk.

    numba looks only at the file of the function itself, but the helpers it calls live in other files: a changed
    helper would go unnoticed. So the stamp that numba compares is replaced by one of all kernels.
    """
    compiled = njit(cache=True, nogil=True)(function)
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = _stamp()
    return compiled
