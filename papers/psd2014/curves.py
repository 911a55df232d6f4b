"""The error of individual ranking with noise on Adult over k, compared with plain noise and prior work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from papers.cluster_errors import Setting, complete_rows, expected, measured, noise_of_every_row
from papers.desk import Desk
from papers.psd2014.printed import ADULT_2, FIGURE

EPSILONS = ("0.1", "1", "10")
_ALL_K = (2, 3, 4, 5, 7, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100)
_FEW_K = (2, 5, 10, 25, 50, 100)
# prior work is followed further, to where it begins to pay
_PRIOR_K = (2, 5, 10, 25, 50, 75, 100, 150, 200, 300, 500, 1000)
SIZES = (300, 3000, 0)

Point = Mapping[str, float]


def logarithm(sse: float) -> float:
    """The paper's measure: log10 of the squared error, shared by the number of attributes."""
    return math.log10(sse / len(ADULT_2))


def setting(file: Path, method: str, rows: int = 0, **options: Any) -> Setting:
    return Setting(file, ADULT_2, method, tuple(options.items()), complete=True, rows=rows)


def ranked(file: Path, epsilon: str, k: int, **options: Any) -> Setting:
    """The paper's method, budget shared equally."""
    return setting(file, "ranking-dp", epsilon=epsilon, k=k, remainder="last", **options)


@dataclass(frozen=True)
class Curves:
    """Squared errors.

    Attributes:
        points: expected `sse`, and that of the groups alone (`sse_alone`), by ε and k.
        plain: noise on every value, by ε.
        prior: insensitive microaggregation, strict composition, by ε and k.
        by_size: (plain, ranking k = 10, smallest k for which prior work beats plain) at ε = 1, by number of rows.
        spread: what replacing all values by their mean loses.
        unclipped: (sse - sse_alone) of k over that of plain noise, both not clipped, at ε = 1, by k.
        every_row: expected error at ε = 1, k = 10 if every row had noise of its own.
    """

    ks: tuple[int, ...]
    points: Mapping[tuple[str, int], Point]
    plain: Mapping[str, float]
    prior: Mapping[tuple[str, int], float]
    by_size: Mapping[int, tuple[float, float, int | None]]
    spread: float
    unclipped: Mapping[int, float]
    every_row: float

    def over_k(self, epsilon: str, what: str = "sse") -> list[float]:
        return [self.points[epsilon, k][what] for k in self.ks]

    @property
    def prior_ks(self) -> list[int]:
        return sorted({k for _, k in self.prior})


def rows(file: Path) -> int:
    return int(complete_rows(file).num_rows)


def spread(file: Path) -> float:
    table = complete_rows(file)
    columns = [table[name].to_numpy() for name in ADULT_2]
    return float(sum(((column - column.mean()) ** 2).sum() for column in columns))


def curves(desk: Desk) -> Curves:
    """Expectations in closed form; nothing is drawn."""
    file, ks = desk.file("adult.csv"), _FEW_K if desk.quick else _ALL_K
    prior_ks = _PRIOR_K[::2] if desk.quick else _PRIOR_K
    points = {(epsilon, k): ranked(file, epsilon, k) for epsilon in EPSILONS for k in ks}
    plain = {epsilon: setting(file, "laplace", epsilon=epsilon) for epsilon in EPSILONS}
    prior = {
        (epsilon, k): setting(file, "insensitive-dp", epsilon=epsilon, k=k)
        for epsilon in EPSILONS
        for k in sorted({*prior_ks, *ks})
    }
    sized = {
        (size, method, k): setting(file, method, size, epsilon="1", **({"k": k} if k > 1 else {}))
        for size in SIZES
        for method, of_k in (("laplace", (1,)), ("ranking-dp", (10,)), ("insensitive-dp", prior_ks))
        for k in of_k
        if not size or k <= size // 2
    }
    free = {k: ranked(file, "1", k, clip=False) for k in (1, *ks)}
    every = [*points.values(), *plain.values(), *prior.values(), *sized.values(), *free.values()]
    found = desk.measure("errors over k", {one.key: partial(expected, one) for one in every})
    by_size = {}
    for size in SIZES:
        own = {
            (method, k): found[one.key]["sse"] for (rows_, method, k), one in sized.items() if rows_ == size
        }
        paying = [
            k for (method, k), sse in own.items() if method == "insensitive-dp" and sse < own["laplace", 1]
        ]
        by_size[size] = (own["laplace", 1], own["ranking-dp", 10], min(paying, default=None))
    noise = {k: found[one.key]["sse"] - found[one.key]["sse_alone"] for k, one in free.items()}
    one = ranked(file, "1", 10)
    redrawn = desk.measure("noise of every row", {f"every row {one.key}": partial(noise_of_every_row, one)})
    return Curves(
        ks,
        {place: found[one.key] for place, one in points.items()},
        {epsilon: found[one.key]["sse"] for epsilon, one in plain.items()},
        {place: found[one.key]["sse"] for place, one in prior.items()},
        by_size,
        spread(file),
        {k: noise[k] / noise[1] for k in ks},
        next(iter(redrawn.values())),
    )


def figure_runs(quick: bool) -> int:
    return 5 if quick else 60


def figure_releases(desk: Desk) -> dict[tuple[str, int], Point]:
    """Errors of releases at every point for which the prototype has a number."""
    file, runs = desk.file("adult.csv"), figure_runs(desk.quick)
    settings = {(epsilon, k): ranked(file, epsilon, k) for epsilon, k in FIGURE}
    found = desk.measure(
        "releases", {f"{one.key} runs={runs}": partial(measured, one, runs) for one in settings.values()}
    )
    return {place: found[f"{one.key} runs={runs}"] for place, one in settings.items()}
