"""Guesses about a column: its name and type come in, an attribute without a domain leaves."""

from __future__ import annotations

import re
from fractions import Fraction

import narwhals as nw

from shoal.io import Table
from shoal.schema import Attribute, Kind, Role

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


def _looks_like_dates(table: Table, name: str) -> bool:
    series = table.series(name)
    if str(table.dtype(name)) != "String":
        return False
    sample = [value for value in series.head(50).to_list() if value]
    return bool(sample) and all(_ISO_DATE.match(value) for value in sample)
