"""Which columns are released, on which lattices, from which rows; and what is said about the rest."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.columns.declaration import Declaration
from shoal.columns.description import Described, describe
from shoal.columns.schema import Schema
from shoal.errors import InputError, OptionError, Problems
from shoal.io import read

TABLE = pa.table(
    {
        "person_id": np.arange(6),
        "age": [20, 30, 40, 50, 60, 70],
        "town": list("ABCABC"),
        "income": [1.5, 2.5, None, 4.5, 5.5, 60.5],
        "weight": np.ones(6),
    }
)
DOMAINS = {"age": (0, 120), "income": (0.0, 100.0)}


def described(data: pa.Table = TABLE, **declared: Any) -> Described:
    arguments = {
        **dict.fromkeys(("schema", "columns", "domains", "domain_from_data")),
        **{"outside": "error", "missing": "error"},
        **declared,
    }
    problems = Problems()
    found = describe(read(data), Declaration.of(**arguments), problems=problems)
    problems.raise_all()
    return found


def test_numeric_columns_are_chosen_in_the_order_of_the_table() -> None:
    found = described(columns=["income", "age"], domains=DOMAINS, missing="drop")
    assert found.columns == ("age", "income")
    assert found.n == 5
    assert found.kept is not None
    assert found.kept.tolist() == [0, 1, 3, 4, 5]
    assert found.original("income").tolist() == [1.5, 2.5, 4.5, 5.5, 60.5]


def test_columns_left_out_are_noted_with_their_reason() -> None:
    found = described(domains=DOMAINS, missing="drop")
    assert found.columns == ("age", "income")
    reasons = {note.facts["column"]: note.facts["reason"].code for note in found.notes}
    assert reasons == {
        "person_id": "role-not-released",
        "town": "kind-not-taken",
        "weight": "weight-not-decided",
    }
    notes = " ".join(map(str, found.notes))
    for word in ("'person_id' is not released: its role is identifier", "'town'", "nominal", "'weight'"):
        assert word in notes


def test_whoever_names_a_column_overrules_the_guess() -> None:
    found = described(columns=["person_id"], domains={"person_id": (0, 10)})
    assert found.columns == ("person_id",)


@pytest.mark.parametrize("role", ["identifier", "unit", "weight"])
def test_a_declared_role_is_not_overruled(role: str) -> None:
    schema = Schema.from_dict({"attribute": [{"name": "age", "lo": 0, "hi": 120, "role": role}]})
    with pytest.raises(OptionError, match=f"'age' cannot be released: its role is {role}"):
        described(schema=schema, columns=["age"])
    with pytest.raises(InputError, match="no numeric column"):
        described(schema=schema)


def test_columns_outside_the_schema_are_not_released() -> None:
    schema = Schema.from_dict({"attribute": [{"name": "age", "lo": 0, "hi": 120}]})
    found = described(schema=schema)
    assert found.columns == ("age",)
    assert any(
        "'income' is not released: the schema does not describe it" in str(note) for note in found.notes
    )
    with pytest.raises(OptionError, match="'income' is not described in the schema"):
        described(schema=schema, columns=["age", "income"])


def test_domains_on_the_call_win_over_the_schema() -> None:
    schema = Schema.from_dict({"attribute": [{"name": "age", "lo": 0, "hi": 90}]})
    assert described(schema=schema, domains={"age": (0, 120)}).lattices["age"].hi == 120


def test_missing_values_name_the_column_and_the_row() -> None:
    with pytest.raises(
        InputError, match=r"'income' has missing values, the first in row 3.*missing=.*separate, or drop"
    ):
        described(domains=DOMAINS)


def test_missing_values_elsewhere_do_not_matter() -> None:
    found = described(columns=["age"], domains={"age": (0, 120)})
    assert found.kept is None
    assert found.n == 6


@pytest.mark.parametrize(("lo", "hi"), [(2.0, 50.0), (0.0, 50.0)])
def test_values_outside_name_column_and_range_and_neither_how_many_nor_whose(lo: float, hi: float) -> None:
    found = described(domains=DOMAINS | {"income": (lo, hi)}, missing="drop")
    with pytest.raises(InputError) as refused:
        found.positions("income")
    # two values or one, in other rows: a count would answer a query for every range that is tried
    assert str(refused.value) == (
        f"some values of column 'income' lie outside {lo:g}:{hi:g}: widen the domain, or clip with outside=\"clip\"."
    )
    assert refused.value.to_dict() == {
        "sentence": str(refused.value),
        "code": "outside-domain",
        "column": "income",
        "row": None,
        "option": "outside",
        "fix": 'widen the domain, or clip with outside="clip".',
        "facts": {"column": "income", "option": "outside", "lo": lo, "hi": hi},
    }


def test_clipping_counts_what_it_did() -> None:
    found = described(domains={"age": (25, 65)}, columns=["age"], outside="clip")
    positions, clipped = found.positions("age")
    assert positions.tolist() == [0, 5, 15, 25, 35, 40]
    assert clipped == 2


def test_integers_have_step_one_and_reals_a_fine_one() -> None:
    found = described(domains=DOMAINS, missing="drop")
    assert found.lattices["age"].step == 1
    assert found.lattices["income"].step == Fraction(100, 2**20)


def test_domain_from_the_data_is_exact_and_marked_private() -> None:
    found = described(
        columns=["age", "income"], domain_from_data=1.5, domains={"age": (0, 120)}, missing="drop"
    )
    assert found.lattices["age"].hi == 120
    assert found.lattices["income"].hi == Fraction("90.75")
    assert found.provenance.private_domains == ("income",)
    assert len(found.provenance.data_dependent) == 3


def test_domain_from_the_data_that_nobody_needs_taints_nothing() -> None:
    found = described(columns=["age"], domains={"age": (0, 120)}, domain_from_data=2)
    assert found.provenance.data_dependent == ()


def test_sums_that_would_not_fit_are_refused_before_any_is_made() -> None:
    schema = Schema.from_dict(
        {"attribute": [{"name": "x", "lo": 0, "hi": 2**40, "step": Fraction(1, 2**12)}]}
    )
    few = described(pa.table({"x": np.arange(1000.0)}), schema=schema)
    assert few.positions("x")[0].size == 1000
    with pytest.raises(OptionError, match="64 bits"):
        described(pa.table({"x": np.arange(1024.0)}), schema=schema).positions("x")


def unit_schema(**facts: Any) -> Schema:
    entries = [
        {"name": "age", "lo": 0, "hi": 120},
        {"name": "town", "kind": "nominal", "role": "unit", **facts},
    ]
    return Schema.from_dict({"attribute": entries})


def test_repeated_units_are_noticed() -> None:
    assert described(schema=unit_schema()).provenance.unit_repeats
    declared = described(schema=unit_schema(max_rows=3)).provenance
    assert (declared.unit_repeats, declared.rows_per_unit) == (False, 3)
    with pytest.raises(InputError, match="a unit has more rows than the declared max_rows = 1"):
        described(schema=unit_schema(max_rows=1))


def test_a_row_without_its_person_is_refused() -> None:
    holes = TABLE.set_column(2, "town", pa.array(["A", None, "B", "C", "D", "E"]))
    with pytest.raises(InputError, match="unit column 'town' has missing values"):
        described(holes, schema=unit_schema())


@pytest.mark.parametrize(
    ("declared", "word"),
    [
        ({"outside": "ignore"}, "outside 'ignore' is not one of error, clip"),
        ({"missing": "fill"}, "missing 'fill' is not one of error, keep, drop"),
        ({"schema": "s.toml"}, "must be a shoal.Schema"),
        ({"columns": [1]}, "list of column names"),
        ({"columns": 3}, "columns must be a list"),
        ({"columns": ["age", "age"]}, "names 'age' twice"),
        ({"domains": [("age", 0, 1)]}, "domains must map each column"),
        ({"domains": {"age": 5}}, "must be a pair"),
        ({"domains": {"age": (0, "inf")}}, "must be finite"),
        ({"domain_from_data": 0.5}, "at least 1"),
        ({"domain_from_data": "big"}, "must be a number"),
        ({"domains": DOMAINS, "columns": ["age"]}, "'income', which columns does not contain"),
        (
            {"columns": ["age"], "domains": {"age": ("0.2", "0.8")}, "types": {"age": "integer"}},
            "contains no such",
        ),
    ],
)
def test_declarations_that_make_no_sense_are_refused(declared: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        described(**declared)


def test_nothing_to_protect_is_refused() -> None:
    with pytest.raises(InputError, match="no rows"):
        described(TABLE.slice(0, 0), domains=DOMAINS)
    with pytest.raises(InputError, match="no positive value"):
        described(pa.table({"x": [-1.0, 0.0]}), domain_from_data=1.5)
    with pytest.raises(InputError, match="every row has a missing value"):
        described(
            pa.table({"x": pa.array([None, None], pa.float64())}), domains={"x": (0, 1)}, missing="drop"
        )
