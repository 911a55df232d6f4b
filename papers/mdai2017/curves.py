"""The error of every method on Census-4 over k, expected and measured in releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from papers.cluster_errors import Setting, expected, measured
from papers.desk import Desk
from papers.mdai2017.printed import CENSUS_4, SSE_FIGURES, Case

EPSILONS = (1, 2)
BASELINE_EPSILON = 10
_ALL_K = (2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125, 150, 175, 200, 250, 300)
_FEW_K = (2, 10, 25, 50, 100, 200, 300)

MDAV, IR_1, IR_2 = "MDAV+DP", "IR_MDAV+DP_1", "IR_MDAV+DP_2"
MDAV_OURS, IR_OURS = "MDAV+DP, optimal split", "IR_MDAV+DP, optimal split"
INSENSITIVE, PUBLISHED = "INS+DP", "INS+DP, one noise per row"
PLAIN_1, PLAIN_2 = "plain, equal", "plain, proportional"

# name on the page -> method and its split
PAPER_METHODS: Mapping[str, tuple[str, str]] = {
    MDAV: ("mdav-dp", "proportional"),
    IR_1: ("ranking-dp", "equal"),
    IR_2: ("ranking-dp", "proportional"),
}
OUR_SPLITS: Mapping[str, tuple[str, str]] = {
    MDAV_OURS: ("mdav-dp", "optimal"),
    IR_OURS: ("ranking-dp", "optimal"),
}
_OVER_K = {**PAPER_METHODS, **OUR_SPLITS}
_PLAIN: Mapping[str, tuple[str, str]] = {PLAIN_1: ("laplace", "equal"), PLAIN_2: ("laplace", "proportional")}

Point = Mapping[str, float]


def setting(file: Path, method: str, **options: Any) -> Setting:
    return Setting(file, CENSUS_4, method, tuple(options.items()))


def case_setting(file: Path, case: Case) -> Setting:
    method, split, epsilon, k = case
    return setting(file, method, epsilon=epsilon, k=k, split=split)


@dataclass(frozen=True)
class Curves:
    """Errors by method, ε and k.

    Attributes:
        points: expected `sse` and `sae`, and those of the clusters alone (`sse_alone`, `sae_alone`).
        published: SSE of the insensitive baseline with parallel composition, mean of releases, by k.
        plain: of noise on every value by itself, by name and ε.
    """

    ks: tuple[int, ...]
    points: Mapping[tuple[str, int, int], Point]
    published: Mapping[int, float]
    plain: Mapping[tuple[str, int], Point]

    def over_k(self, name: str, epsilon: int, what: str = "sse") -> list[float]:
        return [self.points[name, epsilon, k][what] for k in self.ks]

    def best(self, name: str, epsilon: int, what: str = "sse") -> tuple[int, float]:
        """The k with the least error, and the error."""
        k = min(self.ks, key=lambda k: self.points[name, epsilon, k][what])
        return k, self.points[name, epsilon, k][what]


def curves(desk: Desk) -> Curves:
    """Expectations in closed form for every method, ε and k; the baseline as published is drawn."""
    file, ks = desk.file("census.csv"), _FEW_K if desk.quick else _ALL_K
    runs = 3 if desk.quick else 20
    settings = {
        (name, epsilon, k): setting(file, method, epsilon=epsilon, k=k, split=split)
        for name, (method, split) in _OVER_K.items()
        for epsilon in EPSILONS
        for k in ks
    }
    for epsilon in (*EPSILONS, BASELINE_EPSILON):
        for k in ks:
            settings[INSENSITIVE, epsilon, k] = setting(file, "insensitive-dp", epsilon=epsilon, k=k)
    plain = {
        (name, epsilon): setting(file, method, epsilon=epsilon, split=split)
        for name, (method, split) in _PLAIN.items()
        for epsilon in EPSILONS
    }
    every = [*settings.values(), *plain.values()]
    found = desk.measure("errors over k", {one.key: partial(expected, one) for one in every})
    as_published = {
        k: setting(file, "insensitive-dp", epsilon=BASELINE_EPSILON, k=k, composition="parallel") for k in ks
    }
    drawn = desk.measure(
        "insensitive baseline",
        {f"{one.key} runs={runs}": partial(measured, one, runs) for one in as_published.values()},
    )
    return Curves(
        ks,
        {place: found[one.key] for place, one in settings.items()},
        {k: drawn[f"{one.key} runs={runs}"]["sse"] for k, one in as_published.items()},
        {place: found[one.key] for place, one in plain.items()},
    )


def figure_runs(quick: bool) -> int:
    return 30 if quick else 2000


def figure_expectations(desk: Desk) -> dict[Case, Point]:
    """Expected errors at the same points as `figure_releases`."""
    settings = {case: case_setting(desk.file("census.csv"), case) for case in SSE_FIGURES}
    found = desk.measure("expectations", {one.key: partial(expected, one) for one in settings.values()})
    return {case: found[one.key] for case, one in settings.items()}


def figure_releases(desk: Desk) -> dict[Case, Point]:
    """Errors of releases at every point for which the prototype has a number."""
    file, runs = desk.file("census.csv"), figure_runs(desk.quick)
    settings = {case: case_setting(file, case) for case in SSE_FIGURES}
    found = desk.measure(
        "releases", {f"{one.key} runs={runs}": partial(measured, one, runs) for one in settings.values()}
    )
    return {case: found[f"{one.key} runs={runs}"] for case, one in settings.items()}
