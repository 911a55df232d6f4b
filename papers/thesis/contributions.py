"""The abstract, introduction, background and conclusions of the thesis, judged by the verdicts on its chapters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from papers import textbook
from papers.study import Claim, ClaimVerdict, Section, Study, tally
from papers.texts import judging, rows, untested, wording
from shoal.noise import Seeded

judge = judging("thesis/contributions")
heading = wording("thesis/contributions")

_SLACK = 1e-9


@dataclass(frozen=True)
class Summary:
    """A statement that sums up others: where it stands, what it says, and how those of its chapter begin."""

    where: str
    said: str
    chapter: str
    rests_on: Sequence[str]


SUMMARIES = tuple(Summary(**row) for row in rows("thesis/contributions")["summaries"])


def section(chapters: Mapping[str, Study]) -> Section:
    """What the thesis says of itself, by the verdicts on its chapters.

    Args:
        chapters: the studies by the names of their modules.
    """
    lines = ["| chapter | statements | verdicts |", "| --- | ---: | --- |"]
    for name, chapter in chapters.items():
        verdicts = tally(claim.verdict for claim in chapter.claims)
        lines.append(f"| {name.removeprefix('chapter')} | {len(chapter.claims)} | {verdicts} |")
    return Section(
        *heading("abstract-introduction-background-conclusions"),
        more="\n".join(lines),
        claims=[*(_judged(one, chapters[one.chapter]) for one in SUMMARIES), *_background()],
    )


def _judged(one: Summary, chapter: Study) -> Claim:
    found = [_claim(chapter, beginning) for beginning in one.rests_on]
    return Claim(
        one.where,
        one.said,
        f"Rests on {len(found)} statements of chapter {one.chapter.removeprefix('chapter')}: "
        + "; ".join(f"{claim.where} {claim.verdict}" for claim in found)
        + ".",
        combined([claim.verdict for claim in found]),
    )


def _claim(chapter: Study, beginning: str) -> Claim:
    (found,) = [claim for claim in chapter.claims if claim.said.startswith(beginning)]
    return found


def combined(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The verdict on a statement that rests on others.

    >>> combined(["holds", "holds"]), combined(["holds", "fails"]), combined(["fails", "fails"])
    ('holds', 'holds partly', 'fails')
    """
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return "holds partly"


def largest_laplace_loss(components: int, epsilon: float, tries: int) -> float:
    """The largest loss of Laplace noise of scale Δf/ε on every component, over random moves of L1-length Δf = 1."""
    source = Seeded(components)
    worst = 0.0
    for _ in range(tries):
        move = source.below(1000, components) + 1.0
        move = move / move.sum() * np.where(source.below(2, components) > 0, 1, -1)
        x = (source.below(4001, components) - 2000) / 1000
        worst = max(worst, float(epsilon * np.abs(np.abs(x + move) - np.abs(x)).sum()))
    return worst


def reconstructed(records: int, counts: int, error: int) -> float:
    """Share of bits that least squares finds from counts of random subsets, each off by a uniform whole number."""
    source = Seeded(9)
    bits = source.below(2, records)
    subsets = source.below(2, counts * records).reshape(counts, records)
    answers = subsets @ bits + source.below(2 * error + 1, counts) - error
    found = np.linalg.lstsq(subsets.astype(np.float64), answers.astype(np.float64), rcond=None)[0]
    return float(((found > 0.5) == (bits > 0)).mean())


def _counts(copies: int) -> tuple[textbook.Floats, textbook.Floats]:
    """Chances of a noisy count at ε = 0.5 if a record and its copies are all 0, and if they are all 1."""
    low, high = (textbook.counted_privately(ones, 4, 0.5) for ones in (0, 1 + copies))
    return low, high


def _background() -> Iterator[Claim]:
    losses = {m: largest_laplace_loss(m, 1.0, 2000) for m in (1, 2, 5, 20)}
    yield judge(
        "laplace-noise-scale-f",
        (loss <= 1 + _SLACK for loss in losses.values()),
        ", ".join(f"{loss:.4f} ({m})" for m, loss in losses.items()),
    )
    near, far = (reconstructed(64, 256, error) for error in (1, 64))
    yield judge("accurate-answers-sufficiently-many", [near > 0.95], near, far)
    alone, copied = (textbook.loss(*_counts(others)) for others in (0, 1))
    yield judge(
        "epsilon-differential-privacy-limits", [alone <= 0.5 + _SLACK, copied <= 0.5 + _SLACK], alone, copied
    )
    yield from untested("thesis/contributions")
