"""Verdicts on the claims that MDAI-2017 makes around its method, on Census and its clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from papers.cluster_errors import Setting, settled
from papers.mdai2017 import facts
from papers.mdai2017.curves import Curves, setting
from papers.mdai2017.printed import CENSUS_4
from papers.study import Claim
from papers.textbook import histogram_cells, laplace_loss
from papers.texts import judging
from shoal.noise import Seeded, Source
from shoal.partition import mdav, ranking
from shoal.release.protection import carry_out

judge = judging("mdai2017/texts")

_SIZES = (270, 540, 1080)


def claims(file: Path, curves: Curves, partitions: Mapping[str, tuple[float, str]]) -> Iterator[Claim]:
    """Sections 1, 2, 4.1 and 4.3.

    Args:
        file: Census.
        curves: errors over k, for the sizes k that are looked at.
        partitions: expected SSE and claim of the same noise on other clusters, by name.
    """
    yield _histograms(file)
    yield _linear(file)
    yield _laplace()
    yield from _clusters(file, curves, partitions)
    yield _baseline(file)
    yield _positive(file)


def _histograms(file: Path) -> Claim:
    cells = histogram_cells(facts.matrix(file))
    records = len(facts.matrix(file))
    # one record replaced changes two counts: scale 2/ε, which is also the mean absolute noise of a cell
    drowned = [2 * count > records for count, _ in cells]
    return judge(
        "histograms-do-badly-many",
        bool(drowned[-1] and not drowned[0]),
        len(cells),
        ", ".join(f"{count:,}" for count, _ in cells),
        ", ".join(f"{used:,}" for _, used in cells),
        ", ".join(f"{2 * c:,}" for c, _ in cells),
        records,
    )


class _Counted(Source):
    """Seeded words, counted."""

    reproducible = True

    def __init__(self) -> None:
        self._inner, self.used = Seeded(0), 0

    def words(self, n: int) -> NDArray[np.uint64]:
        self.used += n
        return self._inner.words(n)


def words_drawn(one: Setting) -> int:
    """Random words that a release takes."""
    prepared, frozen = settled(one)
    source = _Counted()
    carry_out(replace(prepared, source=source), frozen=frozen)
    return source.used


def _linear(file: Path) -> Claim:
    drawn = {
        rows: words_drawn(
            Setting(file, CENSUS_4, "laplace", (("epsilon", 1),), rows=rows if rows < 1080 else 0)
        )
        for rows in _SIZES
    }
    each = [words / rows for rows, words in drawn.items()]
    return judge(
        "masking-records-cheap-cost",
        max(each) < 1.1 * min(each),
        ", ".join(f"{rows:,} records: {words:,}" for rows, words in drawn.items()),
        min(each),
        max(each),
    )


def _laplace() -> Claim:
    losses = {epsilon: laplace_loss(epsilon) for epsilon in (0.5, 1.0, 2.0)}
    return judge(
        "laplace-noise-scale-f",
        (lost <= epsilon + 1e-9 for epsilon, lost in losses.items()),
        ", ".join(f"{lost:.3f} for ε = {epsilon:g}" for epsilon, lost in losses.items()),
    )


def _clusters(file: Path, curves: Curves, partitions: Mapping[str, tuple[float, str]]) -> Iterator[Claim]:
    values = facts.matrix(file)
    domain = facts.widths(values)
    made = {k: [mdav(values / domain, k), *(ranking(column, k) for column in values.T)] for k in curves.ks}
    plain = [
        sorted(part.sizes.tolist())[:-1] == [k] * (len(part) - 1) and k <= part.sizes.max() < 2 * k
        for k, parts in made.items()
        for part in parts
    ]
    yield judge("clusters-mdav-ir-mdav", plain, curves.ks[0], curves.ks[-1])
    saved = {
        k: 1 - float((1 / sizes).sum() / (sizes / k**2).sum())
        for k, (whole, *_) in made.items()
        for sizes in [whole.sizes.astype(np.float64)]
    }
    free = settled(setting(file, "optimal-dp", epsilon=1, k=1, split="proportional"))[1]
    spans = [float(part.partition.sizes.max() / part.partition.sizes.min()) for part in free]
    uneven = [k for k in curves.ks if len(values) % k]
    yield judge(
        "noise-follow-size-each", (saved[k] > 0 for k in uneven), max(saved.values()), min(spans), max(spans)
    )
    errors = [sse for sse, _ in partitions.values()]
    yield judge(
        "choice-microaggregation-algorithm-matters",
        max(errors) > 2 * min(errors),
        min(errors),
        max(errors),
        max(errors) / min(errors),
        _spread(partitions, "MDAV"),
    )


def _spread(partitions: Mapping[str, tuple[float, str]], family: str) -> float:
    errors = [sse for name, (sse, _) in partitions.items() if family in name]
    return max(errors) / min(errors) - 1


def _baseline(file: Path) -> Claim:
    ours, theirs = (
        settled(setting(file, method, epsilon=1, k=50, split="proportional"))
        for method in ("mdav-dp", "insensitive-dp")
    )
    whole = all(len(frozen) == 1 for _, frozen in (ours, theirs))
    promised = [prepared.statement.model for prepared, _ in (ours, theirs)]
    return judge(
        "insensitive-method-suitable-baseline",
        [whole, promised[0] == promised[1]],
        "do" if whole else "do not",
        promised[0],
        promised[1],
    )


def _positive(file: Path) -> Claim:
    least = dict(zip(CENSUS_4, facts.matrix(file).min(axis=0), strict=True))
    return judge(
        "four-attributes-take-values",
        (value > 0 for value in least.values()),
        ", ".join(f"{name} {value:g}" for name, value in least.items()),
    )
