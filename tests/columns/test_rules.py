"""Rules between columns: sentences, refusals before any charge, and records moved onto them one by one."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import shoal
from shoal import Attribute, OptionError, Rule, Schema
from shoal.cli import run
from shoal.columns.declaration import Declaration
from shoal.columns.description import CodedByRules, coded, describe
from shoal.columns.kinds import day_number
from shoal.columns.rulebook import rows_breaking
from shoal.columns.rules import Derived, Implication, MissingIf, Order, derived_values
from shoal.errors import Problems
from shoal.io import read
from shoal.mechanisms import Rebuilt
from shoal.noise import Seeded
from shoal.release.protection import prepare, published_columns
from tests.conftest import examples

FIRST, LAST = (day_number(text, "a day") for text in ("2020-01-01", "2020-12-31"))


def numeric(name: str, hi: int = 100, **more: Any) -> Attribute:
    return Attribute(name, type="integer", lo=0, hi=hi, source="law", **more)


ATTRIBUTES = (
    numeric("age", role="quasi-identifier"),
    numeric("spouse", missing="category"),
    Attribute("marital", "nominal", type="text", values=("never", "married", "widowed"), source="law"),
    Attribute("size", "ordinal", type="text", ordered=("s", "m", "l"), source="law"),
    numeric("wages"),
    numeric("rents"),
    numeric("total", 200),
    Attribute("start", "date", type="date", lo=FIRST, hi=LAST, source="law"),
    Attribute("end", "date", type="date", lo=FIRST, hi=LAST, source="law"),
)


def schema(*rules: str | Rule, source: str = "law") -> Schema:
    return Schema(
        ATTRIBUTES, rules=tuple(Rule(one, source) if isinstance(one, str) else one for one in rules)
    )


def people(n: int = 60, seed: int = 0) -> pa.Table:
    """Records that break every rule that they can."""
    random = np.random.default_rng(seed)
    spouse = random.integers(0, 101, n)
    return pa.table(
        {
            "age": random.integers(0, 101, n),
            "spouse": pa.array([None if one < 30 else int(one) for one in spouse], pa.int64()),
            "marital": random.choice(["never", "married", "widowed"], n),
            "size": random.choice(["s", "m", "l"], n),
            "wages": random.integers(0, 101, n),
            "rents": random.integers(0, 101, n),
            "total": random.integers(0, 201, n),
            **{
                name: random.integers(int(FIRST), int(LAST) + 1, n).astype("datetime64[D]")
                for name in ("start", "end")
            },
        }
    )


def measured(table: pa.Table, rules: Schema) -> CodedByRules:
    problems = Problems()
    described = describe(
        read(table),
        Declaration.of(rules),
        ("numeric", "ordinal", "nominal", "date"),
        flags=True,
        empty=True,
        problems=problems,
    )
    problems.raise_all()
    found = coded(described)
    assert isinstance(found, CodedByRules)
    return found


ALL = (
    "start <= end",
    'age < 16 -> marital = "never"',
    'spouse missing if marital = "never"',
    "total = wages + rents",
    Rule(
        columns=("marital", "size"),
        allowed=(("never", "s"), ("married", "m"), ("widowed", "l"), ("married", "l")),
        source="law",
    ),
)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("start <= end", Order("start", "end", Fraction(0))),
        ("end > start", Order("start", "end", Fraction(0), strict=True)),
        ("start + 2 <= end <= start + 9", Order("start", "end", Fraction(2), most=Fraction(9))),
        ("2 <= end - start <= 9", Order("start", "end", Fraction(2), most=Fraction(9))),
        ("`the end` - start <= 9", Order("start", "the end", most=Fraction(9))),
    ],
)
def test_orders_are_written_in_several_ways(text: str, meaning: Order) -> None:
    assert Rule(text, "law").meaning == meaning


def test_each_kind_has_its_sentence() -> None:
    assert isinstance(Rule('age < 16 and size != "l" -> marital in ["never"]', "law").meaning, Implication)
    assert isinstance(Rule("spouse missing if age < 16", "law").meaning, MissingIf)
    assert isinstance(Rule("total = (wages + rents) * 1 / 2", "law").meaning, Derived)
    assert Rule(columns=("a", "b"), allowed=(("x", "y"),), source="law").kind == "combinations"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("start ! end", "rule-not-read"),
        ("start <=", "rule-expected"),
        ("start <= end end", "rule-expected"),
        ("age <= 5", "rule-of-one-column"),
        ("2 * age <= wages", "rule-order-form"),
        ("a <= b <= c", "rule-one-pair"),
        ("total = total + 1", "rule-about-itself"),
        ("age + 1 = wages", "rule-derived-form"),
        ('age < 16 -> age = "x"', "of-rule"),
        ("a missing if a > 2", "rule-about-itself"),
    ],
)
def test_a_sentence_that_is_no_rule_says_where(text: str, code: str) -> None:
    with pytest.raises(OptionError) as refused:
        schema(text)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("start <= stop", "rule-unknown-column", "stop"),
        ("age <= end", "rule-order-kinds", None),
        ('age = "x" -> marital = "never"', "rule-compares-text", "age"),
        ('marital < "x" -> age < 3', "rule-compares-names", "marital"),
        ('marital = "nevr" -> age < 3', "rule-unknown-value", "marital"),
        ("age < 3 -> spouse is missing", "rule-then-missing", "spouse"),
        ("total = wages * start", "rule-mixes-units", None),
        ("total = start + wages", "rule-derived-unit", "total"),
        ("marital = age + 1", "rule-derived-kinds", "marital"),
        ("start + 5 <= end <= start + 4", "rule-gaps-empty", None),
    ],
)
def test_a_rule_that_does_not_fit_its_columns_names_its_number(
    text: str, code: str, column: str | None
) -> None:
    with pytest.raises(OptionError) as refused:
        schema("wages <= total", text)
    assert refused.value.code == "of-rule"
    assert refused.value.facts["number"] == 2
    assert refused.value.facts["reason"].code == code
    assert refused.value.column == column


@pytest.mark.parametrize(
    ("rules", "code", "numbers"),
    [
        (("start <= end", "end < start"), "rules-contradict", (1, 2)),
        (("start + 20 <= end", "age <= wages", "end - start <= 10"), "rules-contradict", (1, 3)),
        (('age < 16 -> marital = "never"', 'age < 20 -> marital = "married"'), "rules-contradict", (1, 2)),
        (
            ('age < 9 -> size = "s"', 'age < 9 -> marital = "never"', ALL[4], 'size = "s" -> age > 8'),
            "rules-contradict",
            (1, 4),
        ),
        (("start + 400 <= end",), "rule-never-holds", (1,)),
        (("age > 200 -> wages < 5",), "rule-never-applies", (1,)),
        (("age < 5 -> wages > 200",), "rule-never-holds", (1,)),
        (("total = wages + rents", "total = wages"), "rules-derive-twice", (1, 2)),
        (("total = wages + rents", "wages = total - 1"), "rules-derive-circle", (1, 2)),
        (("age missing if wages > 5",), "rule-cannot-miss", (1,)),
        (("total = wages + spouse",), "rule-part-missing", (1,)),
    ],
)
def test_contradictions_are_refused_before_the_charge(
    rules: tuple[Any, ...], code: str, numbers: tuple[int, ...]
) -> None:
    with pytest.raises(OptionError) as refused:
        prepare(read(people()), schema(*rules), "pairs-dp", epsilon=1)
    found = refused.value.facts
    assert refused.value.code == code
    assert tuple(found[name] for name in ("number", "other") if name in found) == numbers


def test_a_schema_file_holds_its_rules(tmp_path: Path) -> None:
    given = schema(*ALL)
    given.save(tmp_path / "people.toml")
    assert Schema.load(tmp_path / "people.toml").rules == given.rules
    raw = json.loads(json.dumps(given.to_dict(), default=str))
    raw["rule"][1]["keep"] = "start <= stop"
    with pytest.raises(OptionError, match="rule 2: the schema describes no column 'stop'"):
        Schema.from_dict(raw)
    with pytest.raises(OptionError) as refused:
        Schema.from_dict({**raw, "rules": []})
    assert refused.value.code == "rules-are-entries"


def test_a_rule_needs_a_source_and_one_from_the_records_taints() -> None:
    with pytest.raises(OptionError) as refused:
        Rule("start <= end", "hearsay")
    assert refused.value.code == "rule-needs-source"
    found = prepare(read(people()), schema("start <= end", source="these records"), "pairs-dp", epsilon=1)
    plain = prepare(read(people()), schema("start <= end"), "pairs-dp", epsilon=1)
    assert not found.statement.publishable
    assert plain.statement.publishable
    assert [one.facts["rule"] for one in plain.statement.declared if one.code == "rule"] == ["start <= end"]
    assert not [one for one in found.statement.declared if one.code == "rule"]


def test_years_and_months_are_completed_ones() -> None:
    days = {"born": np.array([day_number("2000-02-29", "")] * 3, dtype=np.float64)}
    for unit, until, expected in (
        ("years", "2001-02-28", 0),
        ("years", "2001-03-01", 1),
        ("months", "2000-03-28", 0),
        ("months", "2000-03-29", 1),
    ):
        expression = (unit, ("column", "born"), ("date", day_number(until, "")))
        assert derived_values(expression, days).tolist() == [expected] * 3


# --- records are mapped one by one


def coordinates(table: pa.Table, rules: Schema) -> dict[str, list[Any]]:
    here = measured(table, rules)
    return {
        name: [
            None if gone else position
            for position, gone in zip(
                here.positions(name)[0].tolist(), here.absent(name).tolist(), strict=True
            )
        ]
        for name in here.columns
    }


@pytest.mark.parametrize("seed", range(3))
def test_every_record_is_moved_onto_the_rules_by_itself(seed: int) -> None:
    """Brute force for the sensitivity: removing a record removes its own coordinates and changes no others."""
    table, rules = people(20, seed), schema(*ALL)
    whole = coordinates(table, rules)
    for gone in range(20):
        rest = table.take([row for row in range(20) if row != gone])
        expected = {name: values[:gone] + values[gone + 1 :] for name, values in whole.items()}
        assert coordinates(rest, rules) == expected


def test_a_map_that_looks_at_other_records_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.columns.rulebook import Rulebook

    honest = Rulebook.encoded

    def peeking(self: Rulebook, values: Any) -> Any:
        found = honest(self, values)
        return {name: np.where(np.isnan(own), np.nan, np.roll(own, 1)) for name, own in found.items()}

    monkeypatch.setattr(Rulebook, "encoded", peeking)
    with pytest.raises(AssertionError):
        test_every_record_is_moved_onto_the_rules_by_itself(0)


def test_records_that_satisfy_the_rules_stay_as_they_are() -> None:
    table, rules = people(200), schema(*ALL)
    here = measured(table, rules)
    book = here.book
    assert book is not None
    once = book.decoded(book.encoded(here.values()), np.random.default_rng(0))
    # an exchange needs a violation, and there is none: decoding is the inverse of encoding
    again = book.decoded(book.encoded(once), np.random.default_rng(1))
    assert all(np.array_equal(once[name], again[name], equal_nan=True) for name in once)
    assert not any(book.broken(once).values())


def test_derived_columns_are_not_measured_and_later_ones_are_distances() -> None:
    here = measured(people(), schema(*ALL))
    assert here.columns == ("age", "spouse", "size", "wages", "rents", "start", "end")
    assert (here.lattices["end"].lo, here.lattices["end"].hi) == (0, LAST - FIRST)
    gaps = measured(people(), schema("start + 3 <= end <= start + 10"))
    assert gaps.lattices["end"].hi == 7


def places(table: CodedByRules, name: str) -> Any:
    """Positions of the records, -1 for a missing value."""
    return np.where(table.absent(name), -1, table.positions(name)[0])


@pytest.mark.parametrize("rules", [(one,) for one in ALL] + [ALL], ids=str)
def test_the_coordinates_of_every_record_are_possible(rules: tuple[str | Rule, ...]) -> None:
    """So the cells that rules forbid are empty in every table: zeros that need no noise."""
    table = measured(people(400), schema(*rules))
    for pair in table.bound_pairs:
        own = [places(table, name) for name in pair]
        assert table.possible(pair, own).all()
        if set(pair) != {"wages", "rents"}:
            # any total of two of these is in its range
            assert not table.possible(pair, [own[0], np.roll(own[1], 1)]).all(), pair


def test_rules_bind_the_coordinates_that_decide_their_columns() -> None:
    rules = ("total = wages + rents", "start <= end", "wages < 10 -> age < 50", "total < 5 -> age > 3")
    table = measured(people(), schema(*rules))
    assert {frozenset(pair) for pair in table.bound_pairs} == {
        frozenset(pair) for pair in (("age", "wages"), ("start", "end"), ("wages", "rents"))
    }


def test_rules_of_columns_that_are_not_released_are_noted() -> None:
    found = prepare(read(people()), schema(*ALL), "pairs-dp", epsilon=1, columns=["age", "start", "end"])
    notes = [note for note in found.described.notes if note.code == "rule-not-applied"]
    assert [note.facts["number"] for note in notes] == [2, 3, 4, 5]
    ignored = prepare(read(people()), schema(*ALL), "ranking-dp", epsilon=1, k=5, columns=["age", "wages"])
    assert all(note.code != "rules-not-kept" for note in ignored.described.notes)
    ignored = prepare(
        read(people()), schema(*ALL), "ranking-dp", epsilon=1, k=5, columns=["wages", "rents", "total"]
    )
    assert "rules-not-kept" in {note.code for note in ignored.described.notes}


def test_check_counts_the_rows_that_break_each_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, rules = people(), schema(*ALL)
    late = int((np.array(table["start"].to_pylist()) > np.array(table["end"].to_pylist())).sum())
    found = shoal.check(table, ["age"], schema=rules)
    assert found.rules["start <= end"] == late
    assert set(found.to_dict()["rules"]) == {rule.words for rule in rules.rules}
    assert shoal.check(table.drop(["start"]), ["age"], schema=rules).rules["start <= end"] is None
    pa.parquet.write_table(table, tmp_path / "people.parquet")
    rules.save(tmp_path / "people.toml")
    assert (
        run(
            [
                "check",
                str(tmp_path / "people.parquet"),
                "--schema",
                str(tmp_path / "people.toml"),
                "--quasi",
                "age",
            ]
        )
        == 0
    )
    assert f"rule start <= end: broken in {late} rows." in capsys.readouterr().out


# --- any composition of rules


POOL = (
    *ALL,
    "end - start <= 200",
    "start + 1 <= end",
    "wages <= total",
    "wages < rents",
    "age <= total <= age + 150",
    'marital = "never" -> size in ["s", "m"]',
    'age >= 60 and marital = "widowed" -> wages <= 50',
    'size != "l" -> age > 3',
    "spouse missing if age < 18",
    "spouse = age + wages / 2",
    "spouse <= age",
    'start > 2020-06-30 -> marital != "widowed"',
    Rule(
        columns=("size", "marital"), allowed=(("s", "never"), ("m", "never"), ("l", "widowed")), source="law"
    ),
)


@pytest.mark.parametrize("seed", range(examples(12)))
def test_any_composition_of_rules_holds_in_every_row(seed: int) -> None:
    """Rows drawn from anything at all: positions of the coordinates, and whether they are missing, are uniform."""
    random = np.random.default_rng(seed)
    chosen = [POOL[place] for place in random.permutation(len(POOL))[: random.integers(2, 7)]]
    try:
        rules = schema(*chosen)
        here = measured(people(5), rules)
    except OptionError as error:
        refused: OptionError | None = error
    else:
        refused = None
    if refused is not None:
        known = {"rules-contradict", "rules-contradict-together", "rule-never-applies", "rule-part-missing"}
        assert refused.code in known | {"rules-derive-twice", "rules-derive-circle"}
        return
    assert here.book is not None
    assert here.whole is not None
    drawn = {}
    for name in here.columns:
        lattice, tree = here.lattices[name], here.tree(name)
        places = random.integers(0, lattice.steps + 1, 3000)
        drawn[name] = (
            lattice.values(places) if tree is None else np.asarray(tree.domain)[places].astype(float)
        )
        if name in here.flagged:
            drawn[name][random.random(3000) < 0.3] = np.nan
    made = here.decoded(drawn, random)
    assert list(made) == list(here.whole.columns)
    released = published_columns(
        shoal.PairsDP(epsilon=1), here.whole, Rebuilt(made, [], aligned=False), Seeded(1)
    )
    found = rows_breaking(read(here.whole.released_frame(released, generalise=False)), rules)
    assert set(found.values()) == {0}, found
