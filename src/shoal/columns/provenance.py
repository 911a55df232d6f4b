"""Provenance: how the inputs of a method were chosen, which a statement needs besides the method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal.display import internal
from shoal.noise import MOST_EPSILON
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.mechanisms import Tuned

# printed instead of a fact about the records
TAKEN_FROM_DATA = "taken from the data"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A fact from the journal of use that bears on the publisher's declarations.

    Public: it is looked up by the declared name of the data set, never by the content of the table.

    Attributes:
        code: the kind of fact, such as "column-viewed" or "earlier-releases".
        facts: names and counts, as plain values for JSON.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Declared:
    """A public fact declared by the publisher; no program can check that it does not depend on the records.

    Attributes:
        code: the kind of fact, such as "range" or "rows-per-person".
        facts: the declaration and its source, as plain values for JSON.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)


@internal()
@dataclass(frozen=True, slots=True)
class Provenance:
    """How the inputs of a method were chosen; everything a statement needs besides the method.

    Attributes:
        data_dependent: choices that depended on the records; each one taints the statement.
        private_domains: columns whose domain was taken from the data; their bounds are not stated.
        experiment: codes of features for experiments only, such as "seeded".
        unit: name of the column that identifies a person, if declared.
        unit_word: the word for one unit, such as "household"; empty if none is declared.
        rows_per_unit: the most rows of one person that take part, declared or bounded.
        bounded: rows beyond that maximum were left out, so that nothing has to be declared.
        rows_declared: whether that maximum was declared; otherwise one row per person is assumed.
        unit_repeats: a person has several rows although no maximum is declared.
        domains: type of each column, ends and step of its domain, and their sources, in words.
        separated: missing values stay missing, in clusters of their own.
        nominal: number of released columns whose values have no order.
        bought: settings chosen on the records under a separate budget.
        most_epsilon: the ε per person above which a release is not to be published.
        override: the reason for publishing one above it.
        public_rows: the number of rows if it is public, declared or known under replace-one.
        steps: the steps applied to every record before protection.
        weight: the treatment of the survey weight; None if there is none.
        weighted: the release includes a weight.
        recorded: facts from the journal of use that bear on the declarations.
        declared: public facts about the columns, each with its source.
        margins: columns whose public totals the released weights match exactly.
        publication: the publisher's description of the publication from the schema, as plain values.
    """

    data_dependent: tuple[Message, ...] = ()
    private_domains: tuple[str, ...] = ()
    experiment: tuple[str, ...] = ()
    unit: str | None = None
    unit_word: str = ""
    rows_per_unit: int = 1
    bounded: bool = False
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
