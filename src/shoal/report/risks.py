"""Measured risk: an original and a released table come in, rates with intervals and what to compare them with leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import CancelledError, ShoalError
from shoal.evaluation.attacks import AttackReport
from shoal.evaluation.attacks.run import ONE_COLUMN, SEVERAL_COLUMNS
from shoal.evaluation.risk_lines import ATTEMPTS, RiskLine
from shoal.io import Table
from shoal.progress import Progress, silent
from shoal.report.excerpt import Rows, excerpt, some_rows

# attacks compare attempts with rows: of larger tables a sample is attacked
MOST_ROWS = 50_000
SAMPLE = 20_000
_FEWEST_ROWS = 10
_SEED = 1


@dataclass(frozen=True, slots=True)
class Risks:
    """Measured lines, and in words what could not be measured, or not on all rows."""

    lines: tuple[RiskLine, ...] = ()
    remarks: tuple[str, ...] = ()


def attacked(
    original: Table,
    released: Table,
    columns: Sequence[str],
    released_rows: Callable[[Rows], Table] | None = None,
    progress: Progress = silent,
    of: tuple[int, int] | None = None,
) -> Risks:
    """Linkability, singling out and inference on the released table and on the original itself.

    The targets are chosen by a fixed seed: the same tables give the same page.

    Args:
        original: the table that was protected.
        released: the released table.
        columns: the released columns.
        released_rows: the released rows of given records, where that is known. A sample of a large table is then one of
            records with their rows; otherwise rows of both tables are sampled apart, which the page says.
        of: the numbers of rows of the tables that these are samples of, drawn apart.

    Cost:
        Twice that of `shoal.attack` with 300 attempts, on at most 50,000 rows.
    """
    from shoal.evaluation.attacks import attack

    names = [name for name in columns if name in original.names and name in released.names]
    if not names:
        return Risks(remarks=("Attacks were not run: no released column is in the original table.",))
    whole = of or (original.n, released.n)
    large = max(whole) > MOST_ROWS
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
            f"Attacks ran on samples of {tables[0].n:,} of {whole[0]:,} original and {tables[1].n:,} of "
            f"{whole[1]:,} released rows: whoever holds all released rows can do better. 'shoal attack' takes all."
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
        singles_out=risk.attack in (ONE_COLUMN, SEVERAL_COLUMNS),
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
