"""The result of `evaluate`: all measures as a table or JSON, five headline measures, and a usefulness rating."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import display
from shoal.columns import KIND_FACTS
from shoal.display import displayed
from shoal.evaluation.measures import MEASURES
from shoal.privacy import LEVELS, Level
from shoal.text import Message, capital

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


# for each figure: the upper limit of good, and the lower limit of poor
SHIFT = (0.1, 0.3)
MOVED = (0.15, 0.35)
KEPT = (0.8, 0.5)
_GOOD: Mapping[Level, str] = {"green": "good", "amber": "fair", "red": "poor"}
_RISK: Mapping[Level, str] = {"green": "low", "amber": "notable", "red": "high"}
_ATTRIBUTE = (
    ("sse", "SSE"),
    ("normalised_sse", "norm. SSE"),
    ("mean_variation", "mean"),
    ("variance_variation", "variance"),
    ("wasserstein", "Wass.-1"),
)
_NOMINAL = (("semantic_sse", "semantic SSE"), ("scaled_sse", "scaled SSE"), ("total_variation", "total var."))


@dataclass(frozen=True, slots=True)
class Finding:
    """A measurement on the original records, with its rating; never published."""

    level: Level
    message: Message

    @property
    def text(self) -> str:
        return capital(str(self.message))


def usefulness(utility: Mapping[str, Any], estimates: Mapping[str, Any] | None = None) -> Finding | None:
    """Rate the usefulness of a release by its worst figure; None where nothing could be compared.

    Args:
        utility: the measures of loss of `shoal.evaluate`.
        estimates: survey estimates before and after, where there is a weight; averages are then weighted.

    >>> print(usefulness({"mean_shift_max": 0.03, "rank_correlations": 45, "rank_correlations_kept": 41}).text)
    Averages shift by at most 3% of a standard deviation; 41 of 45 rank correlations keep their sign and size.
    """
    figures, found = [], []
    shift = largest_shift(utility, estimates)
    if shift is not None:
        code = "weighted-averages-move" if shift.weighted else "averages-move"
        figures.append(Message.of(code, shift=shift.message))
        found.append(upwards(shift.value, SHIFT))
    pairs = utility.get("rank_correlations") or 0
    if pairs:
        kept = utility["rank_correlations_kept"]
        figures.append(relations(kept, pairs))
        found.append(downwards(kept / pairs, KEPT))
    moved = most_moved(utility)
    if moved is not None:
        figures.append(moved.message)
        found.append(upwards(moved.value, MOVED))
    if not found:
        return None
    return Finding(max(found, key=LEVELS.index), Message.of("usefulness", figures=tuple(figures)))


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest figure over all columns, with its message and its column.

    Attributes:
        weighted: the figure is a weighted survey estimate.
    """

    value: float
    message: Message
    weighted: bool = False


def largest_shift(utility: Mapping[str, Any], estimates: Mapping[str, Any] | None = None) -> Worst | None:
    """The average that moves most; with survey weights, the weighted average.

    >>> str(largest_shift({"mean_shift_max": 0.03, "attributes": {"age": {"mean_shift": 0.03}}}).message)
    'shift by at most 3% of a standard deviation (age)'
    """
    shifts = dict((estimates or {}).get("mean_shifts") or {})
    if shifts:
        column = max(shifts, key=lambda name: shifts[name])
        return Worst(shifts[column], _shift(shifts[column], column), weighted=True)
    shift = utility.get("mean_shift_max")
    if shift is None:
        return None
    return Worst(shift, _shift(shift, _of_column(utility, "mean_shift")))


def _shift(shift: float, column: str | None) -> Message:
    return Message.of(
        "moves-at-most" if column is None else "moves-at-most-column", shift=shift, column=column
    )


def most_moved(utility: Mapping[str, Any]) -> Worst | None:
    """The column whose distribution changes most.

    >>> str(most_moved({"total_variation_max": 0.12, "attributes": {"age": {"total_variation": 0.12}}}).message)
    'total variation distance at most 12% (age)'
    """
    moved = utility.get("total_variation_max")
    if moved is None:
        return None
    column = _of_column(utility, "total_variation")
    code = "values-move" if column is None else "values-move-column"
    return Worst(moved, Message.of(code, share=moved, column=column))


def _of_column(utility: Mapping[str, Any], figure: str) -> str | None:
    """The column that attains the largest figure; None where no column has one."""
    found = {
        name: line[figure]
        for name, line in utility.get("attributes", {}).items()
        if line.get(figure) is not None
    }
    return max(found, key=lambda name: found[name], default=None)


def relations(kept: int, pairs: int) -> Message:
    """Number of rank correlations that are preserved.

    >>> str(relations(41, 45)), str(relations(1, 1))
    ('41 of 45 rank correlations keep their sign and size', '1 of 1 rank correlation keeps its sign and size')
    """
    return Message.of("relation-kept" if kept == 1 else "relations-kept", kept=kept, pairs=pairs)


def upwards(value: float, limits: tuple[float, float]) -> Level:
    """The rating of a figure that should be small."""
    good, poor = limits
    return "green" if value <= good else "amber" if value <= poor else "red"


def downwards(value: float, limits: tuple[float, float]) -> Level:
    """The rating of a figure that should be large."""
    good, poor = limits
    return "green" if value >= good else "amber" if value >= poor else "red"


@dataclass(frozen=True, slots=True)
class Line:
    """One headline measure; the rating is empty where none applies."""

    title: str
    message: Message
    judgement: str = ""

    @property
    def words(self) -> str:
        return str(self.message)


def five(measured: Mapping[str, Any]) -> tuple[Line, ...]:
    """Averages, relations, distributions, re-identified rows and the smallest equivalence class.

    Args:
        measured: an `Evaluation` as plain values.
    """
    return (
        _averages(measured),
        _relations(measured["utility"]),
        _distributions(measured["utility"]),
        _traced(measured),
        _smallest_class(measured),
    )


def _averages(measured: Mapping[str, Any]) -> Line:
    shift = largest_shift(measured["utility"], measured.get("estimates"))
    if shift is None:
        return Line("averages", Message.of("no-average"))
    title = "weighted averages" if shift.weighted else "averages"
    return Line(title, shift.message, _GOOD[upwards(shift.value, SHIFT)])


def _relations(utility: Mapping[str, Any]) -> Line:
    pairs = utility.get("rank_correlations") or 0
    if not pairs:
        return Line("relations", Message.of("no-ordered-pair"))
    kept = utility["rank_correlations_kept"]
    return Line("relations", relations(kept, pairs), _GOOD[downwards(kept / pairs, KEPT)])


def _distributions(utility: Mapping[str, Any]) -> Line:
    moved = most_moved(utility)
    if moved is None:
        return Line("distributions", Message.of("distributions-not-comparable"))
    return Line("distributions", moved.message, _GOOD[upwards(moved.value, MOVED)])


def _traced(measured: Mapping[str, Any]) -> Line:
    risk = measured["risk"]
    share = risk.get("record_linkage")
    if share is None:
        return Line("rows re-identified", Message.of("not-traceable"))
    chance = risk["record_linkage_chance"]
    low = risk["record_linkage_interval"][0]
    level: Level = "red" if low > 9 else "amber" if low > chance else "green"
    traced = Message.of("rows-traced", share=share / 100, chance=chance / 100)
    return Line("rows re-identified", traced, _RISK[level])


def _smallest_class(measured: Mapping[str, Any]) -> Line:
    k = measured["risk"].get("actual_k")
    if k is None:
        return Line("smallest equivalence class", Message.of("crowd-not-counted"))
    if measured.get("synthetic"):
        # for synthetic records, a unique row says nothing about a person
        return Line("smallest equivalence class", Message.of("crowd-of-synthetic-rows"))
    return Line("smallest equivalence class", Message.of("row-alone" if k == 1 else "crowd-of-rows", rows=k))


@displayed(display.of_evaluation)
@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Utility loss and remaining risk. Facts about the original data: for the internal report, not for publication.

    Attributes:
        utility: measures of loss by name; `attributes` holds those of each column.
        risk: record linkage with its interval, and the k actually reached.
        columns: the columns measured.
        rows_matched: whether rows could be compared one by one; if not, row measures are None.
        matching: how synthetic records were assigned to the records of their cluster: none, rank or assignment; None
            where rows were not drawn.
        rows: number of rows of the original (those that were protected) and of the released table.
        missing: number of missing values of each measured column in both tables.
        unmeasured: columns that were not measured, and why; `skipped` has it as text.
        learning: predictive utility of the release; None without a target.
        estimates: survey estimates with their errors, before and after; None without a weight.
        synthetic: the released rows are synthetic records.
        told: what is missing or approximate because the tables were read in parts; `remarks` has it as text.
    """

    utility: dict[str, Any]
    risk: dict[str, Any]
    columns: tuple[str, ...]
    rows_matched: bool
    rows: dict[str, int]
    missing: dict[str, dict[str, int]]
    unmeasured: dict[str, Message]
    learning: dict[str, Any] | None = None
    matching: str | None = None
    estimates: dict[str, Any] | None = None
    synthetic: bool = False
    told: tuple[Message, ...] = ()

    @property
    def skipped(self) -> dict[str, str]:
        return {name: str(why) for name, why in self.unmeasured.items()}

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(map(str, self.told))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values for JSON; undefined values are None."""
        return {
            "columns": list(self.columns),
            "rows_matched": self.rows_matched,
            "matching": self.matching,
            "rows": plain(self.rows),
            "missing": plain(self.missing),
            "skipped": self.skipped,
            "utility": plain(self.utility),
            "risk": plain(self.risk),
            "learning": plain(self.learning),
            "estimates": plain(self.estimates),
            "synthetic": self.synthetic,
            "remarks": list(self.remarks),
        }

    def summary(self, about: str = "internal: facts about the original data") -> Table:
        """Five self-explanatory measures, each with a rating."""
        out = _empty_table(f"What changed ({about})")
        for title in ("", "", "judgement"):
            out.add_column(title)
        for line in five(self.to_dict()):
            out.add_row(line.title, line.words, line.judgement)
        return out

    def table(self) -> Table:
        """The measures of the whole table with one line of explanation each, for a terminal of 80 columns."""
        out = _empty_table("Evaluation (internal: facts about the original data)")
        out.add_column("measure", no_wrap=True)
        out.add_column("value", justify="right", no_wrap=True)
        out.add_column("good", no_wrap=True)
        out.add_column("meaning")
        for part, values in (("utility", self.utility), ("risk", self.risk)):
            for measure in MEASURES.values():
                if measure.part == part and values.get(measure.name) is not None:
                    out.add_row(measure.title, _shown(values[measure.name]), measure.good, measure.meaning)
            out.add_section()
        if not self.rows_matched:
            out.caption = "The order of the rows is unknown: SSE, SAE and record linkage are undefined."
        elif self.matching is not None:
            out.caption = f"Rows are synthetic and were matched to records by match={self.matching}."
        return out

    def attribute_table(self) -> Table | None:
        """The measures of each ordered column; None without one."""
        return self._by_attribute("By attribute", _ATTRIBUTE, nominal=False)

    def nominal_table(self) -> Table | None:
        """The measures of each nominal column; None without one."""
        return self._by_attribute("By nominal attribute", _NOMINAL, nominal=True)

    def _by_attribute(
        self, title: str, measures: Sequence[tuple[str, str]], *, nominal: bool
    ) -> Table | None:
        from rich.markup import escape

        attributes: Mapping[str, Mapping[str, Any]] = self.utility["attributes"]
        lines = {
            name: line for name, line in attributes.items() if KIND_FACTS[line["kind"]].ordered is not nominal
        }
        if not lines:
            return None
        k: Mapping[str, int] = self.risk["actual_k_per_attribute"]
        shown = [pair for pair in measures if any(line[pair[0]] is not None for line in lines.values())]
        out = _empty_table(title)
        out.add_column("attribute", overflow="fold")
        for _, heading in shown:
            out.add_column(heading, justify="right", no_wrap=True)
        out.add_column("k", justify="right", no_wrap=True)
        for name, line in lines.items():
            size = f"{k[name]}" if name in k else "-"
            out.add_row(escape(name), *(_shown(line[key]) for key, _ in shown), size)
        return out

    def learning_table(self) -> Table | None:
        """Accuracy and F-measures of a classifier, beside its bounds; None without a target."""
        if self.learning is None:
            return None
        from rich.markup import escape

        found = self.learning
        out = _empty_table(f"Predicting {escape(found['target'])} (random forest)")
        out.add_column("measure", overflow="fold")
        for title in ("release", "95% interval", "original", "majority class"):
            out.add_column(title, justify="right", no_wrap=True)
        sources = [found[source] for source in ("released", "original", "majority")]
        for name in (None, *found["classes"]):
            means = [part["accuracy"] if name is None else part["f"][name] for part in sources]
            interval = sources[0]["accuracy_interval"] if name is None else sources[0]["f_interval"][name]
            title = "accuracy" if name is None else f"F, {escape(name)}"
            out.add_row(title, _shown(means[0]), _shown(interval), *(_shown(mean) for mean in means[1:]))
        classes = "as released" if found["labels"] == "released" else "original, as if published unmasked"
        out.caption = (
            f"{found['how']} Classes in training: {classes}. Intervals are over {found['runs']} runs."
        )
        return out

    def estimates_table(self) -> Table | None:
        """Survey estimates before and after, with the difference in standard errors; None without a weight."""
        if self.estimates is None or not self.estimates["rows"]:
            return None
        from rich.markup import escape

        out = _empty_table("Survey estimates (internal: facts about the original data)")
        out.add_column("estimate", overflow="fold")
        for title in ("before", "error", "after", "error", "moved, in errors"):
            out.add_column(title, justify="right", no_wrap=True)
        for line in self.estimates["rows"]:
            found = (line[key] for key in ("before", "error_before", "after", "error_after", "moved"))
            out.add_row(escape(f"{line['column']}: {line['what']}"), *(_shown(value) for value in found))
        out.caption = self.estimates["about"]
        return out

    def __rich__(self) -> Group:
        from rich.console import Group

        tables = (
            self.table(),
            self.attribute_table(),
            self.nominal_table(),
            self.learning_table(),
            self.estimates_table(),
        )
        return Group(*(table for table in tables if table is not None))


def plain(value: Any) -> Any:
    """A value as plain Python: no numpy types; NaN and infinities become None.

    >>> plain({"a": (np.float64(1.5), float("nan")), "b": np.int64(3)})
    {'a': [1.5, None], 'b': 3}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _empty_table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (tuple, list)):
        return " - ".join(f"{item:.3g}" for item in value)
    if isinstance(value, int):
        return f"{value}"
    return f"{value:.4g}"
