"""From a table to a release: the released rows, their order, and what is kept for measuring only."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.io import read
from shoal.noise import source as noise_source
from shoal.release.protection import carry_out, prepare
from tests.support.samples import LIBRARIES, column, frame

N = 60


def table(library: str = "pyarrow") -> Any:
    rng = np.random.default_rng(3)
    return frame({"a": rng.permutation(N), "b": rng.uniform(0, 10, N)}, library)


def protect(data: Any = None, **options: Any) -> shoal.Release:
    arguments = {"method": "mdav-dp", "epsilon": 1, "domains": {"a": (0, 80), "b": (0.0, 10.0)}, **options}
    return shoal.protect(table() if data is None else data, **arguments)


@pytest.mark.parametrize("library", LIBRARIES)
def test_aligned_is_unrounded_and_in_input_order(library: str) -> None:
    release = protect(table(library), k=5)
    aligned = column(release.aligned, "a")
    (made,) = release.partition
    for cluster in range(len(made)):
        assert np.unique(aligned[made.labels == cluster]).size == 1
    assert not np.array_equal(aligned, np.rint(aligned))
    assert np.array_equal(np.sort(np.rint(aligned)), np.sort(column(release.data, "a")))


def test_integers_are_rounded_as_the_last_step_only() -> None:
    release = protect(k=7)
    assert release.data["a"].type == pa.int64()
    assert release.aligned["a"].type == pa.float64()


def test_unlinked_columns_are_shuffled_apart_and_cannot_be_aligned() -> None:
    release = protect(method="ranking-dp", k=5, link=False)
    assert release.aligned is None
    linked = protect(method="ranking-dp", k=5, epsilon=10**5)
    apart = protect(method="ranking-dp", k=5, epsilon=10**5, link=False)
    in_order = {tuple(row.values()) for row in linked.aligned.to_pylist()}
    assert {round(b, 2) for _, b in in_order} == {round(b, 2) for b in apart.data["b"].to_pylist()}

    def pairs(data: pa.Table) -> set[tuple[float, float]]:
        return set(zip(data["a"].to_pylist(), np.round(data["b"].to_numpy(), 2).tolist(), strict=True))

    assert pairs(linked.data) != pairs(apart.data)


def test_one_column_is_aligned_even_unlinked() -> None:
    release = protect(method="ranking-dp", k=5, link=False, columns=["a"], domains={"a": (0, 80)})
    assert release.aligned is not None


@pytest.mark.parametrize("method", ["laplace", "ranking-dp", "mdav-dp"])
def test_the_order_of_rows_is_uniform(method: str) -> None:
    """Where the first record lands, over many releases, in four equal parts of the table."""
    rows, runs = 8, 200
    data = pa.table({"x": np.arange(rows) * 10.0})
    k = {} if method == "laplace" else {"k": 1}
    prepared = prepare(read(data), method=method, epsilon=10**5, domains={"x": (0, 70)}, **k)
    places = [int(np.argmin(carry_out(prepared).data["x"].to_numpy())) for _ in range(runs)]
    counts = np.bincount(np.array(places) // 2, minlength=4)
    # chi-square with 3 degrees of freedom: above 44 with probability 1.5e-9
    assert ((counts - runs / 4) ** 2 / (runs / 4)).sum() < 44
    # rows left in input order would fail
    assert ((np.array([runs, 0, 0, 0]) - runs / 4) ** 2 / (runs / 4)).sum() > 44


def test_noise_is_shared_by_the_rows_of_a_cluster_and_by_no_others() -> None:
    # unclipped, so that values do not meet at the ends of the domain; seeded, so that they never meet by chance
    release = protect(k=6, clip=False, seed=1)
    assert len(set(release.aligned["b"].to_pylist())) == len(release.partition[0])
    alone = protect(method="laplace", clip=False, seed=1)
    assert len(set(alone.aligned["b"].to_pylist())) == N


def test_clipping_can_be_switched_off() -> None:
    release = protect(method="laplace", epsilon="0.01", clip=False)
    values = release.data["b"].to_numpy()
    assert values.min() < 0
    assert values.max() > 10
    clipped = protect(method="laplace", epsilon="0.01").data["b"].to_numpy()
    assert (clipped.min(), clipped.max()) == (0, 10)


def test_groups_give_one_partition_each() -> None:
    release = protect(k=5, groups=[["b"], ["a"]])
    assert [made.columns for made in release.partition] == [("b",), ("a",)]
    assert release.columns == ("a", "b")


def test_given_labels_are_the_partition() -> None:
    labels = np.arange(N) % 4
    release = protect(k=5, labels=labels)
    assert np.array_equal(release.partition[0].labels, labels)
    with pytest.raises(shoal.OptionError, match="one entry per row"):
        protect(k=5, labels=labels[1:])
    with pytest.raises(shoal.InputError, match="fewer than k = 20"):
        protect(k=20, labels=labels)
    with pytest.raises(shoal.OptionError, match="'ranking-dp' has no option 'partition'"):
        protect(method="ranking-dp", k=5, labels=labels)


def test_given_labels_follow_dropped_rows() -> None:
    data = pd.DataFrame({"a": np.arange(N), "b": [1.0, None] * (N // 2)})
    labels = np.repeat([0, 1], N // 2)
    release = protect(data, k=5, labels=labels, missing="drop")
    assert np.array_equal(release.partition[0].labels, labels[::2])


def test_private_facts_stay_in_one_place() -> None:
    release = protect(domains={"a": (0, 50), "b": (0.0, 10.0)}, outside="clip", k=5)
    assert release.internal["values_clipped"] == {"a": 9, "b": 0}
    assert release.internal["rows_released"] == N
    assert release.internal["clusters"][0]["smallest"] >= 5


def test_domains_and_notes_are_handed_on() -> None:
    data = table().append_column("person_id", pa.array(np.arange(N)))
    release = protect(data, k=5)
    assert release.domains == {"a": (0.0, 80.0), "b": (0.0, 10.0)}
    assert any("person_id" in note for note in release.notes)
    assert release.kept is None


def test_progress_is_reported_and_can_stop_the_work() -> None:
    seen: list[tuple[str, int, int]] = []
    protect(k=5, progress=lambda *step: seen.append(step))
    assert ("protecting", 2, 2) in seen
    assert all(done <= total for _, done, total in seen)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        protect(k=5, progress=stop)


def test_a_release_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        protect(k=5).statement = None  # type: ignore[misc]


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1e7", "nan", "", None, True, "1,5"])
def test_budgets_that_cannot_be_used_are_refused(epsilon: Any) -> None:
    with pytest.raises(shoal.OptionError, match="epsilon"):
        protect(k=5, epsilon=epsilon)


@pytest.mark.parametrize("k", [0, -1, N + 1, 2.5, "5"])
def test_cluster_sizes_that_cannot_be_used_are_refused(k: Any) -> None:
    with pytest.raises(shoal.OptionError, match="k "):
        protect(k=k)


def test_all_records_may_be_one_cluster() -> None:
    release = protect(k=N)
    assert len(set(release.data["b"].to_pylist())) == 1


def test_one_record_can_be_protected() -> None:
    release = shoal.protect(pa.table({"x": [3.0]}), method="laplace", epsilon=1, domains={"x": (0, 10)})
    assert release.data.num_rows == 1


def test_large_budgets_give_the_records_back() -> None:
    release = protect(method="laplace", epsilon=10**6)
    assert np.array_equal(np.sort(release.data["a"].to_numpy()), np.arange(N))
    assert np.allclose(release.aligned["b"].to_numpy(), table()["b"].to_numpy(), atol=1e-3)


def test_seeded_releases_are_independent_of_earlier_draws() -> None:
    first = protect(k=5, seed=9).data
    noise_source(None).permutation(10)
    assert protect(k=5, seed=9).data.equals(first)
