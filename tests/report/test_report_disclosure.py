"""The disclosure risk in internal pages: both tables by the same keys, weights said, none where there are no keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.io import read
from shoal.report.findings import disclosed, of_release
from shoal.report.pages import _environment

ROLES = {
    "age": {"role": "quasi-identifier", "lo": 0, "hi": 100},
    "sex": {"role": "quasi-identifier", "kind": "nominal", "values": ["f", "m"]},
    "w": {"role": "weight"},
    "home": {"role": "unit", "max_rows": 9},
    "ill": {"role": "confidential", "kind": "nominal", "values": ["a", "b", "c"]},
}


@pytest.fixture(scope="module")
def people() -> pa.Table:
    draw = np.random.default_rng(1)
    return pa.table(
        {
            "age": draw.integers(20, 60, 60),
            "sex": draw.choice(["f", "m"], 60),
            "w": draw.integers(1, 20, 60),
            "home": np.arange(60) // 2,
            "ill": draw.choice(list("abc"), 60),
        }
    )


@pytest.fixture(scope="module")
def schema() -> shoal.Schema:
    return shoal.Schema.from_dict({"attribute": [{"name": name, **facts} for name, facts in ROLES.items()]})


def test_both_tables_are_measured_alike_and_the_original_with_its_weights_too(
    people: pa.Table, schema: shoal.Schema
) -> None:
    release = shoal.protect(people, schema, method="k-anonymity", k=5)
    found = disclosed(read(people), of_release(release), schema)
    assert found is not None
    assert found.quasi_identifiers == ("age", "sex")
    assert found.titles == ("original, units", "original, weighted", "original", "released")
    values = {name: shown for name, shown, _ in found.lines}
    weighted, plain = (shoal.risk(people, ["age", "sex"], weight=weight) for weight in ("w", None))
    persons = shoal.risk(people, ["age", "sex"], unit="home")
    assert values["expected re-identified"][:3] == tuple(
        f"{one.expected:.4g}" for one in (persons, weighted, plain)
    )
    assert values["sample uniques"][2:] == (f"{plain.uniques}", "0")
    assert any("Units are counted, not records: the values of home." in line for line in found.conditions)
    assert any("Weights: w." in line for line in found.conditions)
    page = _environment().get_template("sections/disclosure.html.j2").render(disclosure=found)
    assert page.count('data-label="released"') == len(found.lines)
    assert 'id="disclosure"' in page


def test_without_quasi_identifiers_there_is_no_such_section(people: pa.Table) -> None:
    schema = shoal.Schema.from_dict(
        {"attribute": [{"name": "age", "role": "confidential", "lo": 0, "hi": 100}]}
    )
    release = shoal.protect(people, schema, method="ranking-dp", epsilon=1, k=5, columns=["age"])
    assert disclosed(read(people), of_release(release), schema) is None


def test_a_bad_weight_leaves_the_section_out(people: pa.Table, schema: shoal.Schema) -> None:
    release = shoal.protect(people, schema, method="k-anonymity", k=5)
    broken = people.set_column(2, "w", pa.array([0] * 60))
    assert disclosed(read(broken), of_release(release), schema) is None
