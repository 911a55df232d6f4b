"""Time estimates: growth is measured in small trials, which use the full code path and read no record."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from shoal.cli import run
from shoal.columns.description import Described
from shoal.engines.runner import LocalRunner
from shoal.evaluation.pair import MOST_ROWS
from shoal.io import read, write
from shoal.mechanisms.method import ShareNoise
from shoal.partition.multivariate import _choice
from shoal.progress import silent
from shoal.release import estimate as estimating
from shoal.release.estimate import (
    ResourceEstimate,
    affordable,
    estimate,
    estimate_in_parts,
    evaluation_seconds,
    fitted,
    internal_seconds,
    probed,
)
from shoal.release.in_parts import run as engines
from shoal.release.protection import Preparation, prepare
from shoal.release.publication import Delivery, Planned, plan
from shoal.survey import survey, survey_schema
from tests.conftest import slow_ones

LAWS: dict[str, Callable[[float], float]] = {
    "n": lambda n: n / 1e6,
    "n log n": lambda n: n * math.log(n) / 1e7,
    "n^1.5": lambda n: n**1.5 / 1e8,
    "n²": lambda n: n**2 / 1e9,
}


class Machine:
    """A clock that only trials move."""

    def __init__(self, law: Callable[[float], float], noise: float = 0.0, loading: float = 0.0) -> None:
        self.now = 0.0
        self.tried: list[int] = []
        self._law, self._noise, self._loading = law, noise, loading
        self._random = np.random.default_rng(0)

    def clock(self) -> float:
        return self.now

    def run(self, rows: int) -> float:
        once = 0.0 if self.tried else self._loading
        self.tried.append(rows)
        took = self._law(rows) * (1 + self._noise * abs(self._random.normal())) + once
        self.now += took
        return took


@pytest.mark.parametrize("once", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [5_000, 100_000, 1_000_000])
def test_an_estimate_is_within_a_factor_of_two_of_a_known_law(law: str, once: float, n: int) -> None:
    machine = Machine(lambda rows: once + LAWS[law](rows))
    found = probed(machine.run, 500, n, clock=machine.clock)
    assert 0.5 < found.expected(n) / (once + LAWS[law](n)) < 2


@pytest.mark.parametrize("law", ["n", "n log n"])
def test_noise_on_trials_does_not_make_a_linear_law_a_quadratic_one(law: str) -> None:
    for seed in range(20):
        machine = Machine(lambda rows: 0.1 + 10 * LAWS[law](rows), noise=0.1)
        machine._random = np.random.default_rng(seed)
        found = probed(machine.run, 500, 1_000_000, clock=machine.clock)
        assert 0.4 < found.expected(1_000_000) / (0.1 + 10 * LAWS[law](1_000_000)) < 2.5


def test_what_is_loaded_once_is_told_and_not_extrapolated() -> None:
    machine = Machine(lambda rows: rows / 1e5, loading=12.0)
    found = probed(machine.run, 500, 100_000, clock=machine.clock)
    assert found.law(100_000) == pytest.approx(1.0)
    assert found.preparing == pytest.approx(12.0)


def test_what_is_loaded_for_larger_tables_only_is_not_extrapolated() -> None:
    used: set[int] = set()
    now = [0.0]

    def run(rows: int) -> float:
        loading = 10.0 if rows >= 8000 and max(used, default=0) < 8000 else 0.0
        used.add(rows)
        now[0] += 1e-5 * rows + loading
        return 1e-5 * rows + loading

    assert probed(run, 2000, 10**6, clock=lambda: now[0]).law(10**6) == pytest.approx(10.0)


def test_a_method_that_takes_long_for_few_rows_is_not_tried_on_many() -> None:
    machine = Machine(lambda rows: rows / 1e3, loading=3.0)
    first = affordable(machine.run, 20_000)
    assert first == 1_250
    found = probed(machine.run, first, 25_000, clock=machine.clock)
    assert max(machine.tried) == 2_500
    assert 0.5 < found.expected(25_000) / 25 < 2
    quick = Machine(lambda rows: rows / 1e6, loading=3.0)
    assert affordable(quick.run, 20_000) == 20_000


@pytest.mark.parametrize("law", LAWS)
def test_trials_take_about_a_second_or_a_tenth_to_a_twentieth_of_the_run(law: str) -> None:
    for n in (20_000, 200_000, 5_000_000):
        machine = Machine(LAWS[law])
        found = probed(machine.run, 500, n, clock=machine.clock)
        part = 0.06 * found.law(n)
        assert machine.now < max(1.5, part, min(2 * part, 3.0)), (n, found)


def test_a_slow_method_is_tried_on_few_rows_only() -> None:
    machine = Machine(lambda rows: 10.0 + rows / 1e3)
    found = probed(machine.run, 500, 1_000, clock=machine.clock)
    assert machine.tried == [500, 500, 1000]
    assert found.expected(1_000) == pytest.approx(11.0)


def test_a_table_that_is_small_enough_is_tried_at_its_own_size() -> None:
    machine = Machine(lambda rows: 0.01)
    found = probed(machine.run, 300, 300, clock=machine.clock)
    assert (found.rows, found.expected(300)) == (300, 0.01)


def test_a_law_has_no_negative_terms() -> None:
    found = fitted({500: 1.0, 1000: 0.9, 2000: 0.8})
    assert all(factor >= 0 for factor in found.terms.values())
    assert found(10**6) > 0


def _survey(method: str, people: int = 1200, /, **settings: Any) -> Preparation:
    return prepare(read(survey(people)), survey_schema(), method=method, missing="drop", **settings)


@pytest.mark.parametrize(
    ("method", "settings"),
    slow_ones(
        [
            ("pairs-dp", {"epsilon": 1}),
            ("pairs-dp", {"epsilon": 1, "delta": "1e-6"}),
            ("pairs-dp", {"epsilon": 1, "rows": 2000}),
            ("tree-dp", {"epsilon": 1}),
            ("laplace", {"epsilon": 1}),
            ("mdav-dp", {"epsilon": 1}),
            ("mdav-dp", {"epsilon": 1, "k": 5, "strata": ["sex"]}),
            ("ranking-dp", {"epsilon": 1}),
            ("optimal-dp", {"epsilon": 1}),
            ("idp-ls", {"epsilon": 1}),
            ("insensitive-dp", {"epsilon": 1}),
            ("xm-2", {"epsilon": 1}),
            ("k-anonymity", {"k": 5}),
            ("k-anonymity", {"k": 5, "strata": ["sex"]}),
            ("swap-mdav", {"k": 5}),
            ("swap-ranking", {"k": 5}),
            ("anatomy", {"k": 5}),
            ("t-closeness", {}),
            ("suppress", {"k": 3}),
        ],
        1,
        6,
        13,
        15,
    ),
)
def test_every_kind_of_method_can_be_estimated(
    method: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # nothing is repeated to know its time better
    monkeypatch.setattr(estimating, "_SHORT", 0)
    prepared = _survey(method, 700, **settings)
    found = estimate(prepared)
    assert 0 < found.seconds < 3600
    assert found.bytes >= prepared.described.n * len(prepared.described.columns) * 8
    assert "synthetic rows" in str(found)


def test_given_labels_can_be_estimated() -> None:
    table = read(pa.table({"a": np.arange(1200.0), "b": np.arange(1200) % 7}))
    labels = np.arange(1200) // 60
    prepared = prepare(
        table, method="mdav-dp", epsilon=1, domains={"a": (0, 1200), "b": (0, 10)}, labels=labels
    )
    assert 0 < estimate(prepared).seconds < 3600


@pytest.mark.parametrize("method", ["pairs-dp", "mdav-dp"])
def test_no_record_shows_in_what_is_tried(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables with the same public facts: the trials are made of the same rows, and draw nothing of the release."""
    seen: list[list[Any]] = []
    released = estimating._released

    def watched(small: Preparation, n: int) -> Any:
        frame = small.described.table.frame.to_native()
        seen[-1].append((frame.to_pydict(), small.method.settings(), small.source.words(4).tolist(), n))
        return released(small, n)

    monkeypatch.setattr(estimating, "_released", watched)
    monkeypatch.setattr(
        estimating, "probed", lambda run, first, n, *_: run(first) and probed(lambda _: 1.0, n, n)
    )
    domains = {"a": (0, 100), "b": (0, 10)}
    for shift in (0.0, 50.0):
        table = read(pa.table({"a": np.linspace(0, 50, 900) + shift, "b": (np.arange(900) + int(shift)) % 3}))
        seen.append([])
        prepared = prepare(
            table, method=method, epsilon=1, seed=5, domains=domains, types={"a": "decimal", "b": "integer"}
        )
        before = prepared.source.child("a", 0).words(4).tolist()
        estimate(prepared)
        assert prepared.source.child("a", 0).words(4).tolist() == before
    assert seen[0]
    assert seen[0] == seen[1]


def test_a_trial_of_pairs_measures_what_the_whole_table_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows with the ε of the whole table would measure less, and need no model of pairs."""
    prepared = _survey("pairs-dp", 60_000, epsilon=1)

    def noise(asked: Preparation, described: Described) -> ShareNoise:
        found = asked.method.expected(described, asked.plan).shares
        assert found is not None
        return found

    whole = noise(prepared, prepared.described)
    small = estimating._drawing(prepared)(1000)
    assert small.described.n == 1000
    found = noise(small, small.described)
    assert found.alone == pytest.approx(whole.alone, rel=0.2)
    assert set(found.pairs) == set(whole.pairs)
    fewer = noise(prepared, small.described)
    assert max(fewer.alone.values()) > 5 * max(whole.alone.values())


def test_a_trial_of_pairs_says_what_its_missing_rounds_take() -> None:
    small = estimating._drawing(_survey("pairs-dp", 30_000, epsilon=1))(1000)
    account = small.account()
    rebuilt, left_out = small.method.trial(small.described, small.plan, account, silent)
    assert account.unspent() == {}
    assert left_out > 0
    assert all(values.size > 500 for values in rebuilt.values.values())


def test_a_trial_takes_the_algorithm_of_the_whole_table() -> None:
    from shoal.partition.base import standing_for

    assert _choice(500, 4, 5) == "numpy"
    with standing_for(1000):
        assert _choice(500, 4, 5) == "tree"
    assert _choice(500, 4, 5) == "numpy"


def test_clusters_that_are_scanned_for_are_tried_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time n²/k: with a few clusters of all rows it is linear in the clusters, so no curvature has to be guessed."""
    sizes: list[tuple[int, int]] = []

    def fake(
        prepared: Preparation, further: Any, draw: Callable[[int], Preparation]
    ) -> Callable[[int], float]:
        def seconds(rows: int) -> float:
            small = draw(rows)
            n, k = small.described.n, small.method.size
            sizes.append((n, k))
            return 0.1 + n * n / k / 1e7

        return seconds

    monkeypatch.setattr(estimating, "_timed", fake)
    for n in (20_000, 100_000):
        prepared = _survey("k-anonymity", n, k=5)
        rows = prepared.described.n
        assert 0.9 < estimate(prepared).seconds / (0.1 + rows * rows / 5 / 1e7) < 1.2
    assert max(n for n, _ in sizes) <= 40_000
    stratified = replace(prepared, method=replace(prepared.method, strata=("region",)))
    assert estimate(stratified).seconds < 0.4 * estimate(prepared).seconds


@pytest.mark.parametrize("method", ["ranking-dp", "tree-dp", "k-anonymity"])
def test_the_internal_page_and_the_measures_of_any_method_can_be_estimated(method: str) -> None:
    people = survey(200)
    epsilon = {} if method == "k-anonymity" else {"epsilon": 1}
    prepared = prepare(
        read(people), survey_schema(), method=method, columns=["age", "sex", "income"], **epsilon
    )
    assert 0 < internal_seconds(prepared) < 3600
    assert 0 < evaluation_seconds(prepared) < 3600


def test_a_page_is_extrapolated_by_rows_up_to_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "_timed", lambda *_, **__: lambda rows: 1.0 + rows / 1000)
    table = read(pa.table({"a": np.arange(200_000) % 100}))
    prepared = prepare(table, method="laplace", epsilon=1, domains={"a": (0, 100)})
    assert internal_seconds(prepared) == pytest.approx(1 + MOST_ROWS / 1000)


def test_the_dry_run_counts_measures_and_the_internal_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(survey(200), tmp_path / "survey.csv")
    survey_schema().save(tmp_path / "survey.toml")
    words = ["protect", str(tmp_path / "survey.csv"), "--schema", str(tmp_path / "survey.toml"), "--dry-run"]
    words += ["--method", "ranking-dp", "--epsilon", "1", "--columns", "age,income", "--json"]
    probes = []
    page = ["--internal", str(tmp_path / "page.html"), "--out", str(tmp_path / "out")]
    for more in ([], ["--evaluate"], page):
        assert run([*words, *more]) == 0
        probes.append(json.loads(capsys.readouterr().out)["estimate"]["probe"])
    assert ["including the measures" in probe for probe in probes] == [False, True, False]
    assert ["including the internal report" in probe for probe in probes] == [False, False, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["survey.csv", "survey.toml"]


def test_in_words() -> None:
    assert str(ResourceEstimate(0.2, 10, "p")) == "about a second and 1 MB of memory (p)"
    assert str(ResourceEstimate(300, 2_000_000_000, "p")) == "about 5 minutes and 2.0 GB of memory (p)"
    assert str(ResourceEstimate(9000, 10**9, "p")).startswith("about 2.5 hours")


def test_growth_that_starts_slowly_is_read_off_the_large_trials() -> None:
    """Parts that reach their full size soon, such as a model of intervals, are no growth."""
    machine = Machine(lambda rows: 0.4 + 0.4 * min(rows, 3_000) / 3_000 + rows / 5e4)
    found = probed(machine.run, 500, 1_000_000, (("1", "n"), ("1", "n log n")), clock=machine.clock)
    assert 0.7 < found.expected(1_000_000) / 20.8 < 1.5
    assert found.rows >= 16_000


@pytest.mark.parametrize(
    ("method", "settings", "slowest", "fastest"),
    [
        ("suppress", {"k": 3}, ("1", "n"), ("1", "n log n")),
        ("suppress", {"k": 3, "missing_as": "wildcard"}, ("1", "n"), ("1", "n²")),
        ("pairs-dp", {"epsilon": 1}, ("1", "n"), ("1", "n log n")),
        ("xm-2", {"epsilon": 1}, ("1", "n log n"), ("1", "n²")),
        ("insensitive-dp", {"epsilon": 1}, ("1", "n log n"), ("1", "n²")),
    ],
)
def test_the_laws_are_those_of_the_method(
    method: str,
    settings: dict[str, Any],
    slowest: tuple[str, ...],
    fastest: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[estimating.Laws] = []

    def watched(run: Any, first: int, n: int, laws: estimating.Laws) -> estimating.Probe:
        seen.append(laws)
        return probed(lambda _: 1.0, n, n)

    monkeypatch.setattr(estimating, "probed", watched)
    estimate(_survey(method, 200, columns=["age", "income"], **settings))
    assert (seen[0][0], seen[0][-1]) == (slowest, fastest)


def _in_parts(path: Path, table: pa.Table, **asked: Any) -> Planned:
    parquet.write_table(table, path / "people.parquet", row_group_size=400)
    delivery = Delivery(path / "out", engine="local", evaluate=asked.pop("evaluate", False))
    return plan(path / "people.parquet", delivery, estimated=True, **asked)


@pytest.mark.parametrize("method", ["laplace", "ranking-dp", "tree-dp", "pairs-dp"])
def test_an_engine_is_tried_by_its_own_way(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[tuple[int, type]] = []
    carry_out = engines.carry_out_on_engine

    def watched(prepared: Preparation, runner: Any, *rest: Any) -> Any:
        rows.append((runner.rows, type(runner)))
        return carry_out(prepared, runner, *rest)

    monkeypatch.setattr(engines, "carry_out_on_engine", watched)
    monkeypatch.setattr(estimating, "_released", lambda *_: pytest.fail("tried in memory"))
    # columns with names, dates and gaps
    found = _in_parts(
        tmp_path, survey(1500), schema=survey_schema(), missing="drop", method=method, epsilon=1
    )
    assert found.estimate is not None
    assert 0 < (found.estimate.seconds or 0) < 3600
    assert "synthetic rows" in found.estimate.probe
    assert rows[0] == (500, LocalRunner)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet"]


def test_no_record_shows_in_what_an_engine_is_tried_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[list[Any]] = []
    drawn = estimating._drawn

    def watched(*arguments: Any) -> Any:
        tables[-1].append(made := drawn(*arguments))
        return made

    monkeypatch.setattr(estimating, "_drawn", watched)
    monkeypatch.setattr(
        estimating, "probed", lambda run, first, n, *_: run(n) and probed(lambda _: 1.0, n, n)
    )
    for shift in (0.0, 50.0):
        tables.append([])
        table = pa.table({"a": np.linspace(0, 50, 900) + shift, "b": (np.arange(900) + int(shift)) % 3})
        asked: dict[str, Any] = {"domains": {"a": (0, 100), "b": (0, 10)}, "types": {"a": "decimal"}}
        _in_parts(tmp_path, table, method="ranking-dp", epsilon=1, k=5, seed=5, **asked)
    assert tables[0]
    assert [made.to_pydict() for made in tables[0]] == [made.to_pydict() for made in tables[1]]


def test_the_measures_of_an_engine_are_counted(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"method": "laplace", "epsilon": 1, "domains": {"a": (0, 900)}}
    found = _in_parts(tmp_path, pa.table({"a": np.arange(900)}), evaluate=True, **asked)
    assert found.estimate is not None
    assert found.estimate.probe.endswith("including the measures")


def test_the_time_of_a_cluster_is_not_estimated() -> None:
    class Cluster:
        """Neither asked nor tried."""

    prepared = _survey("laplace", 200, epsilon=1, columns=["age"])
    found = estimate_in_parts(prepared, cast("Any", Cluster()), evaluate=True)
    assert found.seconds is None
    assert str(found).endswith("of memory on this machine (the time on a cluster is not estimated)")
