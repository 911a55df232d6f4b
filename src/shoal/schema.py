"""What a custodian declares about a table: for each attribute its kind, role and public domain."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from shoal import summaries
from shoal.dates import ISO_DAY, day_number, day_text, is_day
from shoal.display import displayed
from shoal.errors import InputError, OptionError, did_you_mean
from shoal.io import read
from shoal.lattice import DEFAULT_REAL_STEPS, Lattice, exact
from shoal.missing import POLICIES
from shoal.taxonomy import Taxonomy
from shoal.toml import dumps, load

# what a missing value is called where it counts as a value
MISSING_VALUE = "(missing)"

Kind = Literal["numeric", "ordinal", "nominal", "date"]
Role = Literal["identifier", "quasi-identifier", "confidential", "unit", "weight", "other"]
# Roles whose columns never leave the house.
DROPPED_ROLES: frozenset[Role] = frozenset({"identifier", "unit", "weight"})

_HEADER = """\
# What is public about this table. Edit by hand:
#   kind   numeric | ordinal | nominal | date
#   role   identifier | quasi-identifier | confidential | unit | weight | other
#          (identifiers, units and weights are never released)
#   lo, hi the range the attribute can take, known without looking at these records
#          (dates as 1984-05-31)
#   ordered  for an ordinal column: its values, lowest first
#   values   for a nominal column: the values it can take
#   taxonomy for a nominal column: a file (OWL, RDF, CSV), relative to this one or with $VARIABLES, or a nested table
#   missing  error | drop | category | separate, where the column differs from the rest
#   step   the finest difference that matters (default: 1 for integers, width / 2^20 otherwise)
#   max_rows  for a unit column: the most rows one person can have
"""


@displayed(summaries.of_attribute)
@dataclass(frozen=True)
class Attribute:
    """One column: how to read it, what it may reveal, and the public range of its values."""

    name: str
    kind: Kind = "numeric"
    role: Role = "confidential"
    lo: Fraction | None = None
    hi: Fraction | None = None
    step: Fraction | None = None
    ordered: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    taxonomy: Taxonomy | None = None
    missing: str | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise OptionError(f"column '{self.name}': kind '{self.kind}' is not one of {_words(Kind)}.")
        if self.role not in get_args(Role):
            raise OptionError(f"column '{self.name}': role '{self.role}' is not one of {_words(Role)}.")
        if self.kind == "nominal" and self.ordered:
            # an order is what makes names ordinal
            object.__setattr__(self, "kind", "ordinal")
        if (self.lo is None) != (self.hi is None):
            raise OptionError(f"column '{self.name}': give both lo and hi, or neither.")
        if self.max_rows is not None and (type(self.max_rows) is not int or self.max_rows < 1):
            raise OptionError(
                f"column '{self.name}': max_rows must be a whole number, at least 1, got {self.max_rows}."
            )
        if len(set(self.ordered)) < len(self.ordered):
            raise OptionError(f"column '{self.name}': ordered lists a value twice.")
        if not all(value.strip() for value in self.values):
            raise OptionError(
                f"column '{self.name}': values lists an empty text: an empty cell is a missing value, see missing."
            )
        if len({value.strip() for value in self.values}) < len(self.values):
            raise OptionError(f"column '{self.name}': values lists a value twice.")
        if (self.values or self.taxonomy) and self.kind != "nominal":
            raise OptionError(
                f"column '{self.name}': values and taxonomy are for nominal columns, and it is {self.kind}."
            )
        if self.missing is not None and self.missing not in POLICIES:
            raise OptionError(
                f"column '{self.name}': missing '{self.missing}' is not one of {', '.join(POLICIES)}."
            )
        if self.missing == "category" and self.kind != "nominal":
            raise OptionError(
                f"column '{self.name}': missing 'category' is for nominal columns, and it is {self.kind}."
            )
        if self.taxonomy is not None and not self.values and not _of_leaves(self.taxonomy):
            # a tree that was told its values keeps them also where only its links are written down
            object.__setattr__(self, "values", self.taxonomy.values)
        try:
            _ = self.tree
        except InputError as error:
            raise OptionError(str(error)) from None
        if self.lo is not None and self.hi is not None and self.kind in ("numeric", "date"):
            self.lattice(integer=False)

    @cached_property
    def tree(self) -> Taxonomy | None:
        """The taxonomy over the public values of a nominal attribute: that of its schema, or a flat one.

        A column whose missing values are a category of their own has one more value, below the root.
        """
        if self.kind != "nominal" or not (self.values or self.taxonomy):
            return None
        found = self.taxonomy
        if found is None:
            found = _flat(self.values)
        elif self.values:
            found = found.minimal(self.values, f"column '{self.name}'")
        if self.missing != "category" or MISSING_VALUE in found.values:
            return found
        if MISSING_VALUE in found.labels:
            raise OptionError(
                f"column '{self.name}': '{MISSING_VALUE}' is a group of its taxonomy, and the name of missing values "
                "with missing=category: rename the group."
            )
        more = Taxonomy.from_pairs([*found.to_pairs(), (MISSING_VALUE, found.labels[0])])
        return more.minimal([*found.values, MISSING_VALUE])

    def lattice(self, *, integer: bool) -> Lattice:
        """The public lattice; `integer` says that the column is stored as integers (default step 1).

        That of an ordinal attribute are the places in its order, that of a date are days since 1970-01-01, that of a
        nominal one are the places of its values in its taxonomy.
        """
        if self.kind == "nominal":
            if self.tree is None:
                raise OptionError(
                    f"column '{self.name}' has no public values: list them as values in the schema, or give a taxonomy."
                )
            return Lattice(Fraction(0), Fraction(max(len(self.tree.domain) - 1, 1)), Fraction(1))
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

    def with_domain(self, domain: Any) -> Attribute:
        """The attribute with a public domain: (lo, hi), or the values or the taxonomy of a nominal one."""
        what = f"the domain of column '{self.name}'"
        if isinstance(domain, Taxonomy):
            # values listed in the schema stay the domain, unless the tree was told its own
            values = self.values if _of_leaves(domain) else ()
            return replace(
                self, kind="nominal", taxonomy=domain, values=values, ordered=(), lo=None, hi=None, step=None
            )
        if self.kind == "nominal" and not _is_range(domain):
            return replace(self, taxonomy=None, values=tuple(str(v) for v in _listed(self.name, domain)))
        lo, hi = _pair(self.name, domain)
        if self.kind == "date":
            return replace(self, lo=day_number(lo, what), hi=day_number(hi, what))
        return replace(self, kind="numeric", lo=exact(lo, what), hi=exact(hi, what), values=(), taxonomy=None)


@displayed(summaries.of_schema)
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
        from shoal.guess import guess

        table = read(data)
        return cls(tuple(guess(table, name) for name in table.names))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file (TOML)."""
        path = Path(path)
        raw = load(path, "schema file")
        try:
            return cls.from_dict(raw, path.parent)
        except OptionError as error:
            raise OptionError(f"the schema '{path}': {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the schema as TOML that a person can edit."""
        Path(path).write_text(draft_text(self), "utf-8")

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], folder: Path | None = None) -> Schema:
        """A schema from plain values; files of taxonomies are looked for in `folder`."""
        entries = raw.get("attribute")
        if not isinstance(entries, list) or not entries:
            raise OptionError("there is no [[attribute]] entry: one is needed per column.")
        return cls(tuple(_attribute(entry, folder) for entry in entries))

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

    def with_domains(self, domains: Mapping[str, Any]) -> Schema:
        """The schema with public domains set; an unknown column is an error."""
        changed = {name: self[name].with_domain(domain) for name, domain in domains.items()}
        return Schema(tuple(changed.get(a.name, a) for a in self.attributes))


def draft_text(schema: Schema) -> str:
    """The schema as TOML, with a note on how to fill it in."""
    return _HEADER + "\n" + dumps(schema.to_dict())


def _written(attribute: Attribute, key: str, value: Any) -> Any:
    if attribute.kind == "date" and key in ("lo", "hi") and is_day(value):
        return day_text(value)
    if isinstance(value, Taxonomy):
        pairs = [list(pair) for pair in value.to_pairs()]
        # the root is known from its children, if it has any
        return pairs[1:] or pairs
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


def _attribute(entry: Any, folder: Path | None) -> Attribute:
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
    for key, words in (("ordered", "values, lowest first"), ("values", "values")):
        if key in values:
            if not isinstance(values[key], (list, tuple)):
                raise OptionError(f"column '{name}': {key} must be a list of {words}.")
            values[key] = tuple(str(v) for v in values[key])
    if any(values.get(key) for key in ("ordered", "values", "taxonomy")):
        values.setdefault("kind", "nominal")
    if "taxonomy" in values:
        values["taxonomy"] = _taxonomy(name, values["taxonomy"], folder)
    return Attribute(**values)


def _taxonomy(name: str, given: Any, folder: Path | None) -> Taxonomy:
    """A taxonomy as a schema may write it: the path of a file, nested tables, or pairs of child and parent."""
    try:
        if isinstance(given, str):
            path = _expanded(given)
            return Taxonomy.load(path if folder is None else folder / path)
        if isinstance(given, (list, tuple)):
            return Taxonomy.from_pairs(given)
        return Taxonomy.from_dict(given)
    except (InputError, TypeError, ValueError) as error:
        raise OptionError(f"column '{name}': {error}") from None


def _expanded(text: str) -> str:
    """A path with `~` and environment variables filled in."""
    for variable in re.findall(r"\$(?:(\w+)|\{(\w+)\})", text):
        wanted = variable[0] or variable[1]
        if wanted not in os.environ:
            raise OptionError(
                f"the taxonomy '{text}' needs the environment variable {wanted}, which is not set: set it, or write "
                "the whole path."
            )
    return os.path.expanduser(os.path.expandvars(text))


def _of_leaves(tree: Taxonomy) -> bool:
    """Whether the values of a tree are simply its leaves."""
    return tree.domain == tuple(tree.leaves.tolist())


def _flat(values: tuple[str, ...]) -> Taxonomy:
    """All values below one root, whose name is none of theirs."""
    root = "*"
    while root in values:
        root += "*"
    return Taxonomy.flat(values, root)


def _pair(name: str, bounds: Any) -> tuple[object, object]:
    try:
        lo, hi = bounds
    except (TypeError, ValueError):
        raise OptionError(f"the domain of column '{name}' must be a pair (lo, hi), got {bounds!r}.") from None
    return lo, hi


def _is_range(domain: Any) -> bool:
    """Two numbers: a column of text can still be declared numeric."""
    return (
        isinstance(domain, (tuple, list))
        and len(domain) == 2
        and all(isinstance(end, (int, float, Fraction)) and not isinstance(end, bool) for end in domain)
    )


def _listed(name: str, domain: Any) -> list[object]:
    if isinstance(domain, str) or not isinstance(domain, Iterable):
        raise OptionError(
            f"the domain of nominal column '{name}' must be a list of its values, got {domain!r}."
        )
    return list(domain)


def _words(literal: Any) -> str:
    return ", ".join(get_args(literal))
