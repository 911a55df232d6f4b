"""The noise that is announced from public quantities is the noise that releases have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.columns.schema import Attribute
from shoal.io import read
from shoal.noise import Seeded
from shoal.progress import silent
from shoal.release.protect import prepare

N = 60
DOMAINS = {"age": (0, 100), "pay": (0, 5000)}
RUNS = 300
# by chance, a sample standard deviation is off by more than this in one case of many millions
SIGMAS = 5.5

KNOWN: list[tuple[str, dict[str, Any]]] = [
    ("laplace", {}),
    ("laplace", {"split": "optimal"}),
    ("ranking-dp", {"k": 10}),
    ("ranking-dp", {"k": 10, "split": {"age": 3, "pay": 1}}),
    ("ranking-dp", {"k": 20, "link": False}),
    ("mdav-dp", {"k": 10}),
    ("mdav-dp", {"k": 10, "noise": "staircase", "epsilon": "3"}),
    ("mdav-dp", {"k": 10, "noise": "box", "optimise": "interval"}),
    ("mdav-dp", {"k": 10, "groups": [["age"], ["pay"]]}),
    ("insensitive-dp", {"k": 20, "epsilon": "2"}),
    ("optimal-dp", {"k": 3}),
]


def table() -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({"age": rng.integers(0, 101, N), "pay": rng.integers(0, 5001, N)})


def settings(options: dict[str, Any]) -> dict[str, Any]:
    return {"epsilon": "1", "domains": DOMAINS, **options}


@pytest.mark.parametrize(("method", "options"), KNOWN)
def test_the_noise_of_releases_is_as_announced(method: str, options: dict[str, Any]) -> None:
    """Values without noise are known from the clusters, so the noise of every cluster can be taken apart."""
    told = {found.column: found for found in shoal.expected_noise(method=method, n=N, **settings(options))}
    assert list(told) == ["age", "pay"]
    prepared = prepare(read(table()), method=method, clip=False, **settings(options))
    assert prepared.mechanism.freeze is not None
    settled = (prepared.method, prepared.described, prepared.plan)
    frozen = prepared.mechanism.freeze(*settled, silent, None)
    partitions = {name: made.partition for made in frozen for name in made.partition.columns}
    drawn: dict[str, list[float]] = {name: [] for name in told}
    for seed in range(RUNS):
        assert prepared.mechanism.run_frozen is not None
        values = prepared.mechanism.run_frozen(*settled, Seeded(seed), silent, frozen).values
        for name, made in partitions.items():
            original = prepared.described.original(name)
            means = np.bincount(made.labels, weights=original) / made.sizes
            noise = (values[name] - means[made.labels]) * made.sizes[made.labels]
            first = np.unique(made.labels, return_index=True)[1]
            drawn[name] += (noise[first] / told[name].records).tolist()
    for name, found in told.items():
        assert found.standard_deviation is not None
        measured = np.array(drawn[name])
        # the relative error of a sample variance, with the fourth moment that the sample has
        kurtosis = float(np.mean(measured**4) / np.mean(measured**2) ** 2)
        error = math.sqrt((kurtosis - 1) / measured.size) / 2
        ratio = float(np.sqrt(np.mean(measured**2))) / found.standard_deviation
        assert abs(ratio - 1) < SIGMAS * error, (name, ratio, error)
        assert found.share_of_range == pytest.approx(found.standard_deviation / (DOMAINS[name][1]))
        assert found.why == ""


def test_half_the_budget_is_twice_the_noise_and_twice_the_k_is_half_of_it() -> None:
    def noise(**options: Any) -> float:
        found = shoal.expected_noise(method="ranking-dp", n=10**9, domains={"pay": (0, 10**6)}, **options)
        assert found[0].standard_deviation is not None
        return found[0].standard_deviation

    one = noise(epsilon=1, k=10)
    assert noise(epsilon="0.5", k=10) == pytest.approx(2 * one)
    assert noise(epsilon=1, k=20) == pytest.approx(one / 2)
    assert one == pytest.approx(math.sqrt(2) * 10**6 / 10, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "options", "why"),
    [
        ("tree-dp", {}, "draws its rows anew"),
        ("xm-6", {"k": 5}, "draws its rows anew"),
        ("idp-ls", {"k": 5}, "follows the records"),
        ("idp-cbls", {"k": 5}, "follows the records"),
        ("k-anonymity", {"k": 5, "epsilon": None}, "adds no noise"),
        ("swap-mdav", {"k": 5, "epsilon": None}, "adds no noise"),
        ("insensitive-dp", {"k": 20, "composition": "parallel"}, "as published"),
    ],
)
def test_what_cannot_be_told_is_not_told(method: str, options: dict[str, Any], why: str) -> None:
    for found in shoal.expected_noise(method=method, n=N, **settings(options)):
        assert (found.standard_deviation, found.share_of_range) == (None, None)
        assert why in found.why


def test_every_preset_is_told_or_has_a_reason() -> None:
    for info in shoal.methods():
        options = {name: value for name, value in (("epsilon", 1), ("k", 5)) if name in info.parameters}
        for found in shoal.expected_noise(method=info.name, n=N, domains=DOMAINS, **options):
            assert (found.standard_deviation is None) == bool(found.why)


def test_nominal_columns_have_no_noise_of_a_size() -> None:
    schema = shoal.Schema(
        (Attribute("age", "numeric", lo=0, hi=100), Attribute("town", "nominal", values=("A", "B", "C")))
    )
    age, town = shoal.expected_noise(schema, "mdav-dp", 1, 5, n=N)
    assert age.standard_deviation is not None
    assert town.standard_deviation is None
    assert "a name is drawn" in town.why
    assert age.to_dict()["column"] == "age"
    assert repr(age).startswith("<ExpectedNoise of 'age': standard deviation ")
    assert repr(town) == "<ExpectedNoise of 'town': not known: a name is drawn for every cluster.>"


def test_nothing_is_made_for_many_rows() -> None:
    """The number of rows is a number: no table of that size."""
    found = shoal.expected_noise(method="insensitive-dp", epsilon=1, n=10**12, domains={"pay": (0, 100)})
    assert found[0].records == 10**6 + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 0}, "n must be a whole number"),
        ({"k": 61}, "larger than the number of records"),
        ({"columns": ["nope"]}, "'nope' is not described"),
        ({"split": "fair"}, "split 'fair'"),
        ({"domains": {"age": (5, 5)}}, "age"),
        (
            {"schema": shoal.Schema((Attribute("a", "numeric"), Attribute("b", "numeric"))), "domains": None},
            "'b'",
        ),
    ],
)
def test_what_a_release_would_refuse_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(shoal.OptionError, match=words):
        shoal.expected_noise(**{"method": "ranking-dp", "n": N, **settings({"k": 5}), **options})
