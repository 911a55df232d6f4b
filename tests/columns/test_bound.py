"""Contribution bounding: which rows of a unit take part, and what one unit more or less changes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
import shoal.columns.description as description
import shoal.query.facts as query_facts
from shoal.columns import read_as_asked
from shoal.columns.bound import bounded_rows
from shoal.errors import ClaimError, OptionError
from shoal.io import read, write
from shoal.ledger import open_ledger
from shoal.query.facts import prepare as prepare_queries
from shoal.query.server.folder import DatasetSettings, load_dataset, write_dataset
from shoal.query.spec import parse, statement
from shoal.release.protection import prepare as prepare_release

KEY, OTHER = b"k" * 32, b"o" * 32
Rows = list[tuple[str, int]]


def schema_of(rows: int | None = 2, **more: Any) -> shoal.Schema:
    unit: dict[str, Any] = {"name": "who", "kind": "nominal", "role": "unit", "type": "text", **more}
    if rows is not None:
        unit["bound"] = {"rows": rows}
    return shoal.Schema.from_dict({"attribute": [unit, {"name": "x", "lo": 0, "hi": 9}]})


def table_of(rows: Rows) -> pa.Table:
    return pa.table(
        {
            "who": pa.array([who for who, _ in rows], pa.string()),
            "x": pa.array([x for _, x in rows], pa.int64()),
        }
    )


def chosen(rows: Rows, most: int, key: bytes = KEY, how: Any = bounded_rows) -> Counter[tuple[str, int]]:
    """The rows that take part, as a multiset."""
    kept = how(read(table_of(rows)), schema_of(most), None, most, key)
    return Counter(rows if kept is None else [rows[place] for place in kept])


def first_ones(table: Any, schema: Any, kept: Any, most: int, key: bytes, na: Any = ()) -> Any:
    """A planted fault: the first rows of each unit in the table."""
    seen: Counter[str] = Counter()
    found = []
    for row, who in enumerate(table.series("who").to_list()):
        seen[who] += 1
        if seen[who] <= most:
            found.append(row)
    return np.array(found)


def next_to_others(table: Any, schema: Any, kept: Any, most: int, key: bytes, na: Any = ()) -> Any:
    """A planted fault: the order of a unit's rows depends on how many rows the table has."""
    return bounded_rows(table, schema, kept, most, key + bytes([table.n]), na)


def one_more(table: Any, schema: Any, kept: Any, most: int, key: bytes, na: Any = ()) -> Any:
    """A planted fault: one row more than allowed."""
    return bounded_rows(table, schema, kept, most + 1, key, na)


def largest_change(how: Any, most: int) -> int:
    """Brute force: over all tables of up to three rows of one unit beside two of another, and their orders of rows,
    the number of rows that appear or disappear with the unit; 99 where the other unit's rows change."""
    largest = 0
    others: list[Rows] = [
        [("b", x) for x in xs] for n in range(4) for xs in combinations_with_replacement((0, 1), n)
    ]
    for other in others:
        alone = chosen(other, most, how=how) if other else Counter()
        for n in range(4):
            for xs in product((0, 1), repeat=n):
                mine = [("a", x) for x in xs]
                for mixed in (mine + other, other + mine, other[:1] + mine + other[1:]):
                    found = chosen(mixed, most, how=how) if mixed else Counter()
                    changed = (found - alone) + (alone - found)
                    if any(who == "b" for who, _ in changed):
                        return 99
                    largest = max(largest, changed.total())
    return largest


@pytest.mark.parametrize("most", [1, 2])
def test_a_unit_changes_at_most_that_many_rows(most: int) -> None:
    assert largest_change(bounded_rows, most) == most


@pytest.mark.parametrize("broken", [next_to_others, one_more])
def test_the_brute_force_finds_planted_faults(broken: Any) -> None:
    assert largest_change(broken, 2) > 2


def depends_on_position(how: Any) -> bool:
    """Whether another order of the same rows, which one unit's position in the table decides, chooses other rows."""
    rows = [("a", x) for x in range(6)] + [("b", x) for x in range(4)]
    found = chosen(rows, 2, how=how)
    random = np.random.default_rng(1)
    return any(chosen([rows[i] for i in random.permutation(10)], 2, how=how) != found for _ in range(20))


def test_the_choice_does_not_depend_on_the_order_of_rows() -> None:
    assert not depends_on_position(bounded_rows)
    assert depends_on_position(first_ones)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=30),
    st.integers(1, 4),
    st.binary(min_size=32, max_size=32),
)
def test_each_unit_keeps_as_many_rows_as_it_may_whatever_else_is_there(
    rows: Rows, most: int, key: bytes
) -> None:
    if not rows:
        return
    found = chosen(rows, most, key)
    for who in {who for who, _ in rows}:
        own = [row for row in rows if row[0] == who]
        kept = Counter({row: n for row, n in found.items() if row[0] == who})
        assert kept.total() == min(len(own), most)
        assert kept == chosen(own, most, key)
        assert kept <= Counter(own)


def test_another_key_chooses_other_rows() -> None:
    rows = [("a", x) for x in range(10)] + [("b", x) for x in range(10)]
    assert chosen(rows, 3) == chosen(rows, 3)
    assert chosen(rows, 3) != chosen(rows, 3, OTHER)
    # an attacker who can add rows to their own unit does not move anybody else's
    many = [*rows, *(("c", x % 10) for x in range(50))]
    assert {row for row in chosen(many, 3) if row[0] != "c"} == set(chosen(rows, 3))


def test_every_row_of_a_unit_is_as_likely_to_take_part() -> None:
    rows = [("a", x) for x in range(6)]
    counts = Counter(
        row for number in range(600) for row in chosen(rows, 2, number.to_bytes(32, "big")).elements()
    )
    # 600 draws of 2 of 6: 200 each, with a standard deviation of 11.5
    assert set(counts) == set(rows)
    assert max(abs(found - 200) for found in counts.values()) < 7 * 11.6


def people(n: int = 90) -> pa.Table:
    return table_of([(f"p{i % 20}", (i + i // 20) % 10) for i in range(n)])


def test_a_release_bounds_rows_states_it_and_keeps_it_in_its_recipe(tmp_path: Any) -> None:
    release = shoal.protect(people(), schema_of(3, called="patient"), epsilon="1/2", outside="clip")
    stated = release.statement
    assert (stated.epsilon, stated.unit, release.method.epsilon) == (
        Fraction(1, 2),
        "patient",
        Fraction(1, 6),
    )
    assert any("At most 3 rows of each value of who took part" in said for said in stated.conditions)
    assert release.kept is not None
    assert release.kept.size == 60
    release.save(tmp_path / "out")
    again = shoal.Bundle.load(tmp_path / "out")
    assert again.schema.unit is not None
    assert (again.schema.unit.bound, again.method.unit_rows) == (3, 3)
    assert shoal.PrivacyStatement.from_dict(stated.to_dict()) == stated


def test_an_option_sets_or_replaces_the_bound_of_the_schema() -> None:
    for schema in (schema_of(None), schema_of(4)):
        found = shoal.protect(people(), schema, epsilon=1, bound={"rows": 2})
        assert (found.method.unit_rows, found.statement.unit) == (2, "value of 'who'")
    assert shoal.protect(people(), schema_of(None), epsilon=1, bound="rows=2").method.unit_rows == 2
    # a declared maximum below the bound counts
    assert shoal.protect(people(), schema_of(9, max_rows=5), epsilon=1).method.unit_rows == 5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "laplace"}, ClaimError, "needs a claim about the original records under add-remove"),
        ({"neighbours": "replace-one"}, ClaimError, "use pairs-dp, or tree-dp with neighbours=add-remove"),
        ({"method": "mdav-dp", "k": 3}, ClaimError, "number of rows after bounding is private"),
        ({"method": "k-anonymity", "k": 3, "epsilon": None}, ClaimError, "add-remove"),
        ({"bound": {"rows": 0}}, OptionError, "positive integer of rows"),
        ({"bound": {"sum": 3}}, OptionError, "positive integer of rows"),
        ({"bound": "3"}, OptionError, "positive integer of rows"),
        (
            {
                "schema": shoal.Schema.from_dict({"attribute": [{"name": "x", "lo": 0, "hi": 9}]}),
                "bound": {"rows": 1},
            },
            OptionError,
            "no unit column",
        ),
        ({"schema": None, "columns": ["x"], "bound": {"rows": 1}}, OptionError, "no unit column"),
    ],
)
def test_a_bound_that_cannot_be_kept_is_refused_in_one_line(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    arguments = {"schema": schema_of(3), "epsilon": 1, **options}
    with pytest.raises(error, match=words) as refused:
        shoal.protect(people(), **arguments)
    assert "\n" not in str(refused.value)


def chosen_of(data: pa.Table, key: bytes) -> list[tuple[str, int]]:
    """The rows of a table that take part with a bound of three."""
    return list(chosen(list(zip(*data.to_pydict().values(), strict=True)), 3, key).elements())


def test_an_engine_uses_the_rows_that_the_key_of_the_ledger_chooses(tmp_path: Any) -> None:
    write(people(), tmp_path / "people.parquet")
    told: dict[str, Any] = {"ledger": str(tmp_path / "ledger.sqlite"), "dataset": "people", "epsilon": 1}
    shoal.publish(tmp_path / "people.parquet", schema_of(3), out=tmp_path / "one", engine="local", **told)
    opened = open_ledger(told["ledger"])
    key = opened.bound_key("people")
    opened.close()
    assert key is not None
    again = shoal.publish(tmp_path / "people.parquet", schema_of(3), out=tmp_path / "two", **told)
    assert again.release.kept is not None
    x = np.array(people()["x"])[again.release.kept]
    assert sorted(x) == sorted(row[1] for row in chosen_of(people(), key))


def test_releases_and_answers_choose_the_same_rows_by_the_key_kept_with_the_ledger(tmp_path: Any) -> None:
    ledger = str(tmp_path / "ledger.sqlite")
    write(people(), tmp_path / "people.csv")
    told: dict[str, Any] = {"ledger": ledger, "dataset": "people", "epsilon": 1}
    first = shoal.publish(tmp_path / "people.csv", schema_of(3), out=tmp_path / "one", **told)
    second = shoal.publish(tmp_path / "people.csv", schema_of(3), out=tmp_path / "two", **told)
    assert first.release.kept is not None
    assert second.release.kept is not None
    assert first.release.kept.tolist() == second.release.kept.tolist()
    opened = open_ledger(ledger)
    key = opened.bound_key("people")
    assert key is not None
    assert opened.bound_key("people", OTHER) == key
    assert opened.bound_key("others") is None
    # an answer counts the rows that the releases used
    write_dataset(
        tmp_path / "people", DatasetSettings(Fraction(2), neighbours="add-remove"), schema_of(3), people()
    )
    served = load_dataset(tmp_path / "people", lambda dataset: opened.bound_key(dataset) or b"")
    kept = np.array([(row + row // 20) % 10 for row in first.release.kept.tolist()])
    assert (
        np.bincount(served.table.positions["x"], minlength=10).tolist()
        == np.bincount(kept, minlength=10).tolist()
    )
    opened.register(served.register())
    opened.close()
    # without a ledger, each release draws a key of its own
    alone = [shoal.protect(people(), schema_of(3), epsilon=1).kept for _ in range(4)]
    assert len({tuple(found.tolist()) for found in alone if found is not None}) > 1


COLUMNS: list[dict[str, Any]] = [
    {"name": "who", "kind": "nominal", "role": "unit", "type": "text", "bound": {"rows": 3}},
    {"name": "x", "lo": 0, "hi": 4},
    {"name": "cost", "lo": 0, "hi": 10, "decimals": 2},
    {"name": "day", "kind": "date", "lo": "2020-01-01", "hi": "2020-01-31"},
    {"name": "name", "kind": "nominal", "role": "identifier", "type": "text"},
    {
        "name": "job",
        "kind": "nominal",
        "values": ["a", "b"],
        "type": "text",
        "na": ["?"],
        "missing": "category",
    },
    {"name": "free", "kind": "nominal", "role": "other"},
    {"name": "band", "lo": 0, "hi": 100},
    {"name": "unread", "lo": 0, "hi": 9, "source": "these records"},
]


def visits(n: int = 120) -> pa.Table:
    """A table with columns of every kind; ids of the unit have leading zeros."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "who": [f"{who:03d}" for who in random.integers(0, 20, n)],
            "x": random.integers(0, 4, n),
            "cost": np.round(random.random(n) * 9, 2),
            "day": [f"2020-01-{day:02d}" for day in random.integers(1, 28, n)],
            "name": [f"n{one}" for one in random.integers(0, 9, n)],
            "job": random.choice(["a", "b", "?"], n),
            "free": random.choice(["u", "v"], n),
            "band": random.integers(0, 100, n),
            "unread": random.integers(0, 9, n),
        }
    )


@pytest.mark.parametrize("steps", [[], [{"recode": "band", "breaks": [-1, 50, 100]}]])
def test_rows_agree_whatever_the_file_the_columns_and_the_options(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, steps: list[Any]
) -> None:
    """Releases and answers of one data set: every table of it is bounded to the same rows."""
    schema = shoal.Schema.from_dict({"attribute": COLUMNS, **({"step": steps} if steps else {})})
    found = []

    def noted(*asked: Any) -> Any:
        found.append(bounded_rows(*asked))
        return found[-1]

    monkeypatch.setattr(description, "bounded_rows", noted)
    monkeypatch.setattr(query_facts, "bounded_rows", noted)
    data = visits()
    for form in ("csv", "parquet"):
        write(data, tmp_path / f"visits.{form}")
    for source in (data, data.to_pandas(), tmp_path / "visits.csv", tmp_path / "visits.parquet"):
        options: list[dict[str, Any]] = [{}, {"columns": ["x", "job"]}, {"domains": {"unread": (0, 20)}}]
        for asked in options:
            table = read_as_asked(source, {"schema": schema, **asked})
            prepare_release(table, schema, "pairs-dp", 1, bound_key=KEY, **asked)
        prepare_queries(source, schema, "add-remove", KEY)
    assert len(found) == 16
    first = found[0]
    assert 0 < first.size < data.num_rows
    assert all(np.array_equal(one, first) for one in found)
    # control: another key chooses other rows
    prepare_queries(data, schema, "add-remove", OTHER)
    assert not np.array_equal(found[-1], first)


def test_a_seed_chooses_the_same_rows_and_stores_no_key(tmp_path: Any) -> None:
    found = [shoal.protect(people(), schema_of(3), epsilon=1, seed=5) for _ in range(2)]
    assert found[0].data.equals(found[1].data)
    ledger = str(tmp_path / "ledger.sqlite")
    shoal.publish(
        people(), schema_of(3), epsilon=1, seed=5, out=tmp_path / "one", ledger=ledger, dataset="people"
    )
    opened = open_ledger(ledger)
    assert opened.bound_key("people") is None
    opened.close()


def test_queries_bound_rows_once_for_all_answers() -> None:
    table = prepare_queries(people(), schema_of(3), "add-remove", KEY)
    assert (table.n, table.facts.rows_per_unit, table.facts.unit) == (60, 3, "value of 'who'")
    query = parse({"kind": "count", "epsilon": 1}, table.facts)
    assert "scale 3" in str(query.offer.noise)
    assert (
        "At most 3 rows of each unit take part, the same for all answers; rows beyond that are left out."
        in (statement(query, table.facts)["conditions"])
    )
    with pytest.raises(OptionError, match="use add-remove"):
        prepare_queries(people(), schema_of(3))
