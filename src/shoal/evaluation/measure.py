"""Evaluate: an original table and a release (or any other table) come in, an `Evaluation` leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, OptionError, did_you_mean
from shoal.evaluation import utility
from shoal.evaluation.anonymity import actual_k
from shoal.evaluation.interval import CONFIDENCE
from shoal.evaluation.learning import Protocol, Settings, learn_pairs
from shoal.evaluation.linkage import record_linkage
from shoal.evaluation.mean_sse import mean_sse
from shoal.evaluation.pair import Pair, make_pair
from shoal.evaluation.result import Evaluation, plain


def evaluate(
    original: Any,
    released: Any,
    *,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    protocol: Protocol = "k-fold",
    folds: int = 5,
    runs: int = 5,
    trees: int = 100,
) -> Evaluation:
    """Measure what a release lost and what risk it leaves.

    With a `Release` whose rows have an original, all measures exist and are taken on its unrounded values
    in input order. With any other table (or a release without such rows) only the measures that need no row
    order exist; the others are None. The k actually reached is always that of the published table.

    Args:
        original: path, or pandas, polars or pyarrow table.
        released: a `Release`, or a path or table.
        columns: measure only these; by default the released columns, or the numeric columns both tables have.
        target: also measure how well a random forest that learns from the release predicts this column: one of
            classes, or a numeric one with a threshold, such as "income>30000"; see `shoal.evaluation.learn`.
        protocol: of learning: `k-fold`, or `first-66%`, the split of the iDP paper.
        folds: number of folds of `k-fold`.
        runs: number of runs of learning, with different seeds; the intervals are over these.
        trees: number of trees of a forest.

    Returns:
        Facts about the original data: they belong in the internal report, not in a publication.

    Raises:
        InputError: a table is empty, there is no common numeric column, or a chosen one is unknown or text;
            the target is unknown, or cannot be learned.
        OptionError: an option has a value that cannot be used.

    Cost:
        O(n log n) per column; record linkage as described in `record_linkage`, learning as in `learn`.

    >>> import pyarrow as pa
    >>> before = pa.table({"age": [20, 30, 40, 50]})
    >>> result = evaluate(before, pa.table({"age": [25, 25, 45, 45]}))
    >>> result.utility["mean_variation"], result.risk["actual_k"], result.utility["sse"]
    (0.0, 2, None)
    """
    settings = Settings(protocol, folds, runs, trees)
    pair = make_pair(original, released)
    for table, which in ((pair.before, "original"), (pair.published, "released")):
        if table.n == 0:
            raise InputError(f"the {which} table has no rows: there is nothing to evaluate.")
    chosen = _chosen(pair, columns)
    before = np.column_stack([pair.before.numeric(name) for name in chosen])
    after = np.column_stack([pair.after.numeric(name) for name in chosen])
    return Evaluation(
        utility=plain(_utility(before, after, chosen, pair.matched)),
        risk=plain(_risk(pair, before, after, chosen, columns)),
        columns=chosen,
        rows_matched=pair.matched,
        rows={"original": pair.before.n, "released": pair.published.n},
        missing={
            name: {"original": _missing(before[:, j]), "released": _missing(after[:, j])}
            for j, name in enumerate(chosen)
        },
        skipped=_skipped(pair, chosen, columns),
        learning=None if target is None else learn_pairs([pair], target, settings, columns=columns),
    )


def _chosen(pair: Pair, columns: Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        common = tuple(name for name in pair.released if _numeric_in_both(pair, name))
        if not common:
            raise InputError(
                "the tables have no numeric column in common: the original has "
                f"{_listed(pair.before.names)}, the released table {_listed(pair.published.names)}."
            )
        return common
    if isinstance(columns, str):
        columns = [columns]
    if not columns:
        raise OptionError("columns is empty: name at least one column, or leave the option out.")
    for name in columns:
        for table, which in ((pair.before, "original"), (pair.after, "released")):
            if name not in table.names:
                hint = did_you_mean(name, table.names)
                raise InputError(f"there is no column '{name}' in the {which} table.{hint}")
            if not table.is_numeric(name):
                table.numeric(name)  # raises the error that names the row
    return tuple(dict.fromkeys(columns))


def _numeric_in_both(pair: Pair, name: str) -> bool:
    return all(name in table.names and table.is_numeric(name) for table in (pair.before, pair.after))


def _skipped(pair: Pair, chosen: tuple[str, ...], columns: Sequence[str] | None) -> dict[str, str]:
    """Columns of either table that were not measured, with the reason."""
    out: dict[str, str] = {}
    for name in dict.fromkeys((*pair.before.names, *pair.published.names)):
        if name in chosen:
            continue
        if name not in pair.published.names:
            out[name] = "not released"
        elif name not in pair.before.names:
            out[name] = "not in the original"
        elif columns is not None:
            out[name] = "not asked for"
        else:
            out[name] = "not numeric"
    return out


def _utility(
    before: NDArray[np.float64], after: NDArray[np.float64], names: tuple[str, ...], matched: bool
) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    for j, name in enumerate(names):
        x, y = before[:, j], after[:, j]
        errors = utility.row_errors(x, y) if matched else None
        attributes[name] = {
            "sse": errors.sse if errors else None,
            "sae": errors.sae if errors else None,
            "normalised_sse": errors.normalised_sse if errors else None,
            "mean_variation": utility.mean_variation(x, y),
            "variance_variation": utility.variance_variation(x, y),
            "wasserstein": utility.wasserstein(x, y),
        }
    correlation = utility.correlation_difference(before, after)
    sse = _total(attributes, "sse") if matched else None
    corrected, printed = (
        (mean_sse(before, after), mean_sse(before, after, "paper")) if matched else (None, None)
    )
    return {
        "sse": sse,
        "sae": _total(attributes, "sae") if matched else None,
        "log10_sse": _log10(sse),
        "log2_sse": math.log2(sse) if sse else None,
        "mean_sse": corrected,
        "log10_mean_sse": _log10(corrected),
        "mean_sse_paper": printed,
        "log10_mean_sse_paper": _log10(printed),
        "normalised_sse": _average(attributes, "normalised_sse") if matched else None,
        "mean_variation": _average(attributes, "mean_variation"),
        "variance_variation": _average(attributes, "variance_variation"),
        "correlation_difference": correlation.mean,
        "correlation_difference_max": correlation.largest,
        "correlation_pairs": correlation.pairs,
        "correlation_excluded": [names[j] for j in correlation.excluded],
        "wasserstein": _average(attributes, "wasserstein"),
        "attributes": attributes,
    }


def _risk(
    pair: Pair,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    names: tuple[str, ...],
    columns: Sequence[str] | None,
) -> dict[str, Any]:
    reached = actual_k(pair.published, names if columns is not None else pair.released)
    out: dict[str, Any] = {
        "record_linkage": None,
        "record_linkage_interval": None,
        "record_linkage_confidence": None,
        "record_linkage_chance": None,
        "record_linkage_records": None,
        "record_linkage_widths": None,
        "actual_k": reached.k,
        "groups": reached.groups,
        "unique_share": reached.unique_share,
        "actual_k_per_attribute": reached.per_attribute,
    }
    complete = np.isfinite(before).all(axis=1)
    if pair.matched:
        complete &= np.isfinite(after).all(axis=1)
    if not pair.matched or not complete.any():
        return out
    x, y = before[complete], after[complete]
    widths = np.array([pair.width(name, x[:, j]) for j, name in enumerate(names)])
    linked = record_linkage(x, y, widths)
    out |= {
        "record_linkage": linked.percent,
        "record_linkage_interval": linked.interval,
        "record_linkage_confidence": CONFIDENCE,
        "record_linkage_chance": linked.chance,
        "record_linkage_records": linked.records,
        "record_linkage_widths": dict(zip(names, widths.tolist(), strict=True)),
    }
    return out


def _missing(values: NDArray[np.float64]) -> int:
    return int((~np.isfinite(values)).sum())


def _total(attributes: dict[str, dict[str, Any]], key: str) -> float | None:
    found = [line[key] for line in attributes.values() if math.isfinite(line[key])]
    return math.fsum(found) if found else None


def _average(attributes: dict[str, dict[str, Any]], key: str) -> float | None:
    """Mean over the attributes that have the measure."""
    found = [line[key] for line in attributes.values() if math.isfinite(line[key])]
    return math.fsum(found) / len(found) if found else None


def _log10(value: float | None) -> float | None:
    return math.log10(value) if value else None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown
