"""The statistical offices' reference figures: their location, and the tables they were computed on.

The figures are facts computed by another tool; the tables are rebuilt here from the public data sets, in the same order
and with the same codes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from tools.public_data import data_folder

_NAMES = (
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
    "income",
)
_NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week", "fnlwgt")
# households of one to four people in every ten rows
_HOUSEHOLDS = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
_CARDINALITIES = np.array([9, 7, 16, 7, 5, 2])

KEYS4 = ("age_band", "sex", "race", "marital_status")
KEYS6 = ("age_band", "workclass", "education", "marital_status", "race", "sex")
KEYS_MISSING = ("age_band", "workclass", "occupation", "marital_status", "race", "sex")


def adult(rows: int | None = None, *, complete: bool = True) -> pa.Table:
    """The Adult table as used for the figures: codes from 1 in the order of the names, an empty cell is missing.

    Args:
        rows: the first so many; by default all.
        complete: leave out rows with a missing value first.
    """
    raw = csv.read_csv(data_folder() / "adult.csv")
    names = {name: np.asarray(raw[name].to_numpy(zero_copy_only=False), dtype=object) for name in _NAMES}
    whole = np.ones(raw.num_rows, dtype=bool)
    for values in names.values():
        whole &= values != ""
    kept = (np.flatnonzero(whole) if complete else np.arange(raw.num_rows))[:rows]
    numbers = {name: raw[name].to_numpy()[kept] for name in _NUMBERS}
    found: dict[str, pa.Array | NDArray[np.generic]] = {
        "age_band": numbers["age"] // 10,
        "age5": numbers["age"] // 5,
    }
    for name, values in names.items():
        code = {value: place + 1 for place, value in enumerate(sorted(set(values) - {""}))}
        found[name] = pa.array([code.get(value) for value in values[kept]], pa.int64())
    found["w"] = numbers["fnlwgt"] / 1000.0
    found["w10"] = 1 + numbers["fnlwgt"] % 10
    found["hid"] = _households(kept.size)
    grade = numbers["education_num"]
    found["stratum"] = np.where(grade <= 9, 1, np.where(grade <= 12, 2, 3))
    return pa.table({**found, **numbers})


def census() -> pa.Table:
    """The Census table with four strata and weights 1 to 7."""
    table = csv.read_csv(data_folder() / "census.csv")
    place = np.arange(table.num_rows)
    return table.append_column("stratum", pa.array(1 + place % 4)).append_column("w", pa.array(1 + place % 7))


def generated(rows: int) -> pa.Table:
    """The generated table of the timings: six skewed keys, a weight and households."""
    draw = np.random.Generator(np.random.PCG64(1))
    keys = 1 + np.floor(draw.random((rows, 6)) ** 2 * _CARDINALITIES).astype(np.int64)
    columns = {f"k{place + 1}": keys[:, place] for place in range(6)}
    weights = 1 + np.floor(draw.random(rows) * 100).astype(np.int64)
    return pa.table({**columns, "w": weights, "hid": _households(rows)})


def _households(rows: int) -> NDArray[np.int64]:
    place = np.arange(rows)
    return np.asarray(1 + 4 * (place // 10) + _HOUSEHOLDS[place % 10])
