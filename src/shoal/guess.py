"""Guesses about a column: its name and type come in, an attribute without a domain leaves."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import narwhals as nw

from shoal.io import Table, Variable
from shoal.schema import Attribute, Kind, Role, Schema

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
    return Attribute(name, kind, role, step=Fraction(1) if table.is_integer(name) else None, values=values)


def draft(table: Table) -> Schema:
    """The guesses for a whole table, with the values that the codebook of a Stata or SPSS file lists.

    For a person to check: labels are public only if they were not made from the records, as Stata's `encode` does.

    >>> import pyarrow as pa
    >>> from shoal.io import Codebook, Variable, read
    >>> answers = Variable(labels={1: "no", 2: "yes"}, texts={1: "no", 2: "yes"})
    >>> table = replace(read(pa.table({"q": ["no"]})), codebook=Codebook("stata", {"q": answers}))
    >>> draft(table)["q"].values
    ('no', 'yes')
    """
    attributes = [guess(table, name) for name in table.names]
    if table.codebook is not None:
        attributes = [_labelled(attribute, table.codebook.of(attribute.name)) for attribute in attributes]
    return Schema(tuple(attributes))


def _labelled(attribute: Attribute, variable: Variable) -> Attribute:
    values = variable.labelled
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
