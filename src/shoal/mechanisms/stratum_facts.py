"""The report by stratum: records and what was made of them come in, one line of private facts per stratum leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.mechanisms.base import Rebuilt
from shoal.mechanisms.method import Method
from shoal.mechanisms.strata import strata_of


def by_stratum(method: Method, described: Described, rebuilt: Rebuilt) -> dict[str, Any]:
    """Rows, groups, smallest group and loss of every stratum, as private facts; nothing where no column divides."""
    if not method.strata:
        return {}
    known = {facts["stratum"]: facts for facts in rebuilt.internal.get("strata", ())}
    names = [name for name in rebuilt.values if name not in method.strata]
    losses = _losses(described, rebuilt, names) if rebuilt.aligned else None
    found = []
    for stratum in strata_of(method, described):
        sizes = [_sizes(made.labels[stratum.rows]) for made in rebuilt.partitions]
        found.append(
            {
                "stratum": stratum.name,
                "rows": int(stratum.rows.size),
                **(
                    {
                        "groups": sum(own.size for own in sizes),
                        "smallest": min(int(own.min()) for own in sizes),
                    }
                    if sizes
                    else {}
                ),
                **({} if losses is None else {"loss": float(losses[stratum.rows].mean())}),
                **known.get(stratum.name, {}),
            }
        )
    return {"strata": found}


def _sizes(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(labels, return_counts=True)[1]


def _losses(described: Described, rebuilt: Rebuilt, names: list[str]) -> NDArray[np.float64]:
    """What each record lost, over some columns: squared change by the column's variance, 1 for another or no value."""
    found = np.zeros(described.n)
    for name in names:
        values = rebuilt.values[name]
        gaps = rebuilt.gaps.get(name, np.zeros(described.n, dtype=np.bool_))
        before = described.gaps.get(name, np.zeros(described.n, dtype=np.bool_))
        if described.attribute(name).kind_facts.ordered:
            original = described.original(name)
            there = original[~before]
            variance = float(there.var()) if there.size else 0.0
            lost = (values - original) ** 2 / (variance or 1.0)
        else:
            lost = (values != described.codes(name)).astype(np.float64)
        lost = np.where(gaps, 1.0, np.nan_to_num(lost))
        found += np.where(before, 0.0, lost)
    return found / max(1, len(names))
