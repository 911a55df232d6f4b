"""Verdicts on the propositions of sections 2 and 3 of the iDP paper, from facts about real clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from papers.idp.expectation import CORRECTED, level, metrics
from papers.idp.results import Measured
from papers.idp.settings import EPSILONS, NARROW, Cell
from papers.study import Claim
from papers.textbook import histogram_cells, local_loss, parallel_loss, sequential_loss
from papers.texts import judging
from shoal.errors import OptionError

judge = judging("idp/texts")

_ROUNDING = 1e-9


def claims(census: Measured, wine: Measured) -> Iterator[Claim]:
    """Theorems, propositions and what the text says around them."""
    yield from _definitions(census)
    yield from _dp_data_sets(census, wine)
    yield from _idp_data_sets(census, wine)


def _definitions(census: Measured) -> Iterator[Claim]:
    again = census.facts["reclustered 3"]
    both = sequential_loss(0.5, 1.0)
    yield judge("sequential-composition-budgets-add", [both <= 1.5 + _ROUNDING], both)
    rows, values = parallel_loss(0.5, "rows"), parallel_loss(0.5, "values")
    yield judge(
        "parallel-composition-disjoint-subsets",
        [rows <= 0.5 + _ROUNDING, values <= 0.5 + _ROUNDING],
        rows,
        values,
    )
    yield judge(
        "individual-dp-gives-subject", [again["unbounded"] == 0], again["unbounded"], again["replacements"]
    )
    local, least = census.clusters[3]["local_median"], census.clusters[3]["local_least"]
    inner = census.clusters[3]["inner_median"]
    yield judge("local-sensitivity-normally-much", [local < 0.5, inner < 0.5], local, least, inner)
    frozen, own = local_loss(0.5, frozen=True), local_loss(0.5, frozen=False)
    yield judge("laplace-noise-scale-ls", [frozen <= 0.5 + _ROUNDING], frozen, _finite(own))


def _dp_data_sets(census: Measured, wine: Measured) -> Iterator[Claim]:
    brute = _added(census.facts["brute force 3"], census.facts["brute force 15"])
    again = census.facts["reclustered 3"]
    yield _histograms(census)
    yield judge(
        "global-sensitivity-centroid-width", [brute["global"] == 0], brute["global"], brute["clusters"]
    )
    yield judge(
        "centroids-depend-disjoint-records",
        [brute["global"] == 0, again["moved_median"] <= len(census.data.columns)],
        again["moved_median"],
        census.clusters[3]["clusters"],
    )
    lower = [
        found.expected[Cell("ranking-dp", 1.5, e, k)][1] < found.expected[Cell("laplace", 1.5, e, 0)][1]
        for found in (census, wine)
        for e in EPSILONS
        for k in found.data.ks
    ]
    yield judge("microaggregation-less-noise-more", lower)
    yield _structure((census, wine))


def _histograms(census: Measured) -> Claim:
    cells = histogram_cells(census.values)
    used, records = cells[-1][1], len(census.values)
    return judge(
        "histograms-fail-many-attributes",
        [2 * cells[0][0] < records < 2 * cells[-1][0]],
        cells[0][0],
        cells[3][0],
        cells[-1][0],
        len(cells),
        used,
        2 * cells[0][0],
        2 * cells[3][0],
        2 * cells[-1][0],
        records,
    )


def _structure(sets: Sequence[Measured]) -> Claim:
    """Clusters of consecutive values beside clusters of as many records drawn at random, without noise."""
    k = 15
    gaps = {
        found.data.name: level(
            metrics(found.values, found.values.var(axis=0, ddof=1) * (1 - 1 / k))[CORRECTED]
        )
        - found.expected_level(Cell("ranking-dp", NARROW, math.inf, k), CORRECTED)
        for found in sets
    }
    return judge(
        "microaggregation-pays-because-follows",
        [gap > 0 for gap in gaps.values()],
        k,
        ", ".join(f"{name} {gap:.2f}" for name, gap in gaps.items()),
    )


def _bounds(sets: Sequence[Measured]) -> Claim:
    single = [int(((x := found.values) == x.max(axis=0)).sum(axis=0).tolist().count(1)) for found in sets]
    return judge(
        "domains-end-largest-value",
        [number > 0 for number in single],
        ", ".join(
            f"{number} of {len(found.data.columns)} attributes of {found.data.name}"
            for found, number in zip(sets, single, strict=True)
        ),
    )


def _least_size() -> Claim:
    accepted = [k for k in (1, 2, 3, 4) if _accepts(k)]
    return judge("k-3-least-size", [min(accepted) == 3], ", ".join(map(str, accepted)))


def _accepts(k: int) -> bool:
    import pyarrow as pa

    import shoal

    table = pa.table({"x": [1, 2, 3, 4, 6, 7, 8, 9]})
    try:
        shoal.protect(table, method="idp-cbls", epsilon=1, k=k, domains={"x": (0, 10)}, seed=0)
    except OptionError:
        return False
    return True


def _finite(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "without bound"


def _idp_data_sets(census: Measured, wine: Measured) -> Iterator[Claim]:
    brute = _added(census.facts["brute force 3"], census.facts["brute force 15"])
    tried = f"of {brute['clusters']:,} clusters of Census, {brute['tried']:,} replacements"
    facts = [*census.clusters.values(), *wine.clusters.values()]
    clusters = _sum(facts, "clusters")
    equal, touching = _sum(facts, "local_is_global"), _sum(facts, "touching")
    yield judge("local-sensitivity-smaller-equal", [equal == touching], equal, clusters, touching)
    yield judge("local-sensitivity-centroid-larger", [brute["local"] == 0], brute["local"], tried)
    yield judge("after-replacement-extremes-change", [brute["left_range"] == 0], brute["left_range"], tried)
    yield judge("local-sensitivity-centroid-without", [brute["inner"] == 0], brute["inner"], tried)
    above, wider = _sum(facts, "inner_above_local"), _sum(facts, "inner_above_global")
    yield judge("without-extremes-sensitivities-smaller", [above < clusters / 100], above, clusters, wider)
    moved = _sum(facts, "inner_moved_by_domain")
    yield judge("cluster-based-sensitivities-attributes", [moved == 0], moved, clusters)
    three, fifteen = census.facts["reclustered 3"], census.facts["reclustered 15"]
    yield judge(
        "idp-cbls-gives-epsilon",
        [brute["inner"] == 0, three["inner_above"] == 0],
        three["inner_above"],
        three["replacements"],
        three["inner_median"],
        three["inner_most"],
        fifteen["inner_median"],
        fifteen["inner_most"],
        three["local_most"],
    )
    yield _bounds((census, wine))
    yield _least_size()


def _added(*facts: Mapping[str, int]) -> dict[str, int]:
    return {key: sum(part[key] for part in facts) for key in facts[0]}


def _sum(facts: Sequence[Mapping[str, Any]], key: str) -> int:
    return sum(int(part[key]) for part in facts)
