"""The measured functions of a record, evaluated on released rows: one entry for every kind of measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.inference.rows import Cells, Rows
from shoal.mechanisms import ABSENT, ends_of, functions, half_functions
from shoal.numbers import Bools, Floats, Integers
from shoal.privacy import Measurement, Measurements

# families of functions, which differ in how far the rows may be from what was measured
ONE, PRODUCT, FINE = "one", "product", "fine"


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


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Functions of one measurement, with their sums over the records in the unit of the functions.

    Attributes:
        sd: standard deviation of the noise on these sums, where it is not that of the whole measurement.
    """

    functions: Floats
    sums: Floats | Integers
    family: str
    sd: float | None = None


class OnRows:
    """The wanted attributes on rows, with their cut points and bins."""

    def __init__(self, measurements: Measurements, rows: Rows) -> None:
        self.measurements, self.rows = measurements, rows
        self.positions: dict[int, Integers] = {}
        for place, one in enumerate(measurements.attributes):
            if one["column"] in rows.positions:
                own = rows.positions[one["column"]]
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
            yield _Part(both, sums, FINE, one.where["sds"][place])


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
        attributes = [one.columns[place] for place in triple]
        if all(a in on for a in attributes):
            signs = [on.of_bins(a, 0) for a in attributes]
            yield _Part(signs[0] * signs[1] * signs[2], one.sums[number : number + 1], PRODUCT)


# A new kind of measurement is one entry here. Kinds without one, such as drawn cut points, correct nothing.
FUNCTIONS: dict[str, Callable[[Measurement, OnRows], Iterator[_Part]]] = {
    "sign": _sign,
    "count": _count,
    "below": _below,
    "tree": _tree,
    "inside": _inside,
    "value": _value,
    "product": _product,
    "contrast": _contrast,
    "values": _values,
    "triple": _triple,
}


def evaluated(measurements: Measurements, rows: Rows) -> Evaluated:
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
            noise = (one.sd if part.sd is None else part.sd) / parts / measurements.rows
            deviations.append(np.full(part.functions.shape[1], noise))
            families += [part.family] * part.functions.shape[1]
    return Evaluated(np.hstack(found), np.concatenate(means), np.concatenate(deviations), tuple(families))


def details(rows: Rows, cells: Mapping[str, Cells], least: int = 20) -> Floats:
    """Functions of single columns inside their cells, where nothing was measured: value, square and half, per cell."""
    found = [np.zeros((rows.size, 0))]
    weights = rows.weights
    for column, own in rows.positions.items():
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
