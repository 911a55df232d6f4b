"""Errata of chapter 6, from the published values and our measurements."""

from __future__ import annotations

from collections.abc import Mapping

from papers.study import Erratum, counted
from papers.texts import printed_errors
from papers.thesis import chapter6_print as printed
from papers.thesis import chapter6_small as small
from papers.thesis.chapter6_replaced import Replaced
from papers.thesis.chapter6_runs import EPSILONS, Found


def scores_by(product: bool) -> list[bool]:
    """Whether each printed Score is the product of its printed factors, or their quotient, within their rounding."""
    hits = []
    for table in (printed.TABLE_6_1, printed.TABLE_6_2, printed.TABLE_6_3, printed.TABLE_6_4):
        for line in table.values():
            cells = line.split()[2:]
            for at in range(0, len(cells), 3):
                (low, high), (least, most), (under, over) = (_rounded(cell) for cell in cells[at : at + 3])
                bottom, top = (low * least, high * most) if product else (low / most, high / least)
                hits.append(bottom <= over and under <= top)
    return hits


def _rounded(text: str) -> tuple[float, float]:
    """What a printed number may stand for.

    >>> _rounded("0.25")
    (0.245, 0.255)
    """
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return float(text) - half, float(text) + half


def base_errors() -> dict[int, float]:
    """SSE₀ of Table 6.3 that its own SSE_f at ε = 10 and Table 6.4 stand for, by k."""
    plain = printed.TABLE_6_4["10"].split()
    return {
        k: float(printed.TABLE_6_3[k].split()[11]) ** 2 * float(plain[0]) / float(plain[2 + 3 * place]) ** 2
        for place, k in enumerate(printed.KS[1:])
    }


def met(census: Found, name: str) -> list[bool]:
    """Which variances of insensitive clusters in Table 6.5 come out with clusters of this name."""
    return [
        abs(
            abs(census.alone[name][k].variations[j])
            - float(printed.TABLE_6_5[printed.STATISTICS[j], k][len(EPSILONS)])
        )
        <= 0.5001e-4
        for k in printed.KS
        for j in range(4, 8)
    ]


def errata(census: Found, replaced: Mapping[str, Replaced]) -> list[Erratum]:
    """In the order of the chapter."""
    values, place, becomes, k = small.ONE_ORDER
    before, after = (
        " and ".join("{" + ", ".join(str(value) for (value,) in sorted(one)) + "}" for one in clusters)
        for clusters in small.one_order_example()
    )
    most = replaced["insensitive"]
    tree = small.lopsided()
    at_one = printed.TABLE_6_4["1"].split()
    return printed_errors(
        "thesis/chapter6",
        {
            "proposition-6-mdav-distance": (values, k, before, values[place], becomes, after),
            "proposition-8-i-r": (most.own,),
            "6-3-algorithm-6": (most.clusters, most.of, most.loss),
            "6-3-3-next": (counted(met(census, "insensitive")), counted(met(census, "hamming"))),
            "6-4-1-boundaries": (counted(met(census, "wide")),),
            "6-3-4-proposition": (
                tree.width,
                tree.diameter,
                small.concept_loss(tree, tree.width, ["c"] * 50, ["c"] * 49 + ["f"]),
            ),
            "6-4-2-score": (counted(scores_by(product=True)), counted(scores_by(product=False))),
            "table-6-3-sse": (
                ", ".join(printed.TABLE_6_3[k].split()[0] for k in printed.KS[1:]),
                ", ".join(f"{value:.0f}" for value in base_errors().values()),
            ),
            "6-4-3-rl": (at_one[1], at_one[1], at_one[6]),
            "6-4-3-scores": (at_one[7], at_one[10]),
        },
    )
