"""A fitted model is paid for once, holds noisy quantities only, and draws rows again after it was loaded."""

from __future__ import annotations

import json
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import shoal
from shoal.ledger import open_ledger
from shoal.ledger.account import Register
from shoal.release import SyntheticModel
from tests.inference.test_measured import people, schema
from tests.privacy.accounting.transcript import recording, replaying

from .edge import neighbours

METHODS = [
    shoal.PairsDP(epsilon="3"),
    shoal.PairsDP(epsilon="3", triples=True, delta="0.000001"),
    shoal.TreeDP(epsilon="3"),
]


@pytest.fixture(scope="module")
def model() -> SyntheticModel:
    found = shoal.PairsDP(epsilon="3").fit(people(1500), schema(), seed=1)
    assert isinstance(found, SyntheticModel)
    return found


@pytest.mark.parametrize("method", METHODS, ids=lambda one: f"{one.name} {one.delta}")
def test_a_saved_model_draws_the_same_rows(method: Any, tmp_path: Path) -> None:
    made = method.fit(
        people(1500, gaps=method.name == "pairs-dp"), schema(gaps=method.name == "pairs-dp"), seed=1
    )
    made.save(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        *("columns.parquet", "measurements.json", "method.toml", "model.json", "model.npz", "statement.json")
    ]
    again = SyntheticModel.load(tmp_path / "model")
    assert again.statement.sentence == made.statement.sentence
    assert again.statement.conditions == made.statement.conditions
    assert again.method == made.method
    assert again.measurements == made.measurements
    mine, other = made.sample(200, seed=5), again.sample(200, seed=5)
    for column in made.columns:
        values = mine[column].astype(object).where(mine[column].notna(), None)
        assert values.tolist() == other[column].to_pylist()


def test_protect_is_fit_and_sample(model: SyntheticModel) -> None:
    """The statement and the noisy numbers are those of a release with the same seed, and the rows follow them."""
    release = shoal.protect(people(1500), schema(), epsilon="3", seed=1)
    assert model.statement == release.statement
    assert model.measurements == release.measurements
    drawn = model.sample(20_000, seed=2)
    assert abs(float(drawn["age"].mean()) - float(release.data["age"].mean())) < 1
    assert (drawn["sex"] == "f").mean() == pytest.approx((release.data["sex"] == "f").mean(), abs=0.02)
    assert len(model.sample(seed=1)) == model.rows == len(release.data)


def test_conditions_choose_rows(model: SyntheticModel) -> None:
    found = model.sample(300, where={"sex": "f", "age": (20, 30), "region": ["north", "south"]}, seed=1)
    assert len(found) == 300
    assert set(found["sex"]) == {"f"}
    assert found["age"].between(20, 30).all()
    assert set(found["region"]) == {"north", "south"}


@pytest.mark.parametrize(
    "options",
    [
        {"n": 0},
        {"n": True},
        {"n": 2.5},
        {"where": {"sexes": "f"}},
        {"where": {"sex": "x"}},
        {"where": {"age": "old"}},
    ],
    ids=str,
)
def test_wrong_requests_are_refused(options: dict[str, Any], model: SyntheticModel) -> None:
    with pytest.raises(shoal.OptionError):
        model.sample(**options)


def test_a_condition_that_no_row_fulfils_is_refused(
    model: SyntheticModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.release.model._MOST_DRAWN", 20_000)
    monkeypatch.setattr("shoal.release.model._MOST_TIMES", 1)
    with pytest.raises(shoal.OptionError, match="fewer"):
        model.sample(3, where={"age": (200, 300)})


def test_fitting_is_charged_once_and_sampling_never(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    with closing(open_ledger(place)) as ledger:
        ledger.register(Register("people", "add-remove", Fraction(3)))
    method = shoal.PairsDP(epsilon="2")
    made = method.fit(people(500), schema(), ledger=place, dataset="people")
    made.sample(100)
    made.sample(100)
    with closing(open_ledger(place)) as ledger:
        assert ledger.standing("people").spent == 2
    with pytest.raises(shoal.ShoalError):
        method.fit(people(500), schema(), ledger=place, dataset="people")


def test_neighbours_and_one_transcript_give_one_model(tmp_path: Path) -> None:
    """Nothing in a saved model follows the records, given what passed the accountant."""
    files: list[dict[str, bytes]] = []
    for method in (shoal.PairsDP(epsilon="1"), shoal.TreeDP(epsilon="1")):
        files.clear()
        draws: Any = None
        for odd in (False, True):
            path = neighbours.write(tmp_path / f"{method.name}-{odd}.csv", odd=odd)
            declared = neighbours.schema(*neighbours.NAMES, labelled=False)
            with recording(1) if draws is None else replaying(draws) as transcript:
                made = method.fit(path, declared)
            draws = transcript.draws
            folder = made.save(tmp_path / f"model {method.name}-{odd}")
            files.append(
                {one.name: one.read_bytes() for one in sorted(folder.iterdir()) if one.suffix != ".npz"}
            )
            with np.load(folder / "model.npz", allow_pickle=False) as arrays:
                files[-1] |= {name: arrays[name].tobytes() for name in arrays.files}
        assert files[0] == files[1]


def test_a_method_without_a_model_is_refused() -> None:
    with pytest.raises(shoal.OptionError, match="laplace"):
        shoal.Laplace(epsilon="1").fit(people(50), schema())


@pytest.mark.parametrize(
    "name", ["model.json", "model.npz", "method.toml", "statement.json", "columns.parquet"]
)
def test_a_missing_file_is_named(name: str, model: SyntheticModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    (tmp_path / "model" / name).unlink()
    with pytest.raises(shoal.InputError, match=name):
        SyntheticModel.load(tmp_path / "model")


@pytest.mark.parametrize(
    "change", [{"version": 9}, {"model": {"part": "Popen", "fields": {}}}, {"model": {"x": 1}}]
)
def test_a_damaged_model_is_refused(change: dict[str, Any], model: SyntheticModel, tmp_path: Path) -> None:
    """Only known parts are made: a file cannot name any other class."""
    model.save(tmp_path / "model")
    place = tmp_path / "model" / "model.json"
    place.write_text(json.dumps({**json.loads(place.read_text("utf-8")), **change}), "utf-8")
    with pytest.raises(shoal.InputError):
        SyntheticModel.load(tmp_path / "model")


def test_a_method_can_be_cloned() -> None:
    method = shoal.PairsDP(epsilon="1", triples=True)
    assert clone(method) == method
    assert method.get_params() == clone(method).get_params()
    assert method.get_params()["triples"] is True
    assert shoal.PairsDP(**method.get_params()) == method
