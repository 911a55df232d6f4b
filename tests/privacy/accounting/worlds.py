"""Random tiny worlds: a table, a neighbouring table, declarations and settings for a preset and a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import shoal
import shoal.release.protection
from shoal.errors import ShoalError
from shoal.io import read
from shoal.mechanisms import divided
from shoal.mechanisms.method import Method
from shoal.mechanisms.pairs import mechanism as pairs
from shoal.mechanisms.registry import method_class, parameters
from shoal.mechanisms.tree import mechanism as tree
from shoal.noise import Source
from shoal.progress import silent
from shoal.release.protection import Preparation, carry_out, finished, prepare

Random = np.random.Generator
Methods = type[Method]
SETTINGS = parameters()
MOST_ROWS = 8
DAYS = pd.date_range("2000-02-25", "2000-03-04")
JOBS = {"work": {"office": ["clerk", "manager"], "outdoors": ["farmer", "fisher", "sailor"], "none": []}}


@dataclass(frozen=True)
class Column:
    """A kind of column: what is declared about it, its values with the first and last of the domain first, its type."""

    declared: Mapping[str, Any]
    values: Sequence[Any]
    dtype: str
    outside: Sequence[Any] = ()

    @property
    def kind(self) -> str:
        return str(self.declared["kind"])

    def fits(self, method: Methods) -> bool:
        """Whether a method takes such a column; places for missing numbers are for a few."""
        flagged = self.kind != "nominal" and self.declared.get("missing") == "category"
        return self.kind in method.kinds and (not flagged or method.example().stage.flags)


COLUMNS: Mapping[str, Column] = {
    "whole": Column({"kind": "numeric", "lo": 0, "hi": 10}, [0, 10, *range(1, 10)], "int64", [-3, 14]),
    "half": Column(
        {"kind": "numeric", "lo": -1, "hi": 4, "step": 0.5}, [-1.0, 4.0, 0.5, 3.5, 1.0, 2.0], "float64", [5.5]
    ),
    "wide": Column({"kind": "numeric", "lo": 0, "hi": 1000}, [0, 1000, 1, 3, 500, 501, 998], "int64", [1001]),
    "fine": Column(
        {"kind": "numeric", "lo": 0, "hi": 10**9, "step": 0.000001}, [0.0, 1e9, 0.25, 5e8], "float64", [-1.0]
    ),
    "level": Column(
        {"kind": "ordinal", "ordered": ["low", "middle", "high"]}, ["low", "high", "middle"], "object"
    ),
    "day": Column(
        {"kind": "date", "lo": "2000-02-25", "hi": "2000-03-04"},
        [DAYS[0], DAYS[-1], *DAYS[1:-1]],
        "datetime64[us]",
    ),
    "truth": Column({"kind": "nominal"}, [False, True], "bool"),
    "colour": Column(
        {"kind": "nominal", "values": ["red", "green", "blue", "black"]},
        ["red", "black", "green", "blue"],
        "object",
    ),
    "job": Column(
        {"kind": "nominal", "taxonomy": JOBS},
        ["clerk", "none", "manager", "farmer", "fisher", "sailor"],
        "object",
    ),
    "gappy": Column(
        {"kind": "nominal", "values": ["yes", "no", "perhaps"], "missing": "category"},
        ["yes", None, "no", "perhaps"],
        "object",
    ),
    "only": Column({"kind": "nominal", "values": ["earth"]}, ["earth"], "object"),
    # what is missing is a place of its own, in columns of which another value says something
    "answer": Column(
        {"kind": "numeric", "lo": 0, "hi": 10, "step": 1, "missing": "category"},
        [None, 10, 0, *range(1, 10)],
        "Int64",
        [-3, 14],
    ),
    "broad": Column(
        {"kind": "numeric", "lo": 0, "hi": 1000, "step": 1, "missing": "category"},
        [0.0, None, 1000.0, 1.0, 500.0, 998.0],
        "float64",
    ),
    "grade": Column(
        {"kind": "ordinal", "ordered": ["low", "high"], "missing": "category"},
        ["low", None, "high"],
        "object",
    ),
    "since": Column(
        {"kind": "date", "lo": "2000-02-25", "hi": "2000-03-04", "missing": "category"},
        [None, DAYS[-1], DAYS[0], *DAYS[1:-1]],
        "datetime64[us]",
    ),
}


# largest standard deviation of the noise on a number of rows
FEW = 1_000


@dataclass(frozen=True)
class World:
    """A preset with settings, and two neighbouring tables of which the same is declared."""

    method: str
    settings: Mapping[str, Any]
    schema: shoal.Schema
    table: pd.DataFrame
    neighbour: pd.DataFrame
    _known: dict[int, Preparation] = field(default_factory=dict, repr=False, compare=False)

    def prepared(self, table: pd.DataFrame) -> Preparation:
        """Everything up to the moment when the budget is spent; worked out once for either table."""
        assert table is self.table or table is self.neighbour
        if id(table) not in self._known:
            # every row of a release is compared: millions of them, from noise on their number, would fill the memory
            with (
                mock.patch.object(pairs, "_MOST_ROWS_NOISE", FEW),
                mock.patch.object(tree, "_MOST_ROWS_NOISE", FEW),
                mock.patch.object(divided, "MOST_NOISE", FEW),
            ):
                self._known[id(table)] = prepare(read(table), self.schema, self.method, **self.settings)
        return self._known[id(table)]

    def protect(self, table: pd.DataFrame) -> shoal.Release:
        return carry_out(self.prepared(table))

    def releases(self) -> Callable[[pd.DataFrame], shoal.Release]:
        """The same as `protect`, again and again: what is public is settled once for either table."""
        return lambda table: self.carried_out(
            self.prepared(table), shoal.release.protection.noise_source(None)
        )

    def carried_out(self, prepared: Preparation, source: Source) -> shoal.Release:
        """The budget spent, with these draws: all that is reserved."""
        method, account = prepared.method, prepared.method.account(prepared.plan, source)
        rebuilt = method.run(prepared.described, prepared.plan, account, silent, prepared.labels)
        # what pairs-dp leaves, where it is not worth measuring, tests/mechanisms/pairs/test_pairs_account.py counts
        assert prepared.method.name == "pairs-dp" or account.unspent() == {}, self
        return finished(replace(prepared, source=source), rebuilt, account)

    def __str__(self) -> str:
        return (
            f"{self.method} {dict(self.settings)}\n{self.schema}\n{self.table.to_dict('list')}\n"
            f"{self.neighbour.to_dict('list')}"
        )


def world(preset: str, seed: int, *, one_column: bool = False, tree: bool = False) -> World | None:
    """A world of this preset; None where the settings drawn do not fit together.

    Args:
        one_column: the neighbour differs in one column only.
        tree: an xm method with partition=tree.
    """
    random = np.random.default_rng([seed, *preset.encode()])
    method = method_class(preset)
    n = int(random.integers(1, MOST_ROWS + 1))
    known = [name for name, column in COLUMNS.items() if column.fits(method)]
    count = min(int(random.integers(1, 4)), len(known))
    names = [str(name) for name in random.choice(known, count, replace=False)]
    settings = options(method, random, n, names)
    if settings.get("partition", "") == "tree" or tree:
        # a method of its own, under another name
        settings = {"partition": "tree", **options(method_class("tree-dp"), random, n, names)}
    rows = int(random.integers(2, 4)) if random.random() < 0.2 else 0
    if random.random() < 0.3:
        settings["outside"] = "clip"
    if random.random() < 0.15:
        # claims that need to know nothing about them can leave gaps as they are
        settings["missing"] = str(random.choice(["separate", "drop", "category"]))
    if "partition" in method.parameters() and "given" in stages(method) and random.random() < 0.1:
        settings.pop("partition", None)
        settings["labels"] = random.integers(0, 2, n).tolist()
    table = pd.DataFrame({name: _drawn(name, random, n, settings) for name in names})
    if rows:
        # a person has at most so many rows: neighbours differ in all rows of one of them
        table["person"] = np.arange(n) // int(random.integers(1, rows + 1))
    found = World(preset, settings, _schema(names, random, rows), table, table)
    try:
        found.prepared(table)
        found = replace(found, neighbour=_neighbour(found, random, one_column))
        found.prepared(found.neighbour)
    except ShoalError:
        return None
    return found


def _schema(names: Sequence[str], random: Random, rows: int) -> shoal.Schema:
    entries: list[dict[str, Any]] = [{"name": name, **COLUMNS[name].declared} for name in names]
    for place, entry in enumerate(entries):
        # what an intruder may know and what is confidential: methods about groups need some of each
        entry["role"] = ("quasi-identifier", "confidential")[(place + int(random.integers(2))) % 2]
    if rows:
        entries.append({"name": "person", "role": "unit", "max_rows": rows})
    return shoal.Schema.from_dict({"attribute": entries})


def _value(name: str, random: Random, settings: Mapping[str, Any]) -> Any:
    column = COLUMNS[name]
    if column.outside and settings.get("outside") == "clip" and random.random() < 0.2:
        return column.outside[int(random.integers(len(column.outside)))]
    if "missing" in settings and column.dtype not in ("int64", "bool") and random.random() < 0.2:
        return None
    # half of the values lie at the ends of the domain, where most is at stake
    most = min(2, len(column.values)) if random.random() < 0.5 else len(column.values)
    return column.values[int(random.integers(most))]


def _drawn(name: str, random: Random, n: int, settings: Mapping[str, Any]) -> pd.Series[Any]:
    return pd.Series([_value(name, random, settings) for _ in range(n)], dtype=COLUMNS[name].dtype)


def _neighbour(found: World, random: Random, one_column: bool) -> pd.DataFrame:
    table = found.table
    names = [name for name in table if name != "person"]
    if "person" in table:
        rows = np.flatnonzero(table["person"] == random.choice(table["person"])).tolist()
    else:
        rows = [int(random.integers(len(table)))]
    changed = table.copy()
    if found.settings.get("neighbours", method_class(found.method).adjacency) == "add-remove":
        # adding is the same pair the other way round
        return changed.drop(index=rows).reset_index(drop=True)
    if one_column:
        names = [str(random.choice(names))]
    if found.settings.get("membership") == "public":
        names = [name for name in names if name not in found.settings.get("strata", ())]
    for name in names:
        values = changed[name].tolist()
        for row in rows:
            values[row] = _value(name, random, found.settings)
        changed[name] = pd.Series(values, dtype=COLUMNS[name].dtype)
    return changed


def stages(method: Methods) -> tuple[str, ...]:
    """The partition stages that a method can be told to use."""
    found: tuple[str, ...] = getattr(method, "partitions", ())
    return found


def options(method: Methods, random: Random, n: int, names: Sequence[str]) -> dict[str, Any]:
    """Settings of a preset: every option that it takes is left out or drawn; one that is unknown here is an error."""
    found: dict[str, Any] = {}
    for option in method.parameters():
        draw = _DRAWS.get(option) or _choice(option)
        if (
            option == "epsilon"
            or option == "k"
            or random.random() < (0.8 if option in ("cuts", "link") else 0.35)
        ):
            found[option] = draw(method, random, n, names)
    if found.get("noise", "laplace") != "laplace" and random.random() < 0.5:
        found["optimise"] = str(random.choice(list(SETTINGS["optimise"].choices)))
    if "depth" in found and "cuts" in found:
        found["depth"] = int(random.integers(0, found["cuts"] * len(names) + 1))
    if "rows" in found and random.random() < 0.8:
        found["neighbours"] = "add-remove"
    return {option: value for option, value in found.items() if value is not None}


Draw = Callable[[Methods, Random, int, Sequence[str]], Any]


def _choice(option: str) -> Draw:
    choices = list(SETTINGS[option].choices)
    return lambda method, random, n, names: str(random.choice(choices))


def _weights(random: Random, names: Sequence[str]) -> dict[str, float]:
    return {name: float(random.integers(1, 5)) for name in names}


def _size(method: Methods, random: Random, n: int, names: Sequence[str]) -> int | None:
    if method.k is None and random.random() < 0.3:
        return None
    least = 3 if getattr(method, "sensitivity", "") == "cluster" else getattr(method, "moments", 0) + 1
    return int(random.integers(least, max(n // 2, least) + 1))


def _split(method: Methods, random: Random, n: int, names: Sequence[str]) -> Any:
    split = str(random.choice([*SETTINGS["split"].choices, "weights"]))
    return _weights(random, names) if split == "weights" else split


def _groups(method: Methods, random: Random, n: int, names: Sequence[str]) -> list[list[str]]:
    cut = int(random.integers(1, len(names) + 1))
    return [list(part) for part in (names[:cut], names[cut:]) if part]


def _partition(method: Methods, random: Random, n: int, names: Sequence[str]) -> str:
    return str(random.choice([name for name in (*stages(method), "tree") if name != "given"]))


def _shares(method: Methods, random: Random, n: int, names: Sequence[str]) -> dict[str, float]:
    return _weights(random, ("cuts", "intervals", "leaves", "means"))


def _matrix(method: Methods, random: Random, n: int, names: Sequence[str]) -> Any:
    """A matrix for a column of two values or of three, one for each stratum if that column is one."""
    rows = {"truth": [["0.9", "0.1"], ["1/3", "2/3"]], "grade": [["0.8", "0.1", "0.1"]] * 3}
    return {name: own for name, own in rows.items() if name in names} or None


_SWITCH: Draw = lambda method, random, n, names: bool(random.random() < 0.5)  # noqa: E731
_DRAWS: Mapping[str, Draw] = {
    "epsilon": lambda method, random, n, names: str(random.choice(["0.000001", "0.1", "1", "2.5", "20"])),
    "delta": lambda method, random, n, names: "0.000001",
    "k": _size,
    "split": _split,
    "groups": _groups,
    "partition": _partition,
    "gamma": lambda method, random, n, names: 0.5,
    "link": _SWITCH,
    "generalise": _SWITCH,
    "clip": _SWITCH,
    "triples": _SWITCH,
    # it follows the noise
    "optimise": lambda method, random, n, names: None,
    "floor": lambda method, random, n, names: 0.5,
    "weights": lambda method, random, n, names: random.integers(
        1, 5, getattr(method, "moments", 0) + 1
    ).tolist(),
    "cuts": lambda method, random, n, names: int(random.integers(0, 4)),
    "depth": lambda method, random, n, names: int(random.integers(0, 3)),
    "shares": _shares,
    "rows": lambda method, random, n, names: int(random.integers(1, 12)),
    "target": lambda method, random, n, names: str(random.choice(names)),
    "sizes": lambda method, random, n, names: {names[0]: int(random.integers(1, n + 1))},
    "l": lambda method, random, n, names: int(random.integers(1, 3)),
    "t_emd": lambda method, random, n, names: float(random.random()),
    "t": lambda method, random, n, names: int(random.integers(1, 4)),
    "strata": lambda method, random, n, names: [str(random.choice(names))],
    "keep": lambda method, random, n, names: str(random.choice(["0.1", "0.5", "0.999"])),
    "matrix": _matrix,
    "stratum": lambda method, random, n, names: str(random.choice(names)),
    # read from the records, so there is no claim
    "invariant": lambda method, random, n, names: None,
    # of units with several rows, in tests/mechanisms/test_units.py
    "unit_columns": lambda method, random, n, names: None,
    "unit_order": lambda method, random, n, names: None,
    "bands": lambda method, random, n, names: int(random.integers(1, 12)),
    "risk": lambda method, random, n, names: str(random.choice(["0.2", "0.5", "1"])),
    "combinations": lambda method, random, n, names: {str(random.choice(names)): int(random.integers(1, 4))},
    "importance": lambda method, random, n, names: _weights(random, names[:1]),
    "alpha": lambda method, random, n, names: str(random.choice(["0", "0.5", "1"])),
}
_CHOSEN = {name for name, setting in SETTINGS.items() if setting.choices}
assert set(_DRAWS) | _CHOSEN >= set(SETTINGS), "a new option needs a way to draw it"
