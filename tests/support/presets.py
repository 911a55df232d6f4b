"""Methods as cases of a test: all of them, but of the cross-moment grid quick runs have a sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

# every value of every axis of the grid once: orders 0, 1 and 2, both forms, both partitions, masked jointly, separately
# and not at all, all covariances and variances only, both strategies. mechanisms/moments/test_sample.py counts them
SAMPLE = ("xm-6", "xm-17", "xm-20", "xm-26", "xm-b4")


def in_quick_runs(name: str) -> bool:
    """Whether tests of all methods try this one in quick runs."""
    return not name.startswith("xm-") or name in SAMPLE


def sampled(cases: Iterable[Any]) -> list[Any]:
    """Cases, names of methods or tuples that begin with one; what is outside the sample is marked slow."""
    found = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        found.append(pytest.param(*values, marks=[] if in_quick_runs(values[0]) else [pytest.mark.slow]))
    return found
