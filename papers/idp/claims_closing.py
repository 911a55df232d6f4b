"""Verdicts on the claims in the abstract, introduction and conclusions of the iDP paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from papers.idp.claims_learning import Losses, rank_correlation
from papers.idp.expectation import CORRECTED, PRINTED, level, of_column_means
from papers.idp.results import APART, TOGETHER, Measured
from papers.idp.settings import EPSILONS, LARGER, METHODS, NARROW, Cell
from papers.idp.verdicts import less, tally
from papers.study import Claim, counted, judged
from papers.texts import judging

judge = judging("idp/texts")

Sets = Sequence[Measured]
# an accuracy that is "not significantly degraded"
_SMALL_LOSS = 0.05


def claims(sets: Sets) -> Iterator[Claim]:
    yield _tendencies(sets)
    yield from _abstract(sets)
    yield from _introduction(sets)
    yield from _conclusions(sets)


def _tendencies(sets: Sets) -> Claim:
    """Losses of both tables at the least and the largest k, by method and ε."""
    by_table = [
        [
            losses.at(method, e, k).value
            for losses in [Losses(found)]
            for method in ("idp-ls", "idp-cbls")
            for e in EPSILONS
            for k in (losses.ks[0], losses.ks[-1])
        ]
        for found in sets
    ]
    rank = rank_correlation(by_table[0], by_table[1])
    return judge("tendencies-wine-similar-those", [rank > 0.3, rank > 0.7], len(by_table[0]), rank)


def _abstract(sets: Sets) -> Iterator[Claim]:
    gaps = [_plain(found, e, CORRECTED) - _means(found) for found in sets for e in EPSILONS]
    yield judge("dp-applied-data-releases", [gap > 0 for gap in gaps], min(gaps), max(gaps))
    yield judge("practice-large-epsilon-used", "not tested")
    lower = [
        found.expected_level(Cell(m, NARROW, e, k), PRINTED) < _plain(found, e, PRINTED)
        for found in sets
        for m in ("idp-ls", "idp-cbls")
        for e in EPSILONS
        for k in found.data.ks
    ]
    yield judge("individual-dp-distorts-data", lower)
    again = sets[0].facts["reclustered 3"]
    yield judge(
        "individual-dp-protects-subjects",
        [again["unbounded"] == 0],
        again["unbounded"],
        again["replacements"],
    )
    yield judge(
        "microaggregation-reduces-sensitivity-change",
        [found.facts[f"brute force {k}"]["global"] == 0 for found in sets[:1] for k in (3, 15)],
    )
    medians = [
        (found.data.name, facts["local_median"], facts["inner_median"])
        for found in sets
        for facts in [found.clusters[15]]
    ]
    yield judge(
        "sensitivities-both-strategies-significantly",
        [ratio < 0.5 for _, *ratios in medians for ratio in ratios],
        "; ".join(f"{name} {local:.2f} and {inner:.4f}" for name, local, inner in medians),
    )
    gain = _gains(sets)
    yield judge(
        "individual-dp-gives-significantly",
        [value > 0.3 for values in gain for value in values],
        _by_set(sets, gain),
    )
    yield _small_epsilon(
        "abstract",
        "strong privacy (small ε) without significant loss of accuracy in data analysis",
        sets,
        EPSILONS[:2],
    )


def _introduction(sets: Sets) -> Iterator[Claim]:
    rows = [found.facts["rows apart"] for found in sets]
    yield judge(
        "idp-release-never-protects",
        [
            all(part["least_in_column"] >= APART.k for part in rows),
            all(part["least"] >= APART.k for part in rows),
        ],
        min(part["least_in_column"] for part in rows),
        ", ".join(
            f"{part['alone']:,} of {part['rows']:,} ({found.data.name})"
            for found, part in zip(sets, rows, strict=True)
        ),
        APART.k,
        APART.epsilon,
    )
    better = [
        found.best("idp-cbls", e, PRINTED)[0]
        < min(_plain(found, e, PRINTED), found.best("ranking-dp", e, PRINTED)[0])
        for found in sets
        for e in EPSILONS[:2]
    ]
    yield judge("small-epsilon-individual-dp", better)


def _conclusions(sets: Sets) -> Iterator[Claim]:
    yield judge("guarantees-dp-only-hold", "not tested")
    least = [
        found.expected_level(Cell("idp-cbls", NARROW, e, k), PRINTED)
        < min(found.expected_level(Cell(m, NARROW, e, k), PRINTED) for m in ("ranking-dp", "idp-ls"))
        for found in sets
        for e in EPSILONS
        for k in found.data.ks
    ]
    yield judge("both-strategies-cluster-based", least)
    gain = _gains(sets)
    yield judge(
        "idp-cbls-improves-plain", [value >= 2 for values in gain for value in values], _by_set(sets, gain)
    )
    yield _rivals(sets)
    yield _small_epsilon(
        "conclusions",
        "iDP-CBLS reconciles small ε (below 0.1) with the accuracy that releases need",
        sets,
        EPSILONS[:1],
    )
    reached, words = [], []
    for found in sets:
        losses = Losses(found)
        for e in EPSILONS[1:]:
            loss, k = losses.best("idp-cbls", e)
            reached.append(loss.value <= 0.01 or less(losses.original, loss) == "unclear")
            words.append(f"{found.data.name}, ε = {e:g}: {loss} (k = {k})")
    yield judge("larger-epsilon-idp-cbls", reached, "; ".join(words))
    answers, words = [], []
    for found in sets:
        losses = Losses(found)
        own, plain = losses.best("idp-cbls", EPSILONS[0])[0], losses.at("laplace", LARGER[0])
        answers.append(less(own, plain))
        words.append(f"{found.data.name} {own} against {plain}")
    yield judge("idp-cbls-significantly-better", tally(answers), "; ".join(words))
    yield from _multivariate(sets)


def _multivariate(sets: Sets) -> Iterator[Claim]:
    more, words = [], []
    for found in sets:
        together = [found.level(Cell("idp-cbls", NARROW, e, 15, "mdav"), CORRECTED) for e in EPSILONS]
        apart = [found.level(Cell("idp-cbls", NARROW, e, 15), CORRECTED) for e in EPSILONS]
        more += [a > b for a, b in zip(together, apart, strict=True)]
        words.append(
            f"{found.data.name} "
            + ", ".join(f"{a:.2f} against {b:.2f}" for a, b in zip(together, apart, strict=True))
        )
    yield judge("multivariate-microaggregation-might-lose", more, TOGETHER.k, "; ".join(words))
    least = [found.facts["rows together"]["least"] for found in sets]
    yield judge(
        "multivariate-microaggregation-might-guarantee",
        [value >= TOGETHER.k for value in least],
        " and ".join(map(str, least)),
        TOGETHER.k,
        APART.epsilon,
    )


def _small_epsilon(where: str, said: str, sets: Sets, epsilons: Sequence[float]) -> Claim:
    good, words = [], []
    for found in sets:
        losses = Losses(found)
        for e in epsilons:
            loss, k = losses.best("idp-cbls", e)
            best, best_k = found.best("idp-cbls", e, CORRECTED)
            good += [loss.value <= _SMALL_LOSS, best < _means(found)]
            words.append(
                f"{found.data.name}, ε = {e:g}: loss of F {loss} (k = {k}), mean SSE {best:.2f} (k = "
                f"{best_k}), of column means "
                f"{_means(found):.2f}"
            )
    return Claim(where, said, "iDP-CBLS at its best k, corrected metric: " + "; ".join(words), judged(good))


def _rivals(sets: Sets) -> Claim:
    plain, clustered, words = [], [], []
    for found in sets:
        for e in EPSILONS:
            own = found.best("idp-cbls", e, PRINTED)[0]
            for larger in (10 * e, 100 * e):
                plain.append(own <= _plain(found, _near(larger), PRINTED))
                clustered.append(own <= found.best("ranking-dp", _near(larger), PRINTED)[0])
        words.append(
            f"{found.data.name} at ε = 0.1: {found.best('idp-cbls', 0.1, PRINTED)[0]:.2f}; at ε = 10 DP "
            f"{_plain(found, 10.0, PRINTED):.2f}, DP-UM {found.best('ranking-dp', 10.0, PRINTED)[0]:.2f}"
        )
    return judge(
        "idp-cbls-rivals-dp",
        [*plain, *clustered],
        METHODS["laplace"],
        counted(plain),
        METHODS["ranking-dp"],
        counted(clustered),
        "; ".join(words),
    )


def _near(epsilon: float) -> float:
    """The measured ε that a product stands for."""
    return min((*EPSILONS, *LARGER), key=lambda known: abs(known / epsilon - 1))


def _plain(found: Measured, epsilon: float, metric: int) -> float:
    return found.expected_level(Cell("laplace", NARROW, epsilon, 0), metric)


def _means(found: Measured) -> float:
    return level(of_column_means(found.values)[CORRECTED])


def _gains(sets: Sets) -> list[list[float]]:
    """Orders of magnitude of SSE by which iDP-CBLS is below DP, by table and ε."""
    return [
        [_plain(found, e, PRINTED) - found.best("idp-cbls", e, PRINTED)[0] for e in EPSILONS]
        for found in sets
    ]


def _by_set(sets: Sets, values: Sequence[Sequence[float]]) -> str:
    return "; ".join(
        f"{found.data.name} {', '.join(f'{value:.2f}' for value in row)}"
        for found, row in zip(sets, values, strict=True)
    )
