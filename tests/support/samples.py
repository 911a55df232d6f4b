"""Small synthetic tables for tests, in every dataframe library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from shoal import Schema

LIBRARIES = ("pandas", "polars", "pyarrow")

# names a spreadsheet may hold: space, equals sign, colon, comma, unicode, leading digit, markup
ODD_NAMES = ("Ångström größe", "2nd: a=b, c", "<b>net</b> 'income'", "x|y", '"quoted"')


def frame(columns: Mapping[str, Any], library: str) -> Any:
    """A table of the library from arrays."""
    if library == "pandas":
        return pd.DataFrame(dict(columns))
    if library == "polars":
        return pl.DataFrame(dict(columns))
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def people(n: int = 60, seed: int = 5) -> dict[str, Any]:
    """Tie-free columns of several types, an identifier, a weight and a nominal column."""
    rng = np.random.default_rng(seed)
    return {
        "person id": np.array([f"P{i:04d}" for i in rng.permutation(n)]),
        "age": (18 + rng.permutation(n)).astype(np.int16),
        ODD_NAMES[1]: rng.uniform(0, 1000, n),
        "town": rng.choice(["A", "B"], n),
        ODD_NAMES[0]: rng.uniform(-1, 1, n).astype(np.float32),
        "weight": rng.uniform(1, 9, n),
        "dwellings": rng.permutation(n).astype(np.uint8),
    }


PEOPLE_COLUMNS = ("age", ODD_NAMES[1], ODD_NAMES[0], "dwellings")
PEOPLE_DOMAINS: dict[str, tuple[str, str]] = {
    "age": ("18", "120"),
    ODD_NAMES[1]: ("0", "1000.1"),
    ODD_NAMES[0]: ("-1.1", "1.1"),
    "dwellings": ("0", "99"),
}


PEOPLE_TYPES = {"age": "integer", ODD_NAMES[1]: "decimal", ODD_NAMES[0]: "decimal", "dwellings": "integer"}


def people_schema() -> Schema:
    roles = {"person id": "identifier", "town": "other", "weight": "weight"}
    entries: list[dict[str, Any]] = []
    for name in people(2):
        if name in PEOPLE_DOMAINS:
            lo, hi = PEOPLE_DOMAINS[name]
            entries.append({"name": name, "type": PEOPLE_TYPES[name], "lo": lo, "hi": hi})
        else:
            kind = "numeric" if name == "weight" else "nominal"
            entries.append({"name": name, "kind": kind, "role": roles[name]})
    return Schema.from_dict({"attribute": entries})


def column(data: Any, name: str) -> np.ndarray:
    """A column of a table of any library, as float64."""
    values = data[name]
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values, dtype=np.float64)
