"""Two tables: all methods compared once, and the cost of moments."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from papers.cross_moment.measure import SETS, Floats, matrix, numbered
from papers.desk import Desk, Task, read_table
from papers.study import Section
from papers.texts import wording
from shoal.io import read
from shoal.mechanisms.registry import names
from shoal.progress import silent
from shoal.release.protection import Preparation, prepare

heading = wording("cross_moment/texts")

_K, _EPSILON = 200, 2
_METHODS = tuple(name for name in names() if name.startswith("xm-"))
_TIMED = ("xm-2", "xm-3", "xm-8", "xm-14")
_COLUMNS, _ROWS, _QUICK_ROWS, _ROUNDS = 10, 100_000, 20_000, 3
_SHAPES: Mapping[str, str] = {
    "independent": "independent normal columns",
    "factors": "three common factors and a little noise, on which MDAV is at its fastest",
}


def tasks(desk: Desk) -> dict[str, Task]:
    """One release of Census 4 by every method."""
    file = desk.file(SETS["Census 4"].file)
    return {f"one release of Census 4, {name}": partial(one_release, file, name) for name in _METHODS}


def releases(found: Mapping[str, Any]) -> dict[str, tuple[float, float, str]]:
    """log2 SSE as drawn and with match=rank, and the claim, by method."""
    return {name: tuple(found[f"one release of Census 4, {name}"]) for name in _METHODS}


def methods_section(found: Mapping[str, Any]) -> Section:
    lines = ["| method | what it does | as drawn | rank | claim |", "| --- | --- | ---: | ---: | --- |"]
    for name, (drawn, rank, model) in releases(found).items():
        lines.append(f"| `{name}` | {numbered(name).about} | {drawn:.2f} | {rank:.2f} | {model} |")
    return Section(*heading("all-methods", len(_METHODS), _K, _EPSILON), more="\n".join(lines))


def one_release(file: Path, name: str) -> tuple[float, float, str]:
    """log2 SSE with rows as drawn and matched by rank, and the claim."""
    data = SETS["Census 4"]
    original = matrix(file, data.columns)
    found, model = [], ""
    for match in ("none", "rank"):
        options: dict[str, Any] = {} if name.startswith("xm-b") else {"epsilon": _EPSILON}
        if numbered(name).moments:
            options["match"] = match
        release = shoal.protect(
            read_table(file), method=name, k=_K, seed=0, columns=data.columns, domain_from_data=1.5, **options
        )
        rows = np.stack([release.aligned[column].to_numpy() for column in data.columns], axis=1)
        found.append(float(np.log2(((original - rows) ** 2).sum())))
        model = release.statement.model
    return found[0], found[1], model


def speed_section(desk: Desk) -> Section:
    rows = _QUICK_ROWS if desk.quick else _ROWS
    # one task, so that nothing of this study runs beside it
    key = f"speed of {rows} rows"
    found = desk.measure("speed", {key: partial(seconds, rows)})[key]
    lines = [
        "| data | method | order | partition (MDAV) | moments, noise, repair and rows | ratio |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for shape, name, partition, rest in found:
        order = numbered(name).moments
        lines.append(
            f"| {_SHAPES[shape]} | `{name}` | {order} | {partition:.2f} s | {rest:.2f} s | {rest / partition:.2f} |"
        )
    return Section(*heading("speed", rows, _COLUMNS, _ROUNDS), more="\n".join(lines))


def seconds(rows: int) -> list[tuple[str, str, float, float]]:
    """Data, method, and the least processor time of the partition and of everything after it."""
    found = []
    for shape in _SHAPES:
        values = _records(shape, rows)
        table = pa.table({f"c{place}": column for place, column in enumerate(values.T)})
        domain = (float(np.floor(values.min())), float(np.ceil(values.max())))
        alone = _prepared(table, domain, "xm-1")
        for name in _TIMED:
            ready = _prepared(table, domain, name)
            partition, whole = [], []
            for _ in range(_ROUNDS):
                partition.append(_partition(alone))
                whole.append(_whole(ready))
            found.append((shape, name, min(partition), min(whole) - min(partition)))
    return found


def _prepared(table: pa.Table, domain: tuple[float, float], name: str) -> Preparation:
    domains = dict.fromkeys(table.column_names, domain)
    return prepare(read(table), method=name, epsilon=1, k=100, seed=1, domains=domains)


def _partition(ready: Preparation) -> float:
    started = time.process_time()
    ready.method.freeze(ready.described, ready.plan, silent)
    return time.process_time() - started


def _whole(ready: Preparation) -> float:
    started = time.process_time()
    ready.method.run(ready.described, ready.plan, ready.account(), silent)
    return time.process_time() - started


def _records(shape: str, rows: int) -> Floats:
    rng = np.random.default_rng(1)
    if shape == "independent":
        return rng.normal(size=(rows, _COLUMNS))
    common = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, _COLUMNS))
    return np.asarray(common + 0.3 * rng.normal(size=(rows, _COLUMNS)))
