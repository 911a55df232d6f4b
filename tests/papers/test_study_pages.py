"""Verdicts, pages, kept points and the command of reproductions, without any paper."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import papers
from papers import Claim, Desk, Erratum, Figure, Number, Section, Series, Study, reproduce
from papers.desk import source_hash
from papers.page import files, page, write
from papers.plots import COLOURS, Curve, Panel, panels
from shoal.cli import app, run
from shoal.errors import InputError, OptionError, OutputError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("printed", "found", "error", "verdict"),
    [
        ("35.4", 35.44, 0.0, "equal"),
        ("35.4", 35.35, 0.0, "equal"),
        ("35.4", 35.46, 0.0, "differs"),
        ("3.07e9", 3.0749e9, 0.0, "equal"),
        ("3.07e9", 3.0751e9, 0.0, "differs"),
        ("-.027", -0.0274, 0.0, "equal"),
        ("100", 100.4, 0.0, "equal"),
        ("1.00e2", 101.0, 0.0, "differs"),
        ("35.4", 35.6, 0.06, "within Monte Carlo error"),
        ("35.4", 35.64, 0.06, "differs"),
        # a drawn number that happens to agree is not called equal
        ("35.4", 35.4, 0.06, "within Monte Carlo error"),
    ],
)
def test_verdicts_follow_the_printed_digits(printed: str, found: float, error: float, verdict: str) -> None:
    assert Number("Table 1", "x", printed, found, error).verdict == verdict


def test_a_difference_without_a_reason_says_so() -> None:
    assert Number("t", "x", "2", 3.0).verdict_words == "differs: no explanation found"
    assert Number("t", "x", "2", 3.0, why="a typing error").verdict_words == "differs: a typing error"
    assert Number("t", "x", "2", 2.0, why="unused").verdict_words == "equal"


def test_uncertainty_has_one_digit_and_is_easy_to_read() -> None:
    words = [Number("t", "x", "20", 46.12, error).found_words for error in (12.9, 0.0062, 2.5e7)]
    assert words == ["46.1 ± 10", "46.1 ± 0.006", "46.1 ± 2e+07"]


def test_differences_are_relative_except_for_logarithms() -> None:
    assert Number("t", "x", "2.0", 3.0).difference_words == "+50.0%"
    assert Number("t", "x", "2.0", 3.0, logarithm=True).difference_words == "+1"
    assert Number("t", "x", "0", 0.0).difference_words == "0"


def test_what_is_never_reached_is_infinite() -> None:
    never = Number("t", "k from which a curve is above", "364", float("inf"), 1.0)
    assert (never.found_words, never.difference_words, never.verdict) == ("∞", "∞", "differs")


STUDY = Study(
    "A paper, recomputed",
    "What it is about.",
    [
        Section(
            "Table 1",
            "How it was made.",
            [
                Number("Table 1", "k | 3", ".018", 0.0182, why="unused"),
                Number("Table 1", "k = 5", ".02", 0.03, why="typo"),
            ],
            "| a |\n| --- |",
            [Figure("curve", "A curve", "<svg/>")],
            [
                Claim("section 5", "more is better", "2 of 2", "holds"),
                Claim("section 6", "a | b is always above", "in 1 of 2", "fails"),
            ],
        )
    ],
    [Erratum("eq. 1", "a + b", "a - b", "`tests/x.py`")],
    [Series("curve", ("k", "value"), [(1, 2.5)])],
)


def test_a_page_holds_every_part() -> None:
    text = page("paper", STUDY, "Written by `x`.")
    for part in (
        "# A paper, recomputed",
        "Written by `x`.",
        "| printed numbers | 2 | 1 equal, 1 differs |",
        "| statements of the text | 2 | 1 holds, 1 fails |",
        "| [printed errors](#errata) | 1 |",
        "- section 6: a | b is always above",
        "| Table 1 | k \\| 3 | .018 | 0.0182 | +1.1% | equal |",
        "| Table 1 | k = 5 | .02 | 0.03 | +50.0% | differs: typo |",
        "![A curve](paper/curve.svg)",
        "| section 5 | more is better | 2 of 2 | **holds** |",
        "| eq. 1 | a + b | a - b | `tests/x.py` |",
    ):
        assert part in text


def test_csv_files_hold_the_same_and_old_ones_go(tmp_path: Path) -> None:
    write(tmp_path, files("paper", STUDY, ""))
    (tmp_path / "paper" / "gone.svg").write_text("old")
    (tmp_path / "paper" / "notes.txt").write_text("somebody's own")
    write(tmp_path, files("paper", STUDY, ""))
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {
        "paper.md",
        "paper/numbers.csv",
        "paper/claims.csv",
        "paper/errata.csv",
        "paper/curve.csv",
        "paper/curve.svg",
        "paper/notes.txt",
    }
    rows = list(csv.DictReader((tmp_path / "paper" / "numbers.csv").open(encoding="utf-8")))
    assert [(row["number"], row["verdict"], row["why"]) for row in rows] == [
        ("k | 3", "equal", ""),
        ("k = 5", "differs", "typo"),
    ]


@pytest.mark.parametrize("logarithmic", [True, False])
def test_axes_of_places_are_logarithmic_or_linear(logarithmic: bool) -> None:
    curve = Curve("a", [0.1, 1, 10], [0.0, 0.5, 1.0], COLOURS[0])
    level = Curve("b", [0], [0.5], COLOURS[1])
    drawn = panels("t", [Panel("p", [curve, level])], logarithmic=logarithmic)
    places = drawn.split('points="')[1].split('"')[0].split()
    assert places[0].startswith("46.0,")
    assert places[2].startswith("320.0,")
    assert places[1].split(",")[0] == ("183.0" if logarithmic else "70.9")
    assert ">5.05<" in drawn or logarithmic


def test_points_are_kept_and_not_measured_again(tmp_path: Path) -> None:
    keep = tmp_path / "points.jsonl"
    desk = Desk(tmp_path, workers=2, keep=keep)
    assert desk.measure("powers", {str(n): partial(pow, n, 2) for n in range(4)}) == {
        "0": 0,
        "1": 1,
        "2": 4,
        "3": 9,
    }
    # a kept point is believed; a point of other code, and a line that was cut, are not
    lines = [json.dumps([source_hash(), "1", "kept"]), json.dumps(["other", "2", "stale"]), '["cut']
    keep.write_text("\n".join(lines) + "\n", "utf-8")
    seen: list[tuple[str, int, int]] = []
    desk = Desk(tmp_path, keep=keep, progress=lambda *step: seen.append(step))
    found = desk.measure("powers", {str(n): partial(pow, n, 2) for n in (1, 2)})
    assert found == {"1": "kept", "2": 4}
    assert seen == [("powers", 1, 2), ("powers", 2, 2)]
    assert len(keep.read_text("utf-8").splitlines()) == 4


def test_an_error_in_a_task_keeps_what_is_done(tmp_path: Path) -> None:
    desk = Desk(tmp_path, keep=tmp_path / "points.jsonl")
    with pytest.raises(ZeroDivisionError):
        desk.measure("powers", {"0": partial(pow, 2, 2), "1": partial(pow, 0, -1)})
    assert json.loads((tmp_path / "points.jsonl").read_text("utf-8"))[1:] == ["0", 4]


def test_missing_data_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'census\.csv' is not in .*--data"):
        Desk(tmp_path).table("census.csv")


def test_an_error_leaves_no_folder_behind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["reproduce", "psd2014", "--quick", "--data", str(tmp_path), "--out", str(out)]
    )
    assert isinstance(done.exception, InputError)
    assert not out.exists()
    out.write_text("a file")
    with pytest.raises(OutputError, match="is not a folder"):
        reproduce("psd2014", out)


def test_an_unknown_paper_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no paper 'mdai17'.*Did you mean 'mdai2017'"):
        reproduce("mdai17", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_outside_a_checkout_one_line_says_where_the_papers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = tmp_path / "lib" / "site-packages" / "shoal" / "cli" / "reproduce.py"
    monkeypatch.setattr("shoal.cli.first_steps.__file__", str(installed))
    assert run(["reproduce", "idp", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "papers/" in said
    assert "python -m papers" in said
    assert not (tmp_path / "out").exists()


def test_the_module_runs_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "papers", "mdai17"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there is no paper 'mdai17'" in done.stderr


def test_the_wheel_is_the_package_alone() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/shoal"]
    assert not (ROOT / "src" / "shoal" / "reproduce").exists()


class _Module:
    @staticmethod
    def study(desk: Desk) -> Study:
        desk.measure("nothing", {"1": partial(pow, 1, 1)})
        return STUDY


def test_the_command_writes_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(papers, "_module", lambda name: _Module)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["reproduce", "idp", "--quick", "--out", str(out), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "idp: numbers 1 equal, 1 differs; claims 1 holds, 1 fails." in done.output
    assert "Written by `shoal reproduce idp --quick` on 20" in (out / "idp.md").read_text("utf-8")
    # points are kept only while they can be needed
    assert sorted(path.name for path in out.iterdir()) == ["idp", "idp.md", "index.md"]
    alone = (out / "index.md").read_text("utf-8")
    assert "| [A paper](idp.md) | 1 equal, 1 differs | 1 holds, 1 fails | 1 | quick |" in alone
    assert "| section 6 | a \\| b is always above | in 1 of 2 |" in alone
    assert "thesis.md" not in alone
    done = CliRunner().invoke(app, ["reproduce", "all", "--out", str(out), "--json", "--workers", "1"])
    assert [one["paper"] for one in json.loads(done.output)] == list(papers.PAPERS)
    summed = (out / "index.md").read_text("utf-8")
    assert [f"]({paper}.md) | 1 equal" in summed for paper in papers.PAPERS] == [True] * 5
    assert "| quick |" not in summed


def test_an_interrupted_command_says_that_it_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(papers, "_module", stopped)
    done = CliRunner().invoke(app, ["reproduce", "idp", "--out", str(tmp_path)])
    assert done.exit_code == 130
    assert "the same command continues from there" in done.output


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_committed_pages_explain_every_difference(paper: str) -> None:
    pages = ROOT / "results" / "reproduction"
    rows = list(csv.DictReader((pages / paper / "numbers.csv").open(encoding="utf-8")))
    assert {row["verdict"] for row in rows} <= {"equal", "within Monte Carlo error", "differs"}
    assert [row["number"] for row in rows if row["verdict"] == "differs" and not row["why"]] == []
    assert "no explanation found" not in (pages / f"{paper}.md").read_text("utf-8")
