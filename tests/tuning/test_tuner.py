"""`shoal.tune` from end to end on small tables: figures are those of releases, runs are kept, choices taint."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import ClaimError, InputError, OptionError, OutputError
from shoal.mechanisms.registry import DEFAULT_METHOD, load_recipe
from shoal.survey import survey, survey_schema
from shoal.text import Message
from shoal.tuning import expected, tuner
from shoal.tuning.grid import DEFAULT_METHODS, over_seeds

COLUMNS = ["age", "income", "tax"]


def tuned(data: Any = None, **options: Any) -> shoal.Tuning:
    arguments: dict[str, Any] = {
        "epsilon": "1",
        "methods": ["laplace", "ranking-dp"],
        "ks": [5, 40],
        "seeds": 2,
        "columns": COLUMNS,
        "workers": 1,
        **options,
    }
    return shoal.tune(survey(160) if data is None else data, survey_schema(), **arguments)


def test_figures_are_those_of_seeded_releases() -> None:
    found = tuned(utility="wasserstein")
    assert len(found.rows) == 3
    for row in found.rows:
        releases = [
            shoal.protect(
                survey(160), survey_schema(), row.setting.method, "1", row.setting.k, seed, columns=COLUMNS
            )
            for seed in (1, 2)
        ]
        measured = [shoal.evaluate(survey(160), release) for release in releases]
        assert row.loss == over_seeds([m.utility["wasserstein"] for m in measured])
        assert row.risk == over_seeds([m.risk["record_linkage"] for m in measured], most=100)
        assert row.model == releases[0].statement.model
        assert row.measures["normalised_sse"].exact
    assert found.best == found.rows[0].setting


def test_closed_forms_need_no_runs_and_are_the_same_with_them() -> None:
    slow, fast = tuned(), tuned(fast=True)
    assert fast.utility == slow.utility == "normalised_sse"
    assert [row.loss for row in fast.rows] == [row.loss for row in slow.rows]
    assert all(row.loss is not None and row.loss.exact for row in fast.rows)
    assert all(row.risk is None for row in fast.rows)
    assert all(row.risk is not None for row in slow.rows)
    assert (fast.seeds, slow.seeds) == (0, 2)
    assert fast.best == slow.best


@pytest.mark.slow
def test_processes_and_frame_libraries_change_nothing() -> None:
    data = survey(160).select(["person_id", *COLUMNS])
    schema = shoal.Schema(tuple(survey_schema()[name] for name in data.column_names))
    found = [
        shoal.tune(frame, schema, "1", ["mdav-dp", "tree-dp"], [10, 30], seeds=2, workers=workers)
        for frame, workers in (
            (data, 1),
            (pd.DataFrame(data.to_pydict()), 2),
            (pl.DataFrame(data.to_pydict()), 1),
        )
    ]
    assert found[0].utility == "wasserstein"
    assert found[0].to_dict() == found[1].to_dict() == found[2].to_dict()


def test_methods_whose_rows_belong_to_nobody_change_the_measure_or_stand_apart() -> None:
    free = tuned(methods=["ranking-dp", "tree-dp"], ks=[40])
    assert free.utility == "wasserstein"
    assert {row.setting.method for row in free.rows if row.apart is None} == {"ranking-dp", "tree-dp"}
    tree = next(row for row in free.rows if row.setting.method == "tree-dp")
    assert tree.risk is not None
    assert tree.risk.mean == pytest.approx(100 / 160)
    strict = tuned(methods=["ranking-dp", "tree-dp"], ks=[40], utility="normalised_sse")
    assert strict.rows[-1].setting.method == "tree-dp"
    assert strict.rows[-1].apart == Message.of("loss-needs-owned-rows")
    assert strict.best is not None
    assert strict.best.method == "ranking-dp"
    # only one setting was left to take: nothing was chosen on the records
    assert strict.tuned is None
    fast = tuned(methods=["ranking-dp", "tree-dp"], fast=True)
    assert fast.rows[-1].apart == Message.of("loss-takes-runs", utility="normalised_sse")
    assert any("tree-dp: normalised_sse has no closed form" in note for note in fast.notes)


def test_settings_that_are_refused_are_reported_and_the_others_run() -> None:
    found = tuned(methods=["idp-cbls", "ranking-dp", "xm-3"], ks=[2, 40, 500])
    reasons = {str(setting): reason for setting, reason in found.refused.items()}
    assert "needs k of at least 3" in str(reasons["idp-cbls, k = 2"])
    assert "larger than the number of records" in str(reasons["ranking-dp, k = 500"])
    assert "needs k of at least 3" in next(
        note for note in found.notes if note.startswith("idp-cbls, k = 2: ")
    )
    assert {str(row.setting) for row in found.rows} == {
        "idp-cbls, k = 40",
        "ranking-dp, k = 2",
        "ranking-dp, k = 40",
        "xm-3, k = 2",
        "xm-3, k = 40",
    }


def test_methods_that_leave_columns_out_are_not_compared_with_those_that_do_not() -> None:
    found = shoal.tune(
        survey(120).select(["age", "region", "income"]),
        shoal.Schema(tuple(survey_schema()[name] for name in ("age", "region", "income"))),
        "1",
        ["laplace", "mdav-dp", "optimal-dp"],
        [20],
        seeds=2,
        workers=1,
    )
    assert found.columns == ("age", "region", "income")
    assert found.utility == "scaled_sse"
    assert {setting.method for setting in found.refused} == {"optimal-dp"}
    assert list(found.refused.values()) == [Message.of("leaves-column-out", column="region", kind="nominal")]
    assert "leaves out column 'region' (nominal)" in found.notes[0]


def test_a_claim_restricts_what_is_compared() -> None:
    found = tuned(claim="dp", fast=True)
    assert [row.model for row in found.rows] == ["dp"]
    assert len(found.refused) == 2
    with pytest.raises(OptionError, match="none of the compared settings claims t-closeness"):
        tuned(claim="t-closeness")


def test_a_target_ranks_by_what_can_be_learned() -> None:
    found = tuned(methods=["ranking-dp"], ks=[8, 60], target="income>20000", data=survey(120))
    assert found.utility == "learning"
    assert all(row.loss is not None and 0 <= row.loss.mean <= 1 for row in found.rows)
    assert len(found.rows) == 2


def test_methods_without_a_budget_can_be_compared_too() -> None:
    found = tuned(methods=["k-anonymity", "ranking-dp"], ks=[8], utility="wasserstein")
    assert {row.model for row in found.rows} == {"k-anonymity", "dp-given-partition"}


def test_shared_options_reach_the_methods_that_have_them() -> None:
    found = tuned(link=False, methods=["laplace", "ranking-dp"], utility="wasserstein")
    models = {row.setting.method: row.model for row in found.rows}
    assert models == {"laplace": "dp", "ranking-dp": "dp"}
    for wrong, words in (
        ({"floor": 3}, "none of the compared methods"),
        ({"k": 3}, "give ks"),
        ({"lnk": 1}, "unknown option"),
    ):
        with pytest.raises(OptionError, match=words):
            tuned(**wrong)


# what a choice means for a release


def test_a_release_with_the_chosen_setting_says_that_it_was_tuned(tmp_path: Path) -> None:
    found = tuned(methods=["ranking-dp"], fast=True, out=tmp_path / "out")
    recipe = load_recipe(tmp_path / "out" / "method.toml")
    assert (recipe["tuned"], recipe["k"]) == ("k", found.best.k if found.best else None)
    release = shoal.protect(survey(160), **recipe)
    statement = release.statement
    assert statement.data_dependent == ("k was chosen based on the records (shoal tune).",)
    assert not statement.publishable
    assert statement.sentence.startswith("No guarantee as it stands")
    assert "choice of k" not in statement.spending
    # the mark goes on with the recipe of the release
    release.save(tmp_path / "bundle")
    assert load_recipe(tmp_path / "bundle" / "method.toml")["tuned"] == "k"


def test_several_choices_are_named_together() -> None:
    found = tuned(fast=True, splits=["equal", "optimal"])
    assert found.tuned is not None
    assert found.tuned.what == ("method", "k", "split")
    assert found.recipe is not None
    assert 'tuned = "method, k, split"' in found.recipe


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tuned": "kk"}, "tuned names 'kk'"),
        ({"tuned": 3}, "tuned must name"),
        ({"tuned_epsilon": 1}, "name in tuned"),
        ({"tuned": "method, k", "tuned_epsilon": 1}, "private choice of k, split or bound"),
        ({"tuned": "k", "tuned_epsilon": 0}, "epsilon must be"),
    ],
)
def test_marks_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        shoal.protect(
            pa.table({"x": [1.0, 2.0]}), method="laplace", epsilon=1, domains={"x": (0, 9)}, **options
        )


def test_claims_about_the_table_itself_are_not_voided_by_a_tuned_k() -> None:
    release = shoal.protect(survey(60), survey_schema(), "k-anonymity", k=5, columns=["age"], tuned="k")
    assert release.statement.publishable


# runs on disk


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...]]]:
    """Every piece of work that is really done."""
    done: list[tuple[str, tuple[int, ...]]] = []

    def count(prepared: Any, seeds: tuple[int, ...], target: str | None) -> expected.SettingOutcome:
        done.append((f"{prepared.method.name} {prepared.method.k}", tuple(seeds)))
        return expected.run_setting(prepared, seeds, target)

    monkeypatch.setattr(tuner, "run_setting", count)
    return done


def test_finished_runs_are_not_repeated(tmp_path: Path, counted: list[Any]) -> None:
    first = tuned(out=tmp_path / "out")
    assert sorted(seeds for _, seeds in counted) == [(1,), (1,), (1, 2), (2,), (2,)]
    counted.clear()
    again = tuned(out=tmp_path / "out")
    assert counted == []
    assert again.to_dict() == first.to_dict()
    assert json.loads((tmp_path / "out" / "tuning.json").read_text("utf-8")) == first.to_dict()


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_an_interrupted_tuning_goes_on(tmp_path: Path, counted: list[Any], cut: int) -> None:
    whole = tuned(out=tmp_path / "out")
    path = tmp_path / "out" / "runs.jsonl"
    header, *lines = path.read_text("utf-8").splitlines(keepends=True)
    # half of the lines, and of the next one as much as was written when the power went off
    half = len(lines) // 2
    path.write_text(header + "".join(lines[:half]) + lines[half][:cut], "utf-8")
    counted.clear()
    again = tuned(out=tmp_path / "out")
    assert 0 < len(counted) < 5
    assert again.to_dict() == whole.to_dict()
    assert all(json.loads(line) for line in path.read_text("utf-8").splitlines())


def test_an_interruption_in_the_middle_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def stop(*arguments: Any) -> expected.SettingOutcome:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return expected.run_setting(*arguments)

    monkeypatch.setattr(tuner, "run_setting", stop)
    with pytest.raises(KeyboardInterrupt):
        tuned(out=tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["runs.jsonl"]
    done = (tmp_path / "out" / "runs.jsonl").read_text("utf-8")
    assert done.count('"seed": 1') >= 2
    monkeypatch.setattr(tuner, "run_setting", expected.run_setting)
    assert tuned(out=tmp_path / "out").to_dict() == tuned().to_dict()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": "2"}, "epsilon was"),
        ({"ks": [5]}, "grid was"),
        ({"seeds": 3}, "seeds was 2, now it is 3"),
        ({"max_risk": 3}, "max_risk was null"),
        ({"data": survey(161)}, "other data"),
        ({"columns": ["age"]}, "columns was"),
    ],
)
def test_other_arguments_in_the_same_folder_are_an_error(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    folder = tmp_path / "out"
    small = {"methods": ["ranking-dp"], "out": folder}
    tuned(**small)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(OutputError, match=words):
        tuned(**{**small, **change})
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_the_number_of_processes_is_not_an_argument_of_the_result(tmp_path: Path, counted: list[Any]) -> None:
    tuned(methods=["ranking-dp"], out=tmp_path / "out", fast=True)
    counted.clear()
    tuned(methods=["ranking-dp"], out=tmp_path / "out", fast=True, workers=2, epsilon=1.0)
    assert counted == []


def spoil_header(folder: Path) -> None:
    (folder / "runs.jsonl").write_text("[1]\n")


def spoil_json(folder: Path) -> None:
    (folder / "runs.jsonl").write_text("no json\n")


def other_files(folder: Path) -> None:
    (folder / "thesis.docx").write_text("")


@pytest.mark.parametrize("spoil", [spoil_header, spoil_json, other_files])
def test_folders_that_hold_something_else_stay_as_they_are(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(OutputError, match="name another"):
        tuned(out=tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# before the work


def test_an_estimate_comes_before_the_work() -> None:
    heard: list[Message] = []
    seen: list[tuple[str, int, int]] = []
    tuned(notice=heard.append, progress=lambda *step: seen.append(step))
    before, estimate = heard
    # what following it does to the claim comes first
    assert "taken from this comparison is data-dependent" in str(before)
    assert "rehearse" in str(before)
    assert estimate.code == "work-left-runs"
    assert (estimate.facts["left"], estimate.facts["settings"], estimate.facts["runs"]) == (3, 3, 4)
    assert str(estimate).startswith("3 of 3 settings remain, 4 runs: about")
    assert str(estimate).endswith("with 1 process.")
    assert seen[0] == ("timing one run of each method", 0, 2)
    assert seen[-1] == ("running settings", 3, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": 0}, "seeds must be"),
        ({"utility": "sse"}, "utility 'sse' is not one of"),
        ({"utility": "learning"}, "target="),
        ({"target": "incom>3"}, "incom"),
        ({"claim": "DP"}, "claim 'DP' is not one of"),
        ({"max_risk": 120}, "from 0 to 100"),
        ({"max_risk": 2, "fast": True}, "max_risk requires runs"),
        ({"target": "income>20000", "fast": True}, "target requires runs"),
        ({"utility": "wasserstein", "fast": True}, "no closed form"),
        ({"methods": ["ranking"]}, "unknown method 'ranking'"),
        ({"epsilon": None}, "epsilon is missing"),
        ({"ks": ["a"]}, "k must be"),
        ({"columns": ["savings"]}, "savings"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(
    options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner, "run_setting", None)
    with pytest.raises((OptionError, InputError), match=words):
        tuned(**{"methods": ["ranking-dp"], **options})


def test_values_outside_their_domain_are_an_error_of_the_table_not_of_a_setting() -> None:
    with pytest.raises(InputError, match="lie outside"):
        shoal.tune(pa.table({"x": [1, 99]}), epsilon=1, methods=["laplace"], domains={"x": (0, 9)})


def test_the_table_loses_nothing_on_a_narrow_terminal() -> None:
    from rich.console import Console

    found = tuned(methods=["laplace", "idp-cbls", "insensitive-dp"], utility="wasserstein", seeds=2)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(found.table(everything=True))
    text = console.export_text()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    words = text.split()
    for row in found.rows:
        assert row.loss is not None
        assert {row.model, *str(row.loss).split(), *str(row.setting).split()} <= set(words)
    assert ">*" in words


@pytest.mark.parametrize(
    ("method", "utility", "said"),
    [("xm-3", "normalised_sse", True), ("xm-3", "wasserstein", False), ("laplace", "normalised_sse", False)],
)
def test_errors_of_drawn_rows_say_what_they_are_compared_with(method: str, utility: str, said: bool) -> None:
    caption = tuned(methods=[method], utility=utility, seeds=2).table().caption
    assert ("match=none" in str(caption)) == said


def test_a_single_run_is_not_called_exact() -> None:
    from rich.console import Console

    console = Console(width=120, record=True, file=io.StringIO())
    found = tuned(methods=["laplace"], seeds=1)
    console.print(found.table())
    text = console.export_text()
    assert "(one run)" in text
    assert "over 1 seed" not in text
    assert "of 1 setting:" in found.why


@pytest.mark.parametrize("options", [{"workers": 0}, {"workers": -3}, {"workers": True}, {"ks": [0]}])
def test_numbers_that_count_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="must be a positive integer"):
        tuned(methods=["laplace", "ranking-dp"], **options)


def test_a_private_choice_is_refused_before_the_records_are_looked_at() -> None:
    # every record is of one class, and saying so would be a fact about the records
    with pytest.raises(ClaimError, match="leave target out"):
        shoal.tune(pa.table({"x": [1, 2]}), epsilon=1, domains={"x": (0, 9)}, target="x>5", private=1)
    with pytest.raises(OptionError, match="private= must be a separate privacy budget"):
        shoal.tune(pa.table({"x": [1, 2]}), epsilon=1, domains={"x": (0, 9)}, private="much")


def test_saved_files_and_the_table_say_what_was_found(tmp_path: Path) -> None:
    from rich.console import Console

    found = tuned(methods=["laplace", "ranking-dp", "tree-dp"], utility="normalised_sse")
    found.save(tmp_path / "deep" / "out")
    assert sorted(path.name for path in (tmp_path / "deep" / "out").iterdir()) == [
        "method.toml",
        "tuning.json",
        "tuning.svg",
    ]
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(found)
    console.print(found.table(everything=True))
    text = console.export_text()
    for row in found.rows:
        assert str(row.setting) in text
    assert ">*" in text
    assert found.best_row is not None
    assert found.best_row.frontier
    assert found.frontier


def test_the_method_that_shoal_leads_with_is_compared_by_default() -> None:
    assert DEFAULT_METHODS[0] == DEFAULT_METHOD


def test_budgets_with_and_without_a_delta_are_compared_by_their_claims() -> None:
    table = pa.table({"x": list(range(40)), "y": list(range(0, 80, 2))})
    found = shoal.tune(
        table,
        epsilon="2",
        methods=["pairs-dp", "tree-dp"],
        deltas=["0", "1e-6"],
        domains={"x": (0, 40), "y": (0, 80)},
        target="x>20",
        utility="wasserstein",
        seeds=1,
        workers=1,
    )
    claims = {str(row.setting): row.model for row in found.rows}
    assert claims == {
        "pairs-dp, delta 0": "dp",
        "pairs-dp, delta 1e-06": "approximate-dp",
        "tree-dp": "dp",
    }
    alone = shoal.tune(
        table,
        epsilon="2",
        methods=["pairs-dp"],
        domains={"x": (0, 40), "y": (0, 80)},
        target="x>20",
        seeds=1,
        workers=1,
    )
    # what is to be learned is spent on, and stays in the recipe
    assert alone.recipe is not None
    assert 'target = "x>20"' in alone.recipe
    for options, words in (
        ({"delta": "1e-6"}, "give deltas instead"),
        ({"deltas": ["2"]}, "delta"),
        ({"deltas": ["0", "0.0"]}, "more than once"),
        ({"deltas": "0,1"}, "must be a list"),
    ):
        with pytest.raises(OptionError, match=words):
            shoal.tune(
                table, epsilon=1, methods=["pairs-dp"], domains={"x": (0, 40), "y": (0, 80)}, **options
            )


def test_no_private_choice_for_a_method_that_has_nothing_to_choose() -> None:
    table = pa.table({"x": list(range(40))})
    with pytest.raises(ClaimError, match="pairs-dp and tree-dp need no such choice"):
        shoal.tune(table, epsilon=1, methods=["pairs-dp"], private="0.1", domains={"x": (0, 40)})
