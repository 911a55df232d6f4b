"""Could someone find this row? A release and its original come in; one try on one person leaves, as plain values.

The intruder knows some columns of a person and takes the published row that is nearest. That is a picture and not the
promise: it shows one intruder, and only what that one would pick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.column import labels_of, numbers
from shoal.columns.kinds import day_text
from shoal.display import internal
from shoal.io import Table, read
from shoal.release.protect import Release
from shoal.report.compare import number_words

# of the people averaged with somebody, so many are drawn
_FELLOWS = 60
# pairs of a person and a published row, for who is the most exposed: about a second
_COMPARISONS = 40_000_000
_AT_ONCE = 4_000_000
_TIE = 1e-9
# which people are compared is no secret, and the same page should say the same twice
_SEED = 17


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What the intruder compares, column by column: each person as it was, each published row as it is.

    Attributes:
        kept: the person that each published row belongs to.
        amounts: before and after, in widths of the domain.
        names: codes before and after; equal ones are the same name.
    """

    original: Table
    aligned: Table
    release: Release
    columns: tuple[Attribute, ...]
    kept: NDArray[np.int64]
    amounts: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
    names: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]

    def far(self, people: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Squared distances of people, down, from published rows, across. A missing number is as far as can be."""
        total = np.zeros((people.size, rows.size))
        for before, after in self.amounts.values():
            gap = before[people, np.newaxis] - after[rows]
            total += np.nan_to_num(gap * gap, nan=1.0)
        for was, now in self.names.values():
            total += was[people, np.newaxis] != now[rows]
        return total


def pairs(original: Table, release: Release, quasi: Sequence[str]) -> Pairs | None:
    """What there is to compare; None where no published row belongs to a person.

    Args:
        quasi: what the intruder knows; all released columns where that is nothing.
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
    return Pairs(original, aligned, release, columns, kept, amounts, names)


def _texts(values: Sequence[Any]) -> NDArray[Any]:
    return np.array(["" if value is None else str(value) for value in values], dtype=str)


def exposed(found: Pairs) -> dict[str, int]:
    """The most exposed person: whose own row is the nearest, with the fewest others as near, and the largest lead.

    Of many people a random part is compared, and the answer says of how many.
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


def _distinct(found: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Published rows that are alike count once: the group of each row, and one row of each group."""
    sides = [*(after for _, after in found.amounts.values()), *(after for _, after in found.names.values())]
    if not sides:
        nothing = np.zeros(found.kept.size, dtype=np.int64)
        return nothing, nothing[:1]
    together = np.column_stack([np.nan_to_num(side, nan=-1.0) for side in sides])
    _, first, group = np.unique(together, axis=0, return_index=True, return_inverse=True)
    return group.reshape(-1).astype(np.int64), first.astype(np.int64)


def person(found: Pairs | None, row: int, release: Release) -> dict[str, Any]:
    """Who was grouped with a person, what was published, and what the intruder would pick.

    Args:
        row: counted from 1.
    """
    if found is None:
        return {
            "row": row,
            "why": f"Method '{release.method.name}' draws its rows anew: no published row belongs to this person.",
        }
    number = min(max(row, 1), found.original.n) - 1
    places = np.flatnonzero(found.kept == number)
    if not places.size:
        return {"row": number + 1, "why": "This row took no part in the release: it was dropped."}
    place = int(places[0])
    crowd: dict[str, tuple[int, ...]] = {}
    if release.partition:
        for cluster in release.cluster_of(number):
            crowd |= dict.fromkeys(cluster.columns, cluster.rows)
    lines = [
        _amount(found, attribute, number, place, crowd.get(attribute.name, ()))
        if attribute.name in found.amounts
        else _name(found, attribute, number, place, crowd.get(attribute.name, ()))
        for attribute in found.columns
    ]
    far = found.far(np.array([number]), np.arange(found.kept.size))[0]
    nearer = int((far < far[place] - _TIE).sum())
    alike = int((np.abs(far - far[place]) <= _TIE).sum())
    return {
        "row": number + 1,
        "knows": [attribute.name for attribute in found.columns],
        "lines": lines,
        "crowd": max((len(rows) for rows in crowd.values()), default=0),
        "found": nearer == 0 and alike == 1,
        "sentence": _picked(nearer, alike),
    }


def _picked(nearer: int, alike: int) -> str:
    """What the intruder picks.

    >>> _picked(1, 1)
    'No. 1 published row is nearer to this person than their own: the intruder picks a wrong one.'
    """
    if nearer:
        return (
            f"No. {nearer:,} published row{'s are' if nearer > 1 else ' is'} nearer to this person than their own: the "
            "intruder picks a wrong one."
        )
    if alike > 1:
        return f"Not surely. {alike:,} published rows are equally near: the intruder has to guess among them."
    return "Yes, this time: the published row of this person is the nearest one."


def _amount(
    found: Pairs, attribute: Attribute, number: int, place: int, crowd: Sequence[int]
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
    fellows = np.asarray([other for other in crowd if other != number][:_FELLOWS], dtype=np.int64)
    return {
        "name": attribute.name,
        "own": at(own),
        "published": at(published),
        "others": [x for value in before[fellows] if (x := at(float(value))) is not None],
        "shared": None,
        "words": f"was {words(own)}, is {words(published)}",
    }


def _name(
    found: Pairs, attribute: Attribute, number: int, place: int, crowd: Sequence[int]
) -> dict[str, Any]:
    before = found.names[attribute.name][0]
    own = labels_of(found.original, attribute)[number]
    published = found.aligned.series(attribute.name)[place]
    same = int((before[np.asarray(crowd, dtype=np.int64)] == before[number]).sum()) if crowd else 0
    note = f"; {same:,} of {len(crowd):,} in the crowd share it" if crowd else ""
    return {
        "name": attribute.name,
        "own": None,
        "published": None,
        "others": [],
        "shared": round(100 * same / len(crowd), 1) if crowd else None,
        "words": f"was {own or 'missing'}, is {'missing' if published is None else published}{note}",
    }
