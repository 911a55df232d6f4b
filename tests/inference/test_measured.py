"""What is published as measured is what was measured: functions summed over the records give the published sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.inference.measured import FUNCTIONS, coarsened, evaluated
from shoal.inference.rows import Frame, PublicRelease, released_rows, supported
from shoal.mechanisms.pairs import budget
from shoal.privacy import Measurements
from tests.mechanisms.test_rules import ATTRIBUTES, KINDS, hospital, violations
from tests.mechanisms.test_rules import schema as ruled_schema

SHARED = {"source": "questionnaire"}


def people(n: int = 3000, *, gaps: bool = False) -> pd.DataFrame:
    random = np.random.default_rng(3)
    age = random.integers(18, 90, n)
    income = np.minimum(np.exp(random.normal(9 + age / 60, 1.3, n)).round(), 200_000)
    sex = random.choice(["f", "m"], n)
    region = random.choice(["north", "south", "east", "west"], n, p=[0.5, 0.3, 0.15, 0.05])
    hours = np.where(sex == "f", random.integers(0, 60, n), random.integers(20, 80, n)).astype(float)
    owner = (random.random(n) < age / 100).astype(np.int64)
    if gaps:
        hours[random.random(n) < 0.2] = np.nan
    return pd.DataFrame(
        {"age": age, "income": income, "sex": sex, "region": region, "hours": hours, "owner": owner}
    )


def schema(*, gaps: bool = False) -> shoal.Schema:
    def number(name: str, hi: int, **more: Any) -> dict[str, Any]:
        return {"name": name, "kind": "numeric", "type": "integer", "lo": 0, "hi": hi, **SHARED, **more}

    def names(name: str, *values: str) -> dict[str, Any]:
        return {"name": name, "kind": "nominal", "values": list(values), **SHARED}

    return shoal.Schema.from_dict(
        {
            "attribute": [
                number("age", 120),
                number("income", 200_000, spikes=[0, 200_000]),
                names("sex", "f", "m"),
                names("region", "north", "south", "east", "west"),
                number("hours", 80, **({"missing": "category"} if gaps else {})),
                number("owner", 1),
            ]
        }
    )


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "gaps": {"gaps": True},
    "a delta": {"delta": "0.000001"},
    "few rows": {"epsilon": "1", "n": 1000},
    "triples": {"triples": True},
    "replaced": {"neighbours": "replace-one"},
    "declared rows": {"rows": 3000},
    "gaps, a delta, triples": {"gaps": True, "delta": "0.000001", "triples": True},
}


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "discrete_laplace", lambda scale, size, source: np.zeros(size, np.int64))
    monkeypatch.setattr(budget, "discrete_gaussian", lambda variance, size, source: np.zeros(size, np.int64))
    monkeypatch.setattr(budget, "elliptope_noise", lambda d, *rest: np.zeros((d, d), np.int64))
    monkeypatch.setattr(
        budget,
        "block_noise",
        lambda sizes, epsilon, source, steps, draws: np.zeros(draws * sum(sizes), np.int64),
    )


@pytest.mark.parametrize("case", CASES)
def test_functions_summed_over_records_are_what_was_measured(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(CASES[case])
    gaps, n = bool(options.pop("gaps", False)), options.pop("n", 3000)
    without_noise(monkeypatch)
    table, declared = people(n, gaps=gaps), schema(gaps=gaps)
    release = shoal.protect(table, declared, "pairs-dp", seed=1, **{"epsilon": "20", **options})
    found = release.measurements
    assert isinstance(found, Measurements)
    assert not found.publishable
    # the records themselves, in the place of the released rows
    shown = PublicRelease.of(shoal.protect(table, declared, "pairs-dp", epsilon="20", seed=1))
    records = PublicRelease(
        shoal.release.prepare(shoal.io.read(table), declared, "pairs-dp", "20", seed=1),
        shown.statement,
        found,
    )
    rows = released_rows(records, records.described.columns)
    made = evaluated(found, rows)
    exact = made.functions.sum(axis=0)
    kinds = {one.kind for one in found.measured} & FUNCTIONS.keys()
    assert {"sign", "count", "spike"} <= kinds
    # products and sums inside intervals are measured in parts: a record is off by half a part
    np.testing.assert_allclose(made.means * found.rows, exact, atol=n * 0.5 / 1024)
    # with merged intervals the same holds, and fewer functions are left
    merged = coarsened(found, records.described.columns, 24)
    fewer = evaluated(merged, rows)
    np.testing.assert_allclose(fewer.means * found.rows, fewer.functions.sum(axis=0), atol=n * 0.5 / 1024)
    if case in ("plain", "gaps", "a delta"):
        assert len(fewer.families) < len(made.families)
        assert "within" in {one.kind for one in merged.measured}
        assert {"tree", "inside", "product", "contrast"} <= kinds
        assert made.deviations.min() > 0
    if "triples" in case:
        assert "triple" in kinds


@pytest.mark.parametrize("delta", ["0", "0.000001"])
def test_under_rules_coordinates_summed_over_records_are_what_was_measured(
    delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distances of ordered days, combinations as one column, derived columns not at all."""
    without_noise(monkeypatch)
    table, declared = hospital(1500), ruled_schema(tuple(KINDS))
    found = shoal.protect(table, declared, "pairs-dp", epsilon="20", delta=delta, seed=1).measurements
    assert found is not None
    columns = {one["column"]: one for one in found.attributes if not one.get("missing")}
    assert columns.keys() == {"born", "marital", "spouse", "admission", "discharge", "district", "income"}
    assert columns["discharge"]["above"] == ["admission"]
    assert columns["district"]["together"] == ["region", "district"]
    prepared = shoal.release.prepare(shoal.io.read(table), declared, "pairs-dp", "20", seed=1)
    records = PublicRelease(prepared, prepared.statement, found)
    rows = released_rows(records, records.described.columns)
    made = evaluated(found, rows)
    exact = made.functions.sum(axis=0)
    np.testing.assert_allclose(made.means * found.rows, exact, atol=1500 * 0.5 / 1024)
    # what a statistic of some columns needs, and nothing else
    assert set(records.measured_for(["age", "discharge"])) == {"born", "discharge", "admission"}
    assert records.measured_for(["region", "income"]) == ("district", "income")
    few = released_rows(records, ["age", "discharge"])
    assert set(few.measured) == {"born", "discharge", "admission"}
    np.testing.assert_array_equal(few.measured["discharge"], rows.measured["discharge"])


def test_support_rows_satisfy_the_rules() -> None:
    release = shoal.protect(hospital(400), ruled_schema(tuple(KINDS)), "pairs-dp", epsilon="2", seed=1)
    shown = PublicRelease.of(release)
    rows = supported(shown, released_rows(shown, shown.described.columns), {}, empty=True)
    assert rows.size > rows.released > 300
    frame = pd.DataFrame({name: Frame(rows).native[name] for name in shown.described.columns})
    assert not any(violations(frame).values())


def test_rules_read_off_the_records_keep_the_numbers_back() -> None:
    rules = (shoal.Rule("admission + 1 <= discharge", "these records"),)
    declared = shoal.Schema(ATTRIBUTES, rules=rules)
    release = shoal.protect(hospital(300), declared, "tree-dp", epsilon="1", seed=1)
    assert release.measurements is None
    assert not any("measurements.json" in line for line in release.statement.conditions)


def test_the_file_holds_the_same_numbers() -> None:
    release = shoal.protect(people(), schema(), epsilon="5", seed=1)
    found = release.measurements
    assert found is not None
    again = Measurements.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict()
    assert {one.kind for one in again.measured} <= {"rows", "cuts", "chosen", *FUNCTIONS}


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 2},
        {"rows": 0},
        {"bins": []},
        {"measured": [{"kind": "sign"}]},
        {"measured": [{"kind": "sign", "columns": [99], "where": {}, "sums": [1], "sd": 1.0, "law": {}}]},
    ],
    ids=str,
)
def test_a_damaged_file_is_refused(damage: dict[str, Any]) -> None:
    release = shoal.protect(people(500), schema(), epsilon="1", seed=1)
    assert release.measurements is not None
    with pytest.raises(shoal.InputError):
        Measurements.from_dict({**release.measurements.to_dict(), **damage})


def test_a_range_from_the_records_keeps_the_numbers_back() -> None:
    release = shoal.protect(
        people(500)[["age", "income"]], epsilon="1", seed=1, domain_from_data=1.5, method="pairs-dp"
    )
    assert release.measurements is None
    assert not any("measurements.json" in line for line in release.statement.conditions)
