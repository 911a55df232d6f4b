"""The result of `check`: levels of protection as a dictionary, JSON or a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.arguments import renamed_attributes
from shoal.display import internal
from shoal.evaluation.disclosure.result import RiskFigures
from shoal.evaluation.result import plain
from shoal.partition import units_of_groups
from shoal.text import Message

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


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

    def _of_confidential(self) -> Table:
        from rich.markup import escape

        own = _titled("What groups reveal about sensitive attributes (worst group)")
        own.add_column("column", overflow="fold")
        for title in ("values", "distinct l", "entropy l", "t (EMD)", "ground", "t (ratio)"):
            own.add_column(title, justify="right", no_wrap=True)
        for name, entry in self.sensitive.items():
            cells = (str(entry.values), str(entry.distinct_l), *map(_shown, (entry.entropy_l, entry.emd)))
            own.add_row(escape(name), *cells, entry.ground, _shown(entry.ratio))
        return own


def _titled(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)


def _shown(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"
