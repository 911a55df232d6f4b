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
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shoal import summaries
from shoal.columns.after_step import AFTER, withheld
from shoal.columns.attribute import RECORDS, SOURCES, Attribute
from shoal.columns.bands import places_in
from shoal.columns.bounds import Bound, as_number, bound_of, bound_text
from shoal.display import displayed, names_in_words
from shoal.errors import OptionError, closest

Verb = Literal["recode", "top", "bottom", "truncate", "drop"]
VERBS: tuple[Verb, ...] = get_args(Verb)

# which parameters each kind of step has, the needed one first
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


@displayed(summaries.of_step)
@dataclass(frozen=True, slots=True)
class Step:
    """One step before protection, on one column.

    Attributes:
        do: `recode`, `top`, `bottom`, `truncate` or `drop`.
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
        length: how many characters of a code are kept, from its beginning.
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
            raise OptionError("step-entry", allowed=" | ".join(VERBS))
        verb = verbs[0]
        known = {f.name for f in fields(cls)} - {"do", "column"}
        values = {key: value for key, value in raw.items() if key != verb}
        where = f"step {verb} of '{raw[verb]}'"
        for key in values:
            if key not in known:
                raise OptionError("unknown-key", where=where, key=key, hint=closest(key, known))
        if "breaks" in values:
            values["breaks"] = tuple(
                bound_of(b, where, "breaks") for b in _listed(values["breaks"], where, "breaks")
            )
        if "labels" in values:
            values["labels"] = tuple(str(text) for text in _listed(values["labels"], where, "labels"))
        if "mapping" in values:
            values["mapping"] = _pairs(values["mapping"], where)
        for key in ("at", "put"):
            if values.get(key) is not None:
                values[key] = bound_of(values[key], where, key)
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
                "step-is-not-one-of", do=self.do, allowed=tuple(VERBS), hint=closest(self.do, VERBS)
            )
        if self.source and self.source not in SOURCES:
            raise OptionError(
                "source-is-not-one-of",
                where=self.where,
                source=self.source,
                allowed=tuple(SOURCES),
                hint=closest(self.source, SOURCES),
            )
        if self.withheld:
            return
        kind = self.kind
        for field in fields(self):
            given = getattr(self, field.name) != field.default
            if given and field.name not in ("do", "column", "source", *_PARAMETERS[kind]):
                raise OptionError("no-parameter-step", where=self.where, field=field.name)
        if kind == "bands":
            self._check_bands()
        if kind == "level" and (type(self.level) is not int or self.level < 1):
            raise OptionError("level-whole-number-least-1", where=self.where, found=self.level)
        if kind == "truncate" and (type(self.length) is not int or self.length < 1):
            raise OptionError("length-whole-number-least-1", where=self.where, found=self.length)
        if kind in ("top", "bottom"):
            if self.at is None:
                raise OptionError("needs-value-from-others-replaced", where=self.where)
            if any(isinstance(end, float) for end in (self.at, self.put)):
                raise OptionError("at-and-put-must-be-finite", where=self.where)

    def _check_bands(self) -> None:
        ends = self.ends
        if len(ends) < 2 or any(a >= b for a, b in itertools.pairwise(ends)):
            raise OptionError("breaks-least-two-numbers-dates-ascending", where=self.where)
        if self.closed not in ("right", "left"):
            raise OptionError("closed-not-right-left", where=self.where, closed=self.closed)
        if self.outside not in ("error", "missing"):
            raise OptionError("outside-not-error-missing", where=self.where, outside=self.outside)
        if self.labels and len(self.labels) != len(ends) - 1:
            raise OptionError(
                "breaks-make-bands-there-labels",
                where=self.where,
                number_of_ends=len(ends),
                number_of_ends_2=len(ends) - 1,
                number_of_labels=len(self.labels),
            )
        if len(set(self.bands)) < len(self.bands) or not all(text.strip() for text in self.bands):
            raise OptionError("labels-different-from-each-other-not", where=self.where)

    @property
    def where(self) -> str:
        """How an error names the step."""
        return f"step {self.do} of '{self.column}'"

    @property
    def withheld(self) -> bool:
        """Whether the parameters were taken from the records, and left out of what is published."""
        bare = not any(getattr(self, name) for name in (*_RECODES, "at", "length"))
        return self.source == RECORDS and self.do != "drop" and bare

    @property
    def from_records(self) -> bool:
        return self.source == RECORDS

    @property
    def kind(self) -> str:
        """Which kind of step it is: bands, level, mapping, top, bottom, truncate or drop."""
        if self.do != "recode":
            return self.do
        given = [name for name in _RECODES if getattr(self, name) not in ((), None)]
        if len(given) != 1:
            raise OptionError("give-breaks-level-mapping", where=self.where)
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

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The band of each value; -1 for a missing one, -2 outside of all bands."""
        return places_in(self.ends, values, right=self.closed == "right", both_ends=self.both_ends)

    def attribute(self, before: Attribute) -> Attribute | None:
        """The public facts about the column after the step; None if it is dropped.

        Raises:
            OptionError: the column is of a kind that has no such step, or its facts and the step do not fit.
        """
        # codes for missing values were read before the first step
        before = replace(before, na=())
        if self.withheld:
            return withheld(self, before)
        return AFTER[self.kind](self, before)


def _listed(value: object, where: str, key: str) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionError("must-be-a-list-got", where=where, key=key, found=value)
    return value


def _pairs(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    found = value.items() if isinstance(value, Mapping) else value
    try:
        pairs = tuple((str(old).strip(), str(new).strip()) for old, new in found)
    except (TypeError, ValueError):
        raise OptionError("mapping-table-old-new-names", where=where, found=value) from None
    if not pairs or not all(old and new for old, new in pairs):
        raise OptionError("mapping-name-something-no-name-may", where=where)
    if len({old for old, _ in pairs}) < len(pairs):
        raise OptionError("mapping-names-value-twice", where=where)
    return pairs


_VERB_WORDS = {
    "recode": "column {} is recoded",
    "top": "large values of column {} are replaced",
    "bottom": "small values of column {} are replaced",
    "truncate": "codes of column {} are truncated",
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
    "truncate": lambda step: (
        f"codes of column {step.column} are truncated to their first "
        f"{'character' if step.length == 1 else f'{step.length} characters'}"
    ),
}
