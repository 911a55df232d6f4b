"""What an answer can be and what is expected of it. In: options of a query. Out: supports, priors, distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.kinds import Lattice, day_text, is_day
from shoal.columns.schema import Attribute
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.query.facts import Facts
from shoal.query.parsing import EDGE, as_list, as_mapping, as_number, as_text, check_keys
from shoal.query.refinement import (
    Grid,
    Labels,
    Points,
    Prior,
    Support,
    absolute,
    categorical,
    combined,
    from_table,
    histogram,
    joint,
    nominal,
    normal,
    product,
    uniform,
)
from shoal.query.refinement.distances import Distance
from shoal.query.where import constant, label_numbers, no_such_label
from shoal.taxonomy import Taxonomy
from shoal.text import Message

# a lattice that nobody asked for in so many words is made no finer than this
_DEFAULT_STEPS = 1 << 12
_MOST_ANSWERS = 1 << 16
_MOST_LABELS = 1000
_MOST_DISTANCES = 200
_MOST_PARTS = 6
# what a query is made of
_DISTANCE = Message.of("part-distance")
_MASS = Message.of("part-mass")
_MASS_OF_PRIOR = Message.of("part-mass-of-prior")
_RANGE_VALUE = Message.of("part-range-value")
_ROW = Message.of("part-row")
_VALUE = Message.of("part-value")
_WEIGHT = Message.of("part-weight")
# what a part of a query may say about its answers
PART_OPTIONS = ("range", "values", "prior", "distance")

Read = Callable[[str], Fraction]


@internal()
@dataclass(frozen=True, slots=True)
class Expected:
    """One part of an answer: the answers there are, what is expected of them, and which of them are near each other."""

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


def of_column(facts: Facts, attribute: Attribute, options: dict[str, Any]) -> Expected:
    """Answers that are values of a column."""
    if not facts.has_lattice(attribute) or attribute.kind_facts.listed:
        return _of_labels(facts, attribute, options)
    return of_lattice(facts.lattice(attribute.name), options, attribute)


def of_lattice(lattice: Lattice | None, options: dict[str, Any], attribute: Attribute | None) -> Expected:
    """Answers that are numbers or dates: a range of the query's own, or the lattice, coarser if it is very fine."""
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
    return Expected(prior, _distance(options.get("distance", "absolute"), lattice.steps + 1), read, date)


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


def _of_labels(facts: Facts, attribute: Attribute, options: dict[str, Any]) -> Expected:
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
        return Expected(prior, from_table(_between(attribute.tree, labels)))
    return Expected(prior, _distance(options.get("distance", usual), len(labels)))


@lru_cache(maxsize=64)
def _between(taxonomy: Taxonomy, labels: tuple[str, ...]) -> NDArray[np.float64]:
    """The distances between all labels, of which the truth then picks a row."""
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


def together(parts: list[Expected], options: dict[str, Any]) -> Expected:
    """A vector of answers: independent parts, or a joint prior of its own; distances added up or the largest."""
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
        return Expected(product(*(part.prior for part in parts)), distance)
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
    return Expected(joint(grid.parts, masses), distance)


def _read_answer(part: Expected, text: str) -> Any:
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
