"""Errors of cross-moment releases: a data set, a method, k and ε come in, log2 of the sum of squared errors leaves."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from shoal.io import read
from shoal.noise import Seeded
from shoal.presets import PRESETS
from shoal.release import prepare

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
Floats = NDArray[np.float64]


class Data(NamedTuple):
    """A projection of a file to its first columns, as the paper names it."""

    name: str
    file: str
    columns: tuple[str, ...]
    sizes: tuple[int, ...]


_CENSUS = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
_EIA = ("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES")
_CENSUS_SIZES = (50, 100, 150, 200, 250, 300, 350, 400, 500, 540)
_EIA_SIZES = (100, 200, 300, 400, 500, 600, 700, 850, 1000, 1200)
SETS: Mapping[str, Data] = {
    **{
        f"Census {number}": Data(f"Census {number}", "census.csv", _CENSUS[:number], _CENSUS_SIZES)
        for number in (2, 3, 4)
    },
    **{f"EIA {number}": Data(f"EIA {number}", "eia.csv", _EIA[:number], _EIA_SIZES) for number in (2, 3, 4)},
}


class Cell(NamedTuple):
    """One point of a figure."""

    data: str
    method: str
    k: int
    epsilon: float
    match: str = "rank"


@dataclass(frozen=True)
class Measured:
    """log2 SSE of several runs, seeds 0, 1, 2, ..., and the processor time they took."""

    values: tuple[float, ...]
    seconds: float

    @property
    def median(self) -> float:
        return float(np.median(self.values))


@lru_cache
def table(file: str) -> pa.Table:
    return csv.read_csv(DATA / file)


def errors(cell: Cell, runs: int) -> Measured:
    """Releases with the clusters made once, rows matched as the cell says."""
    started = time.process_time()
    data, method = SETS[cell.data], PRESETS[cell.method]
    options: dict[str, Any] = {} if cell.method.startswith("xm-b") else {"epsilon": cell.epsilon}
    if method.moments:
        options["match"] = cell.match
    ready = prepare(
        read(table(data.file)),
        method=cell.method,
        k=cell.k,
        columns=data.columns,
        domain_from_data=1.5,
        outside="clip",
        seed=0,
        **options,
    )
    run = ready.mechanism
    assert run.freeze is not None
    assert run.run_frozen is not None
    held = run.freeze(ready.method, ready.described, ready.plan, _silent, None)
    original = np.stack([table(data.file)[name].to_numpy() for name in data.columns], axis=1)
    found = []
    # without noise and without drawing, all runs are the same
    for seed in range(runs if options else 1):
        made = run.run_frozen(ready.method, ready.described, ready.plan, Seeded(seed), _silent, held)
        values = made.measured or made.values
        drawn = np.stack([values[name] for name in data.columns], axis=1)
        found.append(float(np.log2(((original - drawn) ** 2).sum())))
    return Measured(tuple(found), time.process_time() - started)


def plain_noise(data: str, epsilon: float, runs: int) -> float:
    """log2 of the mean SSE of Laplace noise on every value, not clipped."""
    columns = SETS[data].columns
    ready = prepare(
        read(table(SETS[data].file)),
        method="laplace",
        epsilon=epsilon,
        columns=columns,
        domain_from_data=1.5,
        outside="clip",
        clip=False,
        seed=0,
    )
    original = np.stack([table(SETS[data].file)[name].to_numpy() for name in columns], axis=1)
    found = []
    for seed in range(runs):
        made = ready.mechanism.run(ready.method, ready.described, ready.plan, Seeded(seed), _silent, None)
        drawn = np.stack([made.values[name] for name in columns], axis=1)
        found.append(((original - drawn) ** 2).sum())
    return float(np.log2(np.mean(found)))


def measure(cells: Iterable[Cell], runs: int, workers: int, keep: Path | None = None) -> dict[Cell, Measured]:
    """All cells, in parallel; each once. What was measured goes to the file `keep`, and is not measured again."""
    wanted = list(dict.fromkeys(cells))
    found = _kept(keep, runs)
    missing = [cell for cell in wanted if cell not in found]
    with contextlib.ExitStack() as open_things:
        pool = open_things.enter_context(ProcessPoolExecutor(workers))
        file = None if keep is None else open_things.enter_context(keep.open("a", encoding="utf-8"))
        for cell, measured in zip(
            missing, pool.map(errors, missing, [runs] * len(missing), chunksize=2), strict=True
        ):
            found[cell] = measured
            if file is not None:
                file.write(json.dumps([runs, cell, measured.values, measured.seconds]) + "\n")
                file.flush()
    return {cell: found[cell] for cell in wanted}


def _kept(keep: Path | None, runs: int) -> dict[Cell, Measured]:
    if keep is None or not keep.exists():
        return {}
    lines = [json.loads(line) for line in keep.read_text("utf-8").splitlines()]
    return {
        Cell(*cell): Measured(tuple(values), seconds) for made, cell, values, seconds in lines if made == runs
    }


def overtakes(ks: Sequence[int], base: Sequence[float], other: Sequence[float]) -> float | None:
    """The k from which `other` stays below `base`, between grid points by straight lines; None if it never does.

    >>> overtakes([100, 200, 300], [5.0, 5.0, 5.0], [7.0, 6.0, 4.0])
    250.0
    """
    difference = np.array(other) - np.array(base)
    if difference[-1] >= 0:
        return None
    above = np.flatnonzero(difference >= 0)
    if not above.size:
        return float(ks[0])
    last = int(above[-1])
    share = difference[last] / (difference[last] - difference[last + 1])
    return float(ks[last] + share * (ks[last + 1] - ks[last]))


def _silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
