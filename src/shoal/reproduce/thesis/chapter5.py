"""Chapter 5 of the thesis beside its print: nothing comes in, docs/thesis-chapter-5.md leaves.

python -m benchmarks.thesis5 [--draws 100000] [--out docs/thesis-chapter-5.md]
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.stats import chi2

from shoal.lattice import Lattice
from shoal.noise import Seeded
from shoal.query.composition import Charge, total
from shoal.query.refinement import (
    Factors,
    Labels,
    Points,
    Refined,
    absolute,
    categorical,
    nominal,
    refine,
    sample,
    uniform,
)

# the lattice that stands for the interval [0, 1]
STEPS = 1 << 14
# ε, its factors, and what is printed: Laplace variance and probability, variance, size and probability of U_u
TABLE_5_5 = [
    ("0.1", 0.1, Factors.individual(Fraction(1, 10)), ("200", "0.476", "0.077", "0.475", "0.525")),
    ("ln 2", math.log(2), Factors(Fraction(2), Fraction(1, 2)), ("4.16", "0.549", "0.046", "0.333", "0.667")),
    ("1", 1.0, Factors.individual(Fraction(1)), ("2", "0.607", "0.034", "0.269", "0.731")),
    ("2", 2.0, Factors.individual(Fraction(2)), ("0.5", "0.684", "0.012", "0.119", "0.881")),
]


def variance(factors: Factors) -> Fraction:
    """Of the refined uniform distribution on [0, 1] around the truth 1/2."""
    size = factors.mass_up
    return (factors.up * size**3 + factors.down * (1 - size**3)) / 12


def lattice_variance(factors: Factors) -> float:
    """The same on the lattice, from the law that is drawn from."""
    prior = uniform(Points(Lattice(Fraction(0), Fraction(1), Fraction(1, STEPS))))
    law = refine(prior, absolute(prior.support, STEPS // 2), factors)
    chances = np.zeros(STEPS + 1)
    start = 0
    for end, chance in zip(law.ends, law.chances, strict=True):
        chances[law.order[start:end]] = float(chance) / (end - start)
        start = end
    return float((chances * (np.arange(STEPS + 1) / STEPS - 0.5) ** 2).sum())


def sampled(law: Refined, draws: int) -> tuple[list[float], float]:
    """Frequencies of the answers among samples of the law, and the p-value of a chi-square test against it."""
    source = Seeded(5)
    counts = np.bincount([sample(law, source) for _ in range(draws)], minlength=law.prior.support.size)
    expected = np.array([float(p) for p in law.probabilities()]) * draws
    p_value = chi2.sf(((counts - expected) ** 2 / expected).sum(), expected.size - 1)
    return (counts / draws).tolist(), float(p_value)


def table_5_5() -> list[str]:
    lines = [
        "## Table 5.5",
        "",
        "A query about one person with the true answer 0.5, uniform prior on [0, 1]. Each cell: printed, then "
        "computed. Variance of the refined prior in closed form and, in brackets, on a lattice of "
        f"{STEPS:,} steps. The printed probabilities of the Laplace column are wrong: noise of scale 1/ε stays within "
        "±1/2 with probability 1 - exp(-ε/2). The other columns agree with the print; 0.034 there is 0.0345 cut off.",
        "",
        "| ε | Laplace variance | Laplace within [0, 1] | variance | size of U_u | probability of U_u |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, epsilon, factors, printed in TABLE_5_5:
        computed = (
            f"{2 / epsilon**2:.4g}",
            f"**{-math.expm1(-epsilon / 2):.3f}**",
            f"{float(variance(factors)):.4f} ({lattice_variance(factors):.4f})",
            f"{float(factors.mass_up):.3f}",
            f"{float(factors.chance_up):.3f}",
        )
        cells = " | ".join(f"{one}, {other}" for one, other in zip(printed, computed, strict=True))
        lines.append(f"| {name} | {cells} |")
    return [*lines, ""]


def boolean(draws: int) -> list[str]:
    prior = categorical({"0": "0.99", "1": "0.01"})
    printed = {0: ("0.996322", "0.003678"), 1: ("0.972817", "0.027182")}
    lines = [
        "## The Boolean example",
        "",
        "Prior 0.99 / 0.01, ε = 1, one person. The thesis cuts off after six digits, one number apart. "
        f"Frequencies of {draws:,} exact samples, with the p-value of a chi-square test against the exact law.",
        "",
        "| truth | P(0) printed | computed | P(1) printed | computed | sampled P(1) | p |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    answered = Fraction(0)
    for truth, share in ((0, Fraction(99, 100)), (1, Fraction(1, 100))):
        law = refine(prior, nominal(prior.support, truth), Factors.individual(Fraction(1)))
        zero, one = law.probabilities()
        answered += one * share
        frequencies, p_value = sampled(law, draws)
        lines.append(
            f"| {truth} | {printed[truth][0]} | {float(zero):.6f} | {printed[truth][1]} | {float(one):.6f} | "
            f"{frequencies[1]:.5f} | {p_value:.2f} |"
        )
    laplace = math.exp(-1) / 2
    crude = laplace * 0.99 + (1 - laplace) * 0.01
    return [
        *lines,
        "",
        f"The answer is 1 with probability {float(answered):.6f} (printed 0.003912), against {crude:.3f} (printed "
        "0.19) for rounded Laplace noise of scale 1/2.",
        "",
    ]


def pairs() -> list[str]:
    """Tables 5.3 and 5.4: two persons, one of them missing, and what the pair costs."""
    prior = uniform(Labels(("0", "1")))
    factors = Factors.individual(Fraction(1))
    here = refine(prior, nominal(prior.support, 0), factors).probabilities()
    missing = refine(prior, None, factors).probabilities()
    tables = {
        "5.3, both there": (here, here),
        "5.4, first missing": (missing, here),
        "5.4, second missing": (here, missing),
    }
    lines = [
        "## Tables 5.3 and 5.4",
        "",
        "Two persons with the true answers 0 and 0, uniform priors, ε = 1 each. With a = exp(-1) the entries of "
        "Table 5.3 are (1 - a/2)², (1 - a/2)·a/2 and a²/4; those of Table 5.4 have 1/2 in the place of one factor.",
        "",
        "| table | P(0,0) | P(0,1) | P(1,0) | P(1,1) | ratios to Table 5.3 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    both = [a * b for a in here for b in here]
    for name, (first, second) in tables.items():
        law = [a * b for a in first for b in second]
        ratios = sorted({f"{float(a / b):.4f}" for a, b in zip(both, law, strict=True)})
        cells = " | ".join(f"{float(p):.4f}" for p in law)
        lines.append(f"| {name} | {cells} | {', '.join(ratios)} |")
    cost = total([Charge(Fraction(1), person=("id", "1")), Charge(Fraction(1), person=("id", "2"))])
    return [
        *lines,
        "",
        f"All ratios are a = {float(2 * here[1]):.4f} or 2 - a = {float(2 * here[0]):.4f}, within exp(±1): both "
        f"answers together cost ε = {cost} for one record added or removed (Proposition 4), and 2 for one replaced.",
        "",
    ]


def report(draws: int) -> str:
    lines = [
        "# Chapter 5 of the thesis",
        "",
        f"Written by `python -m benchmarks.thesis5 --draws {draws}` on {datetime.date.today()}, {os.cpu_count()} "
        f"cores, {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory. "
        "Probabilities are exact fractions, rounded here; how they are made: [proofs](proofs/refinement.md).",
        "",
        "Corrected: the masses p_u and p_d of Algorithm 5.1 are swapped in print (Table 5.5 has them right); its "
        "factor α_ud needs the masses of the sets, not p_u and p_d; the (ε, δ) variants may move δ·exp(-ε) and "
        "δ/(1 + exp(ε)), not δ and δ/2.",
        "",
        *table_5_5(),
        *boolean(draws),
        *pairs(),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("docs/thesis-chapter-5.md"))
    arguments = parser.parse_args()
    arguments.out.write_text(report(arguments.draws), "utf-8")
