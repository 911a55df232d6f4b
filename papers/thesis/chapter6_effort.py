"""The effort for chapter 6: settings and numbers of runs, quick or full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Settings and runs.

    Attributes:
        table_runs: runs on Census at the k of the tables; `figure_runs` at the others.
        adult_runs: the same on Adult, with `adult_figure_runs`.
        replaced: the records of Census that are replaced to see what changes.
        into: how many corners of the domain each of them is replaced by.
    """

    table_runs: int
    figure_runs: int
    figure_ks: Sequence[int]
    adult_runs: int
    adult_figure_runs: int
    adult_ks: Sequence[int]
    replaced: Sequence[int]
    into: int
    strict_runs: int
    strict_ks: Sequence[int]


FULL = Effort(
    table_runs=200,
    figure_runs=10,
    figure_ks=range(1, 101),
    adult_runs=10,
    adult_figure_runs=2,
    adult_ks=(1, 2, *range(5, 101, 5)),
    replaced=range(1080),
    into=16,
    strict_runs=40,
    strict_ks=(5, 34, 68, 135, 270, 540, 1080),
)
QUICK = Effort(
    table_runs=20,
    figure_runs=3,
    figure_ks=(1, 2, 5, 10, 15, 19, 20, 25, 30, 50, 75, 100),
    adult_runs=2,
    adult_figure_runs=2,
    adult_ks=(1, 30, 100),
    replaced=range(0, 1080, 90),
    into=4,
    strict_runs=4,
    strict_ks=(5, 34, 270),
)
