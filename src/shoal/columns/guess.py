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

from shoal.columns.attribute import FACTS, RECORDS, Attribute, Role
from shoal.columns.kinds import Kind
from shoal.io import ColumnType, Table, Variable, type_of

_IDENTIFIER_WORDS = {
    "id",
    "uid",
    "uuid",
    "guid",
    "ssn",
    "passport",
    "email",
    "phone",
    "name",
    "surname",
    "nr",
}
_IDENTIFIER_ENDING = re.compile(
    r"(person|user|client|patient|record|utility|respondent|case|customer)id$|(nr|nummer)\.?$"
)
_WEIGHT_WORDS = {"weight", "wgt", "fnlwgt", "afnlwgt"}
_QUASI_WORDS = {
    *("age", "sex", "gender", "race", "ethnicity", "zip", "zipcode", "postcode", "region", "county"),
    *("country", "native", "birth", "birthdate", "dob", "marital", "education", "occupation", "household"),
}
# numbers whose decimals are counted for a draft, and the most that look like a choice rather than like a computation
_LOOKED_AT = 10_000
_MOST_DRAFTED = 6
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$")


def guess(table: Table, name: str) -> Attribute:
    """Kind from the type, role from the words of the name: the values themselves are barely looked at."""
    dtype = table.dtype(name)
    kind: Kind = "nominal"
    if dtype.is_numeric():
        kind = "numeric"
    elif dtype.is_temporal() or _looks_like_dates(table, name):
        kind = "date"
    elif type(dtype).__name__ == "Enum":
        kind = "ordinal"
    words = set(re.split(r"[^0-9a-zà-ÿ]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))
    role: Role = "confidential" if kind == "numeric" else "other"
    if words & _IDENTIFIER_WORDS or _IDENTIFIER_ENDING.search(name.lower()):
        role = "identifier"
    elif words & _WEIGHT_WORDS:
        role = "weight"
    elif words & _QUASI_WORDS:
        role = "quasi-identifier"
    # a column of truth values shows its domain by its type
    values = ("False", "True") if isinstance(dtype, nw.Boolean) else ()
    stored_type = _fitting(kind, type_of(dtype))
    if name in table.inferred:
        facts = ["kind", *(["type"] if stored_type else []), *(["domain"] if values else [])]
        known = dict.fromkeys(facts, RECORDS)
        return Attribute(name, kind, role, values=values, type=stored_type, source=known)
    step = Fraction(1) if stored_type == "integer" and kind == "numeric" else None
    # texts that look like dates are a fact about the records, whatever their type
    source = {"kind": RECORDS} if kind == "date" and stored_type == "text" else {}
    return Attribute(name, kind, role, step=step, values=values, type=stored_type, source=source)


def _fitting(kind: Kind, type: ColumnType | None) -> ColumnType | None:
    """Texts of a file that look like dates are dates."""
    return "date" if kind == "date" and type is None else type


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
    found = replace(attribute, source=dict.fromkeys(FACTS, RECORDS))
    if attribute.role == "identifier":
        most = _most_rows(table, name)
        return found if most == 1 else replace(found, role="unit", max_rows=most)
    if attribute.kind != "numeric":
        return found
    if attribute.type == "integer":
        return replace(found, step=Fraction(1))
    decimals = _decimals(table, name)
    if decimals is None:
        return found
    return replace(found, decimals=decimals, step=Fraction(1, 10**decimals))


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
    if attribute.kind != "nominal" or not values:
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
