"""Preprocessing steps, weights and missing-value texts on engines: results and messages as in memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.engines import runner

JOBS = {"work": {"hands": ["cook", "baker"], "care": ["nurse"], "office": ["clerk", "judge"]}}
N = 400
STEPS: list[dict[str, Any]] = [
    {"recode": "age", "breaks": [0, 25, 65, math.inf], "source": "questionnaire"},
    {"top": "income", "at": 1000, "source": "law"},
    {"bottom": "income", "at": 100, "put": 0},
    {"recode": "job", "level": 1},
    {"recode": "civil", "mapping": {"widowed": "was married", "divorced": "was married"}},
    {"drop": "zip"},
]


def people() -> pa.Table:
    return pa.table(
        {
            "zip": range(N),
            "age": [1 + 7 * i % 90 for i in range(N)],
            "income": [37 * i % 4000 for i in range(N)],
            "job": [["cook", "baker", "nurse", "clerk", "judge", "?"][i % 6] for i in range(N)],
            "civil": [["single", "married", "widowed", "divorced"][i % 4] for i in range(N)],
            "w": [1.0 + i % 3 for i in range(N)],
        }
    )


def schema(*steps: dict[str, Any], weight: str = "dropped", **more: Any) -> shoal.Schema:
    declared: list[dict[str, Any]] = [
        {"name": "age", "type": "integer", "lo": 0, "hi": 120},
        {"name": "income", "type": "integer", "lo": 0, "hi": 10000},
        {"name": "job", "type": "text", "taxonomy": JOBS, "missing": "category"},
        {"name": "civil", "type": "text", "values": ["single", "married", "widowed", "divorced"]},
        {"name": "zip", "type": "integer", "lo": 0, "hi": 999},
        {"name": "w", "type": "decimal", "role": "weight", "lo": 0, "hi": 10, **more},
    ]
    if weight != "dropped":
        declared[-1]["release"] = weight
    return shoal.Schema.from_dict({"attribute": declared, "step": list(steps)})


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BATCH", 70)


def stored(folder: Path, table: pa.Table) -> Path:
    parquet.write_table(table, folder / "in.parquet", row_group_size=90)
    return folder / "in.parquet"


@pytest.mark.parametrize("method", ["tree-dp", "pairs-dp", "ranking-dp", "laplace"])
@pytest.mark.parametrize("weight", ["dropped", "masked"])
def test_steps_and_weights_as_in_memory(method: str, weight: str, tmp_path: Path) -> None:
    data = stored(tmp_path, people())
    asked: dict[str, Any] = {"method": method, "epsilon": 5, "seed": 3, "na": ["?"]}
    if method == "ranking-dp":
        asked["k"] = 20
    declared = schema(*STEPS, weight=weight)
    made = shoal.publish(data, declared, out=tmp_path / "out", engine="local", **asked)
    expected = shoal.protect(data, declared, **asked)
    found = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert made.release.statement.to_dict() == expected.statement.to_dict()
    assert made.release.schema == expected.schema
    assert found.schema.equals(expected.data.schema)
    assert found.column_names == ["age", "income", "job", "civil"] + ["w"] * (weight == "masked")
    ours, theirs = made.release.internal, expected.internal
    assert (ours["steps"], ours["values_clipped"]) == (theirs["steps"], theirs["values_clipped"])
    if method != "laplace":
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.data.to_pylist()))


@pytest.mark.parametrize(
    ("column", "row", "value", "words"),
    [
        ("age", 250, 0, "the value in row 251 lies outside the bands"),
        ("job", 333, "pilot", "pilot"),
        ("income", 120, 20_000, "some values of column 'income' lie outside 0:10000: widen"),
    ],
)
def test_what_is_wrong_for_a_step_is_told_in_the_same_words(
    column: str, row: int, value: Any, words: str, tmp_path: Path
) -> None:
    table = people().to_pydict()
    table[column][row] = value
    # a later step fails on an earlier row: the first step is told, as in memory
    table["job"][5] = "acrobat" if column == "age" else table["job"][5]
    data = stored(tmp_path, pa.table(table))
    asked: dict[str, Any] = {"method": "laplace", "epsilon": 1, "na": ["?"]}
    steps = [step for step in STEPS if column != "income" or "top" not in step]
    if column == "income":
        steps.append({"top": "income", "at": 30_000, "put": 900})
    declared = schema(*steps)
    with pytest.raises(shoal.ShoalError) as memory:
        shoal.protect(data, declared, **asked)
    with pytest.raises(shoal.ShoalError) as parts:
        shoal.publish(data, declared, out=tmp_path / "out", engine="local", **asked)
    assert str(parts.value) == str(memory.value)
    assert words in str(parts.value)
    assert not (tmp_path / "out").exists()


def test_measures_compare_with_the_original_after_its_steps(tmp_path: Path) -> None:
    data = stored(tmp_path, people())
    asked: dict[str, Any] = {"method": "tree-dp", "epsilon": 1, "na": ["?"], "seed": 5, "evaluate": True}
    asked["internal"] = tmp_path / "in.html"
    parts = shoal.publish(data, schema(*STEPS), out=tmp_path / "parts", engine="local", **asked)
    asked["internal"] = tmp_path / "memory.html"
    memory = shoal.publish(data, schema(*STEPS), out=tmp_path / "memory", engine="memory", **asked)
    assert "was married" in (tmp_path / "in.html").read_text("utf-8")
    one, two = (published.evaluation.to_dict()["utility"] for published in (parts, memory))
    assert flat(one) == pytest.approx(flat(two), nan_ok=True)
    assert len(flat(one)) > 10


def flat(found: Any, name: str = "") -> dict[str, float]:
    """All numbers of a nested dictionary by their places."""
    if isinstance(found, dict):
        return {key: value for k, v in found.items() for key, value in flat(v, f"{name}/{k}").items()}
    if isinstance(found, list):
        return flat(dict(enumerate(found)), name)
    return {name: found} if isinstance(found, (int, float)) else {}
