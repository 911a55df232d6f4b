"""Intervals from values that passed public matrices (`pram`): exact algebra, and coverage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cli import run
from shoal.errors import OptionError
from shoal.inference.rows import PublicRelease
from tests.conftest import amount

SEX = [["0.9", "0.1"], ["0.3", "0.7"]]
DOMAINS: dict[str, Any] = {"sex": ["f", "m"], "region": ["n", "s"], "size": (1, 3), "income": (0, 99)}
BY_STRATUM: dict[str, Any] = {
    "stratum": "region",
    "keep": {"size": "0.7", "income": "0.6"},
    "matrix": {"region": [["0.9", "0.1"], ["0.2", "0.8"]], "sex": {"n": SEX, "s": [*reversed(SEX)]}},
}
OPTIONS: list[dict[str, Any]] = [{"keep": "0.7"}, BY_STRATUM]


def table(n: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    female = random.random(n) < 0.6
    size = 1 + (random.random(n) < 0.5) + (random.random(n) < np.where(female, 0.2, 0.6))
    income = np.minimum(99, random.gamma(2, 10, n) + 10 * size).astype(int)
    region = np.where(random.random(n) < np.where(female, 0.3, 0.7), "n", "s")
    return pa.table({"sex": np.where(female, "f", "m"), "region": region, "size": size, "income": income})


def release(data: pa.Table, seed: int = 1, **options: Any) -> shoal.Release:
    return shoal.protect(data, method="pram", domains=DOMAINS, seed=seed, **options)


def joint(made: Any) -> Any:
    """The joint matrix of all columns, written out."""
    sizes = made.counts.shape
    cells = list(np.ndindex(*sizes))
    every = np.ones((len(cells), len(cells)))
    for row, own in enumerate(cells):
        for place, other in enumerate(cells):
            for axis, passage in enumerate(made.passages):
                every[row, place] *= passage.probabilities(own[0])[own[axis], other[axis]]
    return every


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    "columns", [("sex",), ("sex", "size"), ("region", "sex", "size"), ("size", "sex", "region")]
)
def test_joint_counts_and_contributions_are_those_of_the_matrix_written_out(
    options: dict[str, Any], columns: tuple[str, ...]
) -> None:
    published = PublicRelease.of(release(table(300, 1), **options))
    made = published.method.unmixed(published.described, columns)
    matrix, size = joint(made), made.counts.size
    assert np.allclose(matrix.sum(axis=1), 1)
    assert np.allclose(made.counts.reshape(-1), np.linalg.solve(matrix.T, made.released.reshape(-1)))
    values = np.random.default_rng(2).normal(size=(*made.counts.shape, 2))
    assert np.allclose(made.solved(values).reshape(size, 2), np.linalg.solve(matrix, values.reshape(size, 2)))
    # a stratum that is a column like any other would give other numbers
    if "stratum" in options:
        assert made.names[0] == "region"


@pytest.mark.parametrize("options", OPTIONS)
def test_a_share_about_the_records_is_the_corrected_frequency(options: dict[str, Any]) -> None:
    made = release(table(500, 4), **options)
    for column, value, name in (("sex", "f", "sex = f"), ("size", "2", "size == 2")):
        known = made.corrected(column)
        place = known.values.index(value)
        (found,) = shoal.intervals(made, f"share({name})", about="records", level=0.9)
        assert found.estimate == pytest.approx(known.shares[place])
        assert (found.high - found.low) / 2 == pytest.approx(
            1.6449 * known.standard_errors[place] / 500, rel=1e-3
        )
        assert (found.sampling, found.unmeasured) == (0, 0)
        (wider,) = shoal.intervals(made, f"share({name})", level=0.9)
        assert wider.high - wider.low > found.high - found.low


WHAT = [
    "mean(size)", "mean(size) by sex", "share(region = n)", "table(sex, region)", "corr(size, income)", "mean(income)",
]  # fmt: skip


def true_values(n: int = 200_000) -> dict[str, float]:
    data = table(n, 0)
    sex, region, size, income = (np.array(data[name]) for name in ("sex", "region", "size", "income"))
    found = {
        "mean(size)": size.mean(),
        "share(region = n)": (region == "n").mean(),
        "corr(size, income)": np.corrcoef(size, income)[0, 1],
        "mean(income)": income.mean(),
    }
    for one in "fm":
        found[f"mean(size | sex = {one})"] = size[sex == one].mean()
        for other in "ns":
            found[f"share(sex = {one} and region = {other})"] = ((sex == one) & (region == other)).mean()
    return {name: float(value) for name, value in found.items()}


def misses(options: dict[str, Any], runs: int, level: float) -> tuple[float, float]:
    """The part of the intervals that miss, and of intervals as wide around the released numbers."""
    truth, missed, naive, count = true_values(), 0, 0, 0
    for turn in range(runs):
        made = release(table(1500, turn + 1), seed=turn, **options)
        for one in shoal.intervals(made, WHAT, level=level):
            half = (one.high - one.low) / 2
            count += 1
            missed += not one.low <= truth[one.name] <= one.high
            naive += abs(one.release - truth[one.name]) > half
    return missed / count, naive / count


@pytest.mark.parametrize("options", OPTIONS)
def test_intervals_cover_and_released_numbers_would_not(options: dict[str, Any]) -> None:
    missed, naive = misses(options, 8, 0.8)
    # eight runs of ten correlated numbers, 20% of which may miss: at least 16 independent ones
    assert missed <= 0.2 + 6 * (0.2 * 0.8 / 80) ** 0.5
    assert naive > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_intervals_cover_as_often_as_they_say(options: dict[str, Any]) -> None:
    runs = amount(150, 600)
    missed, _ = misses(options, runs, 0.9)
    # columns in bands have an allowance, so that they miss less often
    assert 0.04 < missed < 0.1 + 5 * (0.1 * 0.9 / runs) ** 0.5


def test_missing_values_are_one_more_value() -> None:
    random = np.random.default_rng(2)
    values = [None if random.random() < 0.3 else int(random.integers(1, 4)) for _ in range(4000)]
    names = [None if random.random() < 0.2 else str(random.choice(["a", "b"])) for _ in range(4000)]
    data = pa.table({"size": pa.array(values, pa.int64()), "name": names})
    made = shoal.protect(
        data, method="pram", keep="0.9", missing="category", domains={"size": (1, 3), "name": ["a", "b"]}, seed=2
    )  # fmt: skip
    mean, share = shoal.intervals(made, ["mean(size)", "share(name = a)"], about="records", level=0.99999)
    present = [value for value in values if value is not None]
    assert mean.low < np.mean(present) < mean.high
    assert share.low < names.count("a") / (4000 - names.count(None)) < share.high


def test_a_bundle_gives_them_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(table(400, 3), keep="0.8").save(tmp_path / "out")
    assert run(["intervals", str(tmp_path / "out"), "--mean", "size"]) == 0
    assert "mean(size)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("median(size)", "no intervals for quantiles"),
        (lambda frame: 1.0, "a function can compute anything"),
        ("mean(height)", "height"),
    ],
)
def test_what_cannot_be_corrected_is_refused(what: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        shoal.intervals(release(table(60, 1), keep="0.8"), what)


def test_matrices_without_an_inverse_and_invariant_ones_are_refused() -> None:
    alike = [["0.9", "0.1"], ["0.9", "0.1"]]
    made = release(table(60, 1), epsilon=9, matrix={"sex": alike})
    with pytest.raises(OptionError, match="no inverse"):
        shoal.intervals(made, "mean(size) by sex")
    assert len(shoal.intervals(made, "mean(size)")) == 1
    with pytest.raises(OptionError, match="need no correction"):
        shoal.intervals(release(table(60, 1), keep="0.5", invariant=True), "mean(size)")


def test_weights_cannot_be_raked() -> None:
    with pytest.raises(OptionError, match="no weights to rake"):
        shoal.intervals(release(table(50, 1), keep="0.7"), "mean(income)", rake={"sex": {"f": 1, "m": 1}})
