"""Neighbouring tables that differ in every way a file can show: a fraction, a gap, a time, a rare value, a code."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyreadstat
from pyarrow import csv, parquet

from shoal import Schema

FORMATS = ("csv", "parquet", "dta", "sav")
LABELS = {1: "owner", 2: "tenant", 3: "lodger"}
DAYS = ("1990-01-31", "1991-02-28", "1992-03-31", "1993-04-30", "1994-05-31", "1995-06-30")

# what one record has, and what the one in its place has
_ALIKE: Mapping[str, tuple[Any, ...]] = {
    "age": (31, 45, 28, 60, 52),
    "rooms": (1.0, 4.0, 2.0, 3.0, 6.0),
    "moved": DAYS[:5],
    "level": ("low", "high", "low", "middle", "high"),
    "town": ("A", "B", "A", "B", "A"),
    "tenure": (1, 2, 1, 2, 1),
    "member": (True, False, True, True, False),
}
_USUAL: Mapping[str, Any] = {
    **{"age": 33, "rooms": 6.0, "moved": DAYS[5], "level": "low", "town": "A", "tenure": 1, "member": True}
}
_ODD: Mapping[str, Any] = {
    **{
        "age": 99,
        "rooms": 6.5,
        "moved": DAYS[0],
        "level": "middle",
        "town": None,
        "tenure": 4,
        "member": None,
    }
}
NAMES = tuple(_ALIKE)
NOMINAL = ("town", "tenure", "member")


def schema(*names: str, labelled: bool = True, gaps: bool = False) -> Schema:
    """What is declared, types included; codes have labels where a file has room for them."""
    codes = [*LABELS.values(), "4"] if labelled else ["1", "2", "3", "4"]
    entries: dict[str, dict[str, Any]] = {
        "age": {"type": "integer", "lo": 0, "hi": 120},
        "rooms": {"type": "decimal", "decimals": 1, "lo": 0, "hi": 20, "step": "0.5"},
        "moved": {"kind": "date", "type": "date", "lo": "1980-01-01", "hi": "2020-12-31"},
        "level": {"type": "text", "ordered": ["low", "middle", "high"]},
        "town": {"type": "text", "values": ["A", "B", "Capital"], "missing": "category"},
        "tenure": {"type": "text", "values": codes, "missing": "category"},
        "member": {"kind": "nominal", "type": "boolean", "values": ["False", "True"], "missing": "category"},
    }
    chosen = names or NAMES
    if gaps:
        # no gap occurs, or one in every column
        entries = {name: {**entry, "missing": "category"} for name, entry in entries.items()}
    facts = [{"name": name, "source": "questionnaire", **entries[name]} for name in chosen]
    return Schema.from_dict({"attribute": facts})


def columns(odd: bool, *, gaps: bool = False) -> dict[str, list[Any]]:
    last = (dict.fromkeys(_ODD) if gaps else _ODD) if odd else _USUAL
    return {name: [*values, last[name]] for name, values in _ALIKE.items()}


def write(path: Path, *, odd: bool, gaps: bool = False) -> Path:
    """The table as other programs write it, which shows what is in it wherever the format lets it."""
    found = columns(odd, gaps=gaps)
    if path.suffix == ".csv":
        # one cell with a time among days, one number with a fraction among whole ones
        if odd and not gaps:
            found["moved"] = [*found["moved"][:-1], f"{found['moved'][-1]} 10:30:00"]
        rooms = ["" if value is None else f"{value:g}" for value in found["rooms"]]
        table = pa.table(
            {**found, "rooms": rooms, "member": ["" if v is None else str(v) for v in found["member"]]}
        )
        csv.write_csv(table, path, csv.WriteOptions(quoting_style="needed"))
        return path
    if path.suffix == ".parquet":
        days = [None if day is None else date.fromisoformat(day) for day in found["moved"]]
        codes = [None if code is None else str(code) for code in found["tenure"]]
        table = pa.table({**found, "moved": days, "tenure": codes})
        note = {b"note": b"odd" if odd else b"usual"}
        fields = [field.with_metadata(note) for field in table.schema]
        parquet.write_table(table.cast(pa.schema(fields, metadata=note)), path)
        return path
    days = pd.to_datetime(pd.Series(found["moved"])).dt.date
    member = pd.array(found["member"], dtype="boolean").astype("Int32")
    frame = pd.DataFrame({**found, "moved": days, "member": member})
    labels = {"tenure": LABELS}
    if path.suffix == ".dta":
        pyreadstat.write_dta(frame, path, variable_value_labels=labels)
    else:
        pyreadstat.write_sav(frame, path, variable_value_labels=labels)
    return path
