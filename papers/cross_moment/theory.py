"""Section 4: propositions, theorem and algorithms, checked on small worlds."""

from __future__ import annotations

import math

import numpy as np

from papers import textbook
from papers.cross_moment import small_worlds
from papers.cross_moment.measure import SETS, matrix
from papers.cross_moment.printed_bounds import coskewness_change_as_printed
from papers.desk import Desk
from papers.study import Claim, Erratum, Number, Section
from papers.texts import judging, numbering, printed_errors, wording
from shoal.mechanisms.moments.sampling import variance_caps
from shoal.mechanisms.moments.statistics import (
    MomentSummary,
    coskewness_change,
    covariance_change,
)

number = numbering("cross_moment/texts")

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

LOSS = "`tests/mechanisms/moments/test_moments_privacy.py`"
_ENTRY_SIZES, _JOINT_SIZES, _LEMMA_SIZES = (3, 4, 5), (3, 4, 5), range(3, 9)
_TINY = 1e-9


def section() -> Section:
    return Section(
        *heading("sensitivities-algorithms-section-4"),
        numbers=_numbers(),
        more=_table(),
        claims=[*_coefficients(), *_spectra(), *_algorithms()],
    )


def _numbers() -> list[Number]:
    """Constants that a prototype worked with; nothing is drawn."""
    where = "prototype, section 4"
    changes = [("a mean", 0, 3, "1"), ("a covariance", 1, 3, "1"), ("a coskewness", 2, 3, "2")]
    changes += [("a coskewness", 2, size, "1") for size in (4, 5)]
    # a skew-normal variable is half-normal in the limit
    half_normal = (4 - math.pi) / 2 * (2 / (math.pi - 2)) ** 1.5
    return [
        *(
            Number(
                where,
                f"largest change of {what} times |C|, |C| = {size}",
                known,
                size * small_worlds.largest_entry(size, order),
            )
            for what, order, size, known in changes
        ),
        *(
            Number(
                where, f"largest unbiased variance, |C| = {size}", known, small_worlds.largest_variance(size)
            )
            for size, known in ((3, ".3333"), (4, ".3333"), (5, ".3000"))
        ),
        number("skewness-skew-normal-variable", half_normal),
    ]


def _table() -> str:
    lines = [
        "| \\|C\\| | a covariance (printed 1) | a coskewness (printed 1) | Shoal uses | all of order 1, d = 2 "
        "(printed 5) | "
        "all of order 2, d = 2 (printed 9) |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for size in _ENTRY_SIZES:
        cells = [
            f"{size * small_worlds.largest_entry(size, 1):.3g}",
            f"{size * small_worlds.largest_entry(size, 2):.3g}",
            f"{float(size * coskewness_change(size)):g}",
            f"{size * small_worlds.largest_joint(size, 2, 1):.3g}",
            f"{size * small_worlds.largest_joint(size, 2, 2):.3g}",
        ]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _coefficients() -> list[Claim]:
    second = {size: small_worlds.largest_entry(size, 1) for size in _ENTRY_SIZES}
    third = {size: small_worlds.largest_entry(size, 2) for size in _ENTRY_SIZES}
    means = {size: small_worlds.largest_joint(size, 2, 0) for size in _ENTRY_SIZES}
    kept = [third[size] <= float(coskewness_change_as_printed(size)) + _TINY for size in _ENTRY_SIZES]
    lemma = [
        max(abs(found - (size - 1) * (size - 2)) for found in small_worlds.lemma_7(size)) < _TINY
        for size in _LEMMA_SIZES
    ]
    joint = {
        order: [small_worlds.largest_joint(size, 2, order) <= printed / size + _TINY for size in _JOINT_SIZES]
        for order, printed in ((1, 5), (2, 9))
    }
    return [
        judge(
            "record-moves-means-cluster",
            (abs(size * value - 2) < _TINY for size, value in means.items()),
            ", ".join(f"{size * value:.3g}" for size, value in means.items()),
            ", ".join(map(str, means)),
        ),
        judge(
            "sensitivity-covariance-variances-included",
            (abs(value - float(covariance_change(size))) < _TINY for size, value in second.items()),
            ", ".join(f"{size * value:.3g}" for size, value in second.items()),
            ", ".join(map(str, second)),
        ),
        judge("whole-covariance-matrix-sensitivity", joint[1]),
        judge("tighter-more-general-earlier", "not tested"),
        judge("three-quadratic-forms-same", lemma, _LEMMA_SIZES[0], _LEMMA_SIZES[-1]),
        judge(
            "sensitivity-coskewness-i-j",
            kept,
            ", ".join(f"{size * value:.3g}" for size, value in third.items()),
            ", ".join(map(str, third)),
        ),
        judge("all-coefficients-order-1", [*joint[1], *joint[2]], 3 * small_worlds.largest_joint(3, 2, 2)),
    ]


def _spectra() -> list[Claim]:
    values = [small_worlds.eigenvalue_ratio(size) for size in _ENTRY_SIZES]
    slices = small_worlds.slice_ratios()
    better = slices.pop("the better sign")
    together = small_worlds.eigen_form_ratios()
    ratios = small_worlds.eigenvector_ratios()
    printed = {rule: ratio for rule, ratio in ratios.items() if rule != "corrected bound"}
    return [
        judge("eigenvalues-covariance-move-together", (value <= 1 + _TINY for value in values), max(values)),
        judge(
            "eigenvector-moves-most-d",
            (ratio <= 1 for ratio in printed.values()),
            ", ".join(f"{ratio:.1f} times ({rule})" for rule, ratio in printed.items()),
            ratios["corrected bound"],
        ),
        judge("same-slices-coskewness-more", [True, small_worlds.largest_entry(3, 2) <= 1 / 3]),
        judge(
            "eigenvector-slice-moves-most",
            (ratio <= 1 for ratio in slices.values()),
            ", ".join(f"{ratio:.1f} times ({rule})" for rule, ratio in slices.items()),
            better,
        ),
        judge(
            "local-sensitivities-eigen-form",
            (ratio <= 1 for ratio in together.values()),
            ", ".join(f"{ratio:.1f} times ({rule})" for rule, ratio in together.items()),
        ),
    ]


def _algorithms() -> list[Claim]:
    counts = [
        _printed_draws(d, m, eigen=eigen) == _draws(d, m, eigen=eigen)
        for d in range(1, 7)
        for m in (1, 2)
        for eigen in (False, True)
    ]
    least = {n: next(k for k in range(1, n) if n / k**2 <= 1) for n in (1_080, 4_092)}
    frozen, own = (textbook.local_loss(0.5, frozen=held) for held in (True, False))
    twice = textbook.sequential_loss(0.5, 0.5)
    return [
        judge("cluster-needs-r-7d", counts),
        judge("noise-vector-per-cluster", "holds partly"),
        judge("privacy-risk-added-when", "fails"),
        judge(
            "insensitive-microaggregation-reduces-noise",
            (k == math.ceil(math.sqrt(n)) for n, k in least.items()),
            ", ".join(f"k = {k} (n = {n:,})" for n, k in least.items()),
        ),
        judge(
            "individual-dp-gives-individuals",
            [frozen <= 0.5 + _TINY, own <= 0.5 + _TINY],
            frozen,
            "without bound" if math.isinf(own) else f"{own:.2g}",
        ),
        judge("k-independent-draws-per", [abs(twice - 1) < _TINY], twice),
    ]


def _printed_draws(d: int, m: int, *, eigen: bool) -> float:
    if eigen:
        return d * (d * m + d * d * m - d * d + 2)
    return (7 * d - d**3 + d * m * (d + 1) * (d + 2)) / 6


def _draws(d: int, m: int, *, eigen: bool) -> int:
    summary = MomentSummary(d, m, coskewness="full")
    if eigen:
        spectrum = d + d * d
        return d + spectrum + (d * spectrum if m == 2 else 0)
    return summary.means + summary.covariances + summary.coskewnesses


def joint_scale_in_dollars(desk: Desk) -> tuple[float, float]:
    """The scale of Algorithm 1's noise on the means of Census 2, k = 390, ε = 2, in the columns' units; the width."""
    one, two = 1.5 * matrix(desk.file("census.csv"), SETS["Census 2"].columns).max(axis=0)
    total = one + two + one * one + one * two + two * two
    return float(total / (390 * 2)), float(two)


def errata(desk: Desk) -> list[Erratum]:
    """Printed errors of section 2 and 4."""
    scale, width = joint_scale_in_dollars(desk)
    caps = variance_caps(np.array([3, 4]))
    return printed_errors(
        "cross_moment/texts",
        {
            "proposition-6-expressions-5": (100 * small_worlds.wrong_cases(),),
            "theorem-11-i-order": (small_worlds.largest_joint(3, 2, 2), 9 / 3),
            "algorithm-1-noise-scale": (scale, width, scale / width),
            "section-4-3-footnote": (caps[0], caps[1]),
        },
        part="theory",
    )
