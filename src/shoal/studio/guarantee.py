"""Guarantees on offer, the recipe being edited, and the scales of ranges.

The texts here describe the choice; the statement of a release gives its guarantee. A card names
models of privacy and no method: every method whose claim is one of them appears on it automatically.

A recipe holds what was typed. The library interprets it when it is previewed and when it is run.

Nothing is taken from the records before the user asks to see them: until then a scale spans the declared range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from shoal.columns import Attribute, Schema, day_text
from shoal.mechanisms import DEFAULT_METHOD, Method, Parameter, method_class, names
from shoal.numbers import decimal_text
from shoal.privacy import MODELS, Model

# how a switch is written in a form
ON, OFF = "on", "off"
RAKED = "raked"
PLACES = 1000
# space beside the ends, as a share of the width: next to shown values, and to a range alone
_BESIDE_VALUES, _BESIDE_RANGE = 0.08, 0.5


@dataclass(frozen=True, slots=True)
class Card:
    """One guarantee to choose.

    Attributes:
        title: the guarantee in one plain sentence.
        meaning: the effect on the table.
        whom: the tables it is meant for.
        technical: the technical term.
        models: the claims that satisfy it.
        drawing: the macro of `drawings.html` that illustrates it.
        first: the recommended methods; the first that accepts the columns is the default.
        folded: it is shown collapsed below the others.
    """

    name: str
    title: str
    meaning: str
    whom: str
    technical: str
    models: tuple[Model, ...]
    drawing: str
    first: tuple[str, ...] = ()
    folded: bool = False

    @property
    def about_the_table(self) -> bool:
        """Whether the guarantee is about the table itself and depends on what others may know."""
        return any(MODELS[model].of_the_table for model in self.models)

    @property
    def budgeted(self) -> bool:
        return any(MODELS[model].budgeted for model in self.models)


CARDS: tuple[Card, ...] = (
    Card(
        "dp",
        "Plausible deniability for every record",
        "The published table would look almost the same whatever a single record contained.",
        "For tables that anyone may obtain, whatever else they know.",
        "Differential privacy of the records",
        ("dp",),
        "ripples",
        ("pairs-dp", "tree-dp", "laplace"),
    ),
    Card(
        "approximate-dp",
        "Plausible deniability for every record, except with probability δ",
        "The same guarantee with less noise, which may fail with probability δ.",
        "For tables in which relations between columns matter most.",
        "Approximate differential privacy of the records",
        ("approximate-dp",),
        "ripples_apart",
        ("pairs-dp",),
    ),
    Card(
        "given-partition",
        "Noisy averages of groups of similar records",
        "Groups of k similar records share one value, and that value carries noise. The guarantee covers "
        "the noise, not which records form a group.",
        "For readers who can be trusted not to try to recover the groups.",
        "Differential privacy, given the groups",
        ("dp-given-partition",),
        "blur",
        ("mdav-dp", "ranking-dp", "optimal-dp"),
    ),
    Card(
        "k-anonymity",
        "Equivalence classes of at least k records",
        "What others may know about a person matches at least k rows equally well.",
        "For tables whose readers know little about individual people.",
        "k-anonymity",
        ("k-anonymity",),
        "group",
        ("k-anonymity",),
    ),
    Card(
        "swapping",
        "Sensitive values swapped within groups of k",
        "Sensitive values are swapped among k similar records: if these are equally likely beforehand, a value belongs "
        "to a given record with probability at most 1/k.",
        "For tables in which each column must stay exact by itself.",
        "Probabilistic k-anonymity",
        ("probabilistic-k-anonymity",),
        "exchange",
        ("swap-mdav", "swap-ranking"),
    ),
    Card(
        "t-closeness",
        "Groups that reveal little about their members",
        "Knowing a person's group changes the probability of a bucket of sensitive values by a factor of at most t.",
        "For sensitive values that a whole group may share.",
        "t-closeness",
        ("t-closeness",),
        "balance",
        ("t-closeness", "anatomy"),
    ),
    Card(
        "individual",
        "Noise fitted to the actual records",
        "The noise depends on the spread of the actual records; other tables are not compared.",
        "For comparison with the papers; weaker than it sounds.",
        "Individual differential privacy, given the groups",
        ("idp-given-partition",),
        "blur",
        ("idp-cbls", "idp-ls"),
        folded=True,
    ),
    Card(
        "experiments",
        "Experiments: no guarantee",
        "Methods to reproduce and compare. Their output is not for publication.",
        "For research.",
        "No privacy guarantee",
        ("none",),
        "dashed",
        folded=True,
    ),
)
BY_NAME: Mapping[str, Card] = {card.name: card for card in CARDS}


@dataclass(frozen=True, slots=True)
class MethodCard:
    """A method on a card.

    Attributes:
        fixed: settings that its claim requires.
    """

    method: type[Method]
    model: Model
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def words(self) -> str:
        extra = ", columns shuffled separately" if self.fixed.get("link") is False else ""
        return f"{self.method.name}: {self.method.about}{extra}"


def usual_delta(rows: int) -> Fraction:
    """A default δ: far below one over the number of rows.

    >>> str(usual_delta(5000)), str(usual_delta(200_000))
    ('1/1000000', '1/100000000')
    """
    return Fraction(1, 10 ** (math.ceil(math.log10(max(rows, 10))) + 2))


def offers(card: Card, attributes: int, nominal: int, rows: int) -> tuple[MethodCard, ...]:
    """The methods that provide a card's guarantee for the given columns, the recommended ones first."""
    found = []
    for method in map(method_class, names()):
        for fixed in _variants(method, rows):
            model = method.example(**fixed).model(max(attributes, 1), nominal)
            if model in card.models:
                found.append(MethodCard(method, model, fixed))
                break
    order = {name: place for place, name in enumerate(card.first)}
    return tuple(sorted(found, key=lambda offer: order.get(offer.name, len(order))))


def offered(card: Card, kinds: Sequence[str], rows: int, wanted: str | None = None) -> MethodCard | None:
    """The method to use: the requested one, or the first that accepts every kind of column present."""
    found = offers(card, len(kinds), kinds.count("nominal"), rows)
    named = [offer for offer in found if offer.name == wanted]
    fitting = [offer for offer in found if set(kinds) <= set(offer.method.kinds)]
    return next(iter((*named, *fitting, *found)), None)


def _variants(method: type[Method], rows: int) -> Iterator[dict[str, Any]]:
    """A method by default, and with each of the settings that can change its guarantee."""
    yield {}
    for name, value in (("link", False), ("delta", usual_delta(rows)), ("t", 2)):
        if name in method.parameters():
            yield {name: value}


@dataclass(frozen=True, slots=True)
class Slider:
    """A setting shown to every user: large, on a logarithmic scale.

    Attributes:
        low, high: labels of the ends of the scale.
        ends: of the scale; the second may depend on the number of rows.
    """

    title: str
    low: str
    high: str
    ends: tuple[float, float]
    whole: bool = False

    def scale(self, rows: int) -> tuple[float, float]:
        low, high = self.ends
        return low, max(rows // 2, int(low) + 1) if math.isinf(high) else high

    def place(self, value: float, rows: int) -> int:
        """The position of a value on a scale of 0 to 1000.

        >>> SLIDERS["epsilon"].place(1.0, 10)
        500
        """
        low, high = self.scale(rows)
        share = math.log(min(max(value, low), high) / low) / math.log(high / low)
        return round(1000 * share)

    def value(self, place: int, rows: int) -> str:
        """The value at a position, rounded to two digits.

        >>> SLIDERS["epsilon"].value(500, 10), SLIDERS["k"].value(1000, 5000), SLIDERS["delta"].value(0, 1)
        ('1', '2500', '1e-12')
        """
        low, high = self.scale(rows)
        found = low * (high / low) ** (place / 1000)
        if self.whole:
            digits = max(len(str(int(found))) - 2, 0)
            return str(int(min(max(round(found, -digits), low), high)))
        return decimal_text(Fraction(f"{found:.1e}"))


SLIDERS: Mapping[str, Slider] = {
    "epsilon": Slider("Privacy budget ε", "more private", "more accurate", (0.1, 10.0)),
    "delta": Slider("Probability of failure δ", "more private", "more accurate", (1e-12, 1e-4)),
    "k": Slider("Minimum group size k", "more accurate", "more private", (2, math.inf), whole=True),
    "l": Slider(
        "Distinct sensitive values in a group, l", "more accurate", "more private", (2, 20), whole=True
    ),
    "t": Slider("Largest factor, t", "more private", "more accurate", (2, 20), whole=True),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """All choices for a release.

    Attributes:
        schema: what is declared about every column of the table.
        left_out: columns excluded from publication although their role would allow it.
        card: the guarantee, by its name.
        settings: of methods, as typed; a method uses those that it has.
        missing, outside: the treatment of missing values and of values outside their range.
        raking: a weight to be raked that has no public totals yet; empty for none.
        bought: a private choice that was charged: `tuned`, `tuned_epsilon` and `tuned_choice` as in a recipe.
    """

    schema: Schema
    left_out: frozenset[str] = frozenset()
    card: str = "dp"
    method: str = DEFAULT_METHOD
    settings: Mapping[str, str] = field(default_factory=lambda: {"epsilon": "1"})
    missing: str = "error"
    outside: str = "error"
    raking: str = ""
    bought: Mapping[str, Any] = field(default_factory=dict)

    @property
    def guarantee(self) -> Card:
        return BY_NAME[self.card]

    def publishes(self, attribute: Attribute) -> bool:
        return attribute.name not in self.left_out and not attribute.dropped

    @property
    def wanted(self) -> tuple[Attribute, ...]:
        """The columns to publish, as they are after recoding, whether or not the method accepts them."""
        return tuple(attribute for attribute in self.schema.stepped.attributes if self.publishes(attribute))

    @property
    def taken(self) -> tuple[Attribute, ...]:
        """The columns to publish that the method accepts."""
        kinds = method_class(self.method).kinds
        return tuple(attribute for attribute in self.wanted if attribute.kind in kinds)

    @property
    def asked(self) -> dict[str, Any]:
        """The settings of the method, as `shoal.protect` takes them."""
        return {
            name: value_of(own, self.settings[name])
            for name, own in method_class(self.method).parameters().items()
            if self.settings.get(name, "") != ""
        }

    @property
    def fixed_beforehand(self) -> bool:
        """Whether the claim rests on settings that do not depend on the records."""
        return any(
            MODELS[model].guarantee and not MODELS[model].of_the_table for model in self.guarantee.models
        )

    @property
    def request(self) -> dict[str, Any]:
        """The arguments of `shoal.protect`."""
        found: dict[str, Any] = {
            "schema": self.schema,
            "method": self.method,
            **self.asked,
            "columns": [attribute.name for attribute in self.taken],
            "missing": self.missing,
            "outside": self.outside,
        }
        return found | dict(self.bought)

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, for another process."""
        return {**self.request, "schema": plain(self.schema.to_dict())}


def with_attribute(schema: Schema, old: Attribute, new: Attribute) -> Schema:
    """The schema with a changed column; population totals are removed with the last weight.

    Raises:
        ShoalError: it conflicts with the other columns.
    """
    attributes = tuple(new if attribute is old else attribute for attribute in schema.attributes)
    weighted = any(attribute.role == "weight" for attribute in attributes)
    return replace(schema, attributes=attributes, margins=schema.margins if weighted else ())


def value_of(setting: Parameter, text: str) -> Any:
    """The text typed for a setting; its reader reports errors."""
    if setting.form.typed is bool:
        return text == ON
    if setting.form.typed is int:
        stripped = text.replace(",", "").strip()
        return int(stripped) if stripped.lstrip("-").isdigit() else text
    return setting.parse(text)


def typed(value: Any) -> str:
    """A value as shown in a form; the reverse of `value_of` for values that fit in one field."""
    from fractions import Fraction

    from shoal.numbers import decimal_text

    if isinstance(value, bool):
        return ON if value else OFF
    if isinstance(value, Fraction):
        return decimal_text(value)
    return "" if value is None else str(value)


def plain(value: Any) -> Any:
    """Fractions as decimal text, so that JSON can hold a schema without loss."""
    from fractions import Fraction

    from shoal.numbers import decimal_text

    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, slots=True)
class SliderScale:
    """A slider scale with round numbers.

    Attributes:
        step: the smallest difference between positions.
        days: values are dates, counted in days.
    """

    low: float
    high: float
    step: Fraction
    days: bool = False

    def place(self, value: float) -> int:
        """The position of a value on a scale of 0 to 1000.

        >>> around((0, 100), whole=True, room=0).place(25)
        250
        """
        share = (value - self.low) / (self.high - self.low)
        return round(PLACES * min(max(share, 0.0), 1.0))

    def text(self, place: int) -> str:
        """The rounded value at a position, as a form writes it.

        >>> around((0, 100_000), whole=True, room=0).text(333), around((0, 1), room=0).text(333)
        ('33000', '0.33')
        """
        value = self.low + (self.high - self.low) * min(max(place, 0), PLACES) / PLACES
        rounded = round(Fraction(value) / self.step) * self.step
        return day_text(int(rounded)) if self.days else decimal_text(rounded)

    def holds(self, low: float, high: float) -> bool:
        return self.low <= low and high <= self.high


def around(
    ends: tuple[float, float],
    *,
    shown: bool = False,
    whole: bool = False,
    days: bool = False,
    room: float | None = None,
) -> SliderScale:
    """A scale with some space beside the ends; a range without negative values stays so.

    Args:
        shown: values are drawn on it.
        whole: values are integers.

    >>> around((18, 90), shown=True, whole=True)
    SliderScale(low=12.0, high=96.0, step=Fraction(1, 1), days=False)
    """
    low, high = sorted(ends)
    width = (high - low) or max(abs(high), 1.0)
    beside = (_BESIDE_VALUES if shown else _BESIDE_RANGE) if room is None else room
    step = Fraction(10) ** math.floor(math.log10(width / 50))
    if whole or days:
        step = max(step, Fraction(1)) if not days else Fraction(1)
    lowest = math.floor((low - beside * width) / float(step)) * step
    highest = math.ceil((high + beside * width) / float(step)) * step
    if low >= 0 and not days:
        lowest = max(lowest, Fraction(0))
    return SliderScale(float(lowest), float(highest), step, days)
