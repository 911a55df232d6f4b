"""The accounting instrument itself: transcripts are replayed faithfully, and anything unsupported is a failure."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import shoal
import shoal.mechanisms.clusters
import shoal.tuning.private
from shoal.noise import discrete_laplace, exponential_choice

from .accounting import account, concentrated, loss, pure, total
from .laws import Gaussian, Laplace, Scores, Selection, Staircase
from .transcript import DivergenceError, Draw, Run, recording, replaying

TABLE = pd.DataFrame({"a": [1, 4, 9, 2], "b": [0, 7, 3, 3]})
NEIGHBOUR = pd.DataFrame({"a": [1, 4, 0, 2], "b": [0, 7, 10, 3]})
DOMAINS = {"a": (0, 10), "b": (0, 10)}


def protect(table: pd.DataFrame) -> shoal.Release:
    return shoal.protect(table, method="laplace", epsilon="1", domains=DOMAINS)


def test_a_replay_releases_the_same_table_of_other_records() -> None:
    found = account(protect, TABLE, NEIGHBOUR)
    first, second = found.results
    pd.testing.assert_frame_equal(first.data, second.data)
    assert first.statement == second.statement
    assert first.statement.publishable


def test_afterwards_the_package_draws_by_itself_again() -> None:
    before = shoal.mechanisms.clusters.discrete_laplace
    with recording():
        assert shoal.mechanisms.clusters.discrete_laplace is not before
    assert shoal.mechanisms.clusters.discrete_laplace is before is discrete_laplace
    with pytest.raises(ZeroDivisionError), recording():
        _ = 1 / 0
    assert shoal.mechanisms.clusters.discrete_laplace is before


def test_a_name_that_a_module_gets_after_the_search_is_replaced_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shoal.mechanisms.clusters, "another", discrete_laplace, raising=False)
        with recording():
            assert shoal.mechanisms.clusters.another is not discrete_laplace
        assert shoal.mechanisms.clusters.another is discrete_laplace
        # whatever a test puts in the place of a draw stays
        patch.setattr(shoal.mechanisms.clusters, "discrete_laplace", max)
        with recording():
            assert shoal.mechanisms.clusters.discrete_laplace is max
    with recording():
        assert shoal.mechanisms.clusters.discrete_laplace not in (max, discrete_laplace)


def sums(noise: int, private: int, times: int = 1, again: bool = False) -> None:
    drawn = shoal.mechanisms.clusters.discrete_laplace(2, noise)
    for _ in range(times):
        _ = np.full(noise, private) + drawn
    if again:
        sums(noise, private)


def test_other_draws_are_a_divergence() -> None:
    with recording() as mine:
        sums(2, 5)
    with replaying(mine.draws) as other:
        sums(2, 7)
    assert [draw.private for draw in other.draws] == [(7, 7)]
    assert mine.draws[0].outcome == other.draws[0].outcome
    with pytest.raises(DivergenceError, match="was recorded"), replaying(mine.draws):
        sums(3, 5)
    with pytest.raises(DivergenceError, match="where 1 were recorded"), replaying(mine.draws):
        pass
    with pytest.raises(DivergenceError, match="not recorded"), replaying(mine.draws):
        sums(2, 5, again=True)


def test_noise_that_is_not_added_once_to_a_private_number_is_a_divergence() -> None:
    with pytest.raises(DivergenceError, match="not seen"), recording():
        sums(2, 5, times=0)
    with pytest.raises(DivergenceError, match="twice"), recording():
        sums(2, 5, times=2)
    with pytest.raises(DivergenceError, match="multiply"), recording():
        _ = 2 * shoal.mechanisms.clusters.discrete_laplace(2, 3)
    with pytest.raises(DivergenceError, match="float"), recording():
        _ = 2.5 + shoal.mechanisms.clusters.discrete_laplace(2, 3)


def test_a_release_that_depends_on_more_than_the_draws_is_a_divergence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = shoal.mechanisms.clusters.mask_group

    def leaking(group, *rest):  # type: ignore[no-untyped-def]
        masked = honest(group, *rest)
        masked.summaries[0][0] += int(group.positions[0].sum())
        return masked

    monkeypatch.setattr("shoal.mechanisms.clusters.mask_group", leaking)
    # outcomes far out are cut off at the ends of the domain: what depends on them shows only now and then
    with pytest.raises(DivergenceError, match="other rows"):
        _ = [account(protect, TABLE, NEIGHBOUR, seed) for seed in range(10)]


def draw(law: object, private: object, outcome: object = 0) -> Draw:
    return Draw(law, private, outcome)


def test_pure_epsilon_of_single_draws() -> None:
    noise = Laplace((Fraction(2), Fraction(1, 2)))
    assert pure(draw(noise, (1, 1)), draw(noise, (4, 0))) == Fraction(3, 2) + 2
    # far out on one side of both numbers all of it is lost, between them a part
    assert loss([draw(noise, (1, 1), (-9, 9))], [draw(noise, (4, 0), (-9, 9))]) == Fraction(3, 2) + 2
    assert loss([draw(noise, (1, 1), (2, 1))], [draw(noise, (4, 0), (2, 1))]) == Fraction(1, 2) + 2
    steps = Staircase(3, Fraction(1), 1)
    assert pure(draw(steps, (0, 0)), draw(steps, (1, 4))) == 1 + 2
    assert loss([draw(steps, (0,), (-1,))], [draw(steps, (1,), (-1,))]) == 1


@pytest.mark.parametrize("rule", ["exponential", "permute-and-flip"])
def test_the_loss_of_a_choice_is_within_the_range_of_its_scores(rule: str) -> None:
    law = Selection(rule, 3)
    mine = Scores((1, 2), (Fraction(0), Fraction(1)))
    other = Scores((2, 1), (Fraction(1, 2), Fraction(0)))
    assert law.span(mine, other) == 1 + Fraction(1, 2)
    weights = sum(math.exp(law.log_probability(mine, candidate)) for candidate in range(3))
    assert weights == pytest.approx(1, abs=1e-12)
    losses = [abs(law.loss(mine, other, candidate)) for candidate in range(3)]
    assert max(losses) <= law.bound(mine, other)
    assert law.worst(mine, other) == 0
    if rule == "exponential":
        expected = 1 / 2 + math.log((2 * math.exp(-1 / 2) + 1) / (1 + 2 * math.exp(-1)))
        assert float(law.loss(mine, other, 0)) == pytest.approx(expected, abs=1e-14)


def test_the_same_draws_are_charged_in_the_currency_of_concentrated_privacy() -> None:
    noise = Gaussian((Fraction(4), Fraction(1)))
    choice = Selection("exponential", 2)
    mine = [draw(noise, (1, 1)), draw(choice, Scores((1, 1), (Fraction(0), Fraction(1))))]
    other = [draw(noise, (3, 0)), draw(choice, Scores((1, 1), (Fraction(1, 2), Fraction(0))))]
    # (2/2)²/2 + (1/1)²/2, and a range of 1/2 + 1
    assert [concentrated(a, b) for a, b in zip(mine, other, strict=True)] == [1, Fraction(9, 4) / 8]
    assert total(mine, other, concentrated) == 1 + Fraction(9, 32)
    # noise of a pure ε is ε²/2-concentrated
    laplace = Laplace((Fraction(2),))
    assert concentrated(draw(laplace, (0,)), draw(laplace, (1,))) == Fraction(1, 8)


def test_a_choice_among_runs_is_replayed_by_candidate_not_by_run() -> None:
    def chosen(active: Run, lengths: list[int], penalties: list[int]) -> int:
        choose = shoal.tuning.private.exponential_choice
        run = choose(np.array(lengths), np.array(penalties), Fraction(1, 2), active.source)
        return sum(lengths[:run]) + int(active.source.below(lengths[run], 1)[0])

    assert shoal.tuning.private.exponential_choice is exponential_choice
    for seed in range(20):
        with recording(seed) as mine:
            first = chosen(mine, [2, 0, 5], [3, 1, 0])
        with replaying(mine.draws) as other:
            assert chosen(other, [4, 3], [1, 2]) == first
        with pytest.raises(DivergenceError, match="recorded"), replaying(mine.draws) as other:
            chosen(other, [4, 4], [1, 2])
