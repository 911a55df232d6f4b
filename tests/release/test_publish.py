"""`shoal.publish`: one call from table to bundle, all or nothing, and stopped at every step."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import typing
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run
from shoal.columns.declaration import Declaration
from shoal.evaluation.attacks import attack
from shoal.ledger import open_ledger
from shoal.mechanisms.registry import parameters
from shoal.progress import watched
from shoal.release.publication import CHARGING, Delivery, opened, plan
from shoal.release.rehearsal import TableDeclarations
from shoal.report import bundle_report, internal_report
from tests.support.samples import LIBRARIES, frame

N = 40
DOMAINS = {"a": (0, 100), "b": (0.0, 1.0)}
# columns that are not linked: the claim is dp, which a ledger counts
SETTINGS: dict[str, Any] = {
    **{"method": "ranking-dp", "epsilon": "0.5", "k": 5, "link": False, "domains": DOMAINS}
}
BUNDLE = {"data.parquet", "statement.json", "method.toml", "log.toml", "report.html"}


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {"a": rng.integers(0, 101, N), "b": rng.random(N)}


class Recorder:
    """Progress that is kept, and raises at one call."""

    def __init__(self, stop: int | None = None, error: BaseException | None = None) -> None:
        self.calls: list[tuple[str, int, int]] = []
        self.stop, self.error = stop, error or shoal.CancelledError()

    def __call__(self, what: str, done: int, total: int) -> None:
        assert 0 <= done <= total
        self.calls.append((what, done, total))
        if len(self.calls) == self.stop:
            raise self.error


def files(folder: Path) -> set[str]:
    """Everything below a folder but the ledger's own files."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if not path.name.startswith("ledger.sqlite")
    }


def children() -> set[str]:
    """Processes that this one has started and that are still there."""
    return {
        child
        for task in Path(f"/proc/{os.getpid()}/task").iterdir()
        for child in (task / "children").read_text().split()
    }


def spent(ledger: str) -> Fraction | None:
    """What the data set has spent; None if it is not in the ledger."""
    with contextlib.closing(open_ledger(ledger)) as opened:
        return opened.standing("people").spent if "people" in opened.datasets() else None


def everything(folder: Path, progress: Any = None, **more: Any) -> shoal.Published:
    folder.mkdir(exist_ok=True)
    arguments = {
        **SETTINGS,
        **{"out": folder / "deep" / "out", "internal": folder / "other" / "internal.html", "evaluate": True},
        **{"ledger": str(folder / "ledger.sqlite"), "dataset": "people"},
        **more,
    }
    return shoal.publish(pa.table(columns()), progress=progress, **arguments)


def test_one_call_does_what_the_command_does(tmp_path: Path) -> None:
    progress = Recorder()
    published = everything(tmp_path, progress)
    assert published.folder == tmp_path / "deep" / "out"
    assert {path.name for path in published.folder.iterdir()} == BUNDLE
    assert published.internal is not None
    assert published.internal.read_text("utf-8").startswith("<!doctype html>")
    assert published.release.statement.model == "dp"
    assert published.evaluation is not None
    assert published.evaluation.columns == ("a", "b")
    assert published.charge is not None
    assert (published.charge.dataset, published.charge.added) == ("people", Fraction(1, 2))
    assert spent(str(tmp_path / "ledger.sqlite")) == Fraction(1, 2)
    assert (published.engine, published.estimate) == ("memory", None)
    stages = list(dict.fromkeys(what for what, _, _ in progress.calls))
    assert stages[:3] == ["reading the table", "preparing the release", CHARGING]
    assert {
        "protecting",
        "measuring what was lost",
        "writing the tables",
        "attacking the released table",
    } <= set(stages)


def test_a_table_that_was_released_before_is_a_warning(tmp_path: Path) -> None:
    assert everything(tmp_path).warnings == ()
    again = everything(tmp_path, out=tmp_path / "out-2", internal=None)
    assert [text for text in again.warnings if "this table was released before" in text]
    # the same rows in another order, and in another library, are told apart and recognised
    assert again.charge is not None
    assert spent(str(tmp_path / "ledger.sqlite")) == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_has_one_fingerprint_however_it_lies_in_memory(library: str) -> None:
    from shoal.io import read
    from shoal.io.table import fingerprint

    whole = frame(columns(), library)
    assert fingerprint(read(whole)) == fingerprint(read(frame(columns(), library)))
    other = {**columns(), "a": columns()["a"][::-1]}
    assert fingerprint(read(whole)) != fingerprint(read(frame(other, library)))
    renamed = {"x": columns()["a"], "b": columns()["b"]}
    assert fingerprint(read(whole)) != fingerprint(read(frame(renamed, library)))


def test_pieces_of_a_table_do_not_change_its_fingerprint() -> None:
    from shoal.io import read
    from shoal.io.table import fingerprint

    whole = pa.table(columns())
    assert fingerprint(read(whole)) == fingerprint(read(pa.concat_tables([whole[:7], whole[7:]])))


def _calls(work: Callable[[Recorder], Any]) -> int:
    progress = Recorder()
    work(progress)
    return len(progress.calls)


def test_stopped_at_every_step_nothing_is_left_but_the_charge(tmp_path: Path) -> None:
    """For every call of progress: no folder, no report, no process; the charge only from where it was made."""
    progress = Recorder()
    everything(tmp_path / "whole", progress)
    charged_at = progress.calls.index((CHARGING, 1, 1)) + 1
    before = children()
    for stop in range(1, len(progress.calls) + 1):
        place = tmp_path / f"stopped-{stop}"
        with pytest.raises(shoal.CancelledError) as stopped:
            everything(place, Recorder(stop))
        assert files(place) == set(), stop
        stands = spent(str(place / "ledger.sqlite"))
        if stop < charged_at:
            assert stands is None
            assert "charged" not in str(stopped.value)
        else:
            assert stands == Fraction(1, 2)
            assert str(stopped.value) == (
                "cancelled: nothing was written. The privacy budget charged to data set 'people' (ε = 0.5) stays "
                "charged."
            )
        assert stopped.value.code == "cancelled"
    assert charged_at < len(progress.calls)
    assert children() == before


def test_other_errors_say_that_the_charge_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = _calls(lambda progress: everything(tmp_path / "whole", progress))
    with pytest.raises(KeyError) as stopped:
        everything(tmp_path / "one", Recorder(steps, KeyError("mine")))
    assert stopped.value.__notes__ == [
        "The privacy budget charged to data set 'people' (ε = 0.5) stays charged."
    ]

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shoal.io.files.os.rename", refuse)
    with pytest.raises(
        shoal.OutputError, match=r"No space left on device\. The privacy budget charged .* stays charged"
    ):
        everything(tmp_path / "two")
    assert files(tmp_path / "two") == set()


@pytest.mark.parametrize("engine", ["memory", "local"])
def test_cancelled_from_another_thread(engine: Any, tmp_path: Path) -> None:
    """What `cancel` says is asked between the steps, wherever the work is; both ways of holding the table."""
    parquet.write_table(pa.table(columns()), tmp_path / "in.parquet")
    work = {**SETTINGS, "out": tmp_path / "out", "internal": tmp_path / "in.html", "engine": engine}
    asked = 0

    def never() -> bool:
        nonlocal asked
        asked += 1
        return False

    assert shoal.publish(tmp_path / "in.parquet", cancel=never, **work).engine == engine
    times, kept = asked, files(tmp_path)
    assert times > 8
    for stop in range(1, times + 1):
        event, asked = threading.Event(), 0

        def cancel(event: threading.Event = event, stop: int = stop) -> bool:
            nonlocal asked
            asked += 1
            if asked == stop:
                event.set()
            return event.is_set()

        again = {**work, "out": tmp_path / "new" / "out", "internal": tmp_path / "new" / "in.html"}
        with pytest.raises(shoal.CancelledError, match=r"^cancelled while .*: nothing was written\.$"):
            shoal.publish(tmp_path / "in.parquet", cancel=cancel, **again)
        assert files(tmp_path) == kept


def test_progress_that_is_not_cancelled_is_passed_on() -> None:
    progress = Recorder()
    watched(progress, lambda: False)("reading", 1, 2)
    assert progress.calls == [("reading", 1, 2)]


WORKS: dict[str, Callable[[shoal.Release, Path, Any], Any]] = {
    "protect": lambda made, folder, tell: shoal.protect(pa.table(columns()), progress=tell, **SETTINGS),
    "evaluate": lambda made, folder, tell: shoal.evaluate(
        pa.table(columns()), made, target="a>50", runs=1, folds=2, trees=2, progress=tell
    ),
    "attack": lambda made, folder, tell: attack(pa.table(columns()), made, seed=1, progress=tell),
    "check": lambda made, folder, tell: shoal.check(made.data, ["a"], ["b"], progress=tell),
    "internal report": lambda made, folder, tell: internal_report(made, None, pa.table(columns()), tell),
    "report": lambda made, folder, tell: bundle_report(folder / "out", pa.table(columns()), progress=tell),
}


@pytest.mark.parametrize("name", WORKS)
def test_long_work_reports_and_stops(name: str, tmp_path: Path) -> None:
    """Also where errors are noted instead of raised: being cancelled is none of those."""
    made = shoal.protect(pa.table(columns()), **SETTINGS)
    made.save(tmp_path / "out")
    steps = _calls(lambda progress: WORKS[name](made, tmp_path, progress))
    assert steps > 1
    for stop in range(1, steps + 1):
        with pytest.raises(shoal.CancelledError):
            WORKS[name](made, tmp_path, Recorder(stop))


def test_comparisons_that_are_stopped_leave_no_process() -> None:
    before = children()
    data, domains = pa.table({"a": columns()["a"]}), {"a": (0, 100)}
    with pytest.raises(shoal.CancelledError):
        shoal.tune(
            data,
            epsilon=1,
            methods=["ranking-dp"],
            ks=[3, 5],
            domains=domains,
            workers=2,
            progress=Recorder(2),
        )
    with pytest.raises(shoal.CancelledError):
        shoal.audit(data, method="laplace", epsilon=1, domains=domains, runs=400, progress=Recorder(1))
    assert children() == before


def test_saving_reports_and_stops_without_a_trace(tmp_path: Path) -> None:
    made = shoal.protect(pa.table(columns()), **SETTINGS)

    def save(folder: Path, progress: Recorder) -> None:
        made.save(folder / "out", folder / "in.html", original=pa.table(columns()), progress=progress)

    steps = _calls(lambda progress: save(tmp_path, progress))
    for stop in range(1, steps + 1):
        place = tmp_path / str(stop)
        with pytest.raises(shoal.CancelledError):
            save(place, Recorder(stop))
        assert not place.exists()


def test_what_would_fail_is_refused_before_the_charge(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.sqlite")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"out": tmp_path / "full"}, shoal.OutputError, "not empty"),
        ({"domains": {"a": (0, 3), "b": (0.0, 1.0)}}, shoal.InputError, "lie outside"),
        ({"format": "word"}, shoal.OptionError, "format 'word'"),
        ({"engine": "cluster"}, shoal.OptionError, "engine 'cluster' is not one of memory, local, spark"),
        ({"engine": "local"}, shoal.OptionError, "reads a Parquet file"),
        ({"statistics": True}, shoal.OptionError, "keeps no statistics of its clusters"),
        ({"target": "a", "evaluate": False}, shoal.OptionError, "evaluate=True"),
        ({"target": "nothing"}, shoal.InputError, "nothing"),
        ({"dataset": None}, shoal.OptionError, "needs dataset="),
        ({"k": N + 1}, shoal.OptionError, "larger than the number of records"),
    ]
    for change, error, words in wrong:
        with pytest.raises(error, match=words):
            everything(tmp_path, **change)
    assert not Path(ledger).exists()
    assert files(tmp_path) == {"full", "full/file"}


def test_an_engine_that_cannot_is_refused_with_the_reason(tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns()), tmp_path / "in.parquet")
    work: dict[str, Any] = {**SETTINGS, "out": tmp_path / "out", "engine": "local"}
    for change, reason in (
        ({"method": "mdav-dp", "link": None}, "cannot be distributed exactly: use ranking-dp or tree-dp"),
        ({"evaluate": True, "target": "a"}, "a classifier of the target must be trained on the whole table"),
        ({"statistics": True}, "kept in memory"),
        ({"format": "csv"}, "the output must be Parquet, not csv"),
    ):
        with pytest.raises(shoal.OptionError, match=reason) as refused:
            shoal.publish(tmp_path / "in.parquet", **{**work, **change})
        assert refused.value.option == "engine"


def test_the_engine_follows_from_the_size_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write_table(pa.table(columns()), tmp_path / "in.parquet")
    chosen = {}
    monkeypatch.setattr("shoal.release.publication._LARGE", 2 * N)
    for name, more in (("own", {}), ("text", {"na": ["?"]}), ("measured", {"evaluate": True})):
        made = shoal.publish(tmp_path / "in.parquet", **SETTINGS, out=tmp_path / name, seed=2, **more)
        chosen[name] = made.engine
    assert chosen == {"own": "local", "text": "local", "measured": "local"}
    learned = opened(tmp_path / "in.parquet", Delivery(evaluate=True, target="a>50"), **SETTINGS)
    assert learned.engine == "memory"
    tables = [parquet.read_table(tmp_path / name / "data.parquet") for name in chosen]
    assert tables[0].equals(tables[1])
    # columns are not linked: each has its own order
    for name in tables[0].column_names:
        assert sorted(tables[0][name].to_pylist()) == sorted(tables[2][name].to_pylist())


def test_a_large_table_is_estimated_and_a_plan_spends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = str(tmp_path / "ledger.sqlite")
    delivery = Delivery(tmp_path / "out", ledger=ledger, dataset="people")
    settled = plan(pa.table(columns()), delivery, **SETTINGS)
    assert settled.estimate is None
    assert files(tmp_path) == set()
    assert not Path(ledger).exists()
    assert repr(settled).startswith("<Preparation of a release with ranking-dp, nothing is spent yet")
    monkeypatch.setattr("shoal.release.publication._WORTH_AN_ESTIMATE", 10)
    published = settled.carry_out()
    assert published.folder.is_dir()
    assert everything(tmp_path / "more").estimate is not None


def test_what_is_shown_of_a_publication_is_public(tmp_path: Path) -> None:
    published = everything(tmp_path)
    shown = repr(published) + published._repr_html_()  # type: ignore[attr-defined]
    assert "Published release with ranking-dp" in shown
    assert str(published.folder) in shown
    original = columns()
    assert not any(f"{value:.6f}" in shown for value in original["b"])
    assert "Evaluation" not in shown
    assert "aligned" not in shown


def test_columns_that_nobody_left_out_are_a_warning(tmp_path: Path) -> None:
    data = pd.DataFrame({**columns(), "person_id": np.arange(N)})
    published = shoal.publish(data, **SETTINGS, out=tmp_path / "out")
    assert [text for text in published.warnings if "'person_id' is not released" in text]
    named = shoal.publish(data, **SETTINGS, columns=["a", "b"], out=tmp_path / "named")
    assert named.warnings == ()


def test_every_argument_is_listed_once_and_known() -> None:
    """The keywords of protect and publish that are no parameters of methods are those of a declaration."""
    declared = set(typing.get_type_hints(TableDeclarations))
    # a bound is declared in the schema; its key is kept with the ledger
    apart = {"labels", "tuned", "tuned_epsilon", "tuned_choice", "bound"}
    assert declared - apart == {
        f for f in Declaration.__dataclass_fields__ if f not in ("schema", "tuned", "bound_key")
    }
    assert not declared & set(parameters())


EMPTY_SCHEMA = shoal.Schema.from_dict(
    {
        "attribute": [
            {"name": "a", "type": "integer", "lo": 0, "hi": 9, "source": "questionnaire"},
            {
                "name": "since",
                "kind": "date",
                "type": "date",
                "lo": "2000-01-01",
                "hi": "2000-12-31",
                "missing": "category",
                "source": "questionnaire",
            },
            {"name": "s", "kind": "nominal", "type": "text", "values": ["x", "y"], "source": "questionnaire"},
            {"name": "who", "kind": "nominal", "role": "unit", "max_rows": 2, "type": "text"},
        ]
    }
)
EMPTY_METHODS: dict[str, dict[str, Any]] = {
    "pairs-dp": {"method": "pairs-dp"},
    "pairs-dp, declared rows": {"method": "pairs-dp", "rows": 5},
    "pairs-dp, δ": {"method": "pairs-dp", "delta": "0.000001"},
    "tree-dp": {"method": "tree-dp", "neighbours": "add-remove"},
}


def few(rows: int) -> pa.Table:
    """No row, or one."""
    import datetime

    whole = pa.table(
        {
            "a": pa.array([3], pa.int64()),
            "since": pa.array([datetime.date(2000, 2, 3)], pa.date32()),
            "s": pa.array(["x"], pa.string()),
            "who": pa.array(["p"], pa.string()),
        }
    )
    return whole.slice(0, rows)


def until_rows_are(wanted: int, make: Callable[[], tuple[int, Any]]) -> Any:
    """What is made when noise brings the released number of rows to the wanted one: the rest may follow from it."""
    for _ in range(60):
        rows, made = make()
        if rows == wanted:
            return made
    raise AssertionError(f"{wanted} rows never came out")


@pytest.mark.parametrize(
    ("library", "options"),
    [
        pytest.param(
            library,
            options,
            id=f"{library}-{name}",
            marks=[] if library == "pyarrow" or name == "pairs-dp" else [pytest.mark.slow],
        )
        for library in LIBRARIES
        for name, options in EMPTY_METHODS.items()
    ],
)
def test_a_private_number_of_rows_may_be_none(library: str, options: dict[str, Any]) -> None:
    def release(rows: int) -> tuple[int, Any]:
        made = shoal.protect(in_library(few(rows), library), EMPTY_SCHEMA, epsilon=1, **options)
        return len(made.data), made

    none, one = (until_rows_are(options.get("rows", 1), lambda rows=rows: release(rows)) for rows in (0, 1))
    assert none.statement.publishable
    assert none.statement == one.statement
    assert list(none.data.columns if library != "pyarrow" else none.data.column_names) == ["a", "since", "s"]


def test_a_table_without_rows_is_released_also_where_measures_were_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {"epsilon": 1, "evaluate": True, "internal": tmp_path / "internal.html"}
    published = shoal.publish(few(0), EMPTY_SCHEMA, out=tmp_path / "out", **asked)
    assert published.release.statement.publishable
    assert (published.evaluation, published.internal) == (None, None)
    assert not (tmp_path / "internal.html").exists()
    EMPTY_SCHEMA.save(tmp_path / "schema.toml")
    (tmp_path / "none.csv").write_text("a,since,s,who\n")
    command = [
        "protect",
        str(tmp_path / "none.csv"),
        "--schema",
        str(tmp_path / "schema.toml"),
        "--epsilon",
        "1",
    ]
    assert run([*command, "--evaluate", "--out", str(tmp_path / "again")]) == 0
    assert "nothing to measure" in capsys.readouterr().err


def test_the_type_of_a_column_of_names_does_not_tell_whether_there_is_one() -> None:
    schema = shoal.Schema.from_dict(
        {"attribute": [{"name": "s", "kind": "nominal", "values": ["x", "y"], "missing": "category"}]}
    )
    tables = [pd.DataFrame({"s": pd.Series(held, dtype=object)}) for held in ([], [None], ["x"])]
    releases = [shoal.protect(table, schema, "pairs-dp", epsilon=1, rows=5) for table in tables]
    assert len({str(release.data["s"].dtype) for release in releases}) == 1


def in_library(table: pa.Table, library: str) -> Any:
    import polars as pl

    made = {"pyarrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}
    return made[library]()


@pytest.mark.parametrize("options", EMPTY_METHODS.values(), ids=EMPTY_METHODS)
@pytest.mark.parametrize(("ending", "engine"), [("csv", None), ("parquet", "memory"), ("parquet", "local")])
def test_bundles_of_no_row_and_of_one_have_the_same_form(
    ending: str, engine: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    numbers = itertools.count()

    def publish(rows: int) -> tuple[int, Any]:
        path = tmp_path / str(next(numbers)) / f"people.{ending}"
        path.parent.mkdir()
        shoal.io.write(few(rows), path)
        out = path.parent / "out"
        published = shoal.publish(path, EMPTY_SCHEMA, epsilon=1, out=out, engine=engine, **options)
        bundle = shoal.Bundle.load(out)
        data = (
            parquet.read_schema(out / "data.parquet")
            if ending == "parquet"
            else (out / "data.csv").open().readline()
        )
        log = (out / "log.toml").read_text().splitlines()[0]
        stated = published.release.statement, bundle.statement
        return shoal.io.read(out / f"data.{ending}").n, (files(out), data, stated, log)

    none, one = (until_rows_are(options.get("rows", 1), lambda rows=rows: publish(rows)) for rows in (0, 1))
    assert none == one


@pytest.mark.parametrize("method", ["laplace", "ranking-dp", "pairs-dp"])
def test_without_rows_a_public_number_of_them_is_refused(method: str, tmp_path: Path) -> None:
    k = {"k": 1} if method == "ranking-dp" else {}
    neighbours = {"neighbours": "replace-one"} if method == "pairs-dp" else {}
    data = few(0).select(["a"])
    with pytest.raises(shoal.InputError, match="no rows"):
        shoal.protect(data, EMPTY_SCHEMA, method, epsilon=1, columns=["a"], **k, **neighbours)
