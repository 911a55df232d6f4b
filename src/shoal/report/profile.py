"""Reports as one self-contained page: a release comes in, HTML leaves, with no outside resource."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.coding import labels_of, numbers
from shoal.dates import day_text
from shoal.io import Table, read
from shoal.schema import Attribute
from shoal.statement import domain_words

if TYPE_CHECKING:
    from shoal.release import Release

_BINS = 40


def public_report(release: Release) -> str:
    """A page about the released table and its statement: nothing in it depends on the original otherwise."""
    return _render("public.html.j2", release, {})


def internal_report(release: Release, evaluation: Any = None) -> str:
    """A page for the custodian: adds facts about the original data, so it must not be published."""
    measured = evaluation.to_dict() if evaluation is not None else None
    return _render("internal.html.j2", release, {"evaluation": measured})


def _render(template: str, release: Release, extra: dict[str, Any]) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("shoal"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    table = read(release.data)
    return environment.get_template(template).render(
        statement=release.statement.to_dict(),
        rows=table.n,
        columns=[_profile(table, release, name) for name in table.names if name in release.domains],
        domain_words=domain_words,
        notes=release.notes,
        internal=release.internal,
        **extra,
    )


def _profile(table: Table, release: Release, name: str) -> dict[str, Any]:
    attribute = release.schema[name]
    if attribute.kind == "nominal":
        return _nominal_profile(table, release, attribute)
    values = numbers(table, attribute)
    values = values[~np.isnan(values)]
    if not values.size:
        values = np.array([release.domains[name][0]])
    quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    return {
        "name": name,
        "common": "",
        "share": release.statement.stated_share(name),
        "mean": "" if attribute.kind == "ordinal" else _words(attribute, float(values.mean())),
        "sd": "" if attribute.kind == "ordinal" else _number(values.std()),
        "quantiles": [_words(attribute, float(q)) for q in quantiles],
        "bars": _bars(values, _public_range(values, release, name)),
    }


def _nominal_profile(table: Table, release: Release, attribute: Attribute) -> dict[str, Any]:
    """The most frequent values, and how often each value of the domain was released."""
    labels = [label for label in labels_of(table, attribute) if label is not None]
    counts = Counter(labels)
    tree = attribute.tree
    names = list(tree.labels) if tree is not None else sorted(counts)
    shown = [name for name in names if name in counts or (tree is not None and name in tree.values)]
    peak = max(counts.values(), default=1)
    width = 100 / max(len(shown), 1)
    common = ", ".join(f"{label} ({100 * count / table.n:.3g}%)" for label, count in counts.most_common(3))
    return {
        "name": attribute.name,
        "share": release.statement.stated_share(attribute.name),
        "mean": "",
        "sd": "",
        "quantiles": None,
        "common": common,
        "bars": [
            {
                "x": round(place * width, 3),
                "width": round(width * 0.9, 3),
                "height": round(100 * counts[name] / peak, 2),
            }
            for place, name in enumerate(shown)
        ],
    }


def _words(attribute: Attribute, value: float) -> str:
    if attribute.kind == "ordinal":
        return attribute.ordered[round(value)]
    return day_text(round(value)) if attribute.kind == "date" else _number(value)


def _public_range(values: NDArray[np.float64], release: Release, name: str) -> tuple[float, float]:
    """The declared domain; a domain taken from the data stays out of the picture too."""
    if release.schema[name].kind == "numeric" and release.schema[name].lo is None:
        return float(values.min()), float(values.max())
    return release.domains[name]


def _bars(values: NDArray[np.float64], domain: tuple[float, float]) -> list[dict[str, float]]:
    """Histogram bars over a range, in percent of the drawing area."""
    counts, _ = np.histogram(np.clip(values, *domain), bins=_BINS, range=domain)
    peak = max(int(counts.max()), 1)
    width = 100 / _BINS
    return [
        {"x": round(i * width, 3), "width": round(width * 0.9, 3), "height": round(100 * int(c) / peak, 2)}
        for i, c in enumerate(counts)
    ]


def _number(value: float) -> str:
    return f"{float(value):,.6g}" if abs(value) < 1e6 else f"{float(value):,.0f}"
