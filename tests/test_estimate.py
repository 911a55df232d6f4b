"""The estimate extrapolates between linear and quadratic growth and never looks at a record."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.cli import run
from shoal.io import read, write
from shoal.release.duration import _extrapolated, internal_seconds
from shoal.release.estimate import Estimate, _probe, estimate
from shoal.release.protect import prepare
from shoal.report.risks import MOST_ROWS
from shoal.survey import survey, survey_schema


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
    assert 0 < found.seconds < 3600
    assert found.bytes >= table.n * 2 * 8
    assert "1200 made-up rows" in str(found)


@pytest.mark.parametrize("method", ["ranking-dp", "tree-dp", "k-anonymity"])
def test_the_internal_page_of_any_method_can_be_estimated(method: str) -> None:
    people = survey(200)
    epsilon = {} if method == "k-anonymity" else {"epsilon": 1}
    prepared = prepare(
        read(people), survey_schema(), method=method, columns=["age", "sex", "income"], **epsilon
    )
    assert 0 < internal_seconds(prepared) < 3600


def test_a_page_is_extrapolated_by_rows_up_to_the_sample() -> None:
    sizes: list[int] = []

    def run(rows: int) -> float:
        sizes.append(rows)
        return 1.0 + rows / 1000

    assert _extrapolated(run, 10**7) == pytest.approx(1 + MOST_ROWS / 1000)
    assert max(sizes) <= 4000
    assert _extrapolated(run, 2500) == pytest.approx(3.5)
    assert _extrapolated(run, 700) == pytest.approx(1.7)


def test_the_dry_run_counts_the_internal_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(survey(200), tmp_path / "survey.csv")
    survey_schema().save(tmp_path / "survey.toml")
    words = ["protect", str(tmp_path / "survey.csv"), "--schema", str(tmp_path / "survey.toml"), "--dry-run"]
    words += ["--method", "ranking-dp", "--epsilon", "1", "--columns", "age,income", "--json"]
    probes = []
    for more in ([], ["--internal", str(tmp_path / "page.html"), "--out", str(tmp_path / "out")]):
        assert run([*words, *more]) == 0
        probes.append(json.loads(capsys.readouterr().out)["estimate"]["probe"])
    assert "internal report included" not in probes[0]
    assert "internal report included" in probes[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["survey.csv", "survey.toml"]


def test_in_words() -> None:
    assert str(Estimate(0.2, 10, "p")) == "about a second and 1 MB of memory (p)"
    assert str(Estimate(300, 2_000_000_000, "p")) == "about 5 minutes and 2.0 GB of memory (p)"
    assert str(Estimate(9000, 10**9, "p")).startswith("about 2.5 hours")
