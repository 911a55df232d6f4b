"""The grid of settings to compare, and the choice of the best one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from shoal.display import internal
from shoal.errors import ClaimError, InputError, OptionError, ShoalError, closest
from shoal.evaluation import most, needs_rows, ranked_by
from shoal.io import Table
from shoal.mechanisms import Tuned, method_class, settled_text, together, tuned_settings
from shoal.noise import parse_delta
from shoal.numbers import decimal_text
from shoal.partition import check_k
from shoal.privacy import Model
from shoal.release import Preparation, prepare, public_schema
from shoal.text import Message
from shoal.tuning.expected import SettingOutcome

CONFIDENCE = 0.95
DEFAULT_METHODS = (
    "pairs-dp",
    "laplace",
    "mdav-dp",
    "ranking-dp",
    "optimal-dp",
    "idp-cbls",
    "insensitive-dp",
    "tree-dp",
)
# default sizes to compare
_SIZES = 10
_SMALLEST = 3


@internal()
@dataclass(frozen=True, slots=True)
class SettingMeasure:
    """A measure of a setting.

    Attributes:
        low, high: ends of the interval for the mean over all possible seeds; equal to the mean where it is exact, and
            None where there is only a single run.
        exact: the expectation itself, from a closed form or by definition, not from runs.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    exact: bool = False

    @property
    def at_least(self) -> float:
        return self.mean if self.low is None else self.low

    @property
    def at_most(self) -> float:
        return self.mean if self.high is None else self.high

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "low": self.low, "high": self.high, "exact": self.exact}

    def __str__(self) -> str:
        if self.exact:
            return f"{self.mean:.4g}"
        if self.low is None or self.high is None:
            return f"{self.mean:.3g} (one run)"
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g})"


def exactly(value: float) -> SettingMeasure:
    """A figure that is not an estimate.

    >>> str(exactly(0.25)), exactly(0.25).low
    ('0.25', 0.25)
    """
    return SettingMeasure(value, value, value, exact=True)


def over_seeds(values: Sequence[float], least: float = 0.0, most: float = math.inf) -> SettingMeasure:
    """The mean of several runs with its Student interval, limited to the range of the measure.

    >>> str(over_seeds([1.0, 2.0, 3.0])), over_seeds([1.0]).low
    ('2 (0 to 4.48)', None)
    """
    found = np.asarray(values, dtype=np.float64)
    mean = float(found.mean())
    if found.size == 1:
        return SettingMeasure(mean)
    from scipy.special import stdtrit

    half = float(stdtrit(found.size - 1, 0.5 + CONFIDENCE / 2) * found.std(ddof=1) / math.sqrt(found.size))
    return SettingMeasure(mean, max(least, mean - half), min(most, mean + half))


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to protect a table: a method and its compared settings; None stands for the method's default.

    >>> str(Setting("ranking-dp", 50, "optimal")), str(Setting("laplace"))
    ('ranking-dp, k = 50, split optimal', 'laplace')
    """

    method: str
    k: int | None = None
    split: str | None = None
    noise: str | None = None
    delta: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The settings as arguments of `shoal.protect`."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "method"}

    def __str__(self) -> str:
        words = [self.method]
        if self.k is not None:
            words.append(f"k = {self.k}")
        words += [f"{name} {value}" for name, value in self.options.items() if name != "k"]
        return ", ".join(words)

    def to_dict(self) -> dict[str, Any]:
        return {"method": self.method, **self.options}


def default_sizes(n: int) -> tuple[int, ...]:
    """Ten sizes from 3 to half of the rows, in roughly geometric steps.

    They depend only on the number of rows.

    >>> default_sizes(1080)
    (3, 5, 10, 17, 30, 54, 96, 170, 303, 540)
    >>> default_sizes(7), default_sizes(2)
    ((3,), (2,))
    """
    smallest = min(_SMALLEST, n)
    largest = max(smallest, n // 2)
    return tuple(sorted({round(size) for size in np.geomspace(smallest, largest, _SIZES).tolist()}))


def make_grid(
    methods: Sequence[str] | None,
    ks: Sequence[int] | None,
    splits: Sequence[str] | None,
    noises: Sequence[str] | None,
    n: int,
    deltas: Sequence[Any] | None = None,
) -> tuple[Setting, ...]:
    """Every combination of the settings a method has; a method without an option appears once for it.

    Raises:
        OptionError: a list is empty or has duplicates, a size is invalid, or a method is unknown.

    >>> [str(setting) for setting in make_grid(["laplace", "ranking-dp"], [5, 9], None, None, 100)]
    ['laplace', 'ranking-dp, k = 5', 'ranking-dp, k = 9']
    >>> [str(setting) for setting in make_grid(["pairs-dp", "tree-dp"], None, None, None, 100, ["0", "1e-6"])]
    ['pairs-dp, delta 0', 'pairs-dp, delta 1e-06', 'tree-dp']
    """
    names = _listed("methods", methods) or DEFAULT_METHODS
    sizes = _listed("ks", ks) or default_sizes(n)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise OptionError("every-k-whole-number-least-1", found=size)
    shares, families = _listed("splits", splits), _listed("noises", noises)
    chances = _listed("deltas", None if deltas is None else _deltas(deltas))
    grid: list[Setting] = []
    for name in names:
        known = method_class(name).parameters()
        grid += [
            Setting(name, k, split, noise, delta)
            for k in (sizes if "k" in known else (None,))
            for split in (shares if shares and "split" in known else (None,))
            for noise in (families if families and "noise" in known else (None,))
            for delta in (chances if chances and "delta" in known else (None,))
        ]
    return tuple(grid)


def compared(settings: Sequence[Setting]) -> tuple[str, ...]:
    """The options in which the settings differ: what a choice among them chooses.

    If no other setting of the method has a different size or split, that option is part of the choice of the method.

    >>> compared([Setting("laplace"), Setting("ranking-dp", 5), Setting("ranking-dp", 9)])
    ('method', 'k')
    """
    found = ["method"] if len({setting.method for setting in settings}) > 1 else []
    for name in ("k", "split", "noise", "delta"):
        pairs = {(setting.method, getattr(setting, name)) for setting in settings}
        if len(pairs) > len({method for method, _ in pairs}):
            found.append(name)
    return tuple(found)


def _deltas(values: Sequence[Any]) -> Sequence[Any]:
    """Deltas as decimal texts, so that each number has one form; anything but a list is returned unchanged."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        return values
    return [decimal_text(parse_delta(value)) for value in values]


def _listed(option: str, values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise OptionError("option-list-least-entry", option=option, found=values)
    for value in values:
        if list(values).count(value) > 1:
            raise OptionError("option-names-twice", option=option, value=value)
    return tuple(values)


@internal(".to_dict()")
@dataclass(frozen=True, slots=True)
class Row:
    """One setting with its measures.

    Attributes:
        model: the claim that its statement makes; settings with different claims differ in more than loss and risk.
        loss: the measure that settings are ranked by; None where it has none, for the reason in `apart`.
        risk: percentage of rows nearest to their own record; that of guessing for synthetic records; None
            without runs.
        measures: every measure by name.
        frontier: no other setting is at least as good in both loss and risk and clearly better in one.
        apart: why the setting is left out of the comparison.
    """

    setting: Setting
    model: Model
    loss: SettingMeasure | None
    risk: SettingMeasure | None
    measures: dict[str, SettingMeasure] = field(default_factory=dict)
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


def figures(outcome: SettingOutcome) -> dict[str, SettingMeasure]:
    """Measures of a setting: closed forms where they exist, otherwise estimates over the seeds.

    Estimates from runs of a measure with a closed form are kept as `simulated_...`.
    """
    found: dict[str, SettingMeasure] = {}
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
    """Refuse a measure that does not exist or cannot be computed here."""
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


def automatic_utility(
    measured: Sequence[Mapping[str, SettingMeasure]], numeric: bool, target: str | None
) -> str:
    """The default measure to rank by: one that every compared setting has.

    Args:
        measured: measures of each setting.
        numeric: whether all columns are numbers.
        target: the prediction target, if any.
    """
    if target is not None:
        return "learning"
    of_rows, order_free = ("normalised_sse", "wasserstein") if numeric else ("scaled_sse", "total_variation")
    # runs without a row error are runs with synthetic records
    nobody = any(order_free in figures and of_rows not in figures for figures in measured)
    return order_free if nobody else of_rows


def make_row(
    setting: Setting, model: Model, measures: dict[str, SettingMeasure], utility: str, n: int
) -> Row:
    """A setting as a row of the comparison."""
    loss = measures.get(utility)
    belongs = "record_linkage" in measures
    measured = bool(set(measures) & {"wasserstein", "total_variation", "record_linkage"})
    risk = measures["record_linkage"] if belongs else exactly(100.0 / n) if measured else None
    apart = None if loss is not None else _without_loss(utility, measured, belongs)
    return Row(setting, model, loss, risk, measures, apart=apart)


def _without_loss(utility: str, measured: bool, belongs: bool) -> Message:
    """The reason why a setting has no loss."""
    if not measured:
        return Message.of("loss-takes-runs", utility=utility)
    if needs_rows(utility) and not belongs:
        return Message.of("loss-needs-owned-rows")
    if utility == "learning":
        return Message.of("loss-needs-released-target")
    return Message.of("no-loss-of-columns", utility=utility)


def with_frontier(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows in order of increasing loss, those apart last, each marked if it is on the frontier.

    A row is off the frontier only if another is at least as good in loss and in risk, and clearly better in one of
    them: its whole interval is. Rows that the seeds cannot distinguish stay; of rows with equal figures the first does.
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
    """The row with the least loss among those whose risk is certainly within the limit; None if there is none."""
    allowed = [
        row
        for row in rows
        if row.apart is None and (max_risk is None or (row.risk is not None and row.risk.at_most <= max_risk))
    ]
    return min(allowed, key=_place, default=None)


def chance(n: int) -> float:
    """Percentage of rows that random guessing links to their own record."""
    return 100.0 / n


@internal()
@dataclass(frozen=True, slots=True)
class TuningQuestion:
    """The table and the question of a tuning, without how the answer is computed."""

    table: Table
    epsilon: Any
    declared: Mapping[str, Any]
    options: Mapping[str, Any]

    def prepared(self, setting: Setting, **more: Any) -> Preparation:
        """A release with this setting, prepared but not made."""
        known = method_class(setting.method).parameters()
        fixed = {name: value for name, value in self.options.items() if name in known}
        return prepare(
            self.table,
            method=setting.method,
            epsilon=self.epsilon if "epsilon" in known else None,
            **{**self.declared, **fixed, **setting.options, **more},
        )


def followed(question: TuningQuestion, setting: Setting, tuned: Tuned | None) -> Preparation:
    """A release of the same records with a setting that was chosen on them."""
    return question.prepared(setting, tuned=together(tuned_settings(question.declared["tuned"]), tuned))


def recipe_of(prepared: Preparation) -> str:
    """The `method.toml` of a setting, marked with what was chosen on the records."""
    schema = public_schema(prepared.described, prepared.declared)
    return settled_text(prepared.method, schema, prepared.declared, prepared.described.columns)


def candidates_of(
    question: TuningQuestion, grid: Sequence[Setting], claim: str | None
) -> tuple[dict[Setting, Preparation], dict[Setting, Message]]:
    """The settings that can be compared, and why the others cannot."""
    prepared: dict[Setting, Preparation] = {}
    refused: dict[Setting, Message] = {}
    errors: list[ShoalError] = []
    for setting in grid:
        try:
            found = question.prepared(setting)
            check_k(found.method.size, found.described.n)
        except (InputError, OptionError, ClaimError) as error:
            refused[setting] = error.message
            errors.append(error)
            continue
        if claim is not None and found.statement.model != claim:
            refused[setting] = Message.of("claims-other", model=found.statement.model, claim=claim)
        else:
            prepared[setting] = found
    if not prepared and errors:
        raise errors[0]
    if not prepared:
        raise OptionError("no-setting-claims", claim=claim, reason=next(iter(refused.values())))
    widest = max(
        (found.described for found in prepared.values()), key=lambda described: len(described.columns)
    )
    for setting, found in list(prepared.items()):
        left_out = [name for name in widest.columns if name not in found.described.columns]
        if left_out:
            kind = widest.attribute(left_out[0]).kind
            refused[setting] = Message.of("leaves-column-out", column=left_out[0], kind=kind)
            del prepared[setting]
    return prepared, refused
