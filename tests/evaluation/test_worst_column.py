"""Summaries name the worst column, agree with each other, use survey weights, and explain synthetic records."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.cli import run
from shoal.columns.schema import unsettled
from shoal.evaluation.result import five, usefulness


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 80, 400),
            "pay": rng.integers(0, 1000, 400),
            "town": rng.choice(["A", "B"], 400),
        }
    )


def test_the_column_that_moves_most_is_named(people: pd.DataFrame) -> None:
    changed = people.assign(pay=people["pay"] + 400)
    measured = shoal.evaluate(people, changed).to_dict()
    found = usefulness(measured["utility"])
    assert found is not None
    assert re.search(r"verages shift by at most 1\d\d% of a standard deviation \(pay\)", found.text)
    assert re.search(r"otal variation distance at most \d+% \(pay\)", found.text)
    averages, _, distributions, *_ = five(measured)
    assert averages.words.endswith("(pay)")
    assert distributions.words.endswith("(pay)")


def test_every_figure_of_what_moved_on_a_page_is_the_same(people: pd.DataFrame, tmp_path: Path) -> None:
    release = shoal.protect(
        people, epsilon=1, domains={"age": (0, 120), "pay": (0, 1000), "town": ["A", "B"]}, seed=2
    )
    measured = shoal.evaluate(people, release)
    release.save(tmp_path / "out", internal=tmp_path / "internal.html", evaluation=measured, original=people)
    page = html.unescape(re.sub(r"<[^>]+>", "", (tmp_path / "internal.html").read_text("utf-8")))
    lines = measured.utility["attributes"]
    worst = max(lines, key=lambda name: lines[name]["total_variation"])
    assert re.search(rf"total variation distance at most [\d.]+% \({worst}\)", page)
    told = {float(share) for share in re.findall(r"([\d.]+)% of the rows would have to move(?! to)", page)}
    assert len(told) >= 2
    for share in told:
        assert min(abs(share / 100 - line["total_variation"]) for line in lines.values()) < 0.006


def test_a_survey_is_judged_by_weighted_averages() -> None:
    """Rows that stand for many moved; those that stand for few, and are most, did not."""
    rng = np.random.default_rng(4)
    before = pd.DataFrame(
        {"pay": rng.normal(500, 100, 1000), "w": np.where(np.arange(1000) < 100, 90.0, 1.0)}
    )
    after = before.assign(pay=before["pay"] + np.where(np.arange(1000) < 100, 200, 0))
    measured = shoal.evaluate(before, after, columns=["pay"], weight="w").to_dict()
    plain = usefulness(measured["utility"])
    weighed = usefulness(measured["utility"], measured["estimates"])
    assert plain is not None
    assert weighed is not None
    # by hand: 9,000 of 9,900 people moved by 200
    spread = np.sqrt(np.cov(before["pay"], aweights=before["w"], ddof=0))
    assert measured["estimates"]["mean_shifts"]["pay"] == pytest.approx(200 * 9000 / 9900 / spread)
    assert (plain.level, weighed.level) == ("amber", "red")
    assert weighed.text.startswith("Weighted averages shift")
    assert five(measured)[0].title == "weighted averages"


def test_what_becomes_of_a_weight_is_asked_for(people: pd.DataFrame) -> None:
    entries = [
        {"name": "age", "type": "integer", "lo": 0, "hi": 120, "source": "law"},
        {"name": "w", "type": "decimal", "role": "weight", "source": "questionnaire"},
    ]
    schema = shoal.Schema.from_dict({"attribute": entries})
    assert any("'w' is a survey weight: declare its release" in str(line) for line in unsettled(schema))
    release = shoal.protect(people[["age"]].assign(w=1.0), schema, epsilon=1, seed=1)
    assert any("release = dropped, masked or raked" in note for note in release.notes)
    chosen = shoal.Schema.from_dict({"attribute": [entries[0], {**entries[1], "release": "dropped"}]})
    assert "weight-undecided" not in [line.code for line in unsettled(chosen)]


def test_alike_rows_of_a_synthetic_table_are_called_no_risk_of_a_person(people: pd.DataFrame) -> None:
    domains = {"age": (0, 120), "pay": (0, 1000)}
    drawn = shoal.evaluate(
        people, shoal.protect(people, epsilon=1, domains=domains, columns=list(domains), seed=1)
    )
    assert drawn.synthetic
    assert "synthetic" in five(drawn.to_dict())[-1].words
    masked = shoal.protect(
        people, method="ranking-dp", epsilon=1, k=5, domains=domains, columns=list(domains), seed=1
    )
    kept = shoal.evaluate(people, masked)
    assert not kept.synthetic
    assert "synthetic" not in five(kept.to_dict())[-1].words


@pytest.mark.parametrize("command", [["check", "--quasi", "age"], ["risk", "--keys", "age"]])
def test_classical_risk_of_synthetic_rows_says_what_it_means(
    command: list[str], people: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    domains = {"age": (0, 120), "pay": (0, 1000)}
    asked: dict[str, Any] = {"epsilon": 1, "domains": domains, "columns": list(domains)}
    shoal.protect(people, **asked).save(tmp_path / "drawn", format="csv")
    shoal.protect(people, method="ranking-dp", k=5, **asked).save(tmp_path / "kept", format="csv")
    for folder, synthetic in (("drawn", True), ("kept", False)):
        assert run([command[0], str(tmp_path / folder / "data.csv"), *command[1:]]) == 0
        assert ("synthetic and belong to no person" in capsys.readouterr().err) is synthetic
