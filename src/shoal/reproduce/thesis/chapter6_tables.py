"""Printed figures beside measured ones: means over runs come in, lines of Markdown tables leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shoal.reproduce.plots import COLOURS, Curve, Panel, panels
from shoal.reproduce.thesis.chapter6_census import EPSILONS, Runs
from shoal.reproduce.thesis.chapter6_print import KS, RUNS, half_unit

# SSE and linkage of a setting
Both = tuple[Runs, Runs]
# k, SSE, linkage
Points = Sequence[tuple[int, float, float]]


@dataclass
class Tally:
    """How many printed figures were met."""

    near: int = 0
    far: int = 0

    def add(self, printed: str, value: float, error: float) -> None:
        """Met: within three standard errors, what rounding may hide aside."""
        if max(abs(float(printed) - value) - half_unit(printed), 0.0) <= 3 * error:
            self.near += 1
        else:
            self.far += 1

    def __str__(self) -> str:
        return f"{self.near} of {self.near + self.far}"


@dataclass
class Tallies:
    sse: Tally
    linkage: Tally


def spread(found: Runs) -> float:
    """Standard error of the difference between a mean of the thesis' ten runs and our own mean."""
    return math.hypot(found.error(RUNS), found.error())


def error_factor(base: Runs | float, of: Runs) -> tuple[float, float]:
    """SSE_f = √base/√SSE and its standard error."""
    start, doubt = (base.mean, spread(base) / base.mean) if isinstance(base, Runs) else (base, 0.0)
    value = math.sqrt(start / of.mean)
    return value, 0.5 * value * math.hypot(doubt, spread(of) / of.mean)


def cells(printed: str, value: float, digits: int = 3) -> str:
    """Printed, ours, difference."""
    before = float(printed)
    gap = f"{value / before - 1:+.1%}" if before else "n/a"
    return f"{printed} | {value:.{digits}g} | {gap}"


def heading(names: Iterable[str], groups: Iterable[str]) -> list[str]:
    compared = (column for group in groups for column in (f"{group} printed", "Shoal", "difference"))
    columns = [*names, *compared]
    return ["| " + " | ".join(columns) + " |", "|" + " ---: |" * len(columns)]


def against_mdav(
    table: Mapping[int, str],
    baseline: Callable[[int], tuple[float, float]],
    measured: Callable[[int, str], Both],
    tallies: Tallies | None = None,
) -> list[str]:
    """The form of Tables 6.1 and 6.3."""
    lines = heading(("k", "ε"), ("SSE_f", "RL_f", "Score"))
    for k, line in table.items():
        sse0, rl0 = baseline(k)
        printed = line.split()[2:]
        for number, epsilon in enumerate(EPSILONS):
            own = printed[3 * number : 3 * number + 3]
            entries = _factors(own, sse0, rl0, measured(k, epsilon), tallies)
            lines.append(f"| {k} | {epsilon} | {entries} |")
    return lines


def against_plain(
    table: Mapping[str, str], measured: Callable[[int, str], Both], tallies: Tallies | None = None
) -> list[str]:
    """The form of Tables 6.2 and 6.4."""
    lines = heading(("ε", "k"), ("SSE_f", "RL_f", "Score"))
    for epsilon, line in table.items():
        sse0, rl0 = measured(1, epsilon)
        printed = line.split()[2:]
        for number, k in enumerate(KS[1:]):
            own = printed[3 * number : 3 * number + 3]
            entries = _factors(own, sse0, rl0.mean, measured(k, epsilon), tallies)
            lines.append(f"| {epsilon} | {k} | {entries} |")
    return lines


def _factors(
    printed: Sequence[str], sse0: Runs | float, rl0: float, found: Both, tallies: Tallies | None
) -> str:
    sse, rl = found
    value, error = error_factor(sse0, sse)
    linked = rl0 / rl.mean if rl.mean else math.inf
    if tallies:
        tallies.sse.add(printed[0], value, error)
        if not isinstance(sse0, Runs):
            # the linkage that the printed factor stands for: its error is that of a mean, the factor's is not
            tallies.linkage.add(f"{rl0 / float(printed[1]):.4f}", rl.mean, spread(rl))
    return " | ".join(cells(p, v) for p, v in zip(printed, (value, linked, value * linked), strict=True))


def plain_lines(
    table: Mapping[str, str], measured: Callable[[int, str], Both], tallies: Tallies | None = None
) -> list[str]:
    """SSE and linkage without clusters, k = 1."""
    lines = heading(("ε",), ("SSE", "RL"))
    for epsilon, line in table.items():
        (sse, rl), printed = measured(1, epsilon), line.split()[:2]
        lines.append(f"| {epsilon} | {cells(printed[0], sse.mean)} | {cells(printed[1], rl.mean)} |")
        if tallies:
            tallies.sse.add(printed[0], sse.mean, spread(sse))
            tallies.linkage.add(printed[1], rl.mean, spread(rl))
    return lines


def picture(title: str, series: Mapping[str, Points]) -> str:
    """log10 of SSE and of linkage over k, one curve for each name."""
    shown = []
    for place, words in ((1, "log10 SSE"), (2, "log10 RL (percent)")):
        curves = []
        for number, (name, points) in enumerate(series.items()):
            some = [point for point in points if point[place] > 0]
            curves.append(
                Curve(
                    name,
                    [point[0] for point in some],
                    [math.log10(point[place]) for point in some],
                    COLOURS[number % len(EPSILONS)],
                    dashed=number >= len(EPSILONS),
                )
            )
        shown.append(Panel(words, curves))
    return panels(title, shown, common=False)


def series_lines(series: Mapping[str, Points], every: Sequence[int]) -> list[str]:
    """SSE and linkage of every curve at some k."""
    lines = ["| k | " + " | ".join(series) + " |", "| ---: |" + " ---: |" * len(series)]
    by_k = [{k: f"{sse:.3g}, {rl:.3g}" for k, sse, rl in points} for points in series.values()]
    return lines + [f"| {k} | {' | '.join(known.get(k, '') for known in by_k)} |" for k in every]
