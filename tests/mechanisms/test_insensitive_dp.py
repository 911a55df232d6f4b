"""insensitive-dp: its claim, that its noise is what the proof needs, and why the published method has no guarantee."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import csv
from scipy import stats

import shoal
from shoal.auditing.statistics import epsilon_bounds
from shoal.cli import run
from shoal.errors import OptionError
from shoal.mechanisms.insensitive import default_size, noisy_rows, paying_clusters
from shoal.mechanisms.sensitivity import cluster_sum_scale
from shoal.noise import LatticeStaircase, Seeded
from shoal.partition import Partition, insensitive
from shoal.release.protection import carry_out, prepare

DOMAINS = {"a": (0, 100), "b": (0, 1000)}


def table(n: int = 120) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({"a": rng.integers(0, 101, n), "b": rng.integers(0, 1001, n)})


def release_of(data: pa.Table | None = None, **options: Any) -> shoal.Release:
    settings = {"method": "insensitive-dp", "epsilon": 1, "domains": DOMAINS, **options}
    return shoal.protect(table() if data is None else data, **settings)


@pytest.mark.parametrize("order", ["corners", "single"])
@pytest.mark.parametrize("noise", ["laplace", "staircase", "box"])
def test_strict_composition_promises_privacy_of_the_original_records(order: str, noise: str) -> None:
    release = release_of(order=order, noise=noise)
    statement = release.statement
    assert statement.model == "dp"
    assert statement.publishable
    assert statement.settings["composition"] == "strict"
    assert statement.settings["k"] == 12
    assert sum(share for share in statement.spending.values() if share) == 1
    assert any("all 10 clusters" in condition and "1/10" in condition for condition in statement.conditions)
    (made,) = release.partition
    assert made.sizes.tolist() == [12] * 10
    assert release.notes == ()


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (3, 3), (9, 4), (10, 5), (1080, 34), (30_162, 175)])
def test_the_default_size_is_just_above_the_root_of_n(n: int, k: int) -> None:
    assert default_size(n) == k


def test_a_smaller_size_is_used_with_the_reason_said() -> None:
    (note,) = release_of(k=5).notes
    assert "24 clusters" in note
    assert "4.8 times that of method laplace" in note
    assert "the default is 12" in note
    assert release_of(k=11).notes == ()
    assert release_of(k=1).notes == ()


def test_one_column_is_sent_to_ranking() -> None:
    (note,) = release_of(columns=["a"], domains={"a": (0, 100)}).notes
    assert "ranking-dp" in note


def noise_on_sums(runs: int = 100, **options: Any) -> tuple[NDArray[np.float64], int]:
    """Released minus true cluster sums in lattice steps, (runs · clusters, columns), and the number of clusters."""
    data = table(600)
    prepared = prepare(
        shoal.io.read(data), method="insensitive-dp", epsilon=2, domains=DOMAINS, clip=False, k=6, **options
    )
    found = []
    for _ in range(runs):
        release = carry_out(prepared)
        (made,) = release.partition
        first = np.unique(made.labels, return_index=True)[1]
        released = np.stack([release.aligned[name].to_numpy()[first] for name in DOMAINS], axis=1)
        true = np.stack([made.sums(data[name].to_numpy()) for name in DOMAINS], axis=1)
        found.append(released * made.sizes[:, np.newaxis] - true)
    return np.concatenate(found), 100


def test_noise_on_a_sum_has_the_scale_of_all_clusters_and_attributes() -> None:
    """Scale m·⌊n/k⌋·W/ε on the sum: 10,000 draws put the mean absolute value within 6% at six standard errors."""
    drawn, clusters = noise_on_sums()
    for noise, width in zip(drawn.T, (100, 1000), strict=True):
        assert np.abs(noise).mean() == pytest.approx(2 * clusters * width / 2, rel=0.06)


def test_staircase_noise_on_a_sum_is_that_of_the_share_of_one_cluster() -> None:
    drawn, clusters = noise_on_sums(noise="staircase")
    for noise, width in zip(drawn.T, (100, 1000), strict=True):
        expected = LatticeStaircase.best(width, Fraction(1, clusters), "variance").variance
        assert noise.var() == pytest.approx(expected, rel=0.15)


def test_clusters_of_one_record_are_plain_laplace_noise() -> None:
    values = pa.table({"a": np.full(3000, 50), "b": np.full(3000, 500)})
    released = release_of(values, k=1, epsilon=4, clip=False).aligned
    for name, width in (("a", 100), ("b", 1000)):
        noise = released[name].to_numpy() - width / 2
        assert np.abs(noise).mean() == pytest.approx(width / 2, rel=0.12)


def small_worlds(n: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """All tables of n records from a domain of 3 x 2, as collections, each with all its neighbours."""
    domain = list(product(range(3), range(2)))
    for records in combinations_with_replacement(domain, n):
        for number in {records.index(record) for record in records}:
            for other in domain:
                if other != records[number]:
                    yield np.array(records), np.array((*records[:number], other, *records[number + 1 :]))


@pytest.mark.parametrize("order", ["corners", "single"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_pair_of_neighbours_costs_more_than_epsilon(order: str, k: int) -> None:
    """The exact loss of the noisy sums over all neighbours of a small world, for Laplace and for staircase noise.

    Laplace noise loses |change|/scale for each sum, a staircase its whole share for each sum that changes at all. With
    clusters of one the sums are compared record by record, in the order in which both tables have them.
    """
    epsilon, steps = Fraction(1), np.array([2, 1])
    paying = paying_clusters(6, k)
    shares = [epsilon / 2 / paying] * 2
    scales = [float(cluster_sum_scale(int(width), share)) for width, share in zip(steps, shares, strict=True)]
    made: dict[bytes, NDArray[np.int64]] = {}

    def sums(records: NDArray[np.int64]) -> NDArray[np.int64]:
        key = records.tobytes()
        if key not in made:
            partition = insensitive(records, k, bounds=[(0, 2), (0, 1)], order=order)
            made[key] = records if k == 1 else partition.sums(records)
        return made[key]

    laplace = staircase = 0.0
    most_changed = 0
    for before, after in small_worlds(6):
        moved = np.abs(sums(before) - sums(after))
        laplace = max(laplace, float((moved / scales).sum()))
        staircase = max(staircase, float(((moved > 0) * np.array(shares, dtype=float)).sum()))
        most_changed = max(most_changed, int((moved > 0).sum(axis=0).max()))
    assert laplace <= 1 + 1e-12
    assert staircase <= 1 + 1e-12
    # every cluster of an attribute can change: with one fewer paying, staircase noise would cost more than ε
    assert most_changed == paying


FIVE = np.array([0] * 5 + [1] * 5)
FOUR = np.array([0] * 4 + [1] * 6)


def published_with_four_zeros(values: NDArray[np.int64], runs: int) -> int:
    """In how many releases, as published at ε = 1 and k = 5, at least four of ten rows are 0 after clipping."""
    made = insensitive(values, 5, bounds=[(0, 1)])
    # every release is a copy of the table with clusters of its own; the lattice has 1000 steps
    labels = (made.labels + 2 * np.arange(runs)[:, np.newaxis]).ravel()
    copies = Partition(labels, np.full(2 * runs, 5))
    rows = noisy_rows(1000 * np.tile(values, runs), 1000, copies, 5, Fraction(1), Seeded(runs))
    return int(((rows.reshape(runs, 10) <= 0).sum(axis=1) >= 4).sum())


def strict_with_four_zeros(values: NDArray[np.int64], runs: int) -> int:
    """The same through the mechanism, strictly composed."""
    prepared = prepare(
        shoal.io.read(pa.table({"x": values.astype(np.float64)})),
        method="insensitive-dp",
        epsilon=1,
        k=5,
        domains={"x": (0.0, 1.0)},
        seed=1,
    )
    return sum(int((carry_out(prepared).aligned["x"].to_numpy() == 0).sum() >= 4) for _ in range(runs))


def test_five_zeros_and_five_ones_refute_the_published_composition() -> None:
    """One 0 becomes a 1: the first cluster's mean goes from 0 to 1/5, and with it five rows with noise of their own.

    Each of the five is 0 after clipping with probability 1/2 before and e^-1/2 after, independently of the others: a
    factor of e^5 for all five at ε = 1. With noise of one draw per cluster the rows are 0 together.
    """
    assert insensitive(FOUR, 5, bounds=[(0, 1)]).sums(FOUR).tolist() == [1, 5]
    runs = 20_000
    before, after = (published_with_four_zeros(values, runs) for values in (FIVE, FOUR))
    assert epsilon_bounds(before, runs, after, runs, 1e-9) > 2.5
    runs = 400
    before, after = (strict_with_four_zeros(values, runs) for values in (FIVE, FOUR))
    assert epsilon_bounds(before, runs, after, runs, 1e-9) < 1
    assert min(before, after) > 0.3 * runs


def test_the_published_composition_is_never_publishable() -> None:
    release = release_of(composition="parallel", k=5)
    statement = release.statement
    assert statement.model == "none"
    assert not statement.publishable
    assert any("no privacy guarantee" in reason for reason in statement.not_publishable_because)
    assert statement.adjacency is None
    assert statement.sentence.startswith("No privacy guarantee")
    assert release.notes == ()
    assert release.aligned is not None
    assert len(set(release.aligned["b"].to_pylist())) > 24, "every row has noise of its own"


@pytest.mark.parametrize("option", [{"noise": "staircase"}, {"split": "optimal"}])
def test_the_published_composition_has_one_noise_and_one_split(option: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=f"{next(iter(option))} requires composition=strict"):
        release_of(composition="parallel", **option)


def test_published_noise_has_scale_width_over_k_epsilon_in_every_row() -> None:
    """Also in the last cluster, whatever its size; independent from row to row."""
    labels = np.repeat([0, 1], [4000, 7000])
    partition = Partition.from_labels(labels)
    positions = np.full(11_000, 500)
    rows = noisy_rows(positions, 1000, partition, 4000, Fraction(1, 100), Seeded(1)) - 500
    for cluster in (0, 1):
        noise = rows[labels == cluster]
        assert stats.kstest(noise, stats.laplace(scale=25).cdf).pvalue > 1e-9
        assert stats.kstest(noise, stats.laplace(scale=33).cdf).pvalue < 1e-9
        assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 6 / np.sqrt(noise.size)


def test_ordinal_and_date_columns_are_taken() -> None:
    rng = np.random.default_rng(1)
    data = pa.table(
        {
            "size": rng.choice(["S", "M", "L"], 90),
            "born": np.datetime64("1950-01-01") + rng.integers(0, 20_000, 90).astype("timedelta64[D]"),
            "income": rng.integers(0, 5000, 90),
        }
    )
    schema = shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "size", "kind": "ordinal", "ordered": ["S", "M", "L"]},
                {"name": "born", "kind": "date", "lo": "1950-01-01", "hi": "2010-01-01"},
                {"name": "income", "lo": 0, "hi": 5000},
            ]
        }
    )
    released = shoal.protect(data, schema, "insensitive-dp", epsilon=1000).data
    assert released.schema == data.schema
    assert set(released["size"].to_pylist()) <= {"S", "M", "L"}


def test_the_command_line_says_the_reason_and_writes_the_recipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csv.write_csv(table(), tmp_path / "in.csv")
    words = ["protect", str(tmp_path / "in.csv"), "--method", "insensitive-dp", "--epsilon", "1"]
    words += ["--domain", "a=0:100", "--domain", "b=0:1000"]
    assert run([*words, "--k", "5", "--order", "single", "--out", str(tmp_path / "small")]) == 0
    assert "4.8 times that of method laplace" in " ".join(capsys.readouterr().err.split())
    assert run([*words, "--corners", "hamming", "--out", str(tmp_path / "out")]) == 0
    stated = json.loads((tmp_path / "out" / "statement.json").read_text("utf-8"))
    assert (stated["model"], stated["settings"]["k"], stated["settings"]["corners"]) == ("dp", 12, "hamming")
    again = ["protect", str(tmp_path / "in.csv"), "--config", str(tmp_path / "out" / "method.toml")]
    assert run([*again, "--out", str(tmp_path / "again")]) == 0
    repeated = json.loads((tmp_path / "again" / "statement.json").read_text("utf-8"))
    assert repeated["settings"] == stated["settings"]


def test_wrong_choices_are_named() -> None:
    with pytest.raises(OptionError, match="composition 'serial' is not one of strict, parallel"):
        release_of(composition="serial")
    with pytest.raises(OptionError, match="order 'corner' is not one of corners, single"):
        release_of(order="corner")
    with pytest.raises(OptionError, match="k = 121 is larger"):
        release_of(k=121)
