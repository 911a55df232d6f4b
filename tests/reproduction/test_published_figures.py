"""Plain noise of the cross-moment paper through `shoal.protect`. Seeds are 0, 1, 2, ...: nothing is picked."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import csv

import shoal
from tests.conftest import data_file

CENSUS_4 = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
EIA_4 = ("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES")


@cache
def table(name: str) -> pa.Table:
    return csv.read_csv(data_file(name))


def matrix(frame: pa.Table, columns: tuple[str, ...]) -> NDArray[np.float64]:
    return np.stack([frame[name].to_numpy() for name in columns], axis=1).astype(np.float64)


def errors(frame: pa.Table, columns: tuple[str, ...], runs: int, **options: object) -> NDArray[np.float64]:
    """Differences original - released, rows aligned, one matrix per run."""
    original = matrix(frame, columns)
    return np.stack(
        [
            original
            - matrix(
                shoal.protect(frame, columns=columns, domain_from_data=1.5, seed=seed, **options).aligned,
                columns,
            )
            for seed in range(runs)
        ]
    )


@pytest.mark.parametrize(
    ("file", "columns", "printed", "expected"),
    [
        ("census.csv", CENSUS_4[:2], 47.68, 47.69),
        ("census.csv", CENSUS_4[:3], 49.13, 49.13),
        ("census.csv", CENSUS_4, 49.97, 49.97),
        ("eia.csv", EIA_4[:2], 60.28, 60.31),
        ("eia.csv", EIA_4[:3], 61.45, 61.49),
        ("eia.csv", EIA_4, 62.87, 62.90),
    ],
)
def test_plain_laplace_of_the_cross_moment_paper(
    file: str, columns: tuple[str, ...], printed: float, expected: float
) -> None:
    """Its Table 1 at ε = 1: log2 SSE, not clipped. `expected` is what its own formula gives."""
    found = errors(
        table(file), columns, 60, method="laplace", epsilon=1, split="equal", clip=False, outside="clip"
    )
    measured = np.log2((found**2).sum(axis=(1, 2)).mean())
    assert abs(measured - expected) <= 0.03, (
        f"measured {measured:.3f}, expected {expected}, printed {printed}"
    )
