"""The outcome of an audit: counts on test runs come in, a bound in words and in JSON leaves."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from shoal import summaries
from shoal.display import displayed, internal
from shoal.text import Message

CAVEATS = (Message("passing-is-no-proof"), Message("others-may-refute"))
CAVEAT = " ".join(map(str, CAVEATS))


@internal()
@dataclass(frozen=True, slots=True)
class Attack:
    """One event that was tested on runs of its own.

    Attributes:
        event: what was looked for in a release.
        hits, hit_runs: how often it was seen on the data set where it was expected more often.
        false_hits, other_runs: how often on the neighbour.
        bound: lower bound on ε from this event alone, at the corrected confidence.
    """

    event: str
    hits: int
    hit_runs: int
    false_hits: int
    other_runs: int
    bound: float


@displayed(summaries.of_audit)
@dataclass(frozen=True, slots=True)
class Audit:
    """A lower bound on the real ε of a mechanism, with its confidence.

    Attributes:
        epsilon, delta: the budget the method was run with; δ is 0 for a pure claim.
        view: what was compared, and what was held fixed.
        claimed: the statement of such a release claims this view.
        bound: with the stated confidence, the real ε of this view is at least this.
        runs: test runs, half of them on each data set; none of them was used to choose an attack.
        search_runs: runs used to choose neighbours and attacks.
        pairs: neighbouring data sets that were tried in the search.
        neighbours: the pair that was tested (a fact about the records).
        attacks: the events that were tested, best first.
    """

    method: str
    settings: dict[str, Any]
    model: str
    view: str
    epsilon: float
    claimed: bool
    bound: float
    confidence: float
    runs: int
    search_runs: int
    pairs: int
    neighbours: str
    attacks: tuple[Attack, ...]
    delta: float = 0.0

    @property
    def refuted(self) -> bool:
        """The real ε of this view is above the budget, whether or not that is claimed."""
        return self.bound > self.epsilon

    @property
    def alarm(self) -> bool:
        """A claim that the method makes is refuted."""
        return self.refuted and self.claimed

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        # rounded down, so that the text never says more than was found
        bound = math.floor(self.bound * 100) / 100
        if not self.refuted:
            return str(Message.of("audit-not-refuted", runs=self.runs, bound=bound))
        code = "audit-refutes-claim-with-delta" if self.delta else "audit-refutes-claim"
        return str(
            Message.of(
                code if self.claimed else "audit-refutes-no-claim",
                bound=bound,
                confidence=confidence_words(self.confidence),
                epsilon=self.epsilon,
                delta=self.delta,
            )
        )

    @property
    def sentence(self) -> str:
        """The outcome, what it is about, and what it does not mean."""
        lines = [Message.of("audit-outcome", method=self.method, view=self.view, verdict=self.verdict)]
        if not self.claimed:
            lines.append(Message.of("audit-agrees" if self.refuted else "view-not-claimed", model=self.model))
        return " ".join(map(str, (*lines, *CAVEATS)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **asdict(self),
            "attacks": [asdict(attack) for attack in self.attacks],
            "refuted": self.refuted,
            "verdict": self.verdict,
            "caveat": CAVEAT,
        }


def confidence_words(confidence: float) -> str:
    """99% for 0.99; confidences close to one by what is missing.

    >>> confidence_words(0.99), confidence_words(1 - 1e-7)
    ('99%', '(1 - 1e-07)')
    """
    missing = 1 - confidence
    return f"{100 * confidence:.6g}%" if missing >= 1e-4 else f"(1 - {missing:.1g})"
