"""Guesses about a column: its name and type come in, an attribute without a domain leaves.

A type that was read off the cells of a file is a fact about the records, and so is every guess that rests on it: its
source says so, until a person has confirmed the draft.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np

from shoal.columns.attribute import DROPPED_ROLES, FACTS, RECORDS, SOURCES, Attribute
from shoal.columns.kinds import KIND_FACTS, Kind
from shoal.columns.name_words import common_range, names_a_person, role_of
from shoal.io import ColumnType, Table, Variable, type_of

# numbers whose decimals are counted for a draft, and the most that look like a choice rather than like a computation
_LOOKED_AT = 10_000
# texts of so many words on average are prose; columns with fewer different values are too short to tell
_FEW_TEXTS, _WORDS_OF_PROSE, _OWN_TEXTS, _OWN_CODES = 20, 4, 0.9, 0.1
_CODE = re.compile(r"[A-Za-z]{0,4}[-_/ ]?\d{3,}[A-Za-z]?")
_MOST_DRAFTED = 6
# names of a column of codes that do not say of what
_BARE_CODES = frozenset(
    {"code", "key", "number", "reference", "schlüssel", "clé", "clave", "chiave", "chave", "sleutel", "klucz"}
)
COMMON = SOURCES[2]
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$")


def stored_kind(dtype: Any) -> Kind:
    """The kind of a column by its type alone."""
    if dtype.is_numeric():
        return "numeric"
    return "date" if isinstance(dtype, nw.Date | nw.Datetime) else "nominal"


def guess(table: Table, name: str) -> Attribute:
    """Kind from the type, role from the words of the name: the values themselves are barely looked at."""
    dtype = table.dtype(name)
    kind = stored_kind(dtype)
    if dtype.is_temporal() or _looks_like_dates(table, name):
        kind = "date"
    elif type(dtype).__name__ == "Enum":
        kind = "ordinal"
    role = role_of(name, kind)
    # a column of truth values shows its domain by its type
    values = ("False", "True") if isinstance(dtype, nw.Boolean) else ()
    stored_type = _fitting(kind, type_of(dtype))
    if name in table.inferred:
        facts = ["kind", *(["type"] if stored_type else []), *(["domain"] if values else [])]
        known = dict.fromkeys(facts, RECORDS)
        return Attribute(name, kind, role, values=values, type=stored_type, source=known)
    step = Fraction(1) if stored_type == "integer" and KIND_FACTS[kind].measured else None
    # texts that look like dates are a fact about the records, whatever their type
    source = {"kind": RECORDS} if KIND_FACTS[kind].days and stored_type == "text" else {}
    return Attribute(name, kind, role, step=step, values=values, type=stored_type, source=source)


def _fitting(kind: Kind, type: ColumnType | None) -> ColumnType | None:
    """Texts of a file that look like dates are dates."""
    return "date" if KIND_FACTS[kind].days and type is None else type


def drafted(table: Table) -> tuple[Attribute, ...]:
    """The guesses for a whole table: types, steps, rows per person, and the labels of a Stata or SPSS file.

    For a person to check, so every entry says that its source are these records. Labels are public only if they were
    not made from the records, as Stata's `encode` does.

    >>> import pyarrow as pa
    >>> from shoal.io import Codebook, Variable, read
    >>> answers = Variable(labels={1: "no", 2: "yes"}, texts={1: "no", 2: "yes"})
    >>> table = replace(read(pa.table({"q": ["no"]})), codebook=Codebook("stata", {"q": answers}))
    >>> drafted(table)[0].values
    ('no', 'yes')
    """
    attributes = [_drafted(table, guess(table, name)) for name in table.names]
    if table.codebook is not None:
        attributes = [_labelled(attribute, table.codebook.of(attribute.name)) for attribute in attributes]
    units = [attribute for attribute in attributes if attribute.role == "unit"]
    # a person is identified by one column: the first that repeats
    attributes = [
        replace(a, role="identifier", max_rows=None) if a.role == "unit" and a is not units[0] else a
        for a in attributes
    ]
    return tuple(attributes)


def _drafted(table: Table, attribute: Attribute) -> Attribute:
    """A guess with what the records suggest, all of it for a person to confirm."""
    name = attribute.name
    found = replace(attribute, source=dict.fromkeys(FACTS, RECORDS), format=_format(table, attribute))
    written = attribute.role == "other" and not attribute.kind_facts.ordered and name not in table.doubts
    if attribute.role == "identifier" or (written and (is_prose(table, name) or _is_key(table, name))):
        most = _most_rows(table, name)
        # remarks, and codes of something that has a name, repeat without being anybody's
        anybodys = names_a_person(name) or name.strip().lower() in _BARE_CODES
        if most == 1 or is_prose(table, name) or not anybodys:
            return replace(found, role="identifier")
        return replace(found, role="unit", max_rows=most)
    if not attribute.kind_facts.measured:
        return found
    if attribute.role != "weight" and _counts_rows(table, attribute):
        return replace(found, role="identifier")
    if attribute.type == "integer":
        found = replace(found, step=Fraction(1))
    else:
        decimals = _decimals(table, name)
        if decimals is not None:
            found = replace(found, decimals=decimals, step=Fraction(1, 10**decimals))
    ends = common_range(name)
    if ends is None or attribute.role in DROPPED_ROLES:
        return found
    found = replace(found, lo=Fraction(ends[0]), hi=Fraction(ends[1]))
    return replace(found, source=dict.fromkeys(found.facts, RECORDS) | {"domain": COMMON})


def _format(table: Table, attribute: Attribute) -> str | None:
    """The date format that somebody told."""
    told = table.dates.get(attribute.name, table.conventions.date_format)
    return told if attribute.type in ("date", "timestamp") and table.reads_cells else None


def is_prose(table: Table, name: str) -> bool:
    """Whether a column of texts holds sentences rather than names: what somebody wrote can point at anybody."""
    from shoal.columns.labels import texts

    if not isinstance(table.dtype(name), nw.String):
        return False
    found, _ = texts(table, name)
    words = [len(text.split()) for text in found if text]
    return len(words) >= _FEW_TEXTS and sum(words) / len(words) >= _WORDS_OF_PROSE


def _is_key(table: Table, name: str) -> bool:
    """Whether nearly every row of a column of texts has a text of its own, or many have codes such as P0042."""
    from shoal.columns.labels import texts

    if not isinstance(table.dtype(name), nw.String):
        return False
    found, which = texts(table, name)
    rows, own = int((which >= 0).sum()), [text for text in found if text]
    if len(own) < _FEW_TEXTS:
        return False
    coded = all(_CODE.fullmatch(text) for text in own)
    return len(own) > (_OWN_CODES if coded else _OWN_TEXTS) * rows


def _counts_rows(table: Table, attribute: Attribute) -> bool:
    """Whether whole numbers are all different and close together, as those that count something are."""
    if attribute.type != "integer":
        return False
    values = table.numeric(attribute.name)
    values = values[np.isfinite(values)]
    if values.size < _FEW_TEXTS or np.unique(values).size < values.size:
        return False
    return bool(values.max() - values.min() < 2 * values.size)


def _most_rows(table: Table, name: str) -> int:
    """How many rows the most frequent value has; 1 where there is none."""
    from shoal.columns.labels import texts

    _, which = texts(table, name)
    return int(np.bincount(which[which >= 0]).max(initial=1))


def _decimals(table: Table, name: str) -> int | None:
    """The most decimals of any number of a column, None where they have no end."""
    values = table.numeric(name)
    values = np.unique(values[np.isfinite(values)])[:_LOOKED_AT]
    if not values.size:
        return None
    most = max(-_exponent(value) for value in values)
    return max(most, 0) if most <= _MOST_DRAFTED else None


def _exponent(value: Any) -> int:
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _labelled(attribute: Attribute, variable: Variable) -> Attribute:
    values = variable.categories
    if attribute.kind_facts.ordered or not values:
        return attribute
    if variable.measure == "ordinal" and len(values) > 1:
        return replace(attribute, kind="ordinal", ordered=values)
    return replace(attribute, values=values)


def _looks_like_dates(table: Table, name: str) -> bool:
    series = table.series(name)
    if str(table.dtype(name)) != "String":
        return False
    sample = [value for value in series.head(50).drop_nulls().to_list() if value]
    return bool(sample) and all(_ISO_DATE.match(value) for value in sample)
