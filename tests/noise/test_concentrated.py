"""Budgets in ρ: the conversion beside OpenDP's, always on the safe side, and what choices and several rows cost."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import OptionError
from shoal.noise import choice_rate, choice_rho, epsilon_from, parse_delta, pure_rho, rho_from

GRID = list(itertools.product(["0.01", "0.1", "1", "3", "10", "100"], ["1e-3", "1e-6", "1e-12"]))


def opendp_epsilon(rho: float, delta: float) -> float:
    """What OpenDP says that ρ-zCDP implies."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=1.0)
    approximate = dp.c.make_zCDP_to_approxDP(gaussian)
    return float(approximate.map(math.sqrt(2 * rho)).epsilon(delta))


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_the_conversion_agrees_with_opendp(epsilon: str, delta: str) -> None:
    rho = rho_from(Fraction(epsilon), Fraction(delta))
    assert opendp_epsilon(float(rho), float(delta)) == pytest.approx(float(epsilon), rel=1e-6)
    assert opendp_epsilon(1.01 * float(rho), float(delta)) > float(epsilon) * 1.001


def log_delta(alpha: Decimal, rho: Fraction, epsilon: Fraction) -> Decimal:
    """The logarithm of the δ of Proposition 12 at one order, to 50 digits."""
    with localcontext() as context:
        context.prec = 50
        rho_, epsilon_ = (Decimal(x.numerator) / Decimal(x.denominator) for x in (rho, epsilon))
        return (alpha - 1) * (alpha * rho_ - epsilon_) + alpha * (1 - 1 / alpha).ln() - (alpha - 1).ln()


@settings(deadline=None, max_examples=20)
@given(
    epsilon=st.decimals("0.0001", "500", places=4).map(Fraction).filter(lambda x: x > 0),
    exponent=st.integers(2, 40),
)
def test_some_order_proves_the_claim_and_hardly_more_could_be_claimed(
    epsilon: Fraction, exponent: int
) -> None:
    delta = Fraction(1, 10**exponent)
    rho = rho_from(epsilon, delta)
    orders = 1 + np.geomspace(1e-4, 1e9, 4000)
    floats = [
        (a - 1) * (a * float(rho) - float(epsilon)) + a * math.log1p(-1 / a) - math.log(a - 1) for a in orders
    ]
    near = float(orders[int(np.argmin(floats))])
    finer = [Decimal(1 + (near - 1) * float(f)) for f in np.linspace(0.98, 1.02, 101)]
    best = min(log_delta(alpha, rho, epsilon) for alpha in finer)
    wanted = Decimal(10) ** -exponent
    # the grid of orders may miss the best one by a little
    assert best <= wanted.ln() + Decimal("1e-3")
    assert best >= wanted.ln() - Decimal("0.01")
    assert min(log_delta(alpha, rho * Fraction(101, 100), epsilon) for alpha in finer) > best


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_there_and_back_never_gains(epsilon: str, delta: str) -> None:
    there = rho_from(Fraction(epsilon), Fraction(delta))
    back = epsilon_from(there, Fraction(delta))
    assert back <= Fraction(epsilon) * (1 + Fraction(1, 10**11))
    assert back == pytest.approx(float(epsilon), rel=1e-8)
    assert rho_from(back, Fraction(delta)) <= there * (1 + Fraction(1, 10**9))


def test_the_figures_of_the_method() -> None:
    found = [rho_from(Fraction(epsilon), Fraction("1e-6")) for epsilon in ("0.1", "1", "10")]
    assert [f"{float(rho):.3g}" for rho in found] == ["0.000321", "0.0244", "1.54"]


def test_more_budget_buys_more() -> None:
    delta = Fraction("1e-6")
    rhos = [rho_from(Fraction(e), delta) for e in ("0.5", "1", "2")]
    assert rhos == sorted(rhos)
    assert rho_from(Fraction(1), Fraction("1e-5")) > rhos[1] > rho_from(Fraction(1), Fraction("1e-7"))
    assert epsilon_from(Fraction(0), delta) == 0


def renyi(p: np.ndarray[Any, Any], q: np.ndarray[Any, Any], order: float) -> float:
    return float(np.logaddexp.reduce(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


@pytest.mark.parametrize(("rate", "change"), [("0.5", 1), ("0.1", 3), ("2", 1)])
def test_a_choice_costs_no_more_than_is_charged(rate: str, change: int) -> None:
    """Log-probabilities of range 2·rate·change: the Rényi divergences of the worst two choices stay below order · ρ."""
    exact = Fraction(rate)
    rho, most = float(choice_rho(exact, change)), 0.0
    for share in np.linspace(0.02, 0.98, 49):
        # scores of some candidates fall by `change`, those of the others rise by it
        p = np.array([share, 1 - share])
        q = p * np.exp([-float(exact) * change, float(exact) * change])
        q /= q.sum()
        assert np.ptp(np.log(p / q)) == pytest.approx(2 * float(exact) * change)
        for order in (1.001, 1.5, 2.0, 8.0, 100.0):
            assert renyi(p, q, order) <= order * rho * (1 + 1e-6)
            most = max(most, renyi(p, q, order) / (order * rho))
    assert most > 0.9 or rho > 1
    assert 0 <= exact - choice_rate(choice_rho(exact, change), change) < Fraction(1, 10**9)
    assert choice_rho(choice_rate(Fraction(1, 3), change), change) <= Fraction(1, 3)


def test_a_pure_release_costs_half_its_square() -> None:
    assert pure_rho(Fraction(1, 2)) == Fraction(1, 8)
    # randomised response: the worst pair of distributions for a pure ε
    epsilon = 0.7
    p = np.array([math.exp(epsilon), 1]) / (1 + math.exp(epsilon))
    for order in (1.01, 2, 5, 40):
        assert renyi(p, p[::-1], order) <= order * float(pure_rho(Fraction(7, 10)))


@pytest.mark.parametrize("value", [-1, 1, "1", 1.5, "x", None, True, "1e-101", float("nan")])
def test_a_delta_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(OptionError, match="delta must be 0 or"):
        parse_delta(value)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0"), ("1", "1"), ("0", "0.1")])
def test_a_conversion_that_makes_no_sense_is_refused(epsilon: str, delta: str) -> None:
    with pytest.raises(OptionError, match="conversion"):
        rho_from(Fraction(epsilon), Fraction(delta))
    with pytest.raises(OptionError, match="conversion"):
        epsilon_from(Fraction(-1), Fraction(1, 2))
