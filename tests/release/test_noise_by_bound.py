"""Noise for several bounds on the rows of a unit, and inside strata: from public quantities, in a dry run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cli import run
from shoal.io import read, write
from shoal.mechanisms import within_strata
from shoal.release.forecast import noise_by_bound, noise_by_stratum, noise_of
from shoal.release.protection import prepare


def schema_of(**unit: Any) -> shoal.Schema:
    entries: list[dict[str, Any]] = [
        {"name": "who", "role": "unit", "type": "integer", **unit},
        {"name": "x", "lo": 0, "hi": 9},
        {"name": "y", "lo": 0, "hi": 1},
    ]
    return shoal.Schema.from_dict({"attribute": entries})


def table_of(n: int, each: int) -> pa.Table:
    rows = np.arange(n)
    return pa.table({"who": rows // each, "x": rows % 10, "y": rows % 2})


def forecast(n: int, each: int, unit: dict[str, Any], **settings: Any) -> Any:
    prepared = prepare(read(table_of(n, each)), schema_of(**unit), "pairs-dp", 5, **settings)
    return noise_by_bound(prepared.method, prepared.described)


def test_noise_grows_with_the_rows_of_a_unit_and_so_does_what_is_kept() -> None:
    found = forecast(3000, 4, {"bound": {"rows": 4}, "max_rows": 20}, rows=3000)
    assert [one.rows for one in found] == [1, 2, 3, 4, 5, 10, 20]
    assert [one.least_kept for one in found] == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1])
    noise = [one.share_of_rows for one in found]
    assert noise == sorted(noise)
    assert noise[-1] > 5 * noise[0] > 0


def test_it_depends_on_public_quantities_only() -> None:
    unit = {"bound": {"rows": 3}, "max_rows": 10}
    assert forecast(2000, 1, unit, rows=2500) == forecast(2700, 9, unit, rows=2500)


def test_every_line_is_the_noise_of_a_release_with_that_bound() -> None:
    found = forecast(3000, 4, {"bound": {"rows": 4}, "max_rows": 20}, rows=3000)
    for one in found:
        schema = schema_of(bound={"rows": one.rows})
        made = prepare(read(table_of(3000, 4)), schema, "pairs-dp", 5, rows=3000)
        noise = noise_of(made.method, made.described, made.plan)
        assert one.share_of_rows == max(column.share_of_rows or 0 for column in noise)


def test_there_is_none_where_rows_cannot_be_bounded() -> None:
    assert forecast(300, 2, {"max_rows": 2}, neighbours="replace-one") == ()
    plain = prepare(read(table_of(300, 1)), shoal.Schema((schema_of()["x"],)), "pairs-dp", 1)
    assert noise_by_bound(plain.method, plain.described) == ()


def test_a_dry_run_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(table_of(2000, 4), tmp_path / "stays.csv")
    schema_of(called="patient", max_rows=10).save(tmp_path / "s.toml")
    words = [
        "protect",
        "stays.csv",
        "--schema",
        "s.toml",
        "--epsilon",
        "1/2",
        "--bound",
        "rows=2",
        "--dry-run",
    ]
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert "Rows of one patient that take part, at the same ε:" in shown
    assert "2 (now): shares of rows ±" in shown
    assert "at least 20% of the rows take part" in shown
    assert "with ε = 0.5 per patient" in shown
    assert run([*words, "--json"]) == 0
    assert [one["rows"] for one in json.loads(capsys.readouterr().out)["bounds"]] == [1, 2, 3, 5, 10]
    assert run([*words[:-3], "--bound", "3", "--dry-run"]) == 2
    assert "bound must give a positive integer of rows" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml", "stays.csv"]


DIVIDED: dict[str, Any] = {"region": ["n", "s", "e"], "x": (0, 9), "y": (0, 1)}


def divided(sizes: tuple[int, ...], method: str = "pairs-dp", **options: Any) -> Any:
    rows = [name for name, size in zip("nse", sizes, strict=True) for _ in range(size)]
    table = pa.table({"region": rows, "x": np.arange(len(rows)) % 10, "y": np.arange(len(rows)) % 2})
    told = {"strata": "region", "domains": DIVIDED, **options}
    return prepare(read(table), None, method, 5, **told)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_noise_inside_strata_of_private_sizes_depends_on_public_quantities_only(neighbours: str) -> None:
    found = [
        noise_by_stratum(one.method, one.described)
        for one in (
            divided((300, 40, 0), neighbours=neighbours),
            divided((20, 310, 10), neighbours=neighbours),
        )
    ]
    assert found[0] == found[1]
    assert [one.rows for one in found[0]] == [100, 1_000, 10_000, 100_000]
    noise = [one.share_of_rows for one in found[0]]
    assert noise == sorted(noise, reverse=True)
    assert noise[0] > 50 * noise[-1] > 0


def test_noise_inside_strata_is_that_of_a_table_of_as_many_rows() -> None:
    one = divided((300, 40, 0), neighbours="add-remove")
    own, within = within_strata(one.method, one.described)
    (first, *_) = noise_by_stratum(one.method, one.described)
    assert own.strata is None
    assert within.columns == ("x", "y")
    rows = np.arange(100)
    alone = prepare(
        read(pa.table({"x": rows % 10, "y": rows % 2})), None, own, domains={"x": (0, 9), "y": (0, 1)}
    )
    expected = noise_of(alone.method, alone.described, alone.plan)
    assert first.share_of_rows == pytest.approx(max(one.share_of_rows or 0 for one in expected))


def test_public_sizes_are_those_of_the_strata() -> None:
    one = divided((300, 40, 7), neighbours="replace-one", membership="public")
    assert [found.rows for found in noise_by_stratum(one.method, one.described)] == [7, 40, 300]
    tree = divided((300, 40, 7), "tree-dp", neighbours="add-remove")
    assert noise_by_stratum(tree.method, tree.described) == ()
    whole = divided((300, 40, 7), strata=None)
    assert noise_by_stratum(whole.method, whole.described) == ()


def test_a_dry_run_prints_the_noise_inside_strata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.arange(200)
    write(pa.table({"region": rows % 2, "x": rows % 10, "y": rows % 2}), tmp_path / "people.csv")
    entries = [{"name": name, "lo": 0, "hi": hi} for name, hi in (("region", 1), ("x", 9), ("y", 1))]
    shoal.Schema.from_dict({"attribute": entries}).save(tmp_path / "people.toml")
    words = ["protect", "people.csv", "--schema", "people.toml", "--epsilon", "5", "--strata", "region"]
    assert run([*words, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "Rows of a stratum, and the noise inside it:" in said
    assert "  1,000: shares of its rows ± " in said
    assert run([*words, "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["rows"] for one in found["strata"]] == [100, 1_000, 10_000, 100_000]
