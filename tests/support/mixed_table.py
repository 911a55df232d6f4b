"""A synthetic table with columns of every kind, in every dataframe library, and its public facts."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from shoal import Schema

LIBRARIES = ("pandas", "polars", "pyarrow")
METHODS = ("laplace", "mdav-dp", "ranking-dp", "insensitive-dp", "tree-dp")

JOB = "<b>job</b>, main"
AMOUNT = "2nd: a=b, c"
LEVELS = ("low", "middle", "high")
JOBS: Mapping[str, Any] = {
    "work": {"office": ["clerk", "manager"], "outdoors": ["farmer", "fisher"], "none": []}
}
VALUES_OF_JOB = ("clerk", "manager", "farmer", "fisher", "none")
CODES = (11, 12, 21, 22)
# black is a colour that nobody has
COLOURS = ("red", "green", "blue", "black")
FIRST_DAY = datetime.date(1950, 1, 1)
NAMES = ("age", AMOUNT, "level", "born", "smokes", JOB, "code", "colour", "planet")
NOMINAL = ("smokes", JOB, "code", "colour", "planet")
DOMAINS: Mapping[str, Sequence[Any]] = {
    "level": LEVELS,
    "smokes": (False, True),
    JOB: VALUES_OF_JOB,
    "code": CODES,
    "colour": COLOURS,
    "planet": ("earth",),
}


def columns(
    n: int = 240, *, gaps: Sequence[str] = (), share: float = 0.2, seed: int = 3
) -> dict[str, list[Any]]:
    """Columns as Python values, None for the gaps: `share` of the rows of each column that is to have some."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[Any]] = {
        "age": rng.integers(18, 90, n).tolist(),
        AMOUNT: rng.uniform(0, 1000, n).tolist(),
        "level": [LEVELS[i] for i in rng.choice(3, n, p=[0.5, 0.3, 0.2])],
        "born": [FIRST_DAY + datetime.timedelta(days=int(day)) for day in rng.integers(0, 15_000, n)],
        "smokes": (rng.random(n) < 0.3).tolist(),
        JOB: [VALUES_OF_JOB[i] for i in rng.choice(5, n, p=[0.4, 0.1, 0.2, 0.1, 0.2])],
        "code": [CODES[i] for i in rng.integers(0, 4, n)],
        "colour": [COLOURS[i] for i in rng.choice(3, n, p=[0.6, 0.3, 0.1])],
        "planet": ["earth"] * n,
    }
    for name in gaps:
        for row in rng.choice(n, round(share * n), replace=False).tolist():
            found[name][row] = None
    return found


def schema(**changes: Mapping[str, Any]) -> Schema:
    """What is public; `changes` by the first word of a column's name."""
    entries: list[dict[str, Any]] = [
        {"name": "age", "lo": 0, "hi": 120},
        {"name": AMOUNT, "type": "decimal", "lo": 0, "hi": 1000},
        {"name": "level", "ordered": list(LEVELS)},
        {"name": "born", "kind": "date", "lo": "1950-01-01", "hi": "2000-12-31"},
        {"name": "smokes", "values": [False, True]},
        {"name": JOB, "taxonomy": JOBS},
        {"name": "code", "values": list(CODES)},
        {"name": "colour", "values": list(COLOURS)},
        {"name": "planet", "values": ["earth"]},
    ]
    words = {JOB: "job", AMOUNT: "amount"}
    return Schema.from_dict(
        {"attribute": [e | changes.get(words.get(e["name"], e["name"]), {}) for e in entries]}
    )


def table(data: Mapping[str, list[Any]], library: str) -> Any:
    """The table in a library, names in types that list what they can hold where the library has such types."""
    if library == "pandas":
        frame = pd.DataFrame(dict(data))
        if "colour" in frame:
            frame["colour"] = pd.Categorical(frame["colour"], COLOURS)
        if "born" in frame:
            frame["born"] = pd.to_datetime(frame["born"])
        if None in data.get("smokes", ()):
            frame["smokes"] = frame["smokes"].astype("boolean")
        return frame
    if library == "polars":
        types = {"colour": pl.Enum(COLOURS), JOB: pl.Categorical}
        return pl.DataFrame(
            dict(data), schema_overrides={name: t for name, t in types.items() if name in data}
        )
    made = pa.table(dict(data))
    if "colour" in data:
        place = made.column_names.index("colour")
        made = made.set_column(place, "colour", made["colour"].combine_chunks().dictionary_encode())
    return made


def released_types(library: str, gapped: Collection[str] = ()) -> dict[str, Any]:
    """The types of a release, which follow from what is declared: `gapped` columns have room for a gap."""
    found = types_of(table(columns(), library))
    if library == "pyarrow":
        # a dictionary is a way to store texts
        found["colour"] = pa.string()
    room = {"age": pd.Int64Dtype(), "code": pd.Int64Dtype(), "smokes": pd.BooleanDtype()}
    return found | ({name: room[name] for name in room if name in gapped} if library == "pandas" else {})


def types_of(frame: Any) -> dict[str, Any]:
    if isinstance(frame, pa.Table):
        return dict(zip(frame.schema.names, frame.schema.types, strict=True))
    return dict(frame.dtypes) if isinstance(frame, pd.DataFrame) else dict(frame.schema)


def values_of(frame: Any, name: str) -> list[Any]:
    """A column of any library as Python values, None where one is missing."""
    if isinstance(frame, pd.DataFrame):
        return [None if pd.isna(value) else value for value in frame[name].tolist()]
    return frame[name].to_list() if isinstance(frame, pl.DataFrame) else frame[name].to_pylist()


def settings(method: str, **more: Any) -> dict[str, Any]:
    """Arguments of `protect` that fit the table's size."""
    sizes = {"mdav-dp": 5, "ranking-dp": 10, "insensitive-dp": 60}
    return (
        {"method": method, "epsilon": 2, "seed": 1} | ({"k": sizes[method]} if method in sizes else {}) | more
    )
