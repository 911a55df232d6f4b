"""How the inputs of a method were chosen: what a statement needs besides the method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal.display import internal
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.mechanisms import Tuned

# what is said in the place of a fact about the records
TAKEN_FROM_DATA = "taken from the data"
# ε per person above which nobody is protected in practice
MOST_EPSILON = Fraction(10)
# δ above which a release is never published: one person in a thousand may be disclosed outright
MOST_DELTA = Fraction(1, 1000)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A fact from the journal of use that bears on what the publisher declares.

    Public: it is looked up by the declared name of the data set, never by the content of the table.

    Attributes:
        code: which fact it is, such as "column-viewed" or "earlier-releases".
        facts: names and counts, as plain values for JSON.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Declared:
    """A public fact that the publisher declares; no program can check that it does not depend on the records.

    Attributes:
        code: which fact it is, such as "range" or "rows-per-person".
        facts: what is declared, and the source it is known from, as plain values for JSON.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)


@internal()
@dataclass(frozen=True, slots=True)
class Provenance:
    """How the inputs of a method were chosen; all that a statement needs besides the method.

    Attributes:
        data_dependent: choices that looked at the records; each one taints the statement.
        private_domains: columns whose domain was taken from the data; their bounds are not stated.
        experiment: codes of what is for experiments only, such as "seeded".
        unit: name of the column that identifies a person, if declared.
        rows_per_unit: declared maximum number of rows of one person.
        rows_declared: whether that maximum was declared; otherwise one row per person is assumed.
        unit_repeats: a person has several rows although no maximum is declared.
        domains: type of each column, ends and step of its domain, and where they are known from, in words.
        separated: missing values stay missing, in clusters of their own.
        nominal: number of released columns whose values have no order.
        bought: settings that were chosen on the records under a budget of their own.
        most_epsilon: the ε per person above which a release is not to be published.
        override: why one above it is published all the same.
        public_rows: the number of rows where it is public, declared or known under replace-one.
        steps: what was done to every record before protection.
        weight: what becomes of the survey weight; None where there is none.
        weighted: the release has a weight.
        recorded: what the journal of use knows that bears on the declarations.
        declared: public facts about the columns, each with its source.
        margins: columns whose public totals the released weights have exactly.
        publication: who publishes what for whom, as the schema says it; plain values.
    """

    data_dependent: tuple[Message, ...] = ()
    private_domains: tuple[str, ...] = ()
    experiment: tuple[str, ...] = ()
    unit: str | None = None
    rows_per_unit: int = 1
    rows_declared: bool = False
    unit_repeats: bool = False
    domains: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    separated: bool = False
    nominal: int = 0
    bought: Tuned | None = None
    most_epsilon: Fraction = MOST_EPSILON
    override: str = ""
    public_rows: int | None = None
    steps: tuple[Message, ...] = ()
    weight: Message | None = None
    weighted: bool = False
    recorded: tuple[Recorded, ...] = ()
    declared: tuple[Declared, ...] = ()
    margins: tuple[str, ...] = ()
    publication: Mapping[str, Any] = field(default_factory=dict)
