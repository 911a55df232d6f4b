"""Run the attacks on a released table, and report the measured risks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.arguments import as_names, renamed_arguments
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.evaluation.attacks import singling
from shoal.evaluation.attacks.nearest import (
    inference,
    inference_by_guessing,
    linkability,
    linkability_by_guessing,
)
from shoal.evaluation.attacks.singling import (
    AttackRisk,
    Encoded,
    Predicates,
    Rate,
    attack_risk,
    computed,
    count_matches,
    encode,
    sampled,
)
from shoal.evaluation.learning import CONFIDENCE, Interval
from shoal.evaluation.linkage import record_linkage
from shoal.evaluation.pair import TablePair, make_pair
from shoal.evaluation.result import _empty_table, plain
from shoal.io import read
from shoal.progress import Progress, silent
from shoal.text import Message, capital

if TYPE_CHECKING:
    from rich.table import Table


NO_CONTROL = Message.of("no-control-group")
RECORD_LINKAGE = "record linkage"
LINKABILITY = "linkability"
ONE_COLUMN = "singling out, one column"
SEVERAL_COLUMNS = "singling out, several columns"
_TWO_COLUMNS = Message.of("needs-two-columns")
_ATTACKING = "attacking the released table"


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class AttackReport:
    """Success of the attacks on released tables. Facts about the original data: not for publication.

    Attributes:
        risks: one per attack, with interval, baseline and, given a control group, the excess.
        columns: the columns attacked.
        rows: number of rows of the original, the released and the control table (None without one).
        skipped: attacks that were not possible, and why.
        tolerance: how far off a correct guess of a number may be, as a share of the column's range.
    """

    risks: tuple[AttackRisk, ...]
    columns: tuple[str, ...]
    rows: dict[str, int | None]
    skipped: dict[str, Message]
    tolerance: float

    @property
    def has_control(self) -> bool:
        return self.rows["control"] is not None

    def __getitem__(self, attack: str) -> AttackRisk:
        """The risk of an attack, by name."""
        return next(risk for risk in self.risks if risk.attack == attack)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values for JSON; undefined values are None."""
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
        """One line per attack, for a terminal of 80 columns."""
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


@renamed_arguments(secret="sensitive")
def attack(
    original: Any,
    released: Any,
    control: Any = None,
    *,
    columns: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    attempts: int = 500,
    tolerance: float = 0.05,
    seed: int | None = None,
    progress: Progress | None = None,
) -> AttackReport:
    """`shoal.attack` without an entry in the journal of use; its arguments are documented there."""
    if attempts < 1:
        raise OptionError("attempts-least-1-needed-few-hundred", option="attempts", found=attempts)
    if not 0.0 <= tolerance <= 1.0:
        raise OptionError("tolerance-not-a-share", option="tolerance", found=tolerance)
    if seed is not None and seed < 0:
        raise OptionError("seed-negative", option="seed", found=seed)
    pair = make_pair(original, released)
    data = encode(pair.before, pair.published, None if control is None else read(control), columns)
    names = data.space.names
    secrets = names if sensitive is None else as_names(sensitive)
    for secret in secrets:
        if secret not in names:
            hint = closest(secret, names)
            raise OptionError(
                "secret-not-among-attacked-columns", option="sensitive", secret=secret, hint=hint
            )
        if sensitive is not None and len(names) == 1:
            raise OptionError("secret-only-attacked-column", option="sensitive", secret=secret)
    # two linkage attacks, two singling-out attacks, and the inference of each column
    tell, steps = progress or silent, 4 + len(names)
    tell(_ATTACKING, 0, steps)
    by_link, by_value, by_corner, *by_secret = np.random.default_rng(seed).spawn(3 + len(names))
    risks = [*_record_linkage(pair, names)]
    skipped: dict[str, Message] = {}
    tell(_ATTACKING, 1, steps)
    if len(names) > 1:
        risks.append(_linkability(data, attempts, by_link))
    else:
        skipped[LINKABILITY] = _TWO_COLUMNS
    distinct = singling.distinct_rows(data.released)
    for step, name, width, build, rng in (
        (2, ONE_COLUMN, 1, singling.rare_values, by_value),
        (3, SEVERAL_COLUMNS, min(singling.COLUMNS, len(names)), singling.corners, by_corner),
    ):
        tell(_ATTACKING, step, steps)
        if name == SEVERAL_COLUMNS and len(names) == 1:
            skipped[name] = _TWO_COLUMNS
            continue
        predicates = build(distinct, data.space, attempts, rng)
        if len(predicates) == 0:
            skipped[name] = Message.of("no-isolating-predicate")
            continue
        risks.append(_singling_out(data, name, predicates, width, attempts, rng))
    if len(names) == 1:
        skipped["inference"] = _TWO_COLUMNS
    else:
        for j, (name, rng) in enumerate(zip(names, by_secret, strict=True)):
            tell(_ATTACKING, 4 + j, steps)
            if name in secrets:
                risks.append(_inference(data, j, attempts, tolerance, rng))
    rows = {
        "original": len(data.original),
        "released": len(data.released),
        "control": None if data.control is None else len(data.control),
    }
    return AttackReport(tuple(risks), names, rows, skipped, tolerance)


def _record_linkage(pair: TablePair, names: Sequence[str]) -> list[AttackRisk]:
    """Nearest-record linkage, for a release that knows which record each row came from."""
    if not pair.matched:
        return []
    chosen = [name for name in names if pair.before.is_numeric(name) and pair.after.is_numeric(name)]
    if not chosen:
        return []
    before, after = (
        np.column_stack([table.numeric(name) for name in chosen]) for table in (pair.before, pair.after)
    )
    linked = record_linkage(
        before, after, np.array([pair.width(name, before[:, j]) for j, name in enumerate(chosen)])
    )
    low, high = linked.interval
    rate = Rate(linked.percent / 100.0, (low / 100.0, high / 100.0), linked.records)
    known = Message.of("knows-records-of-columns", columns=tuple(chosen))
    return [attack_risk(RECORD_LINKAGE, known, rate, computed(linked.chance / 100.0), None)]


def _linkability(data: Encoded, attempts: int, rng: np.random.Generator) -> AttackRisk:
    m = len(data.space.names)
    first, second = list(range((m + 1) // 2)), list(range((m + 1) // 2, m))

    def succeed(targets: NDArray[np.float64]) -> NDArray[np.float64]:
        return linkability(targets, data.released, data.space, first, second)

    success, control = _on_targets(succeed, data, attempts, rng)
    one, other = (tuple(data.space.names[j] for j in part) for part in (first, second))
    baseline = computed(linkability_by_guessing(len(data.released)))
    known = Message.of("knows-two-sources", one=one, other=other)
    return attack_risk(LINKABILITY, known, success, baseline, control)


def _inference(
    data: Encoded, secret: int, attempts: int, tolerance: float, rng: np.random.Generator
) -> AttackRisk:
    truth = data.original[:, secret]
    margin = 0.0 if data.space.nominal[secret] else tolerance * float(truth.max() - truth.min())

    def succeed(targets: NDArray[np.float64]) -> NDArray[np.float64]:
        return inference(targets, data.released, data.space, secret, margin)

    success, control = _on_targets(succeed, data, attempts, rng)
    baseline = computed(inference_by_guessing(truth, data.released[:, secret], margin))
    names = data.space.names
    others = tuple(name for name in names if name != names[secret])
    known = Message.of("knows-all-but-secret", columns=others)
    return attack_risk(f"inference of {names[secret]}", known, success, baseline, control, names[secret])


def _on_targets(
    succeed: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    data: Encoded,
    attempts: int,
    rng: np.random.Generator,
) -> tuple[Rate, Rate | None]:
    """Rates of an attack on people in the data and on people who are not."""

    def some(table: NDArray[np.float64]) -> NDArray[np.float64]:
        return table[rng.choice(len(table), min(attempts, len(table)), replace=False)]

    targets = some(data.original)
    if data.control is None:
        return sampled(succeed(targets)), None
    # both groups at once: they share the search structures
    credits = succeed(np.concatenate((targets, some(data.control))))
    return sampled(credits[: len(targets)]), sampled(credits[len(targets) :])


def _singling_out(
    data: Encoded, name: str, predicates: Predicates, width: int, attempts: int, rng: np.random.Generator
) -> AttackRisk:
    success = singling.isolation_rate(count_matches(data.original, predicates))
    guessed = singling.random_predicates(data.released, data.space, width, attempts, rng)
    baseline = singling.isolation_rate(count_matches(data.original, guessed))
    control = None
    if data.control is not None:
        counts = count_matches(data.control, predicates)
        control = singling.control_rate(counts, len(data.control), len(data.original))
    known = Message.of("one-column-at-a-time" if width == 1 else "columns-at-a-time", columns=width)
    return attack_risk(name, known, success, baseline, control)
