"""Survey estimates before and after: the tables that are compared come in, their estimates side by side leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.evaluation.pair import Pair
from shoal.evaluation.population import compared, estimates

_AFTER = {
    "released": "After: with the weight in the release.",
    "equal": "After: every released row counts alike, because the release has no weight.",
}


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
    design = strata or getattr(method, "strata", None) or None
    if design is not None and not isinstance(design, str):
        design = design[0] if len(design) == 1 else None
    try:
        return _side_by_side(pair, columns, named, design)
    except InputError as error:
        if weight is not None:
            raise
        return {"weight": named, "strata": design, "about": f"Not estimated: {error}", "rows": []}


def _declared_weight(released: Any) -> str | None:
    schema = getattr(released, "schema", None) if hasattr(released, "aligned") else None
    found = None if schema is None else schema.weight
    return None if found is None else str(found.name)


def _side_by_side(pair: Pair, columns: Sequence[str], weight: str, strata: str | None) -> dict[str, Any]:
    chosen = [name for name in columns if name not in (weight, strata)]
    before = estimates(pair.before, weight, strata=strata, columns=chosen)
    after_table = pair.published
    has_weight = weight in after_table.names
    weights: Any = weight
    if not has_weight:
        # the rows of a release without weights stand for the same people, all alike
        weights = np.full(after_table.n, before.population / after_table.n)
    kept = strata if strata is not None and strata in after_table.names else None
    after = estimates(after_table, weights, strata=kept, columns=chosen)
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
    about = f"Weight {weight}" + (f", strata {strata}" if strata else ", a simple design")
    return {
        "weight": weight,
        "strata": strata,
        "population_before": before.population,
        "population_after": after.population,
        "about": f"{about}. {_AFTER['released' if has_weight else 'equal']}",
        "rows": rows,
    }
