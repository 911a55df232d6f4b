"""The measured functions of a record, evaluated on released rows: one entry for every kind of measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.display import internal
from shoal.inference.rows import Cells, WeightedRows
from shoal.mechanisms import ABSENT, ends_of, functions, half_functions
from shoal.numbers import Bools, Floats, Integers
from shoal.privacy import Measurement, Measurements

# families of functions, which differ in how far the rows may be from what was measured
ONE, PRODUCT, FINE = "one", "product", "fine"


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """Functions on rows with what was measured of them.

    Attributes:
        functions: (rows, functions) values.
        means: measured mean of each over all records.
        deviations: standard deviation of its noise.
        families: `ONE`, `PRODUCT` or `FINE` of each.
    """

    functions: Floats
    means: Floats
    deviations: Floats
    families: tuple[str, ...]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Functions of one measurement, with their sums over the records in the unit of the functions.

    Attributes:
        noise: standard deviation of each sum, where it is not that of the measurement.
    """

    functions: Floats
    sums: Floats | Integers
    family: str
    noise: Floats | None = None


class OnRows:
    """The wanted attributes on rows, with their cut points and bins."""

    def __init__(self, measurements: Measurements, rows: WeightedRows) -> None:
        self.measurements, self.rows = measurements, rows
        self.positions: dict[int, Integers] = {}
        for place, one in enumerate(measurements.attributes):
            if one["column"] in rows.measured:
                own = rows.measured[one["column"]]
                self.positions[place] = (own == ABSENT).astype(np.int64) if one.get("missing") else own
        self.edges = {
            one.columns[0]: np.array(one.where["edges"], dtype=np.int64)
            for one in measurements.of_kind("cuts")
        }
        self._bins: dict[tuple[int, int], Floats] = {}

    def __contains__(self, place: int) -> bool:
        return place in self.positions

    def present(self, place: int) -> Bools:
        found: Bools = self.positions[place] != ABSENT
        return found

    def cells(self, place: int) -> Cells:
        return Cells(self.edges[place])

    def of_bins(self, place: int, level: int) -> Floats:
        """The functions of a level of the bins of an attribute, for names the indicators of their groups."""
        if (place, level) not in self._bins:
            bins: Mapping[str, Any] = self.measurements.bins[place]
            own = np.maximum(self.positions[place], 0)
            if "group" in bins:
                groups = np.array(bins["group"], dtype=np.int64)
                table = functions(0, -1, int(groups.max()) + 1)[groups]
            else:
                edges = np.array(bins["edges"], dtype=np.int64)
                own = np.searchsorted(edges[1:-1], own, side="right")
                table = functions(int(bins["levels"]), level, edges.size - 1)
            self._bins[place, level] = table.astype(np.float64)[own] * self.present(place)[:, None]
        return self._bins[place, level]


def _sign(one: Measurement, on: OnRows) -> Iterator[_Part]:
    for place, a in enumerate(one.columns):
        if a in on:
            sign = np.where(on.present(a), 1.0 - 2.0 * on.positions[a], 0.0)
            yield _Part(sign[:, None], one.sums[place : place + 1], ONE)


def _count(one: Measurement, on: OnRows) -> Iterator[_Part]:
    (a,) = one.columns
    if a in on:
        every = (on.positions[a][:, None] == np.arange(one.sums.size)).astype(np.float64)
        yield _Part(every, one.sums, ONE)


def _below(one: Measurement, on: OnRows) -> Iterator[_Part]:
    for place, a in enumerate(one.columns):
        if a in on:
            below = np.where(on.positions[a] < one.where["cuts"][place], 1.0, -1.0)
            yield _Part((below * on.present(a))[:, None], one.sums[place : place + 1], ONE)


def _tree(one: Measurement, on: OnRows) -> Iterator[_Part]:
    for place, a in enumerate(one.columns):
        if a in on:
            levels = int(on.edges[a].size - 1).bit_length() - 1
            halves = half_functions(levels, one.where["level"]).astype(np.float64)
            own = halves[on.cells(a).codes(on.positions[a])] * on.present(a)[:, None]
            yield _Part(own, one.sums[place], ONE)


def _inside(one: Measurement, on: OnRows) -> Iterator[_Part]:
    for place, a in enumerate(one.columns):
        if a in on:
            lows, highs = ends_of(on.edges[a])
            codes, own = on.cells(a).codes(on.positions[a]), on.positions[a]
            value = (2 * own - (lows + highs)[codes]) / np.maximum(highs - lows, 1)[codes]
            value = np.clip(value, -1, 1) * on.present(a)
            wide = np.flatnonzero(highs > lows)
            each = np.where(codes[:, None] == wide, value[:, None], 0.0)
            yield _Part(each, one.sums[place][wide] / one.where["parts"], ONE)


def _value(one: Measurement, on: OnRows) -> Iterator[_Part]:
    for place, a in enumerate(one.columns):
        if a in on:
            values, edges = np.array(one.where["values"][place]), on.edges[a]
            # single positions are counted with their intervals
            wide = np.flatnonzero(np.diff(edges) > 1)
            each = (on.positions[a][:, None] == values[wide]).astype(np.float64)
            yield _Part(each, one.sums[place][wide], ONE)


def _spike(one: Measurement, on: OnRows) -> Iterator[_Part]:
    (a,) = one.columns
    if a in on:
        each = (on.positions[a][:, None] == np.asarray(one.where["values"])).astype(np.float64)
        yield _Part(each, one.sums, ONE)


def _product(one: Measurement, on: OnRows) -> Iterator[_Part]:
    number = 0
    for i, a in enumerate(one.columns):
        for b in one.columns[:i]:
            if a in on and b in on:
                both = on.of_bins(a, 0) * on.of_bins(b, 0)
                yield _Part(both, one.sums[number : number + 1], PRODUCT)
            number += 1


def _contrast(one: Measurement, on: OnRows) -> Iterator[_Part]:
    pivot, *partners = one.columns
    if pivot not in on:
        return
    own = on.of_bins(pivot, one.where["level"])
    ends = np.cumsum([0, *one.where["sizes"]])
    for place, b in enumerate(partners):
        if b in on:
            other = on.of_bins(b, one.where["depth"])
            both = (own[:, :, None] * other[:, None, :]).reshape(own.shape[0], -1)
            sums = one.sums[:, ends[place] : ends[place + 1]].reshape(-1)
            yield _Part(both, sums, FINE, np.full(both.shape[1], float(one.where["sds"][place])))


def _values(one: Measurement, on: OnRows) -> Iterator[_Part]:
    middles, reaches = one.where["middles"], one.where["reaches"]

    def clipped(place: int) -> Floats:
        a = one.columns[place]
        inside = np.clip((on.positions[a] - middles[place]) / reaches[place], -1.0, 1.0)
        return np.where(on.present(a), inside, 0.0)

    for number, (i, j) in enumerate(np.asarray(one.where["pairs"]).tolist()):
        if one.columns[i] in on and one.columns[j] in on:
            sums = one.sums[number : number + 1] / one.where["parts"]
            yield _Part((clipped(i) * clipped(j))[:, None], sums, FINE)


def _triple(one: Measurement, on: OnRows) -> Iterator[_Part]:
    for number, triple in enumerate(np.asarray(one.where["triples"]).tolist()):
        attributes = [one.columns[place] for place in triple if place >= 0]
        if all(a in on for a in attributes):
            signs = [on.of_bins(a, 0) for a in attributes]
            yield _Part(np.prod(np.stack(signs), axis=0), one.sums[number : number + 1], PRODUCT)


# A new kind of measurement is one entry here. Kinds without one, such as drawn cut points, correct nothing.
FUNCTIONS: dict[str, Callable[[Measurement, OnRows], Iterator[_Part]]] = {
    "sign": _sign,
    "count": _count,
    "below": _below,
    "tree": _tree,
    "inside": _inside,
    "value": _value,
    "spike": _spike,
    "product": _product,
    "contrast": _contrast,
    "values": _values,
    "triple": _triple,
}


def evaluated(measurements: Measurements, rows: WeightedRows) -> Evaluated:
    """All measured functions of the columns that the rows have."""
    on = OnRows(measurements, rows)
    found, means, deviations = [np.zeros((rows.size, 0))], [np.zeros(0)], [np.zeros(0)]
    families: list[str] = []
    for one in measurements.measured:
        if one.kind not in FUNCTIONS:
            continue
        parts = float(one.where.get("parts", 1))
        for part in FUNCTIONS[one.kind](one, on):
            found.append(part.functions)
            means.append(np.asarray(part.sums, dtype=np.float64) / measurements.rows)
            noise = np.full(part.functions.shape[1], one.sd / parts) if part.noise is None else part.noise
            deviations.append(noise / measurements.rows)
            families += [part.family] * part.functions.shape[1]
    return Evaluated(np.hstack(found), np.concatenate(means), np.concatenate(deviations), tuple(families))


def most_functions(measurements: Measurements, columns: Sequence[str]) -> int:
    """At most this many functions of these columns were measured."""
    wanted = {place for place, one in enumerate(measurements.attributes) if one["column"] in columns}
    number = 0
    for one in measurements.measured:
        inside = sum(place in wanted for place in one.columns)
        if one.kind == "product":
            number += inside * inside
        elif one.kind == "contrast" and one.columns[0] in wanted:
            sizes = zip(one.columns[1:], one.where["sizes"], strict=True)
            number += one.sums.shape[0] * sum(size for place, size in sizes if place in wanted)
        elif one.kind in FUNCTIONS and inside:
            number += one.sums.size * inside // len(one.columns)
    return number


def details(rows: WeightedRows, cells: Mapping[str, Cells], least: int = 20) -> Floats:
    """Functions of single columns inside their cells, where nothing was measured: value, square and half, per cell."""
    found = [np.zeros((rows.size, 0))]
    weights = rows.weights
    for column, own in rows.measured.items():
        known = cells.get(column)
        if known is None or known.counted:
            continue
        codes = np.where(own == ABSENT, -1, known.codes(own))
        for cell in np.flatnonzero(np.diff(known.edges) >= 2):
            here = codes == cell
            weight = weights[here]
            # counted by weight: a row may stand for many equal ones
            if here.sum() < 2 or weight.sum() / weights.sum() * rows.count < least:
                continue
            value = own[here].astype(np.float64)
            value = value - np.average(value, weights=weight)
            value /= max(float(np.sqrt(np.average(value**2, weights=weight))), 1e-9)
            for inside in (value, value**2, (value > 0).astype(np.float64)):
                function = np.zeros(rows.size)
                function[here] = inside - np.average(inside, weights=weight)
                spread = float(np.sqrt(np.average(function**2, weights=weights)))
                if spread > 1e-9:
                    found.append((function / spread)[:, None])
    return np.hstack(found)


# Above this number of functions of single columns, their finest intervals are merged.
_MOST_ONE = 1500


def coarsened(measurements: Measurements, columns: Sequence[str], most: int = _MOST_ONE) -> Measurements:
    """The measurements with the halvings of these columns cut off where they would be too many functions.

    In a merged interval, what was measured of its parts gives the noisy sum of (2 · position - first - last) / width,
    less its mean if all parts had equally many records: a combination of deeper contrasts and of sums inside, whose
    noise is independent of everything that is kept.
    """
    places = [measurements.number(column) for column in columns]
    cuts = {one.columns[0]: one for one in measurements.of_kind("cuts") if one.columns[0] in places}
    deepest = {place: int(len(one.where["edges"]) - 1).bit_length() - 1 for place, one in cuts.items()}
    depth = max(deepest.values(), default=0)
    while depth > 1 and sum(2 << min(own, depth) for own in deepest.values()) > most:
        depth -= 1
    shallow = {place for place, own in deepest.items() if own > depth}
    if not shallow:
        return measurements
    kept: list[Measurement] = []
    for one in measurements.measured:
        if one.kind == "cuts" and one.columns[0] in shallow:
            edges = np.asarray(one.where["edges"])
            kept.append(replace(one, where={**one.where, "edges": edges[:: edges.size >> depth]}))
        elif one.kind == "tree" and int(one.where["level"]) >= depth:
            kept += _only(one, [a for a in one.columns if a not in shallow])
        elif one.kind == "inside":
            kept += _only(one, [a for a in one.columns if a not in shallow])
            kept += [_within(measurements, one, a, cuts[a], depth) for a in one.columns if a in shallow]
        else:
            kept.append(one)
    return replace(measurements, measured=tuple(kept))


def _only(one: Measurement, columns: Sequence[int]) -> list[Measurement]:
    """The measurement of some of its columns, if there are any."""
    rows = [one.columns.index(a) for a in columns]
    return [replace(one, columns=tuple(columns), sums=one.sums[rows])] if rows else []


def _within(all_: Measurements, inside: Measurement, a: int, cuts: Measurement, depth: int) -> Measurement:
    """The noisy sums of positions inside merged intervals."""
    edges = np.asarray(cuts.where["edges"], dtype=np.int64)
    lows, highs = ends_of(edges)
    leaves = lows.size
    span = leaves >> depth
    firsts, lasts = ends_of(edges[::span])
    widths = np.maximum(lasts - firsts, 1)
    node = np.repeat(np.arange(1 << depth), span)
    # where the middle of a part lies in its interval
    offset = (lows + highs - (firsts + lasts)[node]) / widths[node]
    share = (highs - lows) / widths[node]
    parts, own = float(inside.where["parts"]), inside.sums[inside.columns.index(a)]
    sums = np.bincount(node, share * own / parts)
    variance = np.bincount(node, (share * inside.sd / parts) ** 2)
    for one in all_.of_kind("tree"):
        level = int(one.where["level"])
        if level < depth or a not in one.columns:
            continue
        width = leaves >> level
        signs = np.where(np.arange(leaves) % width < width // 2, 1.0, -1.0)
        # a contrast at this level moves the number of records of a part by this much
        weights = (offset * signs).reshape(-1, width).sum(axis=1) / (width // 2) / 2
        of_node = np.arange(weights.size) >> (level - depth)
        sums += np.bincount(of_node, weights * one.sums[one.columns.index(a)])
        variance += np.bincount(of_node, (weights * one.sd) ** 2)
    means = offset.reshape(-1, span).mean(axis=1)
    where = {"means": means, "variances": variance}
    return Measurement("within", (a,), where, sums, float(np.sqrt(variance.max())), inside.law)


def _merged(one: Measurement, on: OnRows) -> Iterator[_Part]:
    (a,) = one.columns
    if a not in on:
        return
    firsts, lasts = ends_of(on.edges[a])
    codes, own = on.cells(a).codes(on.positions[a]), on.positions[a]
    value = (2 * own - (firsts + lasts)[codes]) / np.maximum(lasts - firsts, 1)[codes] - one.where["means"][
        codes
    ]
    value = value * on.present(a)
    wide = np.flatnonzero(lasts > firsts)
    each = np.where(codes[:, None] == wide, value[:, None], 0.0)
    yield _Part(each, one.sums[wide], ONE, np.sqrt(one.where["variances"][wide]))


FUNCTIONS["within"] = _merged
