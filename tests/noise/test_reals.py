"""Reals with digits on demand: comparisons as for ideal numbers, exponential reals exact by enumeration."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.noise import Seeded, Source, SystemEntropy, exact
from shoal.noise.exact import Uniforms, below, exponentials, joined

from .decision_tree import Branching, enumerate_paths, exp_minus


class Scripted(Source):
    """Hands out words in a given order."""

    reproducible = True

    def __init__(self, words: list[int]) -> None:
        self.left = words

    def words(self, n: int) -> NDArray[np.uint64]:
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken, dtype=np.uint64)


def test_a_tie_is_decided_by_further_words_which_are_kept() -> None:
    left, right = Uniforms(2, Scripted([5, 5, 1, 8])), Uniforms(2, Scripted([5, 9, 2, 8]))
    assert below(left, right).tolist() == [True, True]
    assert left.leading(2) == [5 << 64 | 1, 5 << 64 | 8]
    assert right.leading(2) == [5 << 64 | 2, 9 << 64 | 8]


def test_more_words_only_add_digits() -> None:
    some = Uniforms(50, Seeded(1))
    short, long = some.leading(1), some.leading(3)
    assert [value >> 128 for value in long] == short
    picked = some.picked(np.array([3, 7]))
    assert picked.leading(3) == [long[3], long[7]]
    both = joined([picked, Uniforms(1, Seeded(2))])
    assert both.n == 3
    assert both.leading(3)[:2] == [long[3], long[7]]


def test_the_decision_tree_of_a_proposal_brackets_the_true_probabilities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact, "WORD", 1)

    def propose(source: Branching) -> int | None:
        """The quarter in which a kept real lies; the whole part is enumerated by its own test."""
        proposed = Uniforms(1, source)
        return proposed.leading(2)[0] if exact._breaks_odd(proposed)[0] else None

    outcomes, undecided = enumerate_paths(propose, 6e-6)
    assert undecided < Fraction(1, 30)
    for quarter in range(4):
        share = exp_minus(Fraction(quarter, 4)) - exp_minus(Fraction(quarter + 1, 4))
        assert outcomes[quarter] <= share <= outcomes[quarter] + undecided
        assert outcomes[quarter] + undecided < 1.2 * share


def values(found: Any) -> NDArray[np.float64]:
    return np.asarray(found.whole + np.array(found.rest.leading(1), dtype=np.float64) / 2**64)


def test_exponential_reals_follow_their_law_and_a_scale_five_percent_off_is_rejected() -> None:
    drawn = values(exponentials(140_000, SystemEntropy()))
    assert stats.kstest(drawn, "expon").pvalue > 1e-9
    assert stats.kstest(drawn, "expon", args=(0, 1.05)).pvalue < 1e-9
    assert stats.kstest(drawn, "gamma", args=(1.05,)).pvalue < 1e-9


def test_a_total_encloses_the_sum() -> None:
    found = exponentials(40, Seeded(3))
    for words in (1, 2):
        low, missing = found.total(words)
        finer, _ = found.total(4)
        assert Fraction(low, 2 ** (64 * words)) <= Fraction(finer, 2**256)
        assert Fraction(finer, 2**256) <= Fraction(low + missing, 2 ** (64 * words))
