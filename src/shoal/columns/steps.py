"""Steps before protection: recode, band or bound one column, record by record.

A step is public: its parameters are in the schema. Its effect on a cell depends on that cell alone, so neighbouring
tables stay neighbours and every claim about the records still holds. Parameters taken from the records (source
"these records") taint the statement, as ranges do, and are withheld from publication.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import display
from shoal.columns.attribute import RECORDS, SOURCES, Attribute
from shoal.columns.column import texts
from shoal.columns.kinds import ISO_DAY, day_number
from shoal.display import displayed, shortened
from shoal.errors import OptionError, closest
from shoal.numbers import decimal_text, exact
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.io import Table


# a number, an open end, or the text of a date
Bound = Fraction | float | str
Spacing = Literal["equal", "log", "quantiles"]
Verb = Literal["recode", "top", "bottom", "truncate", "drop"]
VERBS: tuple[Verb, ...] = get_args(Verb)

# the parameters of each kind of step, the required one first
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "bands": ("breaks", "labels", "closed", "both_ends", "outside"),
    "level": ("level",),
    "mapping": ("mapping",),
    "top": ("at", "put"),
    "bottom": ("at", "put"),
    "truncate": ("length",),
    "drop": (),
}
_RECODES = ("breaks", "level", "mapping")
# how many names of a recoding are shown, and how much of each
_MOST_NAMES, _LONGEST_NAME = 8, 40
_SHOWN = 12


def as_number(bound: Bound) -> float:
    """A bound as a number; dates as days since 1970-01-01."""
    return float(day_number(bound, Message("a-date"))) if isinstance(bound, str) else float(bound)


def bound_text(bound: Any) -> str:
    """A bound in its usual notation."""
    return decimal_text(bound) if isinstance(bound, Fraction) else str(bound)


def bound_of(value: object, what: Message) -> Bound:
    """A bound from its form in a schema; an error names the step and the key."""
    if isinstance(value, date):
        value = value.isoformat()[:10]
    if isinstance(value, str) and ISO_DAY.match(value.strip()):
        day_number(value, what)
        return value.strip()
    if isinstance(value, (float, Decimal)) and math.isinf(value):
        return float(value)
    return exact(value, what)


def _settled(step: Step, before: Attribute, *facts: str, names_all: bool) -> dict[str, str]:
    """The sources of an attribute's facts after a step that determines the given facts.

    Facts taken from the records remain so, unless the step itself names every possible result (`names_all`) and its
    source.
    """
    said = "" if step.from_records else step.source
    domain = before.source.get("domain", "")
    found = dict(before.source)
    for fact in facts:
        read_off = RECORDS in (domain, before.source.get(fact))
        found[fact] = RECORDS if read_off and not (said and names_all) else said or domain
    return {fact: origin for fact, origin in found.items() if origin}


def _bands_after_step(step: Step, before: Attribute) -> Attribute:
    if not before.kind_facts.ranged:
        raise step.refusal("breaks-numbers-dates-column", found=before.kind)
    if any(isinstance(end, str) for end in step.breaks) and not before.kind_facts.days:
        raise step.refusal("breaks-dates-column", found=before.kind)
    if len(step.bands) < 2:
        raise step.refusal("band-all-values-says-nothing")
    settled = _settled(step, before, "kind", "type", "domain", names_all=True)
    return replace(_without_range(before), kind="ordinal", type="text", ordered=step.bands, source=settled)


def _without_range(before: Attribute) -> Attribute:
    """A nominal column, without properties that only numbers and dates have."""
    return replace(
        before, kind="nominal", type="text", lo=None, hi=None, step=None, decimals=None, format=None
    )


def _level(step: Step, before: Attribute) -> Attribute:
    tree = replace(before, missing=None).tree
    if before.taxonomy is None or tree is None:
        raise step.refusal("level-needs-taxonomy-nominal-column")
    assert step.level is not None
    if step.level >= tree.levels:
        raise step.refusal("level-above-values-below-level-1", levels=tree.levels, found=step.level)
    groups = tuple(dict.fromkeys(above(step, before).values()))
    return replace(
        before,
        taxonomy=tree.minimal(groups),
        values=groups,
        type="text",
        source=_settled(step, before, "type", "domain", names_all=False),
    )


def above(step: Step, before: Attribute) -> dict[str, str]:
    """The ancestor of each value at the step's level; a value above that level stays."""
    tree = replace(before, missing=None).tree
    assert tree is not None
    assert step.level is not None
    found = {}
    for code in tree.domain:
        line = tree.ancestors(code)
        found[tree.labels[code]] = tree.labels[line[max(len(line) - 1 - step.level, 0)]]
    return found


def _mapping_after_step(step: Step, before: Attribute) -> Attribute:
    if before.kind_facts.ranged:
        raise step.refusal("mapping-names-column", found=before.kind)
    renamed = dict(step.mapping)
    names = before.ordered or before.values or (before.taxonomy.values if before.taxonomy is not None else ())
    if names:
        for old in renamed:
            if old not in names:
                raise step.refusal("column-no-value", found=old, hint=closest(old, names))
    now = [renamed.get(name, name) for name in names]
    merged = tuple(dict.fromkeys(now))
    if before.ordered and len(merged) != 1 + sum(a != b for a, b in itertools.pairwise(now)):
        raise step.refusal("values-new-name-neighbours-order")
    if before.ordered and len(merged) < 2:
        raise step.refusal("name-all-values-says-nothing")
    source = _settled(step, before, "type", "domain", names_all=bool(names) and set(names) <= set(renamed))
    settled = replace(before, type="text", source=source)
    if before.ordered:
        return replace(settled, ordered=merged)
    return replace(settled, values=merged, taxonomy=None)


def _coded_after_step(step: Step, before: Attribute) -> Attribute:
    if not before.kind_facts.ranged:
        raise step.refusal("numbers-dates-column", found=before.kind)
    if before.kind_facts.days != isinstance(step.at, str):
        code = "at-date" if before.kind_facts.days else "at-number"
        raise step.refusal(code, found=bound_text(step.at))
    at, put = (_exact(end) for end in (step.at, step.at if step.put is None else step.put))
    if before.type == "integer" and put.denominator != 1:
        raise step.refusal("column-holds-whole-numbers-none", found=bound_text(put))
    if before.lo is None or before.hi is None:
        return before
    is_top = step.do == "top"
    inside = (before.lo, min(before.hi, at)) if is_top else (max(before.lo, at), before.hi)
    # no value is replaced if the declared range ends before
    touched = before.hi > at if is_top else before.lo < at
    lo, hi = (min(inside[0], put), max(inside[1], put)) if touched else (before.lo, before.hi)
    if lo >= hi:
        raise step.refusal("nothing-left-between", lo=bound_text(lo), hi=bound_text(hi))
    return replace(before, lo=lo, hi=hi)


def _truncate(step: Step, before: Attribute) -> Attribute:
    if before.kind_facts.ordered:
        raise step.refusal("truncate-needs-codes", found=before.kind)
    if before.taxonomy is not None:
        raise step.refusal("the-column-has-a-taxonomy")
    values = tuple(dict.fromkeys(value[: step.length].strip() for value in before.values))
    if before.values and len(values) < 2:
        raise step.refusal("code-all-values-says-nothing")
    return replace(
        before, type="text", values=values, source=_settled(step, before, "type", "domain", names_all=False)
    )


def _exact(bound: Any) -> Fraction:
    return day_number(bound, Message("a-date"))


def withheld(step: Step, before: Attribute) -> Attribute:
    """The attribute after a step whose parameters are not published: no range, and no names."""
    if step.do in ("recode", "truncate"):
        return _without_range(replace(before, ordered=(), values=(), taxonomy=None))
    return replace(before, lo=None, hi=None)


def _drop(step: Step, before: Attribute) -> None:
    return None


AFTER: Mapping[str, Callable[[Step, Attribute], Attribute | None]] = {
    "bands": _bands_after_step,
    "level": _level,
    "mapping": _mapping_after_step,
    "top": _coded_after_step,
    "bottom": _coded_after_step,
    "truncate": _truncate,
    "drop": _drop,
}


def breaks_of(values: ArrayLike, classes: int, spacing: Spacing = "equal") -> tuple[Fraction, ...]:
    """Breaks of bands taken from the records: their source is "these records", and they taint a statement.

    Args:
        values: values of the column, NaN for missing ones.
        classes: number of bands; a single band reaches from the minimum minus 1 to the maximum plus 1.
        spacing: `equal`: equal widths from the minimum minus 1 to the maximum plus 1, `log`: the same for
            logarithms, both rounded to integers if these are distinct; `quantiles`: about as many records in each.

    Bands with these breaks include both ends (`both_ends`), unless there is only one class.

    >>> [int(b) for b in breaks_of([17, 30, 90], 5)]
    [16, 31, 46, 61, 76, 91]
    """
    if type(classes) is not int or classes < 1:
        raise OptionError("classes-whole-number-least-1", option="classes", found=classes)
    if spacing not in get_args(Spacing):
        raise OptionError(
            "unknown-spacing", option="spacing", found=spacing, allowed=tuple(get_args(Spacing))
        )
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    if not found.size:
        raise OptionError("there-no-value-take-breaks-from")
    least, largest = float(found.min()), float(found.max())
    if classes == 1:
        ends = np.array([least - 1, largest + 1])
    elif spacing == "quantiles":
        # equal quantiles become one break
        ends = np.unique(np.quantile(found, np.linspace(0, 1, classes + 1)))
    else:
        if spacing == "log" and least <= 0:
            raise OptionError("log-spacing-needs-positive-values-least", found=least)
        low, high = (math.log(least), math.log(largest)) if spacing == "log" else (least, largest)
        ends = np.linspace(low - 1, high + 1, classes + 1)
        ends = np.exp(ends) if spacing == "log" else ends
        whole = np.rint(ends)
        ends = whole if np.unique(whole).size == ends.size else ends
    return tuple(exact(float(end), Message("a-break")) for end in ends)


def places_in(
    breaks: Sequence[float], values: NDArray[np.float64], *, right: bool = True, both_ends: bool = False
) -> NDArray[np.int64]:
    """The band of each value; -1 for a missing value, -2 for a value outside all bands.

    Args:
        right: bands include their upper bound, not their lower one.
        both_ends: the outermost bound on the open side belongs to its band too.
    """
    ends = np.array(breaks)
    places = np.searchsorted(ends, values, side="left" if right else "right").astype(np.int64) - 1
    if both_ends:
        edge, band = (ends[0], 0) if right else (ends[-1], len(ends) - 2)
        places = np.where(values == edge, band, places)
    places = np.where((places < 0) | (places > len(ends) - 2), -2, places)
    return np.where(np.isnan(values), -1, places)


@displayed(display.of_step)
@dataclass(frozen=True, slots=True)
class Step:
    """One step before protection, on one column.

    Attributes:
        do: `recode`, `top`, `bottom`, `truncate` or `drop`.
        column: the column it changes.
        breaks: recode into bands: their bounds, ascending; -inf and inf are open ends.
        labels: names of the bands, by default such as "(0,25]".
        closed: which bound a band includes, `right` or `left`.
        both_ends: the outermost bound on the open side belongs to its band too.
        outside: treatment of values outside all bands: `error` or `missing`.
        level: recode to this level of the taxonomy; the root is level 0.
        mapping: recode names: pairs of old and new; other names stay.
        at: values above (top) or below (bottom) it are replaced; an equal value stays.
        put: the replacement, `at` by default.
        length: number of leading characters of a code to keep.
        source: source of the parameters.

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
    length: int | None = None
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
    def truncate(cls, column: str, length: int, source: str = "") -> Step:
        """Codes, such as those of diagnoses or postcodes, become their first `length` characters."""
        return cls.from_dict({"truncate": column, "length": length, "source": source})

    @classmethod
    def drop(cls, column: str, source: str = "") -> Step:
        """The column is excluded from everything that follows."""
        return cls.from_dict({"drop": column, "source": source})

    @classmethod
    def from_dict(cls, raw: Any) -> Step:
        """A step from its form in a schema file: `recode = "age"`, and its parameters.

        Raises:
            OptionError: one line that names the step and the parameter.
        """
        verbs = [verb for verb in VERBS if isinstance(raw, Mapping) and verb in raw]
        if len(verbs) != 1 or not isinstance(raw[verbs[0]], str):
            raise OptionError("step-entry", allowed=" | ".join(VERBS))
        verb = verbs[0]
        known = {f.name for f in fields(cls)} - {"do", "column"}
        values = {key: value for key, value in raw.items() if key != verb}
        where = {"where": Message.of("in-step", do=verb, column=raw[verb]), "column": raw[verb]}

        def of_key(key: str) -> Message:
            return Message.of("step-key", do=verb, column=raw[verb], key=key)

        for key in values:
            if key not in known:
                raise OptionError("unknown-key", **where, key=key, hint=closest(key, known))
        if "breaks" in values:
            bounds = _listed(values["breaks"], where, "breaks")
            values["breaks"] = tuple(bound_of(bound, of_key("breaks")) for bound in bounds)
        if "labels" in values:
            values["labels"] = tuple(str(text) for text in _listed(values["labels"], where, "labels"))
        if "mapping" in values:
            values["mapping"] = _pairs(values["mapping"], where)
        for key in ("at", "put"):
            if values.get(key) is not None:
                values[key] = bound_of(values[key], of_key(key))
        return cls(verb, raw[verb], **values)

    def to_dict(self) -> dict[str, Any]:
        """Plain values without defaults, as `from_dict` reads them."""
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
                "unknown-step", found=self.do, allowed=tuple(VERBS), hint=closest(self.do, VERBS)
            )
        if self.source and self.source not in SOURCES:
            raise self.refusal(
                "unknown-source",
                found=self.source,
                allowed=tuple(SOURCES),
                hint=closest(self.source, SOURCES),
            )
        if self.withheld:
            return
        kind = self.kind
        for field in fields(self):
            given = getattr(self, field.name) != field.default
            if given and field.name not in ("do", "column", "source", *_PARAMETERS[kind]):
                raise self.refusal("no-parameter-step", field=field.name)
        if kind == "bands":
            self._check_bands()
        if kind == "level" and (type(self.level) is not int or self.level < 1):
            raise self.refusal("level-whole-number-least-1", found=self.level)
        if kind == "truncate" and (type(self.length) is not int or self.length < 1):
            raise self.refusal("length-whole-number-least-1", found=self.length)
        if kind in ("top", "bottom"):
            if self.at is None:
                raise self.refusal("needs-value-from-others-replaced")
            if any(isinstance(end, float) for end in (self.at, self.put)):
                raise self.refusal("at-and-put-must-be-finite")

    def _check_bands(self) -> None:
        ends = self.ends
        if len(ends) < 2 or any(a >= b for a, b in itertools.pairwise(ends)):
            raise self.refusal("breaks-least-two-numbers-dates-ascending")
        if self.closed not in ("right", "left"):
            raise self.refusal("closed-not-right-left", found=self.closed)
        if self.outside not in ("error", "missing"):
            raise self.refusal("outside-not-error-missing", found=self.outside)
        if self.labels and len(self.labels) != len(ends) - 1:
            raise self.refusal(
                "breaks-make-bands-there-labels",
                breaks=len(ends),
                bands=len(ends) - 1,
                labels=len(self.labels),
            )
        if len(set(self.bands)) < len(self.bands) or not all(text.strip() for text in self.bands):
            raise self.refusal("labels-different-from-each-other-not")

    @property
    def where(self) -> Message:
        """The name of the step in an error."""
        return Message.of("in-step", do=self.do, column=self.column)

    def refusal(self, code: str, **facts: Any) -> OptionError:
        """An error about the step."""
        return OptionError(code, where=self.where, column=self.column, **facts)

    @property
    def withheld(self) -> bool:
        """Whether the parameters were taken from the records, and left out of the published form."""
        bare = not any(getattr(self, name) for name in (*_RECODES, "at", "length"))
        return self.source == RECORDS and self.do != "drop" and bare

    @property
    def from_records(self) -> bool:
        return self.source == RECORDS

    @property
    def kind(self) -> str:
        """The kind of step: bands, level, mapping, top, bottom, truncate or drop."""
        if self.do != "recode":
            return self.do
        given = [name for name in _RECODES if getattr(self, name) not in ((), None)]
        if len(given) != 1:
            raise self.refusal("give-breaks-level-mapping")
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
        """The complete step as a text, equal for equal steps."""
        return json.dumps(self.to_dict(), default=bound_text, ensure_ascii=False)

    @property
    def words(self) -> str:
        """Description for statement and log, without parameters that were taken from the records."""
        return str(self.message)

    @property
    def message(self) -> Message:
        """Description of the step as a message."""
        if self.do == "drop":
            return Message.of("step-drop", column=self.column)
        if self.from_records:
            return Message.of(_FROM_RECORDS[self.do], column=self.column)
        code, facts = _SAID[self.kind](self)
        return Message.of(code, column=self.column, **facts)

    def public(self) -> Step:
        """The published form of the step."""
        return Step(self.do, self.column, source=self.source) if self.from_records else self

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The band of each value; -1 for a missing value, -2 for a value outside all bands."""
        return places_in(self.ends, values, right=self.closed == "right", both_ends=self.both_ends)

    def attribute(self, before: Attribute) -> Attribute | None:
        """The public facts about the column after the step; None if it is dropped.

        Raises:
            OptionError: the column's kind does not support the step, or its facts contradict it.
        """
        # codes for missing values are removed before the first step
        before = replace(before, na=())
        if self.withheld:
            return withheld(self, before)
        return AFTER[self.kind](self, before)


def _listed(value: object, where: Mapping[str, Any], key: str) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionError("step-key-not-a-list", **where, key=key, found=value)
    return value


def _pairs(value: Any, where: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = value.items() if isinstance(value, Mapping) else value
    try:
        pairs = tuple((str(old).strip(), str(new).strip()) for old, new in found)
    except (TypeError, ValueError):
        raise OptionError("mapping-table-old-new-names", **where, found=value) from None
    if not pairs or not all(old and new for old, new in pairs):
        raise OptionError("mapping-name-something-no-name-may", **where)
    if len({old for old, _ in pairs}) < len(pairs):
        raise OptionError("mapping-names-value-twice", **where)
    return pairs


_FROM_RECORDS = {
    "recode": "step-recode-from-records",
    "top": "step-top-from-records",
    "bottom": "step-bottom-from-records",
    "truncate": "step-truncate-from-records",
}


def _bands(step: Step) -> tuple[str, dict[str, Any]]:
    code = "step-bands-or-missing" if step.outside == "missing" else "step-bands"
    return code, {"count": len(step.bands), "bands": step.bands}


def _mapping(step: Step) -> tuple[str, dict[str, Any]]:
    groups: dict[str, list[str]] = {}
    for old, new in step.mapping:
        groups.setdefault(new, []).append(old)
    return "step-mapping", {"changes": tuple(_change(old, new) for new, old in groups.items())}


def _change(names: Sequence[str], new: str) -> Message:
    old, more = (
        tuple(shortened(name, _LONGEST_NAME) for name in names[:_MOST_NAMES]),
        len(names) - _MOST_NAMES,
    )
    if more > 0:
        return Message.of("many-values-become", old=old, more=more, new=new)
    return Message.of("values-become" if len(old) > 1 else "value-becomes", old=old, new=new)


def _coded(code: str) -> Callable[[Step], tuple[str, dict[str, Any]]]:
    return lambda step: (
        code,
        {"at": bound_text(step.at), "put": bound_text(step.at if step.put is None else step.put)},
    )


# the effect of each kind of step, as a code and its facts
_SAID: Mapping[str, Callable[[Step], tuple[str, dict[str, Any]]]] = {
    "bands": _bands,
    "level": lambda step: ("step-level", {"level": step.level}),
    "mapping": _mapping,
    "top": _coded("step-top"),
    "bottom": _coded("step-bottom"),
    "truncate": lambda step: (
        "step-truncate-to-one" if step.length == 1 else "step-truncate",
        {"length": step.length},
    ),
}


def preview(schema: Schema, table: Table) -> list[Message]:
    """Each step with the number of cells it changed, and the values of a recoded column with their counts.

    Facts about the records: for the custodian, not for publication. No privacy budget is used.
    """
    lines = []
    steps = schema.declared.steps
    last = {step.column: place for place, step in enumerate(steps)}
    for place, (step, (_, changed)) in enumerate(zip(steps, table.steps, strict=True)):
        source = Message.of("step-source" if step.source else "step-without-source", source=step.source)
        facts = {"step": step.message, "source": source, "changed": changed, "n": table.n}
        if step.do in ("recode", "truncate") and last[step.column] == place:
            lines.append(
                Message.of("step-done-with-counts", **facts, counts=_counts(table, step.column, schema))
            )
        else:
            lines.append(Message.of("step-done", **facts))
    return lines


def _counts(table: Table, name: str, schema: Schema) -> tuple[Message, ...]:
    found, which = texts(table, name)
    counts = Counter(which.tolist())
    order = {text: place for place, text in enumerate(schema.stepped[name].ordered)}
    shown = sorted(enumerate(found), key=lambda item: order.get(item[1], -counts[item[0]]))
    said = [Message.of("value-count", value=text, count=counts[place]) for place, text in shown[:_SHOWN]]
    if len(found) > _SHOWN:
        said.append(Message.of("other-value-count", count=len(found) - _SHOWN))
    if counts[-1]:
        said.append(Message.of("missing-count", count=counts[-1]))
    return tuple(said)
