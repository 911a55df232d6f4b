"""Noise on cluster means, and the private facts that the mechanism reports."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

import shoal


@pytest.mark.parametrize(("loaded", "announced"), [(False, True), (True, False)])
def test_the_preparation_of_kernels_is_announced_once(
    monkeypatch: pytest.MonkeyPatch, loaded: bool, announced: bool
) -> None:
    """A table too large for numpy: compiled code is needed, and said to be, unless it is there already."""
    module = sys.modules["shoal.partition.multivariate"]
    monkeypatch.setattr(module, "numpy_seconds", lambda n, d, k: 10.0)
    # the kernels themselves are not wanted here
    monkeypatch.setattr(module, "_labels", lambda values, *_: np.arange(len(values)) // 50)
    monkeypatch.delitem(sys.modules, "shoal.partition.nearest", raising=False)
    if loaded:
        monkeypatch.setitem(sys.modules, "shoal.partition.nearest", np)
    table = pa.table({"a": np.arange(100.0), "b": np.arange(100.0)})
    said: list[str] = []
    shoal.protect(
        table,
        method="mdav-dp",
        epsilon=1,
        k=50,
        domains={"a": (0, 100), "b": (0, 100)},
        progress=lambda what, done, total: said.append(what),
    )
    assert ("preparing kernels (once)" in said) is announced
