"""Attributes: kind, role, type, public domain and missing values of a column."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shoal import display
from shoal.columns.kinds import (
    DEFAULT_REAL_STEPS,
    ISO_DAY,
    KIND_FACTS,
    ColumnKind,
    Kind,
    Lattice,
    day_number,
    kind_of_type,
)
from shoal.display import displayed, internal
from shoal.errors import InputError, OptionError, Problems, closest
from shoal.io import DAY_TYPES, ColumnType, DateFormat, known_type
from shoal.numbers import decimal_text, decimals_of, exact, written_decimals
from shoal.taxonomy import Taxonomy
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.description import Absent, Records


POLICIES: Mapping[str, str] = {
    "error": "a missing value is an error",
    "keep": "a missing value may occur in the release, in the way that the claim of the method covers",
    "drop": "rows with a missing value are left out; the number of rows then depends on the records",
    "category": "a missing value counts as one more value",
    "separate": "rows with missing values form clusters of their own, and the values stay missing",
}


# codes for missing values are few: don't know, refused, not applicable
_MOST_CODES = 4


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Missing values after the policies were applied.

    Attributes:
        kept: numbers of the rows that take part, None for all.
        separate: for each column whose gaps stay, which of the kept rows have one.
        dropping, separating: whether a column has that policy, needed or not.
    """

    kept: NDArray[np.int64] | None
    separate: Mapping[str, NDArray[np.bool_]]
    dropping: bool
    separating: bool


def settle_gaps(
    absent: Mapping[str, Absent], policies: Mapping[str, str], records: Records, problems: Problems
) -> Gaps:
    """Apply each column's policy to its missing values.

    Args:
        absent: the missing values of each protected column that has some.
        policies: a policy of `POLICIES` for each of them.
        records: returns which rows remain.
        problems: collects columns where a missing value is an error.

    Raises:
        InputError: no row remains.
    """
    for name, gaps in absent.items():
        if policies[name] == "error":
            problems.add(InputError("missing-values", column=name, row=gaps.first + 1, option="missing"))
    dropping = [name for name in absent if policies[name] == "drop"]
    kept = records.kept(dropping) if dropping else None
    if kept is not None and kept.size == 0:
        raise InputError("every-row-missing-value-protected-column")
    separate: dict[str, NDArray[np.bool_]] = {}
    for name, gaps in absent.items():
        if policies[name] == "separate" and gaps.rows is not None:
            here = gaps.rows if kept is None else gaps.rows[kept]
            if here.any():
                separate[name] = here
    return Gaps(kept, separate, "drop" in policies.values(), "separate" in policies.values())


def missing_codes_hint(name: str, outside: NDArray[np.float64]) -> Message | None:
    """A further sentence if all values outside a range look like codes for missing values: 9, 99, -9, 998.

    It names none of them, because the values outside are a fact about the records.

    >>> missing_codes_hint("hours", np.array([99.0, 98.0, 99.0])).code
    'outside-are-codes'
    >>> missing_codes_hint("hours", np.array([99.0, 120.0]))
    """
    found = np.unique(outside)
    if not 0 < found.size <= _MOST_CODES or not all(map(_looks_like_a_code, found)):
        return None
    return Message.of("outside-are-codes", column=name)


def _looks_like_a_code(value: float) -> bool:
    """Whether a number consists of nines, the last digit perhaps 6 to 8, or is a small negative one."""
    if value != int(value):
        return False
    digits = str(abs(int(value)))
    return (set(digits[:-1]) <= {"9"} and digits[-1] in "6789") or -9 <= value <= -1


def patterns(separate: Mapping[str, NDArray[np.bool_]], columns: tuple[str, ...]) -> NDArray[np.int64] | None:
    """The pattern of missing values of each row in these columns, 0 for none missing; None without such columns."""
    gaps = [separate[column] for column in columns if column in separate]
    if not gaps:
        return None
    # the pattern without gaps sorts first, and is added so that it always exists
    rows = np.vstack([np.stack(gaps, axis=1), np.zeros((1, len(gaps)), dtype=np.bool_)])
    _, numbers = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(numbers.ravel()[:-1], dtype=np.int64)


def with_gaps(values: NDArray[Any], gaps: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Values as objects, None where one is missing."""
    filled = values.astype(object)
    filled[gaps] = None
    return filled


# the category of missing values where they count as a value
MISSING_VALUE = "(missing)"
Role = Literal["identifier", "quasi-identifier", "confidential", "unit", "weight", "other"]

# Where a fact about a column is known from; the last source cannot support a claim.
SOURCES = ("questionnaire", "law", "common knowledge", "an earlier release", "these records")
RECORDS = SOURCES[-1]

# The facts about a column that have a source.
FACTS = ("kind", "type", "domain", "step", "spikes", "max_rows")

# Roles dropped from every release (weights may be kept explicitly).
DROPPED_ROLES: frozenset[Role] = frozenset({"identifier", "unit", "weight"})

# What may be done with a survey weight.
WEIGHT_RELEASES = ("dropped", "masked", "raked")

# more do not fit into a float64
MOST_DECIMALS = 15

# cell contents read as numbers; 007 may be a code
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")

# of a word for a unit, in characters
_LONGEST_WORD = 40

# decimals of bounds that do not determine them
ANY = -1


@displayed(display.of_attribute)
@dataclass(frozen=True)
class Attribute:
    """One column: how it is read, its role, and its public domain.

    Attributes:
        na: codes for missing values in this column, such as 99 or -9.
        called: for a unit column, the word for one unit in statements, such as "household".
        bound: for a unit column, the most rows of one unit that take part; given as {"rows": 3}.
        spikes: for a numeric column, values that many records share, such as 0 or 40 hours.
    """

    name: str
    kind: Kind = "numeric"
    role: Role = "confidential"
    lo: Fraction | None = None
    hi: Fraction | None = None
    step: Fraction | None = None
    ordered: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    spikes: tuple[Fraction, ...] = ()
    taxonomy: Taxonomy | None = None
    missing: str | None = None
    max_rows: int | None = None
    called: str | None = None
    bound: int | None = None
    type: ColumnType | None = None
    decimals: int | None = None
    format: str | None = None
    release: str | None = None
    na: tuple[str, ...] = ()
    # decimals with which lo and hi are written, where the numbers do not show it; ANY for bounds such as 0.0 and 1.0
    places: int | None = None
    # a mapping is not hashable; equality still compares it
    source: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", _sources(self.name, self.source))
        if self.kind not in get_args(Kind):
            raise OptionError("unknown-kind", column=self.name, found=self.kind, allowed=get_args(Kind))
        if self.role not in get_args(Role):
            raise OptionError("unknown-role", column=self.name, found=self.role, allowed=get_args(Role))
        if not self.kind_facts.ordered and self.ordered:
            # a declared order makes names ordinal
            object.__setattr__(self, "kind", "ordinal")
        if (self.lo is None) != (self.hi is None):
            raise OptionError("column-give-both-lo-hi-neither", column=self.name)
        if self.max_rows is not None and (type(self.max_rows) is not int or self.max_rows < 1):
            raise OptionError("column-max-rows-whole-number-least", column=self.name, found=self.max_rows)
        if self.bound is not None:
            object.__setattr__(self, "bound", _rows_of_bound(self))
        if self.called is not None:
            object.__setattr__(self, "called", _word_of_unit(self))
        if len(set(self.ordered)) < len(self.ordered):
            raise OptionError("column-ordered-lists-value-twice", column=self.name)
        if not all(value.strip() for value in self.values):
            raise OptionError("column-values-lists-empty-text-empty", column=self.name)
        if len({value.strip() for value in self.values}) < len(self.values):
            raise OptionError("column-values-lists-value-twice", column=self.name)
        if (self.values or self.taxonomy) and self.kind_facts.ordered:
            raise OptionError("column-values-taxonomy-nominal-columns", column=self.name, found=self.kind)
        if self.missing is not None and self.missing not in POLICIES:
            raise OptionError(
                "column-missing-not", column=self.name, found=self.missing, allowed=tuple(POLICIES)
            )
        object.__setattr__(self, "na", _codes(self.name, self.na))
        if self.release is not None and self.role != "weight":
            raise OptionError("column-release-weight-role", column=self.name, found=self.role)
        if self.release is not None and self.release not in WEIGHT_RELEASES:
            raise OptionError(
                "column-release-not",
                column=self.name,
                found=self.release,
                allowed=tuple(WEIGHT_RELEASES),
                hint=closest(str(self.release), WEIGHT_RELEASES),
            )
        self._check_type()
        if self.taxonomy is not None and not self.values and not _of_leaves(self.taxonomy):
            # a tree with declared values keeps them even where only its links are stored
            object.__setattr__(self, "values", self.taxonomy.values)
        try:
            _ = self.tree
        except InputError as error:
            raise OptionError.saying(error.message) from None
        if self.spikes:
            object.__setattr__(self, "spikes", _spikes(self))
        if self.lo is not None and self.hi is not None and self.kind_facts.ranged:
            self.lattice(integer=False)

    def _check_type(self) -> None:
        if self.type is not None:
            object.__setattr__(self, "type", known_type(self.type, self.name))
        if self.format is not None:
            self._check_format()
        if self.type is not None and not self.kind_facts.takes(self.type):
            raise OptionError(
                "column-type-not",
                column=self.name,
                found=self.kind,
                type=self.type,
                allowed=tuple(self.kind_facts.types or ()),
            )
        if self.decimals is None:
            return
        if self.type is None and self.kind_facts.measured:
            object.__setattr__(self, "type", "decimal")
        if self.type != "decimal":
            raise OptionError("column-decimals-columns-type-decimal", column=self.name)
        if type(self.decimals) is not int or not 0 <= self.decimals <= MOST_DECIMALS:
            raise OptionError(
                "column-decimals-whole-number-from-0",
                column=self.name,
                most=MOST_DECIMALS,
                found=self.decimals,
            )
        if self.step is not None and (self.step * 10**self.decimals).denominator != 1:
            raise OptionError("column-step-more-than-decimals", column=self.name, decimals=self.decimals)

    def _check_format(self) -> None:
        if not isinstance(self.format, str):
            raise OptionError("column-format-text-such-dd-mm", column=self.name, found=self.format)
        try:
            form = DateFormat.of(self.format)
        except OptionError as error:
            raise OptionError("of-column", column=self.name, reason=error) from None
        if self.type is None and self.kind_facts.days:
            object.__setattr__(self, "type", "timestamp" if form.has_time else "date")
        if self.type not in DAY_TYPES:
            raise OptionError("column-format-columns-dates", column=self.name, found=self.kind)

    @property
    def dropped(self) -> bool:
        """Whether the role of the column excludes it from protection and release."""
        return self.role in DROPPED_ROLES and self.release != "masked"

    @property
    def kind_facts(self) -> ColumnKind:
        """The record of the column's kind."""
        return KIND_FACTS[self.kind]

    @cached_property
    def tree(self) -> Taxonomy | None:
        """The taxonomy over the public values of a nominal attribute: that of its schema, or a flat one.

        If missing values are a category, the tree has one more value below the root.
        """
        if self.kind_facts.ordered or not (self.values or self.taxonomy):
            return None
        found = self.taxonomy
        if found is None:
            found = _flat(self.values)
        elif self.values:
            found = found.minimal(self.values, Message.of("column-named", column=self.name))
        if self.missing != "category" or MISSING_VALUE in found.values:
            return found
        if MISSING_VALUE in found.labels:
            raise OptionError(
                "column-group-taxonomy-name-missing-values", column=self.name, missing_value=MISSING_VALUE
            )
        more = Taxonomy.from_pairs([*found.to_pairs(), (MISSING_VALUE, found.labels[0])])
        return more.minimal([*found.values, MISSING_VALUE])

    @property
    def flagged(self) -> bool:
        """Whether "missing" is a separate state beside ordered values, whether or not a gap occurs."""
        return self.missing == "category" and self.kind_facts.ordered

    @property
    def declared_step(self) -> Fraction | None:
        """The declared step, given directly or as a number of decimals, or None."""
        if self.step is None and self.decimals is not None:
            return Fraction(1, 10**self.decimals)
        return self.step

    def lattice(self, *, integer: bool) -> Lattice:
        """The public lattice; `integer`: a column without a declared type is stored as integers (step 1).

        Positions are places in the declared order for an ordinal attribute, days since 1970-01-01 for a date,
        and places of the values in the taxonomy for a nominal attribute.
        """
        if not self.kind_facts.ordered:
            if self.tree is None:
                raise OptionError("column-no-public-values", column=self.name)
            return Lattice(Fraction(0), Fraction(max(len(self.tree.domain) - 1, 1)), Fraction(1))
        if self.kind_facts.listed:
            if len(self.ordered) < 2:
                raise OptionError("column-no-declared-order", column=self.name)
            return Lattice(Fraction(0), Fraction(len(self.ordered) - 1), Fraction(1))
        if self.lo is None or self.hi is None:
            raise OptionError("no-domain", column=self.name, option="domains")
        step, written = self.declared_step, True
        if step is None:
            whole = integer if self.type is None else self.type == "integer"
            written = whole or self.kind_facts.days
            step = Fraction(1) if written else (self.hi - self.lo) / DEFAULT_REAL_STEPS
        try:
            found = Lattice(self.lo, self.hi, step)
        except OptionError as error:
            raise OptionError("of-column", column=self.name, reason=error) from None
        for spike in self.spikes:
            facts = {"column": self.name, "found": decimal_text(spike), "lo": decimal_text(self.lo)}
            if not self.lo <= spike <= self.hi:
                raise OptionError("column-spike-outside", **facts, hi=decimal_text(self.hi))
            if written and ((spike - self.lo) / step).denominator != 1:
                raise OptionError("column-spike-off-lattice", **facts, step=decimal_text(step))
        return found

    @property
    def type_declared(self) -> bool:
        """Whether the type is declared, not inferred from the records."""
        return self.type is not None and self.source.get("type") != RECORDS

    def with_declared_type(self) -> Attribute:
        """The attribute with the type its public domain implies, unless a type is declared.

        Bounds written as integers imply integers, bounds with two decimals imply two decimals, dates imply
        dates, and listed values imply the type all of them can have. A declared step counts like a bound.

        >>> Attribute("age").with_domain((0, 120)).with_declared_type().type
        'integer'
        >>> rent = Attribute("rent").with_domain(("0.00", "900.00")).with_declared_type()
        >>> rent.type, rent.decimals
        ('decimal', 2)
        """
        if self.type is not None or not self.has_domain or self.source.get("domain") == RECORDS:
            return self
        if self.kind_facts.days:
            return replace(self, type="date")
        if not self.kind_facts.ranged:
            names = self.ordered or self.values or (self.taxonomy.values if self.taxonomy is not None else ())
            return replace(self, type=_type_of_names(names))
        assert self.lo is not None
        assert self.hi is not None
        places = _places(self.lo, self.hi) if self.places is None else self.places
        fine = 0 if self.step is None else decimals_of(self.step)
        if places == 0 and fine == 0:
            return replace(self, type="integer", places=0)
        if places == ANY or self.step is not None:
            # values between two steps are rounded to one, so none has too many decimals
            return replace(self, type="decimal", places=ANY)
        return replace(self, type="decimal", decimals=places, places=places)

    @classmethod
    def of_domain(cls, name: str, domain: Any, type: str | None = None) -> Attribute:
        """A column known only by its domain, and perhaps its type: interpreted as it would be with a table.

        Two texts that are numbers are bounds, as for a column of numbers, unless the type is one of names.

        >>> rent = Attribute.of_domain("rent", ("0.00", "900.00")).with_declared_type()
        >>> rent.kind, rent.type, rent.decimals
        ('numeric', 'decimal', 2)
        >>> Attribute.of_domain("code", ("0", "1"), "text").values
        ('0', '1')
        """
        word = None if type is None else known_type(type.partition(":")[0].strip(), name)
        numbers = word is None or kind_of_type(word) == "numeric"
        bounds = numbers and (_is_range(domain) or (spells_numbers(domain) and len(domain) == 2))
        return cls(name, kind="numeric" if bounds else "nominal").with_domain(domain)

    def with_domain(self, domain: Any) -> Attribute:
        """The attribute with a public domain: (lo, hi), or the values or the taxonomy of a nominal one.

        The form of the domain determines the kind if the column's type leaves it open. A type inferred from the
        records is replaced by the one that the domain implies.
        """
        if self.source.get("type") == RECORDS:
            known = {fact: origin for fact, origin in self.source.items() if fact != "type"}
            step = self.step
            if known.get("step") == RECORDS:
                step = None
                del known["step"]
            plain = replace(self, type=None, decimals=None, format=None, step=step, source=known)
            return plain.with_domain(domain)
        what = Message.of("domain-of-column", column=self.name)
        kept = {fact: origin for fact, origin in self.source.items() if fact not in ("kind", "domain")}
        # texts in a numeric column are reported when they are read, with their row
        number = self.type if self.type in KIND_FACTS["numeric"].own_types else None
        if isinstance(domain, Taxonomy):
            # values listed in the schema remain the domain, unless the tree has its own
            values = self.values if _of_leaves(domain) else ()
            return replace(
                self,
                kind="nominal",
                taxonomy=domain,
                values=values,
                spikes=(),
                ordered=(),
                lo=None,
                hi=None,
                step=None,
                source=kept,
            )
        days = _is_span_of_days(domain)
        if not self.kind_facts.ordered and not _is_range(domain) and not days:
            listed = tuple(str(v) for v in _listed(self.name, domain))
            return replace(self, taxonomy=None, values=listed, source=kept)
        lo, hi = range_of(self.name, domain)
        if self.kind_facts.days or (not self.kind_facts.ordered and days):
            ends = day_number(lo, what), day_number(hi, what)
            return replace(self, kind="date", lo=ends[0], hi=ends[1], values=(), taxonomy=None, source=kept)
        return replace(
            self,
            kind="numeric",
            lo=exact(lo, what),
            hi=exact(hi, what),
            places=None if number is not None else written_places(lo, hi, what),
            values=(),
            taxonomy=None,
            type=number,
            source=kept,
        )

    def with_type(self, type: str) -> Attribute:
        """The attribute with a declared type; decimal:2 has two decimals, date:DD.MM.YYYY a date format.

        >>> Attribute("income").with_type("decimal:2").decimals
        2
        """
        word, colon, rest = type.partition(":")
        form = rest if colon and word.strip() in DAY_TYPES else None
        decimals = "" if form else rest
        if colon and not form and not decimals.strip().isdigit():
            raise OptionError("column-type-not-form-decimal-2", column=self.name, found=type)
        kept = {fact: origin for fact, origin in self.source.items() if fact not in ("kind", "type")}
        named = known_type(word.strip(), self.name)
        kind: Kind = self.kind
        if not KIND_FACTS[kind].takes(named) and not self.has_domain:
            # a declared type overrides a kind guessed from a file's cells
            kind = kind_of_type(named)
        return replace(
            self,
            kind=kind,
            type=named,
            decimals=int(decimals) if decimals else self.decimals if named == "decimal" else None,
            format=form or (self.format if named in DAY_TYPES else None),
            places=None,
            source=kept,
        )

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the declared facts about the column."""
        there = {
            "kind": True,
            "type": self.type is not None,
            "domain": self.has_domain,
            "step": self.declared_step is not None,
            "spikes": bool(self.spikes),
            "max_rows": self.max_rows is not None,
        }
        return tuple(fact for fact in FACTS if there[fact])

    @property
    def unit_rows(self) -> int:
        """For a unit column, the most rows of one unit that take part; 1 where nothing is declared."""
        return min((rows for rows in (self.max_rows, self.bound) if rows is not None), default=1)

    @property
    def has_domain(self) -> bool:
        """Whether a range, values, an order or a taxonomy is declared."""
        return self.lo is not None or bool(self.values or self.ordered or self.taxonomy is not None)

    @property
    def from_records(self) -> tuple[str, ...]:
        """The facts about the column that are known only from these records."""
        return tuple(fact for fact in self.facts if self.source.get(fact) == RECORDS)

    @property
    def source_words(self) -> str:
        """The sources of the facts about the column, as a statement prints them."""
        known = {fact: self.source.get(fact, "") for fact in self.facts}
        if len(set(known.values())) == 1:
            return next(iter(known.values()))
        return ", ".join(f"{fact}: {origin}" for fact, origin in known.items() if origin)


def _spikes(attribute: Attribute) -> tuple[Fraction, ...]:
    """The spikes as exact numbers in ascending order."""
    given: Any = attribute.spikes
    if not attribute.kind_facts.measured:
        raise OptionError("column-spikes-numeric", column=attribute.name, found=attribute.kind)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise OptionError("column-spikes-list", column=attribute.name, found=given)
    found = sorted(exact(one, Message.of("column-key", column=attribute.name, key="spikes")) for one in given)
    for one, other in itertools.pairwise(found):
        if one == other:
            raise OptionError("column-spikes-twice", column=attribute.name, found=decimal_text(one))
    return tuple(found)


def _rows_of_bound(attribute: Attribute) -> int:
    """The number of rows in a bound such as {"rows": 3} or "rows=3", checked."""
    if attribute.role != "unit":
        raise OptionError("column-bound-unit-role", column=attribute.name, found=attribute.role)
    given: Any = attribute.bound
    if isinstance(given, str):
        name, _, text = given.partition("=")
        given = {name.strip(): int(text) if text.strip().isdecimal() else text}
    if isinstance(given, Mapping):
        given = given["rows"] if set(given) == {"rows"} else None
    if type(given) is not int or given < 1:
        raise OptionError("column-bound-rows", column=attribute.name, found=attribute.bound)
    return given


def _word_of_unit(attribute: Attribute) -> str:
    """The word for one unit, checked: it stands in sentences of a statement."""
    if attribute.role != "unit":
        raise OptionError("column-called-unit-role", column=attribute.name, found=attribute.role)
    word = " ".join(attribute.called.split()) if isinstance(attribute.called, str) else ""
    if not word or len(word) > _LONGEST_WORD or not all(one.isalpha() or one in " -" for one in word):
        raise OptionError("column-called-word", column=attribute.name, found=attribute.called)
    return word


def written_places(lo: object, hi: object, what: str | Message) -> int | None:
    """Number of decimals with which two bounds are written; None where the numbers themselves show it.

    >>> written_places("0.00", "9.50", "rent"), written_places(0.0, 1.0, "share"), written_places(0, 9.5, "rent")
    (2, -1, None)
    """
    shown = _places(exact(lo, what), exact(hi, what))
    written = [written_decimals(end) for end in (lo, hi)]
    most = max(decimals or 0 for decimals in written)
    found = most if most or None not in written else ANY
    found = found if found <= MOST_DECIMALS else ANY
    return None if found == shown else found


def _places(lo: Fraction, hi: Fraction) -> int:
    """Number of decimals of two numbers; `ANY` if they do not end."""
    found = [decimals_of(end) for end in (lo, hi)]
    return ANY if any(d is None or d > MOST_DECIMALS for d in found) else max(d or 0 for d in found)


def _type_of_names(names: Iterable[str]) -> ColumnType:
    """The type of names spelled like booleans or numbers, otherwise text.

    >>> _type_of_names(["11", "12"]), _type_of_names(["01", "02"]), _type_of_names(["false", "true"])
    ('integer', 'text', 'boolean')
    """
    listed = [name.strip() for name in names]
    if {name.lower() for name in listed} <= {"true", "false"}:
        return "boolean"
    if all(_spelled(name, int) for name in listed):
        return "integer"
    return "decimal" if all(_spelled(name, int) or _spelled(name, float) for name in listed) else "text"


def _spelled(name: str, number: type[int] | type[float]) -> bool:
    """Whether a name is a number in its usual spelling, unlike 007 and 1e3."""
    try:
        return str(number(name)) == name and (number is int or math.isfinite(float(name)))
    except ValueError:
        return False


def _of_leaves(tree: Taxonomy) -> bool:
    """Whether the values of a tree are exactly its leaves."""
    return tree.domain == tuple(tree.leaves.tolist())


def _flat(values: tuple[str, ...]) -> Taxonomy:
    """All values below one root, named differently from all of them."""
    root = "*"
    while root in values:
        root += "*"
    return Taxonomy.flat(values, root)


def range_of(name: str, bounds: Any) -> tuple[Any, Any]:
    """The two ends of a range."""
    try:
        lo, hi = bounds
    except (TypeError, ValueError):
        raise OptionError("domain-column-pair-lo-hi", column=name, found=bounds) from None
    return lo, hi


def _is_span_of_days(domain: Any) -> bool:
    """Whether a domain is two dates or their texts: a text column can be declared to hold dates."""
    return (
        isinstance(domain, (tuple, list))
        and len(domain) == 2
        and all(
            isinstance(end, date) or (isinstance(end, str) and ISO_DAY.match(end.strip())) for end in domain
        )
    )


def _is_range(domain: Any) -> bool:
    """Whether a domain is two numbers: a text column can be declared numeric."""
    return (
        isinstance(domain, (tuple, list))
        and len(domain) == 2
        and all(
            isinstance(end, (int, float, Decimal, Fraction)) and not isinstance(end, bool) for end in domain
        )
    )


def spells_numbers(domain: Any) -> bool:
    """Whether all values of a domain are texts that a file's cells would be read as numbers.

    >>> spells_numbers(("0.00", "9.50")), spells_numbers(["01", "02"]), spells_numbers(["no", "yes"])
    (True, False, False)
    """
    return isinstance(domain, (tuple, list)) and all(
        isinstance(end, str) and _NUMBER.fullmatch(end.strip()) for end in domain
    )


def _codes(name: str, given: object) -> tuple[str, ...]:
    """Codes for missing values as texts: 99 and "99" are equal."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise OptionError("column-na-list-codes-missing-value", column=name, found=given)
    found = []
    for code in given:
        if isinstance(code, bool) or not isinstance(code, str | int | float | Fraction):
            raise OptionError("column-na-lists-neither-number-nor", column=name, found=code)
        found.append(code.strip() if isinstance(code, str) else decimal_text(exact(code, "na")))
    return tuple(dict.fromkeys(found))


def _sources(name: str, given: object) -> dict[str, str]:
    """The source of each fact, from one text for all of them or from a table."""
    if isinstance(given, str):
        given = dict.fromkeys(FACTS, given)
    if not isinstance(given, Mapping):
        raise OptionError("column-source-text-table-texts", column=name, found=given)
    for fact, origin in given.items():
        if fact not in FACTS:
            raise OptionError(
                "column-source-names-not",
                column=name,
                found=fact,
                allowed=tuple(FACTS),
                hint=closest(str(fact), FACTS),
            )
        if origin not in SOURCES:
            raise OptionError(
                "column-source-not",
                column=name,
                found=origin,
                allowed=tuple(SOURCES),
                hint=closest(str(origin), SOURCES),
            )
    return {fact: given[fact] for fact in FACTS if fact in given}


def _listed(name: str, domain: Any) -> list[object]:
    if isinstance(domain, str) or not isinstance(domain, Iterable):
        raise OptionError("domain-nominal-column-list-values", column=name, found=domain)
    return list(domain)


THRESHOLD = re.compile(
    r"(?P<column>.+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)\s*", re.I
)


def target_column(text: str, columns: Collection[str]) -> str:
    """The column of a prediction target, with or without a threshold.

    >>> target_column("income > 30000", ["age", "income"]), target_column("a>1", ["a>1"])
    ('income', 'a>1')
    """
    known = None if text in columns else THRESHOLD.fullmatch(text)
    return known["column"] if known else text
