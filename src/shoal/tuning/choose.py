"""The choice: outcomes of settings come in, rows with loss and risk, their frontier and the best one leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.evaluation.measures import most, needs_rows, ranked_by
from shoal.method.models import Model
from shoal.text import Message
from shoal.tuning.figure import Figure, exactly, over_seeds
from shoal.tuning.grid import Setting
from shoal.tuning.simulate import Outcome


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class Row:
    """One setting with what is known about it.

    Attributes:
        model: the claim that its statement makes; loss and risk of different claims are not the whole comparison.
        loss: the measure that settings are ranked by; None where it has none, and `apart` says why.
        risk: percentage of rows nearest to their own record; that of guessing where rows belong to nobody; None
            without runs.
        measures: every measure by name.
        frontier: no other setting is as good in both loss and risk and clearly better in one.
        apart: why the setting is not compared.
    """

    setting: Setting
    model: Model
    loss: Figure | None
    risk: Figure | None
    measures: dict[str, Figure] = field(default_factory=dict)
    frontier: bool = False
    apart: Message | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.setting.to_dict(),
            "model": self.model,
            "loss": None if self.loss is None else self.loss.to_dict(),
            "risk": None if self.risk is None else self.risk.to_dict(),
            "frontier": self.frontier,
            "apart": None if self.apart is None else str(self.apart),
            "measures": {name: figure.to_dict() for name, figure in self.measures.items()},
        }


def figures(outcome: Outcome) -> dict[str, Figure]:
    """Measures of a setting: in closed form where there is one, otherwise over the seeds.

    What runs say about a measure with a closed form is kept as `simulated_...`.
    """
    found: dict[str, Figure] = {}
    for name in outcome.runs[0].measures if outcome.runs else ():
        values = [value for run in outcome.runs if (value := run.measures[name]) is not None]
        if values:
            found[name] = over_seeds(values, most=most(name))
    for name, value in outcome.expected.items():
        if name in found:
            found[f"simulated_{name}"] = found[name]
        if value is not None:
            found[name] = exactly(value)
    return found


def check_utility(utility: str | None, target: str | None) -> None:
    """Refuse a measure that does not exist or has nothing to measure."""
    known = ranked_by()
    if utility is not None and utility not in known:
        raise OptionError(
            "unknown-utility",
            option="utility",
            utility=utility,
            allowed=tuple(known),
            hint=closest(utility, known),
        )
    if utility == "learning" and target is None:
        raise OptionError("utility-learning-needs-know-what-learn", option="target")


def automatic_utility(measured: Sequence[Mapping[str, Figure]], numeric: bool, target: str | None) -> str:
    """The measure to rank by if none is asked for: one that every compared setting has.

    Args:
        measured: measures of each setting.
        numeric: whether all columns are numbers.
        target: what is to be learned, if anything.
    """
    if target is not None:
        return "learning"
    of_rows, order_free = ("normalised_sse", "wasserstein") if numeric else ("scaled_sse", "total_variation")
    # runs without a row error are runs without rows that belong to somebody
    nobody = any(order_free in figures and of_rows not in figures for figures in measured)
    return order_free if nobody else of_rows


def make_row(setting: Setting, model: Model, measures: dict[str, Figure], utility: str, n: int) -> Row:
    """A setting as a row of the comparison."""
    loss = measures.get(utility)
    belongs = "record_linkage" in measures
    measured = bool(set(measures) & {"wasserstein", "total_variation", "record_linkage"})
    risk = measures["record_linkage"] if belongs else exactly(100.0 / n) if measured else None
    apart = None if loss is not None else _without_loss(utility, measured, belongs)
    return Row(setting, model, loss, risk, measures, apart=apart)


def _without_loss(utility: str, measured: bool, belongs: bool) -> Message:
    """Why a setting has no loss."""
    if not measured:
        return Message.of("loss-takes-runs", utility=utility)
    if needs_rows(utility) and not belongs:
        return Message.of("loss-needs-owned-rows")
    if utility == "learning":
        return Message.of("loss-needs-released-target")
    return Message.of("no-loss-of-columns", utility=utility)


def with_frontier(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows, least loss first and those apart at the end, each marked if it is on the frontier.

    A row is off the frontier only if another is at least as good in loss and in risk, and in one of them clearly
    better: its whole interval is. What the seeds cannot tell apart stays; of rows with the same figures the first does.
    """
    ranked = sorted((row for row in rows if row.apart is None), key=_place)
    marked = []
    for place, row in enumerate(ranked):
        repeated = any((row.loss, row.risk) == (other.loss, other.risk) for other in ranked[:place])
        beaten = any(_dominates(other, row) for other in ranked if other is not row)
        marked.append(replace(row, frontier=not (repeated or beaten)))
    return (*marked, *(row for row in rows if row.apart is not None))


def _place(row: Row) -> tuple[float, float, int]:
    assert row.loss is not None
    return row.loss.mean, 0.0 if row.risk is None else row.risk.mean, -(row.setting.k or 0)


def _dominates(one: Row, other: Row) -> bool:
    assert one.loss is not None
    assert other.loss is not None
    pairs = [(one.loss, other.loss)]
    if one.risk is not None and other.risk is not None:
        pairs.append((one.risk, other.risk))
    as_good = all(mine.mean <= theirs.mean for mine, theirs in pairs)
    return as_good and any(mine.at_most < theirs.at_least for mine, theirs in pairs)


def best_row(rows: Sequence[Row], max_risk: float | None) -> Row | None:
    """The row with the least loss among those whose risk is surely within the limit; None if none is."""
    allowed = [
        row
        for row in rows
        if row.apart is None and (max_risk is None or (row.risk is not None and row.risk.at_most <= max_risk))
    ]
    return min(allowed, key=_place, default=None)


def chance(n: int) -> float:
    """Percentage of rows that guessing links to their own record."""
    return 100.0 / n
