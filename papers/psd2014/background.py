"""Verdicts on the claims that PSD-2014 makes around its lemma, on Adult and small worlds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from papers.cluster_errors import Setting, complete_rows, settled
from papers.desk import Desk
from papers.psd2014.curves import EPSILONS, ranked, setting
from papers.psd2014.printed import ADULT_2
from papers.study import Claim
from papers.textbook import attribute_loss, parallel_loss, sequential_loss
from papers.texts import judging
from shoal.noise import Seeded
from shoal.partition import Partition, insensitive, ranking
from shoal.release.protection import carry_out

judge = judging("psd2014/texts")

Floats = NDArray[np.float64]
_SIZES = (2, 10, 50, 100)


def claims(desk: Desk) -> Iterator[Claim]:
    """Abstract, sections 1, 3 and 4, conclusion."""
    values = columns(desk.file("adult.csv"))
    yield _added_records(desk.file("adult.csv"))
    yield _one_record_each(values, 20 if desk.quick else 100)
    yield _consecutive()
    yield from _compositions()
    yield _correlation(values)
    yield _any_use(uses(desk))
    yield _order_only(values)


def columns(file: Path) -> Floats:
    table = complete_rows(file)
    return np.stack([table[name].to_numpy().astype(np.float64) for name in ADULT_2], axis=1)


def _added_records(file: Path) -> Claim:
    released = {rows: _rows_released(replace(ranked(file, "1", 10), rows=rows)) for rows in (300, 299)}
    return judge(
        "what-released-hardly-depends",
        "holds" if len(set(released.values())) == 1 else "holds partly",
        ", ".join(map(str, released)),
        ", ".join(map(str, released.values())),
    )


def _rows_released(one: Setting) -> int:
    prepared, frozen = settled(one)
    return int(carry_out(prepared, frozen=frozen).data.num_rows)


def largest_difference(values: Floats, tried: int) -> tuple[int, int]:
    """Insensitive clusters of some records before and after one is replaced: in how many records a cluster differs at
    most, and how many clusters differ at most.
    """
    rng = np.random.default_rng(0)
    some = values[:: len(values) // 1000]
    domain = [(0.0, 1.5 * float(column.max())) for column in values.T]
    before = insensitive(some, 50, bounds=domain)
    most = changed = 0
    for _ in range(tried):
        other = some.copy()
        other[rng.integers(len(some))] = [rng.integers(0, int(high) + 1) for _, high in domain]
        after = insensitive(other, 50, bounds=domain)
        apart = [
            _differ(some[before.labels == cluster], other[after.labels == cluster])
            for cluster in range(len(before))
        ]
        most, changed = max(most, *apart), max(changed, sum(part > 0 for part in apart))
    return most, changed


def _differ(one: Floats, other: Floats) -> int:
    """Records of one collection that the other does not have, repetitions counted."""
    kinds, places = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)
    first, second = places.ravel()[: len(one)], places.ravel()[len(one) :]
    left = np.bincount(first, minlength=len(kinds)) - np.bincount(second, minlength=len(kinds))
    return int(left[left > 0].sum())


def _one_record_each(values: Floats, tried: int) -> Claim:
    most, changed = largest_difference(values, tried)
    return judge("when-record-replaced-each", most <= 1, tried, most, changed)


def best_partitions(x: Sequence[int], k: int) -> list[tuple[int, ...]]:
    """All partitions of sorted values into clusters of at least k with the least SSE, as labels."""
    found: list[tuple[int, ...]] = []
    least = np.inf
    for labels in _partitions(len(x), k):
        made = Partition.from_labels(np.array(labels))
        error = float(((np.array(x) - made.centroids(np.array(x, dtype=np.float64))[made.labels]) ** 2).sum())
        if error < least - 1e-9:
            found, least = [labels], error
        elif error <= least + 1e-9:
            found.append(labels)
    return found


def _partitions(n: int, k: int) -> Iterator[tuple[int, ...]]:
    """Every way to put n records into clusters of at least k."""

    def grow(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(labels) == n:
            if min(labels.count(one) for one in set(labels)) >= k:
                yield labels
            return
        for label in range(max(labels, default=-1) + 2):
            yield from grow((*labels, label))

    yield from grow(())


def _consecutive() -> Claim:
    worlds = [(x, 2) for x in combinations_with_replacement(range(4), 6)]
    # labels that never fall follow the order of the values
    kept = [any(list(labels) == sorted(labels) for labels in best_partitions(x, k)) for x, k in worlds]
    return judge("dimension-best-partition-consists", kept)


def _compositions() -> Iterator[Claim]:
    both = {(a, b): sequential_loss(a, b) for a, b in ((0.5, 0.5), (0.1, 1.0))}
    yield judge(
        "sequential-composition-budgets-add",
        (lost <= a + b + 1e-9 for (a, b), lost in both.items()),
        ", ".join(f"{lost:.3f} for ε = {a:g} and {b:g}" for (a, b), lost in both.items()),
    )
    rows, values = parallel_loss(0.5, "rows"), parallel_loss(0.5, "values")
    yield judge(
        "parallel-composition-disjoint-data", (lost <= 0.5 + 1e-9 for lost in (rows, values)), rows, values
    )


def _correlation(values: Floats) -> Claim:
    before = _correlated(values)
    after = {}
    for k in _SIZES:
        parts = [(column, ranking(column, k, "last")) for column in values.T]
        after[k] = _correlated(np.stack([part.centroids(x)[part.labels] for x, part in parts], axis=1))
    independent = attribute_loss(0.5, 0.5)
    kept = all(abs(found - before) < 0.1 * abs(before) for found in after.values())
    return judge(
        "budgets-add-up-because",
        [kept, independent <= 0.5 + 1e-9],
        before,
        ", ".join(f"{found:.3f} at k = {k}" for k, found in after.items()),
        independent,
    )


def _correlated(values: Floats) -> float:
    return float(np.asarray(np.corrcoef(values.T))[0, 1])


def use_errors(one: Setting, runs: int) -> dict[str, float]:
    """Mean errors of four statistics of releases: of means and standard deviations in units of the original's standard
    deviation, of the correlation, and of the distribution (largest gap at any value).
    """
    prepared, frozen = settled(one)
    names = list(one.columns)
    original = np.stack([prepared.described.original(name) for name in names], axis=1)
    found = []
    for seed in range(runs):
        release = carry_out(replace(prepared, source=Seeded(seed)), frozen=frozen)
        made = np.stack([np.asarray(release.aligned[name]) for name in names], axis=1)
        found.append(_statistics_apart(original, made))
    return dict(
        zip(
            ("mean", "standard deviation", "correlation", "distribution"),
            np.mean(found, axis=0).tolist(),
            strict=True,
        )
    )


def _statistics_apart(original: Floats, made: Floats) -> list[float]:
    spread = original.std(axis=0)
    gaps = []
    for x, y in zip(original.T, made.T, strict=True):
        at = np.unique(x)
        shares = [np.searchsorted(np.sort(each), at, side="right") / each.size for each in (x, y)]
        gaps.append(float(np.abs(shares[0] - shares[1]).max()))
    return [
        float((np.abs(original.mean(axis=0) - made.mean(axis=0)) / spread).mean()),
        float((np.abs(spread - made.std(axis=0)) / spread).mean()),
        abs(_correlated(original) - _correlated(made)),
        float(np.mean(gaps)),
    ]


def uses(desk: Desk) -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Errors of statistics by ε, of the method at k = 100 and of plain noise."""
    file, runs = desk.file("adult.csv"), 2 if desk.quick else 10
    settings = {}
    for epsilon in EPSILONS:
        settings[epsilon, "ranking"] = ranked(file, epsilon, 100)
        settings[epsilon, "plain"] = setting(file, "laplace", epsilon=epsilon)
    found = desk.measure(
        "other uses",
        {f"uses {one.key} runs={runs}": partial(use_errors, one, runs) for one in settings.values()},
    )
    return dict(zip(settings, found.values(), strict=True))


def _any_use(found: Mapping[tuple[str, str], Mapping[str, float]]) -> Claim:
    better = {
        epsilon: [
            (name, own, found[epsilon, "plain"][name]) for name, own in found[epsilon, "ranking"].items()
        ]
        for epsilon in EPSILONS
    }
    wins = [own < plain for rows in better.values() for _, own, plain in rows]
    return judge(
        "release-any-use-some",
        wins,
        "; ".join(
            f"ε = {epsilon}: " + ", ".join(f"{name} {own:.2g} ({plain:.2g})" for name, own, plain in rows)
            for epsilon, rows in better.items()
        ),
    )


def _order_only(values: Floats) -> Claim:
    # any rising function: groups must not change
    same = [
        bool(np.array_equal(ranking(x, k, "last").labels, ranking(np.sqrt(x) + x**3, k, "last").labels))
        for x in values.T
        for k in _SIZES
    ]
    return judge("method-easy-implement-needs", same)
