"""Verdicts on the claims of sections 1 to 5 about methods, data and sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from papers.cross_moment.curves import Curves
from papers.cross_moment.measure import CENSUS, EIA, numbered
from papers.cross_moment.remarks import ranked_change, unbiased
from papers.linked_columns import Linked
from papers.study import Claim, Section, counted
from papers.textbook import local_loss, parallel_loss
from papers.texts import judging, wording
from shoal.mechanisms.moments.statistics import MomentSummary, eigenvector_changes

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

LOSS = "`tests/mechanisms/moments/test_moments_privacy.py`"
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
        *heading("what-else-text-says"),
        claims=[
            *_earlier_work(facts, linked),
            *_background(facts),
            *_methodology(facts),
            *_experiments(curves, facts, errors),
        ],
    )


def _earlier_work(facts: Mapping[str, Any], linked: Linked) -> Iterator[Claim]:
    cells = facts["cells"]
    yield judge(
        "given-accuracy-cells-histogram",
        [*(b[0] == 10 * a[0] for a, b in pairwise(cells)), cells[-1][1] < cells[-1][0] / 2],
        ", ".join(f"{full} of {every:,}" for every, full in cells),
    )
    yield judge("best-histogram-method-needs", "not tested")
    parallel = parallel_loss(0.5, "rows")
    yield judge("answers-about-single-records", [parallel <= 0.5 + _TINY], parallel)
    ratios = facts["homogeneity"]
    yield judge(
        "insensitive-clusters-less-homogeneous",
        (ratio > 1 for ratio in ratios.values()),
        ", ".join(f"{ratio:.2f} (k = {k})" for k, ratio in ratios.items()),
    )
    moved = {(n, k): ranked_change(n, k) for n, k in ((4, 2), (5, 2), (6, 2), (6, 3))}
    yield judge(
        "centroids-individual-ranking-move",
        (value <= 1 + _TINY for value in moved.values()),
        ", ".join(f"{value:.2g} (n = {n}, k = {k})" for (n, k), value in moved.items()),
    )
    yield judge("several-columns-dp-versions", [linked.refutes], linked.words)


def _background(facts: Mapping[str, Any]) -> Iterator[Claim]:
    frozen, own = (local_loss(0.5, frozen=held) for held in (True, False))
    yield judge(
        "mechanisms-dp-composition-sequence",
        [frozen <= 0.5 + _TINY, own <= 0.5 + _TINY],
        frozen,
        "without bound" if math.isinf(own) else f"{own:.2g}",
    )
    share = facts["at the cap"]
    yield judge(
        "local-sensitivity-usually-small",
        (value < _SMALL for value in share.values()),
        ", ".join(f"{value:.0%} ({data})" for data, value in share.items()),
    )
    off = [abs(error) for size in (3, 4, 5) for error in unbiased(size)]
    yield judge("expressions-1-2-unbiased", (error < 1e-12 for error in off), max(off))
    counts = [
        MomentSummary(d, 2, coskewness="full").coskewnesses == d * (d + 1) * (d + 2) // 6 for d in range(1, 7)
    ]
    yield judge("d-coskewnesses-d-d", counts)


def _methodology(facts: Mapping[str, Any]) -> Iterator[Claim]:
    made = [name for name in numbered("xm-2").partitions if name != "given"]
    yield judge(
        "any-microaggregation-extended-moments", [len(made) > 1], ", ".join(f"`{name}`" for name in made)
    )
    yield judge("nobody-before-computed-sensitivities", "not tested")
    bound = float(eigenvector_changes(np.array([[0.1, 0.1]]), np.array([0.01])).max())
    yield judge("since-gap-between-eigenvalues", [math.isinf(bound)], bound)
    none, clusters = facts["repaired"]
    yield judge("after-noise-covariance-matrix", [none > 0], none, clusters)
    drawn = {int(k): value for k, value in facts["drawn"].items()}
    yield judge(
        "sampled-rows-retain-what",
        [*(value < _NEAR for value in drawn.values()), drawn[max(drawn)] < drawn[min(drawn)] / 2],
        ", ".join(f"{value:.2f} (k = {k})" for k, value in drawn.items()),
    )
    several = [f"xm-{number}" for number in (8, 10, 11)]
    yield judge(
        "m-2-only-d",
        ((numbered(name).covariance, numbered(name).coskewness) == ("all", "marginal") for name in several),
    )


def _experiments(curves: Curves, facts: Mapping[str, Any], errors: Errors) -> Iterator[Claim]:
    apart = {
        (one, other): [
            point[other] - point[one]
            for point in curves.each(("Census 4", "EIA 4"), (1.0, 2.0), (one, other))
        ]
        for one, other in (("xm-1", "xm-20"), ("xm-3", "xm-21"))
    }
    yield judge(
        "how-clusters-made-impact",
        [max(abs(value) for found in apart.values() for value in found) > 0.1],
        ", ".join(
            f"{min(found):+.2f} to {max(found):+.2f} (method {other[3:]} against {one[3:]})"
            for (one, other), found in apart.items()
        ),
    )
    lost = facts["first two columns"]
    yield judge(
        "curse-dimensionality-clusters-lose",
        (lost[few] < lost[more] for sets in (CENSUS, EIA) for few, more in pairwise(sets)),
        ", ".join(f"{value:.1%} ({data})" for data, value in lost.items()),
    )
    yield _variability(facts["deviations"])
    beyond = facts["beyond"]
    yield judge("data-clusters-neither-normal", [beyond > 0], beyond)
    plain, example = facts["equal rows"]["xm-b1"], facts["equal rows"]["xm-6"]
    yield judge("privacy-higher-k-390", [plain >= 100, example >= 390], plain, example)
    worse = {
        (name, k): errors[name, k, 1.0] - errors[name, k, 2.0]
        for name, k, epsilon in errors
        if epsilon == 1.0
    }
    yield judge(
        "smaller-epsilon-2-would",
        (value > 0 for value in worse.values()),
        ", ".join(f"{value:+.2f} (method {name[3:]}, k = {k})" for (name, k), value in worse.items()),
    )


def _variability(deviations: Mapping[str, list[float]]) -> Claim:
    means, moments, masked_means, masked = (deviations[name] for name in ("xm-b1", "xm-b3", "xm-1", "xm-3"))
    nearer = [
        abs(with_moments - 1) < abs(alone - 1)
        for some, others in ((moments, means), (masked, masked_means))
        for with_moments, alone in zip(some, others, strict=True)
    ]
    return judge(
        "means-alone-attenuate-variability",
        [*(value < 1 for value in means), *nearer],
        "; ".join(
            f"{words} {', '.join(f'{value:.2f}' for value in found)}"
            for words, found in (
                ("B1", means),
                ("B3", moments),
                ("method 1 at ε = 2", masked_means),
                ("method 3", masked),
            )
        ),
        counted(nearer),
    )
