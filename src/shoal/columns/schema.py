"""Schemas: the attributes of a table, its unit, weight and margins, and publication metadata."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from shoal import display
from shoal.columns.attribute import ANY, FACTS, RECORDS, SOURCES, Attribute, written_places
from shoal.columns.column import labels_of, numbers
from shoal.columns.draft import drafted, guess, is_prose
from shoal.columns.kinds import KIND_FACTS, day_number, day_text, is_day, outside
from shoal.columns.rules import Rule, check_rules, of_rule
from shoal.columns.steps import Step
from shoal.display import displayed
from shoal.errors import InputError, OptionError, closest
from shoal.io import ColumnType, Conventions, Table, dumps, first_formula, load, read
from shoal.numbers import exact
from shoal.taxonomy import Taxonomy
from shoal.text import Message

# the sectors of the deployments registry
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "sector": SECTORS,
    "releases": ("one", "many"),
    "data_source": ("static", "dynamic"),
}
_LISTS = ("curators", "authors")
_DAYS = ("date", "review_by")


@displayed(display.of_publication)
@dataclass(frozen=True, slots=True)
class Publication:
    """The publisher's description of a publication; everything is optional, and none of it can be checked.

    Attributes:
        name: name of the data product.
        purpose: intended use.
        curators: the publishers.
        region: the region the data describe.
        recipients: the intended audience: the public, or a restricted group.
        date: date of publication, such as 2027-03-01.
        review_by: date until which the risk assessment is valid.
        other_releases: other releases about the same people, in words.
        releases: one, or many over time.
        data_source: static, or dynamic if new records arrive.
        actors: who sees which data, and who is trusted with what.
        security: how the original records are kept and who has access.
        justification: why these parameters were chosen.
        sources: links to related documents.
        authors: authors of the registry entry.
        slug: slug of the registry entry's address.

    >>> Publication.from_dict({"name": "Rents 2027", "curators": ["Office"], "date": "2027-03-01"}).date
    '2027-03-01'
    """

    name: str = ""
    description: str = ""
    purpose: str = ""
    curators: tuple[str, ...] = ()
    region: str = ""
    sector: str = ""
    date: str = ""
    recipients: str = ""
    contact: str = ""
    other_releases: str = ""
    releases: str = ""
    data_source: str = ""
    review_by: str = ""
    actors: str = ""
    security: str = ""
    justification: str = ""
    sources: str = ""
    notes: str = ""
    authors: tuple[str, ...] = ()
    slug: str = ""

    @classmethod
    def from_dict(cls, raw: object) -> Publication:
        """The checked [publication] table of a schema.

        Raises:
            OptionError: one line that names the key.
        """
        if raw is None:
            return cls()
        if not isinstance(raw, Mapping):
            raise OptionError("publication-must-be-a-table")
        return cls(**{_known(key): _value(key, value) for key, value in raw.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, empty ones left out."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if value
        }


def _known(key: str) -> str:
    names = [one.name for one in fields(Publication)]
    if key not in names:
        raise OptionError("publication-unknown-key", key=key, hint=closest(key, names))
    return key


def _value(key: str, value: Any) -> Any:
    if key in _LISTS:
        named = [value] if isinstance(value, str) else value
        if not isinstance(named, (list, tuple)) or not all(isinstance(one, str) and one for one in named):
            raise OptionError("publication-names", key=key, found=value)
        return tuple(named)
    if key in _DAYS and isinstance(value, date):
        return value.isoformat()[:10]
    if not isinstance(value, str):
        raise OptionError("publication-text", key=key, found=value)
    if key in _DAYS:
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            raise OptionError("publication-day", key=key, found=value) from None
    if key in _CHOICES and value not in _CHOICES[key]:
        allowed = _CHOICES[key]
        hint = closest(value, allowed)
        raise OptionError("publication-choice", key=key, found=value, allowed=allowed, hint=hint)
    return " ".join(value.split())


# tolerance between the sums of two margins: published totals are rounded
_SAME = Fraction(1, 1000)
__all__ = ["Attribute", "Margin", "Publication", "Rule", "Schema", "Step", "draft_text"]

# maximum number of columns that one entry describes
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
#          an earlier release | these records. A draft says "these records", and no guarantee holds as stated
#          until you have checked each fact and given its source
#          (for single facts: source = { domain = "law", type = "questionnaire" })
#   lo, hi the range the attribute can take, known without looking at these records
#          (dates as 1984-05-31)
#   ordered  for an ordinal column: its values, lowest first
#   values   for a nominal column: the values it can take
#   taxonomy for a nominal column: a file (OWL, RDF, CSV), relative to this one or with $VARIABLES, or a nested table
#   missing  error | keep | drop | category | separate, where the column differs from the rest
#   na       codes that stand for a missing value in this column: [99, -9]
#   spikes   for a numeric column: values that many records share, as [0, 40]
#   step   the finest difference that matters (default: 1 for integers, width / 2^20 otherwise)
#   max_rows  for a unit column: the most rows one unit can have
#   bound     for a unit column: at most so many rows of each unit take part: { rows = 3 }
#   called    for a unit column: the word for one unit in statements, such as household
#   names = "Q001 to Q120" in the place of name describes all of these columns alike
# Steps before protection, in their order, one [[step]] each, with a source as above:
#   recode = "age"  and  breaks = [0, 25, 65, inf]   or  level = 1   or  mapping = { old = "new" }
#   top = "income"  and  at = 100000      bottom = "income"  and  at = 0      drop = "postcode"
#   truncate = "diagnosis"  and  length = 3
# Rules that every released row satisfies, one [[rule]] each, with a source as above:
#   keep = "admission <= discharge"   "admission + 1 <= discharge <= admission + 365"
#   keep = 'age < 16 -> marital = "never"'   'spouse_age missing if marital = "never"'
#   keep = "age = years(birth_date, 2027-01-01)"   "total = wages + rents"
#   columns = ["region", "district"]  and  allowed = [["north", "n1"], ["south", "s1"]]
# Public totals of the population, one [[margin]] each: column, totals = { name = 1000 }, source.
# A table [publication] says who publishes what for whom: name, description, purpose, curators, region, sector, date,
# recipients, contact, other_releases and more; it stands in the statement as declared, and in the record of a registry.
# A table [file] says how the file is written: encoding, separator, decimal, thousands, quote, na, date_format, sheet,
# header_row, range.
"""
_FEW_ROWS = 2
ROW = "row"


@displayed(display.of_margin)
@dataclass(frozen=True, slots=True)
class Margin:
    """The publicly known number of people in the population with each value of a column.

    >>> Margin.from_dict({"column": "sex", "totals": {"f": 510, "m": 490}, "source": "law"}).size
    Fraction(1000, 1)
    """

    column: str
    totals: tuple[tuple[str, Fraction], ...]
    source: str

    @classmethod
    def from_dict(cls, raw: Any) -> Margin:
        """A margin from its form in a schema file.

        Raises:
            OptionError: one line that names the column.
        """
        if not isinstance(raw, Mapping) or not isinstance(raw.get("column"), str):
            raise OptionError("every-margin-entry-needs-column")
        column, known = raw["column"], ("column", "totals", "source")
        for key in raw:
            if key not in known:
                raise OptionError("unknown-key", **_margin(column), key=key, hint=closest(key, known))
        totals = raw.get("totals")
        if not isinstance(totals, Mapping) or not totals:
            raise OptionError("margin-needs-totals", column=column)
        read = tuple(
            (str(value), exact(total, Message.of("margin-total", column=column, value=value)))
            for value, total in totals.items()
        )
        return cls(column, read, raw.get("source", ""))

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "totals": dict(self.totals), "source": self.source}

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise OptionError("margin-needs-source", column=self.column, allowed=tuple(SOURCES[:-1]))
        if self.source == RECORDS:
            raise OptionError("totals-these-records-not-public-take", column=self.column)
        for value, total in self.totals:
            if total <= 0:
                raise OptionError("total-above-0", column=self.column, value=value)

    @property
    def size(self) -> Fraction:
        """The number of people in the population."""
        return sum((total for _, total in self.totals), Fraction(0))


def check_margins(margins: tuple[Margin, ...], attributes: Mapping[str, Attribute]) -> None:
    """Refuse margins of unknown columns or values, and margins of different populations."""
    seen: set[str] = set()
    for margin in margins:
        if margin.column in seen:
            raise OptionError("there-two-margins", column=margin.column)
        seen.add(margin.column)
        attribute = attributes.get(margin.column)
        if attribute is None:
            hint = closest(margin.column, list(attributes))
            raise OptionError("schema-describes-no-such-column", **_margin(margin.column), hint=hint)
        if attribute.kind_facts.ranged:
            raise OptionError("margins-names-column", column=margin.column, found=attribute.kind)
        known = attribute.ordered or (attribute.tree.values if attribute.tree is not None else ())
        for name, _ in margin.totals if known else ():
            if name not in known:
                raise OptionError(
                    "margins-column-no-value", column=margin.column, found=name, hint=closest(name, known)
                )
    for first, other in itertools.pairwise(margins):
        if abs(first.size - other.size) > _SAME * first.size:
            raise OptionError(
                "margins-about-populations-different-size",
                column=first.column,
                other=other.column,
                size=float(first.size),
                other_size=float(other.size),
            )


def _margin(column: str) -> dict[str, Any]:
    """The margin an error concerns, as facts of it."""
    return {"where": Message.of("in-margin", column=column), "column": column}


@displayed(display.of_schema)
@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of a table in column order, the conventions of its file, and the steps before protection.

    Attributes:
        steps: the steps before protection, in order; the attributes are those of the table before them.
        margins: public totals of the population, for columns as they are after the steps.
        before: in a schema that describes a table after its steps, the schema as declared.
        publication: the publisher's description of the publication.
        rules: rules between columns, as they are after the steps, that every released row satisfies.
    """

    attributes: tuple[Attribute, ...]
    file: Conventions = field(default_factory=Conventions)
    steps: tuple[Step, ...] = ()
    margins: tuple[Margin, ...] = ()
    before: Schema | None = None
    publication: Publication = field(default_factory=Publication)
    rules: tuple[Rule, ...] = ()

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
        if self.rules:
            check_rules(self.rules, {a.name: a for a in self.stepped.attributes})
        if self.weight is not None and self.weight.release == "raked" and not self.declared.margins:
            raise OptionError("column-raked-weight-needs-public-margins", column=self.weight.name)

    @property
    def declared(self) -> Schema:
        """The schema of the table as read, before any step."""
        return self if self.before is None else self.before

    @property
    def stepped(self) -> Schema:
        """The schema of the table after its steps, with the schema before them."""
        if self.before is not None or not self.steps:
            return self
        now = {attribute.name: attribute for attribute in self.attributes}
        for step, _, after in self.walk():
            if after is None:
                now.pop(step.column, None)
            else:
                now[step.column] = after
        # steps add no columns, so the order is unchanged
        return Schema(tuple(now.values()), self.file, (), self.margins, self, self.publication, self.rules)

    def walk(self) -> Iterator[tuple[Step, Attribute | None, Attribute | None]]:
        """Each step with its column before and after it; a dropped column need not be described."""
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

    def with_bound(self, bound: Any) -> Schema:
        """The schema with a bound on the rows of each unit that take part, such as {"rows": 3}.

        Raises:
            OptionError: it has no unit column, or the bound is not one.
        """
        schema = self.declared
        if schema.unit is None:
            raise OptionError("bound-needs-unit", option="bound")
        bounded = replace(schema.unit, bound=bound)
        return replace(
            schema, attributes=tuple(bounded if a.role == "unit" else a for a in schema.attributes)
        )

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
        """The survey weight: the one with a declaration, or the first."""
        found = [a for a in self.attributes if a.role == "weight"]
        return next((a for a in found if a.release is not None), found[0] if found else None)

    @property
    def types(self) -> dict[str, ColumnType]:
        """The declared types by column, used to read files."""
        return {a.name: a.type for a in self.attributes if a.type is not None}

    @classmethod
    def infer(cls, data: Any) -> Schema:
        """Guess kinds and roles from names and types; domains stay empty, since they must not come from the data.

        Types are inferred from the records, including those a frame stores: their source says so until somebody
        has checked them or declares a domain.

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
        """Write the schema as TOML for a person to edit."""
        Path(path).write_text(draft_text(self), "utf-8")

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], folder: Path | None = None) -> Schema:
        """A schema from plain values; relative paths of taxonomies refer to `folder`."""
        entries = raw.get("attribute")
        if not isinstance(entries, list) or not entries:
            raise OptionError("there-no-attribute-entry")
        steps, margins, rules = (raw.get(key, []) for key in ("step", "margin", "rule"))
        if "rules" in raw:
            raise OptionError("rules-are-entries")
        for key, found in (("step", steps), ("margin", margins), ("rule", rules)):
            if not isinstance(found, list):
                raise OptionError("option-list-entries", option=key)
        return cls(
            tuple(_attribute(one, folder) for entry in entries for one in _each(entry)),
            Conventions.of(raw.get("file")),
            tuple(Step.from_dict(entry) for entry in steps),
            tuple(Margin.from_dict(entry) for entry in margins),
            publication=Publication.from_dict(raw.get("publication")),
            rules=tuple(_rule(number, entry) for number, entry in enumerate(rules, 1)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values without empty fields: the content of the TOML file, which describes the table before steps."""
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
            **({"rule": [rule.to_dict() for rule in self.rules]} if self.rules else {}),
        }

    def with_types(self, types: Mapping[str, str]) -> Schema:
        """The schema with declared types; an unknown column is an error."""
        changed = {name: self[name].with_type(type) for name, type in types.items()}
        return replace(self, attributes=tuple(changed.get(a.name, a) for a in self.attributes))

    def with_domains(self, domains: Mapping[str, Any]) -> Schema:
        """The schema with public domains; an unknown column is an error."""
        changed = {name: self[name].with_domain(domain) for name, domain in domains.items()}
        return replace(self, attributes=tuple(changed.get(a.name, a) for a in self.attributes))


def draft_text(schema: Schema) -> str:
    """The schema as TOML, with instructions for filling it in."""
    return _HEADER + "\n" + dumps(schema.to_dict())


# order of the keys of an entry: identity, facts, sources
_FIRST = ("name", "kind", "role", "type", "decimals", "format")
# `places` records how lo and hi are written
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
        # the root follows from its children, if it has any
        return pairs[1:] or pairs
    if key == "bound" and value is not None:
        return {"rows": value}
    return list(value) if isinstance(value, tuple) else value


def column_range(text: str) -> tuple[str, ...]:
    """The columns that `Q001 to Q120` denotes; any other text is a single name.

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
    """An entry for one column, or one for each column in `names`."""
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


def _rule(number: int, entry: Any) -> Rule:
    try:
        return Rule.from_dict(entry)
    except OptionError as error:
        raise of_rule(number, error) from None


def _holds_days(kind: object) -> bool:
    return any(name == kind and facts.days for name, facts in KIND_FACTS.items())


def _taxonomy(name: str, given: Any, folder: Path | None) -> Taxonomy:
    """A taxonomy in any form allowed in a schema: the path of a file, nested tables, or pairs of child and parent."""
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
    """A path with `~` and environment variables expanded."""
    for variable in re.findall(r"\$(?:(\w+)|\{(\w+)\})", text):
        wanted = variable[0] or variable[1]
        if wanted not in os.environ:
            raise OptionError("taxonomy-needs-environment-variable-not-set", found=text, variable=wanted)
    return os.path.expanduser(os.path.expandvars(text))


def unsettled(schema: Schema, table: Table | None = None) -> tuple[Message, ...]:
    """One line for everything that keeps a release under this schema from having an unqualified claim.

    The lines contain facts about the records: they are for the custodian, not for publication.

    >>> print(*unsettled(Schema((Attribute("income", type="integer"),))))
    column 'income' has no public domain: declare lo and hi from knowledge other than these records.
    """
    found = [] if table is None else list(table.doubts.values())
    found += [
        Message.of("step-parameters-from-records", where=step.where, column=step.column)
        for step in schema.declared.steps
        if step.from_records
    ]
    schema = schema.stepped
    for attribute in schema.attributes:
        if table is not None and attribute.name not in table.names:
            found.append(Message.of("described-column-not-in-table", column=attribute.name))
            continue
        found += _about_unit(attribute) if attribute.dropped else _about(attribute, table)
    if table is not None:
        found += [
            Message.of("column-not-described", column=name) for name in table.names if name not in schema
        ]
        found += _about_persons(schema, table)
    return tuple(found)


def _about(attribute: Attribute, table: Table | None) -> list[Message]:
    kind = attribute.kind_facts
    lacks = {
        "column-lacks-domain": kind.ranged and attribute.lo is None,
        "column-lacks-order": kind.listed and not attribute.ordered,
        "column-lacks-values": not kind.ordered and attribute.tree is None and attribute.type != "boolean",
        "column-lacks-type": attribute.type is None
        and not attribute.has_domain
        and (table is None or table.reads_cells),
    }
    found = [Message.of(code, column=attribute.name) for code, lacking in lacks.items() if lacking]
    private = tuple(fact for fact in FACTS if fact in attribute.from_records)
    if private:
        code = "facts-from-records" if len(private) > 1 else "fact-from-records"
        found.append(Message.of(code, column=attribute.name, facts=private, records=RECORDS))
    return found if table is None else found + _about_cells(attribute, table)


def _about_cells(attribute: Attribute, table: Table) -> list[Message]:
    """Properties of the records that the schema does not cover."""
    name = attribute.name
    listed = not attribute.kind_facts.ranged
    if listed and attribute.tree is None and not attribute.ordered:
        labels = labels_of(table, attribute)
        absent = np.array([label is None for label in labels])
    else:
        try:
            absent = np.isnan(numbers(table, attribute))
        except InputError as error:
            return [error.message]
    found = _about_range(attribute, table)
    if absent.any() and attribute.missing is None:
        found.append(Message.of("missing-undeclared", column=name, row=int(np.argmax(absent)) + 1))
    if isinstance(table.dtype(name), nw.String):
        formula = first_formula(labels_of(table, attribute))
        if formula is not None:
            found.append(Message.of("formula-in-column", column=name, found=formula[:40]))
        if is_prose(table, name):
            found.append(Message.of("sentences-in-column", column=name))
    return found


def _about_range(attribute: Attribute, table: Table) -> list[Message]:
    """Values that a release refuses unless it clips them."""
    if attribute.lo is None or attribute.hi is None:
        return []
    values = numbers(table, attribute)
    lattice = attribute.lattice(integer=table.is_integer(attribute.name))
    beyond = (values < float(lattice.lo)) | (values > float(lattice.hi))
    return [outside(attribute.name, lattice)] if beyond.any() else []


def _about_unit(attribute: Attribute) -> list[Message]:
    if attribute.role == "weight" and attribute.release is None:
        return [Message.of("weight-undecided", column=attribute.name)]
    if attribute.role != "unit":
        return []
    if attribute.max_rows is None and attribute.bound is None:
        return [Message.of("unit-lacks-max-rows", column=attribute.name)]
    if "max_rows" in attribute.from_records:
        return [Message.of("max-rows-from-records", column=attribute.name)]
    return []


def _about_persons(schema: Schema, table: Table) -> list[Message]:
    """A repeated identifier: a claim would be about rows, and persons have several."""
    found = []
    for attribute in schema.attributes:
        if attribute.role == "identifier" and schema.unit is None and attribute.name in table.names:
            labels = [label for label in labels_of(table, attribute) if label is not None]
            if len(set(labels)) < len(labels) and not is_prose(table, attribute.name):
                found.append(Message.of("identifier-repeats", column=attribute.name))
    if table.n < _FEW_ROWS:
        found.append(Message.of("one-row"))
    return found


def weight_words(schema: Schema) -> Message | None:
    """What a statement says about the weight; None if there is none.

    >>> from shoal import Attribute, Schema
    >>> print(weight_words(Schema((Attribute("age"), Attribute("w", role="weight")))))
    The survey weight w was not released.
    """
    weight = schema.weight
    if weight is None:
        return None
    if weight.release == "masked":
        return Message.of("weight-masked", column=weight.name)
    if weight.release == "raked":
        margins = tuple(
            Message.of("margin-with-source", column=margin.column, source=margin.source)
            for margin in schema.margins
        )
        return Message.of("weight-raked", column=weight.name, margins=margins)
    return Message.of("weight-dropped", column=weight.name)


def unit_words(column: str | None, rows: int | None = 1, called: str | None = None) -> str:
    """The protected unit: one row, or all rows of a unit, with no maximum if `rows` is None.

    >>> unit_words(None), unit_words("person", 3), unit_words("person", None), unit_words("hid", 3, "household")
    ('row', "value of 'person' (at most 3 rows)", "value of 'person'", 'household')
    """
    if column is None:
        return ROW
    if called:
        return called
    return f"value of '{column}'" + (
        "" if rows is None else f" (at most {rows} row{'s' if rows > 1 else ''})"
    )


def same_unit(first: str | None, second: str | None) -> bool:
    """Whether two descriptions are of the same unit, so that charges for it add up.

    A unit without a maximum number of rows, as where rows are bounded, is that with any maximum: its guarantee holds
    for every number of rows. Two different maxima contradict each other.

    >>> same_unit("value of 'who'", "value of 'who' (at most 3 rows)"), same_unit("household", "row")
    (True, False)
    >>> same_unit("value of 'who' (at most 2 rows)", "value of 'who' (at most 3 rows)")
    False
    """
    if first is None or second is None:
        return first is second
    plain = [re.sub(r"(value of '.*') \(at most [0-9]+ rows?\)", r"\1", one) for one in (first, second)]
    return first == second or (
        plain[0] == plain[1] and plain != [first, second] and bool({first, second} & {*plain})
    )
