"""Measures of tables that are never in memory are those of the same tables in memory."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run
from shoal.engines.runner import LocalRunner
from shoal.evaluation.assessment import check
from shoal.evaluation.in_parts import counts, summaries
from shoal.io.binary_files import frozen
from shoal.release import measure as opened
from shoal.release.measure import checked, evaluated
from shoal.report.findings import of_bundle, published
from tests.conftest import amount
from tests.support.mixed_table import NAMES, columns, schema, table

from . import measured
from .measured import Sharded, runner_of, same
from .twice import Twice

MEASURING = sorted((Path(shoal.__file__).parent / "evaluation" / "in_parts").glob("*.py"))
LEVELS: dict[str, Any] = {"k": 2, "l": None, "t_emd": None, "t_ratio": None}


def both(folder: Path, kind: type[LocalRunner] = Twice, *names: str) -> tuple[LocalRunner, LocalRunner]:
    before, after = measured.table(1, 400), measured.table(2, 350)
    if names:
        before, after = before.select(names), after.select(names)
    return runner_of(before, folder / "before.parquet", kind), runner_of(
        after, folder / "after.parquet", kind
    )


@pytest.mark.parametrize(
    "names",
    [(), ("x",), ("town", "yes"), ("same", "odd"), ("x", "i", "big")],
    ids=lambda names: "+".join(names) or "all",
)
def test_two_tables_have_the_measures_of_memory(names: tuple[str, ...], tmp_path: Path) -> None:
    kind = Twice if names else Sharded
    before = Twice.compared
    found = evaluated(both(tmp_path, kind, *names))
    assert Twice.compared > before + 5
    expected = shoal.evaluate(tmp_path / "before.parquet", tmp_path / "after.parquet")
    same(expected.to_dict(), found.to_dict())
    assert found.remarks == ()


@pytest.mark.parametrize("gaps", [(), NAMES[:-1]], ids=["whole", "gaps"])
def test_a_bundle_has_the_measures_and_the_verdict_of_memory(gaps: Sequence[str], tmp_path: Path) -> None:
    told = {"missing": "category"}
    public = schema(
        **({name.split()[0]: told for name in ("age", "level", "born", "job", "code")} if gaps else {})
    )
    if gaps:
        public = schema(
            **dict.fromkeys(("age", "amount", "level", "born", "smokes", "job", "code", "colour"), told)
        )
    original = table(columns(gaps=gaps), "pyarrow")
    parquet.write_table(original, tmp_path / "people.parquet", row_group_size=70)
    shoal.publish(
        tmp_path / "people.parquet", out=tmp_path / "out", schema=public, method="tree-dp", epsilon=3, seed=1
    )
    bundle = of_bundle(tmp_path / "out", on_disk=True)
    runners = Twice(frozen(tmp_path / "people.parquet")), Twice(frozen(tmp_path / "out" / "data.parquet"))
    found = evaluated(runners, bundle, na=bundle.na)
    expected = shoal.evaluate(tmp_path / "people.parquet", published(of_bundle(tmp_path / "out")))
    same(expected.to_dict(), found.to_dict())
    assert shoal.verdict(bundle.statement, found).lines == shoal.verdict(bundle.statement, expected).lines


@pytest.mark.parametrize(
    ("quasi", "confidential"),
    [
        (["town", "yes"], ["x", "day", "i", "odd", "big"]),
        (["big", "town", "i"], ["town_2"]),
        (["x", "at"], ["yes", "town"]),
        (["same"], []),
        (["odd", "day"], ["at"]),
    ],
    ids=lambda names: "+".join(names) or "none",
)
def test_checks_reach_the_levels_of_memory(quasi: list[str], confidential: list[str], tmp_path: Path) -> None:
    people = measured.table(3, 600)
    people = people.append_column("town_2", measured.table(4, 600)["town"])
    runner = runner_of(people, tmp_path / "people.parquet", Sharded if "town" in quasi else Twice)
    levels = {**LEVELS, **({"l": 2, "t_emd": 0.3, "t_ratio": 5.0} if confidential else {})}
    found = checked(runner, quasi, confidential, levels=levels).to_dict()
    expected = check(tmp_path / "people.parquet", quasi, confidential, **levels).to_dict()
    assert found["risk"].pop("suda") is None
    assert expected["risk"].pop("suda") is not None
    (remark,) = found.pop("remarks")
    assert remark.startswith("Special uniques were not searched")
    assert expected.pop("remarks") == []
    same(expected, found)


def test_weights_are_left_out_and_said_and_persons_are_refused(tmp_path: Path) -> None:
    people = pa.table({"a": [1, 1, 2], "w": [2.0, 3.0, 4.0], "who": [1, 2, 2]})
    path = tmp_path / "people.parquet"
    runner = runner_of(people, path)
    roles = {"a": "quasi-identifier", "w": "weight", "who": "unit"}

    def declared(*names: str) -> shoal.Schema:
        return shoal.Schema(tuple(shoal.Attribute(name, role=roles[name]) for name in names))

    found = checked(runner, schema=declared("a", "w"), levels=LEVELS)
    assert found.k == 1
    assert found.disclosure is None
    assert any("column 'w' has weights" in remark for remark in found.remarks)
    with pytest.raises(shoal.OptionError, match=r"column 'who' is the unit.*use engine=memory"):
        checked(runner, schema=declared("a", "who"), levels=LEVELS)
    with pytest.raises(shoal.OptionError, match=r"column 'who' is the unit.*use engine=memory"):
        shoal.check(path, schema=declared("a", "who"), engine="local")
    with pytest.raises(
        shoal.OptionError, match="unit: this option needs all records in memory; use engine=memory"
    ):
        shoal.check(path, ["a"], unit="who", engine="local")
    folder = tmp_path / "folder"
    folder.mkdir()
    path.rename(folder / "part.parquet")
    # without an engine asked for, a folder with a unit is taken in memory
    assert shoal.check(folder, schema=declared("a", "who")).persons is not None
    assert shoal.check(folder, schema=declared("a")).persons is None


def test_too_many_values_texts_and_cells_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runners = both(tmp_path)
    monkeypatch.setattr(summaries, "MOST_VALUES", 60)
    found = evaluated(runners)
    expected = shoal.evaluate(tmp_path / "before.parquet", tmp_path / "after.parquet")
    assert found.remarks[0].startswith(
        "Ranks and the Wasserstein distance of x, day, at are accurate to one part in"
    )
    ours, theirs = (one.utility["attributes"]["x"] for one in (found, expected))
    assert ours["wasserstein"] == pytest.approx(theirs["wasserstein"], abs=0.05)
    assert ours["wasserstein"] != theirs["wasserstein"]
    # whatever does not need all values is exact
    same(*({k: v for k, v in line.items() if k != "wasserstein"} for line in (theirs, ours)))
    monkeypatch.undo()
    for module in (summaries, counts):
        monkeypatch.setattr(module, "MOST_LABELS", 2)
    found = evaluated(runners)
    assert found.skipped["town"] == "more distinct texts than Shoal counts in parts"
    assert "town" not in found.columns
    assert found.remarks == ("Not measured (more distinct texts than Shoal counts in parts): town.",)
    monkeypatch.undo()
    monkeypatch.setattr(summaries, "_MOST_CELLS", 1)
    monkeypatch.setattr(summaries, "_FEWEST_CELLS", 4)
    found = evaluated(runners)
    assert (
        "Left out of the two-way tables, because too many cells are in use: x and i; x and odd; "
        in found.remarks[0]
    )
    monkeypatch.setattr("shoal.evaluation.in_parts.evaluate.MOST_VALUES", 60)
    words = "column 'x' has more than 60 distinct values, and the distances"
    with pytest.raises(shoal.InputError, match=words):
        checked(runners[0], ["yes"], ["x"], levels=LEVELS)


def test_only_the_sizes_of_groups_come_back(tmp_path: Path) -> None:
    class Listening(LocalRunner):
        returned = 0

        def collect(self, *asked: Any) -> Any:
            found = super().collect(*asked)
            Listening.returned += sum(batch.nbytes for batch in found)
            return found

    people = pa.table({"a": np.arange(50_000), "b": np.arange(50_000) % 7})
    runner = runner_of(people, tmp_path / "people.parquet", Listening, 5000)
    found = checked(runner, ["a"], ["b"], levels=LEVELS)
    assert (found.k, found.groups) == (1, 50_000)
    # hashes of all rows are 800,000 bytes
    assert Listening.returned < 2000


def test_a_value_that_cannot_be_read_is_told_with_its_row(tmp_path: Path) -> None:
    original = table(columns(), "pyarrow")
    asked: dict[str, Any] = {"schema": schema(), "method": "tree-dp", "epsilon": 3, "seed": 1}
    shoal.publish(original, out=tmp_path / "out", **asked)
    level = original["level"].to_pylist()
    level[150] = "lowest"
    place = original.column_names.index("level")
    wrong = original.set_column(place, "level", pa.array(level))
    runner = runner_of(wrong, tmp_path / "wrong.parquet")
    bundle = of_bundle(tmp_path / "out", on_disk=True)
    with pytest.raises(shoal.InputError) as parts:
        evaluated((runner, Twice(frozen(tmp_path / "out" / "data.parquet"))), bundle)
    with pytest.raises(shoal.InputError) as memory:
        shoal.evaluate(wrong, published(bundle))
    assert str(parts.value) == str(memory.value)
    assert "in row 151" in str(parts.value)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file, a release of it in a folder of files, and a schema with roles."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(5)
    people = pa.table(
        {
            "age": rng.integers(0, 100, 500),
            "pay": rng.lognormal(8, 1, 500).clip(0, 1e5).round(2),
            "town": rng.choice(["a", "b", "c"], 500),
        }
    )
    parquet.write_table(people, folder / "people.parquet", row_group_size=150)
    declared = [
        {"name": "age", "lo": 0, "hi": 120, "role": "quasi-identifier"},
        {"name": "pay", "lo": 0.0, "hi": 100_000.0, "role": "confidential"},
        {"name": "town", "values": ["a", "b", "c"], "role": "quasi-identifier"},
    ]
    public = shoal.Schema.from_dict({"attribute": declared})
    public.save(folder / "people.toml")
    asked: dict[str, Any] = {"schema": public, "method": "tree-dp", "epsilon": 1, "seed": 1}
    shoal.publish(folder / "people.parquet", out=folder / "out", **asked)
    whole = parquet.read_table(folder / "out" / "data.parquet")
    (folder / "out" / "data.parquet").unlink()
    (folder / "out" / "data").mkdir()
    for part in range(2):
        parquet.write_table(whole.slice(250 * part, 250), folder / "out" / "data" / f"part-{part:05}.parquet")
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(list(words)) == 0
    return capsys.readouterr().out


def test_evaluate_prints_the_same_from_a_folder_of_files(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for released in ("out", "out/data"):
        pair = ["evaluate", "people.parquet", released]
        ours, theirs = (printed(capsys, *pair, "--engine", engine) for engine in ("local", "memory"))
        assert "Verdict: do not publish." in ours
        assert ours == theirs
        same(*(json.loads(printed(capsys, *pair, "--json", "--engine", e)) for e in ("memory", "local")))


def test_large_tables_are_worked_through_in_parts(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[str] = []
    collect = LocalRunner.collect
    monkeypatch.setattr(LocalRunner, "collect", lambda *asked: chosen.append(asked[1]) or collect(*asked))
    alone = ["evaluate", "people.parquet", "people.parquet"]
    printed(capsys, *alone)
    printed(capsys, *alone, "--engine", "memory")
    assert chosen == []
    monkeypatch.setattr(opened, "LARGE", 1500)
    printed(capsys, *alone, "--engine", "memory")
    printed(capsys, *alone, "--same-order")
    assert chosen == []
    printed(capsys, *alone)
    assert chosen[0] == "counting values"
    # the limit of releases
    from shoal.release import publication as publish

    monkeypatch.undo()
    assert getattr(publish, "_LARGE", opened.LARGE) == opened.LARGE


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["evaluate", "people.parquet", "out", "--engine", "local", "--target", "age>50"],
            "a classifier must be trained on the whole table",
        ),
        (
            ["evaluate", "people.parquet", "out", "--engine", "local", "--weight", "pay"],
            "weight every record",
        ),
        (
            ["evaluate", "people.csv", "out", "--engine", "local"],
            "'people.csv' is neither: save the table as Parquet",
        ),
        (["evaluate", "people.parquet", "out", "--master", "local[2]"], "--engine spark"),
        (["check", "people.parquet", "--quasi", "age", "--engine", "dask"], "engine 'dask' is not one of"),
        (
            ["check", "people.parquet", "--quasi", "age", "--weight", "pay", "--engine", "local"],
            "needs all records in memory",
        ),
        (["check", "out", "--quasi", "agge"], "no column 'agge'"),
        (
            ["report", "out", "--original", "people.parquet", "--target", "age>50", "--engine", "local"],
            "classifier",
        ),
    ],
    ids=lambda value: " ".join(value[:1] + value[-2:]) if isinstance(value, list) else "",
)
def test_what_cannot_be_had_in_parts_is_refused_in_one_line(
    words: list[str], reason: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("people.csv").write_text("age\n1\n")
    before = sorted(here.iterdir())
    assert run(words) == 2
    told = capsys.readouterr().err
    assert reason in told
    assert told.count("\n") == 1
    assert sorted(here.iterdir()) == before


def test_check_of_a_folder_of_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--schema", "people.toml", "--json"]
    parquet.write_table(parquet.read_table("out/data"), "whole.parquet")
    expected = json.loads(printed(capsys, "check", "whole.parquet", *asked))
    assert expected["risk"].pop("suda") is not None
    assert expected.pop("remarks") == []
    for place in ("out", "out/data"):
        found = json.loads(printed(capsys, "check", place, *asked))
        assert found["risk"].pop("suda") is None
        assert found.pop("remarks")
        same(expected, found)
    assert run(["check", "out", "--schema", "people.toml", "--k", "50"]) == 1
    assert "a required level is not reached" in capsys.readouterr().err


def test_programs_ask_the_same(here: Path) -> None:
    found = {engine: shoal.evaluate("people.parquet", "out", engine=engine) for engine in ("memory", "local")}
    same(found["memory"].to_dict(), found["local"].to_dict())
    by_size = shoal.evaluate("people.parquet", Path("out/data"), columns=["age"])
    assert by_size.columns == ("age",)
    levels = {engine: shoal.check("out/data", ["age"], ["pay"], k=2, engine=engine) for engine in found}
    assert levels["local"].remarks
    assert not levels["memory"].remarks
    assert (levels["local"].k, levels["local"].emd) == (
        levels["memory"].k,
        pytest.approx(levels["memory"].emd),
    )
    with pytest.raises(shoal.OptionError, match="rows are compared one by one; use engine=memory"):
        shoal.evaluate("people.parquet", "people.parquet", same_order=True, engine="local")
    with pytest.raises(shoal.OptionError, match="in parts: save the table as Parquet"):
        shoal.check(pa.table({"a": [1]}), ["a"], engine="local")


def test_weights_leave_a_section_out_of_the_page_and_it_says_so(here: Path) -> None:
    recipe = Path("out/method.toml").read_text("utf-8")
    assert recipe.count('role = "confidential"') == 1
    Path("out/method.toml").write_text(recipe.replace('role = "confidential"', 'role = "weight"'), "utf-8")
    assert (
        run(["report", "out", "--original", "people.parquet", "--engine", "local", "--out", "in.html"]) == 0
    )
    page = Path("in.html").read_text("utf-8")
    assert "The section on disclosure risk was left out: The disclosure risk was not measured" in page
    assert "Survey estimates were not computed" in page


def test_pages_are_the_same_but_for_special_uniques(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = {}
    for engine in ("memory", "local"):
        for name, more in (("public", []), ("compared", ["--original", "people.parquet"])):
            run(["report", "out", *more, "--engine", engine, "--out", f"{name}-{engine}.html"])
            pages[name, engine] = Path(f"{name}-{engine}.html").read_text("utf-8").splitlines()
    differ = set(pages["public", "memory"]) ^ set(pages["public", "local"])
    assert all("distinct rows" in line or "not counted" in line or "among" in line for line in differ), differ
    ours, theirs = pages["compared", "local"], pages["compared", "memory"]
    kept = [line for line in theirs if line in set(ours)]
    assert len(kept) > 0.97 * len(theirs)
    extra = [
        line for line in ours if line not in set(theirs) and "Special uniques were not searched" not in line
    ]
    # correlations are sums in another order
    assert all("e-" in line for line in extra), extra


def test_an_engine_measures_what_it_released(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--schema", "people.toml", "--method", "tree-dp", "--epsilon", "1", "--seed", "2"]
    out = ["--engine", "local", "--out", "new", "--evaluate", "--internal", "in.html", "--json"]
    found = json.loads(printed(capsys, "protect", "people.parquet", *asked, *out))
    parts = found["evaluation"]
    (remark,) = parts.pop("remarks")
    assert remark.startswith("SSE, record linkage and other row-by-row measures were not computed")
    after = json.loads(printed(capsys, "evaluate", "people.parquet", "new", "--json", "--engine", "memory"))
    same({k: v for k, v in after.items() if k not in ("verdict", "remarks")}, parts)
    assert after["verdict"] == found["verdict"]
    page = Path("in.html").read_text("utf-8")
    assert "Internal report" in page
    assert "Disclosure risk" in page
    assert "row-by-row measures were not computed" in page


def test_no_task_of_measures_can_reach_entropy() -> None:
    assert len(MEASURING) > 3
    for path in MEASURING:
        names = {
            name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        }
        assert not [
            name for name in names if name in ("os", "random", "secrets") or name.startswith("shoal.noise")
        ]


@pytest.mark.slow
def test_several_row_groups_have_the_measures_of_memory(tmp_path: Path) -> None:
    from benchmarks.engines import make_table

    rows = amount(300_000, 1_000_000)
    kept = rows * 9 // 10
    make_table(tmp_path / "before.parquet", rows)
    rng = np.random.default_rng(3)
    after = parquet.read_table(tmp_path / "before.parquet").slice(0, kept)
    noisy = {name: after[name].to_numpy() + rng.integers(-9, 10, kept) for name in after.column_names}
    parquet.write_table(pa.table(noisy), tmp_path / "after.parquet", row_group_size=1 << 17)
    paths = tmp_path / "before.parquet", tmp_path / "after.parquet"
    found = evaluated([LocalRunner(frozen(path)) for path in paths])
    same(shoal.evaluate(*paths).to_dict(), found.to_dict())
    levels = {**LEVELS, "t_emd": 0.5}
    secret = checked(LocalRunner(frozen(paths[0])), ["age", "hours"], ["income"], levels=levels)
    expected = check(paths[0], ["age", "hours"], ["income"], **levels)
    for one in (secret, expected):
        assert one.disclosure is not None
    ours, theirs = secret.to_dict(), expected.to_dict()
    for told in (ours, theirs):
        del told["remarks"], told["risk"]["suda"]
    same(theirs, ours)
