"""Measured risk: an original and a released table come in, rates with intervals and what to compare them with leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import CancelledError, ShoalError
from shoal.evaluation.anonymity import actual_k
from shoal.evaluation.attacks import AttackReport
from shoal.evaluation.interval import Interval
from shoal.io import Table
from shoal.progress import Progress, silent
from shoal.report.excerpt import Rows, excerpt, some_rows

ATTEMPTS = 300
# attacks compare attempts with rows: of larger tables a sample is attacked
MOST_ROWS = 50_000
SAMPLE = 20_000
# a few lucky attempts of a sampled attack are not worth a warning
MATTERS = 0.01
_FEWEST_ROWS = 10
# half of what lies outside of a 95% interval
_SMALL_CHANCE = 0.025
_SEED = 1


@dataclass(frozen=True, slots=True)
class RiskLine:
    """One way to attack, how far it gets, and what to compare that with. Rates are shares, 0 to 1.

    Attributes:
        name: of the attack.
        known: what the attacker knows or looks at.
        success: on the released table, with its 95% interval.
        chance: by guessing; the upper end of its interval where it was sampled.
        unprotected: on the original table itself, as if it had been published; None where that was not measured.
        identity: it tells who somebody is, and not only what somebody is like.
        links_records: it finds the record of a released row.
        parted: the attacker held a sample of the released rows, drawn apart from the records: all rows can tell more.
        attempts: of a sampled attack; 0 where all rows were counted.
        beyond: why the promise is not about this attack, in words; empty where it is.
    """

    name: str
    known: str
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
    beyond: str = ""

    @property
    def above_chance(self) -> bool:
        """The whole interval lies above what guessing reaches; of a sampled attack, by an amount that matters."""
        limit = self.chance_high + (0.0 if self.links_records else MATTERS)
        return self.interval[0] > limit and not self._luck(limit)

    @property
    def few(self) -> bool:
        """The attacker found less to try than was asked for."""
        return 0 < self.attempts < ATTEMPTS

    def _luck(self, rate: float) -> bool:
        """Whether attempts that each succeed at this rate do as well in one case of 40, by the binomial distribution.

        The interval is an approximation, which says too much about a handful of attempts.
        """
        if not self.attempts:
            return False
        from scipy.special import bdtrc

        wins = math.floor(self.success * self.attempts + 1e-9)
        return bool(bdtrc(wins - 1, self.attempts, rate) > _SMALL_CHANCE)


@dataclass(frozen=True, slots=True)
class Risks:
    """Measured lines, and in words what could not be measured, or not on all rows."""

    lines: tuple[RiskLine, ...] = ()
    remarks: tuple[str, ...] = ()


def linkage_line(
    evaluation: Mapping[str, Any],
    original: Table | None,
    columns: Sequence[str],
    name: str = "record linkage",
    known: str = "all original records",
    beyond: str = "",
) -> list[RiskLine]:
    """Record linkage of an evaluation whose rows are matched; empty where it was not measured."""
    risk = evaluation["risk"]
    if risk["record_linkage"] is None:
        return []
    unprotected = None
    if original is not None:
        # every row of an unprotected table has its own record at distance 0, and shares it with its equals
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


def attacked(
    original: Table,
    released: Table,
    columns: Sequence[str],
    released_rows: Callable[[Rows], Table] | None = None,
    progress: Progress = silent,
) -> Risks:
    """Linkability, singling out and inference on the released table and on the original itself.

    The targets are chosen by a fixed seed: the same tables give the same page.

    Args:
        original: the table that was protected.
        released: the released table.
        columns: the released columns.
        released_rows: the released rows of given records, where that is known. A sample of a large table is then one of
            records with their rows; otherwise rows of both tables are sampled apart, which the page says.

    Cost:
        Twice that of `shoal.attack` with 300 attempts, on at most 50,000 rows.
    """
    from shoal.evaluation.attacks import attack

    names = [name for name in columns if name in original.names and name in released.names]
    if not names:
        return Risks(remarks=("Attacks were not run: no released column is in the original table.",))
    large = max(original.n, released.n) > MOST_ROWS
    remarks = []
    if large and released_rows is not None:
        records = some_rows(original.n, SAMPLE)
        remarks.append(f"Attacks ran on {records.size:,} of {original.n:,} records and their released rows.")
        original, released = excerpt(original, records, names), released_rows(records)
    parted = large and released_rows is None
    tables = []
    for table, which in ((original, "original"), (released, "released")):
        usable = _complete(table, names)
        if usable.size < _FEWEST_ROWS:
            return Risks(
                remarks=(f"Attacks were not run: the {which} table has {usable.size} rows without a gap.",)
            )
        if usable.size < table.n:
            remarks.append(f"Rows with a missing value took no part: {table.n - usable.size} {which} ones.")
        chosen = some_rows(usable, SAMPLE) if usable.size > MOST_ROWS else usable
        tables.append(excerpt(table, chosen, names) if chosen.size < table.n else table)
    if parted:
        remarks.append(
            f"Attacks ran on samples of {tables[0].n:,} of {original.n:,} original and {tables[1].n:,} of "
            f"{released.n:,} released rows: whoever holds all released rows can do better. 'shoal attack' takes all."
        )
    try:
        how: dict[str, Any] = {"columns": names, "attempts": ATTEMPTS, "seed": _SEED, "progress": progress}
        found = attack(*tables, **how)
        bare = attack(tables[0], tables[0], **how)
    except CancelledError:
        raise
    except ShoalError as error:
        return Risks(remarks=(f"Attacks were not run: {error}",))
    remarks += [f"Not possible: {name}, {why}." for name, why in found.skipped.items()]
    lines = tuple(_line(found, bare, place, parted=parted) for place in range(len(found.risks)))
    return Risks(lines, tuple(remarks))


def _line(found: AttackReport, bare: AttackReport, place: int, *, parted: bool) -> RiskLine:
    risk = found.risks[place]
    inferred = risk.attack.startswith("inference")
    same = next((other for other in bare.risks if other.attack == risk.attack), None)
    return RiskLine(
        name=risk.attack,
        # the list of all other columns would fill the page
        known="all columns but this one" if inferred else risk.known,
        success=risk.success.value,
        interval=risk.success.interval,
        chance=risk.baseline.value,
        chance_high=risk.baseline.interval[1],
        unprotected=None if same is None else same.success.value,
        unprotected_interval=None if same is None else same.success.interval,
        identity=not inferred,
        parted=parted,
        attempts=risk.success.attempts,
    )


def _complete(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Numbers of the rows without a missing value."""
    gaps = np.zeros(table.n, dtype=bool)
    for name in names:
        if table.is_numeric(name):
            gaps |= ~np.isfinite(table.numeric(name))
        else:
            gaps |= np.asarray(table.series(name).is_null().to_numpy(), dtype=bool)
    return np.flatnonzero(~gaps)
