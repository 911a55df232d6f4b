"""Figures of reports, drawn as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import KIND_FACTS, day_text
from shoal.display import internal
from shoal.evaluation import Interval, RiskLine
from shoal.io import Table
from shoal.privacy import domain_words
from shoal.report.differences import (
    MOST_KEPT,
    Axis,
    Change,
    ColumnRange,
    Comparison,
    Correlations,
    Grouped,
    PairTable,
    TwoWayTables,
    bin_edges,
    compare,
    correlate,
    grouped,
    pair_tables,
)
from shoal.report.findings import Subject

WIDTH = 360
_DAYS_OF_A_YEAR = 365.25
_LONGEST = 18


@internal()
@dataclass(frozen=True, slots=True)
class AxisScale:
    """Map values from `low` to `high` to coordinates from `start` to `end` of a drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.start + (self.end - self.start) * (value - self.low) / span


def place(value: float) -> str:
    """A coordinate, rounded to a tenth.

    >>> place(3.0), place(2.26)
    ('3', '2.3')
    """
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, *, anchor: str = "start", turn: int = 0, kind: str = "") -> str:
    turned = f' transform="rotate({turn} {place(x)} {place(y)})"' if turn else ""
    sort = f' class="{kind}"' if kind else ""
    return f'<text x="{place(x)}" y="{place(y)}" text-anchor="{anchor}"{sort}{turned}>{escape(words)}</text>'


def path(points: str, kind: str) -> str:
    return f'<path class="{kind}" d="{points}"/>'


def box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle as part of a path, so that many of one colour become one shape."""
    return f"M{place(x)} {place(y)}h{place(width)}v{place(height)}h{place(-width)}z"


def staircase(edges: Sequence[float], heights: Sequence[float], across: AxisScale, up: AxisScale) -> str:
    """The outline of a histogram."""
    steps = [f"M{place(across(edges[0]))} {place(up(0.0))}"]
    for left, height in zip(edges, heights, strict=False):
        steps.append(f"H{place(across(left))}V{place(up(height))}")
    return "".join([*steps, f"H{place(across(edges[-1]))}V{place(up(0.0))}"])


def drawing(parts: Iterable[str], height: float, alt: str, width: float = WIDTH, kind: str = "plot") -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {place(width)} {place(height)}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends.

    >>> ticks(0, 97), ticks(17, 90, 4), ticks(0, 0.13)
    ([0.0, 20.0, 40.0, 60.0, 80.0], [20.0, 40.0, 60.0, 80.0], [0.0, 0.05, 0.1])
    """
    span = high - low
    if not span > 0:
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def short_number(value: float) -> str:
    """A number for an axis.

    >>> short_number(20_000), short_number(2.5e6), short_number(0.25), short_number(-3)
    ('20k', '2.5M', '0.25', '-3')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def day_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Dates for an axis, as years where there are many of them."""
    years = (high - low) / _DAYS_OF_A_YEAR
    if years < 4:
        return [(low, day_text(round(low))), (high, day_text(round(high)))]
    first = int(day_text(round(low))[:4])
    return [
        (low + (year - first) * _DAYS_OF_A_YEAR, f"{year:g}")
        for year in ticks(first + 1, first + math.floor(years), 4)
    ]


def below(scale: AxisScale, marks: Iterable[tuple[float, str]], base: float) -> str:
    """Axis labels below a drawing."""
    return "".join(
        text(
            min(max(scale(value), scale.start + 3 * len(words)), scale.end - 2.6 * len(words)),
            base + 14,
            words,
            anchor="middle",
        )
        for value, words in marks
    )


def beside(scale: AxisScale, marks: Iterable[tuple[float, str]], left: float, right: float) -> str:
    """Axis labels beside a drawing, with a gridline for each."""
    return "".join(
        path(f"M{place(left)} {place(scale(value))}H{place(right)}", "grid")
        + text(left - 5, scale(value) + 4, words, anchor="end")
        for value, words in marks
    )


def percents(high: float, most: int = 4) -> list[tuple[float, str]]:
    """Percentages for an axis that begins at 0."""
    return [(value, f"{100 * value:.3g}%") for value in ticks(0.0, high, most)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with its caption.

    Attributes:
        svg: the drawing, safe to embed in a page; its label says what it shows.
        wide: it takes two columns of a gallery.
    """

    svg: str
    caption: str
    alt: str
    wide: bool = False


def short(text: str, longest: int = _LONGEST) -> str:
    """
    >>> short("a rather long name", 8)
    'a rathe…'
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


# numbers are written into the cells of a matrix up to this many columns
_READABLE = 8
# shades of a colour, as in the stylesheet; level 0 is an empty cell
_LEVELS = 8
_LETTERS = 14
_LABELS, _BASE_OF_RELATIONS, _EDGE = 96, 80, 6
_ROW_OF_RELATIONS, _BAR_OF_RELATIONS, _DOTS = 22, 3, 116
_HEIGHT = 190
_LEFT, _RIGHT, _TOP, _BASE = 40, WIDTH - 8, 8, _HEIGHT - 22
# a row of labels: its height, that of each bar, and where bars begin and end
_ROW, _BAR, _BARS, _END = 22, 7, 124, WIDTH - 46
_SPARK = (100, 24)
_MOST_BARS = 40
# fewer distinct sizes than this are listed in text, not drawn
_FEWEST_SIZES = 4
_LEFT_OF_RISKS, _TOP_OF_RISKS, _BASE_OF_RISKS = 40, 8, 150
# number of columns that changed most, shown open on a page
_OPEN = 1


def correlation_figures(found: Correlations) -> list[Figure]:
    """The correlation matrices side by side, and their difference."""
    after = _matrix(found.names, found.after, "Correlations in the released table", 1.0)
    if found.before is None:
        return [after]
    gap = found.after - found.before
    reach = max(float(np.nanmax(np.abs(gap), initial=0.0)), 0.05)
    return [
        _matrix(found.names, found.before, "Correlations in the original", 1.0),
        after,
        _matrix(found.names, gap, "Difference, released minus original", reach),
    ]


def moved_figure(found: TwoWayTables) -> Figure | None:
    """For each pair of columns the share of rows that would have to move between cells."""
    if found.moved is None:
        return None
    matrix = found.moved.copy()
    np.fill_diagonal(matrix, np.nan)
    top = max(float(np.nanmax(matrix, initial=0.0)), 0.05)
    return _matrix(
        found.names,
        matrix,
        "Two-way tables: total variation distance",
        top,
    )


def pair_figures(found: PairTable) -> list[Figure]:
    """Two columns jointly, before and after, in the same colours."""
    parts = [(found.after, "released")]
    if found.before is not None:
        parts.insert(0, (found.before, "original"))
    top = max(float(grid.max()) for grid, _ in parts)
    return [_grid(found, grid, which, top) for grid, which in parts]


def group_figure(found: Grouped) -> Figure:
    """The mean of one column in each group of another, before and after."""
    values = [*found.after, *(found.before or ())]
    present = [value for value in values if value is not None]
    low, high = min(present), max(present)
    pad = 0.06 * (high - low or abs(high) or 1.0)
    across = AxisScale(low - pad, high + pad, _DOTS, WIDTH - 10)
    base = 4 + _ROW_OF_RELATIONS * len(found.labels)
    parts, links, before, after = [], [], [], []
    for number, label in enumerate(found.labels):
        y = 4 + _ROW_OF_RELATIONS * number + _ROW_OF_RELATIONS / 2
        parts.append(path(f"M{_DOTS} {place(y)}H{WIDTH - 10}", "grid"))
        parts.append(text(_DOTS - 6, y + 4, short(label, 16), anchor="end", kind="name"))
        first = None if found.before is None else found.before[number]
        second = found.after[number]
        if first is not None and second is not None:
            links.append(f"M{place(across(first))} {place(y)}H{place(across(second))}")
        if first is not None:
            before.append(f"M{place(across(first))} {place(y)}h0")
        if second is not None:
            after.append(f"M{place(across(second))} {place(y)}h0")
    parts += [path("".join(links), "link"), path("".join(before), "dots big original")]
    parts += [path("".join(after), "dots big")]
    parts.append(below(across, [(value, short_number(value)) for value in ticks(low, high, 4)], base))
    title = f"Mean {found.measured} by {found.by}"
    return Figure(drawing(parts, base + 20, f"{title}: {found.words}"), title, f"{title}: {found.words}")


def _grid(found: PairTable, grid: NDArray[np.float64], which: str, top: float) -> Figure:
    title = f"{found.first.name} and {found.second.name}, {which}"
    left = 42 if found.second.edges is not None else _LABELS
    height = 190.0 if found.second.edges is not None else max(120.0, 15.0 * found.second.size)
    base = _EDGE + height
    wide = (WIDTH - _EDGE - left) / found.first.size
    tall = height / found.second.size
    # square root, so that rare cells stay visible beside common ones
    levels = np.ceil(np.sqrt(grid / (top or 1.0)) * _LEVELS).astype(int)
    cells: dict[int, list[str]] = {}
    for i, j in zip(*np.nonzero(grid), strict=True):
        y = base - tall * (j + 1) if found.second.edges is not None else _EDGE + tall * j
        cells.setdefault(int(levels[i, j]), []).append(box(left + wide * i, float(y), wide - 0.6, tall - 0.6))
    marks = [path("".join(parts), f"more-{level}") for level, parts in sorted(cells.items())]
    marks += _across(found.first, left, wide, base)
    if found.second.edges is None:
        marks += [
            text(left - 5, _EDGE + tall * (j + 0.5) + 4, short(label, _LETTERS), anchor="end", kind="name")
            for j, label in enumerate(found.second.labels)
        ]
    else:
        edges = found.second.edges
        scale = AxisScale(float(edges[0]), float(edges[-1]), base, _EDGE)
        marks.insert(0, beside(scale, _numbers(found.second), left, WIDTH - _EDGE))
    foot = 20 if found.first.edges is not None else _BASE_OF_RELATIONS
    alt = f"Two-way table of {title}: {_peak(found, grid)}."
    return Figure(drawing(marks, base + foot, alt), title, alt)


def _across(axis: Axis, left: float, wide: float, base: float) -> list[str]:
    """Labels below a two-way table: slanted names, or a scale."""
    if axis.edges is None:
        return _slanted(axis.labels, left, wide, base)
    scale = AxisScale(float(axis.edges[0]), float(axis.edges[-1]), left, WIDTH - _EDGE)
    return [below(scale, _numbers(axis), base)]


def _slanted(labels: Sequence[str], left: float, wide: float, base: float) -> list[str]:
    return [
        text(left + wide * (i + 0.5) + 4, base + 10, short(label, 11), anchor="end", turn=-60, kind="name")
        for i, label in enumerate(labels)
    ]


def _numbers(axis: Axis) -> list[tuple[float, str]]:
    assert axis.edges is not None
    low, high = float(axis.edges[0]), float(axis.edges[-1])
    if axis.attribute.kind_facts.days:
        return day_ticks(low, high)
    return [(value, short_number(value)) for value in ticks(low, high)]


def _peak(found: PairTable, grid: NDArray[np.float64]) -> str:
    i, j = np.unravel_index(int(grid.argmax()), grid.shape)
    cell = f"{_cell_words(found.first, int(i))} with {_cell_words(found.second, int(j))}"
    return f"the most frequent cell is {cell}, {100 * grid[i, j]:.1f}% of the rows"


def _cell_words(axis: Axis, number: int) -> str:
    if axis.edges is None:
        return axis.labels[number]
    low, high = axis.edges[number], axis.edges[number + 1]
    if axis.attribute.kind_facts.days:
        return f"{day_text(round(low))} to {day_text(round(high))}"
    return f"{low:.4g} to {high:.4g}"


def _matrix(names: Sequence[str], values: NDArray[np.float64], title: str, reach: float) -> Figure:
    """Squares, darker the farther a value is from 0; two colours for the two signs."""
    side = (WIDTH - _EDGE - _LABELS) / len(names)
    tall = min(side, 34.0)
    base = _EDGE + tall * len(names)
    cells: dict[str, list[str]] = {}
    words = []
    for i, j in zip(*np.nonzero(np.isfinite(values)), strict=True):
        value = float(values[i, j])
        level = min(round(abs(value) / reach * _LEVELS), _LEVELS)
        x, y = _LABELS + side * j, _EDGE + tall * i
        cells.setdefault(f"{'more' if value >= 0 else 'less'}-{level}", []).append(
            box(x, float(y), side - 1, tall - 1)
        )
        if len(names) <= _READABLE:
            kind = "on-dark" if level > _LEVELS // 2 else "number"
            words.append(
                text(x + side / 2 - 0.5, y + tall / 2 + 3.5, f"{value:.2f}", anchor="middle", kind=kind)
            )
    marks = [path("".join(parts), name) for name, parts in sorted(cells.items())]
    marks += [*words, *_slanted(names, _LABELS, side, base)]
    marks += [
        text(_LABELS - 5, _EDGE + tall * (i + 0.5) + 4, short(name, _LETTERS), anchor="end", kind="name")
        for i, name in enumerate(names)
    ]
    alt = f"Matrix. {title}: {_largest(names, values)}."
    return Figure(drawing(marks, base + _BASE_OF_RELATIONS, alt), title, alt)


def _largest(names: Sequence[str], values: NDArray[np.float64]) -> str:
    off = [
        (abs(float(values[i, j])), names[i], names[j], float(values[i, j]))
        for i in range(len(names))
        for j in range(i)
        if np.isfinite(values[i, j])
    ]
    if not off:
        return "no value"
    _, first, second, value = max(off)
    return f"the largest value is {value:.2f}, of {first} and {second}"


def distribution(found: Comparison) -> Figure:
    """Shares of the rows over the range of a column, or over its labels."""
    parts = found.distribution
    if parts.edges is None:
        return _bars(found)
    edges = parts.edges.tolist()
    across = AxisScale(edges[0], edges[-1], _LEFT, _RIGHT)
    high = _highest(found)
    up = AxisScale(0.0, high, _BASE, _TOP)
    marks = [beside(up, percents(high), _LEFT, _RIGHT)]
    if parts.before is not None:
        marks.append(path(staircase(edges, parts.before.tolist(), across, up), "original"))
    kind = "released" if parts.before is None else "released line"
    marks.append(path(staircase(edges, parts.after.tolist(), across, up), kind))
    marks.append(below(across, _axis(found, edges[0], edges[-1]), _BASE))
    alt = _distribution_alt(found)
    return Figure(drawing(marks, _HEIGHT, alt), "Distribution", alt)


def spark(found: Comparison) -> str:
    """The distribution as a small unlabelled drawing, for the line that opens a column."""
    parts, (width, height) = found.distribution, _SPARK
    edges = list(range(parts.after.size + 1)) if parts.edges is None else parts.edges.tolist()
    across, up = AxisScale(edges[0], edges[-1], 0, width), AxisScale(0.0, _highest(found), height, 1)
    marks = []
    if parts.before is not None:
        marks.append(path(staircase(edges, parts.before.tolist(), across, up), "original"))
    kind = "released" if parts.before is None else "released line"
    marks.append(path(staircase(edges, parts.after.tolist(), across, up), kind))
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(marks)}</svg>"
    )


def quantiles(found: Comparison) -> Figure | None:
    """Released against original quantiles: on the diagonal where nothing changed."""
    if found.quantiles is None:
        return None
    before, after = found.quantiles
    low, high = float(min(before[0], after[0])), float(max(before[-1], after[-1]))
    across, up = AxisScale(low, high, _LEFT + 8, _RIGHT), AxisScale(low, high, _BASE, _TOP)
    marks = _axis(found, low, high)
    diagonal = f"M{place(across(low))} {place(up(low))}L{place(across(high))} {place(up(high))}"
    dots = "".join(
        f"M{place(across(float(x)))} {place(up(float(y)))}h0" for x, y in zip(before, after, strict=True)
    )
    largest = max(found.changes, key=_size_of_change, default=None)
    moved = "" if largest is None else f" The {largest.statistic} moves by {largest.change}."
    alt = f"Quantile-quantile plot of {found.name}.{moved}"
    parts = [
        beside(up, marks, _LEFT + 8, _RIGHT),
        below(across, marks, _BASE),
        path(diagonal, "guide"),
        path(dots, "dots"),
    ]
    return Figure(drawing(parts, _HEIGHT, alt), "Quantiles, released against original", alt)


def _bars(found: Comparison) -> Figure:
    """One line per label: both shares as bars, and the released one as text."""
    parts = found.distribution
    height = _ROW * len(parts.labels) + 6
    scale = AxisScale(0.0, _highest(found), 0, _END - _BARS)
    original, released, words = [], [], []
    for number, label in enumerate(parts.labels):
        top = 4 + _ROW * number
        after = float(parts.after[number])
        if parts.before is not None:
            original.append(box(_BARS, top, scale(float(parts.before[number])), _BAR))
        released.append(
            box(_BARS, top + (_BAR if parts.before is not None else _BAR / 2), scale(after), _BAR)
        )
        words.append(text(_BARS - 6, top + 11, short(label), anchor="end", kind="name"))
        words.append(text(WIDTH - 2, top + 11, f"{100 * after:.1f}%", anchor="end"))
    alt = _distribution_alt(found)
    marks = [path("".join(original), "original"), path("".join(released), "released"), *words]
    return Figure(drawing(marks, height, alt), "Distribution, labelled with the released shares", alt)


def _axis(found: Comparison, low: float, high: float) -> Sequence[tuple[float, str]]:
    if KIND_FACTS[found.kind].days:
        return day_ticks(low, high)
    return [(value, short_number(value)) for value in ticks(low, high)]


def _highest(found: Comparison) -> float:
    parts = found.distribution
    every = [parts.after] if parts.before is None else [parts.before, parts.after]
    return max(max(float(np.max(shares, initial=0.0)) for shares in every), 1e-9)


def _distribution_alt(found: Comparison) -> str:
    parts = found.distribution
    tables = "the released table" if parts.before is None else "the original and the released table"
    return f"Distribution of {found.name} in {tables}."


def _size_of_change(change: Change) -> float:
    words = change.change.split()
    return abs(float(words[0])) if len(words) == 2 and words[1] == "sd" else -1.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A dot on a strip with its interval, in percent from the left; without an interval, a vertical line."""

    kind: str
    at: float
    left: float
    width: float


def risk_strip(line: RiskLine) -> tuple[Mark, ...]:
    """An attack on the released table, compared with guessing and the unprotected table."""
    return _marks(
        ("guessing", line.chance, None),
        ("original", line.unprotected, line.unprotected_interval),
        ("released", line.success, line.interval),
    )


def learning_strips(learning: Mapping[str, Any]) -> dict[str, tuple[Mark, ...]]:
    """Accuracy and F-measures of a classifier trained on the release, with its bounds."""
    found = {
        "accuracy": [
            (kind, learning[source]["accuracy"], learning[source]["accuracy_interval"])
            for source, kind in _SOURCES
        ]
    }
    for name in learning["classes"]:
        found[f"F-measure of {name}"] = [
            (kind, learning[source]["f"][name], learning[source]["f_interval"][name])
            for source, kind in _SOURCES
        ]
    return {name: _marks(*points) for name, points in found.items()}


_SOURCES = (("majority", "guessing"), ("original", "original"), ("released", "released"))


def _marks(*points: tuple[str, float | None, Interval | None]) -> tuple[Mark, ...]:
    found = []
    for kind, value, interval in points:
        if value is None:
            continue
        low, high = (value, value) if not interval or kind == "guessing" else interval
        found.append(Mark(kind, _percent(value), _percent(low), round(_percent(high) - _percent(low), 2)))
    return tuple(found)


def _percent(share: float) -> float:
    return round(100 * min(max(share, 0.0), 1.0), 2)


def cluster_figure(groups: Sequence[tuple[str, NDArray[np.int64]]]) -> Figure | None:
    """Distribution of cluster sizes, over all attribute groups; None where a sentence is enough."""
    sizes = np.concatenate([sizes for _, sizes in groups]).astype(np.float64)
    if np.unique(sizes).size < _FEWEST_SIZES:
        return None
    edges = bin_edges([ColumnRange.of(sizes)], _MOST_BARS).tolist()
    counts = np.histogram(sizes, bins=edges)[0]
    across = AxisScale(edges[0], edges[-1], _LEFT_OF_RISKS, WIDTH - 8)
    high = float(counts.max())
    up = AxisScale(0.0, high, _BASE_OF_RISKS, _TOP_OF_RISKS)
    bars = "".join(
        box(
            across(left) + 0.5,
            up(float(count)),
            across(right) - across(left) - 1,
            _BASE_OF_RISKS - up(float(count)),
        )
        for left, right, count in zip(edges, edges[1:], counts, strict=False)
        if count
    )
    marks = [
        beside(
            up,
            [(value, short_number(value)) for value in ticks(0, high, 4) if value == int(value)],
            _LEFT_OF_RISKS,
            WIDTH - 8,
        ),
        path(bars, "released"),
        below(across, [(value, short_number(value)) for value in ticks(edges[0], edges[-1])], _BASE_OF_RISKS),
    ]
    alt = f"Bar chart of cluster sizes, from {sizes.min():.0f} to {sizes.max():.0f} records."
    return Figure(drawing(marks, _BASE_OF_RISKS + 22, alt), "Clusters by the number of their records", alt)


def attribute_sections(
    subject: Subject, before: Table | None, measured: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """One section for each column: distribution, quantiles and changes.

    The change shown is what `shoal.evaluate` measured, so that all parts of a page agree.
    """
    sections = []
    compared = compare(subject, before)
    lines = {} if measured is None else measured["utility"]["attributes"]
    shares = {
        found.name: lines[found.name]["total_variation"] if found.name in lines else found.distribution.moved
        for found in compared
    }
    moves = sorted((share or 0.0 for share in shares.values()), reverse=True)
    for number, found in enumerate(compared, start=1):
        moved = shares[found.name]
        stated = subject.statement["attributes"].get(found.name)
        figures = (distribution(found), quantiles(found))
        sections.append(
            {
                "id": f"column-{number}",
                "name": found.name,
                "kind": found.kind,
                "share": subject.share(found.name),
                "domain": "" if stated is None else domain_words(stated),
                "moved": moved,
                "open": moved is not None and moved >= moves[_OPEN - 1],
                "spark": spark(found),
                "figures": [figure for figure in figures if figure is not None],
                "changes": found.changes,
                "statistics": found.statistics,
                "missing": found.missing,
            }
        )
    return sections


def relation_sections(subject: Subject, before: Table | None) -> dict[str, Any]:
    """Correlation matrices, two-way tables and groups, where there are any."""
    related, pairs = correlate(subject, before), pair_tables(subject, before)
    moved = None if pairs is None else moved_figure(pairs)
    kept = () if pairs is None else [pair for pair in pairs.kept if pair.word != "none to keep"]
    return {
        "correlations": [] if related is None else correlation_figures(related),
        "moved": moved,
        "kept": kept[:MOST_KEPT],
        "kept_counts": {
            word: sum(pair.word == word for pair in kept) for word in ("kept", "weakened", "lost")
        },
        "groups": [group_figure(found) for found in grouped(subject, before, pairs)],
        "pairs": []
        if pairs is None
        else [
            {
                "title": f"{pair.first.name} and {pair.second.name}",
                "moved": pair.moved,
                "figures": pair_figures(pair),
            }
            for pair in pairs.shown
        ],
        "left_out": () if pairs is None else pairs.left_out,
    }
