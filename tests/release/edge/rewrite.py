"""Rewrite the documents of a bundle from its data and its recipe, so that they cannot hold facts of the original.

python -m tests.release.edge.rewrite BUNDLE OUT
"""

from __future__ import annotations

import contextlib
import json
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from shoal.columns.attribute import Attribute
from shoal.io import Table, format_of, read, table_name
from shoal.io.cell_types import arrow_type
from shoal.mechanisms.pairs.mechanism import told
from shoal.mechanisms.pairs.method import PairsDP
from shoal.mechanisms.registry import load_recipe
from shoal.privacy import Measurements
from shoal.release.bundle import MEASUREMENTS, write_documents
from shoal.release.protection import prepare


def stand_in(attribute: Attribute, released: Table, rows: int) -> pa.Array:
    """A column that holds one public value all over; where none is declared, one that was released."""
    if attribute.role == "unit":
        return pa.array(range(rows))
    value: Any = None
    if attribute.ordered:
        value = attribute.ordered[0]
    elif attribute.tree is not None:
        value = attribute.tree.values[0]
    elif attribute.lo is not None:
        value = float(attribute.lo)
        if attribute.kind == "date":
            value = date(1970, 1, 1) + timedelta(days=int(value))
    elif attribute.name in released.names:
        value = next(v for v in released.series(attribute.name).to_list() if v is not None)
    else:
        value = 1.0 if attribute.kind == "numeric" else "a"
    if attribute.type == "boolean":
        value = str(value).lower() == "true"
    elif attribute.type == "integer":
        value = int(value)
    elif attribute.type == "text":
        value = str(value)
    column = pa.array([value] * rows)
    return column if attribute.type is None else column.cast(arrow_type(attribute.type))


def rewrite(bundle: Path, out: Path) -> None:
    recipe = load_recipe(bundle / "method.toml")
    schema = recipe["schema"]
    files = {name: path for path in bundle.iterdir() if (name := table_name(path)) is not None}
    released = read(files["data"], types=schema.types)
    tables = {name: read(path) for name, path in files.items() if name not in ("data", "statistics")}
    kind = format_of(files["data"]).name
    columns = {a.name: stand_in(a, released, released.n) for a in schema.attributes}
    untyped = set(columns) - set(schema.types)
    table = Table(nw.from_native(pa.table(columns), eager_only=True), kind, inferred=frozenset(untyped))
    labels = np.zeros(released.n, dtype=np.int64) if recipe.get("partition") == "given" else None
    prepared = prepare(table, **recipe, labels=labels)
    if isinstance(prepared.method, PairsDP):
        # it follows from the number of rows that were released, noisy or not
        prepared = prepared.drawn(told(prepared.method, prepared.described, released.n), released.n)
    numbers = bundle / MEASUREMENTS
    release = prepared.release(
        data=released.frame.to_native(),
        # public too: tests/release/edge/test_measurements.py
        measurements=Measurements.from_dict(json.loads(numbers.read_text("utf-8")))
        if numbers.is_file()
        else None,
        aligned=None,
        partitions=[],
        internal={},
        linked={name: found.frame.to_native() for name, found in tables.items()},
    )
    out.mkdir()
    with contextlib.ExitStack() as undo:
        write_documents(release, out, undo)


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), Path(sys.argv[2]))
