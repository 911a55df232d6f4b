"""Synthetic units of several rows: measured tables change with one unit as stated, and rows belong together."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.program import app
from shoal.columns import Described
from shoal.errors import OptionError, ShoalError
from shoal.io import read
from shoal.mechanisms import divided
from shoal.mechanisms.divided import (
    Chains,
    chains_of,
    column_table,
    copies_of,
    first_table,
    next_table,
)
from shoal.privacy.accountant import Accountant, Currency
from shoal.release.protection import carry_out, prepare
from tests.privacy.accounting.accounting import accounts, concentrated, total
from tests.privacy.accounting.test_accounting import ROOM
from tests.privacy.accounting.transcript import recording, replaying

METHODS = ("pairs-dp", "tree-dp")
every_method = pytest.mark.parametrize("method", METHODS)
# a model of all pairs takes its time
tree_first = pytest.mark.parametrize("method", [pytest.param("pairs-dp", marks=pytest.mark.slow), "tree-dp"])
MOST = 4


def schema(most: int = MOST, **unit: Any) -> shoal.Schema:
    own = {"name": "home", "kind": "nominal", "role": "unit", "type": "integer", "max_rows": most, **unit}
    columns = [
        {"name": "region", "kind": "nominal", "values": ["n", "s"]},
        {"name": "age", "lo": 0, "hi": 3},
        {"name": "works", "kind": "nominal", "values": ["no", "yes"]},
    ]
    return shoal.Schema.from_dict({"attribute": [{k: v for k, v in own.items() if v is not None}, *columns]})


def table(rows: list[tuple[int, str, int, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["home", "region", "age", "works"]).astype(
        {"home": "int64", "age": "int64"}
    )


def prepared(records: list[tuple[int, str, int, str]], method: str = "tree-dp", **options: Any) -> Any:
    settings = {
        "epsilon": 6,
        "neighbours": "add-remove",
        "unit_columns": ["region"],
        "unit_order": "age",
        **options,
    }
    most = settings.pop("most", MOST)
    return prepare(read(table(records)), schema(most), method, **settings)


OTHERS = [(1, "n", 0, "no"), (1, "n", 2, "yes"), (2, "s", 1, "no"), (1, "s", 2, "yes")]


def records(method: Any, described: Described, make: Any) -> Counter[tuple[int, ...]]:
    """The records of a measured table as a multiset."""
    made = make(method, described, chains_of(method, described, 7))
    columns = [made.positions(name)[0].tolist() for name in made.columns]
    return Counter(zip(*columns, strict=True))


def changed(first: Counter[tuple[int, ...]], other: Counter[tuple[int, ...]]) -> int:
    return sum(((first - other) + (other - first)).values())


def every_unit(most: int) -> list[list[tuple[int, str, int, str]]]:
    """All units of at most so many rows with values from a small set, equal ones and different attributes included."""
    rows = [("n", 0, "no"), ("n", 1, "yes"), ("s", 1, "no")]
    contents = [
        chosen
        for number in range(1, most + 1)
        for chosen in itertools.combinations_with_replacement(rows, number)
    ]
    return [[(9 + place, *one) for one in chosen] for place, chosen in enumerate(contents)]


def with_rows(made: Any, kept: list[int]) -> tuple[Any, Described]:
    """The method, and these rows of the table in this order."""
    return made.method, replace(made.described, kept=np.array(kept))


@pytest.mark.parametrize("order", ["age", None])
def test_one_unit_changes_each_measured_table_by_its_stated_number_of_records(order: str | None) -> None:
    units = every_unit(MOST)
    made = prepared([*OTHERS, *itertools.chain(*units)], unit_order=order)
    found: dict[str, set[int]] = {"first": set(), "next": set(), "age": set()}
    start = len(OTHERS)
    for unit in units:
        # the unit between the rows of the others: positions do not matter
        with_it = [0, *range(start, start + len(unit)), 1, 2, 3]
        start += len(unit)
        for name, make in (("first", first_table), ("next", next_table), ("age", _of_age)):
            known = (records(*with_rows(made, kept), make) for kept in ([0, 1, 2, 3], with_it))
            found[name].add(changed(*known))
    assert found["first"] == {1}
    assert found["next"] == {0, copies_of(MOST)}
    assert found["age"] == {1, 2, 3, 4}


def _of_age(method: Any, described: Described, chains: Chains) -> Any:
    return column_table("age", method, described, chains)


@pytest.mark.parametrize("order", ["age", None])
def test_measured_tables_do_not_depend_on_the_order_of_the_file(order: str | None) -> None:
    rows = [*OTHERS, *every_unit(MOST)[-9]]
    made = prepared(rows, unit_order=order)
    random = np.random.default_rng(1)
    for _ in range(20):
        other = with_rows(made, random.permutation(len(rows)).tolist())
        for make in (first_table, next_table):
            assert records(made.method, made.described, make) == records(*other, make)


def by_position(method: Any, described: Described, key: int) -> Chains:
    """A planted fault: rows in the order of the file, cut at a row number that other units move."""
    made = divided.chains_of(method, described, key)
    rows = np.concatenate([np.sort(one) for one in np.split(made.rows, made.starts[1:-1])])
    return replace(made, rows=np.where(np.arange(rows.size) % 2 == rows.size % 2, rows, rows[::-1]))


def test_rows_taken_by_their_position_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "chains_of", by_position)
    with pytest.raises(AssertionError):
        test_one_unit_changes_each_measured_table_by_its_stated_number_of_records("age")


def test_unit_columns_measured_in_every_row_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def every_row(method: Any, described: Described, chains: Chains) -> Any:
        return first_table(
            method, described, Chains(chains.rows, np.arange(chains.rows.size + 1, dtype=np.int64))
        )

    before, after = prepared(OTHERS), prepared([*OTHERS, *every_unit(MOST)[-1]])
    known = (records(one.method, one.described, every_row) for one in (before, after))
    assert changed(*known) == MOST
    monkeypatch.setattr(divided, "first_table", every_row)
    assert max(losses("tree-dp")) > 1


def test_pairs_of_rows_share_the_records_of_a_unit_evenly() -> None:
    for most in range(2, 16):
        copies = copies_of(most)
        for pairs in range(1, most):
            counts = np.bincount(np.arange(copies) * pairs // copies, minlength=pairs)
            assert counts.sum() == copies
            assert counts.max() - counts.min() <= 1
            assert most > 13 or copies % pairs == 0 or most > 4


# --- accounting


def homes(n: int = 9) -> list[tuple[int, str, int, str]]:
    random = np.random.default_rng(3)
    return [
        (home, "n" if home % 2 else "s", int(random.integers(0, 4)), "yes" if random.random() < 0.5 else "no")
        for home in range(n)
        for _ in range(1 + home % 3)
    ]


ALIKE = [(99, "n", 3, "yes")] * 3


def losses(method: str, **options: Any) -> tuple[Fraction, Fraction]:
    """The largest loss of a whole unit over the stated ε, and the largest bound on it."""

    def run(rows: Any) -> shoal.Release:
        return carry_out(prepared(rows, method, most=3, **options))

    worst, most = Fraction(0), Fraction(0)
    for found in accounts(run, [*homes(), *ALIKE], homes(), seed=3):
        stated = found.results[0].statement.epsilon
        assert stated == options.get("epsilon", 6)
        worst, most = max(worst, found.lost / stated), max(most, found.bound / stated)
    return worst, most


@tree_first
def test_a_unit_loses_at_most_the_stated_epsilon(method: str) -> None:
    lost, most = losses(method)
    assert lost <= 1 + ROOM
    assert Fraction(1, 2) <= most <= 1


def test_a_unit_loses_at_most_rho() -> None:
    def run(rows: Any) -> shoal.Release:
        return carry_out(prepared(rows, "pairs-dp", most=3, delta="0.000001"))

    with recording(seed=2) as mine:
        release = run([*homes(), *ALIKE])
    with replaying(mine.draws) as other:
        run(homes())
    rho = release.statement.rho
    assert rho is not None
    assert rho / 2 <= total(mine.draws, other.draws, concentrated) <= rho


def test_records_of_a_unit_that_are_charged_as_one_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Accountant.of_records
    monkeypatch.setattr(Accountant, "of_records", lambda self, purpose, records: whole(self, purpose, 1))
    monkeypatch.setattr(divided, "row_budget", lambda amount, rows, currency: amount)
    assert max(losses("tree-dp")) > 1


def test_all_of_the_budget_is_reserved_and_charged_for_a_unit() -> None:
    made = prepared(homes(), "tree-dp", most=3)
    assert made.statement.epsilon == 6
    assert made.method.epsilon == 6
    assert sum(made.plan.spending.values()) == 6
    account = made.account()
    made.method.run(made.described, made.plan, account, lambda *_: None, None)
    assert account.spent() == 6
    assert made.method.settings()["epsilon"] == 6


# --- released rows


def survey(n: int = 300) -> pd.DataFrame:
    """Homes of one to four: ages rise, and of two workers in a row none are in the south."""
    random = np.random.default_rng(5)
    found = []
    for home in range(n):
        region = "n" if random.random() < 0.6 else "s"
        ages = np.sort(random.integers(0, 4, 1 + int(random.integers(0, 4))))
        found += [(home, region, int(age), "yes" if (region == "n") == (age > 1) else "no") for age in ages]
    return table(found).sample(frac=1, random_state=1)


@pytest.fixture(scope="module", params=[pytest.param("pairs-dp", marks=pytest.mark.slow), "tree-dp"])
def release(request: pytest.FixtureRequest) -> shoal.Release:
    return shoal.protect(
        survey(),
        schema(),
        method=request.param,
        epsilon=60,
        neighbours="add-remove",
        unit_columns=["region"],
        unit_order="age",
    )


def test_attributes_of_a_unit_are_equal_in_all_its_rows(release: shoal.Release) -> None:
    data = release.data
    assert list(data.columns) == ["home", "region", "age", "works"]
    assert data.groupby("home")["region"].nunique().max() == 1
    assert sorted(data["home"].unique()) == list(range(1, data["home"].nunique() + 1))
    assert data["home"].value_counts().max() <= MOST


def test_rows_of_a_unit_are_together_and_in_their_order(release: shoal.Release) -> None:
    data = release.data
    starts = data["home"] != data["home"].shift()
    assert int(starts.sum()) == data["home"].nunique()
    assert all(one["age"].is_monotonic_increasing for _, one in data.groupby("home"))


def test_numbers_of_rows_and_relations_are_kept(release: shoal.Release) -> None:
    before, after = survey().sort_values(["home", "age"]), release.data
    sizes = [one["home"].value_counts().value_counts(normalize=True) for one in (before, after)]
    assert float(sizes[0].sub(sizes[1], fill_value=0).abs().max()) < 0.1
    assert abs(before["age"].mean() - after["age"].mean()) < 0.15

    def lagged(data: pd.DataFrame) -> float:
        behind = data.shift(1)
        same = data["home"] == behind["home"]
        return float(np.corrcoef(data["age"][same], behind["age"][same])[0, 1])

    assert abs(lagged(before) - lagged(after)) < 0.2
    shares = [(one["works"] == "yes").groupby(one["region"]).mean() for one in (before, after)]
    assert float((shares[0] - shares[1]).abs().max()) < 0.15


def test_the_statement_says_how_units_are_measured(release: shoal.Release) -> None:
    statement = release.statement
    codes = [one.code for one in statement.terms.conditions]
    assert {"units-measured", "unit-columns-of-first-row", "unit-order-by-column", "units-are-no-sample"} <= {
        *codes
    }
    assert "epsilon-of-a-row" not in codes
    assert statement.epsilon == 60
    assert statement.model == "dp"
    assert str(statement.adjacency) == "add-remove"
    assert release.measurements is None
    assert not [note for note in release.messages if note.facts.get("column") == "home"]
    assert release.internal["unit_columns_that_differ"] == {"region": 0}


def test_without_an_order_the_statement_says_so_and_differing_units_are_told_inside_only() -> None:
    rows = [*homes(), (0, "s", 1, "no"), (1, "s", 3, "no"), (1, "n", 3, "no")]
    found = carry_out(prepared(rows, unit_order=None))
    assert "unit-order-random" in [one.code for one in found.statement.terms.conditions]
    assert found.internal["unit_columns_that_differ"] == {"region": 1}
    assert found.internal["units"] == 9


def test_a_table_without_rows_is_released_like_any_other() -> None:
    found = carry_out(prepared([], "tree-dp"))
    assert found.data["home"].nunique() >= 1


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"neighbours": "replace-one"}, "unit-columns-need-add-remove"),
    ({"unit_columns": None}, "unit-order-needs-unit-columns"),
    ({"unit_columns": ["region", "age", "works"], "unit_order": None}, "unit-columns-leave-no-column"),
    ({"unit_columns": ["regoin"]}, "setting-names-column-not-released"),
    ({"unit_order": "region"}, "unit-order-not-a-row-column"),
    ({"unit_order": "works"}, "unit-order-is-nominal"),
    ({"rows": 20}, "unit-columns-without"),
    ({"strata": ["region"], "unit_columns": ["works"]}, "unit-columns-without"),
    ({"most": 1}, "unit-columns-need-rows"),
    ({"epsilon": "0.0001"}, "mechanism-epsilon-too-small-draw-number-rows"),
]


@pytest.mark.parametrize(("options", "code"), REFUSED, ids=lambda one: one if isinstance(one, str) else "")
def test_what_is_not_supported_is_refused(options: dict[str, Any], code: str) -> None:
    rows = OTHERS[1:3] if "most" in options else OTHERS
    with pytest.raises(ShoalError) as caught:
        prepared(rows, **options)
    assert caught.value.code == code


def test_a_table_without_a_unit_and_rules_are_refused() -> None:
    with pytest.raises(OptionError, match="role unit"):
        shoal.protect(
            table(OTHERS).drop(columns="home"),
            method="tree-dp",
            epsilon=1,
            neighbours="add-remove",
            unit_columns=["region"],
            domains={"region": ["n", "s"], "age": (0, 3), "works": ["no", "yes"]},
        )
    raw = schema().to_dict()
    raw["rule"] = [{"keep": "age <= age2", "source": "law"}]
    raw["attribute"].append({"name": "age2", "lo": 0, "hi": 3})
    with pytest.raises(OptionError, match="rules"):
        shoal.protect(
            table(OTHERS).assign(age2=3),
            shoal.Schema.from_dict(raw),
            method="tree-dp",
            epsilon=1,
            neighbours="add-remove",
            unit_columns=["region"],
        )


def test_models_audits_and_engines_are_refused(tmp_path: Path) -> None:
    numbers = table(OTHERS)[["home", "age"]].assign(income=3)
    with pytest.raises(OptionError) as caught:
        shoal.audit(
            numbers,
            shoal.Schema.from_dict(
                {
                    "attribute": [
                        {"name": "home", "role": "unit", "type": "integer", "max_rows": 3},
                        {"name": "age", "lo": 0, "hi": 3},
                        {"name": "income", "lo": 0, "hi": 3},
                    ]
                }
            ),
            method="tree-dp",
            epsilon=1,
            neighbours="add-remove",
            unit_columns=["income"],
        )
    assert caught.value.code == "audit-has-no-units"
    method = shoal.TreeDP(epsilon=1, neighbours="add-remove", unit_columns=["region"])
    with pytest.raises(OptionError) as caught:
        method.fit(table(OTHERS), schema())
    assert caught.value.code == "model-has-no-units"
    table(OTHERS).to_parquet(tmp_path / "homes.parquet")
    with pytest.raises(ShoalError, match="unit_columns"):
        shoal.publish(
            tmp_path / "homes.parquet", schema(), method=method, out=tmp_path / "out", engine="local"
        )
    assert not (tmp_path / "out").exists()


def cli(command: list[Any]) -> str:
    done = CliRunner().invoke(app, [str(one) for one in command])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_bundle_is_written_read_and_released_again_by_its_recipe(tmp_path: Path) -> None:
    data, declared = tmp_path / "homes.csv", tmp_path / "homes.toml"
    survey(60).to_csv(data, index=False)
    schema().save(declared)
    options = ["--unit-columns", "region", "--unit-order", "age", "--neighbours", "add-remove"]
    asked = ["protect", data, "--schema", declared, "--method", "tree-dp", "--epsilon", "2", *options]
    dry = cli([*asked, "--dry-run"])
    assert "pairs of consecutive rows" in dry
    cli([*asked, "--out", tmp_path / "out"])
    bundle = shoal.Bundle.load(tmp_path / "out")
    assert bundle.method.unit_columns == ("region",)
    assert bundle.method.unit_order == "age"
    assert bundle.method.settings()["epsilon"] == 2
    assert bundle.data.to_pandas().groupby("home")["region"].nunique().max() == 1
    cli(["protect", data, "--config", tmp_path / "out" / "method.toml", "--out", tmp_path / "again"])
    assert (tmp_path / "again" / "method.toml").read_text() == (tmp_path / "out" / "method.toml").read_text()
    with pytest.raises(OptionError) as caught:
        shoal.intervals(bundle, "mean(age)")
    assert caught.value.code == "no-intervals-for-units"


@pytest.mark.slow
def test_a_dry_run_estimates_the_time_of_pairs_and_writes_nothing(tmp_path: Path) -> None:
    data, declared = tmp_path / "homes.csv", tmp_path / "homes.toml"
    survey(60).to_csv(data, index=False)
    schema().save(declared)
    asked = ["protect", data, "--schema", declared, "--epsilon", "2", "--unit-columns", "region", "--dry-run"]
    assert "pairs of consecutive rows" in cli(asked)


def test_a_part_of_a_method_has_its_part_of_the_budget() -> None:
    whole = shoal.PairsDP(epsilon=2, unit_columns=["region"]).for_units(4)
    part = whole.for_part(Fraction(1, 8))
    assert (part.epsilon, part.unit_columns, part.unit_rows) == (Fraction(1, 4), None, 1)
    loose = shoal.PairsDP(epsilon=2, delta="0.000001", unit_columns=["region"]).for_units(4)
    assert loose.rho is not None
    assert loose.for_part(Fraction(1, 8)).rho == loose.rho / 8


def test_a_records_account_is_charged_with_the_price_of_its_unit() -> None:
    from shoal.noise import source

    for currency, price in ((Currency.EPSILON, Fraction(1, 3)), (Currency.RHO, Fraction(1, 9))):
        account = Accountant.of({"all": Fraction(1)}, Fraction(1), source(1), currency=currency)
        inside = account.of_records("all", 3)
        assert inside.reserved == {"all": price}
        assert account.spent() == 1
