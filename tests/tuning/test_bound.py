"""A private choice of the rows per unit: its penalties by brute force, its distribution, and what it costs."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cli import run
from shoal.errors import ClaimError, InputError, OptionError
from shoal.io import write
from shoal.ledger import open_ledger
from shoal.noise.entropy import Seeded
from shoal.privacy import Accountant, Adjacency
from shoal.tuning.private import draw_bound, penalties_of, units_off


def schema_of(**more: Any) -> shoal.Schema:
    unit = {"name": "who", "role": "unit", "type": "integer", "called": "patient", **more}
    return shoal.Schema.from_dict({"attribute": [unit, {"name": "x", "lo": 0, "hi": 9}]})


def table_of(counts: list[int]) -> pa.Table:
    who = np.repeat(np.arange(len(counts)), counts)
    return pa.table({"who": who, "x": np.arange(who.size) % 10})


def slow_penalties(counts: list[int], most: int, share: Fraction) -> list[Fraction]:
    """How far share·m lies from the ranks of each bound, one by one."""
    found = []
    for r in range(1, most + 1):
        below = sum(min(c, most) < r for c in counts)
        upto = sum(min(c, most) <= r for c in counts)
        found.append(max(Fraction(0), share * len(counts) - upto, below - share * len(counts)))
    return found


SHARES = (Fraction(1, 2), Fraction(9, 10), Fraction(1, 3))


def largest_change(penalties: Any) -> Fraction:
    """By how much one unit more, with any number of rows, moves a penalty, over all tables of up to three units."""
    largest = Fraction(0)
    for share in SHARES:
        for n in range(4):
            for counts in product(range(1, 6), repeat=n):
                before = penalties(np.array(counts, dtype=np.int64), 4, share)
                for more in range(1, 7):
                    after = penalties(np.array([*counts, more], dtype=np.int64), 4, share)
                    for one, other in zip(before.tolist(), after.tolist(), strict=True):
                        largest = max(largest, Fraction(abs(one - other), share.denominator))
    return largest


def per_row(counts: Any, most: int, share: Fraction) -> Any:
    """A planted fault: ranks are counted in rows."""
    return penalties_of(np.repeat(counts, counts), most, share)


def test_a_unit_moves_a_penalty_by_at_most_one() -> None:
    assert largest_change(penalties_of) == Fraction(9, 10)
    assert largest_change(per_row) > 1


@pytest.mark.parametrize("share", SHARES)
def test_penalties_are_those_counted_one_by_one(share: Fraction) -> None:
    random = np.random.default_rng(2)
    for _ in range(50):
        counts = random.integers(1, 9, int(random.integers(0, 12)))
        found = penalties_of(counts, 5, share).tolist()
        assert found == [p * share.denominator for p in slow_penalties(counts.tolist(), 5, share)]


def test_choices_occur_as_often_as_their_penalties_allow() -> None:
    counts, share, epsilon = np.array([1, 1, 2, 3, 3]), Fraction(1, 2), Fraction(2)
    weights = np.exp(-float(epsilon) / 2 * penalties_of(counts, 4, share))
    source, runs, found = Seeded(5), 4000, np.zeros(4)
    for _ in range(runs):
        account = Accountant.of({"c": epsilon}, epsilon, source, adjacency=Adjacency.ADD_REMOVE)
        found[draw_bound(counts, 4, share, account.spend("c", epsilon)) - 1] += 1
    expected = runs * weights / weights.sum()
    assert ((found - expected) ** 2 / expected).sum() < 45


def test_a_release_states_the_choice_and_its_own_cost_together(tmp_path: Path) -> None:
    data = table_of([1 + i % 3 for i in range(120)])
    found = shoal.choose_bound(data, schema_of(), "1/2", most=10)
    release = shoal.protect(data, schema_of(), epsilon=1, bound=found.bound, tuned=found.tuned)
    stated = release.statement
    assert stated.epsilon == Fraction(3, 2)
    assert stated.spending["choice of bound"] == Fraction(1, 2)
    assert stated.publishable or stated.verdict.level == "amber"
    assert any("with ε = 0.5 per patient under add-remove adjacency" in said for said in stated.conditions)
    release.save(tmp_path / "out")
    again = shoal.protect(data, **shoal.Bundle.load(tmp_path / "out").recipe)
    assert again.statement.epsilon == Fraction(3, 2)
    other = shoal.protect(data, schema_of(), epsilon=1, bound={"rows": found.rows + 1}, tuned=found.tuned)
    assert not other.statement.publishable
    with pytest.raises(ClaimError, match="use pairs-dp without a delta"):
        shoal.protect(data, schema_of(), epsilon=1, delta="1e-6", bound=found.bound, tuned=found.tuned)


def test_a_ledger_charges_the_choice_once(tmp_path: Path) -> None:
    data, ledger = table_of([1 + i % 3 for i in range(120)]), str(tmp_path / "ledger.sqlite")
    told: dict[str, Any] = {"ledger": ledger, "dataset": "stays"}
    found = shoal.choose_bound(data, schema_of(), "1/2", most=10, **told)
    shoal.publish(
        data, schema_of(), epsilon=1, bound=found.bound, tuned=found.tuned, out=tmp_path / "out", **told
    )
    opened = open_ledger(ledger)
    assert opened.standing("stays").spent == Fraction(3, 2)
    opened.close()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"epsilon": 0}, OptionError, "epsilon must be"),
        ({"most": 1}, OptionError, "from 2 to 10,000"),
        ({"most": 2.5}, OptionError, "from 2 to 10,000"),
        ({"share": 1}, OptionError, "between 0 and 1"),
        ({"share": "1/99999"}, OptionError, "at most 10,000"),
        (
            {"schema": shoal.Schema.from_dict({"attribute": [{"name": "x", "lo": 0, "hi": 9}]})},
            OptionError,
            "no unit",
        ),
        ({"data": pa.table({"who": [1, None], "x": [1, 2]})}, InputError, "missing values"),
    ],
)
def test_nothing_is_charged_for_what_is_refused(
    options: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    arguments = {
        "data": table_of([1, 2]), "schema": schema_of(), "epsilon": 1, "most": 5,
        "ledger": tmp_path / "ledger.sqlite", "dataset": "stays", **options,
    }  # fmt: skip
    with pytest.raises(error, match=words) as refused:
        shoal.choose_bound(**arguments)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_choice_misses_its_share_by_no_more_than_expected() -> None:
    counts = np.array([1 + i % 7 for i in range(700)])
    for epsilon in (Fraction(1, 10), Fraction(1)):
        off, source = units_off(epsilon, 20), Seeded(3)
        wanted = penalties_of(counts, 20, Fraction(9, 10)) / 10
        missed = 0
        for _ in range(400):
            account = Accountant.of({"c": epsilon}, epsilon, source, adjacency=Adjacency.ADD_REMOVE)
            chosen = draw_bound(counts, 20, Fraction(9, 10), account.spend("c", epsilon))
            missed += wanted[chosen - 1] > off
        # 5% of 400 are 20, with a standard deviation of 4.4; the bound is a union over candidates
        assert missed <= 20 + 6 * 4.4


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(table_of([1 + i % 3 for i in range(120)]), tmp_path / "stays.csv")
    schema_of().save(tmp_path / "stays.toml")
    return tmp_path


COMMAND = ["choose-bound", "stays.csv", "--schema", "stays.toml", "--epsilon", "0.5", "--most", "10"]
CHARGED = ["--ledger", "ledger.sqlite", "--dataset", "stays"]


def test_the_command_pays_for_the_choice_and_a_release_states_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*COMMAND, *CHARGED, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "is missed by at most 19 units" in printed
    assert "Nothing was charged or written." in printed
    assert sorted(path.name for path in here.iterdir()) == ["stays.csv", "stays.toml"]
    assert run([*COMMAND, *CHARGED, "--out", "bound.toml"]) == 0
    printed = capsys.readouterr().out
    assert "rows of each patient, chosen privately with ε = 0.5." in printed
    release = [
        "protect",
        "stays.csv",
        "--config",
        "bound.toml",
        "--epsilon",
        "1",
        *CHARGED,
        "--out",
        "release",
    ]
    assert run(release) == 0
    stated = json.loads((here / "release" / "statement.json").read_text("utf-8"))
    assert (stated["epsilon"], stated["spending"]["choice of bound"]) == (1.5, 0.5)
    assert stated["unit"] == "patient"
    opened = open_ledger("ledger.sqlite")
    assert opened.standing("stays").spent == Fraction(3, 2)
    opened.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*COMMAND, *CHARGED], "--out is missing"),
        ([*COMMAND[:-2], *CHARGED, "--out", "bound.toml"], "--most is missing"),
        ([*COMMAND, *CHARGED, "--out", "stays.toml"], "already exists"),
        ([*COMMAND, *CHARGED, "--out", "no/bound.toml"], "cannot write 'no/bound.toml'"),
        ([*COMMAND, *CHARGED, "--share", "2", "--out", "bound.toml"], "between 0 and 1"),
        ([*COMMAND, "--ledger", "ledger.sqlite", "--out", "bound.toml"], "dataset"),
        (["choose-bound", "none.csv", *COMMAND[2:], *CHARGED, "--out", "bound.toml"], "none.csv"),
    ],
)
def test_the_command_refuses_in_one_line_and_charges_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(words) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert sorted(path.name for path in here.iterdir()) == ["stays.csv", "stays.toml"]
