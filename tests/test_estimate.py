"""The estimate extrapolates between linear and quadratic growth and never looks at a record."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.estimate import Estimate, _probe, estimate
from shoal.io import read
from shoal.release import prepare


@pytest.mark.parametrize(("power", "expected"), [(1.0, 1.0), (1.5, 1.5), (2.0, 2.0), (3.0, 2.0), (0.5, 1.0)])
def test_growth_exponent_of_a_known_law(power: float, expected: float) -> None:
    sizes: list[int] = []

    def run(rows: int) -> float:
        sizes.append(rows)
        return 1e-12 * rows**power

    rows, seconds, exponent = _probe(run, 2000, 10**8)
    assert exponent == pytest.approx(expected)
    assert seconds == pytest.approx(1e-12 * rows**power)
    assert rows == sizes[-1] <= 256_000


def test_the_preparation_of_a_kernel_is_not_extrapolated() -> None:
    used: set[int] = set()

    def run(rows: int) -> float:
        compiling = 10.0 if rows >= 8000 and not used & set(range(8000, 10**6)) else 0.0
        used.add(rows)
        return 1e-6 * rows + compiling

    _, seconds, _ = _probe(run, 2000, 10**8)
    assert seconds < 1


def test_small_tables_are_probed_at_their_own_size() -> None:
    assert _probe(lambda rows: 0.01, 300, 300) == (300, 0.01, 1.0)


@pytest.mark.parametrize("method", ["ranking-dp", "mdav-dp", "laplace"])
def test_every_kind_of_method_can_be_estimated(method: str) -> None:
    table = read(pa.table({"a": [1.0, 2.0, 3.0] * 400, "b": [5, 6, 7] * 400}))
    prepared = prepare(table, method=method, epsilon=1, domains={"a": (0, 10), "b": (0, 10)})
    found = estimate(prepared)
    assert 0 < found.seconds < 60
    assert found.bytes >= table.n * 2 * 8
    assert "1200 made-up rows" in str(found)


def test_in_words() -> None:
    assert str(Estimate(0.2, 10, "p")) == "about a second and 1 MB of memory (p)"
    assert str(Estimate(300, 2_000_000_000, "p")) == "about 5 minutes and 2.0 GB of memory (p)"
    assert str(Estimate(9000, 10**9, "p")).startswith("about 2.5 hours")
