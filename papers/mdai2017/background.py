"""What MDAI-2017 says around its method: Census and its clusters come in, verdicts on each statement leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from papers.cluster_errors import Setting, settled, share_verdict
from papers.mdai2017 import facts
from papers.mdai2017.curves import Curves, setting
from papers.mdai2017.printed import CENSUS_4
from papers.study import Claim
from papers.textbook import histogram_cells, laplace_loss
from shoal.noise import Seeded, Source
from shoal.partition import mdav, ranking
from shoal.release import carry_out

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
    return Claim(
        "section 1",
        "Histograms do badly with many attributes: the number of cells grows exponentially, and accuracy "
        "suffers.",
        f"Ten bins for each of 1 to {len(cells)} attributes of Census-4: "
        f"{', '.join(f'{count:,}' for count, _ in cells)} cells; "
        f"of them {', '.join(f'{used:,}' for _, used in cells)} hold a record. At ε = 1 the absolute noise of all "
        f"counts together is {', '.join(f'{2 * c:,}' for c, _ in cells)} on average, beside {records:,} records.",
        "holds" if drowned[-1] and not drowned[0] else "fails",
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
    return Claim(
        "section 1",
        "Masking records one by one is cheap: its cost is linear in their number.",
        "Random words drawn for "
        + ", ".join(f"{rows:,} records: {words:,}" for rows, words in drawn.items())
        + f"; {min(each):.1f} to {max(each):.1f} for a record.",
        "holds" if max(each) < 1.1 * min(each) else "fails",
    )


def _laplace() -> Claim:
    losses = {epsilon: laplace_loss(epsilon) for epsilon in (0.5, 1.0, 2.0)}
    return Claim(
        "Proposition 1",
        "Laplace noise of scale Δf/ε on every component of f is ε-differentially private.",
        "Sum and maximum of three records, all tables of a small world and all replacements: the largest loss is "
        + ", ".join(f"{lost:.3f} for ε = {epsilon:g}" for epsilon, lost in losses.items())
        + ".",
        share_verdict(sum(lost <= epsilon + 1e-9 for epsilon, lost in losses.items()), len(losses)),
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
    yield Claim(
        "section 4.1",
        "Clusters of MDAV and IR_MDAV have k records, except perhaps one of k to 2k - 1.",
        f"{sum(plain)} of {len(plain)} partitions of Census-4, k from {curves.ks[0]} to {curves.ks[-1]}.",
        share_verdict(sum(plain), len(plain)),
    )
    saved = {
        k: 1 - float((1 / sizes).sum() / (sizes / k**2).sum())
        for k, (whole, *_) in made.items()
        for sizes in [whole.sizes.astype(np.float64)]
    }
    free = settled(setting(file, "optimal-dp", epsilon=1, k=1, split="proportional"))[1]
    spans = [float(part.partition.sizes.max() / part.partition.sizes.min()) for part in free]
    uneven = [k for k in curves.ks if len(values) % k]
    yield Claim(
        "sections 3, 4",
        "Noise can follow the size of each cluster.",
        f"Scaled to |C| and not to k, the noise of MDAV+DP has up to {max(saved.values()):.0%} less variance, where k "
        f"does not divide n; with free sizes the scales of one attribute differ by factors of {min(spans):.1f} to "
        f"{max(spans):.1f}.",
        share_verdict(sum(saved[k] > 0 for k in uneven), len(uneven)),
    )
    errors = [sse for sse, _ in partitions.values()]
    yield Claim(
        "section 4.1",
        "The choice of the microaggregation algorithm matters much for utility.",
        f"With the same noise rule, ε = 1, k = 50 or free sizes: SSE {min(errors):.3g} to {max(errors):.3g}, a factor "
        f"of {max(errors) / min(errors):.1f}. Variants of MDAV among themselves differ by "
        f"{_spread(partitions, 'MDAV'):.0%}.",
        "holds" if max(errors) > 2 * min(errors) else "fails",
    )


def _spread(partitions: Mapping[str, tuple[float, str]], family: str) -> float:
    errors = [sse for name, (sse, _) in partitions.items() if family in name]
    return max(errors) / min(errors) - 1


def _baseline(file: Path) -> Claim:
    ours, theirs = (
        settled(setting(file, method, epsilon=1, k=50)) for method in ("mdav-dp", "insensitive-dp")
    )
    whole = all(len(frozen) == 1 for _, frozen in (ours, theirs))
    promised = [prepared.statement.model for prepared, _ in (ours, theirs)]
    return Claim(
        "section 4.1",
        "The insensitive method is a suitable baseline for MDAV+DP, as both group whole records.",
        f"Both {'do' if whole else 'do not'}. What they promise is not the same: `{promised[0]}` here, `{promised[1]}` "
        "there.",
        share_verdict(int(whole) + int(promised[0] == promised[1]), 2),
    )


def _positive(file: Path) -> Claim:
    least = dict(zip(CENSUS_4, facts.matrix(file).min(axis=0), strict=True))
    return Claim(
        "section 4.3",
        "The four attributes take values above 0.",
        "Smallest values: " + ", ".join(f"{name} {value:g}" for name, value in least.items()) + ".",
        share_verdict(sum(value > 0 for value in least.values()), len(least)),
    )
