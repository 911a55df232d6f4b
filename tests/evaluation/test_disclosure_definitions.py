"""`shoal.risk` on small tables of every kind, compared with the definitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import shoal

from . import risk_oracle as oracle


@pytest.mark.parametrize("seed", range(30))
def test_small_tables_have_the_figures_of_the_definitions(seed: int) -> None:
    """Gaps, ties, weights of 1, a constant key, two equal keys, households out of order, one row."""
    draw = np.random.default_rng(seed)
    n, m = int(draw.integers(1, 24)), int(draw.integers(1, 6))
    gaps = (0.0, 0.15, 0.4)[seed % 3]
    keys = [
        [None if draw.random() < gaps else int(value) for value in draw.integers(1, 2 + draw.integers(4), n)]
        for _ in range(m)
    ]
    if seed % 5 == 0:
        keys[0] = [1] * n
    if seed % 7 == 0 and m > 1:
        keys[1] = list(keys[0])
    names = [f"k{place}" for place in range(m)]
    sensitive, ids = draw.integers(1, 4, n).tolist(), draw.integers(0, 1 + n // 2, n).tolist()
    weights = draw.choice([1, 2.5, 7.25, 40, 100], n).tolist()
    table = pa.table(
        {
            **{name: pa.array(key, pa.int64()) for name, key in zip(names, keys, strict=True)},
            **{"s": sensitive, "w": weights, "h": ids},
        }
    )
    alpha, fraction, c = (1.0, 0.5, 0.0)[seed // 3 % 3], (0.01, 0.1, 0.5)[seed % 3], (2.0, 1.0, 3.0)[seed % 3]
    found = shoal.risk(
        table,
        names,
        "w",
        "h",
        sensitive=["s"],
        alpha=alpha,
        special=True,
        fraction=fraction,
        c=c,
        points="ihsn" if seed % 2 else "original",
    )
    fk, population = oracle.frequencies(keys, weights, alpha)
    assert found.fk.tolist() == pytest.approx(fk)
    assert found.Fk.tolist() == pytest.approx(population)
    risks = [oracle.individual(*pair) for pair in zip(fk, population, strict=True)]
    whole = [one == int(one) or one > 2 for one in fk]
    assert found.individual[whole] == pytest.approx(np.array(risks)[whole])
    own = found.individual.tolist()
    assert found.household is not None
    assert found.household.tolist() == pytest.approx(oracle.households(own, ids))
    for tolerated in (0.01, 0.1, 0.3):
        assert found.threshold(tolerated) == pytest.approx(oracle.threshold(own, tolerated))
    scores, dis, points = oracle.suda(keys, fraction, ihsn=seed % 2 == 1)
    assert found.special is not None
    assert found.special.scores.tolist() == pytest.approx(scores)
    assert found.special.dis.tolist() == pytest.approx(dis)
    assert found.special.points == pytest.approx(np.array(points))
    for name, key, mine in zip(names, keys, np.array(points).T, strict=True):
        assert found.key_contributions()[name] == pytest.approx(
            100 * mine.sum() / sum(scores) if sum(scores) else 0
        )
        for level, share in found.level_contributions()[name].items():
            part = sum(point for point, value in zip(mine, key, strict=True) if value == level)
            assert share == pytest.approx(100 * part / mine.sum() if mine.sum() else 0)
    mine = found.diversity["s"]
    shown = list(zip(mine.distinct.tolist(), mine.entropy.tolist(), mine.recursive.tolist(), strict=True))
    for one, expected in zip(shown, oracle.diversity(keys, sensitive, c), strict=True):
        assert one == pytest.approx(expected)
