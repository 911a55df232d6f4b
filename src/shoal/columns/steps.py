"""Steps before protection: what a custodian declares comes in, checked steps leave that change one record at a time.

A step is public: its parameters stand in the schema. What it does to a cell depends on that cell alone, so neighbouring
tables stay neighbours and every claim about the records holds as before. Parameters that were taken from the records
(source "these records") taint the statement, as ranges do, and are withheld from what is published.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import summaries
from shoal.columns.attribute import RECORDS, SOURCES, Attribute
from shoal.columns.dates import ISO_DAY, day_number
from shoal.decimals import decimal_text, exact
from shoal.display import displayed, names_in_words
from shoal.errors import OptionError, did_you_mean

Verb = Literal["recode", "top", "bottom", "drop"]
VERBS: tuple[Verb, ...] = get_args(Verb)
Spacing = Literal["equal", "log", "quantiles"]
# a number, an open end, or the text of a date
Bound = Fraction | float | str

# which parameters each kind of step has, the needed one first
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "bands": ("breaks", "labels", "closed", "both_ends", "outside"),
    "level": ("level",),
    "mapping": ("mapping",),
    "top": ("at", "put"),
    "bottom": ("at", "put"),
    "drop": (),
}
_RECODES = ("breaks", "level", "mapping")


@displayed(summaries.of_step)
@dataclass(frozen=True, slots=True)
class Step:
    """One step before protection, on one column.

    Attributes:
        do: `recode`, `top`, `bottom` or `drop`.
        column: which column.
        breaks: recode into bands: their bounds, ascending; -inf and inf are open ends.
        labels: names of the bands, as "(0,25]" by default.
        closed: which bound belongs to a band, `right` or `left`.
        both_ends: the outermost bound on the open side belongs to its band too.
        outside: what becomes of values outside of all bands: `error` or `missing`.
        level: recode to this level of the taxonomy; the root is level 0.
        mapping: recode names: pairs of old and new; other names stay.
        at: values above (top) or below (bottom) it are replaced; an equal value stays.
        put: by what, `at` by default.
        source: where the parameters are known from.

    >>> Step.recode("age", breaks=[0, 25, 65, math.inf]).words
    'column age is recoded into 3 bands: (0,25], (25,65], (65,inf)'
    """

    do: str
    column: str
    breaks: tuple[Bound, ...] = ()
    labels: tuple[str, ...] = ()
    closed: str = "right"
    both_ends: bool = False
    outside: str = "error"
    level: int | None = None
    mapping: tuple[tuple[str, str], ...] = ()
    at: Bound | None = None
    put: Bound | None = None
    source: str = ""

    @classmethod
    def recode(cls, column: str, **parameters: Any) -> Step:
        """Bands (`breaks`), a level of the taxonomy (`level`) or new names (`mapping`)."""
        return cls.from_dict({"recode": column, **parameters})

    @classmethod
    def top(cls, column: str, at: Any, **parameters: Any) -> Step:
        """Values above `at` become `put`, `at` itself by default."""
        return cls.from_dict({"top": column, "at": at, **parameters})

    @classmethod
    def bottom(cls, column: str, at: Any, **parameters: Any) -> Step:
        """Values below `at` become `put`, `at` itself by default."""
        return cls.from_dict({"bottom": column, "at": at, **parameters})

    @classmethod
    def drop(cls, column: str, source: str = "") -> Step:
        """The column takes no part in anything that follows."""
        return cls.from_dict({"drop": column, "source": source})

    @classmethod
    def from_dict(cls, raw: Any) -> Step:
        """A step as a schema file writes it: `recode = "age"`, and its parameters.

        Raises:
            OptionError: one line that names the step and the parameter.
        """
        verbs = [verb for verb in VERBS if isinstance(raw, Mapping) and verb in raw]
        if len(verbs) != 1 or not isinstance(raw[verbs[0]], str):
            raise OptionError(
                f'every [[step]] entry says what is done and to which column, once: {" | ".join(VERBS)} = "column".'
            )
        verb = verbs[0]
        known = {f.name for f in fields(cls)} - {"do", "column"}
        values = {key: value for key, value in raw.items() if key != verb}
        where = f"step {verb} of '{raw[verb]}'"
        for key in values:
            if key not in known:
                raise OptionError(f"{where}: unknown key '{key}'.{did_you_mean(key, known)}")
        if "breaks" in values:
            values["breaks"] = tuple(
                _bound(b, where, "breaks") for b in _listed(values["breaks"], where, "breaks")
            )
        if "labels" in values:
            values["labels"] = tuple(str(text) for text in _listed(values["labels"], where, "labels"))
        if "mapping" in values:
            values["mapping"] = _pairs(values["mapping"], where)
        for key in ("at", "put"):
            if values.get(key) is not None:
                values[key] = _bound(values[key], where, key)
        return cls(verb, raw[verb], **values)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, defaults left out: what `from_dict` reads."""
        found: dict[str, Any] = {self.do: self.column}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("do", "column") or value == field.default:
                continue
            found[field.name] = dict(value) if field.name == "mapping" else value
        return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}

    def __post_init__(self) -> None:
        if self.do not in VERBS:
            raise OptionError(
                f"step '{self.do}' is not one of {', '.join(VERBS)}.{did_you_mean(self.do, VERBS)}"
            )
        if self.source and self.source not in SOURCES:
            raise OptionError(
                f"{self.where}: source '{self.source}' is not one of {', '.join(SOURCES)}."
                f"{did_you_mean(self.source, SOURCES)}"
            )
        if self.withheld:
            return
        kind = self.kind
        for field in fields(self):
            given = getattr(self, field.name) != field.default
            if given and field.name not in ("do", "column", "source", *_PARAMETERS[kind]):
                raise OptionError(f"{self.where}: '{field.name}' is no parameter of this step: leave it out.")
        if kind == "bands":
            self._check_bands()
        if kind == "level" and (type(self.level) is not int or self.level < 1):
            raise OptionError(f"{self.where}: level must be a whole number, at least 1, got {self.level!r}.")
        if kind in ("top", "bottom"):
            if self.at is None:
                raise OptionError(f"{self.where}: it needs at, the value from which on others are replaced.")
            if any(isinstance(end, float) for end in (self.at, self.put)):
                raise OptionError(f"{self.where}: at and put must be finite.")

    def _check_bands(self) -> None:
        ends = self.ends
        if len(ends) < 2 or any(a >= b for a, b in itertools.pairwise(ends)):
            raise OptionError(f"{self.where}: breaks must be at least two numbers or dates, ascending.")
        if self.closed not in ("right", "left"):
            raise OptionError(f"{self.where}: closed '{self.closed}' is not one of right, left.")
        if self.outside not in ("error", "missing"):
            raise OptionError(f"{self.where}: outside '{self.outside}' is not one of error, missing.")
        if self.labels and len(self.labels) != len(ends) - 1:
            raise OptionError(
                f"{self.where}: {len(ends)} breaks make {len(ends) - 1} bands, and there are {len(self.labels)} labels."
            )
        if len(set(self.bands)) < len(self.bands) or not all(text.strip() for text in self.bands):
            raise OptionError(f"{self.where}: labels must be different from each other, and not empty.")

    @property
    def where(self) -> str:
        """How an error names the step."""
        return f"step {self.do} of '{self.column}'"

    @property
    def withheld(self) -> bool:
        """Whether the parameters were taken from the records, and left out of what is published."""
        bare = not any(getattr(self, name) for name in _RECODES) and self.at is None
        return self.source == RECORDS and self.do != "drop" and bare

    @property
    def from_records(self) -> bool:
        return self.source == RECORDS

    @property
    def kind(self) -> str:
        """Which kind of step it is: bands, level, mapping, top, bottom or drop."""
        if self.do != "recode":
            return self.do
        given = [name for name in _RECODES if getattr(self, name) not in ((), None)]
        if len(given) != 1:
            raise OptionError(f"{self.where}: give one of breaks, level and mapping.")
        return "bands" if given == ["breaks"] else given[0]

    @property
    def ends(self) -> tuple[float, ...]:
        """The breaks as numbers; dates as days since 1970-01-01."""
        return tuple(as_number(end) for end in self.breaks)

    @property
    def bands(self) -> tuple[str, ...]:
        """The names of the bands, lowest first."""
        if self.labels:
            return self.labels
        last = len(self.breaks) - 2
        opening, closing = ("(", "]") if self.closed == "right" else ("[", ")")
        found = []
        for place, (low, high) in enumerate(zip(self.breaks, self.breaks[1:], strict=False)):
            left = "[" if self.both_ends and self.closed == "right" and place == 0 else opening
            right = "]" if self.both_ends and self.closed == "left" and place == last else closing
            left, right = ("(" if low == -math.inf else left), (")" if high == math.inf else right)
            found.append(f"{left}{bound_text(low)},{bound_text(high)}{right}")
        return tuple(found)

    @property
    def key(self) -> str:
        """The whole step as one text: two steps are the same if it is."""
        return json.dumps(self.to_dict(), default=bound_text, ensure_ascii=False)

    @property
    def words(self) -> str:
        """What the step does, for statement and log; without parameters that were taken from the records."""
        if self.do == "drop":
            return f"column {self.column} is dropped"
        if self.from_records:
            return f"{_VERB_WORDS[self.do].format(self.column)}, with parameters taken from the data"
        return _WORDS[self.kind](self)

    def public(self) -> Step:
        """The step as it may be published."""
        return Step(self.do, self.column, source=self.source) if self.from_records else self

    def attribute(self, before: Attribute) -> Attribute | None:
        """The public facts about the column after the step; None if it is dropped.

        Raises:
            OptionError: the column is of a kind that has no such step, or its facts and the step do not fit.
        """
        if self.withheld:
            return _withheld(self, before)
        return _AFTER[self.kind](self, before)


def breaks_of(values: ArrayLike, classes: int, spacing: Spacing = "equal") -> tuple[Fraction, ...]:
    """Breaks of bands, taken from the records: their source is "these records", and they taint a statement.

    Args:
        values: of the column, missing ones as NaN.
        classes: number of bands; with 1 the only band reaches from the least value minus 1 to the largest plus 1.
        spacing: `equal` widths from the least value minus 1 to the largest plus 1, `log`: the same of logarithms,
            both in whole numbers if these are different; `quantiles`: about as many records in each.

    Bands with these breaks include both ends (`both_ends`), unless there is one class only.

    >>> [int(b) for b in breaks_of([17, 30, 90], 5)]
    [16, 31, 46, 61, 76, 91]
    """
    if type(classes) is not int or classes < 1:
        raise OptionError(f"classes must be a whole number, at least 1, got {classes!r}.")
    if spacing not in get_args(Spacing):
        raise OptionError(f"spacing '{spacing}' is not one of {', '.join(get_args(Spacing))}.")
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    if not found.size:
        raise OptionError("there is no value to take breaks from.")
    least, largest = float(found.min()), float(found.max())
    if classes == 1:
        ends = np.array([least - 1, largest + 1])
    elif spacing == "quantiles":
        # equal quantiles are one break
        ends = np.unique(np.quantile(found, np.linspace(0, 1, classes + 1)))
    else:
        if spacing == "log" and least <= 0:
            raise OptionError(f"log spacing needs positive values, and the least is {least:g}: use equal.")
        low, high = (math.log(least), math.log(largest)) if spacing == "log" else (least, largest)
        ends = np.linspace(low - 1, high + 1, classes + 1)
        ends = np.exp(ends) if spacing == "log" else ends
        whole = np.rint(ends)
        ends = whole if np.unique(whole).size == ends.size else ends
    return tuple(exact(float(end), "a break") for end in ends)


def places_in_bands(step: Step, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The band of each value; -1 for a missing one, -2 outside of all bands."""
    ends = np.array(step.ends)
    right = step.closed == "right"
    places = np.searchsorted(ends, values, side="left" if right else "right").astype(np.int64) - 1
    if step.both_ends:
        edge, band = (ends[0], 0) if right else (ends[-1], len(ends) - 2)
        places = np.where(values == edge, band, places)
    places = np.where((places < 0) | (places > len(ends) - 2), -2, places)
    return np.where(np.isnan(values), -1, places)


def as_number(bound: Bound) -> float:
    """A bound as a number; a date as days since 1970-01-01."""
    return float(day_number(bound, "a date")) if isinstance(bound, str) else float(bound)


def bound_text(bound: Any) -> str:
    """A bound as people write it."""
    return decimal_text(bound) if isinstance(bound, Fraction) else str(bound)


def _bound(value: object, where: str, key: str) -> Bound:
    if isinstance(value, date):
        value = value.isoformat()[:10]
    if isinstance(value, str) and ISO_DAY.match(value.strip()):
        day_number(value, f"{where}: {key}")
        return value.strip()
    if isinstance(value, (float, Decimal)) and math.isinf(value):
        return float(value)
    return exact(value, f"{where}: {key}")


def _listed(value: object, where: str, key: str) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionError(f"{where}: {key} must be a list, got {value!r}.")
    return value


def _pairs(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    found = value.items() if isinstance(value, Mapping) else value
    try:
        pairs = tuple((str(old).strip(), str(new).strip()) for old, new in found)
    except (TypeError, ValueError):
        raise OptionError(f"{where}: mapping must be a table of old and new names, got {value!r}.") from None
    if not pairs or not all(old and new for old, new in pairs):
        raise OptionError(f"{where}: mapping must name something, and no name may be empty.")
    if len({old for old, _ in pairs}) < len(pairs):
        raise OptionError(f"{where}: mapping names a value twice.")
    return pairs


def _settled(step: Step, before: Attribute, *facts: str) -> dict[str, str]:
    """The sources of an attribute after a step: of what the step decides, that of the step."""
    kept = {fact: origin for fact, origin in before.source.items() if fact not in facts}
    known = step.source if step.source and not step.from_records else before.source.get("domain", "")
    return kept | (dict.fromkeys(facts, known) if known and known != RECORDS else {})


def _bands(step: Step, before: Attribute) -> Attribute:
    if not before.kind_facts.ranged:
        raise OptionError(f"{step.where}: breaks are for numbers and dates, and the column is {before.kind}.")
    if any(isinstance(end, str) for end in step.breaks) and not before.kind_facts.days:
        raise OptionError(f"{step.where}: its breaks are dates, and the column is {before.kind}.")
    if len(step.bands) < 2:
        raise OptionError(f"{step.where}: one band for all values says nothing: drop the column.")
    settled = _settled(step, before, "kind", "type", "domain")
    return replace(_without_range(before), kind="ordinal", type="text", ordered=step.bands, source=settled)


def _without_range(before: Attribute) -> Attribute:
    """A column of names, without what only numbers and dates have."""
    return replace(
        before, kind="nominal", type="text", lo=None, hi=None, step=None, decimals=None, format=None
    )


def _level(step: Step, before: Attribute) -> Attribute:
    tree = replace(before, missing=None).tree
    if before.taxonomy is None or tree is None:
        raise OptionError(f"{step.where}: level needs the taxonomy of a nominal column: declare one.")
    assert step.level is not None
    if step.level >= tree.levels:
        raise OptionError(
            f"{step.where}: level must be above its values, below {tree.levels}, got {step.level}: level 1 is just "
            "below the root."
        )
    groups = tuple(dict.fromkeys(above(step, before).values()))
    return replace(
        before,
        taxonomy=tree.minimal(groups),
        values=groups,
        type="text",
        source=_settled(step, before, "type", "domain"),
    )


def above(step: Step, before: Attribute) -> dict[str, str]:
    """The concept at the level of the step above each value; a value that is not so deep stays."""
    tree = replace(before, missing=None).tree
    assert tree is not None
    assert step.level is not None
    found = {}
    for code in tree.domain:
        line = tree.ancestors(code)
        found[tree.labels[code]] = tree.labels[line[max(len(line) - 1 - step.level, 0)]]
    return found


def _mapping(step: Step, before: Attribute) -> Attribute:
    if before.kind_facts.ranged:
        raise OptionError(
            f"{step.where}: mapping is for names, and the column is {before.kind}: give breaks, or declare it nominal."
        )
    renamed = dict(step.mapping)
    names = before.ordered or before.values or (before.taxonomy.values if before.taxonomy is not None else ())
    if names:
        for old in renamed:
            if old not in names:
                raise OptionError(f"{step.where}: the column has no value '{old}'.{did_you_mean(old, names)}")
    now = [renamed.get(name, name) for name in names]
    merged = tuple(dict.fromkeys(now))
    if before.ordered and len(merged) != 1 + sum(a != b for a, b in itertools.pairwise(now)):
        raise OptionError(f"{step.where}: values with one new name must be neighbours in the order.")
    if before.ordered and len(merged) < 2:
        raise OptionError(f"{step.where}: one name for all values says nothing: drop the column.")
    settled = replace(before, type="text", source=_settled(step, before, "type", "domain"))
    if before.ordered:
        return replace(settled, ordered=merged)
    return replace(settled, values=merged, taxonomy=None)


def _coded(step: Step, before: Attribute) -> Attribute:
    if not before.kind_facts.ranged:
        raise OptionError(f"{step.where}: it is for numbers and dates, and the column is {before.kind}.")
    if before.kind_facts.days != isinstance(step.at, str):
        shown = "a date such as 1984-05-31" if before.kind_facts.days else "a number"
        raise OptionError(f"{step.where}: at must be {shown}, got '{bound_text(step.at)}'.")
    at, put = (_exact(end) for end in (step.at, step.at if step.put is None else step.put))
    if before.type == "integer" and put.denominator != 1:
        raise OptionError(f"{step.where}: the column holds whole numbers, and {bound_text(put)} is none.")
    if before.lo is None or before.hi is None:
        return before
    is_top = step.do == "top"
    inside = (before.lo, min(before.hi, at)) if is_top else (max(before.lo, at), before.hi)
    # nothing is replaced where the declared range ends before
    touched = before.hi > at if is_top else before.lo < at
    lo, hi = (min(inside[0], put), max(inside[1], put)) if touched else (before.lo, before.hi)
    if lo >= hi:
        raise OptionError(f"{step.where}: nothing is left between {bound_text(lo)} and {bound_text(hi)}.")
    return replace(before, lo=lo, hi=hi)


def _exact(bound: Any) -> Fraction:
    return day_number(bound, "a date")


def _withheld(step: Step, before: Attribute) -> Attribute:
    """What can be said about a column whose step is not published: no range, and no names."""
    if step.do == "recode":
        return _without_range(replace(before, ordered=(), values=(), taxonomy=None))
    return replace(before, lo=None, hi=None)


def _drop(step: Step, before: Attribute) -> None:
    return None


_AFTER: Mapping[str, Callable[[Step, Attribute], Attribute | None]] = {
    "bands": _bands,
    "level": _level,
    "mapping": _mapping,
    "top": _coded,
    "bottom": _coded,
    "drop": _drop,
}
_VERB_WORDS = {
    "recode": "column {} is recoded",
    "top": "large values of column {} are replaced",
    "bottom": "small values of column {} are replaced",
}


def _mapping_words(step: Step) -> str:
    groups: dict[str, list[str]] = {}
    for old, new in step.mapping:
        groups.setdefault(new, []).append(old)
    return f"column {step.column} is recoded: " + "; ".join(
        f"{names_in_words(old)} {'become' if len(old) > 1 else 'becomes'} {new}"
        for new, old in groups.items()
    )


def _coded_words(side: str) -> Callable[[Step], str]:
    return lambda step: (
        f"values of column {step.column} {side} {bound_text(step.at)} become "
        f"{bound_text(step.at if step.put is None else step.put)}"
    )


_WORDS: Mapping[str, Callable[[Step], str]] = {
    "bands": lambda step: (
        f"column {step.column} is recoded into {len(step.bands)} bands: {', '.join(step.bands)}"
        + ("; values outside become missing" if step.outside == "missing" else "")
    ),
    "level": lambda step: f"column {step.column} is recoded to level {step.level} of its taxonomy",
    "mapping": _mapping_words,
    "top": _coded_words("above"),
    "bottom": _coded_words("below"),
}
