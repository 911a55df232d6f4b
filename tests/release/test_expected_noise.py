"""The noise forecast from public quantities is the noise that releases have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import ndtr

import shoal
from shoal.columns.attribute import Attribute
from shoal.io import read
from shoal.mechanisms.registry import configured
from shoal.noise import Seeded
from shoal.progress import silent
from shoal.release.forecast import compared_with_delta, drowned, noise_of, public_description
from shoal.release.protection import prepare
from tests.conftest import examples

# what is announced for shares of rows holds within these factors: for every column and pair, and on average over them
FACTOR, ON_AVERAGE = 4.0, 3.0
N = 60
DOMAINS = {"age": (0, 100), "pay": (0, 5000)}
RUNS = examples(400)
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
    assert prepared.method.freezes
    settled = (prepared.described, prepared.plan)
    frozen = prepared.method.freeze(*settled, silent)
    partitions = {name: made.partition for made in frozen for name in made.partition.columns}
    drawn: dict[str, list[float]] = {name: [] for name in told}
    for seed in range(RUNS):
        account = prepared.method.account(prepared.plan, Seeded(seed))
        values = prepared.method.run_frozen(*settled, account, silent, frozen).values
        assert account.unspent() == {}
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
        ("tree-dp", {}, "draws synthetic records"),
        ("xm-6", {"k": 5}, "draws synthetic records"),
        ("idp-ls", {"k": 5}, "is data-dependent"),
        ("idp-cbls", {"k": 5}, "is data-dependent"),
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
            told = found.standard_deviation is not None or found.share_of_rows is not None
            assert told == (not found.why)


def test_nominal_columns_have_no_noise_of_a_size() -> None:
    schema = shoal.Schema(
        (Attribute("age", "numeric", lo=0, hi=100), Attribute("town", "nominal", values=("A", "B", "C")))
    )
    age, town = shoal.expected_noise(schema, "mdav-dp", 1, 5, n=N)
    assert age.standard_deviation is not None
    assert town.standard_deviation is None
    assert "a label is drawn" in town.why
    assert age.to_dict()["column"] == "age"
    assert repr(age).startswith("<ExpectedNoise of 'age': standard deviation ")
    assert repr(town) == "<ExpectedNoise of 'town': not known: a label is drawn for each cluster.>"


def test_nothing_is_made_for_many_rows() -> None:
    """The number of rows is a number: no table of that size."""
    found = shoal.expected_noise(method="insensitive-dp", epsilon=1, n=10**12, domains={"pay": (0, 100)})
    assert found[0].records == 10**6 + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 0}, "n must be a positive integer"),
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


def people(n: int, seed: int) -> tuple[pd.DataFrame, shoal.Schema]:
    """Numbers, a two-valued column and names that all go together."""
    random = np.random.default_rng(seed)
    latent = random.standard_normal((n, 4)) * math.sqrt(0.5) + random.standard_normal((n, 1)) * math.sqrt(0.5)
    data = pd.DataFrame(
        {
            "x": np.clip(np.rint(100 * latent[:, 0] + 500), 0, 1000).astype(int),
            "y": np.clip(np.rint(100 * latent[:, 1] + 500), 0, 1000).astype(int),
            "yes": (latent[:, 2] > 0.3).astype(int),
            "name": np.array(["a", "b", "c"])[np.searchsorted([-0.5, 0.6], latent[:, 3])],
        }
    )
    return data, shoal.Schema(
        (
            Attribute("x", "numeric", type="integer", lo=0, hi=1000),
            Attribute("y", "numeric", type="integer", lo=0, hi=1000),
            Attribute("yes", "numeric", type="integer", lo=0, hi=1),
            Attribute("name", "nominal", values=("a", "b", "c")),
        )
    )


def halves_of(original: pd.DataFrame, table: pd.DataFrame, column: str) -> list[Any]:
    """Which rows are in each part of a column that joint shares are of."""
    if column == "name":
        return [table[column] == name for name in "abc"]
    above = table[column] > (0 if column == "yes" else original[column].median())
    return [~above, above]


def off_alone(original: pd.DataFrame, released: pd.DataFrame, column: str) -> Any:
    if column in ("yes", "name"):
        parts = zip(*(halves_of(original, one, column) for one in (original, released)), strict=True)
    else:
        places = np.quantile(original[column], np.arange(1, 20) / 20)
        parts = (((original[column] <= place), (released[column] <= place)) for place in places)
    return np.array([before.mean() - after.mean() for before, after in parts])


def off_together(original: pd.DataFrame, released: pd.DataFrame, first: str, second: str) -> Any:
    shares = []
    for table in (original, released):
        one, other = (halves_of(original, table, column) for column in (first, second))
        if "name" in (first, second):
            shares.append([(a & b).mean() for a in one for b in other])
        else:
            shares.append([(one[0] == other[0]).mean()])
    return np.subtract(*shares)


def factors(shape: str, n: int, seed: int) -> tuple[pd.DataFrame, shoal.Schema]:
    """Numbers of one shape with two factors of other strengths in every table, some of them hardly related."""
    random = np.random.default_rng([seed, n])
    weights = random.uniform(-0.7, 0.7, (2, 4))
    latent = random.standard_normal((n, 2)) @ weights
    latent += random.standard_normal((n, 4)) * np.sqrt(1 - (weights**2).sum(axis=0))
    values = {
        "normal": lambda: 500 + 110 * latent,
        "skewed": lambda: 60 * np.exp(0.7 * latent),
        "uniform": lambda: 1000 * ndtr(latent),
        "humps": lambda: np.where(random.random((n, 4)) < 0.4, 250, 650) + 60 * latent,
    }[shape]()
    data = pd.DataFrame(np.clip(np.rint(values), 0, 1000).astype(int), columns=list("wxyz"))
    return data, shoal.Schema(
        tuple(Attribute(name, "numeric", type="integer", lo=0, hi=1000) for name in data)
    )


def check_shares(make: Callable[[int], Any], runs: range, n: int, options: dict[str, Any]) -> None:
    """Measured and announced deviations are within a factor of each other, for all columns and pairs."""
    squares: dict[Any, list[float]] = {}
    for seed in runs:
        original, schema = make(seed)
        released = shoal.protect(original, schema, seed=seed, **options).data
        for place, first in enumerate(original):
            squares.setdefault(first, []).append((off_alone(original, released, first) ** 2).mean())
            for second in list(original)[place + 1 :]:
                off = off_together(original, released, first, second)
                squares.setdefault(frozenset((first, second)), []).append((off**2).mean())
    told: dict[Any, float] = {}
    for found in shoal.expected_noise(schema, n=n, **options):
        assert found.share_of_rows is not None
        told[found.column] = found.share_of_rows
        told |= {frozenset((found.column, other)): noise for other, noise in found.pairs}
    assert len(told) > 4
    ratios = {}
    for what, expected in told.items():
        # whole rows: a share cannot be nearer than one of them
        ratios[what] = max(math.sqrt(np.mean(squares[what])), 0.5 / n) / max(expected, 0.5 / n)
    assert 1 / FACTOR < min(ratios.values()) <= max(ratios.values()) < FACTOR, ratios
    for alone in (True, False):
        logarithms = [math.log(ratio) for what, ratio in ratios.items() if isinstance(what, str) == alone]
        assert abs(np.mean(logarithms)) < math.log(ON_AVERAGE), ratios


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "skewed", "uniform", "humps"])
@pytest.mark.parametrize(
    ("n", "options"),
    [
        (800, {"epsilon": 1}),
        (1500, {"epsilon": 4}),
        (6000, {"epsilon": "0.5"}),
        (6000, {"epsilon": 2, "neighbours": "replace-one"}),
        (3000, {"epsilon": 1, "delta": "0.000001"}),
        (9000, {"epsilon": 3}),
    ],
)
def test_shares_of_tables_that_nothing_was_chosen_on_are_off_by_as_much(
    shape: str, n: int, options: dict[str, Any]
) -> None:
    check_shares(lambda seed: factors(shape, n, seed), range(5000, 5008), n, options)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(800, "0.5"), (800, "10"), (6000, "0.5"), (6000, "5")])
@pytest.mark.parametrize("options", [{}, {"delta": "0.000001"}, {"neighbours": "replace-one"}])
def test_shares_of_rows_are_off_by_as_much_as_announced(
    n: int, epsilon: str, options: dict[str, Any]
) -> None:
    check_shares(lambda seed: people(n, seed), range(8), n, {"epsilon": epsilon, **options})


def test_shares_of_rows_are_announced_for_all_columns_and_pairs() -> None:
    _, schema = people(10, 0)
    few, many = (shoal.expected_noise(schema, epsilon=1, n=n) for n in (2_000, 200_000))
    for less, more in zip(many, few, strict=True):
        assert less.share_of_rows is not None
        assert more.share_of_rows is not None
        assert less.share_of_rows < more.share_of_rows / 10
        assert {name for name, _ in less.pairs} == {"x", "y", "yes", "name"} - {less.column}
        assert less.to_dict()["pairs"] == dict(less.pairs)
        assert (less.standard_deviation, less.why) == (None, "")
    assert repr(many[0]).startswith("<ExpectedNoise of 'x': shares of the rows off by 0.0")


def test_columns_and_pairs_that_noise_will_drown_are_named() -> None:
    _, schema = people(10, 0)
    method = configured("pairs-dp", epsilon=1)
    announced = shoal.expected_noise(schema, epsilon="0.1", n=60)
    found = drowned(announced, method, 60)
    assert found is not None
    assert (found.code, found.facts["columns"]) == (
        "noise-drowns-shares-of-columns",
        ["x", "y", "yes", "name"],
    )
    assert str(found).startswith(
        "noise will dominate x, y, yes, name: the standard error of shares of rows is"
    )
    clear = shoal.expected_noise(schema, epsilon=1, n=5_000)
    assert drowned(clear, method, 5_000) is None
    alone = [replace(found, pairs=()) for found in clear]
    assert "columns will be independent" in str(drowned(alone, method, 5_000))
    assert drowned(alone[:1], method, 5_000) is None


READINGS: list[tuple[Any, str | None, list[Any]]] = [
    (("0.00", "900.00"), None, [0.0, 450.25]),
    (("0", "900"), None, [0, 450]),
    ((0, 900), "decimal:1", [0.0, 450.5]),
    (("0.0", "900.0"), "decimal:2", [0.0, 450.25]),
    (("0", "1"), "text", ["0", "1"]),
    (("low", "high"), None, ["low", "high"]),
    (("2020-01-01", "2021-01-01"), None, ["2020-03-01", "2020-04-01"]),
]


@pytest.mark.parametrize(("domain", "type", "values"), READINGS)
def test_a_domain_without_a_table_is_read_as_with_one(
    domain: Any, type: str | None, values: list[Any]
) -> None:
    """Kind, type, decimals and lattice are those of a release; so is the noise, to the last digit."""
    asked: dict[str, Any] = {"domains": {"a": domain}, "types": None if type is None else {"a": type}}
    prepared = prepare(read(pa.table({"a": values * 30})), method="pairs-dp", epsilon=1, **asked)
    settled = configured("pairs-dp", epsilon=1)
    public = public_description(settled, None, None, asked["domains"], 60, asked["types"])
    (with_table,), (without,) = prepared.described.attributes, public.attributes
    for fact in ("kind", "type", "decimals", "lo", "hi", "values"):
        assert getattr(without, fact) == getattr(with_table, fact), fact
    assert public.lattices == prepared.described.lattices
    noise = noise_of(prepared.method, prepared.described, prepared.plan)
    assert shoal.expected_noise(epsilon=1, n=60, **asked) == noise
    rehearsed = shoal.rehearse(epsilon=1, people=60, **asked).release
    assert rehearsed.statement.attributes == prepared.statement.attributes


def test_a_type_for_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(shoal.OptionError, match="column 'agee'"):
        shoal.expected_noise(epsilon=1, n=60, domains={"age": (0, 100)}, types={"agee": "integer"})


def compared(n: int, epsilon: str, delta: str = "0", **domains: Any) -> dict[str, Any]:
    method = configured("pairs-dp", epsilon=epsilon, delta=delta)
    found = compared_with_delta(method, public_description(method, None, None, domains, n))
    assert found is not None
    return found.to_dict()


def test_advice_about_a_delta_follows_from_the_errors_with_and_without_one() -> None:
    numbers = {f"x{i}": (0, 1000) for i in range(4)}
    names = {f"n{i}": [f"{j}" for j in range(10)] for i in range(10)}
    few, many = compared(10_000, "1", **numbers), compared(10_000, "1", **names)
    assert few["advice"] == "delta-gains-little"
    # ten columns are fewer than a dozen; what counts is that they are names
    assert many["advice"] == "delta-reduces-errors"
    assert many["with_delta"]["joint"] < 0.5 * many["without"]["joint"]
    assert many["with_delta"]["delta"] == "1e-06"
    # so many columns that only a δ makes their pairs worth measuring
    crowd = compared(2_000, "0.2", **{f"x{i}": (0, 1000) for i in range(40)})
    assert crowd["without"]["pairs"] == 0
    assert crowd["without"]["joint"] is None
    assert crowd["with_delta"]["pairs"] == 780
    assert crowd["advice"] == "delta-measures-pairs"


def test_both_errors_are_those_of_releases_with_and_without_the_delta() -> None:
    domains = {"age": (0, 100), "town": list("abcdef")}
    for given in ("0", "0.000001"):
        found = compared(5_000, "1", given, **domains)
        for part, delta in (("without", "0"), ("with_delta", "0.000001")):
            noise = shoal.expected_noise(epsilon="1", delta=delta, n=5_000, domains=domains)
            alone = [one.share_of_rows for one in noise]
            assert found[part]["share_of_rows"] == pytest.approx(np.mean(alone), rel=1e-3)
            assert found[part]["joint"] == pytest.approx(noise[0].pairs[0][1], rel=1e-3)


def test_methods_without_a_delta_are_not_compared() -> None:
    method = configured("laplace", epsilon="1")
    assert compared_with_delta(method, public_description(method, None, None, DOMAINS, N)) is None
