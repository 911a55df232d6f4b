"""Edit columns and rules, and choose a guarantee, a method and its parameters."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, get_args

from shoal.columns import (
    COMMON,
    FACTS,
    KIND_FACTS,
    RECORDS,
    SOURCES,
    Attribute,
    Combinations,
    Derived,
    Implication,
    Kind,
    MissingIf,
    Order,
    Role,
    Rule,
    Step,
    common_range,
    day_text,
)
from shoal.errors import OptionError, ShoalError
from shoal.io import ColumnType
from shoal.mechanisms import method_class, names, names_in
from shoal.numbers import decimal_text
from shoal.studio.guarantee import BY_NAME, Recipe, offered, typed
from shoal.taxonomy import Taxonomy

# labels and order of the lists on the page
ROLES: Mapping[str, str] = {
    "quasi-identifier": "Quasi-identifier",
    "confidential": "Sensitive attribute",
    "other": "Neither",
    "identifier": "Direct identifier: drop",
    "weight": "Sampling weight",
    "unit": "Unit (person, household): drop; may have several rows",
}
KINDS: Mapping[str, str] = {
    "numeric": "Number",
    "date": "Date",
    "ordinal": "Ordered",
    "nominal": "Category",
}
TYPES: tuple[str, ...] = get_args(ColumnType)


@dataclass(frozen=True, slots=True)
class RuleKind:
    """A kind of rule as a form offers it.

    Attributes:
        needs: the fields that must be filled in.
    """

    title: str
    about: str
    example: str
    needs: tuple[str, ...]


RULE_KINDS: Mapping[str, RuleKind] = {
    "order": RuleKind(
        "Order of two columns",
        "The later value is never below the earlier one. Differences are counted in days for dates.",
        "admission <= discharge <= admission + 365",
        ("low", "high"),
    ),
    "implication": RuleKind(
        "If, then",
        "In rows where the condition holds, the conclusion holds too.",
        'age < 16 -> marital = "never"',
        ("if", "then"),
    ),
    "derived": RuleKind(
        "Derived column",
        "The column is computed from other columns. It is not measured, so the others get its share of ε.",
        "age = years(born, 2027-01-01)",
        ("column", "expression"),
    ),
    "missing-if": RuleKind(
        "Missing if",
        "In rows where the condition holds, the column has no value.",
        'spouse_age missing if marital = "never"',
        ("column", "if"),
    ),
    "combinations": RuleKind(
        "Allowed combinations",
        "The values of the columns are together one line of a small table.",
        "region, district take one of 3 allowed combinations",
        ("table",),
    ),
}
# how the two columns of an order are compared; without a sign, only their largest difference is bounded
RULE_SIGNS: Mapping[str, str] = {
    "<=": "is at most",
    "<": "is below",
    "": "is anywhere, up to a difference of",
}
RULE_FIELDS = (
    "place",
    "source",
    "low",
    "sign",
    "high",
    "least",
    "most",
    "if",
    "then",
    "column",
    "expression",
    "table",
)
_PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")
_WORDS_OF_RULES = ("and", "if", "in", "is", "missing", "months", "not", "years")
# settings that belong to a claim and change with it
_OF_THE_CLAIM = ("link", "delta", "t")


assert set(ROLES) == set(get_args(Role))
assert set(KINDS) == set(KIND_FACTS)


@dataclass(frozen=True, slots=True)
class Draft:
    """Invalid input for a column, kept so that it can be corrected in place."""

    typed: Mapping[str, str] = field(default_factory=dict)
    problem: ShoalError | None = None
    short: str = ""


def changed(attribute: Attribute, what: str, value: Any, found: Sequence[str] = ()) -> Attribute:
    """The attribute after one change.

    Args:
        what: the fact, one of `_CHANGES`.
        value: as sent by the page.
        found: the values of the column in the file, for confirming a list.

    Raises:
        ShoalError: it is not valid; the line names the column.
    """
    if what not in _CHANGES:
        raise OptionError("column-nothing-called", column=attribute.name, what=what)
    return _CHANGES[what](attribute, value, found)


def _kind(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    kind: Kind = value
    facts = KIND_FACTS.get(kind)
    if facts is None:
        raise OptionError("column-kind-not", column=attribute.name, value=value, allowed=tuple(KIND_FACTS))
    keeps = facts.takes(attribute.type)
    return replace(
        attribute,
        kind=kind,
        type=attribute.type if keeps else (facts.own_types or (None,))[0],
        decimals=attribute.decimals if facts.measured and keeps else None,
        step=attribute.step if facts.measured else None,
        lo=None,
        hi=None,
        ordered=(),
        values=(),
        taxonomy=None,
        source=_without(attribute, "domain"),
    )


def _type(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    source = attribute.source.get("kind", "")
    made = attribute.with_type(str(value))
    # confirming the column earlier also confirmed its type
    return replace(made, source={**made.source, **({"kind": source, "type": source} if source else {})})


def _role(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    return replace(
        attribute,
        role=value,
        max_rows=attribute.max_rows if value == "unit" else None,
        called=attribute.called if value == "unit" else None,
        bound=attribute.bound if value == "unit" else None,
        release=attribute.release if value == "weight" else None,
    )


def _range(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    lo, hi = (str(end).strip() for end in value)
    kept = attribute.source
    if not lo and not hi:
        return replace(attribute, lo=None, hi=None, source=_without(attribute, "domain"))
    if not lo or not hi:
        raise OptionError("column-give-both-ends-range-neither", column=attribute.name)
    made = attribute.with_domain((lo, hi))
    if attribute.type is None:
        return replace(made, source=kept)
    return replace(
        made,
        type=attribute.type,
        decimals=attribute.decimals,
        format=attribute.format,
        step=attribute.step,
        places=None,
        source=kept,
    )


def _suggestion(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    ends = common_range(attribute.name)
    if ends is None:
        raise OptionError("column-no-range-common-knowledge", column=attribute.name)
    made = _range(attribute, ends, found)
    return replace(made, source={**made.source, "domain": COMMON})


def _values(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    listed = _lines(value) if value is not None else list(found)
    return replace(attribute, values=tuple(listed), taxonomy=None)


def _ordered(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    listed = _lines(value) if value is not None else list(found)
    return replace(attribute, ordered=tuple(listed))


def _taxonomy(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    if not value:
        return replace(attribute, taxonomy=None)
    tree = value if isinstance(value, Taxonomy) else Taxonomy.from_pairs(_pairs(attribute.name, value))
    return replace(attribute, taxonomy=tree, values=())


def _rename(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    """Rename a value of the list to the spelling in the records."""
    listed, written = map(str, value)

    def named(name: str) -> str:
        return written if name == listed else name

    if attribute.taxonomy is not None:
        pairs = [(named(child), named(parent)) for child, parent in attribute.taxonomy.to_pairs() if parent]
        return replace(attribute, taxonomy=Taxonomy.from_pairs(pairs), values=())
    return replace(
        attribute,
        values=tuple(map(named, attribute.values)),
        ordered=tuple(map(named, attribute.ordered)),
    )


def _source(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    if not value:
        return replace(attribute, source={})
    if value not in SOURCES:
        raise OptionError(
            "editing-column-source-not", column=attribute.name, value=value, allowed=tuple(SOURCES)
        )
    return replace(attribute, source=dict.fromkeys(FACTS, value))


def _missing(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    return replace(attribute, missing=value or None)


def _step(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    from shoal.numbers import exact

    text = str(value).strip()
    step = exact(text, f"column '{attribute.name}': step") if text else None
    if step is not None and step <= 0:
        raise OptionError("column-step-above-0", column=attribute.name, found=text)
    decimals = attribute.decimals
    if step is not None and decimals is not None and (step * 10**decimals).denominator != 1:
        decimals = None
    return replace(attribute, step=step, decimals=decimals)


def _max_rows(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    text = str(value).strip()
    if text and not text.isdigit():
        raise OptionError("column-max-rows-whole-number-least", column=attribute.name, found=text)
    return replace(attribute, max_rows=int(text) if text else None)


def _bound(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    """At most so many rows of each unit take part; all of them where it is empty."""
    text = str(value).strip()
    made: Any = int(text) if text.isdecimal() else text or None
    return replace(attribute, bound=made)


def _called(attribute: Attribute, value: Any, found: Sequence[str]) -> Attribute:
    """The word for one unit in statements."""
    return replace(attribute, called=str(value).strip() or None)


_CHANGES: Mapping[str, Callable[[Attribute, Any, Sequence[str]], Attribute]] = {
    "kind": _kind,
    "type": _type,
    "role": _role,
    "range": _range,
    "suggestion": _suggestion,
    "values": _values,
    "ordered": _ordered,
    "taxonomy": _taxonomy,
    "rename": _rename,
    "source": _source,
    "missing": _missing,
    "step": _step,
    "max_rows": _max_rows,
    "bound": _bound,
    "called": _called,
}


def step_of(attribute: Attribute, form: Mapping[str, str]) -> Step:
    """A preprocessing step as typed: `breaks`, `mapping`, `level`, `top` or `bottom`, and its `source`.

    >>> step_of(Attribute("age"), {"breaks": "0, 30, 65, inf"}).words
    'column age is recoded into 3 bands: (0,30], (30,65], (65,inf)'

    Raises:
        OptionError: it is not valid; the line names the step.
    """
    name, source = attribute.name, form.get("source") or source_of(attribute)
    told = {"source": source} if source else {}
    if breaks := form.get("breaks", "").strip():
        return Step.recode(name, breaks=[_end(part) for part in breaks.split(",") if part.strip()], **told)
    if mapping := form.get("mapping", "").strip():
        pairs = [line.partition("->") for line in mapping.splitlines() if "->" in line]
        return Step.recode(name, mapping={old.strip(): new.strip() for old, _, new in pairs}, **told)
    if (level := form.get("level", "").strip()) and level.isdigit():
        return Step.recode(name, level=int(level), **told)
    if top := form.get("top", "").strip():
        return Step.top(name, _end(top), **told)
    if bottom := form.get("bottom", "").strip():
        return Step.bottom(name, _end(bottom), **told)
    raise OptionError("column-say-into-bands-how-names", column=name)


def _end(text: str) -> Any:
    """A bound as written in a schema file: a number, an open end, or a date."""
    word = text.strip()
    if word in ("inf", "-inf"):
        return float(word)
    try:
        return Decimal(word)
    except InvalidOperation:
        return word


def in_rule(name: str) -> str:
    """The name of a column as a rule spells it.

    >>> in_rule("age"), in_rule("hours per week")
    ('age', '`hours per week`')
    """
    plain = _PLAIN_NAME.fullmatch(name) is not None and name not in _WORDS_OF_RULES
    return name if plain else f"`{name}`"


def rule_of(form: Mapping[str, str]) -> Rule:
    """A rule as typed: its `kind`, the fields of this kind, and its `source`.

    >>> rule_of({"kind": "order", "low": "first", "sign": "<=", "high": "last", "source": "law"}).words
    'first <= last'

    Raises:
        OptionError: it is not valid; says where.
    """
    told = {name: str(value).strip() for name, value in form.items()}
    kind = RULE_KINDS.get(told.get("kind", ""))
    if kind is None:
        raise OptionError("rule-kind-unknown", found=told.get("kind", ""), allowed=tuple(RULE_KINDS))
    if not all(told.get(name) for name in kind.needs):
        raise OptionError("rule-field-empty", example=kind.example)
    given: dict[str, Any] = {"source": told.get("source", "")}
    if told["kind"] == "combinations":
        names, *rows = _cells(told["table"])
        given |= {"columns": names, "allowed": rows}
    else:
        given["keep"] = _SENTENCES[told["kind"]](told)
    made = Rule.from_dict(given)
    if made.kind != told["kind"]:
        raise OptionError("rule-kind-other", rule=made.words, found=made.kind, wanted=told["kind"])
    return made


def _order_text(told: Mapping[str, str]) -> str:
    low, high = in_rule(told["low"]), in_rule(told["high"])
    least, most, sign = (told.get(name, "") for name in ("least", "most", "sign"))
    if not sign:
        if not most or least:
            raise OptionError("rule-order-without-sign")
        return f"{high} - {low} <= {most}"
    first = f"{low} + {least}" if least else low
    return f"{first} {sign} {high}" + (f" <= {low} + {most}" if most else "")


_SENTENCES: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    "order": _order_text,
    "implication": lambda told: f"{told['if']} -> {told['then']}",
    "derived": lambda told: f"{in_rule(told['column'])} = {told['expression']}",
    "missing-if": lambda told: f"{in_rule(told['column'])} missing if {told['if']}",
}


def _cells(text: str) -> list[list[str]]:
    """The lines of a pasted table, without empty ones."""
    lines = [line for line in text.replace("\r", "").split("\n") if line.strip()]
    mark = next((mark for mark in ("\t", ";", ",") if mark in lines[0]), ",")
    try:
        rows = list(csv.reader(lines, delimiter=mark, skipinitialspace=True))
    except csv.Error:
        raise OptionError("rule-combinations") from None
    return [[cell.strip() for cell in row] for row in rows]


def rule_fields(rule: Rule) -> dict[str, str]:
    """A rule as the fields of its form: the reverse of `rule_of`.

    >>> rule_fields(Rule("first + 1 <= last", "law"))["least"]
    '1'
    """
    found = {"kind": rule.kind, "source": rule.source}
    meaning = rule.meaning
    if isinstance(meaning, Order):
        least = meaning.least
        sign = "" if least is None else "<" if meaning.strict else "<="
        return found | {
            "low": meaning.low,
            "high": meaning.high,
            "sign": sign,
            "least": decimal_text(least) if least else "",
            "most": "" if meaning.most is None else decimal_text(meaning.most),
        }
    if isinstance(meaning, Implication):
        given, _, then = rule.keep.partition("->")
        return found | {"if": given.strip(), "then": then.strip()}
    if isinstance(meaning, MissingIf):
        return found | {"column": meaning.column, "if": rule.keep.partition(" missing if ")[2].strip()}
    if isinstance(meaning, Derived):
        return found | {"column": meaning.column, "expression": rule.keep.partition("=")[2].strip()}
    assert isinstance(meaning, Combinations)
    lines = (meaning.columns, *meaning.allowed)
    return found | {"table": "\n".join(", ".join(map(_quoted, line)) for line in lines)}


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(sign in cell for sign in ',;\t"') else cell


def short_problem(what: str, value: Any, error: ShoalError) -> str:
    """A problem in two or three words, for a badge."""
    if what == "range":
        lo, hi = (str(end).strip() for end in value)
        if not lo or not hi:
            return "one end missing"
        return "low above high" if _says(error, "domain-needs-lo-hi") else "no range"
    return "check this"


def _says(error: ShoalError, code: str) -> bool:
    """Whether an error, or its reason, is of this kind."""
    reason = error.facts.get("reason")
    return error.code == code or (isinstance(reason, ShoalError) and _says(reason, code))


def range_words(attribute: Attribute) -> tuple[str, str]:
    """The ends of a range as a form shows them."""
    if attribute.lo is None or attribute.hi is None:
        return "", ""
    if attribute.kind_facts.days:
        return day_text(int(attribute.lo)), day_text(int(attribute.hi))
    return decimal_text(attribute.lo), decimal_text(attribute.hi)


def source_of(attribute: Attribute) -> str:
    """The source of a column's facts, as one choice; empty where undeclared, or where its facts differ."""
    facts = [fact for fact in attribute.facts if fact != "max_rows"]
    known = {attribute.source.get(fact, "") for fact in facts}
    if RECORDS in known:
        return RECORDS
    return next(iter(known)) if len(known) == 1 else ""


def _without(attribute: Attribute, *facts: str) -> dict[str, str]:
    return {fact: origin for fact, origin in attribute.source.items() if fact not in facts}


def _lines(value: Any) -> list[str]:
    lines = value if isinstance(value, list) else str(value).replace("\r", "").split("\n")
    return list(dict.fromkeys(text for line in lines if (text := str(line).strip())))


def _pairs(name: str, text: str) -> list[tuple[str, str]]:
    """Links of a pasted taxonomy: in each line one value and its group."""
    found = []
    for number, line in enumerate(str(text).replace("\r", "").split("\n"), start=1):
        if not line.strip():
            continue
        mark = next((mark for mark in ("\t", ";", ",") if mark in line), None)
        child, _, parent = line.partition(mark or ",")
        if not child.strip() or not parent.strip():
            raise OptionError("column-line-taxonomy-no-group", column=name, number=number)
        found.append((child.strip(), parent.strip()))
    return found


def with_guarantee(recipe: Recipe, rows: int, card: str | None = None, method: str | None = None) -> Recipe:
    """Choose a guarantee, which with the columns determines the possible methods, and fill in the claim's settings.

    Args:
        rows: of the table, which is public here.
        card: the guarantee; that of the recipe by default.
        method: the method; that of the recipe by default, as long as the guarantee stays.

    Raises:
        OptionError: there is no such guarantee, or no method provides it for these columns.
    """
    if card is not None and card not in BY_NAME:
        raise OptionError("there-no-promise", card=card)
    wanted = BY_NAME[card or recipe.card]
    kinds = [attribute.kind for attribute in recipe.wanted]
    offer = offered(wanted, kinds, rows, method or (recipe.method if card is None else None))
    if offer is None:
        raise OptionError("no-method-keeps-promise-these-columns", title=wanted.title)
    settings = {name: value for name, value in recipe.settings.items() if name not in _OF_THE_CLAIM}
    settings |= {name: typed(value) for name, value in offer.fixed.items()}
    if method is not None or card is not None:
        # usual sizes of one method are not usual for another
        settings.pop("k", None)
    own = offer.method.parameters()
    if "k" in own and own["k"].default is not None:
        settings.setdefault("k", typed(own["k"].default))
    if "t" in own and "t-closeness" in wanted.models:
        settings.setdefault("t", typed(own["t"].default or 2))
    settings.setdefault("epsilon", "1")
    return replace(recipe, card=wanted.name, method=offer.name, settings=settings, bought={})


def with_setting(recipe: Recipe, name: str, value: str) -> Recipe:
    """A setting as typed; empty input stands for the method's default.

    Raises:
        OptionError: the method has no such option.
    """
    if name == "missing":
        return replace(recipe, missing=value)
    if name == "outside":
        return replace(recipe, outside=value)
    if name not in method_class(recipe.method).parameters():
        raise OptionError("method-no-option", method=recipe.method, name=name)
    return replace(recipe, settings={**recipe.settings, name: value})


def with_column(recipe: Recipe, name: str, column: str, *, on: bool) -> Recipe:
    """A setting that lists columns, such as strata, with one column more or less.

    Raises:
        OptionError: the method has no such option.
    """
    known = names_in(recipe.settings.get(name, ""))
    listed = [*known, column] if on else [one for one in known if one != column]
    return with_setting(recipe, name, ",".join(dict.fromkeys(listed)))


def with_settings_of(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """The method and settings of a run, or of compared settings.

    Raises:
        OptionError: there is no such method.
    """
    method = str(settings["method"])
    if method not in names():
        raise OptionError("there-no-method", method=method)
    known = method_class(method).parameters()
    chosen = {name: typed(value) for name, value in settings.items() if name in known and value is not None}
    return replace(recipe, method=method, settings={**recipe.settings, **chosen}, bought={})
