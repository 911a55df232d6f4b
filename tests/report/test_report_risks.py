"""Measured risks on the page: compared with guessing and with the unprotected table, with omissions listed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.evaluation.assessment import MOST_LINKED, linkage_line, verdict
from shoal.evaluation.linkage import record_linkage
from shoal.io import read
from shoal.report import internal_report
from shoal.report.findings import attacked, find, of_release
from shoal.text import Message


def table(n: int = 200) -> pa.Table:
    rng = np.random.default_rng(4)
    age = rng.integers(20, 60, n)
    return pa.table(
        {"age": age, "pay": (age * 50 + rng.integers(0, 300, n)), "town": rng.choice(["A", "B"], n)}
    )


def test_linkage_of_the_unprotected_table_is_that_of_the_table_with_itself() -> None:
    people = table().select(["age", "pay"])
    made = shoal.protect(
        people, method="mdav-dp", epsilon=1, k=10, domains={"age": (0, 99), "pay": (0, 4000)}
    )
    [line] = linkage_line(shoal.evaluate(people, made).to_dict(), read(people), made.columns)
    values = np.column_stack([people[name].to_numpy() for name in people.column_names]).astype(float)
    itself = record_linkage(values, values, np.array([99.0, 4000.0]))
    assert line.unprotected == pytest.approx(itself.percent / 100)
    assert line.interval[0] <= line.success <= line.interval[1]
    assert line.chance == pytest.approx(1 / 200)
    assert line.identity
    assert line.links_records


def test_linkage_needs_rows_of_known_origin() -> None:
    people = table()
    found = shoal.evaluate(people, people).to_dict()
    assert linkage_line(found, read(people), people.column_names) == []


def test_k_anonymity_is_linked_by_what_it_takes_for_known() -> None:
    people = table()
    roles = {"age": "quasi-identifier", "pay": "confidential", "town": "other"}
    schema = shoal.Schema(
        tuple(replace(a, role=roles[a.name]) for a in shoal.Schema.infer(people).attributes)
    )
    made = shoal.protect(people, schema, "k-anonymity", k=20)
    found = find(of_release(made), made, None, people)
    by_quasi, by_all = (line for line in found.risks.lines if line.links_records)
    assert by_quasi.name == "record linkage, quasi-identifiers"
    assert by_quasi.success <= 1 / 20
    assert by_quasi.unprotected == pytest.approx(len(set(people["age"].to_pylist())) / 200)
    assert by_quasi.beyond is None
    assert by_all.interval[0] > MOST_LINKED
    assert by_all.beyond == Message.of("beyond-quasi-identifiers")
    assert verdict(made, None, found.risks.lines).measured.risk_level == "amber"


def test_swapped_values_are_linked_beyond_the_promise() -> None:
    people = table()
    roles = {"age": "quasi-identifier", "pay": "confidential", "town": "other"}
    schema = shoal.Schema(
        tuple(replace(a, role=roles[a.name]) for a in shoal.Schema.infer(people).attributes)
    )
    made = shoal.protect(people, schema, "t-closeness", k=10, t=2)
    found = find(of_release(made), made, None, people)
    [linked] = (line for line in found.risks.lines if line.links_records)
    assert linked.beyond == Message.of("beyond-confidential-values")
    assert verdict(made, None, found.risks.lines).measured.risk_level == "amber"
    page = internal_report(made, None, people)
    assert "probability times at most 2" in page


def test_attacks_succeed_on_the_unprotected_table_and_less_on_a_protected_one() -> None:
    people = table()
    made = shoal.protect(
        people,
        method="mdav-dp",
        epsilon="0.5",
        k=50,
        domains={"age": (0, 99), "pay": (0, 4000), "town": ("A", "B")},
        columns=["age", "pay", "town"],
        seed=1,
    )
    found = attacked(read(people), read(made.data), made.columns)
    names = [line.name for line in found.lines]
    assert {"linkability", "inference of pay"} <= set(names)
    for line in found.lines:
        assert line.interval[0] <= line.success <= line.interval[1]
        assert line.identity is not line.name.startswith("inference")
        if line.name.startswith("inference"):
            assert line.unprotected is not None
            assert line.unprotected > line.chance + 0.2
            assert line.success < line.unprotected
    same = attacked(read(people), read(made.data), made.columns)
    assert same == found


def test_rows_with_gaps_take_no_part_and_the_page_says_so() -> None:
    people = table()
    towns = people["town"].to_pylist()
    towns[:20] = [None] * 20
    holes = people.set_column(2, "town", pa.array(towns))
    found = attacked(read(holes), read(people), people.column_names)
    assert found.lines
    assert "Rows with missing values were left out: 20 original rows." in found.remarks


def test_tables_that_cannot_be_attacked_leave_a_remark() -> None:
    people = table()
    assert "no released column" in attacked(read(people), read(people), ["other"]).remarks[0]
    few = read(people.slice(0, 5))
    assert "only 5 rows without missing values" in attacked(few, few, people.column_names).remarks[0]
    text = people.set_column(0, "age", pa.array([f"{age}" for age in people["age"].to_pylist()]))
    found = attacked(read(people), read(text), people.column_names)
    assert not found.lines
    assert "column 'age'" in found.remarks[0]
