"""The released columns at a glance: a table comes in, statistics and small bar charts for a static page leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.coding import labels_of
from shoal.evaluation.anonymity import ActualK, actual_k
from shoal.report.compare import number_words, value_words
from shoal.report.subject import Subject, ordered_values

_BINS = 40
# values (rows times columns) up to which equal rows are counted
_COUNTED = 5_000_000


def profiles(subject: Subject) -> list[dict[str, Any]]:
    """One line for each released column that the schema describes."""
    return [
        _nominal(subject, name) if not subject.attribute(name).kind_facts.ordered else _ordered(subject, name)
        for name in subject.columns
    ]


def equal_rows(subject: Subject) -> ActualK | None:
    """How many rows of the released table are alike; None where counting would take long."""
    table = subject.table
    if table.path is not None or not subject.columns or table.n * len(subject.columns) > _COUNTED:
        return None
    return actual_k(table, subject.columns)


def _ordered(subject: Subject, name: str) -> dict[str, Any]:
    attribute = subject.attribute(name)
    values = ordered_values(subject.table, attribute)
    domain = subject.domain(name, values)
    if not values.size:
        values = np.array([domain[0]])
    ordinal = attribute.kind_facts.listed
    quantiles = np.quantile(values, [0.25, 0.5, 0.75])
    return {
        "name": name,
        "share": subject.share(name),
        "mean": "" if ordinal else value_words(attribute, float(values.mean())),
        "sd": "" if ordinal else number_words(float(values.std())),
        "quartiles": [value_words(attribute, float(quantile)) for quantile in quantiles],
        "common": "",
        "bars": _bars(np.histogram(np.clip(values, *domain), bins=_BINS, range=domain)[0]),
    }


def _nominal(subject: Subject, name: str) -> dict[str, Any]:
    """The most frequent values, and how often each value of the domain was released."""
    attribute = subject.attribute(name)
    counts = Counter(label for label in labels_of(subject.table, attribute) if label is not None)
    tree = attribute.tree
    names = list(tree.labels) if tree is not None else sorted(counts)
    shown = [label for label in names if label in counts or (tree is not None and label in tree.values)]
    rows = subject.table.n
    common = ", ".join(f"{label} ({100 * count / rows:.3g}%)" for label, count in counts.most_common(3))
    return {
        "name": name,
        "share": subject.share(name),
        "mean": "",
        "sd": "",
        "quartiles": None,
        "common": common,
        "bars": _bars([counts[label] for label in shown]),
    }


def _bars(counts: Sequence[int] | NDArray[np.int64]) -> list[dict[str, float]]:
    """Bars side by side, in percent of the drawing area."""
    peak = max(max((int(count) for count in counts), default=1), 1)
    width = 100 / max(len(counts), 1)
    return [
        {
            "x": round(place * width, 3),
            "width": round(width * 0.9, 3),
            "height": round(100 * int(count) / peak, 2),
        }
        for place, count in enumerate(counts)
    ]
