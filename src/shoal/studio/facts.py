"""Facts about the original records as plain values: what a look at a column, at a release or at a person shows.

All of it is private. The page says so, and the journal of use notes what it shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.column import labels_of, numbers, texts
from shoal.columns.kinds import day_text
from shoal.errors import ShoalError, closest
from shoal.evaluation import Evaluation
from shoal.evaluation.checks import check
from shoal.evaluation.result import five
from shoal.evaluation.verdict import Verdict
from shoal.io import Table, read
from shoal.method.models import MODELS
from shoal.release.protect import Release
from shoal.report.compare import bin_edges, compare, correlate, number_words
from shoal.report.findings import of_release
from shoal.report.source import Ends
from shoal.report.words import explanation
from shoal.studio.scales import Scale
from shoal.taxonomy import Taxonomy
from shoal.text import Message, counted, roughly

_BINS = 36
_LISTED = 200
_GROUPS = 12
_COMPARED = 20


def gaps(table: Table, attribute: Attribute) -> int:
    """How many cells of a column are missing; an empty text is."""
    series = table.series(attribute.name)
    missing = int(series.null_count())
    if table.is_numeric(attribute.name):
        return int(np.isnan(table.numeric(attribute.name)).sum())
    if str(table.dtype(attribute.name)) == "String":
        missing += int((series == "").sum() or 0)
    return missing


def value_counts(table: Table, attribute: Attribute) -> list[tuple[str, int]]:
    """The values of a column of names, the most frequent first."""
    found, which = texts(table, attribute.name)
    counts = np.bincount(which[which >= 0], minlength=len(found))
    pairs: Counter[str] = Counter()
    for text, count in zip(found, counts.tolist(), strict=True):
        if text and count:
            pairs[text] += count
    return sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))


def reach(table: Table, attribute: Attribute) -> tuple[float, float] | None:
    """The lowest and the highest value of a column with a range; None where there is none."""
    try:
        values = numbers(table, attribute)
    except ShoalError:
        return None
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else None


def histogram(table: Table, attribute: Attribute, scale: Scale | None = None) -> dict[str, Any]:
    """The values of a column with a range: bars on a root scale, and how many lie outside the declared range."""
    try:
        values = numbers(table, attribute)
    except ShoalError as error:
        return {"problem": error, "different": 0}
    values = values[np.isfinite(values)]
    if not values.size:
        return {"problem": Message("column-without-value"), "different": 0}
    declared = attribute.lo is not None and attribute.hi is not None
    ends = (float(attribute.lo or 0), float(attribute.hi or 0)) if declared else None
    shown = np.concatenate([values, np.asarray(ends or ())])
    low, high = (float(shown.min()), float(shown.max())) if scale is None else (scale.low, scale.high)
    high = high if high > low else low + 1.0
    edges = bin_edges([Ends.of(values), Ends.of(np.array([low, high]))], _BINS)
    counts = np.histogram(values, bins=edges)[0]
    outside = np.zeros(len(counts), dtype=bool)
    if ends is not None:
        middles = (edges[1:] + edges[:-1]) / 2
        outside = (middles < ends[0]) | (middles > ends[1])

    def words(value: float) -> str:
        return day_text(round(value)) if attribute.kind_facts.days else number_words(float(value))

    return {
        "problem": None,
        "bars": _bars(np.sqrt(counts), outside, 100 * np.clip((edges - low) / (high - low), 0, 1)),
        "range": None
        if ends is None
        else [100 * (end - low) / (high - low) for end in (max(ends[0], low), min(ends[1], high))],
        "ends": [words(low), words(high)],
        "outside": 0 if ends is None else int(((values < ends[0]) | (values > ends[1])).sum()),
        "different": int(np.unique(values).size),
    }


def bars_of(counts: Sequence[tuple[str, int]]) -> list[dict[str, float]]:
    """A small picture of a column of names."""
    heights = np.sqrt(np.array([count for _, count in counts[:_BINS]], dtype=np.float64))
    return _bars(heights, np.zeros(heights.size, dtype=bool))


def _bars(
    heights: NDArray[np.float64], outside: NDArray[np.bool_], edges: NDArray[np.float64] | None = None
) -> list[dict[str, float]]:
    """Bars side by side, or between edges that are given in percent of the drawing."""
    peak = max(float(heights.max(initial=0.0)), 1e-9)
    edges = np.linspace(0, 100, heights.size + 1) if edges is None else edges
    return [
        {
            "x": round(float(left), 3),
            "width": round(float(right - left) * 0.86, 3),
            "height": round(100 * float(height) / peak, 2),
            "outside": bool(out),
        }
        for left, right, height, out in zip(edges[:-1], edges[1:], heights, outside, strict=True)
        if height > 0
    ]


def listed(table: Table, attribute: Attribute) -> dict[str, Any]:
    """A column of names as the page shows it: values with counts, its tree, and what the tree does not have."""
    counts = value_counts(table, attribute)
    known = attribute.tree
    names = set(attribute.ordered) if attribute.kind_facts.listed else set()
    if known is not None:
        names = set(known.values) - {MISSING_VALUE}
    strange = [
        {"value": value, "count": count, "near": closest(value, names) or ""}
        for value, count in counts
        if names and value not in names
    ]
    return {
        "values": [{"value": value, "count": count} for value, count in counts[:_LISTED]],
        "different": len(counts),
        "strange": strange[:_COMPARED],
        "tree": [] if attribute.taxonomy is None else tree_lines(attribute.taxonomy, dict(counts)),
        "bars": bars_of(counts),
    }


def tree_lines(tree: Taxonomy, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """A tree line by line, each with its depth and how many records lie below it."""
    parent = {child: above for child, above in tree.to_pairs() if child != above}
    below: dict[str, list[str]] = {}
    for child, above in parent.items():
        below.setdefault(above, []).append(child)
    lines: list[dict[str, Any]] = []

    def walk(label: str, depth: int) -> int:
        place = len(lines)
        lines.append({"label": label, "depth": depth, "count": 0})
        lines[place]["count"] = counts.get(label, 0) + sum(
            walk(child, depth + 1) for child in below.get(label, ())
        )
        return int(lines[place]["count"])

    walk(tree.labels[0], 0)
    return lines[:_LISTED]


def judged(
    original: Table, release: Release, evaluation: Evaluation, found: Verdict, quasi: Sequence[str]
) -> dict[str, Any]:
    """Everything that Judge shows of one run, as plain values."""
    statement = release.statement.to_dict()
    subject = of_release(release)
    measured = evaluation.to_dict()
    together = correlate(subject, original)
    words = explanation(statement)
    return {
        "statement": statement,
        "explained": {
            "sentence": words.sentence,
            "plain": words.plain,
            "bound": words.bound,
            "bound_note": words.bound_note,
        },
        "level": found.level,
        "decision": found.decision,
        "public_level": found.public.level,
        "public_decision": found.public.decision,
        "limits": list(found.public.limits) or [reason.text for reason in found.public.reasons],
        "next_step": found.next_step,
        "about_measures": found.about_measures,
        "measured": [str(finding) for finding in found.measured.findings],
        "lights": _lights(found),
        "numbers": _four(measured, release, quasi),
        "five": [
            {"title": line.title, "words": line.words, "judgement": line.judgement} for line in five(measured)
        ],
        "rows": measured["rows"],
        "matched": measured["rows_matched"],
        "columns": [one.to_dict() for one in compare(subject, original)],
        "correlations": None
        if together is None or together.before is None
        else {
            "names": list(together.names),
            "before": _rounded(together.before),
            "after": _rounded(together.after),
        },
        "groups": _groups(original, release),
        "loss": {name: measured["utility"].get(name) for name in ("wasserstein", "total_variation")},
        "risk": measured["risk"].get("record_linkage"),
        "chance": measured["risk"].get("record_linkage_chance"),
        "notes": list(release.notes),
    }


def _lights(found: Verdict) -> list[dict[str, str]]:
    """The private part of a verdict: a light for each line."""
    use = found.measured.usefulness
    levels = [reason.level for reason in found.measured.risk[:1]] + ([] if use is None else [use.level])
    return [
        {"level": level, "words": str(finding)}
        for level, finding in zip(levels, found.measured.findings, strict=True)
    ]


def _four(measured: Mapping[str, Any], release: Release, quasi: Sequence[str]) -> list[dict[str, str]]:
    utility, risk = measured["utility"], measured["risk"]
    shift, moved = utility.get("mean_shift_max"), utility.get("correlation_difference")
    linked = risk.get("record_linkage")
    of_table = MODELS[release.statement.model].of_the_table
    names = [name for name in quasi if name in release.columns]
    crowd, note = risk.get("actual_k"), "rows alike in all columns"
    if of_table and names and not release.linked:
        crowd = check(release.data, quasi=names).k
        note = f"rows alike in {counted(len(names), 'column')} that others may know"
    return [
        _number("Averages move by", None if shift is None else roughly(shift), "of their spread, at most"),
        _number(
            "Correlations move by", None if moved is None else f"{moved:.2g}", "on average, of at most 2"
        ),
        _number(
            "Rows traced back",
            None if linked is None else roughly(linked / 100),
            "no row is known to belong to a record"
            if linked is None
            else f"guessing: {roughly(risk['record_linkage_chance'] / 100)}",
        ),
        _number("Smallest crowd", None if crowd is None else f"{crowd:,}", note),
    ]


def _number(title: str, value: str | None, note: str) -> dict[str, str]:
    return {"title": title, "value": "none" if value is None else value, "note": note}


def _groups(original: Table, release: Release) -> list[dict[str, Any]]:
    """Averages of the amounts in the groups of a column of names, before and after."""
    schema = release.schema
    released = read(release.data)
    held = [a for a in schema.attributes if a.name in released.names and a.name in original.names]
    amounts = [a for a in held if a.kind_facts.measured and a.role == "confidential"] or [
        a for a in held if a.kind_facts.measured
    ]
    found = []
    for by in [a for a in held if not a.kind_facts.ranged]:
        if not amounts:
            break
        names = by.ordered or tuple(
            name for name in (by.tree.values if by.tree else ()) if name != MISSING_VALUE
        )
        if not 2 <= len(names) <= _GROUPS:
            continue
        lines: list[dict[str, Any]] = []
        sides = [(_labels(table, by), numbers(table, amounts[0])) for table in (original, released)]
        for name in names:
            means = [
                float(np.nanmean(v[k == name])) if np.isfinite(v[k == name]).any() else None for k, v in sides
            ]
            counts = [int((k == name).sum()) for k, _ in sides]
            lines.append({"name": name, "means": means, "counts": counts})
        top = max((mean for line in lines for mean in line["means"] if mean is not None), default=1.0) or 1.0
        for line in lines:
            line["shares"] = [
                0 if mean is None else round(100 * max(mean, 0) / top, 2) for mean in line["means"]
            ]
            line["words"] = [
                "none" if mean is None else number_words(float(f"{mean:.4g}")) for mean in line["means"]
            ]
        found.append({"by": by.name, "of": amounts[0].name, "lines": lines})
    return found[:4]


def _labels(table: Table, attribute: Attribute) -> NDArray[np.object_]:
    return np.array(labels_of(table, attribute), dtype=object)


def _rounded(matrix: NDArray[np.float64]) -> list[list[float | None]]:
    return [[round(float(cell), 3) if np.isfinite(cell) else None for cell in row] for row in matrix]
