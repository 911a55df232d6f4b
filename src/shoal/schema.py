"""What a custodian declares about a table: for each attribute its kind, role and public domain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

from shoal.dates import ISO_DAY, day_number, day_text, is_day
from shoal.errors import OptionError, did_you_mean
from shoal.io import Table, read
from shoal.lattice import DEFAULT_REAL_STEPS, Lattice, exact
from shoal.toml import dumps, load

Kind = Literal["numeric", "ordinal", "nominal", "date"]
Role = Literal["identifier", "quasi-identifier", "confidential", "unit", "weight", "other"]
# Roles whose columns never leave the house.
DROPPED_ROLES: frozenset[Role] = frozenset({"identifier", "unit", "weight"})

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

_HEADER = """\
# What is public about this table. Edit by hand:
#   kind   numeric | ordinal | nominal | date
#   role   identifier | quasi-identifier | confidential | unit | weight | other
#          (identifiers, units and weights are never released)
#   lo, hi the range the attribute can take, known without looking at these records
#          (dates as 1984-05-31)
#   ordered  for an ordinal column: its values, lowest first
#   step   the finest difference that matters (default: 1 for integers, width / 2^20 otherwise)
#   max_rows  for a unit column: the most rows one person can have
"""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column: how to read it, what it may reveal, and the public range of its values."""

    name: str
    kind: Kind = "numeric"
    role: Role = "confidential"
    lo: Fraction | None = None
    hi: Fraction | None = None
    step: Fraction | None = None
    ordered: tuple[str, ...] = ()
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise OptionError(f"column '{self.name}': kind '{self.kind}' is not one of {_words(Kind)}.")
        if self.role not in get_args(Role):
            raise OptionError(f"column '{self.name}': role '{self.role}' is not one of {_words(Role)}.")
        if (self.lo is None) != (self.hi is None):
            raise OptionError(f"column '{self.name}': give both lo and hi, or neither.")
        if self.max_rows is not None and (type(self.max_rows) is not int or self.max_rows < 1):
            raise OptionError(
                f"column '{self.name}': max_rows must be a whole number, at least 1, got {self.max_rows}."
            )
        if len(set(self.ordered)) < len(self.ordered):
            raise OptionError(f"column '{self.name}': ordered lists a value twice.")
        if self.lo is not None and self.hi is not None and self.kind != "ordinal":
            self.lattice(integer=False)

    def lattice(self, *, integer: bool) -> Lattice:
        """The public lattice; `integer` says that the column is stored as integers (default step 1).

        That of an ordinal attribute are the places in its order, that of a date are days since 1970-01-01.
        """
        if self.kind == "ordinal":
            if len(self.ordered) < 2:
                raise OptionError(
                    f"column '{self.name}' has no declared order: list its values, lowest first, as ordered in the "
                    "schema."
                )
            return Lattice(Fraction(0), Fraction(len(self.ordered) - 1), Fraction(1))
        if self.lo is None or self.hi is None:
            raise OptionError(
                f"column '{self.name}' has no public domain: give one with --domain '{self.name}=lo:hi' "
                "(domains= in Python) or in the schema, not taken from the data, or name only the columns to release "
                "with --columns (columns= in Python)."
            )
        step = self.step
        if step is None:
            step = Fraction(1) if integer or self.kind == "date" else (self.hi - self.lo) / DEFAULT_REAL_STEPS
        try:
            return Lattice(self.lo, self.hi, step)
        except OptionError as error:
            raise OptionError(f"column '{self.name}': {error}") from None

    def with_domain(self, lo: object, hi: object) -> Attribute:
        what = f"the domain of column '{self.name}'"
        if self.kind == "date":
            return replace(self, lo=day_number(lo, what), hi=day_number(hi, what))
        return replace(self, kind="numeric", lo=exact(lo, what), hi=exact(hi, what))


@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of a table, in column order."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise OptionError(f"the schema describes column '{repeated[0]}' twice: remove one entry.")
        if len([a for a in self.attributes if a.role == "unit"]) > 1:
            raise OptionError("the schema has two unit columns: a person is identified by one.")

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise OptionError(f"the schema has no column '{name}'.{did_you_mean(name, self.names)}")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def unit(self) -> Attribute | None:
        return next((a for a in self.attributes if a.role == "unit"), None)

    @classmethod
    def infer(cls, data: Any) -> Schema:
        """Guess kinds and roles from names and types; domains stay empty, they must not come from the data.

        >>> import pyarrow as pa
        >>> schema = Schema.infer(pa.table({"person_id": [1, 2], "age": [30, 41], "town": ["A", "B"]}))
        >>> [(a.name, a.kind, a.role) for a in schema.attributes]  # doctest: +NORMALIZE_WHITESPACE
        [('person_id', 'numeric', 'identifier'), ('age', 'numeric', 'quasi-identifier'),
         ('town', 'nominal', 'other')]
        """
        table = read(data)
        return cls(tuple(_guess(table, name) for name in table.names))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file (TOML)."""
        path = Path(path)
        raw = load(path, "schema file")
        try:
            return cls.from_dict(raw)
        except OptionError as error:
            raise OptionError(f"the schema '{path}': {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the schema as TOML that a person can edit."""
        Path(path).write_text(draft_text(self), "utf-8")

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Schema:
        entries = raw.get("attribute")
        if not isinstance(entries, list) or not entries:
            raise OptionError("there is no [[attribute]] entry: one is needed per column.")
        return cls(tuple(_attribute(entry) for entry in entries))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, empty fields left out: the content of the TOML file."""
        return {
            "attribute": [
                {
                    field.name: _written(attribute, field.name, value)
                    for field in fields(attribute)
                    if (value := getattr(attribute, field.name)) not in (None, ())
                }
                for attribute in self.attributes
            ]
        }

    def with_domains(self, domains: Mapping[str, tuple[object, object]]) -> Schema:
        """The schema with public domains set; an unknown column is an error."""
        changed = {name: self[name].with_domain(*_pair(name, bounds)) for name, bounds in domains.items()}
        return Schema(tuple(changed.get(a.name, a) for a in self.attributes))


def draft_text(schema: Schema) -> str:
    """The schema as TOML, with a note on how to fill it in."""
    return _HEADER + "\n" + dumps(schema.to_dict())


def _written(attribute: Attribute, key: str, value: Any) -> Any:
    if attribute.kind == "date" and key in ("lo", "hi") and is_day(value):
        return day_text(value)
    return list(value) if isinstance(value, tuple) else value


def parse_domains(texts: Iterable[str]) -> dict[str, tuple[Fraction | str, Fraction | str]]:
    """Domains from command-line text `column=lo:hi`; dates are left as text.

    >>> parse_domains(["FICA=0:12000"])
    {'FICA': (Fraction(0, 1), Fraction(12000, 1))}
    """
    domains: dict[str, tuple[Fraction | str, Fraction | str]] = {}
    for text in texts:
        name, equals, bounds = text.rpartition("=")
        lo, colon, hi = bounds.partition(":")
        if not (equals and colon and name):
            raise OptionError(f"--domain '{text}' is not of the form column=lo:hi.")
        if name in domains:
            raise OptionError(f"--domain names column '{name}' twice.")
        what = f"--domain '{text}': a bound"
        first, last = (side if ISO_DAY.match(side) else exact(side, what) for side in (lo, hi))
        domains[name] = (first, last)
    return domains


def _attribute(entry: Any) -> Attribute:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise OptionError("every [[attribute]] entry needs a name.")
    name = entry["name"]
    known = {field.name for field in fields(Attribute)}
    for key in entry:
        if key not in known:
            raise OptionError(f"column '{name}': unknown key '{key}'.{did_you_mean(key, known)}")
    values = dict(entry)
    for key in ("lo", "hi", "step"):
        if key in values:
            read_as = day_number if values.get("kind") == "date" and key != "step" else exact
            values[key] = read_as(values[key], f"column '{name}': {key}")
    if "ordered" in values:
        if not isinstance(values["ordered"], (list, tuple)):
            raise OptionError(f"column '{name}': ordered must be a list of values, lowest first.")
        values["ordered"] = tuple(str(v) for v in values["ordered"])
    return Attribute(**values)


def _guess(table: Table, name: str) -> Attribute:
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
    return Attribute(name, kind, role, step=Fraction(1) if table.is_integer(name) else None)


def _looks_like_dates(table: Table, name: str) -> bool:
    series = table.series(name)
    if str(table.dtype(name)) != "String":
        return False
    sample = [value for value in series.head(50).to_list() if value]
    return bool(sample) and all(_ISO_DATE.match(value) for value in sample)


def _pair(name: str, bounds: Any) -> tuple[object, object]:
    try:
        lo, hi = bounds
    except (TypeError, ValueError):
        raise OptionError(f"the domain of column '{name}' must be a pair (lo, hi), got {bounds!r}.") from None
    return lo, hi


def _words(literal: Any) -> str:
    return ", ".join(get_args(literal))
