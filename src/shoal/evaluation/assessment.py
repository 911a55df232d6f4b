"""Assess a table: measure the k-anonymity, l-diversity and t-closeness that it reaches, and judge a release.

The public part of a verdict decides (`shoal.privacy.verdict`). The private part is what was measured on the original
records. For a claim with an ε it is advice only: withholding or repairing a release because of it would be a
data-dependent choice. The k-anonymity family makes no claim that such a choice could void; there the measured part
decides too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal import display
from shoal.arguments import as_names, renamed_arguments, renamed_attributes
from shoal.columns import Schema, read_declared, rows_breaking
from shoal.display import displayed, internal
from shoal.errors import InputError, OptionError
from shoal.evaluation.disclosure import risk
from shoal.evaluation.disclosure.record_risk import diversity
from shoal.evaluation.disclosure.result import RiskFigures, units_of
from shoal.evaluation.learning import Interval
from shoal.evaluation.pair import plain
from shoal.evaluation.result import Finding, usefulness
from shoal.io import Table, read
from shoal.partition import (
    EMD,
    actual_k,
    coded,
    column_codes,
    count_groups,
    ratio_distances,
    row_groups,
    units_of_groups,
    within,
)
from shoal.privacy import (
    DECISION_CODES,
    DECISIONS,
    LEVELS,
    MODELS,
    Decision,
    Level,
    PublicVerdict,
    public_verdict,
)
from shoal.progress import Progress, silent
from shoal.text import Message

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table as TextTable


@internal()
@dataclass(frozen=True, slots=True)
class Closeness:
    """Diversity and closeness of one sensitive attribute over the equivalence classes.

    Attributes:
        values: number of distinct values in the whole table.
        distinct_l: fewest distinct values in a group, a missing one counted as the commonest.
        entropy_l: exponential of the least entropy of a group, computed likewise.
        emd: largest earth mover's distance of a group to the table.
        ground: the ground distance of two values: `ordered` or `equal`.
        ratio: largest ratio, either way, between a value's share in a group and in the table; infinite where
            a group lacks a value.
    """

    values: int
    distinct_l: int
    entropy_l: float
    emd: float
    ground: str
    ratio: float


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class Persons:
    """The persons behind a table's rows, where persons are counted instead of rows.

    Attributes:
        unit: the column that identifies the person.
        number: number of persons.
        alone: number of persons who have a row in a group with nobody else.
        rows: number of their rows.
    """

    unit: str
    number: int
    alone: int
    rows: int

    @classmethod
    def of(cls, unit: str, units: NDArray[np.int64], labels: NDArray[np.int64]) -> Persons:
        """From the person and the group of each row."""
        alone = units_of_groups(labels, units)[labels] == 1
        return cls(unit, int(np.unique(units).size), int(np.unique(units[alone]).size), int(units.size))


@internal(".words")
@dataclass(frozen=True, slots=True)
class Requirement:
    """A requested level, the level found, and whether it is reached."""

    name: str
    wanted: float
    found: float
    met: bool

    @property
    def words(self) -> str:
        verdict = "met" if self.met else "not met"
        return f"{self.name} {self.wanted:g}: {verdict}, found {_shown(self.found)}"


@renamed_attributes(quasi="quasi_identifiers", confidential="sensitive")
@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class Check:
    """The levels of protection that a table reaches, measured from the table alone.

    Attributes:
        rows: number of rows.
        quasi_identifiers: the columns that define the groups.
        groups: number of equivalence classes.
        k: size of the smallest group.
        unique: number of rows with no equal row.
        reidentification: probability 1/|group| of picking the right row of a group, over all rows: the largest, the
            mean, the median, and the share of rows above 1/2, 1/5, 1/10 and 1/20.
        sensitive: diversity and closeness of each sensitive attribute.
        disclosure: individual and global risk, special uniques and so on, with missing as a separate value; None
            where it was not measured.
        requirements: the requested levels.
        told: what was not measured because the table was read in parts; `remarks` has it as text.
        persons: where persons are counted: sizes of groups, risks and shares of values are then those of persons, who
            count once in each of their groups, and `unique` is the number of persons alone in one of them.
        rules: number of rows that break each rule of the schema; None where the table does not show that.
    """

    rows: int
    quasi_identifiers: tuple[str, ...]
    groups: int
    k: int
    unique: int
    reidentification: Mapping[str, Any]
    sensitive: Mapping[str, Closeness]
    disclosure: RiskFigures | None
    requirements: tuple[Requirement, ...]
    told: tuple[Message, ...] = ()
    persons: Persons | None = None
    rules: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def rule_lines(self) -> tuple[str, ...]:
        """One sentence for each rule of the schema."""
        return tuple(
            str(
                Message.of("rule-not-tested", rule=rule)
                if count is None
                else Message.of("rule-broken", rule=rule, count=count)
            )
            for rule, count in self.rules.items()
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(map(str, self.told))

    @property
    def met(self) -> bool:
        """Every requested level is reached."""
        return all(requirement.met for requirement in self.requirements)

    @property
    def distinct_l(self) -> int | None:
        """The smallest distinct l of all sensitive attributes; None without one."""
        return min((entry.distinct_l for entry in self.sensitive.values()), default=None)

    @property
    def entropy_l(self) -> float | None:
        return min((entry.entropy_l for entry in self.sensitive.values()), default=None)

    @property
    def emd(self) -> float | None:
        """The largest earth mover's distance of all sensitive attributes."""
        return max((entry.emd for entry in self.sensitive.values()), default=None)

    @property
    def ratio(self) -> float | None:
        return max((entry.ratio for entry in self.sensitive.values()), default=None)

    @property
    def unique_share(self) -> float:
        """Share of rows with no equal row, or of persons who are alone in a group."""
        return self.unique / (self.rows if self.persons is None else self.persons.number)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite ratio is None."""
        return {
            "rows": self.rows,
            **({} if self.persons is None else {"unit": self.persons.unit, "persons": self.persons.number}),
            "quasi": list(self.quasi_identifiers),
            "groups": self.groups,
            "k": self.k,
            "unique": self.unique,
            "unique_share": self.unique_share,
            "reidentification": plain(self.reidentification),
            "distinct_l": self.distinct_l,
            "entropy_l": self.entropy_l,
            "t_emd": self.emd,
            "t_ratio": plain(self.ratio),
            "confidential": {
                name: {
                    "values": entry.values,
                    "distinct_l": entry.distinct_l,
                    "entropy_l": entry.entropy_l,
                    "t_emd": entry.emd,
                    "ground": entry.ground,
                    "t_ratio": plain(entry.ratio),
                }
                for name, entry in self.sensitive.items()
            },
            "risk": None if self.disclosure is None else self.disclosure.to_dict(),
            "requirements": [
                {"name": r.name, "wanted": r.wanted, "found": plain(r.found), "met": r.met}
                for r in self.requirements
            ],
            **({"rules": dict(self.rules)} if self.rules else {}),
            "met": self.met,
            "remarks": list(self.remarks),
        }

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.markup import escape

        risk = self.reidentification
        who, one, of = ("rows", "row", "") if self.persons is None else ("persons", "person", self._whose)
        whole = _titled(f"{of}{self.rows} rows, grouped by {escape(', '.join(self.quasi_identifiers))}")
        whole.add_column("measure", no_wrap=True)
        whole.add_column("value", justify="right", no_wrap=True)
        whole.add_column("meaning")
        for name, value, meaning in (
            ("k", str(self.k), f"{who} of the smallest group"),
            ("groups", str(self.groups), "different combinations of the columns"),
            (f"unique {who}", f"{self.unique_share:.2%}", f"{who} that no other {one} equals"),
            ("largest risk", _shown(risk["largest"]), f"chance of picking the right {one} of a group"),
            ("mean risk", _shown(risk["mean"]), f"the same, over all {who}"),
            ("risk above 1/5", f"{risk['above_one_in_5']:.2%}", f"share of the {who}"),
        ):
            whole.add_row(name, value, meaning)
        parts = [whole]
        if self.sensitive:
            parts.append(self._of_confidential())
        if self.disclosure is not None:
            disclosed = _titled("Disclosure risk")
            disclosed.add_column("measure", overflow="fold")
            disclosed.add_column("value", justify="right", no_wrap=True)
            disclosed.add_column("meaning")
            for line in self.disclosure.lines():
                disclosed.add_row(*map(escape, line))
            disclosed.caption = escape(self.disclosure.conditions)
            parts.append(disclosed)
        return Group(*parts)

    @property
    def _whose(self) -> str:
        from rich.markup import escape

        return (
            ""
            if self.persons is None
            else f"{self.persons.number} persons ({escape(self.persons.unit)}) with "
        )

    def _of_confidential(self) -> TextTable:
        from rich.markup import escape

        own = _titled("What groups reveal about sensitive attributes (worst group)")
        own.add_column("column", overflow="fold")
        for title in ("values", "distinct l", "entropy l", "t (EMD)", "ground", "t (ratio)"):
            own.add_column(title, justify="right", no_wrap=True)
        for name, entry in self.sensitive.items():
            cells = (str(entry.values), str(entry.distinct_l), *map(_shown, (entry.entropy_l, entry.emd)))
            own.add_row(escape(name), *cells, entry.ground, _shown(entry.ratio))
        return own


def _titled(title: str) -> TextTable:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as TextTable

    return TextTable(
        title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )


def _shown(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"


# reported risk thresholds, as one row in this many
_ONE_IN = (2, 5, 10, 20)


@renamed_arguments(quasi="quasi_identifiers", confidential="sensitive")
def check(
    table: Any,
    quasi_identifiers: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    *,
    schema: Schema | None = None,
    k: int | None = None,
    l: int | None = None,  # noqa: E741
    t_emd: float | None = None,
    t_ratio: float | None = None,
    weight: str | None = None,
    household: str | None = None,
    unit: str | None = None,
    progress: Progress | None = None,
) -> Check:
    """`shoal.check` of a table in memory, or one that is read a column at a time; its arguments are documented there.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 40, 40], "ill": ["a", "b", "b", "b"]})
    >>> found = check(people, ["age"], ["ill"], k=2, l=2)
    >>> found.k, found.distinct_l, found.emd, found.met
    (2, 1, 0.25, False)
    """
    data = read(table) if schema is None else read_declared(table, schema)
    schema = None if schema is None else schema.stepped
    if data.n == 0:
        raise InputError("checks-table-no-rows")
    known, secret = asked_columns(data, quasi_identifiers, sensitive, schema)
    levels = {"k": k, "l": l, "t_emd": t_emd, "t_ratio": t_ratio}
    check_levels(levels, secret)
    tell = progress or silent
    tell("grouping rows", 0, 1)
    groups = row_groups(_codes(data, name) for name in known)
    unit = unit if unit is not None else unit_of_schema(data, schema)
    units = None if unit is None else units_of(data, unit)
    found: dict[str, Closeness] = {}
    for number, name in enumerate(secret):
        tell("looking at confidential columns", number, len(secret))
        found[name] = _closeness(data, name, groups.labels, schema, units)
    measured = risk(
        data,
        known,
        weight,
        household,
        unit=unit,
        schema=schema,
        sensitive=secret,
        missing="category",
        progress=tell,
    )
    sizes = groups.sizes if units is None else units_of_groups(groups.labels, units)
    persons = None if units is None else Persons.of(unit or "", units, groups.labels)
    counted = np.unique(sizes, return_counts=True)
    result = checked(known, *counted, found, measured.figures, levels, persons=persons)
    return (
        replace(result, rules=rows_breaking(data, schema)) if schema is not None and schema.rules else result
    )


def check_levels(levels: Mapping[str, float | None], secret: Sequence[str]) -> None:
    """Refuse levels that are not valid requirements."""
    for name, value in levels.items():
        if value is not None and (isinstance(value, bool) or not value >= (0 if name == "t_emd" else 1)):
            raise OptionError("level-too-low", option=name, least=0 if name == "t_emd" else 1, found=value)
        if value is not None and name != "k" and not secret:
            raise OptionError("about-confidential-column", option="sensitive", level=name)


def checked(
    known: Sequence[str],
    sizes: NDArray[np.int64],
    groups: NDArray[np.int64],
    found: Mapping[str, Closeness],
    disclosure: RiskFigures | None,
    levels: Mapping[str, float | None],
    told: tuple[Message, ...] = (),
    persons: Persons | None = None,
) -> Check:
    """Levels of protection from how many equivalence classes have each size, ascending, and their other measures.

    Sizes are numbers of rows, or of persons where units are declared: a person then counts in each of their groups.
    """
    smallest = int(sizes[0])
    wanted = (
        ("k", levels["k"], smallest, True),
        ("l", levels["l"], min((entry.distinct_l for entry in found.values()), default=0), True),
        ("t-emd", levels["t_emd"], max((entry.emd for entry in found.values()), default=0.0), False),
        ("t-ratio", levels["t_ratio"], max((entry.ratio for entry in found.values()), default=0.0), False),
    )
    return Check(
        rows=int((sizes * groups).sum()) if persons is None else persons.rows,
        quasi_identifiers=tuple(known),
        groups=int(groups.sum()),
        k=smallest,
        unique=int(groups[sizes == 1].sum()) if persons is None else persons.alone,
        reidentification=_reidentification(sizes, groups),
        sensitive=dict(found),
        disclosure=disclosure,
        requirements=tuple(
            Requirement(name, level, value, value >= level if at_least else bool(within(value, level)))
            for name, level, value, at_least in wanted
            if level is not None
        ),
        told=told,
        persons=persons,
    )


def unit_of_schema(table: Table, schema: Schema | None) -> str | None:
    """The unit column that the schema declares, if the table has it."""
    unit = None if schema is None else schema.unit
    return unit.name if unit is not None and unit.name in table.names else None


def asked_columns(
    table: Table,
    quasi_identifiers: str | Sequence[str] | None,
    sensitive: str | Sequence[str] | None,
    schema: Schema | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The quasi-identifiers and the sensitive columns, as named or by their roles."""
    by_role: Mapping[str, list[str]] = {
        role: []
        if schema is None
        else [a.name for a in schema.attributes if a.role == role and a.name in table.names]
        for role in ("quasi-identifier", "confidential")
    }
    quasi = by_role["quasi-identifier"] if quasi_identifiers is None else as_names(quasi_identifiers)
    hidden = by_role["confidential"] if sensitive is None else as_names(sensitive)
    known, secret = tuple(dict.fromkeys(quasi)), tuple(dict.fromkeys(hidden))
    if not known:
        raise OptionError("there-no-quasi-identifiers", option="quasi_identifiers")
    for name in (*known, *secret):
        table.known(name)
    both = [name for name in secret if name in known]
    if both:
        raise OptionError("column-both-quasi-identifier-confidential", column=both[0])
    return known, secret


def _closeness(
    table: Table,
    name: str,
    labels: NDArray[np.int64],
    schema: Schema | None,
    units: NDArray[np.int64] | None,
) -> Closeness:
    values, ground = ordered_codes(table, name, schema)
    counts = count_groups(labels, values, units)
    certain = diversity(labels, coded(table, name).codes, units=units)
    return Closeness(
        values=int(counts.totals.size),
        distinct_l=int(certain.distinct.min()),
        entropy_l=float(certain.entropy.min()),
        emd=float(EMD[ground](counts).max()),
        ground=ground,
        ratio=float(ratio_distances(counts).max()),
    )


def ordered_codes(table: Table, name: str, schema: Schema | None) -> tuple[NDArray[np.int64], str]:
    """A column as codes, 0 for the lowest value, and whether their order is meaningful."""
    attribute = schema[name] if schema is not None and name in schema else None
    if attribute is not None and attribute.kind_facts.listed and attribute.ordered:
        from shoal.columns import numbers

        return _places(numbers(table, attribute)), "ordered"
    dtype = table.dtype(name)
    nominal = attribute is not None and not attribute.kind_facts.ordered
    if dtype.is_numeric() and not nominal and "128" not in str(dtype):
        series = table.series(name)
        plain = dtype.is_integer() and series.null_count() == 0
        return _places(series.to_numpy() if plain else table.numeric(name)), "ordered"
    if dtype.is_temporal() and not nominal:
        return _places(table.series(name).to_numpy()), "ordered"
    if isinstance(dtype, nw.Enum) and not nominal:
        place = {category: number for number, category in enumerate(dtype.categories)}
        values = table.series(name).cast(nw.String()).to_list()
        return _places(np.array([place.get(value, -1) for value in values])), "ordered"
    return _places(_codes(table, name)), "equal"


def _codes(table: Table, name: str) -> NDArray[np.int64]:
    """A code per row, equal exactly where the values are, for columns of any type."""
    import pyarrow as pa

    try:
        return column_codes(table, name)
    except pa.ArrowException:
        # lists and other nested values cannot be dictionary-encoded
        return _places(np.array([str(value) for value in table.series(name).to_list()]))


def _places(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _reidentification(sizes: NDArray[np.int64], groups: NDArray[np.int64]) -> dict[str, float]:
    """Summary over rows of the chance 1/|group| of picking the right one among equal rows; sizes are ascending."""
    records = sizes * groups
    rows = int(records.sum())
    # the median risk over rows, starting from the largest groups
    middle = sizes[::-1][np.searchsorted(np.cumsum(records[::-1]), rows / 2)]
    return {
        "largest": 1 / int(sizes[0]),
        "mean": int(groups.sum()) / rows,
        "median": 1 / int(middle),
        **{f"above_one_in_{many}": int(records[sizes < many].sum()) / rows for many in _ONE_IN},
    }


ATTEMPTS = 300
# a few lucky attempts of a sampled attack do not justify a warning
MATTERS = 0.01
# half of the probability outside a 95% interval
_SMALL_CHANCE = 0.025
# models of the table leave columns unchanged, so rows can be recognised by them: the consequences to mention
BEYOND = {
    "k-anonymity": Message.of("beyond-quasi-identifiers"),
    "probabilistic-k-anonymity": Message.of("beyond-confidential-values"),
    "t-closeness": Message.of("beyond-confidential-values"),
}
_ALL_RECORDS = Message.of("knows-records")
# accepted share of linked records in a public table: the threshold of the European Medicines Agency for clinical data
MOST_LINKED = 0.09
RISK_WORDS: Mapping[Level, str] = {"green": "low", "amber": "notable", "red": "high"}
USE_WORDS: Mapping[Level, str] = {"green": "good", "amber": "fair", "red": "poor"}


@dataclass(frozen=True, slots=True)
class RiskLine:
    """The success of one attack, with what to compare it with. Rates are shares, 0 to 1.

    Attributes:
        name: of the attack.
        known: what the attacker knows or uses.
        success: on the released table, with its 95% interval.
        chance: by guessing; the upper end of its interval where it was sampled.
        unprotected: on the original table, as if it had been published; None where not measured.
        identity: success reveals who somebody is, not only an attribute of theirs.
        links_records: success finds the record of a released row.
        singles_out: success finds a condition that exactly one person meets.
        parted: the attacker held a sample of the released rows, drawn apart from the records; all rows reveal more.
        attempts: of a sampled attack; 0 where all rows were counted.
        beyond: why the claim does not cover this attack; None where it does.
    """

    name: str
    known: Message
    success: float
    interval: Interval
    chance: float
    chance_high: float
    unprotected: float | None = None
    unprotected_interval: Interval | None = None
    identity: bool = False
    links_records: bool = False
    parted: bool = False
    attempts: int = 0
    beyond: Message | None = None
    singles_out: bool = False

    @property
    def above_chance(self) -> bool:
        """The whole interval lies above the rate of guessing; for a sampled attack, by an amount that matters."""
        limit = self.chance_high + (0.0 if self.links_records else MATTERS)
        return self.interval[0] > limit and not self._luck(limit)

    @property
    def few(self) -> bool:
        """The attacker found fewer attempts than requested."""
        return 0 < self.attempts < ATTEMPTS

    def _luck(self, rate: float) -> bool:
        """Whether attempts that each succeed at this rate do as well in one case of 40, by the binomial distribution.

        The interval is an approximation, which is too optimistic for a handful of attempts.
        """
        if not self.attempts:
            return False
        from scipy.special import bdtrc

        wins = math.floor(self.success * self.attempts + 1e-9)
        return bool(bdtrc(wins - 1, self.attempts, rate) > _SMALL_CHANCE)


def linkage_line(
    evaluation: Mapping[str, Any],
    original: Table | None,
    columns: Sequence[str],
    name: str = "record linkage",
    known: Message = _ALL_RECORDS,
    beyond: Message | None = None,
) -> list[RiskLine]:
    """The record linkage of an evaluation whose rows are matched; empty where not measured."""
    risk = evaluation["risk"]
    if risk["record_linkage"] is None:
        return []
    unprotected = None
    if original is not None:
        # every row of an unprotected table has its own record at distance 0, shared with identical records
        names = [column for column in columns if column in original.names]
        unprotected = actual_k(original, names).groups / original.n
    low, high = risk["record_linkage_interval"]
    chance = risk["record_linkage_chance"] / 100
    return [
        RiskLine(
            name=name,
            known=known,
            success=risk["record_linkage"] / 100,
            interval=(low / 100, high / 100),
            chance=chance,
            chance_high=chance,
            unprotected=unprotected,
            unprotected_interval=None if unprotected is None else (unprotected, unprotected),
            identity=True,
            links_records=True,
            beyond=beyond,
        )
    ]


@internal()
@dataclass(frozen=True, slots=True)
class Measured:
    """The private part: facts about the original data.

    Attributes:
        risk: success of the attacks, highest first; empty where none was measured.
        usefulness: the remaining utility; None where not measured.
    """

    risk: tuple[Finding, ...] = ()
    usefulness: Finding | None = None

    @property
    def risk_level(self) -> Level | None:
        return self.risk[0].level if self.risk else None

    @property
    def findings(self) -> tuple[Message, ...]:
        """The highest risk, and the usefulness."""
        found = [
            Message.of("risk-finding", level=RISK_WORDS[worst.level], finding=worst.message)
            for worst in self.risk[:1]
        ]
        if self.usefulness is not None:
            level = USE_WORDS[self.usefulness.level]
            found.append(Message.of("usefulness-finding", level=level, finding=self.usefulness.message))
        return tuple(found)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(f"- {finding}" for finding in self.findings)


@displayed(display.of_verdict)
@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "may I publish this?".

    Attributes:
        public: the findings from the statement alone, as the bundle has them.
        measured: the findings on the original, for internal use.
        counts: the measured findings affect the decision too.
        rehearsed: it was measured on stand-in data, not on the records of the release.
    """

    public: PublicVerdict
    measured: Measured
    counts: bool
    rehearsed: bool = False

    @property
    def level(self) -> Level:
        found = [self.public.level]
        if self.counts and self.measured.risk_level is not None:
            found.append(self.measured.risk_level)
        return max(found, key=LEVELS.index)

    @property
    def decision(self) -> Decision:
        return DECISIONS[self.level]

    @property
    def next_step(self) -> str:
        if self.decision == self.public.decision:
            return self.public.next_step
        return str(Message.of("step-larger-k"))

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict as every command prints it: the public part, then the measured part."""
        public = self.public.lines
        if self.decision != self.public.decision:
            public = (
                str(Message.of("verdict-line", decision=self.decision)),
                *(f"- {reason.text}" for reason in self.measured.risk if reason.level == "red"),
                *public[1:-1],
                str(Message.of("next-line", step=self.next_step)),
            )
        if not self.measured.lines:
            return public
        return (*public, self.about_measures, *self.measured.lines)

    @property
    def about_measures(self) -> str:
        """What was measured, and how it may be used."""
        advice = "measured-counts" if self.counts else "measured-advice"
        return str(Message.of("measured-rehearsal" if self.rehearsed else advice))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; with `measured` they are facts about the original data."""
        found: dict[str, Any] = {
            **self.public.to_dict(),
            "decision": self.decision,
            "code": DECISION_CODES[self.level],
            "next_step": self.next_step,
        }
        if self.measured.findings:
            found["measured"] = [str(finding) for finding in self.measured.findings]
        return found


def verdict(
    statement: Any, measured: Any = None, risks: Sequence[RiskLine] = (), *, rehearsed: bool = False
) -> Verdict:
    """Decide whether a release may be published. Every command, page and report uses this function.

    Args:
        statement: a release, a bundle, a `PrivacyStatement`, or its plain values.
        measured: what `shoal.evaluate` found, or its plain values; facts about the original data.
        rehearsed: all of it was measured on stand-in data, not on the records of the release.
        risks: results of attacks; without them the record linkage of `measured` counts.

    >>> facts = {"model": "none", "obstacles": [{"code": "no-guarantee", "facts": {}}]}
    >>> verdict(facts).decision
    'do not publish'
    """
    facts = _plain(getattr(statement, "statement", statement))
    found = None if measured is None else _plain(measured)
    lines = tuple(risks)
    if not lines and found is not None:
        lines = tuple(linkage_line(found, None, (), beyond=BEYOND.get(facts["model"])))
    counts = MODELS[facts["model"]].of_the_table
    smallest = facts["settings"].get("k") if counts else None
    most = max(MOST_LINKED, 1 / smallest) if smallest else MOST_LINKED
    risk = sorted(_of_risks(lines, most), key=lambda reason: -LEVELS.index(reason.level))
    use = None if found is None else usefulness(found["utility"], found.get("estimates"))
    return Verdict(public_verdict(facts), Measured(tuple(risk), use), counts, rehearsed)


def _plain(value: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = value if isinstance(value, Mapping) else value.to_dict()
    if "model" in found and "obstacles" not in found:
        # statements of the first format have sentences instead
        from shoal.privacy import PrivacyStatement

        return PrivacyStatement.from_dict(found).to_dict()
    return found


def _of_risks(lines: Sequence[RiskLine], most: float) -> Iterable[Finding]:
    # a correct guess of an attribute may reflect the population at large: identity counts
    telling = [line for line in lines if line.identity]
    for line in telling:
        if line.links_records and line.interval[0] > most and line.beyond is None:
            yield Finding("red", Message.of("records-linked", attack=_found(line), most=100 * most))
        elif line.above_chance:
            code = "above-chance" if line.beyond is None else "above-chance-beyond-promise"
            yield Finding("amber", Message.of(code, attack=_found(line), beyond=line.beyond))
    # an attacker who held part of the table says nothing about one who holds all of it
    harmless = [line for line in telling if not line.above_chance and not line.parted]
    if harmless:
        attacks = tuple(
            Message.of(
                "attack-no-better", name=line.name, success=100 * line.success, chance=100 * line.chance
            )
            for line in harmless
        )
        yield Finding("green", Message.of("not-above-chance", attacks=attacks))


def _found(line: RiskLine) -> Message:
    low, high = line.interval
    return Message.of(
        "attack-succeeds-of-few" if line.few else "attack-succeeds",
        name=line.name,
        success=100 * line.success,
        attempts=line.attempts,
        low=100 * low,
        high=100 * high,
        chance=100 * line.chance,
    )
