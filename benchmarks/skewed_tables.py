"""Made-up tables of skewed columns, for joint tails: a name and a number come in, a task leaves.

Each number makes another table of its kind. Domains are round numbers beyond the largest values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.utility_tables import LABEL, NO, YES, Domain, Numbers, Task, split

Floats = NDArray[np.float64]


def lognormal(random: np.random.Generator) -> Floats:
    """Two factors behind the logarithms of eight columns."""
    factors, weights = random.normal(size=(3_000, 2)), random.normal(size=(8, 2)) * 0.8
    return np.exp(factors @ weights.T + 0.6 * random.normal(size=(3_000, 8)) + 3)


def pareto(random: np.random.Generator) -> Floats:
    """Six columns with power tails over a Gaussian copula: tails that hardly go together."""
    factors = random.normal(size=(6_000, 1))
    normal = 0.7 * factors + np.sqrt(0.51) * random.normal(size=(6_000, 6))
    ranks = normal.argsort(axis=0).argsort(axis=0)
    return 10 * ((1 - (ranks + 0.5) / len(ranks)) ** (-1 / random.uniform(2.2, 4, 6)) - 1)


def mixture(random: np.random.Generator) -> Floats:
    """A few large firms among small ones: what is large in one column is large in most, in others not."""
    rows, columns = 2_000, 10
    large = random.random(rows) < 0.04
    scale = np.where(large[:, None], random.uniform(20, 60, columns) * (random.random(columns) < 0.7), 0) + 1
    size = np.exp(0.5 * random.normal(size=(rows, 1)))
    return 20 * scale * size * np.exp(0.5 * random.normal(size=(rows, columns)))


def parts(random: np.random.Generator) -> Floats:
    """Totals and their parts, many of which are none at all."""
    rows = 4_000
    total = np.exp(random.normal(5, 1.3, rows))
    shares = random.dirichlet([0.6, 0.4, 0.3, 0.2], rows)
    cost = total * np.exp(0.2 * random.normal(size=rows)) / 3
    found = np.column_stack((total, total[:, None] * shares, cost, np.exp(random.normal(3, 1, rows))))
    found[:, 3:5] *= random.random((rows, 2)) < 0.6
    return found


def together(random: np.random.Generator) -> Floats:
    """Student's t with 3 degrees of freedom: extremes of all columns come together, on both sides."""
    rows, columns = 5_000, 6
    weights = random.normal(size=(columns, 3)) * 0.7
    normal = random.normal(size=(rows, 3)) @ weights.T + 0.5 * random.normal(size=(rows, columns))
    return normal / np.sqrt(random.chisquare(3, (rows, 1)) / 3)


def mixed(random: np.random.Generator) -> Floats:
    """Two heavy columns among four that are not."""
    normal = random.normal(size=(1_500, 3)) @ random.normal(size=(3, 6)) + 0.5 * random.normal(
        size=(1_500, 6)
    )
    return np.column_stack((np.exp(0.9 * normal[:, :2] + 4), normal[:, 2:]))


SKEWED: Mapping[str, Callable[[np.random.Generator], Floats]] = {
    "Lognormal": lognormal,
    "Pareto": pareto,
    "Mixture": mixture,
    "Parts": parts,
    "Together": together,
    "Mixed": mixed,
}


def skewed(name: str, number: int) -> Task:
    """A table of this kind; the label is whether the first column is above its median."""
    values = SKEWED[name](np.random.default_rng([number, list(SKEWED).index(name)]))
    domains: dict[str, Domain] = {}
    for place, column in enumerate(values.T):
        high = float(2 ** np.ceil(np.log2(np.abs(column).max())))
        domains[f"v{place}"] = Numbers(0 if column.min() >= 0 else -high, high)
    yes = values[:, 0] > np.median(values[:, 0])
    table = pa.table({name: column for name, column in zip(domains, values.T, strict=True)})
    table = table.append_column(LABEL, pa.array(np.where(yes, YES, NO)))
    return split(f"{name} {number}", "above the median", {**domains, LABEL: (NO, YES)}, table)
