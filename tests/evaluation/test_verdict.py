"""The private part of the verdict: the usefulness rating, five measures, and a control group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError
from shoal.evaluation.learning import divide
from shoal.evaluation.result import five, usefulness
from shoal.io import read


def moved(shift: float = 0.0, columns: int = 3) -> tuple[pa.Table, pa.Table]:
    """A table and the same, moved by so many standard deviations."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=2000)
    values = {f"c{j}": common + rng.normal(size=2000) for j in range(columns)}
    return pa.table(values), pa.table({name: one + shift * one.std() for name, one in values.items()})


@pytest.mark.parametrize(
    ("shift", "level"), [(0.0, "green"), (0.09, "green"), (0.25, "amber"), (0.4, "red"), (4.0, "red")]
)
def test_averages_decide_by_their_spread(shift: float, level: str) -> None:
    before, after = moved(shift)
    found = usefulness(shoal.evaluate(before, after).utility)
    assert found is not None
    assert found.level == level
    assert f"Averages shift by at most {100 * shift:.0f}% of a standard deviation" in found.text
    assert "3 of 3 rank correlations keep their sign and size" in found.text


def test_relations_that_turn_are_not_kept() -> None:
    before, _ = moved()
    turned = before.set_column(0, "c0", pa.array(-before["c0"].to_numpy()))
    found = usefulness(shoal.evaluate(before, turned).utility)
    assert found is not None
    assert "1 of 3 rank correlations keeps its sign and size" in found.text
    assert found.level == "red"


def test_one_extreme_record_does_not_undo_a_relation() -> None:
    before, _ = moved()
    values = before["c0"].to_numpy().copy()
    values[0] = 1e6
    found = shoal.evaluate(before.set_column(0, "c0", pa.array(values)), before).utility
    assert found["correlation_difference"] > 0.1
    assert found["rank_correlations_kept"] == found["rank_correlations"] == 3


def test_names_alone_have_distributions_only() -> None:
    before = pa.table({"town": ["a", "b", "b", "c"]})
    lines = {line.title: line for line in five(shoal.evaluate(before, before).to_dict())}
    assert list(lines) == [
        "averages",
        "relations",
        "distributions",
        "rows re-identified",
        "smallest equivalence class",
    ]
    assert lines["averages"].judgement == ""
    assert lines["distributions"].judgement == "good"
    assert "(all columns)" in lines["smallest equivalence class"].words


def test_the_verdict_takes_whatever_has_a_statement() -> None:
    table, _ = moved()
    domains = {name: (-10.0, 10.0) for name in table.column_names}
    release = shoal.protect(table, method="laplace", epsilon="1", domains=domains)
    forms: tuple[Any, ...] = (release, release.statement, release.statement.to_dict())
    assert {shoal.verdict(form).lines for form in forms} == {release.statement.verdict.lines}
    assert "poor" in shoal.verdict(release, shoal.evaluate(table, release)).lines[-1]
    assert repr(shoal.verdict(release)) == "<Verdict: publish with these limits: See .lines.>"
    assert "Noise dominates c0, c1, c2" in shoal.verdict(release).lines[1]


def test_a_control_group_is_a_random_part() -> None:
    table = read(pa.table({"who": [str(i // 2) for i in range(100)], "x": list(range(100))}))
    kept, aside = divide(table, 0.2)
    assert (kept.size, aside.size) == (80, 20)
    assert sorted([*kept, *aside]) == list(range(100))
    assert any(divide(table, 0.2)[1].tolist() != aside.tolist() for _ in range(3))
    kept, aside = divide(table, 0.2, "who")
    assert aside.size == 20
    assert not {row // 2 for row in kept.tolist()} & {row // 2 for row in aside.tolist()}
    with pytest.raises(InputError, match="Did you mean 'who'"):
        divide(table, 0.2, "whom")
    with pytest.raises(InputError, match="cannot be split into two groups"):
        divide(table, 0.001)
