"""Statements of sections 1 to 5 about methods, data and sampling: counted facts come in, verdicts leave."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from papers.cross_moment.curves import Curves
from papers.cross_moment.measure import CENSUS, EIA
from papers.cross_moment.remarks import ranked_change, unbiased
from papers.linked_columns import Linked
from papers.study import Claim, Section, counted, judged
from papers.textbook import local_loss, parallel_loss
from shoal.moments import Summary
from shoal.moments.sensitivity import eigenvector_changes
from shoal.presets import PRESETS

LOSS = "`tests/mechanisms/test_moments_privacy.py`"
# noise is fitted to the data if its scale is below this share of the largest possible
_SMALL = 0.5
# means of drawn rows tell those of their cluster if they are this near, in standard deviations
_NEAR = 0.25
_TINY = 1e-9
Errors = Mapping[tuple[str, int, float], float]


def section(curves: Curves, facts: Mapping[str, Any], errors: Errors, linked: Linked) -> Section:
    """What the paper says of its setting.

    Args:
        curves: everything that is drawn over k.
        facts: what `remarks.facts` counts.
        errors: median log2 SSE of eigen methods by method, k and ε.
        linked: releases of two neighbouring tables with linked columns.
    """
    return Section(
        "What else the text says",
        "Statements of sections 1 to 5 that belong to no figure and no proposition. Census 4, if nothing else is said; "
        "clusters of MDAV, columns divided by their widths.",
        claims=[
            *_earlier_work(facts, linked),
            *_background(facts),
            *_methodology(facts),
            *_experiments(curves, facts, errors),
        ],
    )


def _earlier_work(facts: Mapping[str, Any], linked: Linked) -> Iterator[Claim]:
    cells = facts["cells"]
    yield Claim(
        "sections 1 and 3.1",
        "for a given accuracy the cells of a histogram grow exponentially with the number of columns, and the noise in "
        "them accrues",
        "ten bins a column on one to four columns: "
        + ", ".join(f"{full} of {every:,}" for every, full in cells)
        + " cells have a record in them; all others have noise only",
        judged([*(b[0] == 10 * a[0] for a, b in pairwise(cells)), cells[-1][1] < cells[-1][0] / 2]),
    )
    yield Claim(
        "section 3.1",
        "the best histogram method needs n³ log n steps for n cells, months for tens of thousands",
        "about another paper's method, which Shoal does not have",
        "not tested",
    )
    parallel = parallel_loss(0.5, "rows")
    yield Claim(
        "section 3.1",
        "answers about single records compose in parallel: with ε for each, the table is ε-DP",
        f"enumerated for two groups of records at ε = 0.5: the loss is {parallel:.2g}; noise on every record "
        "(`laplace`) is not refuted by the audit of `docs/promise.md`",
        judged([parallel <= 0.5 + _TINY]),
    )
    ratios = facts["homogeneity"]
    yield Claim(
        "section 3.2",
        "insensitive clusters are less homogeneous than those of standard microaggregation",
        "SSE over that of MDAV: " + ", ".join(f"{ratio:.2f} (k = {k})" for k, ratio in ratios.items()),
        judged(ratio > 1 for ratio in ratios.values()),
    )
    moved = {(n, k): ranked_change(n, k) for n, k in ((4, 2), (5, 2), (6, 2), (6, 3))}
    yield Claim(
        "section 3.2",
        "the centroids of individual ranking move by at most Δ/k together, so that every k reduces the noise",
        "all tables of a small world, times k/Δ: "
        + ", ".join(f"{value:.2g} (n = {n}, k = {k})" for (n, k), value in moved.items()),
        judged(value <= 1 + _TINY for value in moved.values()),
    )
    yield Claim(
        "section 3.2",
        "with several columns, DP versions of each do not add up to a DP data set",
        f"so if the rows stay linked: {linked.words}. Columns released apart do add up",
        judged([linked.refutes]),
    )


def _background(facts: Mapping[str, Any]) -> Iterator[Claim]:
    frozen, own = (local_loss(0.5, frozen=held) for held in (True, False))
    yield Claim(
        "section 2.3",
        "the mechanisms of DP, and composition in sequence and in parallel, carry over to individual DP if local "
        "sensitivity takes the place of the global one",
        f"a median of three records at ε = 0.5 loses {frozen:.2g} with the scale of the actual table held fixed, and "
        f"{'without bound' if math.isinf(own) else f'{own:.2g}'} if every table has its own scale. Whole runs of "
        f"methods 14 to 19 lose at most ε in the first sense ({LOSS})",
        judged([frozen <= 0.5 + _TINY, own <= 0.5 + _TINY]),
    )
    share = facts["at the cap"]
    yield Claim(
        "sections 2.3 and 4.3",
        "local sensitivity is usually small in practice, so individual DP keeps more utility than DP",
        "eigenvectors of clusters of 100 (Census) and 400 (EIA) whose local bound is the largest possible one: "
        + ", ".join(f"{value:.0%} ({data})" for data, value in share.items())
        + ". Neighbouring eigenvalues are too close: next to nothing is saved",
        judged(value < _SMALL for value in share.values()),
    )
    off = [abs(error) for size in (3, 4, 5) for error in unbiased(size)]
    yield Claim(
        "section 2.4",
        "Expressions (1) and (2) are unbiased estimators of covariance and coskewness",
        f"mean over all samples of 3, 4 and 5 from three values: off by {max(off):.0e} at most",
        judged(error < 1e-12 for error in off),
    )
    counts = [
        Summary(d, 2, coskewness="full").coskewnesses == d * (d + 1) * (d + 2) // 6 for d in range(1, 7)
    ]
    yield Claim(
        "section 2.4",
        "of the d³ coskewnesses d(d+1)(d+2)/6 are different",
        f"for {counted(counts)} numbers of columns, 1 to 6",
        judged(counts),
    )


def _methodology(facts: Mapping[str, Any]) -> Iterator[Claim]:
    made = [name for name in PRESETS["xm-2"].partitions if name != "given"]
    yield Claim(
        "section 4.1",
        "any microaggregation can be extended by moments: they are computed once the clusters are there",
        f"clusters may come from {', '.join(f'`{name}`' for name in made)} (`tests/mechanisms/test_moments.py`)",
        judged([len(made) > 1]),
    )
    yield Claim(
        "section 4.2",
        "nobody before computed the sensitivities of coskewness and of eigenvalues and eigenvectors",
        "a statement about the literature",
        "not tested",
    )
    bound = float(eigenvector_changes(np.array([[0.1, 0.1]]), np.array([0.01])).max())
    yield Claim(
        "sections 4.2 and 4.3",
        "since no gap between eigenvalues can be guaranteed, eigenvectors have no usable global sensitivity, and DP "
        "cannot be applied",
        f"unit vectors of random sign are at most √2 apart: {bound:.2f} = √(2d) in L1 norm for d = 2, even for equal "
        "eigenvalues. Noise of that size is DP given the partition, and nearly what the local bounds ask for (above)",
        judged([math.isinf(bound)]),
    )
    none, clusters = facts["repaired"]
    yield Claim(
        "section 4.3",
        "after noise a covariance matrix may be none any more and must be replaced by the nearest one",
        f"method 2, k = 50, ε = 2: so for {none} of {clusters} clusters",
        judged([none > 0]),
    )
    drawn = {int(k): value for k, value in facts["drawn"].items()}
    yield Claim(
        "section 4.3",
        "sampled rows retain what the statistics say to some extent, depending on the cluster size",
        "median distance of the mean of drawn rows to that of their cluster, in standard deviations, no noise (B3): "
        + ", ".join(f"{value:.2f} (k = {k})" for k, value in drawn.items())
        + ". Values drawn below 0 are clipped, which no k mends",
        judged([*(value < _NEAR for value in drawn.values()), drawn[max(drawn)] < drawn[min(drawn)] / 2]),
    )
    several = [f"xm-{number}" for number in (8, 10, 11)]
    yield Claim(
        "sections 5.1 and 5.2",
        "for m = 2 only d coefficients of coskewness are masked, also in the methods called pure, which section 5.1 "
        "says to have all of them",
        "so in Shoal: methods 8, 10 and 11 have all covariances and marginal coskewnesses; all of these can be "
        "published as statistics (`coskewness`)",
        judged(
            (PRESETS[name].covariance, PRESETS[name].coskewness) == ("all", "marginal") for name in several
        ),
    )


def _experiments(curves: Curves, facts: Mapping[str, Any], errors: Errors) -> Iterator[Claim]:
    apart = {
        (one, other): [
            point[other] - point[one]
            for point in curves.each(("Census 4", "EIA 4"), (1.0, 2.0), (one, other))
        ]
        for one, other in (("xm-1", "xm-20"), ("xm-3", "xm-21"))
    }
    yield Claim(
        "section 5.1",
        "how clusters are made has an impact on utility",
        "individual ranking above MDAV, log2 SSE on Census 4 and EIA 4: "
        + ", ".join(
            f"{min(found):+.2f} to {max(found):+.2f} (method {other[3:]} against {one[3:]})"
            for (one, other), found in apart.items()
        ),
        judged([max(abs(value) for found in apart.values() for value in found) > 0.1]),
    )
    lost = facts["first two columns"]
    yield Claim(
        "section 5.3",
        "the curse of dimensionality: clusters lose more information, the more columns there are",
        "share of the variation of the first two columns that clusters of 100 lose: "
        + ", ".join(f"{value:.1%} ({data})" for data, value in lost.items()),
        judged(lost[few] < lost[more] for sets in (CENSUS, EIA) for few, more in pairwise(sets)),
    )
    yield _variability(facts["deviations"])
    beyond = facts["beyond"]
    yield Claim(
        "section 5.5, Figure 7",
        "the data in clusters are neither normal nor skew-normal",
        f"in clusters of 100, {beyond:.0%} of the columns are more skewed than any skew-normal variable (0.995)",
        judged([beyond > 0]),
    )
    plain, example = facts["equal rows"]["xm-b1"], facts["equal rows"]["xm-6"]
    yield Claim(
        "section 5.5, example of Figure 8(a)",
        "privacy is higher with k = 390 and 2-DP than with k = 100, in the sense of k-anonymity and because of DP",
        f"the rarest row of B1 (k = 100) is shared by {plain} records, that of method 6 (k = 390) by {example}: rows "
        "are drawn, so the release is not k-anonymous by itself. Its statistics are 2-DP given the partition",
        judged([plain >= 100, example >= 390]),
    )
    worse = {
        (name, k): errors[name, k, 1.0] - errors[name, k, 2.0]
        for name, k, epsilon in errors
        if epsilon == 1.0
    }
    yield Claim(
        "section 5.5, Figure 14",
        "a smaller ε than 2 would only make the eigen form worse",
        "log2 SSE at ε = 1 above that at ε = 2: "
        + ", ".join(f"{value:+.2f} (method {name[3:]}, k = {k})" for (name, k), value in worse.items()),
        judged(value > 0 for value in worse.values()),
    )


def _variability(deviations: Mapping[str, list[float]]) -> Claim:
    means, moments, masked_means, masked = (deviations[name] for name in ("xm-b1", "xm-b3", "xm-1", "xm-3"))
    nearer = [
        abs(with_moments - 1) < abs(alone - 1)
        for some, others in ((moments, means), (masked, masked_means))
        for with_moments, alone in zip(some, others, strict=True)
    ]
    return Claim(
        "sections 1 and 6",
        "means alone attenuate the variability of the data; moments reflect it more accurately",
        "standard deviations over those of the original, k = 200: "
        + "; ".join(
            f"{words} {', '.join(f'{value:.2f}' for value in found)}"
            for words, found in (
                ("B1", means),
                ("B3", moments),
                ("method 1 at ε = 2", masked_means),
                ("method 3", masked),
            )
        )
        + f". Nearer to 1 with variances in {counted(nearer)} cases; noise adds variability of its own",
        judged([*(value < 1 for value in means), *nearer]),
    )
