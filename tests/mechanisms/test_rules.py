"""Synthetic rows satisfy the rules of their schema, in every row, and the budget pays for what is measured."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import shoal
from shoal import Attribute, OptionError, Rule, Schema
from shoal.auditing.trial import make_stage
from shoal.cli import run
from shoal.columns import description
from shoal.columns.description import CodedByRules, coded
from shoal.columns.kinds import day_number
from shoal.columns.rulebook import Rulebook, _Step, rows_breaking
from shoal.io import read
from shoal.mechanisms.pairs import mechanism
from shoal.mechanisms.pairs.budget import ContrastGroup, MeasurementShape
from shoal.mechanisms.pairs.distributions import Zeros, drawn_tables, points
from shoal.mechanisms.pairs.measure_one import ABSENT, Marginal
from shoal.mechanisms.pairs.measure_pairs import PairCounts, group_sums
from shoal.mechanisms.pairs.mechanism import pair_positions, zeros_of
from shoal.mechanisms.pairs.tables import ContrastBlock, pair_tables
from shoal.mechanisms.rules import Bins, changes_of_rules, possible_cells
from shoal.mechanisms.tree.intervals import CutIntervals, Level, consistent_counts
from shoal.mechanisms.tree.mechanism import possible_leaves
from shoal.mechanisms.tree.sample import grow
from shoal.noise import Seeded
from shoal.release.forecast import rule_effects
from shoal.release.protection import Preparation, prepare
from shoal.release.rehearsal import made_up_people
from tests.privacy.accounting import accounting
from tests.privacy.accounting.noise import DivergenceError
from tests.privacy.accounting.transcript import recording, replaying
from tools.public_data import data_folder

METHODS = ("pairs-dp", "tree-dp")
# both share the code of rules; fitting the model of pairs takes seconds
EITHER = (pytest.param("pairs-dp", marks=pytest.mark.slow), "tree-dp")
FIRST, LAST = (day_number(text, "a day") for text in ("2021-01-01", "2023-12-31"))
BORN = day_number("1930-01-01", "a day")
REGIONS = {"north": ("n1", "n2"), "south": ("s1", "s2", "s3"), "west": ("w1",)}
DISTRICTS = tuple((region, one) for region, some in REGIONS.items() for one in some)
KINDS: dict[str, Rule] = {
    "order": Rule("admission + 1 <= discharge <= admission + 90", "law"),
    "implication": Rule('age < 16 -> marital = "never"', "law"),
    "derived": Rule("age = years(born, 2024-01-01)", "law"),
    "missing-if": Rule('spouse missing if marital = "never"', "law"),
    "combinations": Rule(columns=("region", "district"), allowed=DISTRICTS, source="law"),
}
SETS = {
    **{kind: (kind,) for kind in KINDS},
    "three": ("order", "derived", "implication"),
    "all": tuple(KINDS),
}


def number(name: str, hi: int, **more: Any) -> Attribute:
    return Attribute(name, type="integer", lo=0, hi=hi, source="law", **more)


def day(name: str, lo: Fraction) -> Attribute:
    return Attribute(name, "date", type="date", lo=lo, hi=LAST, source="law")


ATTRIBUTES = (
    day("born", BORN),
    number("age", 100),
    Attribute("marital", "nominal", type="text", values=("never", "married", "widowed"), source="law"),
    number("spouse", 100, missing="category"),
    day("admission", FIRST),
    day("discharge", FIRST),
    Attribute("region", "nominal", "quasi-identifier", type="text", values=tuple(REGIONS), source="law"),
    Attribute("district", "nominal", type="text", values=tuple(d for _, d in DISTRICTS), source="law"),
    number("income", 1000),
)


def schema(kinds: Sequence[str] = ()) -> Schema:
    return Schema(ATTRIBUTES, rules=tuple(KINDS[kind] for kind in kinds))


def hospital(n: int, seed: int = 0) -> pd.DataFrame:
    """Patients who satisfy every rule."""
    random = np.random.default_rng(seed)
    born = random.integers(int(BORN), int(LAST) - 400, n)
    years = (np.datetime64("2024-01-01") - born.astype("datetime64[D]")).astype(int) / 365.2425
    age = np.floor(years + 1e-9).astype(int)
    for change in (-1, 1):
        # completed years
        birthday = [
            np.datetime64(
                f"{int(str(one)[:4]) + years + (change > 0)}{str(one)[4:].replace('02-29', '03-01')}"
            )
            for one, years in zip(born.astype("datetime64[D]"), age.tolist(), strict=True)
        ]
        late = np.array(birthday) > np.datetime64("2024-01-01")
        age = age - 1 * late if change < 0 else age + 1 * ~late
    marital = np.where(
        age < 16, "never", random.choice(["never", "married", "widowed"], n, p=[0.3, 0.5, 0.2])
    )
    spouse = np.clip(age + random.normal(0, 5, n), 16, 100).round()
    admission = random.integers(int(FIRST), int(LAST) - 95, n)
    stay = np.clip(random.geometric(0.2, n), 1, 90)
    region = random.choice(list(REGIONS), n, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {
            "born": born.astype("datetime64[D]").astype("datetime64[s]"),
            "age": age,
            "marital": marital,
            "spouse": pd.array(
                [None if m == "never" else int(s) for m, s in zip(marital, spouse, strict=True)], "Int64"
            ),
            "admission": admission.astype("datetime64[D]").astype("datetime64[s]"),
            "discharge": (admission + stay).astype("datetime64[D]").astype("datetime64[s]"),
            "region": region,
            "district": [random.choice(REGIONS[one]) for one in region],
            "income": np.clip(10 * age + random.normal(0, 100, n), 0, 1000).astype(int),
        }
    )


def as_pandas(data: Any) -> pd.DataFrame:
    """A loaded model draws tables of pyarrow."""
    found: pd.DataFrame = nw.from_native(data).to_pandas()
    return found


def violations(data: pd.DataFrame) -> dict[str, int]:
    """Rows that break each rule, counted without Shoal."""
    born = data["born"].astype("datetime64[s]")
    stay = (data["discharge"].astype("datetime64[s]") - data["admission"].astype("datetime64[s]")).dt.days
    had = (born.dt.month == 1) & (born.dt.day == 1)
    age = 2024 - born.dt.year - np.where(had, 0, 1)
    pairs = set(zip(data["region"].astype(str), data["district"].astype(str), strict=True))
    marital = data["marital"].astype(str)
    return {
        "order": int(((stay < 1) | (stay > 90)).sum()),
        "implication": int(((data["age"].astype(int) < 16) & (marital != "never")).sum()),
        "derived": int((age != data["age"].astype(int)).sum()),
        "missing-if": int(((marital == "never") & data["spouse"].notna()).sum()),
        "combinations": len(pairs - set(DISTRICTS)),
    }


def released(method: str, kinds: Sequence[str], n: int = 500, **options: Any) -> pd.DataFrame:
    made = shoal.protect(hospital(n), schema(kinds), method=method, epsilon=1, seed=5, **options)
    found: pd.DataFrame = made.data
    return found


def test_the_patients_satisfy_the_rules() -> None:
    assert not any(violations(hospital(500)).values())


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("pairs-dp", "three"),
        ("tree-dp", "all"),
        ("tree-dp", "three"),
        pytest.param("pairs-dp", "all", marks=pytest.mark.slow),
    ],
)
def test_no_row_breaks_a_rule(method: str, name: str) -> None:
    data = released(method, SETS[name], neighbours="add-remove", rows=2000)
    assert len(data) == 2000
    found = violations(data)
    assert not any(found[kind] for kind in SETS[name]), found


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SETS)
def test_no_row_of_a_hundred_thousand_breaks_a_rule(method: str, name: str) -> None:
    data = released(method, SETS[name], 2000, neighbours="add-remove", rows=100_000)
    assert len(data) == 100_000
    found = violations(data)
    assert not any(found[kind] for kind in SETS[name]), found


@pytest.mark.parametrize("method", EITHER)
def test_rows_break_the_rules_without_them(method: str) -> None:
    """The test above can fail."""
    found = violations(released(method, (), neighbours="add-remove", rows=1000))
    assert all(found.values()), found


@pytest.mark.parametrize("method", EITHER)
def test_rows_break_the_rules_where_the_drawing_forgets_them(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(self: Rulebook, values: Any, random: Any) -> dict[str, Any]:
        return {name: np.array(own) for name, own in values.items()} | {"age": np.zeros(len(values["born"]))}

    monkeypatch.setattr(Rulebook, "_settled", forgetful)
    monkeypatch.setattr(
        Rulebook, "encoded", lambda self, values: {name: values[name] for name in self.measured}
    )
    found = violations(released(method, ("derived", "implication"), neighbours="add-remove", rows=1000))
    assert found["derived"]
    assert found["implication"]


@pytest.mark.parametrize("method", EITHER)
def test_records_that_break_rules_change_no_type_and_no_statement(method: str) -> None:
    honest = hospital(300)
    broken = honest.assign(
        discharge=honest["admission"], age=50, marital=honest["marital"].to_numpy()[::-1], region="north"
    )
    made = [
        shoal.protect(
            data, schema(tuple(KINDS)), method=method, epsilon=1, seed=3, neighbours="add-remove", rows=300
        )
        for data in (honest, broken)
    ]
    assert made[0].statement.to_dict() == made[1].statement.to_dict()
    assert list(made[0].data.dtypes) == list(made[1].data.dtypes)
    assert not any(made[0].internal["rules_broken"].values())
    assert made[1].internal["rules_broken"][KINDS["order"].words] == 300
    assert not any(violations(made[1].data).values())


def test_a_bundle_holds_the_rules_and_can_be_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hospital(200).to_csv(tmp_path / "people.csv", index=False)
    schema(tuple(KINDS)).save(tmp_path / "people.toml")
    paths = [str(tmp_path / name) for name in ("people.csv", "people.toml", "out", "again", "internal.html")]
    data, rules, out, again, inside = paths
    settings = ["--method", "tree-dp", "--epsilon", "1"]
    assert run(["protect", data, "--schema", rules, *settings, "--out", out, "--internal", inside]) == 0
    found = shoal.Bundle.load(out)
    assert found.schema.rules == schema(tuple(KINDS)).rules
    assert "admission + 1" in Path(out, "report.html").read_text("utf-8")
    assert "Records that break the rule spouse missing" in Path(inside).read_text("utf-8")
    assert "Records that break" not in Path(out, "report.html").read_text("utf-8")
    assert run(["redo", str(Path(out, "log.toml")), data, "--out", again]) == 0
    for folder in (out, again):
        capsys.readouterr()
        assert run(["check", folder, "--schema", rules, "--quasi", "region"]) == 0
        assert capsys.readouterr().out.count("broken in 0 rows") == len(KINDS)


def test_a_dry_run_says_what_rules_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hospital(100).to_csv(tmp_path / "people.csv", index=False)
    schema(tuple(KINDS)).save(tmp_path / "people.toml")
    given = [
        "protect",
        str(tmp_path / "people.csv"),
        "--schema",
        str(tmp_path / "people.toml"),
        "--epsilon",
        "1",
    ]
    assert run([*given, "--method", "tree-dp", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "rule 3: 'age' is computed from born, and not measured." in shown
    assert "bounds marital and spouse together" in shown
    assert "7 columns share the budget instead of 9: age, region need none." in shown
    planned = prepared("pairs-dp", tuple(KINDS), hospital(1000), neighbours="replace-one")
    gains = [
        said
        for said in rule_effects(planned.method, planned.described, planned.plan)
        if said.code == "rule-gain"
    ]
    assert [said.facts["column"] for said in gains] == ["income"]
    assert gains[0].facts["now"] < gains[0].facts["before"]


# --- the budget


def prepared(method: str, kinds: Sequence[str], data: pd.DataFrame, **options: Any) -> Preparation:
    return prepare(read(data), schema(kinds), method, epsilon=1, **options)


@pytest.mark.parametrize("method", METHODS)
def test_derived_columns_leave_their_budget_to_the_others(method: str) -> None:
    data = hospital(400)
    ruled, free = (prepared(method, kinds, data, neighbours="replace-one") for kinds in (tuple(KINDS), ()))
    assert set(free.plan.shares) - set(ruled.plan.shares) == {"age", "region"}
    assert sum(ruled.plan.spending.values()) == sum(free.plan.spending.values()) == 1
    assert all(ruled.plan.shares[name] > free.plan.shares[name] for name in ruled.plan.shares)
    account = ruled.account()
    ruled.method.run(ruled.described, ruled.plan, account, lambda *_: None)
    assert account.spent() == 1
    assert account.unspent() == {}


@pytest.mark.parametrize("method", METHODS)
def test_a_change_in_one_column_costs_what_its_rules_measure(method: str) -> None:
    data = hospital(400)
    ruled = prepared(method, ("order", "derived"), data, neighbours="replace-one")
    measured = [name for name in data if name != "age"]
    free = prepared(method, (), data, neighbours="replace-one", columns=measured)
    alone, costs = free.plan.stated, ruled.plan.stated
    assert costs["admission"] == costs["discharge"] == min(alone["admission"] + alone["discharge"], 1)
    assert costs["born"] == alone["born"]
    assert costs["income"] == alone["income"]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("method", EITHER)
def test_neighbours_and_one_transcript_give_one_release(method: str, neighbours: str) -> None:
    """A record that breaks every rule is added, or takes the place of another: the loss is at most ε."""
    data = hospital(40).sort_values("income", ignore_index=True)
    odd = data.iloc[[0]].assign(
        born=data["born"].iloc[-1],
        income=1000,
        age=99,
        marital="married",
        admission=data["discharge"].max(),
        discharge=data["admission"].min(),
        district="w1",
    )
    kept = data if neighbours == "add-remove" else data.iloc[1:]
    made, numbers, draws = [], [], []
    for table in (data, pd.concat([kept, odd], ignore_index=True)):
        with recording(1) if not draws else replaying(draws[0]) as found:
            given = shoal.protect(
                table, schema(tuple(KINDS)), method=method, epsilon=2, neighbours=neighbours
            )
        made.append(given.data)
        numbers.append(given.measurements)
        draws.append(found.draws)
    pd.testing.assert_frame_equal(*made)
    assert numbers[0] == numbers[1] is not None
    assert any(mine.private != other.private for mine, other in zip(*draws, strict=True))
    assert accounting.loss(*draws) <= 2
    assert accounting.loss(draws[1], draws[0]) <= 2


def test_a_release_of_groups_of_values_cannot_keep_rules() -> None:
    with pytest.raises(OptionError) as refused:
        prepare(read(hospital(50)), schema(("implication",)), "tree-dp", epsilon=1, generalise=True)
    assert refused.value.code == "rules-need-values"


# --- what is gained, and what is lost


def stays(data: pd.DataFrame) -> np.ndarray[Any, Any]:
    apart = data["discharge"].astype("datetime64[s]") - data["admission"].astype("datetime64[s]")
    return np.sort(apart.dt.days.to_numpy().astype(float))


def distance(mine: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """The mean distance of the quantiles."""
    levels = np.linspace(0.01, 0.99, 99)
    return float(np.abs(np.quantile(mine, levels) - np.quantile(other, levels)).mean())


@pytest.mark.parametrize("method", EITHER)
def test_an_order_at_least_halves_the_error_of_the_difference(method: str) -> None:
    exact = stays(hospital(500))
    ruled, free = (stays(released(method, kinds)) for kinds in (("order",), ()))
    assert distance(exact, ruled) < distance(exact, free) / 2


@pytest.mark.slow
def test_exchanges_keep_the_distribution_of_a_column() -> None:
    """A repair that only overwrites would add all violating rows to "never"."""
    shares = {}
    for kinds in (("implication",), ()):
        data = released("pairs-dp", kinds, 2000)
        shares[kinds] = data["marital"].astype(str).value_counts(normalize=True)
    assert (shares[("implication",)] - shares[()]).abs().max() < 0.005


# --- zeros


def few(kinds: Sequence[str], n: int = 300) -> CodedByRules:
    """Patients by the coordinates of their rules."""
    found = coded(prepared("pairs-dp", kinds, hospital(n)).described)
    assert isinstance(found, CodedByRules)
    return found


def cut(table: CodedByRules, name: str, number: int, together: int = 2) -> Bins:
    """Bins of about equally many positions, so many names together."""
    flag = len(table.columns) if name in table.flagged else None
    tree, steps = table.tree(name), table.lattices[name].steps
    if tree is not None:
        return Bins(None, np.arange(len(tree.domain)) // together, flag)
    return Bins(np.unique(np.linspace(0, steps + 1, number + 1).astype(np.int64)), None, flag)


@pytest.mark.parametrize("number", [2, 7])
def test_forbidden_cells_are_those_that_no_values_reach(number: int) -> None:
    """Every position of each bin is tried here."""
    table = few(("implication", "missing-if"))
    bins = [cut(table, name, number) for name in table.columns]
    found = possible_cells(table, bins)
    flags = {name: len(table.columns) for name in table.flagged}
    for pair in (("age", "marital"), ("marital", "spouse")):
        own = [np.arange(-1 if name in flags else 0, table.lattices[name].steps + 1) for name in pair]
        both = [one.ravel() for one in np.meshgrid(*own, indexing="ij")]
        fits = table.possible(pair, both)
        where = []
        for name, one in zip(pair, both, strict=True):
            mine = bins[table.columns.index(name)]
            if name in flags:
                where.append(np.where(one < 0, 1, 0))
            elif mine.edges is None:
                where.append(np.asarray(mine.groups)[one])
            else:
                where.append(np.searchsorted(mine.edges[1:-1], one, side="right"))
        slow = np.zeros([int(one.max()) + 1 for one in where], dtype=np.bool_)
        np.logical_or.at(slow, tuple(where), fits)
        key = tuple(flags.get(name, table.columns.index(name)) for name in pair)
        # a row of cells that holds nobody says nothing
        slow[~slow.any(axis=1)] = True
        assert (found.get(key, np.ones_like(slow)) == slow).all()


def test_bins_are_split_where_a_rule_begins_to_hold() -> None:
    table = few(("implication", "derived"))
    bins = [cut(table, name, 4) for name in table.columns]
    changes = changes_of_rules(table, bins)
    born = table.columns.index("born")
    # the last day on which somebody is born who is 16 on the reference date
    (place,) = changes[born].tolist()
    assert place == day_number("2008-01-02", "a day") - BORN
    assert set(changes) == {born}


def test_a_record_changes_every_contrast_by_as_much_as_without_rules() -> None:
    """By brute force: each record alone, whatever it breaks; forbidden cells count nobody."""
    data = hospital(200)
    broken = data.assign(age=data["age"].to_numpy()[::-1], marital=data["marital"].to_numpy()[::-1])
    table = coded(prepared("pairs-dp", ("implication", "missing-if"), broken).described)
    assert isinstance(table, CodedByRules)
    bins = [cut(table, name, 8, 1) for name in table.columns]
    bins += [Bins(np.array([0, 1, 2])) for _ in table.flagged]
    cells = possible_cells(table, bins)
    assert cells
    positions, _ = pair_positions(table)
    codes = [
        np.asarray(own.groups)[np.maximum(found, 0)]
        if own.edges is None
        else np.searchsorted(own.edges[1:-1], found, side="right")
        for own, found in zip(bins, positions, strict=True)
    ]
    for name in table.flagged:
        number = table.columns.index(name)
        codes[number][positions[number] == ABSENT] = bins[number].number
    sizes = [own.number for own in bins]
    levels = [0 if own.edges is None else (own.number - 1).bit_length() for own in bins]
    a, b = next(iter(cells))
    group = ContrastGroup(a, levels[a] - 1, (b,), levels[b] - 1, MeasurementShape(1, 1, 1))
    for row in range(len(broken)):
        alone = PairCounts([own[row : row + 1].astype(np.uint8) for own in codes], sizes)
        assert np.abs(group_sums(alone, group, levels, sizes)).sum() <= 1
        for pair, possible in cells.items():
            assert not alone.table(*pair)[~possible].any()


def marginal(shares: Sequence[float], edges: Sequence[int] | None = None) -> Marginal:
    own = np.array(shares)
    fine = points(np.repeat(own / np.diff(edges), np.diff(edges))) if edges is not None else points(own)
    return Marginal(
        fine,
        own,
        0 if edges is None else (len(own) - 1).bit_length(),
        None if edges is None else np.array(edges, dtype=np.int64),
        np.arange(len(own), dtype=np.uint8) if edges is None else None,
    )


def test_noise_in_forbidden_cells_is_left_out() -> None:
    age, marital = marginal([0.5, 0.5], [0, 40, 100]), marginal([0.5, 0.3, 0.2])
    noisy = np.array([[0.3, -0.2, -0.1]]).T
    block = ContrastBlock(0, 1, 0, -1, noisy.T, 0.05)
    possible = np.array([[True, False, True], [True, True, True]])
    (table,) = pair_tables([age, marital], {}, [block], {(0, 1): possible}).values()
    assert table[0, 1] == 0
    assert table.sum(axis=1) == pytest.approx(age.shares)
    assert table.sum(axis=0) == pytest.approx(marital.shares)
    (free,) = pair_tables([age, marital], {}, [block]).values()
    assert free[0, 1] > 0.05


def test_rows_are_drawn_in_split_bins_whose_sums_were_measured() -> None:
    age, marital = marginal([0.5, 0.5], [0, 40, 100]), marginal([0.5, 0.3, 0.2])
    table = np.array([[0.3, 0.12, 0.08], [0.2, 0.18, 0.12]])
    split = age.split(np.array([16]))
    assert split.edges is not None
    assert split.edges.tolist() == [0, 16, 40, 100]
    assert split.shares == pytest.approx([0.2, 0.3, 0.5])
    assert (split.middle, marital.middle) == (2, 1)
    possible = np.array([[True, False, False], [True, True, True], [True, True, True]])
    zeros = Zeros((split, marital), {}, {(0, 1): possible})
    found = drawn_tables({(0, 1): table}, {}, zeros)[0, 1]
    assert not found[~possible].any()
    assert found[:2].sum(axis=0) == pytest.approx(table[0], abs=1e-6)
    assert found[2] == pytest.approx(table[1], abs=1e-6)
    assert found.sum(axis=1) == pytest.approx(split.shares)


@pytest.mark.slow
def test_hardly_any_value_is_exchanged_where_the_tables_have_the_zeros(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exchanged = []
    honest = _Step.exchanged

    def counted(self: _Step, now: Any, wrong: Any, *more: Any) -> Any:
        exchanged[-1] += wrong.size
        return honest(self, now, wrong, *more)

    monkeypatch.setattr(_Step, "exchanged", counted)
    for zeros in (zeros_of, lambda *_: None):
        monkeypatch.setattr(mechanism, "zeros_of", zeros)
        exchanged.append(0)
        released("pairs-dp", ("derived", "implication", "missing-if"), 3000)
    assert exchanged[0] < exchanged[1] / 10


def test_boxes_of_a_tree_that_rules_forbid_have_no_rows() -> None:
    table = few(("implication",))
    edges = [
        np.arange(len(tree.domain) + 1) if (tree := table.tree(name)) else cut(table, name, 8).edges
        for name in table.columns
    ]
    age, marital = (table.columns.index(name) for name in ("age", "marital"))
    edges[marital] = np.array([0, 1, 2, 3, 3])
    measured = []
    for one in edges:
        assert one is not None
        depth = (one.size - 1).bit_length() - 1
        one = one[: (1 << depth) + 1]
        counts = [np.full(1 << level, 100.0 / (1 << level)) for level in range(depth + 1)]
        measured.append(CutIntervals(one, counts, None, None))
    chosen = [measured[age], measured[marital]]
    tree = grow([one.edges for one in chosen], [one.counts for one in chosen], 5)
    wide = np.zeros((tree.leaves, len(measured)), dtype=np.int64)
    halved, place = wide.copy(), wide.copy()
    halved[:, [age, marital]], place[:, [age, marital]] = tree.halved, tree.place
    found = possible_leaves(replace(tree, halved=halved, place=place), measured, table)
    assert found is not None
    kinds = table.tree("marital")
    assert kinds is not None
    names = [kinds.labels[code] for code in kinds.domain]
    for leaf in range(tree.leaves):
        own = []
        for number, one in zip((0, 1), chosen, strict=True):
            span = 1 << (len(one.counts) - 1 - int(tree.halved[leaf, number]))
            first = int(tree.place[leaf, number]) * span
            own.append(range(int(one.edges[first]), int(one.edges[first + span])))
        ages, kind = own
        some = any(old >= 16 or names[code] == "never" for old in ages for code in kind)
        if kind:
            assert found[leaf] == some
    level = Level(np.array([40.0, 60.0]), 1.0, np.array([0.5]), 0.1, np.array([False, True]))
    assert consistent_counts(100.0, [level])[1].tolist() == [0.0, 100.0]


# --- engines


@pytest.mark.parametrize("method", EITHER)
def test_the_local_engine_makes_the_same_rows(method: str, tmp_path: Path) -> None:
    data = hospital(300)
    data.loc[:20, "discharge"] = data.loc[:20, "admission"]
    data.to_parquet(tmp_path / "people.parquet", row_group_size=100)
    rules = schema(tuple(KINDS))
    settings: dict[str, Any] = {"method": method, "epsilon": 1, "seed": 4}
    here = shoal.protect(read(tmp_path / "people.parquet"), rules, **settings)
    there = shoal.publish(
        tmp_path / "people.parquet", rules, **settings, out=tmp_path / "out", engine="local"
    )
    rows = [
        sorted(map(str, found.to_pylist()))
        for found in (
            read(tmp_path / "out" / "data.parquet").frame.to_arrow(),
            read(here.data).frame.to_arrow(),
        )
    ]
    assert rows[0] == rows[1]
    assert there.release.statement.to_dict() == here.statement.to_dict()
    assert there.release.internal["rules_broken"] == here.internal["rules_broken"]
    assert here.internal["rules_broken"][KINDS["order"].words] >= 21


@pytest.mark.parametrize("method", EITHER)
def test_rows_of_a_model_satisfy_the_rules(method: str, tmp_path: Path) -> None:
    configured = {"pairs-dp": shoal.PairsDP, "tree-dp": shoal.TreeDP}[method](epsilon="1")
    model = configured.fit(hospital(400), schema(tuple(KINDS)), seed=1)
    again = shoal.SyntheticModel.load(model.save(tmp_path / "model"))
    assert again.measurements == model.measurements is not None
    for made in (model, again):
        found = as_pandas(made.sample(800, seed=2))
        assert len(found) == 800
        assert not any(violations(found).values())
    first, second = (as_pandas(made.sample(50, seed=3)) for made in (model, again))
    assert first["age"].tolist() == second["age"].tolist()
    south = as_pandas(again.sample(60, where={"region": "south", "age": (20, 100)}, seed=4))
    assert set(south["region"]) == {"south"}
    assert south["age"].min() >= 20
    assert not any(violations(south).values())
    read_off = Schema(ATTRIBUTES, rules=(Rule("admission <= discharge", "these records"),))
    with pytest.raises(OptionError, match="read off the records"):
        configured.fit(hospital(400), read_off)


# --- strata


@pytest.mark.parametrize("method", EITHER)
@pytest.mark.parametrize(
    ("strata", "settings"),
    [
        (["marital"], {}),
        (["region", "district"], {}),
        (["marital"], {"neighbours": "replace-one", "membership": "public"}),
    ],
)
def test_rows_of_every_stratum_satisfy_the_rules(
    method: str, strata: list[str], settings: dict[str, str]
) -> None:
    """Rules that name a column of the strata included."""
    data = hospital(300)
    found = shoal.protect(
        data, schema(tuple(KINDS)), method=method, epsilon=9, seed=1, strata=strata, **settings
    )
    assert not any(violations(found.data).values())
    assert not any(found.internal["rules_broken"].values())
    # 18 combinations of a region and a district, of which a rule allows 6
    words = " ".join(found.statement.conditions)
    assert ("No row of 12 of these strata satisfies the rules" in words) == (len(strata) == 2)


def test_neighbours_in_strata_give_one_release_under_one_transcript() -> None:
    data = hospital(40).sort_values("income", ignore_index=True)
    odd = data.iloc[[0]].assign(marital="married", age=3, born=data["born"].max(), district="w1")
    made, draws = [], []
    for table in (data, pd.concat([data, odd], ignore_index=True)):
        with recording(1) if not draws else replaying(draws[0]) as found:
            given = shoal.protect(
                table,
                schema(tuple(KINDS)),
                method="tree-dp",
                epsilon=2,
                strata=["marital"],
                neighbours="add-remove",
            )
        made.append(given.data)
        draws.append(found.draws)
    pd.testing.assert_frame_equal(*made)
    assert accounting.loss(*draws) <= 2
    assert accounting.loss(draws[1], draws[0]) <= 2


def test_strata_that_rules_forbid_are_refused_where_their_rows_are_public() -> None:
    broken = hospital(40).assign(district="w1")
    settings: dict[str, Any] = {"strata": ["region", "district"], "neighbours": "replace-one"}
    with pytest.raises(OptionError, match="no row with its values satisfies the rules"):
        prepared("tree-dp", ("combinations",), broken, **settings, membership="public")
    prepared("tree-dp", ("combinations",), broken, **settings)
    numbers = [Attribute(name, type="integer", lo=0, hi=9, source="law") for name in ("a", "age", "c")]
    ruled = Schema(tuple(numbers), rules=(Rule("age = a + 1", "law"),))
    people = read(pd.DataFrame({"a": [1, 2], "age": [2, 3], "c": [1, 1]}))
    with pytest.raises(OptionError, match="add 'age' to"):
        prepare(people, ruled, "tree-dp", epsilon=1, strata=["a"])


# --- rehearsals, and planted faults


def test_records_of_a_rehearsal_satisfy_the_rules() -> None:
    for kinds, number in ((tuple(KINDS), 0), ((), 300)):
        people = read(made_up_people(schema(kinds), "tree-dp", 1, None, 300))
        assert (rows_breaking(people, schema(tuple(KINDS)))[KINDS["derived"].words] or 0) >= number
        assert kinds == () or not any(rows_breaking(people, schema(kinds)).values())


def test_zeros_that_are_read_off_the_records_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: cells are 0 where no record is, so that one more record changes the rows."""
    honest = mechanism.zeros_of

    def dishonest(described: Any, marginals: Any, flags: Any) -> Any:
        found = honest(described, marginals, flags)
        assert found is not None
        age, marital = (described.columns.index(name) for name in ("age", "marital"))
        codes = [
            found.drawn[number].codes(described.positions(described.columns[number])[0])
            for number in (age, marital)
        ]
        seen = np.zeros((found.drawn[age].bins, found.drawn[marital].bins), dtype=np.bool_)
        seen[codes[0], codes[1]] = True
        cells = {(min(age, marital), max(age, marital)): seen if age < marital else seen.T}
        return replace(found, drawn_cells=cells, cells={})

    data = hospital(60)
    data["marital"] = np.where(data["age"] < 16, "never", "married")
    odd = data.iloc[[0]].assign(marital="widowed", age=90)
    equal = []
    for plant in (honest, dishonest):
        monkeypatch.setattr(mechanism, "zeros_of", plant)
        made, draws = [], []
        # where the rows differ, their drawing may need other random numbers
        with contextlib.suppress(DivergenceError):
            for table in (data, pd.concat([data, odd], ignore_index=True)):
                with recording(1) if not draws else replaying(draws[0]) as found:
                    given = shoal.protect(table, schema(("implication",)), epsilon=9, rows=200)
                made.append(given.data)
                draws.append(found.draws)
        equal.append(len(made) == 2 and made[0].equals(made[1]))
    assert equal == [True, False]


def test_a_source_of_a_rule_that_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: a rule that is known from these records does not taint."""
    read_off = Schema(ATTRIBUTES, rules=(Rule('age < 16 -> marital = "never"', "these records"),))
    verdicts = []
    for plant in (description.rules_from_records, lambda book: []):
        monkeypatch.setattr(description, "rules_from_records", plant)
        found = prepare(read(hospital(50)), read_off, "tree-dp", epsilon=1)
        verdicts.append(found.statement.publishable)
    assert verdicts == [False, True]


def test_a_derived_column_that_is_measured_as_well_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the column takes a share of the budget, so that the others have less."""
    shares = [prepared("tree-dp", ("derived",), hospital(50)).plan.shares]
    monkeypatch.setattr(Rulebook, "unmeasured", ())
    shares.append(prepared("tree-dp", ("derived",), hospital(50)).plan.shares)
    assert ["age" in own for own in shares] == [False, True]
    assert shares[1]["income"] < shares[0]["income"]


# --- audits, and the examples


def test_an_audit_measures_the_method_with_its_rules() -> None:
    random = np.random.default_rng(1)
    first = random.integers(0, 50, 30)
    people = pd.DataFrame({"first": first, "second": first + 3, "total": 2 * first + 3})
    attributes = [Attribute(name, type="integer", lo=0, hi=200, source="law") for name in people]
    rules = (Rule("first <= second <= first + 20", "law"), Rule("total = first + second", "law"))
    planned = prepare(read(people), Schema(tuple(attributes), rules=rules), "tree-dp", epsilon=1)
    setup = make_stage(planned.method, planned.described, "original")
    world = setup.world(setup.records[:-1])
    rows = world.outputs(5, Seeded(2)).tables.reshape(-1, 3)
    rows = rows[~np.isnan(rows).any(axis=1)]
    assert len(rows) > 50
    assert (rows[:, 2] == rows[:, 0] + rows[:, 1]).all()
    assert ((rows[:, 1] >= rows[:, 0]) & (rows[:, 1] <= rows[:, 0] + 20)).all()


def test_the_hospital_of_the_examples_has_no_impossible_row(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "examples"
    spec = importlib.util.spec_from_file_location("hospital_example", folder / "hospital.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    (tmp_path / "hospital.toml").write_text(example.SCHEMA, "utf-8")
    rules = Schema.load(tmp_path / "hospital.toml")
    made = shoal.protect(
        example.stays(900, 2000), rules, method="tree-dp", epsilon=1, seed=1, neighbours="add-remove"
    )
    assert rules.rules
    assert not any(rows_breaking(read(made.data), rules).values())


@pytest.mark.slow
def test_households_of_a_survey_have_no_impossible_row() -> None:
    """Children without income or a marriage, and tenure of households only: the extract of NIST."""
    people = pd.read_csv(data_folder() / "nist" / "national2019.csv", keep_default_na=False, dtype=str)
    names = ["AGEP", "SEX", "MSP", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE"]
    people = people[names].assign(AGEP=people["AGEP"].astype(int))
    attributes = [Attribute("AGEP", type="integer", lo=0, hi=99, source="questionnaire")]
    for name in names[1:]:
        values = tuple(sorted(set(people[name])))
        attributes.append(Attribute(name, "nominal", type="text", values=values, source="questionnaire"))
    kept = [Rule(f'AGEP < 15 -> {name} = "N"', "questionnaire") for name in ("MSP", "PINCP_DECILE")]
    kept += [Rule('AGEP < 3 -> EDU = "N"', "questionnaire"), Rule('AGEP > 2 -> EDU != "N"', "questionnaire")]
    tenure = (("1", "1"), ("1", "2"), ("2", "0"), ("3", "0"))
    kept.append(Rule(columns=("HOUSING_TYPE", "OWN_RENT"), allowed=tenure, source="questionnaire"))
    rules = Schema(tuple(attributes), rules=tuple(kept))
    assert not any(rows_breaking(read(people), rules).values())
    for given, broken in ((rules, False), (Schema(tuple(attributes)), True)):
        made = shoal.protect(people, given, epsilon=1, seed=1, rows=len(people))
        assert any(rows_breaking(read(made.data), rules).values()) == broken
