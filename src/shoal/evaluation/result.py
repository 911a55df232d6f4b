"""Evaluate a release against its original, and the result: measures, five headlines, and a usefulness rating."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal import display
from shoal.arguments import as_names
from shoal.columns import KIND_FACTS, Kind
from shoal.display import displayed
from shoal.errors import InputError, OptionError, closest
from shoal.evaluation import utility
from shoal.evaluation.learning import CONFIDENCE, LearningSettings, Protocol, check_learner, learn_pairs
from shoal.evaluation.linkage import Linkage, record_linkage
from shoal.evaluation.measures import MEASURES, computed, mean_sse
from shoal.evaluation.pair import (
    Column,
    Nominal,
    Ordered,
    TablePair,
    columns_of,
    kind_of,
    make_pair,
    missing_count,
    plain,
)
from shoal.evaluation.survey import survey_estimates
from shoal.evaluation.utility import (
    Contingency,
    categories,
    contingency,
    scaled_sse,
    semantic_sse,
    total_variation,
)
from shoal.partition import actual_k
from shoal.privacy import LEVELS, Level
from shoal.progress import Progress, silent
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


def evaluate(
    original: Any,
    released: Any,
    *,
    columns: str | Sequence[str] | None = None,
    same_order: bool = False,
    target: str | None = None,
    protocol: Protocol = "k-fold",
    folds: int = 5,
    runs: int = 5,
    trees: int = 100,
    weight: str | None = None,
    strata: str | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """`shoal.evaluate` of tables in memory, or read one column at a time; its arguments are documented there.

    >>> import pyarrow as pa
    >>> before = pa.table({"age": [20, 30, 40, 50]})
    >>> result = evaluate(before, pa.table({"age": [25, 25, 45, 45]}))
    >>> result.utility["mean_variation"], result.risk["actual_k"], result.utility["sse"]
    (0.0, 2, None)
    """
    settings = LearningSettings(protocol, folds, runs, trees)
    if target is not None:
        check_learner()
    tell = progress or silent
    pair, columns = make_pair(original, released, same_order), as_names(columns)
    for table, which in ((pair.before, "original"), (pair.published, "released")):
        if table.n == 0:
            raise InputError("nothing-to-evaluate", which=which)
    chosen = chosen_columns(pair, columns)
    measured = columns_of(pair, chosen)
    return Evaluation(
        utility=plain(_utility(measured, pair.matched, tell)),
        risk=plain(_risk(pair, measured, columns, tell)),
        columns=chosen,
        rows_matched=pair.matched,
        matching=pair.matching,
        rows={"original": pair.before.n, "released": pair.published.n},
        missing={
            column.name: {
                "original": missing_count(column.before, column),
                "released": missing_count(column.after, column),
            }
            for column in measured
        },
        unmeasured=skipped_columns(pair, chosen, columns),
        learning=None
        if target is None
        else learn_pairs([pair], target, settings, columns=columns, progress=tell),
        estimates=survey_estimates(pair, released, chosen, weight, strata),
        synthetic=is_synthetic(released),
    )


def is_synthetic(released: Any) -> bool:
    """Whether a release consists of synthetic records, drawn from noisy statistics of the whole table."""
    return getattr(getattr(released, "method", None), "stability", None) == "private"


def chosen_columns(pair: TablePair, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns to compare: those requested, or all that can be compared."""
    if columns is None:
        common = tuple(name for name in pair.released if name in pair.before.names and kind_of(pair, name))
        if not common:
            raise InputError(
                "no-comparable-column", original=pair.before.names, released=pair.published.names
            )
        return common
    if not columns:
        raise OptionError("columns-is-empty", option="columns")
    for name in columns:
        for table, which in ((pair.before, "original"), (pair.published, "released")):
            if name not in table.names:
                hint = closest(name, table.names)
                raise InputError("there-no-column-table", column=name, which=which, hint=hint)
        if kind_of(pair, name) is None:
            raise InputError(
                "column-original-released-table",
                column=name,
                stored=pair.before.dtype(name),
                stored_2=pair.published.dtype(name),
            )
    return tuple(dict.fromkeys(columns))


def skipped_columns(
    pair: TablePair, chosen: tuple[str, ...], columns: Sequence[str] | None
) -> dict[str, Message]:
    """Columns of either table that were not measured, with the reason."""
    out: dict[str, Message] = {}
    for name in dict.fromkeys((*pair.before.names, *pair.published.names)):
        if name in chosen:
            continue
        if name not in pair.published.names:
            out[name] = Message.of("skipped-not-released")
        elif name not in pair.before.names:
            out[name] = Message.of("skipped-not-in-original")
        elif columns is not None:
            out[name] = Message.of("skipped-not-asked-for")
        else:
            out[name] = Message.of("skipped-different-kinds")
    return out


def _utility(columns: Sequence[Column], matched: bool, tell: Progress) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    for number, column in enumerate(columns):
        tell("measuring what was lost", number, len(columns))
        attributes[column.name] = _attribute(column, matched)
    tell("measuring what was lost", len(columns), len(columns))
    numeric = [
        column for column in columns if isinstance(column, Ordered) and KIND_FACTS[column.kind].measured
    ]
    before, after = _side_by_side(numeric)
    errors = (
        (mean_sse(before, after), mean_sse(before, after, "paper")) if matched and numeric else (None, None)
    )
    return summed_up(
        attributes,
        utility.correlation_difference(utility.correlations(before), utility.correlations(after)),
        utility.correlations_kept(*map(utility.rank_correlations, _side_by_side(columns))),
        contingency(columns),
        errors,
        computed("utility", columns, matched),
    )


def summed_up(
    attributes: Mapping[str, Mapping[str, Any]],
    correlation: utility.CorrelationDifference,
    ranks: tuple[int, int],
    pairs: Contingency,
    errors: tuple[float | None, float | None],
    more: Mapping[str, float | None],
) -> dict[str, Any]:
    """The table's utility measures, from those of its columns and pairs of columns.

    Args:
        attributes: the measures of each column.
        correlation: of the columns of quantities, in their order.
        ranks: how many rank correlations are kept, and how many there are.
        errors: mean SSE, corrected and as printed; None where rows are not matched.
        more: measures with a function of their own.
    """
    numeric = [name for name, line in attributes.items() if KIND_FACTS[line["kind"]].measured]
    lines = [attributes[name] for name in numeric]
    sse = _total(lines, "sse")
    corrected, printed = errors
    return {
        "sse": sse,
        "sae": _total(lines, "sae"),
        "log10_sse": _log10(sse),
        "log2_sse": math.log2(sse) if sse else None,
        "mean_sse": corrected,
        "log10_mean_sse": _log10(corrected),
        "mean_sse_paper": printed,
        "log10_mean_sse_paper": _log10(printed),
        "normalised_sse": _average(lines, "normalised_sse"),
        "semantic_sse": _total(attributes.values(), "semantic_sse"),
        "scaled_sse": _total(attributes.values(), "scaled_sse"),
        "mean_variation": _average(lines, "mean_variation"),
        "mean_shift_max": max(_found(attributes.values(), "mean_shift"), default=None),
        "variance_variation": _average(lines, "variance_variation"),
        "correlation_difference": correlation.mean,
        "correlation_difference_max": correlation.largest,
        "correlation_pairs": correlation.pairs,
        "rank_correlations_kept": ranks[0],
        "rank_correlations": ranks[1],
        "correlation_excluded": [numeric[j] for j in correlation.excluded],
        "wasserstein": _average(lines, "wasserstein"),
        "total_variation": _average(attributes.values(), "total_variation"),
        "total_variation_max": max(_found(attributes.values(), "total_variation"), default=None),
        "pair_total_variation": pairs.mean,
        "pair_total_variation_max": pairs.largest,
        "pair_total_variation_worst": pairs.worst,
        **more,
        "attributes": dict(attributes),
    }


def _side_by_side(columns: Iterable[Column]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ordered columns of both tables."""
    ordered = [column for column in columns if isinstance(column, Ordered)]
    if not ordered:
        return np.empty((0, 0)), np.empty((0, 0))
    return np.column_stack([one.before for one in ordered]), np.column_stack([one.after for one in ordered])


def _attribute(column: Column, matched: bool) -> dict[str, Any]:
    """The measures of one column; those that its kind does not have are None."""
    line = measures_of(column.kind, total_variation(*categories(column)))
    if matched:
        line["scaled_sse"] = scaled_sse(column)
    if isinstance(column, Nominal):
        return line | {"semantic_sse": semantic_sse(column) if matched else None}
    x, y = column.before, column.after
    if matched:
        errors = utility.row_errors(x, y)
        line |= {"sse": errors.sse, "sae": errors.sae, "normalised_sse": errors.normalised_sse}
    return line | moved(column.kind, utility.Moments.of(x), utility.Moments.of(y), utility.wasserstein(x, y))


def measures_of(kind: Kind, total: float) -> dict[str, Any]:
    """The measures of a column by name; all except its kind and its total variation start as None."""
    line: dict[str, Any] = dict.fromkeys(
        (
            *("sse", "sae", "normalised_sse", "mean_variation", "variance_variation", "wasserstein"),
            *("semantic_sse", "scaled_sse", "mean_shift"),
        )
    )
    return line | {"kind": kind, "total_variation": total}


def moved(kind: Kind, before: utility.Moments, after: utility.Moments, distance: float) -> dict[str, Any]:
    """Measures from the moments of an ordered column; `distance` is the Wasserstein distance."""
    return {
        # days and places in an order have no natural zero
        "mean_variation": utility.mean_variation(before, after) if KIND_FACTS[kind].measured else None,
        "mean_shift": utility.mean_shift(before, after),
        "variance_variation": utility.variance_variation(before, after),
        "wasserstein": distance,
    }


def _risk(
    pair: TablePair, measured: Sequence[Column], columns: Sequence[str] | None, tell: Progress
) -> dict[str, Any]:
    tell("linking records", 0, 1)
    names = pair.released if columns is None else tuple(column.name for column in measured)
    reached = actual_k(pair.published, names)
    linked = _linkage(measured) if pair.matched else None
    return {
        "record_linkage": linked and linked.percent,
        "record_linkage_interval": linked and linked.interval,
        "record_linkage_confidence": linked and CONFIDENCE,
        "record_linkage_chance": linked and linked.chance,
        "record_linkage_records": linked and linked.records,
        "record_linkage_rows": linked and linked.rows,
        "record_linkage_widths": linked and {column.name: column.width for column in measured},
        "actual_k": reached.k,
        "groups": reached.groups,
        "unique_share": reached.unique_share,
        **computed("risk", measured, pair.matched),
        "actual_k_per_attribute": reached.per_attribute,
    }


def _linkage(measured: Sequence[Column]) -> Linkage | None:
    """Exact search by a tree where every attribute is ordered, otherwise by comparing rows with records."""
    ordered = [column for column in measured if isinstance(column, Ordered)]
    if len(ordered) < len(measured):
        from shoal.evaluation.linkage import mixed_linkage

        return mixed_linkage(measured)
    before = np.column_stack([column.before for column in ordered])
    after = np.column_stack([column.after for column in ordered])
    complete = np.isfinite(before).all(axis=1) & np.isfinite(after).all(axis=1)
    if not complete.any():
        return None
    widths = np.array([column.width for column in ordered])
    return record_linkage(before[complete], after[complete], widths)


def _found(lines: Iterable[Mapping[str, Any]], key: str) -> list[float]:
    """The measure, for the attributes that have it."""
    return [line[key] for line in lines if line[key] is not None and math.isfinite(line[key])]


def _total(lines: Iterable[Mapping[str, Any]], key: str) -> float | None:
    found = _found(lines, key)
    return math.fsum(found) if found else None


def _average(lines: Iterable[Mapping[str, Any]], key: str) -> float | None:
    found = _found(lines, key)
    return math.fsum(found) / len(found) if found else None


def _log10(value: float | None) -> float | None:
    return math.log10(value) if value else None
