"""What a custodian declares about a table: for each attribute its kind, role and public domain."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from shoal import summaries
from shoal.columns.attribute import ANY, FACTS, Attribute, written_places
from shoal.columns.dates import day_number, day_text, is_day
from shoal.columns.guess import drafted, guess
from shoal.columns.kinds import KIND_FACTS
from shoal.columns.margins import Margin, check_margins
from shoal.columns.publication import Publication
from shoal.columns.steps import Step
from shoal.decimals import exact
from shoal.display import displayed
from shoal.errors import InputError, OptionError, closest
from shoal.io import ColumnType, Conventions, read
from shoal.io.toml import dumps, load
from shoal.taxonomy import Taxonomy
from shoal.text import Message

__all__ = ["Attribute", "Margin", "Publication", "Schema", "Step", "draft_text"]

# the most columns that one entry describes
_MOST_NAMED = 10_000

_HEADER = """\
# What is public about this table. Edit by hand:
#   kind   numeric | ordinal | nominal | date
#   role   identifier | quasi-identifier | confidential | unit | weight | other
#          (identifiers, units and weights are never released)
#   release for a weight: dropped | masked (as one more column) | raked (computed anew from public margins)
#   type   integer | decimal | date | timestamp | text | boolean: how the column is read and released
#   decimals  for a decimal column: how many it is released with
#   format for a column of dates: how they are written, as DD.MM.YYYY
#   source where the facts about a column are known from: questionnaire | law | common knowledge |
#          an earlier release | these records. A draft says "these records", and no promise holds as it stands
#          until you have checked it and say where you know it from
#          (for single facts: source = { domain = "law", type = "questionnaire" })
#   lo, hi the range the attribute can take, known without looking at these records
#          (dates as 1984-05-31)
#   ordered  for an ordinal column: its values, lowest first
#   values   for a nominal column: the values it can take
#   taxonomy for a nominal column: a file (OWL, RDF, CSV), relative to this one or with $VARIABLES, or a nested table
#   missing  error | keep | drop | category | separate, where the column differs from the rest
#   na       codes that stand for a missing value in this column: [99, -9]
#   step   the finest difference that matters (default: 1 for integers, width / 2^20 otherwise)
#   max_rows  for a unit column: the most rows one person can have
#   names = "Q001 to Q120" in the place of name describes all of these columns alike
# Steps before protection, in their order, one [[step]] each, with a source as above:
#   recode = "age"  and  breaks = [0, 25, 65, inf]   or  level = 1   or  mapping = { old = "new" }
#   top = "income"  and  at = 100000      bottom = "income"  and  at = 0      drop = "postcode"
#   truncate = "diagnosis"  and  length = 3
# Public totals of the population, one [[margin]] each: column, totals = { name = 1000 }, source.
# A table [publication] says who publishes what for whom: name, description, purpose, curators, region, sector, date,
# recipients, contact, other_releases and more; it stands in the statement as declared, and in the record of a registry.
# A table [file] says how the file is written: encoding, separator, decimal, thousands, quote, na, date_format, sheet,
# header_row, range.
"""


@displayed(summaries.of_schema)
@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of a table, in column order, how its file is written, and what is done to it first.

    Attributes:
        steps: before protection, in their order; the attributes are those of the table before them.
        margins: public totals of the population, by columns as they are after the steps.
        before: in a schema that describes a table after its steps: the schema as it was declared.
        publication: who publishes what for whom.
    """

    attributes: tuple[Attribute, ...]
    file: Conventions = field(default_factory=Conventions)
    steps: tuple[Step, ...] = ()
    margins: tuple[Margin, ...] = ()
    before: Schema | None = None
    publication: Publication = field(default_factory=Publication)

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise OptionError("schema-describes-column-twice", column=repeated[0])
        if len([a for a in self.attributes if a.role == "unit"]) > 1:
            raise OptionError("schema-two-unit-columns")
        if len([a for a in self.attributes if a.release not in (None, "dropped")]) > 1:
            raise OptionError("schema-releases-two-weights")
        if self.before is None and (self.steps or self.margins):
            check_margins(self.margins, {a.name: a for a in self.stepped.attributes})
        if self.weight is not None and self.weight.release == "raked" and not self.declared.margins:
            raise OptionError("column-raked-weight-needs-public-margins", column=self.weight.name)

    @property
    def declared(self) -> Schema:
        """The schema of the table as it is read, before any step."""
        return self if self.before is None else self.before

    @property
    def stepped(self) -> Schema:
        """The schema of the table after its steps; it still knows the one before."""
        if self.before is not None or not self.steps:
            return self
        now = {attribute.name: attribute for attribute in self.attributes}
        for step, _, after in self.walk():
            if after is None:
                now.pop(step.column, None)
            else:
                now[step.column] = after
        # no step adds a column, so the order stays
        return Schema(tuple(now.values()), self.file, (), self.margins, self, self.publication)

    def walk(self) -> Iterator[tuple[Step, Attribute | None, Attribute | None]]:
        """Each step with its column before and after it; a column that is dropped need not be described."""
        now: dict[str, Attribute | None] = {attribute.name: attribute for attribute in self.attributes}
        for step in self.steps:
            before = now.get(step.column)
            if before is None and step.column in now:
                raise step.refusal("earlier-step-dropped-column")
            if before is None and step.do != "drop":
                raise step.refusal("schema-describes-no-such-column", hint=closest(step.column, self.names))
            now[step.column] = None if before is None else step.attribute(before)
            yield step, before, now[step.column]

    def with_steps(self, *steps: Step) -> Schema:
        """The schema with further steps before protection."""
        return replace(self.declared, steps=(*self.declared.steps, *steps))

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise OptionError("schema-no-column", column=name, hint=closest(name, self.names))

    def __contains__(self, name: object) -> bool:
        return name in self.names

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def unit(self) -> Attribute | None:
        return next((a for a in self.attributes if a.role == "unit"), None)

    @property
    def weight(self) -> Attribute | None:
        """The survey weight: the one that something is declared about, or the first."""
        found = [a for a in self.attributes if a.role == "weight"]
        return next((a for a in found if a.release is not None), found[0] if found else None)

    @property
    def types(self) -> dict[str, ColumnType]:
        """The declared types by column: what files are read with."""
        return {a.name: a.type for a in self.attributes if a.type is not None}

    @classmethod
    def infer(cls, data: Any) -> Schema:
        """Guess kinds and roles from names and types; domains stay empty, they must not come from the data.

        Types are read off the records, those that a frame stores too: their source says so, until somebody has
        checked them or declares a domain.

        >>> import pyarrow as pa
        >>> schema = Schema.infer(pa.table({"person_id": [1, 2], "age": [30, 41], "town": ["A", "B"]}))
        >>> [(a.name, a.kind, a.role) for a in schema.attributes]  # doctest: +NORMALIZE_WHITESPACE
        [('person_id', 'numeric', 'identifier'), ('age', 'numeric', 'quasi-identifier'),
         ('town', 'nominal', 'other')]
        """
        table = read(data, strict=False)
        return cls(tuple(guess(table, name) for name in table.names))

    @classmethod
    def draft(cls, data: Any, file: Conventions | Mapping[str, Any] | None = None) -> Schema:
        """All that the records suggest, for a person to confirm: types, steps, rows per person, a codebook's labels."""
        told = Conventions.of(file)
        return cls(drafted(read(data, conventions=told, strict=False)), told)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file (TOML)."""
        path = Path(path)
        raw = load(path, "toml-schema")
        try:
            return cls.from_dict(raw, path.parent)
        except OptionError as error:
            raise OptionError("of-schema", path=path, reason=error) from None

    def save(self, path: str | Path) -> None:
        """Write the schema as TOML that a person can edit."""
        Path(path).write_text(draft_text(self), "utf-8")

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], folder: Path | None = None) -> Schema:
        """A schema from plain values; files of taxonomies are looked for in `folder`."""
        entries = raw.get("attribute")
        if not isinstance(entries, list) or not entries:
            raise OptionError("there-no-attribute-entry")
        steps, margins = raw.get("step", []), raw.get("margin", [])
        for key, found in (("step", steps), ("margin", margins)):
            if not isinstance(found, list):
                raise OptionError("option-list-entries", option=key)
        return cls(
            tuple(_attribute(one, folder) for entry in entries for one in _each(entry)),
            Conventions.of(raw.get("file")),
            tuple(Step.from_dict(entry) for entry in steps),
            tuple(Margin.from_dict(entry) for entry in margins),
            publication=Publication.from_dict(raw.get("publication")),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, empty fields left out: the content of the TOML file, which describes the table before steps."""
        if self.before is not None:
            return self.before.to_dict()
        written, published = self.file.to_dict(), self.publication.to_dict()
        return {
            **({"file": written} if written else {}),
            **({"publication": published} if published else {}),
            "attribute": [
                {
                    name: found
                    for name in _IN_ORDER
                    if (found := _written(attribute, name, getattr(attribute, name))) not in (None, [], {})
                }
                for attribute in self.attributes
            ],
            **({"step": [step.to_dict() for step in self.steps]} if self.steps else {}),
            **({"margin": [margin.to_dict() for margin in self.margins]} if self.margins else {}),
        }

    def with_types(self, types: Mapping[str, str]) -> Schema:
        """The schema with types declared; an unknown column is an error."""
        changed = {name: self[name].with_type(type) for name, type in types.items()}
        return replace(self, attributes=tuple(changed.get(a.name, a) for a in self.attributes))

    def with_domains(self, domains: Mapping[str, Any]) -> Schema:
        """The schema with public domains set; an unknown column is an error."""
        changed = {name: self[name].with_domain(domain) for name, domain in domains.items()}
        return replace(self, attributes=tuple(changed.get(a.name, a) for a in self.attributes))


def draft_text(schema: Schema) -> str:
    """The schema as TOML, with a note on how to fill it in."""
    return _HEADER + "\n" + dumps(schema.to_dict())


# how a person reads an entry: what it is, then its facts, then how they are known
_FIRST = ("name", "kind", "role", "type", "decimals", "format")
# `places` is the way in which lo and hi are written
_KEYS = tuple(f.name for f in fields(Attribute) if f.name != "places")
_IN_ORDER = (*_FIRST, *(key for key in _KEYS if key not in (*_FIRST, "source")), "source")


def _written(attribute: Attribute, key: str, value: Any) -> Any:
    if key == "source":
        if set(value) == set(FACTS) and len(set(value.values())) == 1:
            return value["kind"]
        return {fact: origin for fact, origin in value.items() if fact in attribute.facts}
    if attribute.kind_facts.days and key in ("lo", "hi") and value is not None and is_day(value):
        return day_text(value)
    if key in ("lo", "hi") and attribute.type is None and attribute.places is not None:
        return f"{float(value):.{1 if attribute.places == ANY else attribute.places}f}"
    if isinstance(value, Taxonomy):
        pairs = [list(pair) for pair in value.to_pairs()]
        # the root is known from its children, if it has any
        return pairs[1:] or pairs
    return list(value) if isinstance(value, tuple) else value


def column_range(text: str) -> tuple[str, ...]:
    """The columns that `Q001 to Q120` names; any other text names one.

    >>> column_range("Q8 to Q11"), column_range("age")
    (('Q8', 'Q9', 'Q10', 'Q11'), ('age',))
    """
    found = re.fullmatch(r"(.*?)(\d+)(\D*) to (.*?)(\d+)(\D*)", text.strip())
    if found is None:
        return (text,)
    first, last = found[2], found[5]
    if (found[1], found[3]) != (found[4], found[6]) or int(last) < int(first):
        raise OptionError("does-not-name-columns-counted-upwards", found=text)
    if int(last) - int(first) >= _MOST_NAMED:
        raise OptionError("names-more-than-columns", found=text, most=_MOST_NAMED)
    # numbers with leading zeros have as many digits as the first
    width = len(first) if first.startswith("0") else 0
    return tuple(f"{found[1]}{number:0{width}}{found[3]}" for number in range(int(first), int(last) + 1))


def _each(entry: Any) -> list[Any]:
    """An entry for one column, or one for each of those that `names` lists."""
    if not isinstance(entry, dict) or "names" not in entry:
        return [entry]
    named = entry["names"]
    texts = [named] if isinstance(named, str) else named
    if "name" in entry or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise OptionError("attribute-entry-name-names-q001-q120")
    rest = {key: value for key, value in entry.items() if key != "names"}
    return [{"name": name, **rest} for text in texts for name in column_range(text)]


def _attribute(entry: Any, folder: Path | None) -> Attribute:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise OptionError("every-attribute-entry-needs-name")
    name = entry["name"]
    for key in entry:
        if key not in _KEYS:
            raise OptionError("column-unknown-key", column=name, key=key, hint=closest(key, _KEYS))
    values = dict(entry)
    for key in ("lo", "hi", "step"):
        if key in values:
            read_as = day_number if _holds_days(values.get("kind")) and key != "step" else exact
            values[key] = read_as(values[key], Message.of("column-key", column=name, key=key))
    ranged = values.get("lo") is not None and values.get("hi") is not None
    if ranged and not _holds_days(values.get("kind")) and not {"type", "decimals"} & values.keys():
        values["places"] = written_places(entry["lo"], entry["hi"], Message.of("column-bound", column=name))
    for key, code in (("ordered", "ordered-list"), ("values", "values-list")):
        if key in values:
            if not isinstance(values[key], (list, tuple)):
                raise OptionError(code, column=name)
            values[key] = tuple(str(v) for v in values[key])
    if any(values.get(key) for key in ("ordered", "values", "taxonomy")):
        values.setdefault("kind", "nominal")
    if "taxonomy" in values:
        values["taxonomy"] = _taxonomy(name, values["taxonomy"], folder)
    return Attribute(**values)


def _holds_days(kind: object) -> bool:
    return any(name == kind and facts.days for name, facts in KIND_FACTS.items())


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
        raise OptionError("of-column", column=name, reason=error) from None


def _expanded(text: str) -> str:
    """A path with `~` and environment variables filled in."""
    for variable in re.findall(r"\$(?:(\w+)|\{(\w+)\})", text):
        wanted = variable[0] or variable[1]
        if wanted not in os.environ:
            raise OptionError("taxonomy-needs-environment-variable-not-set", found=text, variable=wanted)
    return os.path.expanduser(os.path.expandvars(text))
