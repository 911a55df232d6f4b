"""What `attack` returns: measured risks come in, a dictionary, JSON or a terminal table leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.display import internal
from shoal.evaluation.attacks.risk import Rate, Risk
from shoal.evaluation.interval import CONFIDENCE, Interval
from shoal.evaluation.result import _empty_table, plain
from shoal.text import Message, capital

if TYPE_CHECKING:
    from rich.table import Table

NO_CONTROL = Message.of("no-control-group")


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class AttackReport:
    """How far attacks on a released table got. Facts about the original data: not for publication.

    Attributes:
        risks: one for each attack, with interval, baseline and, given a control group, the excess.
        columns: the columns attacked.
        rows: number of rows of the original, the released and the control table (None without one).
        skipped: attacks that were not possible, and why.
        tolerance: how far off a right guess of a number may be, as a share of the column's range.
    """

    risks: tuple[Risk, ...]
    columns: tuple[str, ...]
    rows: dict[str, int | None]
    skipped: dict[str, Message]
    tolerance: float

    @property
    def has_control(self) -> bool:
        return self.rows["control"] is not None

    def __getitem__(self, attack: str) -> Risk:
        """The risk of an attack by its name."""
        return next(risk for risk in self.risks if risk.attack == attack)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values that JSON can hold; what does not exist is None."""
        out: dict[str, Any] = plain(
            {
                "columns": self.columns,
                "rows": self.rows,
                "confidence": CONFIDENCE,
                "tolerance": self.tolerance,
                "control": None if self.has_control else str(NO_CONTROL),
                "attacks": [risk.to_dict() for risk in self.risks],
                "skipped": {name: str(why) for name, why in self.skipped.items()},
            }
        )
        return out

    def table(self) -> Table:
        """One line for each attack, for a terminal of 80 columns."""
        from rich.markup import escape

        out = _empty_table("Attacks (internal: facts about the original data), success in %")
        out.add_column("attack", overflow="fold")
        out.add_column("success (95%)", justify="right", no_wrap=True)
        out.add_column("guessing", justify="right", no_wrap=True)
        if self.has_control:
            out.add_column("control", justify="right", no_wrap=True)
            out.add_column("excess (95%)", justify="right", no_wrap=True)
        for risk in self.risks:
            cells = [escape(risk.attack), _with_interval(risk.success), _percent(risk.baseline.value)]
            if self.has_control:
                cells.append("-" if risk.control is None else _percent(risk.control.value))
                cells.append(
                    "-"
                    if risk.excess is None or risk.excess_interval is None
                    else _limits(risk.excess, risk.excess_interval)
                )
            out.add_row(*cells)
        lines = [f"{name}: {why}." for name, why in self.skipped.items()]
        lines.append(
            "Excess: success above that of the control group, 100 = all there was to gain."
            if self.has_control
            else f"{capital(str(NO_CONTROL))}."
        )
        out.caption = escape("\n".join(lines))
        return out

    def __rich__(self) -> Table:
        return self.table()


def _with_interval(rate: Rate) -> str:
    return _limits(rate.value, rate.interval)


def _limits(value: float, interval: Interval) -> str:
    return f"{_percent(value)} ({_percent(interval[0])} to {_percent(interval[1])})"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f}"
