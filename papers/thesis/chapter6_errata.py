"""What is printed wrong in chapter 6: print itself and measurements come in, errata leave."""

from __future__ import annotations

from collections.abc import Mapping

from papers.study import Erratum, counted
from papers.thesis import chapter6_print as printed
from papers.thesis import chapter6_small as small
from papers.thesis.chapter6_claims_theory import DEFINITION, PRIVACY
from papers.thesis.chapter6_replaced import Replaced
from papers.thesis.chapter6_runs import EPSILONS, Found

TESTS = "`tests/papers/test_thesis6.py`"


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
    return [
        Erratum(
            "Proposition 6",
            "MDAV with a distance that is consistent with a total order is insensitive.",
            f"Not always if n is no multiple of k: {values} with k = {k} gives {before}; {values[place]} becomes "
            f"{becomes}: {after}. "
            "Right if it is fixed which end is taken first.",
            f'{TESTS}; `order="single"` fixes the end',
        ),
        Erratum(
            "Proposition 7",
            "Insensitive if and only if the orders are a fixed sequence of total orders.",
            "If, not only if.",
            TESTS,
        ),
        Erratum(
            "Proposition 8",
            "Δ(I_r∘M) ≤ Δ(I_r)/k for any microaggregation M.",
            "It holds for the c-th centroid of insensitive clusters. The row of a record follows the record "
            "into another "
            f"cluster: up to {most.own:.1f}·W/k on Census.",
            f"{TESTS}; the row of Proposition 8 above",
        ),
        Erratum(
            "6.3, Algorithm 6.2",
            "Rows compose in parallel, so noise of scale W/(k·ε) in each gives ε-differential privacy.",
            "Rows of a cluster move together, and one record can change all clusters: all rows, clusters and "
            "attributes add "
            f"up. ε must be divided among m·⌊n/k⌋ centroids, with one draw each. On Census up to {most.clusters} of "
            f"{most.of} clusters change; the published noise loses up to {most.loss:.0f}ε.",
            f"{PRIVACY}, {DEFINITION}; [proof](../proofs/insensitive.md#5-the-published-composition-is-not-dp)",
        ),
        Erratum(
            "6.3.3",
            "The next corner is the one that differs most from the last ones.",
            "The printed numbers need the sequence 0000, 1111, 0001, 1110, 0010, ... (FEDTAX first): with it "
            f"{counted(met(census, 'insensitive'))} variances of Table 6.5 come out, with the rule of the text "
            f"{counted(met(census, 'hamming'))}.",
            TESTS,
        ),
        Erratum(
            "6.4.1",
            "Boundaries of the domain at 0 and 1.5 times the largest value.",
            "Noise and clipping use them; the corners behind the printed numbers are at the largest value "
            f"itself: with "
            f"corners at 1.5 times it, {counted(met(census, 'wide'))} variances come out. Either is taken from "
            f"the data, so "
            "neither is differentially private: boundaries must be public.",
            TESTS,
        ),
        Erratum(
            "6.3.4, Proposition 9",
            "Sensitivity of the exponential mechanism: δ of the two boundaries b and t.",
            "The diameter of the domain. The most marginal value and the one farthest from it need not be the "
            "farthest "
            f"pair: {tree.width:.3f} against {tree.diameter:.3f} in a tree of seven values, where one draw at "
            f"ε = 1 loses "
            f"{small.concept_loss(tree, tree.width, ['c'] * 50, ['c'] * 49 + ['f']):.3f}. Boundaries are those "
            f"of the public "
            "domain, never of the sample.",
            f"`tests/taxonomy/test_taxonomy_distance.py`, {TESTS}",
        ),
        Erratum(
            "6.4.2",
            "Score = SSE_f / RL_f.",
            f"Score = SSE_f · RL_f: so {counted(scores_by(product=True))} printed Scores follow from their "
            f"printed factors, as a "
            f"quotient {counted(scores_by(product=False))}.",
            TESTS,
        ),
        Erratum(
            "Table 6.3",
            "SSE₀ "
            + ", ".join(printed.TABLE_6_3[k].split()[0] for k in printed.KS[1:])
            + " for k = 5, 15, 30.",
            "Ten times as much: its SSE_f at ε = 10 and Table 6.4 give "
            + ", ".join(f"{value:.0f}" for value in base_errors().values())
            + ".",
            TESTS,
        ),
        Erratum(
            "6.4.3",
            "RL on Adult at ε = 1 rises from 0.02% at k = 1.",
            f"From 0.002%: Table 6.4 has {at_one[1]}%, and {at_one[1]}/"
            f"{at_one[6]} is the 0.05% that the text names for larger k.",
            "Table 6.4 itself",
        ),
        Erratum(
            "6.4.3",
            "Scores against k = 1 exceed 1 for k ≥ 15 and ε ≥ 1.",
            f"Not on Adult at ε = 1: Table 6.4 has {at_one[7]} and {at_one[10]}.",
            "Table 6.4 itself",
        ),
    ]
