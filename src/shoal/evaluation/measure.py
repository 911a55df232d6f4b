"""Evaluate a release: compare an original table with a released one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.arguments import as_names
from shoal.columns import KIND_FACTS, Kind
from shoal.errors import InputError, OptionError, closest
from shoal.evaluation import utility
from shoal.evaluation.learning import CONFIDENCE, LearningSettings, Protocol, check_learner, learn_pairs
from shoal.evaluation.linkage import Linkage, record_linkage
from shoal.evaluation.measures import computed, mean_sse
from shoal.evaluation.pair import (
    Column,
    Nominal,
    Ordered,
    TablePair,
    columns_of,
    kind_of,
    make_pair,
    missing_count,
)
from shoal.evaluation.result import Evaluation, plain
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
from shoal.progress import Progress, silent
from shoal.text import Message


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
