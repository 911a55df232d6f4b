"""Compare a release of one table by one method on two engines: tables and statements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import shoal
from benchmarks.engines import DOMAINS, make_table
from tests.conftest import amount, data_file

ROOT = Path(__file__).parents[2]
# every method that the engines have, by what it is told besides ε and the table
METHODS: dict[str, dict[str, Any]] = {
    "laplace": {},
    "pram": {},
    "ranking-dp": {"k": 50},
    "optimal-dp": {"k": 40},
    "tree-dp": {},
    "pairs-dp": {},
    "idp-ls": {},
    "idp-cbls": {"k": 5, "floor": "0.001"},
    "swap-ranking": {"epsilon": None, "k": 20},
    **{f"xm-{number}": {"k": 50} for number in range(20, 27)},
}


@dataclass(frozen=True)
class Subject:
    """A table as a Parquet file, and what is declared about it."""

    data: Path
    asked: dict[str, Any]
    confidential: shoal.Schema

    def for_method(self, method: str) -> dict[str, Any]:
        own = BOUNDED[method] if self.data.name == "stays.parquet" else METHODS[method]
        asked = {"method": method, "epsilon": 2, "seed": 11, **self.asked, **own}
        if method == "swap-ranking":
            asked = {**asked, "schema": self.confidential}
        if method.startswith("xm-") and "schema" in asked:
            # moments are for numbers
            asked["columns"] = ["age", "education_num", "hours_per_week"]
        return asked


def census(folder: Path) -> Subject:
    names = ["AGI", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC", "INTVAL"]
    table = csv.read_csv(data_file("census.csv")).select(names)
    parquet.write_table(table, folder / "census.parquet", row_group_size=300)
    ends = {name: (int(table[name].to_numpy().min()), int(table[name].to_numpy().max())) for name in names}
    roles = {name: "confidential" if place else "quasi-identifier" for place, name in enumerate(names)}
    attributes = [{"name": n, "role": roles[n], "lo": ends[n][0], "hi": ends[n][1]} for n in names]
    return Subject(
        folder / "census.parquet", {"domains": ends}, shoal.Schema.from_dict({"attribute": attributes})
    )


def adult(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    """All kinds of columns, with gaps; the survey weight is not released."""
    path = data_file("adult.csv")
    parquet.write_table(csv.read_csv(path), folder / "adult.parquet", row_group_size=10_000)
    schema = shoal.Schema.load(ROOT / "examples" / "adult.toml")
    raw = schema.to_dict()
    # a weight is looked at beside swapped columns, which no engine does
    kept = [{**one, "role": "confidential"} for one in raw["attribute"] if one["name"] != "fnlwgt"]
    swapped = shoal.Schema.from_dict({**raw, "attribute": kept})
    return Subject(folder / "adult.parquet", {"schema": schema}, swapped)


def several_groups(folder: Path) -> Subject:
    """Four columns in row groups that are batches on every engine: three of them, or a million rows in eight."""
    make_table(folder / "groups.parquet", amount(300_000, 1_000_000))
    attributes = [
        {"name": name, "role": "confidential", "lo": lo, "hi": hi} for name, (lo, hi) in DOMAINS.items()
    ]
    return Subject(
        folder / "groups.parquet", {"domains": DOMAINS}, shoal.Schema.from_dict({"attribute": attributes})
    )


# methods whose draws are of their own in every batch
OF_BATCHES = ("laplace", "pram")
# the methods whose claim takes a bound on the rows of each unit
BOUNDED: dict[str, dict[str, Any]] = {"tree-dp": {"neighbours": "add-remove"}, "pairs-dp": {}}


def stays(folder: Path, n: int = 6_000, row_group_size: int = 500) -> Subject:
    """Stays of patients, up to 30 each, spread over all parts; some rows of a patient are alike, some are dropped."""
    random = np.random.default_rng(3)
    who = random.permutation(np.repeat(np.arange(n // 3), np.minimum(random.geometric(0.3, n // 3), 30))[:n])
    days = random.integers(0, 4, who.size).astype(float)
    days[random.random(who.size) < 0.05] = np.nan
    table = pa.table(
        {
            "who": pa.array([f"p{one}" for one in who]),
            "days": pa.array(days, from_pandas=True),
            "cost": pa.array(np.round(random.random(who.size) * 9, 2)),
            "ward": pa.array(random.choice(["north", "south"], who.size)),
            "told": pa.array(random.integers(0, 3, who.size)),
        }
    )
    parquet.write_table(table, folder / "stays.parquet", row_group_size=row_group_size)
    columns = [
        {"name": "who", "kind": "nominal", "role": "unit", "type": "text", "bound": {"rows": 3}},
        {"name": "days", "lo": 0, "hi": 5, "missing": "drop"},
        {"name": "cost", "lo": 0, "hi": 10, "decimals": 2},
        {"name": "ward", "kind": "nominal", "values": ["north", "south"], "type": "text"},
        # not released, and part of what orders the rows
        {"name": "told", "kind": "nominal", "role": "identifier", "type": "integer"},
    ]
    schema = shoal.Schema.from_dict({"attribute": columns})
    return Subject(folder / "stays.parquet", {"schema": schema, "outside": "clip"}, schema)


def in_order(table: pa.Table) -> pa.Table:
    """Rows sorted by everything."""
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def released(subject: Subject, method: str, out: Path, engine: Any) -> tuple[pa.Table, Any]:
    made = shoal.publish(subject.data, out=out, engine=engine, **subject.for_method(method))
    place = out / ("data" if engine == "spark" else "data.parquet")
    return in_order(parquet.read_table(place)), made.release


def check_equal(subject: Subject, method: str, engine: str, folder: Path) -> None:
    """The rows, types and statement of a release in memory, except of methods whose draws follow the batches."""
    there, made = released(subject, method, folder / f"{method} {engine}", engine)
    here, expected = released(subject, method, folder / f"{method} memory", "memory")
    assert made.statement.to_dict() == expected.statement.to_dict()
    assert made.internal["values_clipped"] == expected.internal["values_clipped"]
    assert made.internal["rows_released"] == expected.internal["rows_released"]
    # pairs-dp: the first block is compared with the measurements
    assert made.internal.get("rows_and_measurements") == expected.internal.get("rows_and_measurements")
    assert there.schema.remove_metadata().equals(here.schema.remove_metadata())
    if method not in OF_BATCHES:
        assert there.equals(here)
    elif engine == "spark":
        # the batches are those of the local engine
        assert there.equals(released(subject, method, folder / f"{method} of batches", "local")[0])
    else:
        assert there.num_rows == here.num_rows
        assert not there.equals(here)
