"""Verdicts on the claims of section 4.2 of the iDP paper, from F-measures of forests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from papers.idp.expectation import PRINTED
from papers.idp.results import Measured
from papers.idp.settings import EPSILONS, NARROW, NOISELESS, WIDE, Cell
from papers.idp.verdicts import ERRORS, Answer, Loss, average, less, loss_of, tally
from papers.study import Claim, Number, counted, judged
from papers.texts import judging, rows

judge = judging("idp/texts")

# what the text says the best setting loses, in per cent, by ε
SAID: Mapping[str, Sequence[str]] = rows("idp/printed")["losses"]
_PAPER_RUNS = 10


class Losses:
    """Losses of all settings against the original."""

    def __init__(self, found: Measured) -> None:
        self.found, self.ks = found, found.data.learning_ks
        self.upper = found.bounds["original"]["f"]
        self.original = self._of(found.bounds["original"])

    def at(self, method: str, epsilon: float, k: int = 0, alpha: float = NARROW) -> Loss:
        return self._of(self.found.scores[Cell(method, alpha, epsilon, k)])

    def best(self, method: str, epsilon: float) -> tuple[Loss, int]:
        return min(((self.at(method, epsilon, k), k) for k in self.ks), key=lambda pair: pair[0].value)

    def _of(self, scores: object) -> Loss:
        return loss_of(scores, self.upper, self.found.effort.learning_runs)  # type: ignore[arg-type]


def printed_losses(found: Measured) -> list[Number]:
    """The percentages of section 4.2.1; print averages 10 runs, so its error is taken to be like ours."""
    losses, runs = Losses(found), found.effort.learning_runs
    numbers = []
    for method, name in (("idp-ls", "iDP-LS"), ("idp-cbls", "iDP-CBLS")):
        for epsilon, said in zip(EPSILONS, SAID[method], strict=True):
            loss, k = losses.best(method, epsilon)
            others = "; ".join(
                f"k = {size}: {losses.at(method, epsilon, size)}" for size in losses.ks if size != k
            )
            numbers.append(
                Number(
                    "section 4.2.1",
                    f"{name}, ε = {epsilon:g}: loss of F at the best k, in %",
                    said,
                    100 * loss.value,
                    100 * loss.error * math.sqrt(1 + runs / _PAPER_RUNS),
                    why=f"ours is best at k = {k}; which k print means is not said ({others})",
                )
            )
    return numbers


def claims(found: Measured) -> Iterator[Claim]:
    """Every statement about Figure 5 or 6."""
    losses = Losses(found)
    census = found.data.name == "Census"
    own = _census(losses) if census else _wine(losses)
    where = f"section 4.2.{1 if census else 2}, {found.data.name}"
    for claim in (*_both(losses), *own):
        unclear = " (the runs cannot tell)" if claim.verdict == "not tested" else ""
        yield replace(claim, where=where, found=claim.found + unclear)
    if census:
        yield judge("random-forests-fast-accurate", "not tested")


def _both(losses: Losses) -> Iterator[Claim]:
    ks = losses.ks
    cells = [Cell(m, NARROW, e, k) for m in ("idp-ls", "idp-cbls") for e in EPSILONS for k in ks]
    rank = rank_correlation(
        [losses.found.expected_level(cell, PRINTED) for cell in cells],
        [losses.at(cell.method, cell.epsilon, cell.k).value for cell in cells],
    )
    yield judge("what-forests-lose-coherent", [rank > 0.3, rank > 0.7], len(cells), rank)
    pairs = [(losses.at("idp-ls", e, ks[0]), losses.at("idp-ls", e, ks[-1])) for e in EPSILONS]
    yield judge(
        "idp-ls-improves-k",
        tally([less(b, a) for a, b in pairs]),
        ks[0],
        ks[-1],
        "; ".join(f"{a} to {b}" for a, b in pairs),
    )
    pairs = [(losses.best("idp-cbls", e)[0], losses.best("idp-ls", e)[0]) for e in EPSILONS]
    yield judge(
        "idp-cbls-much-better",
        tally([less(a, b) for a, b in pairs]),
        "; ".join(f"{a} against {b}" for a, b in pairs),
    )
    pairs = [(losses.best("idp-cbls", e)[0], losses.at("idp-cbls", e, ks[-1])) for e in EPSILONS]
    yield judge(
        "idp-cbls-degrades-large",
        tally([less(a, b) for a, b in pairs]),
        ks[-1],
        "; ".join(f"{a} to {b}" for a, b in pairs),
    )
    bare = losses.at("idp-cbls", NOISELESS, ks[-1])
    late = [losses.at("idp-cbls", e, ks[-1]) for e in EPSILONS]
    # where nothing is lost there is nothing to explain
    lossy = [item for item in late if less(losses.original, item) == "yes"]
    yield judge(
        "idp-cbls-degrades-large-k",
        judged([bare.value > item.value / 2 for item in lossy]) if lossy else "not tested",
        ks[-1],
        bare,
        ", ".join(map(str, late)),
    )


def _census(losses: Losses) -> Iterator[Claim]:
    ks = losses.ks
    wide_ks = losses.found.data.wide_ks
    pairs = [
        (
            average([losses.at("idp-ls", e, k) for k in wide_ks]),
            average([losses.at("idp-ls", e, k, WIDE) for k in wide_ks]),
        )
        for e in EPSILONS[1:]
    ]
    yield judge(
        "idp-ls-better-narrower",
        tally([less(a, b) for a, b in pairs]),
        ", ".join(map(str, wide_ks)),
        "; ".join(f"{a} and {b}" for a, b in pairs),
    )
    late = [[losses.at("idp-ls", e, k) for k in ks if k >= 50] for e in EPSILONS[1:]]
    yield judge(
        "idp-ls-quite-stable",
        tally([_stable(row) for row in late]),
        "; ".join(", ".join(map(str, row)) for row in late),
    )
    numbers = printed_losses(losses.found)
    for place, (name, said) in enumerate(
        (
            ("iDP-LS", "about 20%, 10%, 5% worse than the original"),
            ("iDP-CBLS", "10% and 3% worse, then identical"),
        )
    ):
        rows = numbers[3 * place : 3 * place + 3]
        yield judge(
            "best-epsilon-0-01",
            tally([_as_said(n) for n in rows]),
            name,
            said,
            ", ".join(f"{n.found:.1f}% ± {n.error:.1f}%" for n in rows),
        )
    one, other = losses.best("idp-cbls", 0.01)[0], losses.best("idp-ls", 0.1)[0]
    close = abs(one.value - other.value) <= max(0.02, ERRORS * math.hypot(one.error, other.error))
    yield judge(
        "idp-cbls-epsilon-0-01",
        [close, close or one.value < other.value],
        one,
        other,
        "" if close or one.value > other.value else ": it is better",
    )


def _wine(losses: Losses) -> Iterator[Claim]:
    found, ks = losses.found, losses.ks
    low, high = found.bounds["classes"].values()
    yield judge(
        "class-excellent-3-5",
        [low > high, abs(low / high - 3.5) <= 0.05],
        low,
        high,
        low / high,
        low / high - 1,
    )
    names = list(losses.upper)
    cells = [Cell(m, NARROW, e, k) for m in ("idp-ls", "idp-cbls") for e in EPSILONS for k in ks]
    f = [(found.scores[c]["f"][names[0]] or 0.0, found.scores[c]["f"][names[1]] or 0.0) for c in cells]
    lower = [b < a for a, b in [*f, (losses.upper[names[0]], losses.upper[names[1]])]]
    yield judge("excellent-lower-f-measure", lower, losses.upper[names[0]], losses.upper[names[1]])
    even = found.facts["balanced"]["f"]
    gaps = [losses.upper[names[0]] - losses.upper[names[1]], even[names[0]] - even[names[1]]]
    yield judge(
        "excellent-lower-f-measure-because",
        [abs(gaps[1]) < gaps[0], abs(gaps[1]) < gaps[0] / 4],
        even[names[0]],
        even[names[1]],
        gaps[1],
        gaps[0],
    )
    for epsilon in EPSILONS[1:]:
        own = [losses.at("idp-cbls", epsilon, k) for k in ks]
        words = "loss by k: " + ", ".join(map(str, own))
        least = min(own, key=lambda item: item.value)
        reached = least.value <= 0.01 or less(losses.original, least) == "unclear"
        yield judge("idp-cbls-epsilon-reaches", [reached], epsilon, words)
        above = [item.value < 0 for item in own]
        beyond = [less(item, losses.original) == "yes" for item in own]
        yield judge(
            "idp-cbls-epsilon-slightly",
            [any(above), any(beyond)],
            epsilon,
            words,
            counted(above),
            losses.original.error,
            ERRORS,
            counted(beyond),
        )
    noisy = average([losses.at("idp-cbls", 1.0, k) for k in ks])
    bare = average([losses.at("idp-cbls", NOISELESS, k) for k in ks])
    yield judge("little-noise-training-raise", tally([less(noisy, bare)]), noisy, bare)


def _as_said(number: Number) -> Answer:
    """An error of more than five points leaves open what a percentage is."""
    if number.verdict == "differs":
        return "no"
    return "yes" if number.error <= 5 else "unclear"


def _stable(row: list[Loss]) -> Answer:
    low, high = min(row, key=lambda item: item.value), max(row, key=lambda item: item.value)
    if less(low, high) == "yes":
        return "no"
    return "yes" if max(item.error for item in row) < 0.05 else "unclear"


def rank_correlation(a: list[float], b: list[float]) -> float:
    from scipy.stats import rankdata

    if len(set(a)) == 1 or len(set(b)) == 1:
        return 0.0
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
