"""Survey estimates before and after: the tables that are compared come in, their estimates side by side leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.evaluation.pair import Pair
from shoal.evaluation.population import compared, estimates
from shoal.io import Table
from shoal.text import Message


def survey_estimates(
    pair: Pair, released: Any, columns: Sequence[str], weight: str | None, strata: str | None
) -> dict[str, Any] | None:
    """What both tables say about the population; None without a weight.

    A weight that only the schema names and that cannot be used leaves one line about it instead of an error: the
    measures are taken when the release is made already.
    """
    named = weight or _declared_weight(released)
    if named is None:
        return None
    if weight is None and named not in pair.before.names:
        return None
    method = getattr(released, "method", None)
    found = strata or getattr(method, "strata", None) or ()
    design = (found,) if isinstance(found, str) else tuple(found)
    try:
        return _side_by_side(pair, columns, named, design)
    except InputError as error:
        if weight is not None:
            raise
        about = str(Message.of("not-estimated", reason=error))
        return {"weight": named, "strata": list(design), "about": about, "rows": []}


def _measured(pair: Pair, columns: Sequence[str]) -> list[str]:
    """The columns of numbers."""
    return [
        name
        for name in columns
        if pair.before.dtype(name).is_numeric() and pair.published.dtype(name).is_numeric()
    ]


def _shift(pair: Pair, name: str, weight: str, weights: Any) -> float:
    """How far the weighted average of a column moves, in standard deviations of the weighted original."""
    before, by = pair.before.numeric(name), pair.before.numeric(weight)
    after = pair.published.numeric(name)
    then = pair.published.numeric(weights) if isinstance(weights, str) else np.asarray(weights, dtype=float)
    here, there = np.isfinite(before), np.isfinite(after)
    if not here.any() or not there.any():
        return 0.0
    mean = np.average(before[here], weights=by[here])
    spread = float(np.sqrt(np.average((before[here] - mean) ** 2, weights=by[here])))
    apart = abs(float(np.average(after[there], weights=then[there]) - mean))
    return apart / spread if spread > 0 else (0.0 if apart == 0 else float("inf"))


def _declared_weight(released: Any) -> str | None:
    schema = getattr(released, "schema", None) if hasattr(released, "aligned") else None
    found = None if schema is None else schema.weight
    return None if found is None else str(found.name)


def _strata_of(table: Table, names: Sequence[str]) -> str | list[str] | None:
    """The stratum of each record: that of one column, or of several together; None where a table lacks one."""
    if not names or any(name not in table.names for name in names):
        return None
    if len(names) == 1:
        return names[0]
    rows = zip(*(table.series(name).to_list() for name in names), strict=True)
    return [repr(values) for values in rows]


def _side_by_side(pair: Pair, columns: Sequence[str], weight: str, strata: tuple[str, ...]) -> dict[str, Any]:
    chosen = [name for name in columns if name not in (weight, *strata)]
    for name in strata:
        pair.before.known(name)
    before = estimates(pair.before, weight, strata=_strata_of(pair.before, strata), columns=chosen)
    after_table = pair.published
    has_weight = weight in after_table.names
    weights: Any = weight
    if not has_weight:
        # the rows of a release without weights stand for the same people, all alike
        weights = np.full(after_table.n, before.population / after_table.n)
    after = estimates(after_table, weights, strata=_strata_of(after_table, strata), columns=chosen)
    rows = [
        {
            "column": line.column,
            "what": line.what,
            "before": line.before.value,
            "error_before": line.before.error,
            "after": None if line.after is None else line.after.value,
            "error_after": None if line.after is None else line.after.error,
            "moved": line.moved,
        }
        for line in compared(before, after)
    ]
    after_words = Message.of("estimates-with-weight" if has_weight else "estimates-all-alike")
    code = "estimates-design" if strata else "estimates-simple-design"
    return {
        "weight": weight,
        "strata": list(strata),
        "mean_shifts": {name: _shift(pair, name, weight, weights) for name in _measured(pair, chosen)},
        "population_before": before.population,
        "population_after": after.population,
        "about": str(Message.of(code, weight=weight, strata=strata, after=after_words)),
        "rows": rows,
    }
