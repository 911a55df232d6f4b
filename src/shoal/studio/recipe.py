"""What a custodian has settled so far: columns, promise, method and settings, as one value that can be undone.

A recipe holds what was typed. What it means is read by the library, when it is previewed and when it is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.method.models import MODELS
from shoal.method.parameters import Parameter
from shoal.method.registry import DEFAULT_METHOD, method_class
from shoal.studio.promises import BY_NAME, Card

# how a switch is written in a form
ON, OFF = "on", "off"
RAKED = "raked"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that is settled.

    Attributes:
        schema: what is declared about every column of the table.
        left_out: columns that are not to be published although their role would allow it.
        card: the promise, by its name.
        settings: of methods, as they were typed; a method takes those that it has.
        missing, outside: what becomes of odd values.
        raking: a weight that is to be raked and has no public totals yet; empty for none.
        bought: a private choice that was paid for: `tuned`, `tuned_epsilon` and `tuned_choice` as a recipe holds them.
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
    def promise(self) -> Card:
        return BY_NAME[self.card]

    def publishes(self, attribute: Attribute) -> bool:
        return attribute.name not in self.left_out and not attribute.dropped

    @property
    def wanted(self) -> tuple[Attribute, ...]:
        """The columns to be published, as they are after recoding, whether or not the method takes them."""
        return tuple(attribute for attribute in self.schema.stepped.attributes if self.publishes(attribute))

    @property
    def taken(self) -> tuple[Attribute, ...]:
        """Those of them that the method takes."""
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
            MODELS[model].guarantee and not MODELS[model].of_the_table for model in self.promise.models
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
    """The schema with a column declared anew; totals of the population go with the last weight.

    Raises:
        ShoalError: the others do not allow it.
    """
    attributes = tuple(new if attribute is old else attribute for attribute in schema.attributes)
    weighted = any(attribute.role == "weight" for attribute in attributes)
    return replace(schema, attributes=attributes, margins=schema.margins if weighted else ())


def value_of(setting: Parameter, text: str) -> Any:
    """What was typed for a setting; what it cannot be is complained about by whoever reads it."""
    if setting.form.typed is bool:
        return text == ON
    if setting.form.typed is int:
        stripped = text.replace(",", "").strip()
        return int(stripped) if stripped.lstrip("-").isdigit() else text
    return setting.parse(text)


def typed(value: Any) -> str:
    """A value as a form shows it; the reverse of `value_of` for values that one field can hold."""
    from fractions import Fraction

    from shoal.decimals import decimal_text

    if isinstance(value, bool):
        return ON if value else OFF
    if isinstance(value, Fraction):
        return decimal_text(value)
    return "" if value is None else str(value)


def plain(value: Any) -> Any:
    """Fractions as decimal text, so that JSON can hold a schema and nothing is lost."""
    from fractions import Fraction

    from shoal.decimals import decimal_text

    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
