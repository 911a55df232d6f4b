"""Learning from a release: classes, splits and scores against independent ones, and every kind of release."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, f1_score

import shoal
from shoal.cli import run
from shoal.columns.schema import Schema
from shoal.errors import InputError, OptionError
from shoal.evaluation import LearningSettings, evaluate, learn, learning
from shoal.evaluation.learning import NO_CLASS, _mean, _splits, parse_target
from shoal.io import read
from shoal.report import internal_report

FEW = LearningSettings(runs=2, trees=10, folds=3)
PAPER = LearningSettings("first-66%", runs=2, trees=10)


def people(n: int = 150) -> pd.DataFrame:
    """Two numbers that tell the class, one that does not, and classes of several kinds."""
    rng = np.random.default_rng(3)
    skill, age = rng.integers(0, 100, n), rng.integers(18, 90, n)
    wage = 10.0 * skill + age + 0.5
    return pd.DataFrame(
        {
            "skill": skill,
            "age": age,
            "wage": wage,
            "grade": np.digitize(wage, [300, 700]),
            "town": np.where(wage > 500, "Upper", "Lower"),
            "rich": wage > 500,
            "noise": rng.normal(size=n),
        }
    )


def release_of(aligned: pd.DataFrame | None, data: pd.DataFrame) -> SimpleNamespace:
    """What `evaluate` needs of a release."""
    return SimpleNamespace(data=data, aligned=aligned, columns=tuple(data.columns), domains={}, kept=None)


def forest(X: pd.DataFrame, y: np.ndarray, asked: pd.DataFrame, seed: int, trees: int) -> np.ndarray:
    fitted = RandomForestClassifier(n_estimators=trees, random_state=seed, n_jobs=1).fit(X.to_numpy(float), y)
    return fitted.predict(asked.to_numpy(float))


@pytest.mark.parametrize(
    ("target", "classes", "expected"),
    [
        ("wage>500", ("<=500", ">500"), lambda f: f["wage"] > 500),
        ("wage >= 60.5", ("<60.5", ">=60.5"), lambda f: f["wage"] >= 60.5),
        ("skill<=50", ("<=50", ">50"), lambda f: f["skill"] > 50),
        ("skill < 5e1", ("<5e1", ">=5e1"), lambda f: f["skill"] >= 50),
        ("grade", ("0", "1", "2"), lambda f: f["grade"]),
        ("town", ("Lower", "Upper"), lambda f: f["town"] == "Upper"),
        ("rich", ("false", "true"), lambda f: f["rich"]),
    ],
)
@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_classes_of_a_target(target: str, classes: tuple[str, ...], expected: Any, convert: Any) -> None:
    frame = people()
    table = read(convert(frame))
    found = parse_target(target, table)
    assert found.classes == classes
    assert found.codes(table).tolist() == expected(frame).astype(int).tolist()


def test_a_column_that_is_called_like_a_threshold_is_a_column() -> None:
    table = read(pd.DataFrame({"a>3": ["x", "y"], "a": [1, 5]}))
    assert parse_target("a>3", table).classes == ("x", "y")


def test_missing_values_have_no_class() -> None:
    table = read(pd.DataFrame({"a": [1.0, np.nan, 2.0, np.inf], "t": ["x", None, "y", ""]}))
    assert parse_target("a", table).codes(table).tolist() == [0, NO_CLASS, 1, NO_CLASS]
    assert parse_target("a>1", table).codes(table).tolist() == [0, NO_CLASS, 1, NO_CLASS]
    assert parse_target("t", table).codes(table).tolist() == [0, NO_CLASS, 1, NO_CLASS]


def test_released_numbers_belong_to_the_nearest_class_and_unknown_labels_to_none() -> None:
    table = read(pd.DataFrame({"q": [3, 5, 9], "t": ["x", "y", "x"]}))
    noisy = read(pd.DataFrame({"q": [-4.0, 3.9, 4.1, 6.9, 7.1, 99.0], "t": list("xyzxyz")}))
    assert parse_target("q", table).codes(noisy).tolist() == [0, 0, 1, 1, 2, 2]
    assert parse_target("t", table).codes(noisy).tolist() == [0, 1, NO_CLASS, 0, 1, NO_CLASS]


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("wagee", InputError, "no column 'wagee' in the table. Did you mean 'wage'?"),
        ("wagee>3", InputError, "no column 'wagee' in the table"),
        ("town>3", InputError, "column 'town' should hold numbers"),
        ("wage", OptionError, r"'wage' holds non-integer numbers: give a threshold, such as 'wage>"),
        ("many", OptionError, r"'many' has 150 distinct values, more than 50 classes: give a threshold"),
        ("id", OptionError, r"'id' has 150 distinct values, more than 50 classes: is it an identifier"),
        ("wage>9999", InputError, r"every row has the same class '<=9999' of the target 'wage>9999'"),
        ("one", InputError, "every row has the same class 'x' of the target 'one'"),
        ("empty", InputError, "the target 'empty' has only missing values"),
    ],
)
def test_a_target_that_cannot_be_learned_is_refused(target: str, error: Any, message: str) -> None:
    frame = people().assign(
        many=range(150), id=[f"P{i}" for i in range(150)], one="x", empty=np.full(150, np.nan)
    )
    with pytest.raises(error, match=message.replace("?", r"\?")):
        evaluate(frame, release_of(frame[["skill"]], frame[["skill"]]), target=target)


def test_folds_part_the_rows_and_share_out_every_class() -> None:
    truth = np.repeat([0, 1, 2], [50, 23, 2])
    splits = list(_splits(LearningSettings(folds=5), truth, 1))
    assert sorted(np.concatenate([test for _, test in splits]).tolist()) == list(range(75))
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(75))
        assert (truth[test] == 0).sum() == 10
        assert set(truth[train]) == {0, 1, 2}
    other = next(iter(_splits(LearningSettings(folds=5), truth, 2)))
    assert splits[0][1].tolist() != other[1].tolist()


def test_the_first_66_percent_equals_the_library_called_by_hand() -> None:
    frame = people()
    masked = frame[["skill", "age"]] + np.random.default_rng(1).normal(0, 20, (150, 2))
    found = learn(frame, release_of(masked, masked.sample(frac=1, random_state=0)), "wage>500", PAPER)
    truth = (frame["wage"] > 500).to_numpy().astype(int)
    cut = 99
    for part, source in (("released", masked), ("original", frame[["skill", "age"]])):
        answers = [
            forest(source[:cut], truth[:cut], frame[["skill", "age"]][cut:], seed, PAPER.trees) for seed in range(2)
        ]  # fmt: skip
        accuracy = [accuracy_score(truth[cut:], answer) for answer in answers]
        f = np.array([f1_score(truth[cut:], answer, average=None) for answer in answers])
        assert found[part]["accuracy"] == pytest.approx(np.mean(accuracy))
        assert list(found[part]["f"].values()) == pytest.approx(f.mean(axis=0).tolist())
    assert found["original"]["accuracy"] > found["released"]["accuracy"] > found["majority"]["accuracy"]
    share = (truth[cut:] == np.bincount(truth[:cut]).argmax()).mean()
    assert found["majority"]["accuracy"] == pytest.approx(share)
    assert min(found["majority"]["f"].values()) == 0.0
    assert (found["labels"], found["features"]) == ("original", ["skill", "age"])
    assert found["classes"] == {"<=500": int((truth == 0).sum()), ">500": int((truth == 1).sum())}


def test_folds_equal_the_library_called_by_hand() -> None:
    frame = people()
    masked = frame[["skill", "age"]] * 1.1
    found = learn(frame, release_of(masked, masked), "grade", FEW)
    truth = frame["grade"].to_numpy()
    accuracy, f = [], []
    for seed in range(2):
        answer = np.empty(150, dtype=int)
        for train, test in _splits(FEW, truth, seed):
            answer[test] = forest(
                masked.iloc[train], truth[train], frame[["skill", "age"]].iloc[test], seed, 10
            )
        accuracy.append(accuracy_score(truth, answer))
        f.append(f1_score(truth, answer, average=None))
    assert found["released"]["accuracy"] == pytest.approx(np.mean(accuracy))
    assert list(found["released"]["f"].values()) == pytest.approx(np.mean(f, axis=0).tolist())


def test_a_release_of_noise_teaches_nothing_and_a_true_one_everything() -> None:
    frame = people(300)
    shuffled = frame[["skill", "age"]].sample(frac=1, random_state=1).reset_index(drop=True)
    good = learn(frame, release_of(frame[["skill", "age"]], shuffled), "wage>500", FEW)
    bad = learn(frame, release_of(shuffled, shuffled), "wage>500", FEW)
    assert good["released"] == good["original"]
    assert good["released"]["accuracy"] > 0.9
    assert bad["released"]["accuracy"] < 0.65


def test_a_released_target_teaches_its_released_classes() -> None:
    frame = people(300)
    columns = ["skill", "age", "wage"]
    wrong = frame[columns].assign(wage=1000 - frame["wage"])
    found = learn(frame, release_of(wrong, wrong), "wage>500", FEW)
    assert found["labels"] == "released"
    assert found["features"] == ["skill", "age"]
    assert found["released"]["accuracy"] < 0.2
    assert found["original"]["accuracy"] > 0.9


def test_rows_without_order_are_learned_from_as_a_whole() -> None:
    frame = people(200)
    drawn = frame.sample(n=120, random_state=2)
    for released in (drawn, release_of(None, drawn)):
        for settings, tested in ((FEW, frame), (PAPER, frame[132:])):
            found = learn(frame, released, "town", settings, columns=["skill", "age"])
            truth = (tested["town"] == "Upper").to_numpy()
            known, taught = drawn[["skill", "age"]], (drawn["town"] == "Upper").to_numpy()
            answers = [forest(known, taught, tested[["skill", "age"]], seed, 10) for seed in range(2)]
            expected = np.mean([np.mean(answer == truth) for answer in answers])
            assert found["released"]["accuracy"] == pytest.approx(expected)
            assert "The order of the released rows is unknown" in found["how"]
            assert found["labels"] == "released"
            assert found["rows_used"] == {"original": 200, "released": 120}


def test_rows_without_order_and_without_the_target_are_refused() -> None:
    frame = people()
    for released in (frame[["skill", "age"]], release_of(None, frame[["skill", "age"]])):
        with pytest.raises(
            InputError, match="'wage' was not released, and the order of the released rows is unknown"
        ):
            evaluate(frame, released, target="wage>500")


def test_a_tree_release_learns_from_its_own_target() -> None:
    frame = people(400)[["skill", "wage"]]
    release = shoal.protect(
        frame, method="tree-dp", epsilon=50, seed=1, domains={"skill": (0.0, 100.0), "wage": (0.0, 1200.0)}
    )
    assert release.aligned is None
    found = evaluate(frame, release, target="wage>500", runs=2, trees=10).learning
    assert found is not None
    assert found["released"]["accuracy"] > found["majority"]["accuracy"] + 0.1


def test_places_in_an_order_and_dates_are_learned_from_and_learned() -> None:
    n = 120
    frame = pd.DataFrame(
        {
            "size": np.array(["S", "M", "L"])[np.arange(n) % 3],
            "day": np.datetime64("2020-01-01") + np.arange(n) % 3,
            "level": (np.arange(n) % 3) + 1,
        }
    )
    entries = [
        {"name": "size", "kind": "ordinal", "ordered": ["S", "M", "L"]},
        {"name": "day", "kind": "date", "lo": "2020-01-01", "hi": "2020-01-03"},
        {"name": "level", "kind": "ordinal", "ordered": ["1", "2", "3"]},
    ]
    schema = Schema.from_dict({"attribute": entries})
    places = pd.DataFrame({"size": np.arange(n) % 3 + 0.2, "day": 18262.0 + np.arange(n) % 3})
    places["level"] = np.arange(n) % 3 - 0.3
    release = release_of(places, frame)
    release.schema = schema
    for target in ("size", "level", "level>2"):
        found = learn(frame, release, target, FEW)
        assert found["released"]["accuracy"] == 1.0
        assert len(found["features"]) == 2
    unmatched = release_of(None, frame)
    unmatched.schema = schema
    assert learn(frame, unmatched, "size", FEW)["released"]["accuracy"] == 1.0


def test_text_and_time_are_learned_from_and_names_are_not() -> None:
    frame = people().assign(
        id=[f"P{i}" for i in range(150)],
        when=np.datetime64("2020-01-01T00:00:00") + people()["skill"].to_numpy().astype("timedelta64[h]"),
    )
    found = learn(frame, frame, "grade", FEW, columns=["id", "town", "when"])
    assert found["features"] == ["town", "when"]
    assert found["released"]["accuracy"] > 0.9
    with pytest.raises(
        InputError, match="no released column other than the target 'grade' can be used for training"
    ):
        learn(frame, frame, "grade", FEW, columns=["id", "grade"])


def test_rows_without_a_class_take_no_part_and_missing_features_do() -> None:
    frame = people().astype({"wage": float, "skill": float})
    frame.loc[3, "wage"] = np.nan
    frame.loc[5, "skill"] = np.nan
    masked = frame[["skill", "age"]].copy()
    masked.loc[7, "skill"] = np.inf
    found = learn(frame, release_of(masked, masked), "wage>500", FEW)
    assert found["rows_without_target"] == 1
    assert found["rows_used"] == {"original": 149, "released": 149}


def test_large_tables_are_sampled() -> None:
    frame = people(400)
    found = learn(
        frame,
        release_of(frame[["skill"]], frame[["skill"]]),
        "wage>500",
        LearningSettings(runs=1, trees=10, most_rows=100),
    )
    assert found["rows_used"] == {"original": 100, "released": 100}
    assert found["released"]["accuracy_interval"] is None
    assert found["released"] == found["original"]


def test_several_releases_take_turns() -> None:
    frame = people()
    good = release_of(frame[["skill", "age"]], frame[["skill", "age"]])
    wrong = release_of(-frame[["skill", "age"]], frame[["skill", "age"]])
    both, first, second = (
        learn(frame, item, "wage>500", PAPER, bounds=False)["released"]
        for item in ([good, wrong], good, wrong)
    )
    assert both["accuracy_interval"][1] - both["accuracy_interval"][0] > 0.1
    assert second["accuracy"] < both["accuracy"] < first["accuracy"]
    assert "original" not in learn(frame, good, "wage>500", PAPER, bounds=False)


def test_a_class_that_never_occurs_in_the_test_has_no_f() -> None:
    frame = pd.DataFrame({"x": [0, 1] * 50, "c": [2] + [0, 1] * 49 + [0]})
    found = learn(frame, release_of(frame[["x"]], frame[["x"]]), "c", PAPER)
    assert found["released"]["f"]["2"] is None
    assert found["released"]["f_interval"]["2"] is None
    assert json.dumps(found, allow_nan=False)


def test_the_interval_of_a_mean_over_runs() -> None:
    assert _mean([0.5]) == (0.5, None)
    assert math.isnan(_mean([math.nan])[0])
    mean, interval = _mean([0.4, math.nan, 0.6, 0.5])
    assert (mean, interval) == (
        pytest.approx(0.5),
        pytest.approx(stats.t.interval(0.95, 2, 0.5, 0.1 / math.sqrt(3))),
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"protocol": "holdout"}, OptionError, "protocol 'holdout' is not one of k-fold, first-66%"),
        ({"folds": 1}, OptionError, "folds must be an integer of at least 2, got 1"),
        ({"runs": 0}, OptionError, "runs must be an integer of at least 1, got 0"),
        ({"trees": 0}, OptionError, "trees must be an integer of at least 1, got 0"),
        ({"folds": 151}, OptionError, "folds is 151, but only 150 rows have a class"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(options: Any, error: Any, message: str) -> None:
    frame = people()
    with pytest.raises(error, match=message):
        evaluate(frame, release_of(frame[["age"]], frame[["age"]]), target="wage>500", **options)


def test_a_first_part_of_one_class_is_refused() -> None:
    frame = people().sort_values("wage")
    with pytest.raises(InputError, match="first 66% of the rows do not contain two classes of 'wage>900'"):
        evaluate(
            frame, release_of(frame[["age"]], frame[["age"]]), target="wage>900", protocol="first-66%"
        )  # fmt: skip


def test_part_of_an_evaluation_in_words_and_in_the_internal_report() -> None:
    frame = people()
    release = shoal.protect(
        frame, method="mdav-dp", epsilon=1, k=5, seed=1, domains={"skill": (0, 100)}, columns=["skill"]
    )
    assert evaluate(frame, release).learning is None
    found = evaluate(frame, release, target="town", runs=2, trees=10)
    assert found.learning == learn(frame, release, "town", LearningSettings(runs=2, trees=10))
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["learning"] == found.learning
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(found)
    text = console.export_text()
    for phrase in ("Predicting town", "F, Upper", "majority class", "if published unmasked", "over 2 runs"):
        assert phrase in text
    assert max(len(line) for line in text.splitlines()) <= 80
    page = internal_report(release, found)
    assert "F-measure of Upper" in page
    accuracy = found.learning["released"]["accuracy"]
    row = page.split('<th scope="row">accuracy</th>')[1].split("</tr>")[0]
    assert f'data-label="released"><span>{100 * accuracy:.1f}%' in row
    assert "Predicting" not in internal_report(release, evaluate(frame, release))


def test_importing_does_not_load_the_learner() -> None:
    code = "import sys, shoal; print([m for m in ('sklearn', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people().to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def command(*words: str) -> int:
    usual = ["--method", "mdav-dp", "--epsilon", "1", "--k", "5", "--out", "out"]
    return run(["protect", "data.csv", *usual, "--domain", "skill=0:100", "--columns", "skill", *words])


def test_protect_and_evaluate_take_a_target(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # forests of a few trees are enough to be shown
    forest = learning._forest
    monkeypatch.setattr(learning, "_forest", lambda trees: forest(3))
    assert command("--evaluate", "--target", "wage>500", "--json", "--internal", "internal.html") == 0
    found = json.loads(capsys.readouterr().out)["evaluation"]["learning"]
    assert found["target"] == "wage>500"
    assert "Predicting wage&gt;500" in (here / "internal.html").read_text("utf-8")
    for path in (here / "out").iterdir():
        assert "majority" not in path.read_text("utf-8")
    people()[["skill", "wage"]].to_csv("released.csv", index=False)
    assert run(["evaluate", "data.csv", "released.csv", "--target", "wage>500"]) == 0
    assert "Predicting wage>500" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--target", "town"), "To measure predictive utility, also pass --evaluate"),
        (("--evaluate", "--target", "twn"), "no column 'twn' in the table. Did you mean 'town'?"),
        (("--evaluate", "--target", "wage"), "give a threshold"),
    ],
)
def test_protect_refuses_a_target_it_cannot_learn_and_writes_nothing(
    words: tuple[str, ...], says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*words) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["data.csv"]
