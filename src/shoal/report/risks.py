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
from shoal.evaluation.verdict import ATTEMPTS, RiskLine
from shoal.io import Table
from shoal.progress import Progress, silent
from shoal.report.excerpt import Rows, excerpt, some_rows
from shoal.text import Message

# attacks compare attempts with rows: of larger tables a sample is attacked
MOST_ROWS = 50_000
SAMPLE = 20_000
_FEWEST_ROWS = 10
_SEED = 1


@dataclass(frozen=True, slots=True)
class Risks:
    """Measured lines, and what could not be measured, or not on all rows, which `remarks` has in words."""

    lines: tuple[RiskLine, ...] = ()
    told: tuple[Message, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(map(str, self.told))


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
        return Risks(told=(Message("no-column-to-attack"),))
    whole = of or (original.n, released.n)
    large = max(whole) > MOST_ROWS
    told = []
    if large and released_rows is not None:
        records = some_rows(original.n, SAMPLE)
        told.append(Message.of("attacked-sample-of-records", rows=records.size, of=original.n))
        original, released = excerpt(original, records, names), released_rows(records)
    parted = large and released_rows is None
    tables = []
    for table, which in ((original, "original"), (released, "released")):
        usable = _complete(table, names)
        if usable.size < _FEWEST_ROWS:
            return Risks(told=(Message.of("too-few-rows-to-attack", which=which, rows=usable.size),))
        if usable.size < table.n:
            told.append(Message.of("rows-with-gaps-left-out", rows=table.n - usable.size, which=which))
        chosen = some_rows(usable, SAMPLE) if usable.size > MOST_ROWS else usable
        tables.append(excerpt(table, chosen, names) if chosen.size < table.n else table)
    if parted:
        rows = {
            "original": tables[0].n,
            "of_original": whole[0],
            "released": tables[1].n,
            "of_released": whole[1],
        }
        told.append(Message("attacked-samples-apart", rows))
    try:
        how: dict[str, Any] = {"columns": names, "attempts": ATTEMPTS, "seed": _SEED, "progress": progress}
        found = attack(*tables, **how)
        bare = attack(tables[0], tables[0], **how)
    except CancelledError:
        raise
    except ShoalError as error:
        return Risks(told=(Message.of("attacks-refused", reason=error),))
    told += [Message.of("attack-not-possible", name=name, reason=why) for name, why in found.skipped.items()]
    lines = tuple(_line(found, bare, place, parted=parted) for place in range(len(found.risks)))
    return Risks(lines, tuple(told))


def _line(found: AttackReport, bare: AttackReport, place: int, *, parted: bool) -> RiskLine:
    risk = found.risks[place]
    inferred = risk.secret is not None
    same = next((other for other in bare.risks if other.attack == risk.attack), None)
    return RiskLine(
        name=risk.attack,
        # the list of all other columns would fill the page
        known=Message.of("knows-other-columns") if inferred else risk.known,
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
