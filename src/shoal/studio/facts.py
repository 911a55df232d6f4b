"""Facts about original records: columns, releases, and the search for one person.

All of it is private. The page says so, and the journal of use records what it shows.

The intruder knows some columns of a person and takes the nearest published row. This is an illustration and not the
guarantee: it shows one intruder and the row that this intruder would pick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import MISSING_VALUE, Attribute, day_text, labels_of, numbers, rows_breaking, texts
from shoal.display import internal
from shoal.errors import ShoalError, closest
from shoal.evaluation import Evaluation, Verdict, check, five
from shoal.io import Table, read
from shoal.privacy import MODELS
from shoal.release import Release
from shoal.report import ColumnRange, bin_edges, compare, correlate, explanation, number_words, of_release
from shoal.studio.guarantee import SliderScale
from shoal.taxonomy import Taxonomy
from shoal.text import Message, counted, roughly

_BINS = 36
_LISTED = 200
_GROUPS = 12
_COMPARED = 20
# people per cluster that are drawn
_FELLOWS = 60
# pairs of a person and a published row, in the search for the most exposed person: about a second
_COMPARISONS = 40_000_000
_AT_ONCE = 4_000_000
_TIE = 1e-9
# the choice of people is not secret, and the same page should show the same result twice
_SEED = 17


def gaps(table: Table, attribute: Attribute) -> int:
    """Number of missing cells of a column; an empty text counts as missing."""
    series = table.series(attribute.name)
    missing = int(series.null_count())
    if table.is_numeric(attribute.name):
        return int(np.isnan(table.numeric(attribute.name)).sum())
    if str(table.dtype(attribute.name)) == "String":
        missing += int((series == "").sum() or 0)
    return missing


def value_counts(table: Table, attribute: Attribute) -> list[tuple[str, int]]:
    """The values of a nominal column, most frequent first."""
    found, which = texts(table, attribute.name)
    counts = np.bincount(which[which >= 0], minlength=len(found))
    pairs: Counter[str] = Counter()
    for text, count in zip(found, counts.tolist(), strict=True):
        if text and count:
            pairs[text] += count
    return sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))


def reach(table: Table, attribute: Attribute) -> tuple[float, float] | None:
    """The lowest and the highest value of a column with a range; None if there is none."""
    try:
        values = numbers(table, attribute)
    except ShoalError:
        return None
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else None


def histogram(table: Table, attribute: Attribute, scale: SliderScale | None = None) -> dict[str, Any]:
    """The values of a column with a range: bars on a square-root scale, and the number outside the declared range."""
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
    edges = bin_edges([ColumnRange.of(values), ColumnRange.of(np.array([low, high]))], _BINS)
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
    """A small bar chart of a nominal column."""
    heights = np.sqrt(np.array([count for _, count in counts[:_BINS]], dtype=np.float64))
    return _bars(heights, np.zeros(heights.size, dtype=bool))


def _bars(
    heights: NDArray[np.float64], outside: NDArray[np.bool_], edges: NDArray[np.float64] | None = None
) -> list[dict[str, float]]:
    """Bars side by side, or between edges given in percent of the drawing."""
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
    """A nominal column for the page: values with counts, its taxonomy, and values missing from the taxonomy."""
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
    """A taxonomy line by line, each with its depth and the number of records below it."""
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
    """Everything that the Judge page shows about one run, as plain values."""
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
        "rules": _rules(original, release),
        "agreement": _agreement(release),
        "loss": {name: measured["utility"].get(name) for name in ("wasserstein", "total_variation")},
        "risk": measured["risk"].get("record_linkage"),
        "chance": measured["risk"].get("record_linkage_chance"),
        "notes": list(release.notes),
    }


def _lights(found: Verdict) -> list[dict[str, str]]:
    """The private part of a verdict: a level for each line."""
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
    smallest, note = risk.get("actual_k"), "rows with equal values in all columns"
    if of_table and names and not release.linked:
        smallest = check(release.data, quasi_identifiers=names).k
        note = f"rows with equal values in {counted(len(names), 'quasi-identifier')}"
    return [
        _number("Averages move by", None if shift is None else roughly(shift), "of their spread, at most"),
        _number(
            "Correlations move by", None if moved is None else f"{moved:.2g}", "on average, of at most 2"
        ),
        _number(
            "Rows re-identified",
            None if linked is None else roughly(linked / 100),
            "no row is known to come from a particular record"
            if linked is None
            else f"by guessing: {roughly(risk['record_linkage_chance'] / 100)}",
        ),
        _number("Smallest equivalence class", None if smallest is None else f"{smallest:,}", note),
    ]


def _number(title: str, value: str | None, note: str) -> dict[str, str]:
    return {"title": title, "value": "none" if value is None else value, "note": note}


def _groups(original: Table, release: Release) -> list[dict[str, Any]]:
    """Averages of the numeric columns in the groups of a nominal column, before and after."""
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


def _rules(original: Table, release: Release) -> list[dict[str, Any]]:
    """How many rows break each rule, before and after; None where that cannot be tested."""
    schema = release.schema
    released = read(release.data)
    before, after = (rows_breaking(table, schema) for table in (original, released))
    return [
        {
            "rule": rule,
            "records": None if before[rule] is None else f"{before[rule]:,} of {original.n:,}",
            "released": None if count is None else f"{count:,} of {released.n:,}",
        }
        for rule, count in after.items()
    ]


def _agreement(release: Release) -> str:
    """How far rows are from the noisy numbers that they were drawn from; empty where that was not checked."""
    found = release.internal.get("rows_and_measurements")
    return "" if found is None else str(Message.of("rows-and-measurements", **found))


def _labels(table: Table, attribute: Attribute) -> NDArray[np.object_]:
    return np.array(labels_of(table, attribute), dtype=object)


def _rounded(matrix: NDArray[np.float64]) -> list[list[float | None]]:
    return [[round(float(cell), 3) if np.isfinite(cell) else None for cell in row] for row in matrix]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class IntruderComparison:
    """What the intruder compares, column by column: each person's original record, each published row.

    Attributes:
        kept: the person that each published row belongs to.
        amounts: before and after, in units of the domain's width.
        names: codes before and after; equal codes are the same value.
    """

    original: Table
    aligned: Table
    release: Release
    columns: tuple[Attribute, ...]
    kept: NDArray[np.int64]
    amounts: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
    names: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]

    def far(self, people: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Squared distances of people (rows) from published rows (columns); the largest for a missing number."""
        total = np.zeros((people.size, rows.size))
        for before, after in self.amounts.values():
            gap = before[people, np.newaxis] - after[rows]
            total += np.nan_to_num(gap * gap, nan=1.0)
        for was, now in self.names.values():
            total += was[people, np.newaxis] != now[rows]
        return total


def pairs(original: Table, release: Release, quasi: Sequence[str]) -> IntruderComparison | None:
    """The comparison; None where no published row belongs to a person.

    Args:
        quasi: the columns that the intruder knows; all released columns if empty.
    """
    if release.aligned is None:
        return None
    aligned = read(release.aligned)
    columns = tuple(release.schema[name] for name in release.columns if not quasi or name in quasi)
    amounts, names = {}, {}
    for attribute in columns:
        if attribute.kind_facts.ordered:
            lo, hi = release.domains[attribute.name]
            width = (hi - lo) or 1.0
            after = np.asarray(aligned.series(attribute.name).to_numpy(), dtype=np.float64)
            amounts[attribute.name] = (numbers(original, attribute) / width, np.clip(after, lo, hi) / width)
        else:
            both = [_texts(labels_of(original, attribute)), _texts(aligned.series(attribute.name).to_list())]
            codes = np.unique(np.concatenate(both), return_inverse=True)[1].astype(np.int64)
            names[attribute.name] = codes[: original.n], codes[original.n :]
    kept = np.arange(original.n) if release.kept is None else np.asarray(release.kept)
    return IntruderComparison(original, aligned, release, columns, kept, amounts, names)


def _texts(values: Sequence[Any]) -> NDArray[Any]:
    return np.array(["" if value is None else str(value) for value in values], dtype=str)


def exposed(found: IntruderComparison) -> dict[str, int]:
    """The most exposed person: whose own row is the nearest, with the fewest others as near, and the largest lead.

    For a large table a random sample of people is compared, and the result gives its size.
    """
    group, first = _distinct(found)
    sizes = np.bincount(group, minlength=first.size)
    rng = np.random.default_rng(_SEED)
    most = max(_COMPARISONS // max(first.size, 1), 100)
    places = np.arange(found.kept.size)
    if places.size > most:
        places = np.sort(rng.choice(places, most, replace=False))
    best: tuple[int, float, int] | None = None
    at_once = max(_AT_ONCE // max(first.size, 1), 1)
    for start in range(0, places.size, at_once):
        part = places[start : start + at_once]
        far = found.far(found.kept[part], first)
        own = far[np.arange(part.size), group[part]]
        nearer = ((far < own[:, np.newaxis] - _TIE) * sizes).sum(axis=1)
        near = (far <= own[:, np.newaxis] + _TIE) * sizes
        others = np.where(far > own[:, np.newaxis] + _TIE, far, np.inf).min(axis=1)
        rank = nearer + near.sum(axis=1)
        lead = np.where(np.isfinite(others), others, 0.0) - own
        place = int(np.lexsort((-lead, rank))[0])
        candidate = (int(rank[place]), -float(lead[place]), int(found.kept[part[place]]))
        best = candidate if best is None else min(best, candidate)
    return {
        "row": 1 if best is None else best[2] + 1,
        "compared": int(places.size),
        "of": int(found.kept.size),
    }


def _distinct(found: IntruderComparison) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Group identical published rows: the group of each row, and one row of each group."""
    sides = [*(after for _, after in found.amounts.values()), *(after for _, after in found.names.values())]
    if not sides:
        nothing = np.zeros(found.kept.size, dtype=np.int64)
        return nothing, nothing[:1]
    together = np.column_stack([np.nan_to_num(side, nan=-1.0) for side in sides])
    _, first, group = np.unique(together, axis=0, return_index=True, return_inverse=True)
    return group.reshape(-1).astype(np.int64), first.astype(np.int64)


def person(found: IntruderComparison | None, row: int, release: Release) -> dict[str, Any]:
    """The cluster of a person, the published row, and the intruder's pick.

    Args:
        row: counted from 1.
    """
    if found is None:
        return {
            "row": row,
            "why": f"Method '{release.method.name}' draws synthetic records: no published row belongs to this person.",
        }
    number = min(max(row, 1), found.original.n) - 1
    places = np.flatnonzero(found.kept == number)
    if not places.size:
        return {"row": number + 1, "why": "This row is not part of the release, because it was dropped."}
    place = int(places[0])
    companions: dict[str, tuple[int, ...]] = {}
    if release.partition:
        for cluster in release.cluster_of(number):
            companions |= dict.fromkeys(cluster.columns, cluster.rows)
    lines = [
        _amount(found, attribute, number, place, companions.get(attribute.name, ()))
        if attribute.name in found.amounts
        else _name(found, attribute, number, place, companions.get(attribute.name, ()))
        for attribute in found.columns
    ]
    far = found.far(np.array([number]), np.arange(found.kept.size))[0]
    nearer = int((far < far[place] - _TIE).sum())
    alike = int((np.abs(far - far[place]) <= _TIE).sum())
    return {
        "row": number + 1,
        "knows": [attribute.name for attribute in found.columns],
        "lines": lines,
        "companions": max((len(rows) for rows in companions.values()), default=0),
        "found": nearer == 0 and alike == 1,
        "sentence": _picked(nearer, alike),
    }


def _picked(nearer: int, alike: int) -> str:
    """The intruder's pick.

    >>> _picked(1, 1)
    'No. 1 published row is nearer to this person than their own: the intruder picks a wrong one.'
    """
    if nearer:
        return (
            f"No. {nearer:,} published row{'s are' if nearer > 1 else ' is'} nearer to this person than their own: the "
            "intruder picks a wrong one."
        )
    if alike > 1:
        return f"Not with certainty. {alike:,} published rows are equally near: the intruder has to guess among them."
    return "Yes, in this attempt: the nearest published row is this person's own."


def _amount(
    found: IntruderComparison, attribute: Attribute, number: int, place: int, companions: Sequence[int]
) -> dict[str, Any]:
    lo, hi = found.release.domains[attribute.name]
    width = (hi - lo) or 1.0
    before, after = (width * side for side in found.amounts[attribute.name])

    def at(value: float) -> float | None:
        return round(100 * min(max((value - lo) / width, 0.0), 1.0), 2) if np.isfinite(value) else None

    def words(value: float) -> str:
        if np.isnan(value):
            return "missing"
        if attribute.kind_facts.listed:
            return attribute.ordered[round(value)]
        if attribute.kind_facts.days:
            return day_text(round(value))
        whole = attribute.type == "integer" or found.original.is_integer(attribute.name)
        return number_words(float(round(value)) if whole else float(f"{value:.4g}"))

    own, published = float(before[number]), float(after[place])
    fellows = np.asarray([other for other in companions if other != number][:_FELLOWS], dtype=np.int64)
    return {
        "name": attribute.name,
        "own": at(own),
        "published": at(published),
        "others": [x for value in before[fellows] if (x := at(float(value))) is not None],
        "shared": None,
        "words": f"was {words(own)}, is {words(published)}",
    }


def _name(
    found: IntruderComparison, attribute: Attribute, number: int, place: int, companions: Sequence[int]
) -> dict[str, Any]:
    before = found.names[attribute.name][0]
    own = labels_of(found.original, attribute)[number]
    published = found.aligned.series(attribute.name)[place]
    same = int((before[np.asarray(companions, dtype=np.int64)] == before[number]).sum()) if companions else 0
    note = f"; {same:,} of {len(companions):,} in the group share it" if companions else ""
    return {
        "name": attribute.name,
        "own": None,
        "published": None,
        "others": [],
        "shared": round(100 * same / len(companions), 1) if companions else None,
        "words": f"was {own or 'missing'}, is {'missing' if published is None else published}{note}",
    }
