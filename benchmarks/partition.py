"""`python -m benchmarks.partition [--quick]`: processor time of MDAV by tree, by fused scanning and by numpy."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from shoal.partition import mdav, normalise

SHAPES = ("isotropic", "correlated", "heavy-tailed", "duplicates")


@dataclass(frozen=True, slots=True)
class Case:
    """One table to partition; `peers` are timed beside the tree and must give the same clusters."""

    shape: str
    n: int
    d: int
    k: int
    peers: tuple[str, ...]


# Peers are left out where their quadratic time would be minutes.
QUICK = (
    Case("heavy-tailed", 20_000, 4, 5, ("brute", "numpy")),
    Case("heavy-tailed", 50_000, 4, 5, ("brute",)),
    *(Case(shape, 30_000, 10, 10, ("brute",)) for shape in SHAPES),
    Case("heavy-tailed", 100_000, 10, 50, ("brute",)),
)
FULL = (
    *QUICK,
    *(Case(shape, 100_000, 4, 50, ("brute",)) for shape in SHAPES),
    Case("isotropic", 30_000, 16, 10, ("brute",)),
    Case("isotropic", 30_000, 32, 10, ("brute",)),
    Case("correlated", 30_000, 32, 10, ("brute",)),
    Case("heavy-tailed", 100_000, 4, 5, ("brute",)),
    Case("heavy-tailed", 100_000, 4, 10, ()),
    Case("heavy-tailed", 300_000, 4, 10, ()),
    Case("heavy-tailed", 1_000_000, 4, 10, ()),
    Case("heavy-tailed", 100_000, 10, 10, ()),
    Case("heavy-tailed", 300_000, 10, 10, ()),
    Case("heavy-tailed", 1_000_000, 10, 10, ()),
)


def records(shape: str, n: int, d: int) -> NDArray[np.float64]:
    """A made-up table; `heavy-tailed` mixes log-normal, Student and normal columns around a common factor."""
    rng = np.random.default_rng(1)
    if shape == "isotropic":
        return rng.normal(size=(n, d))
    if shape == "correlated":
        return rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d))
    if shape == "duplicates":
        return rng.integers(0, 6, (n, d)).astype(np.float64)
    factor = rng.normal(size=n)
    kinds = (
        lambda: np.exp(rng.normal(size=n) + 0.5 * factor),
        lambda: rng.standard_t(3, size=n) + factor,
        lambda: rng.normal(size=n),
    )
    return normalise(np.column_stack([kinds[j % 3]() for j in range(d)]), "zscore")


def seconds(case: Case, rounds: int = 3) -> dict[str, float]:
    """Least processor time of each algorithm over some rounds, on one thread, interleaved."""
    X = records(case.shape, case.n, case.d)
    best: dict[str, float] = {}
    clusters: dict[str, NDArray[np.int64]] = {}
    for _ in range(rounds):
        for algorithm in ("tree", *case.peers):
            start = time.thread_time()
            clusters[algorithm] = mdav(X, case.k, algorithm=algorithm, threads=1).labels
            best[algorithm] = min(best.get(algorithm, np.inf), time.thread_time() - start)
        if sum(best.values()) > 5:
            break
    for peer in case.peers:
        if not np.array_equal(clusters["tree"], clusters[peer]):
            raise AssertionError(f"{peer} and tree disagree on {case}: please report this.")
    return best


def table(quick: bool) -> str:
    """The measurement as a Markdown table; the growth exponent compares with the previous size of the same table."""
    lines = [
        "| data | n | d | k | tree (s) | scanning (s) | numpy (s) | scanning / tree | numpy / tree | growth |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    # Compilation is not what is measured.
    for algorithm in ("tree", "brute"):
        mdav(np.arange(100.0), 3, algorithm=algorithm)
    known: dict[tuple[str, int, int], tuple[int, float]] = {}
    for case in QUICK if quick else FULL:
        best = seconds(case)
        series = (case.shape, case.d, case.k)
        growth = "-"
        if series in known:
            n, before = known[series]
            growth = f"n^{log(best['tree'] / before) / log(case.n / n):.2f}"
        known[series] = (case.n, best["tree"])
        cells = [case.shape, f"{case.n:,}", str(case.d), str(case.k), f"{best['tree']:.3f}"]
        cells += [f"{best[peer]:.3f}" if peer in best else "-" for peer in ("brute", "numpy")]
        cells += [f"{best[peer] / best['tree']:.1f}x" if peer in best else "-" for peer in ("brute", "numpy")]
        lines.append("| " + " | ".join([*cells, growth]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(quick="--quick" in sys.argv[1:]))
