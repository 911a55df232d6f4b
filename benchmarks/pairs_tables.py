"""Additional tables for the ablation of pairs-dp, besides those of the utility benchmark.

Small tables, cut from real ones; skewed ones, for joint tails; columns of several shapes, with enough rows for
trees of three levels at ε = 1; and labels that only two columns together determine, for triples. Synthetic tables are
numbered: each number makes another table of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.utility_tables import FRESH, LABEL, NO, TASKS, YES, Domain, Numbers, Task, split

Floats = NDArray[np.float64]
Random = np.random.Generator


def lognormal(random: Random) -> Floats:
    """Two factors behind the logarithms of eight columns."""
    factors, weights = random.normal(size=(3_000, 2)), random.normal(size=(8, 2)) * 0.8
    return np.exp(factors @ weights.T + 0.6 * random.normal(size=(3_000, 8)) + 3)


def pareto(random: Random) -> Floats:
    """Six columns with power tails over a Gaussian copula: tails that hardly go together."""
    factors = random.normal(size=(6_000, 1))
    normal = 0.7 * factors + np.sqrt(0.51) * random.normal(size=(6_000, 6))
    ranks = normal.argsort(axis=0).argsort(axis=0)
    return 10 * ((1 - (ranks + 0.5) / len(ranks)) ** (-1 / random.uniform(2.2, 4, 6)) - 1)


def mixture(random: Random) -> Floats:
    """A few large firms among small ones: what is large in one column is large in most, in others not."""
    rows, columns = 2_000, 10
    large = random.random(rows) < 0.04
    scale = np.where(large[:, None], random.uniform(20, 60, columns) * (random.random(columns) < 0.7), 0) + 1
    size = np.exp(0.5 * random.normal(size=(rows, 1)))
    return 20 * scale * size * np.exp(0.5 * random.normal(size=(rows, columns)))


def parts(random: Random) -> Floats:
    """Totals and their parts, many of which are none at all."""
    rows = 4_000
    total = np.exp(random.normal(5, 1.3, rows))
    shares = random.dirichlet([0.6, 0.4, 0.3, 0.2], rows)
    cost = total * np.exp(0.2 * random.normal(size=rows)) / 3
    found = np.column_stack((total, total[:, None] * shares, cost, np.exp(random.normal(3, 1, rows))))
    found[:, 3:5] *= random.random((rows, 2)) < 0.6
    return found


def together(random: Random) -> Floats:
    """Student's t with 3 degrees of freedom: extremes of all columns come together, on both sides."""
    rows, columns = 5_000, 6
    weights = random.normal(size=(columns, 3)) * 0.7
    normal = random.normal(size=(rows, 3)) @ weights.T + 0.5 * random.normal(size=(rows, columns))
    return normal / np.sqrt(random.chisquare(3, (rows, 1)) / 3)


def mixed(random: Random) -> Floats:
    """Two heavy columns among four that are not."""
    normal = random.normal(size=(1_500, 3)) @ random.normal(size=(3, 6))
    normal += 0.5 * random.normal(size=(1_500, 6))
    return np.column_stack((np.exp(0.9 * normal[:, :2] + 4), normal[:, 2:]))


SKEWED: Mapping[str, Callable[[Random], Floats]] = {
    "Lognormal": lognormal,
    "Pareto": pareto,
    "Mixture": mixture,
    "Parts": parts,
    "Together": together,
    "Mixed": mixed,
}


def skewed(name: str, number: int) -> Task:
    """Domains are round numbers beyond the largest values; the label says whether the first is above its median."""
    values = SKEWED[name](np.random.default_rng([number, list(SKEWED).index(name)]))
    ends = [float(2 ** np.ceil(np.log2(np.abs(column).max()))) for column in values.T]
    ranges = [(0 if column.min() >= 0 else -end, end) for column, end in zip(values.T, ends, strict=True)]
    return _task(f"{name} {number}", values, ranges)


SHAPES: Mapping[str, Callable[[Floats, Random], Floats]] = {
    "Normal": lambda z, random: z * 12 + 50,
    "Skewed": lambda z, random: np.exp(0.8 * z + 1),
    "Zeros": lambda z, random: np.where(z < -0.2, 0, z * 20),
    "Humps": lambda z, random: z * 4 + np.where(random.random(z.shape) < 0.4, 25, 70),
    "Atoms": lambda z, random: np.array([0.0, 14, 32, 46, 90])[np.digitize(z, [-1, 0, 0.8, 1.6])],
}


def shaped(name: str, number: int, rows: int = 7_500, columns: int = 5) -> Task:
    """Two factors behind columns of one shape, from 0 to 100."""
    random = np.random.default_rng([number, list(SHAPES).index(name)])
    factors, weights = random.normal(size=(rows, 2)), random.normal(size=(2, columns)) * 0.8
    values = SHAPES[name](factors @ weights + 0.6 * random.normal(size=(rows, columns)), random)
    return _task(f"{name} {number}", np.clip(values, 0, 100), [(0, 100)] * columns)


# of how many rows in a hundred the label is wrong
EXCLUSIVE = {"Exclusive or": 10, "Weak exclusive or": 30}


def exclusive(name: str, number: int, rows: int = 6_000) -> Task:
    """Columns of two factors, and a label that says whether exactly one of two other columns is above its median."""
    random = np.random.default_rng([number, EXCLUSIVE[name]])
    factors = random.normal(size=(rows, 2)) @ random.normal(size=(2, 5))
    values = np.column_stack((factors + 0.6 * random.normal(size=(rows, 5)), random.normal(size=(rows, 2))))
    above = values[:, -2:] > np.median(values[:, -2:], axis=0)
    yes = above[:, 0] ^ above[:, 1] ^ (random.random(rows) < EXCLUSIVE[name] / 100)
    return _task(f"{name} {number}", np.clip(50 + 12 * values, 0, 100), [(0, 100)] * 7, yes)


def _task(
    name: str, values: Floats, ranges: list[tuple[float, float]], yes: NDArray[np.bool_] | None = None
) -> Task:
    domains: dict[str, Domain] = {f"v{place}": Numbers(*ends) for place, ends in enumerate(ranges)}
    if yes is None:
        yes = values[:, 0] > np.median(values[:, 0])
    table = pa.table(dict(zip(domains, values.T, strict=True)))
    table = table.append_column(LABEL, pa.array(np.where(yes, YES, NO)))
    return split(name, "above the median", {**domains, LABEL: (NO, YES)}, table)


def small(name: str, rows: int) -> Task:
    """The first rows of a table."""
    task = (TASKS | FRESH)[name]()
    return replace(task, name=f"{name}, {rows} rows", records=task.records.slice(0, rows))


# numbers by which nothing was chosen: 1 to 3 were looked at while joint tails were tried
NUMBER = 4
MORE: dict[str, Callable[[], Task]] = {
    **{f"{name} {NUMBER}": partial(skewed, name, NUMBER) for name in SKEWED},
    **{f"{name} {NUMBER}": partial(shaped, name, NUMBER) for name in SHAPES},
    **{f"{name} {NUMBER}": partial(exclusive, name, NUMBER) for name in EXCLUSIVE},
    **{
        f"{name}, {rows} rows": partial(small, name, rows)
        for name in ("Census", "Wine")
        for rows in (30, 100, 300)
    },
}
