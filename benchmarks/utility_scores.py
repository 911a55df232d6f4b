"""The scores of the utility benchmark: a released table against the records it was made from.

Where a score needs groups of values, a number counts in about twenty bins that hold equally many records, as in NIST's
k-marginal; in the total variation of single columns, a short column counts value by value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.utility_tables import SHORT, Numbers, Task, Yes

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
QUANTILES = 20
# random triples of columns that are looked at
TRIPLES = 100
# rows of each table that a classifier sees, and its rounds of boosting
ROWS, ROUNDS = 10_000, 50
# a group of fewer records has no mean worth the name
SMALLEST_GROUP = 10


class Sides:
    """Records and released rows of one task, as the scores need them."""

    def __init__(self, task: Task, released: pa.Table) -> None:
        self.task, self.tables = task, (task.records, released)

    @cached_property
    def values(self) -> Mapping[str, tuple[Any, Any]]:
        """Numbers as floats, names as codes, of both sides."""
        return {name: (self.column(0, name), self.column(1, name)) for name in self.task.domains}

    def column(self, side: int, name: str) -> Any:
        return coded(self.tables[side], name, self.task)

    @cached_property
    def bins(self) -> Mapping[str, tuple[Codes, Codes]]:
        """Codes of names, and of numbers the bins that equally many records share."""
        found = {}
        for name, (before, after) in self.values.items():
            if name in self.task.numbers:
                places = np.arange(1, QUANTILES) / QUANTILES
                ends = np.unique(np.quantile(before, places, method="inverted_cdf"))
                before, after = np.searchsorted(ends, before), np.searchsorted(ends, after)
            found[name] = (before, after)
        return found

    @cached_property
    def single(self) -> Mapping[str, tuple[Codes, Codes]]:
        """The same, but every value of a short column by itself."""
        found = dict(self.bins)
        for name in self.task.numbers:
            domain = self.task.domains[name]
            if isinstance(domain, Numbers) and domain.values <= SHORT:
                before, after = self.values[name]
                found[name] = (domain.units(before), domain.units(after))
        return found


def coded(table: pa.Table, name: str, task: Task) -> Any:
    domain = task.domains[name]
    if isinstance(domain, Numbers):
        return table[name].to_numpy(zero_copy_only=False).astype(np.float64)
    place = {value: number for number, value in enumerate(domain)}
    # names that look like numbers may come back as numbers
    return np.array([place[str(value)] for value in table[name].to_pylist()], dtype=np.int64)


def total_variation(pairs: Sequence[tuple[Codes, Codes]]) -> float:
    """Half the absolute difference of the shares of all combinations of these columns."""
    before, after = np.zeros(pairs[0][0].size, np.int64), np.zeros(pairs[0][1].size, np.int64)
    for one, other in pairs:
        width = int(max(one.max(), other.max())) + 1
        before, after = before * width + one, after * width + other
    _, places = np.unique(np.concatenate((before, after)), return_inverse=True)
    shares = [
        np.bincount(part, minlength=places.max() + 1) / part.size
        for part in (places[: before.size], places[before.size :])
    ]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def one_way(sides: Sides) -> float:
    return float(np.mean([total_variation([pair]) for pair in sides.single.values()]))


def two_way(sides: Sides) -> float:
    return _ways(sides, combinations(sides.bins, 2))


def three_way(sides: Sides) -> float:
    triples = list(combinations(sides.bins, 3))
    if len(triples) > TRIPLES:
        chosen = np.random.default_rng(0).choice(len(triples), TRIPLES, replace=False)
        triples = [triples[number] for number in chosen]
    return _ways(sides, triples)


def names_by_names(sides: Sides) -> float | None:
    pairs = list(combinations(sides.task.names, 2))
    return _ways(sides, pairs) if pairs else None


def _ways(sides: Sides, groups: Any) -> float:
    return float(np.mean([total_variation([sides.bins[name] for name in group]) for group in groups]))


def cramers_v(sides: Sides) -> float | None:
    """Mean absolute difference of Cramér's V over all pairs with a name."""
    names = set(sides.task.names)
    pairs = [pair for pair in combinations(sides.bins, 2) if names & set(pair)]
    found = [
        abs(v_of(*(sides.bins[c][0] for c in pair)) - v_of(*(sides.bins[c][1] for c in pair)))
        for pair in pairs
    ]
    return float(np.mean(found)) if found else None


def v_of(one: Codes, other: Codes) -> float:
    """Cramér's V; 0 where a column does not vary."""
    rows, columns = (np.unique(codes, return_inverse=True)[1] for codes in (one, other))
    table = np.bincount(
        rows * (columns.max() + 1) + columns, minlength=(rows.max() + 1) * (columns.max() + 1)
    )
    counts = table.reshape(rows.max() + 1, -1).astype(np.float64)
    smaller = min(counts.shape) - 1
    if smaller == 0:
        return 0.0
    expected = counts.sum(axis=1)[:, None] * counts.sum(axis=0)[None, :] / counts.sum()
    return math.sqrt(((counts - expected) ** 2 / expected).sum() / counts.sum() / smaller)


def spearman(sides: Sides) -> float | None:
    """Mean absolute difference of the rank correlations of all pairs of numbers."""
    if len(sides.task.numbers) < 2:
        return None
    before, after = (
        correlations(np.stack([ranks(sides.values[name][side]) for name in sides.task.numbers]))
        for side in (0, 1)
    )
    upper = np.triu_indices(len(before), 1)
    return float(np.abs(before - after)[upper].mean())


def ranks(column: Floats) -> Floats:
    """Ranks, those of equal values their mean."""
    _, place, count = np.unique(column, return_inverse=True, return_counts=True)
    found: Floats = (np.cumsum(count) - (count - 1) / 2)[place]
    return found


def correlations(columns: Floats) -> Floats:
    """Of all rows of the matrix with each other; what does not vary correlates with nothing."""
    away = columns - columns.mean(axis=1, keepdims=True)
    length = np.sqrt((away**2).sum(axis=1))
    unit = np.where(length[:, None] > 1e-9, away / np.where(length > 1e-9, length, 1)[:, None], 0.0)
    found: Floats = unit @ unit.T
    return found


def deviation(sides: Sides) -> float | None:
    """Mean absolute logarithm of the ratio of the standard deviations; .1 is a tenth too large or too small."""
    found = [
        abs(math.log(max(float(after.std()), 1e-9) / float(before.std())))
        for before, after in (sides.values[name] for name in sides.task.numbers)
        if before.std() > 0
    ]
    return float(np.mean(found)) if found else None


def high_quantile(sides: Sides) -> float | None:
    """Mean error of the 99% quantile, in standard deviations of the records."""
    found = [
        abs(np.quantile(after, 0.99) - np.quantile(before, 0.99)) / before.std()
        for before, after in (sides.values[name] for name in sides.task.numbers)
        if before.std() > 0
    ]
    return float(np.mean(found)) if found else None


def means_by_names(sides: Sides) -> float | None:
    """Error of the mean of a number by a name with many values, in standard deviations of the number.

    Each group counts with its share of the records; one that the release lacks gets the mean of all released rows.
    """
    found = []
    for name, number in sides.task.means:
        groups, values = sides.values[name], sides.values[number]
        size = len(sides.task.domains[name])  # type: ignore[arg-type]
        counts = [np.bincount(codes, minlength=size) for codes in groups]
        sums = [
            np.bincount(codes, weights=column, minlength=size)
            for codes, column in zip(groups, values, strict=True)
        ]
        after = np.where(counts[1] > 0, sums[1] / np.maximum(counts[1], 1), values[1].mean())
        large = counts[0] >= SMALLEST_GROUP
        errors = np.abs(after[large] - sums[0][large] / counts[0][large]) / values[0].std()
        if large.any():
            found.append(float(np.average(errors, weights=counts[0][large])))
    return float(np.mean(found)) if found else None


def regression(sides: Sides) -> float:
    """Mean error of the coefficients, without the constant, in standard errors of the records' own fit."""
    fits = [_fit(sides, side) for side in (0, 1)]
    return float(np.mean(np.abs(fits[0][0] - fits[1][0]) / fits[0][1]))


def _fit(sides: Sides, side: int) -> tuple[Floats, Floats]:
    asked = sides.task.regression
    columns = [sides.values[name][side].astype(np.float64) for name in asked.on]
    # in units of the records' own spread: the ratio does not depend on it, the arithmetic does
    scales = [max(float(sides.values[name][0].std()), 1e-9) for name in asked.on]
    design = np.stack(
        [np.ones(columns[0].size), *(c / s for c, s in zip(columns, scales, strict=True))], axis=1
    )
    y = sides.values[asked.outcome][side]
    inverse = np.linalg.pinv(design.T @ design)
    b = inverse @ design.T @ y
    errors = np.sqrt(np.diag(inverse) * ((y - design @ b) ** 2).sum() / max(y.size - b.size, 1))
    return b[1:], errors[1:]


def learned(sides: Sides) -> float | None:
    """AUC on records that were held out, of boosted trees that saw the released rows."""
    task = sides.task
    if task.target is None or task.held_out is None:
        return None
    return trained_auc(task, sides.tables[1])


def trained_auc(task: Task, table: pa.Table) -> float:
    """The same of any table with the task's columns; .5 where it has one class only."""
    from sklearn.metrics import roc_auc_score

    if task.target is None or task.held_out is None:
        raise ValueError("the task has nothing to predict")
    features = [name for name in task.domains if name != task.target.column]
    X, y = _matrix(table, features, task), yes(table, task.target)
    if y.all() or not y.any():
        return 0.5
    said = _boosted().fit(X, y).predict_proba(_matrix(task.held_out, features, task))[:, 1]
    return float(roc_auc_score(yes(task.held_out, task.target), said))


def told_apart(sides: Sides) -> float:
    """AUC of boosted trees that tell released rows from records, on rows that they have not seen; .5 is best."""
    from sklearn.metrics import roc_auc_score

    random = np.random.default_rng(0)
    names = list(sides.task.domains)
    parts = []
    for table in sides.tables:
        chosen = random.permutation(table.num_rows)[:ROWS]
        parts.append(_matrix(table.take(chosen), names, sides.task))
    X = np.concatenate(parts)
    y = np.repeat([False, True], [len(part) for part in parts])
    order = random.permutation(y.size)
    half = y.size // 2
    said = _boosted().fit(X[order[:half]], y[order[:half]]).predict_proba(X[order[half:]])[:, 1]
    return float(roc_auc_score(y[order[half:]], said))


def _boosted() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, random_state=0)


def _matrix(table: pa.Table, names: Sequence[str], task: Task) -> Floats:
    return np.stack([coded(table, name, task).astype(np.float64) for name in names], axis=1)


def yes(table: pa.Table, target: Yes) -> NDArray[np.bool_]:
    column = table[target.column].to_pylist()
    if isinstance(target.value, str):
        return np.array([str(value) == target.value for value in column])
    return np.array([value > target.value for value in column])


OWN_SCORES: Mapping[str, Callable[[Sides], float | None]] = {
    "tv1": one_way,
    "tv2": two_way,
    "tv3": three_way,
    "names": names_by_names,
    "cramer": cramers_v,
    "spearman": spearman,
    "deviation": deviation,
    "q99": high_quantile,
    "means": means_by_names,
    "regression": regression,
    "learned": learned,
    "apart": told_apart,
}


def scores_of(task: Task, released: pa.Table) -> dict[str, float]:
    """Every score that the task has, but for those of the judge's own environment."""
    sides = Sides(task, released)
    found = {name: score(sides) for name, score in OWN_SCORES.items()}
    return {name: value for name, value in found.items() if value is not None}
