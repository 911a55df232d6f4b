"""Rank queries: quantiles, means of rank groups, and the ranges of their answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Attribute, Lattice, day_text, is_day
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.noise import exponential_choice
from shoal.numbers import decimal_text
from shoal.privacy import Accountant
from shoal.query.answers import CONFIDENCE, AnswerNoise, error_of, numeric_lattice
from shoal.query.facts import (
    EDGE,
    MISSING,
    DatasetFacts,
    Offer,
    QueryTable,
    RowOrder,
    Where,
    as_list,
    as_mapping,
    as_number,
    as_text,
    check_keys,
    constant,
    label_numbers,
    matching,
    no_such_label,
)
from shoal.query.refinement import (
    Grid,
    Labels,
    Points,
    Prior,
    Support,
    absolute,
    categorical,
    combined,
    fraction_of,
    from_table,
    histogram,
    joint,
    nominal,
    normal,
    product,
    uniform,
)
from shoal.query.refinement.refine import Distance
from shoal.taxonomy import Taxonomy
from shoal.text import Message

# a default lattice is made no finer than this
_DEFAULT_STEPS = 1 << 12
_MOST_ANSWERS = 1 << 16
_MOST_LABELS = 1000
_MOST_DISTANCES = 200
_MOST_PARTS = 6
# the parts of a query
_DISTANCE = Message.of("part-distance")
_MASS = Message.of("part-mass")
_MASS_OF_PRIOR = Message.of("part-mass-of-prior")
_RANGE_VALUE = Message.of("part-range-value")
_ROW = Message.of("part-row")
_VALUE = Message.of("part-value")
_WEIGHT = Message.of("part-weight")
# options for the answers of a query part
PART_OPTIONS = ("range", "values", "prior", "distance")

Read = Callable[[str], Fraction]
# penalties are integers in fractions of a record, and a table of weights has an entry for each
_FINEST_SHARE = 100


@internal()
@dataclass(frozen=True, slots=True)
class ExpectedAnswers:
    """One part of an answer: the possible answers, their prior, and the distance between them."""

    prior: Prior
    distance: Distance
    read: Read | None = None
    date: bool = False

    @property
    def support(self) -> Support:
        return self.prior.support

    def written(self, answer: Any) -> Any:
        if not isinstance(answer, Fraction):
            return answer
        return day_text(answer) if self.date and is_day(answer) else float(answer)


def of_column(facts: DatasetFacts, attribute: Attribute, options: dict[str, Any]) -> ExpectedAnswers:
    """Answers that are values of a column."""
    if not facts.has_lattice(attribute) or attribute.kind_facts.listed:
        return _of_labels(facts, attribute, options)
    return of_lattice(facts.lattice(attribute.name), options, attribute)


def of_lattice(
    lattice: Lattice | None, options: dict[str, Any], attribute: Attribute | None
) -> ExpectedAnswers:
    """Answers that are numbers or dates: a range given by the query, or the lattice, coarsened if it is very fine."""
    date = attribute is not None and attribute.kind_facts.days

    def read(text: str) -> Fraction:
        return constant(attribute, text) if date and attribute else as_number(_RANGE_VALUE, text)

    if "values" in options:
        raise OptionError("values-columns-labels")
    if "range" in options:
        given = as_mapping("range", options["range"])
        check_keys("range", given, ("lo", "hi", "step"))
        lo, hi = (read(as_text(key, given[key])) for key in ("lo", "hi"))
        lattice = Lattice(lo, hi, as_number("step", given["step"]))
    elif lattice is None:
        raise OptionError("query-needs-range-answers-such-range")
    else:
        coarser = -(-lattice.steps // _DEFAULT_STEPS)
        lattice = Lattice(lattice.lo, lattice.hi, lattice.step * coarser)
    if lattice.steps >= _MOST_ANSWERS:
        raise OptionError("range-more-than-points", most_answers=_MOST_ANSWERS)
    prior = _prior_of_points(lattice, as_mapping("prior", options.get("prior", {"kind": "uniform"})), read)
    return ExpectedAnswers(
        prior, _distance(options.get("distance", "absolute"), lattice.steps + 1), read, date
    )


def _prior_of_points(lattice: Lattice, given: dict[str, Any], read: Read) -> Prior:
    match given.get("kind"):
        case "uniform":
            check_keys(_prior("uniform"), given, ("kind",))
            return uniform(Points(lattice))
        case "normal":
            check_keys(_prior("normal"), given, ("kind", "mean", "sd"))
            return normal(lattice, read(as_text("mean", given["mean"])), as_number("sd", given["sd"]))
        case "histogram":
            check_keys(_prior("histogram"), given, ("kind", "edges", "weights"))
            edges = [read(as_text(EDGE, edge)) for edge in as_list("edges", given["edges"], 10_001)]
            weights = [as_number(_WEIGHT, weight) for weight in as_list("weights", given["weights"], 10_000)]
            return histogram(lattice, edges, weights)
    raise _unknown_prior(given, ("uniform", "normal", "histogram"))


def _of_labels(facts: DatasetFacts, attribute: Attribute, options: dict[str, Any]) -> ExpectedAnswers:
    if "range" in options:
        raise OptionError("column-holds-labels", column=attribute.name)
    given = as_mapping("prior", options.get("prior", {"kind": "uniform"}))
    masses: dict[str, Any] = {}
    if given.get("kind") == "categorical":
        check_keys(_prior("categorical"), given, ("kind", "masses"))
        masses = as_mapping("masses", given["masses"])
    elif given.get("kind") != "uniform":
        raise _unknown_prior(given, ("uniform", "categorical"))
    known = facts.labels(attribute)
    if attribute.kind_facts.listed:
        labels = known
    elif "values" in options:
        labels = tuple(as_text(_VALUE, value) for value in as_list("values", options["values"], _MOST_LABELS))
    else:
        labels = known or tuple(masses)
    if not 1 <= len(labels) <= _MOST_LABELS:
        raise OptionError("column-needs-1-possible-labels", column=attribute.name, most_labels=_MOST_LABELS)
    listed = label_numbers(known)
    for label in labels:
        if known and label not in listed:
            raise no_such_label(attribute, label, listed)
    weights = {label: as_number(_MASS_OF_PRIOR, mass) for label, mass in masses.items()}
    prior = categorical(weights, labels) if masses else uniform(Labels(labels))
    usual = "ordinal"
    if not attribute.kind_facts.listed:
        usual = "taxonomy" if attribute.taxonomy is not None else "nominal"
    if options.get("distance", usual) == "taxonomy":
        if attribute.tree is None:
            raise OptionError("column-no-taxonomy", column=attribute.name)
        return ExpectedAnswers(prior, from_table(_between(attribute.tree, labels)))
    return ExpectedAnswers(prior, _distance(options.get("distance", usual), len(labels)))


@lru_cache(maxsize=64)
def _between(taxonomy: Taxonomy, labels: tuple[str, ...]) -> NDArray[np.float64]:
    """The distances between all labels, from which the truth then selects a row."""
    codes = np.array([taxonomy.code(label) for label in labels])
    return taxonomy.distances(codes[:, np.newaxis], codes)


def _distance(given: Any, size: int) -> Distance:
    names: dict[str, Distance] = {"absolute": absolute, "ordinal": absolute, "nominal": nominal}
    if isinstance(given, str):
        if given not in names:
            raise OptionError(
                "unknown-distance",
                option="distance",
                given=given,
                allowed=tuple(names),
                hint=closest(given, names),
            )
        return names[given]
    table = as_mapping("distance", given)
    check_keys(_DISTANCE, table, ("table",))
    rows = [
        [float(as_number(_DISTANCE, entry)) for entry in as_list(_ROW, row, _MOST_DISTANCES)]
        for row in as_list("table", table["table"], _MOST_DISTANCES)
    ]
    if len(rows) != size or any(len(row) != size for row in rows):
        raise OptionError("table-distances-needs-rows-numbers-each", size=size)
    return from_table(rows)


def together(parts: list[ExpectedAnswers], options: dict[str, Any]) -> ExpectedAnswers:
    """A vector of answers: independent parts, or a joint prior; distances are summed or their maximum is taken."""
    if len(parts) > _MOST_PARTS:
        raise OptionError("query-can-ask-values-once-most", most_parts=_MOST_PARTS, found=len(parts))
    size = math.prod(part.support.size for part in parts)
    if size > _MOST_ANSWERS:
        raise OptionError("values-together-have-possible-answers-most", size=size, most_answers=_MOST_ANSWERS)
    grid = Grid(tuple(part.support for part in parts))
    how = "sum"
    if "distance" in options:
        given = as_mapping("distance", options["distance"])
        check_keys(Message.of("part-distance-of-several"), given, ("combine",))
        how = as_text("combine", given["combine"])
    distance = combined([part.distance for part in parts], how)
    if "prior" not in options:
        return ExpectedAnswers(product(*(part.prior for part in parts)), distance)
    given = as_mapping("prior", options["prior"])
    if given.get("kind") != "joint":
        raise _unknown_prior(given, ("joint",), "prior-kind-of-several")
    check_keys(_prior("joint"), given, ("kind", "masses"))
    masses: dict[tuple[Any, ...], Fraction] = {}
    for entry in as_list("masses", given["masses"], 10_000):
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], list):
            raise OptionError("masses-joint-prior-pairs-list-values")
        if len(entry[0]) != len(parts):
            raise OptionError(
                "joint-prior-values-names-list", number_of_parts=len(parts), number_of_entry=len(entry[0])
            )
        vector = tuple(
            _read_answer(part, as_text(_VALUE, value)) for part, value in zip(parts, entry[0], strict=True)
        )
        masses[vector] = masses.get(vector, Fraction(0)) + as_number(_MASS, entry[1])
    return ExpectedAnswers(joint(grid.parts, masses), distance)


def _read_answer(part: ExpectedAnswers, text: str) -> Any:
    if part.read is None or not isinstance(part.support, Points):
        return text
    value = part.read(text)
    if part.support.answer(part.support.index(value)) != value:
        raise OptionError("joint-prior-names-no-point-range", text=text)
    return value


def _prior(kind: str) -> Message:
    return Message.of("part-prior", kind=kind)


def _unknown_prior(
    given: dict[str, Any], kinds: tuple[str, ...], code: str = "prior-kind-not"
) -> OptionError:
    kind = given.get("kind")
    return OptionError(code, kind=kind, allowed=kinds, hint=closest(kind, kinds))


def quantile(
    facts: DatasetFacts, *, column: str, q: Fraction, epsilon: Fraction, where: Where | None = None
) -> Offer:
    """A value of the public domain with approximately the share q of the records at or below it.

    Guarantee:
        The exponential mechanism over all points of the domain. The penalty of a point is how far q·m lies outside the
        ranks that the point covers, from the records below it to those at or below it, of m in all. A replaced record
        changes it by at most 1, one added or removed by max(q, 1 - q).

    Cost:
        Linear in the number of records, whatever the conditions select.
    """
    lattice, attribute = facts.lattice(column), facts.attribute(column)
    if not 0 <= q <= 1 or q.denominator > _FINEST_SHARE:
        raise OptionError("q-between-0-1-most-two", option="q", found=decimal_text(q))
    above, whole = q.numerator, q.denominator
    # penalties are counted in units of 1/whole of a record, so that they are integers
    steps = whole if facts.replace_one else max(above, whole - above)

    def rate(spent: Fraction) -> Fraction:
        return spent / (2 * steps)

    def run(table: QueryTable, account: Accountant) -> Any:
        order, chosen = table.orders[column], matching(where, table)
        lengths, starts, penalties = ranked(order, chosen, lattice.steps, above, whole)
        spent, source = account.spend("quantile", epsilon).take()
        # the bound does not depend on which records were selected, and neither does the work
        number = exponential_choice(lengths, penalties, rate(spent), source, largest=whole * table.n)
        position = int(starts[number]) + fraction_of(int(lengths[number]), source)
        return written(attribute, lattice, position)

    # all points with a penalty above t weigh less than (steps + 1) exp(-rate t) of the best one
    within = math.log((lattice.steps + 1) / (1 - CONFIDENCE)) / float(rate(epsilon) * whole)
    return Offer(
        epsilon,
        {"quantile": epsilon},
        Fraction(steps, whole),
        Message.of("noise-exponential"),
        {"rank_error_95": within},
        run,
        conditions=(Message.of("without-value-left-out", column=column),),
    )


def ranked(
    order: RowOrder, chosen: NDArray[np.bool_], steps: int, above: int, whole: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All points 0 .. steps in runs of equal penalty: how long each run is, where it starts, and its penalty.

    Where there are few points each is a run, otherwise there are two for each row: its own point, which only the last
    of several equal rows has, and the points up to the next. The number of runs is the same whatever the rows hold.

    The penalty of a point with b records below it and a at or below it, of m, is the distance of q·m from b .. a in
    units of 1/whole, where q = above/whole.

    >>> order = RowOrder.of(np.array([2, 2, 5]), 7)
    >>> [part.tolist() for part in ranked(order, np.ones(3, dtype=bool), 6, 1, 2)]
    [[1, 1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5, 6], [3, 3, 0, 1, 1, 1, 3]]
    >>> order = RowOrder.of(np.array([2, 2, 5]))
    >>> [part.tolist() for part in ranked(order, np.ones(3, dtype=bool), 6, 1, 2)]
    [[0, 2, 0, 0, 1, 2, 1, 1], [-1, 0, 2, 3, 2, 3, 5, 6], [3, 3, 1, 1, 0, 1, 1, 3]]
    """
    counted = order.upto(chosen)
    if order.ranks is not None:
        starts = np.arange(steps + 1, dtype=np.int64)
        lengths = np.ones(steps + 1, dtype=np.int64)
        counts = counted[order.ranks]
        below, at = counts[:-1], counts[1:]
    else:
        own = np.concatenate(([-1], order.values))
        gaps = np.diff(np.append(own, steps + 1))
        last = (gaps > 0) & (own >= 0)
        starts = np.column_stack((own, own + 1)).ravel()
        lengths = np.column_stack((last, np.maximum(gaps - 1, 0))).ravel()
        # where the rows of the same position begin
        places = np.arange(own.size)
        new = np.concatenate(([True], own[1:] > own[:-1]))
        first = np.maximum.accumulate(places * new)
        before = counted[np.maximum(first - 1, 0)]
        below = np.column_stack((before, counted)).ravel()
        at = np.column_stack((counted, counted)).ravel()
    target = above * int(counted[-1])
    penalties = np.maximum(np.maximum(whole * below - target, target - whole * at), 0)
    return lengths.astype(np.int64), starts.astype(np.int64), penalties.astype(np.int64)


def ranking_means(facts: DatasetFacts, *, column: str, k: int, epsilon: Fraction) -> Offer:
    """The means of k consecutive values in sorted order: single-attribute ranking, then its centroids.

    Guarantee:
        Groups are fixed by rank: replacing one record changes all group sums in total by at most the domain's width
        (docs/proofs/clusters.md#sums, section 3). Laplace noise of that scale on every sum costs ε for all of them.

    Reference:
        Thesis, section 6.2 (a query of microaggregated data); PSD-2014, Lemma 1.
    """
    lattice = numeric_lattice(facts, column)
    if not facts.replace_one or facts.rows is None:
        raise OptionError("ranking-means-needs-public-number-records")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= facts.rows:
        raise OptionError("k-whole-number-from-1-number", option="k", rows=facts.rows, found=k)
    answer_noise = AnswerNoise.laplace(lattice.steps, lattice.step, epsilon=epsilon)
    middle = lattice.steps // 2
    common = math.lcm(lattice.lo.denominator, lattice.hi.denominator, lattice.step.denominator)
    lowest, highest, step = (int(value * common) for value in (lattice.lo, lattice.hi, lattice.step))

    def run(table: QueryTable, account: Accountant) -> list[float]:
        sums, sizes = group_sums(_filled(table.orders[column].values, middle), k)
        drawn = answer_noise.draw(len(sums), account, "sums", "rank groups")
        noisy = [one + other for one, other in zip(sums, drawn, strict=True)]
        # integers divide with correct rounding, and without computing a common divisor
        return [
            min(max(lowest * size + step * one, lowest * size), highest * size) / (common * size)
            for one, size in zip(noisy, sizes, strict=True)
        ]

    return Offer(
        answer_noise.epsilon,
        answer_noise.reserved("sums"),
        answer_noise.sensitivity * answer_noise.unit,
        Message.of("noise-on-sum-of-each-group", noise=answer_noise.noise),
        {name: value / k for name, value in error_of(answer_noise).items()},
        run,
        conditions=(Message.of("counts-as-middle", column=column),),
    )


def _filled(ordered: NDArray[np.int64], middle: int) -> NDArray[np.int64]:
    """Sorted positions with the missing ones, which come first, moved to the middle of the domain.

    >>> _filled(np.array([-1, -1, 2, 5, 9]), 5).tolist()
    [2, 5, 5, 5, 9]
    """
    missing = int(np.count_nonzero(ordered == MISSING))
    lower = int(np.count_nonzero(ordered < middle)) - missing
    places = np.arange(ordered.size)
    shifted = ordered[np.minimum(places + missing, ordered.size - 1)]
    below, above = places < lower, places >= lower + missing
    filled: NDArray[np.int64] = shifted * below + ordered * above + middle * ~(below | above)
    return filled


def group_sums(ordered: NDArray[np.int64], k: int) -> tuple[list[int], list[int]]:
    """Sums and sizes of groups of k consecutive sorted positions; the last group takes the remainder.

    >>> group_sums(np.array([1, 2, 3, 4, 5]), 2)
    ([3, 12], [2, 3])
    """
    starts = np.arange(0, ordered.size // k * k, k)
    # in two parts, since a sum of positions may not fit into 64 bits
    high, low = np.add.reduceat(ordered >> 26, starts), np.add.reduceat(ordered & 0x3FFFFFF, starts)
    sums = [(one << 26) + other for one, other in zip(high.tolist(), low.tolist(), strict=True)]
    return sums, np.diff(np.append(starts, ordered.size)).tolist()


def written(attribute: Attribute, lattice: Lattice, position: int) -> Any:
    """The value at a position in the column's form: a number, a date or a label."""
    value = min(lattice.lo + position * lattice.step, lattice.hi)
    if attribute.kind_facts.listed:
        return attribute.ordered[int(value)]
    return day_text(value) if attribute.kind_facts.days and is_day(value) else float(value)
