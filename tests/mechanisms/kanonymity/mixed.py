"""A synthetic table with a column of every kind, and its schema."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from shoal import Schema

TOWNS = ("Ahus", "Borg", "Corso", "Dorf", "Ede", "Fano")
TREE = {"*": {"north": ["Ahus"], "south": ["Borg", "Corso", "Dorf", "Ede", "Fano"]}}
GRADES = ("low", "fair", "high")
QUASI = ("age", "born", "grade", "town")
CONFIDENTIAL = ("income", "illness")


def mixed(n: int = 80, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pa.table(
        {
            "name": [f"P{i}" for i in range(n)],
            "age": age.astype(np.int16),
            "born": (np.datetime64("2020-01-01") - age * 365).astype("datetime64[D]"),
            "grade": rng.choice(GRADES, n),
            "town": rng.choice(TOWNS, n),
            "income": np.round(rng.lognormal(10, 1, n), 2),
            "illness": rng.choice(["none", "flu", "gout", "cold"], n, p=[0.55, 0.25, 0.1, 0.1]),
            "visits": rng.integers(0, 9, n),
        }
    )


def mixed_schema(**roles: str) -> Schema:
    """No domain is declared: the family needs none."""
    raw: list[dict[str, Any]] = [
        {"name": "name", "kind": "nominal", "role": "identifier"},
        {"name": "age", "role": "quasi-identifier"},
        {"name": "born", "kind": "date", "role": "quasi-identifier"},
        {"name": "grade", "kind": "ordinal", "role": "quasi-identifier", "ordered": list(GRADES)},
        {"name": "town", "kind": "nominal", "role": "quasi-identifier", "taxonomy": TREE},
        {"name": "income", "role": "confidential"},
        {"name": "illness", "kind": "nominal", "role": "confidential"},
        {"name": "visits", "role": "other"},
    ]
    schema = Schema.from_dict({"attribute": raw})
    return Schema(tuple(replace(a, role=roles.get(a.name, a.role)) for a in schema.attributes))  # type: ignore[arg-type]


def rows(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    """Rows over some columns, sorted as text."""
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True), key=str)
