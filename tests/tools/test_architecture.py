"""results/architecture.md is written by a command, and its costs of a change match the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import architecture

PAGE = Path(__file__).parents[2] / "results" / "architecture.md"


def test_the_page_says_what_a_change_costs() -> None:
    assert "\n".join(architecture.cost_lines()) in PAGE.read_text("utf-8"), (
        "run: python -m tools.architecture"
    )


def test_comparisons_with_names_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.py").write_text(
        'if a.kind == "nominal" or kind in ("date", "x") or a.role == "date":\n    pass\n'
    )
    (tmp_path / "two.py").write_text('"""kind == "date" """\nkind = "date"\n')
    monkeypatch.setattr(architecture, "PACKAGE", tmp_path)
    assert architecture.comparisons(("kind",), ("nominal", "date")) == {"one.py": 2}


@pytest.mark.parametrize("change", ["a method", "a mechanism", "a kind of column"])
def test_nobody_asks_for_these_by_name(change: str) -> None:
    (cost,) = [cost for cost in architecture.costs() if cost.change == change]
    found = architecture.comparisons(cost.compared, cost.words)
    assert set(found) <= {cost.table}, found


def test_every_entry_has_its_table() -> None:
    for cost in architecture.costs():
        assert not cost.table or (architecture.PACKAGE / cost.table).exists()


HOUSE = {
    "house/__init__.py": '"""The house."""\n',
    "house/base.py": "import os\n\n\ndef add(one):\n    return one + 1\n",
    "house/low/__init__.py": "from house.low.work import go\n",
    "house/low/work.py": "from house.base import add\nfrom house.low import other\n\n\ndef go():\n    return add(1)\n",
    "house/low/other.py": "",
    "house/high/__init__.py": "",
    "house/high/asks.py": "def ask():\n    from house.low import go\n\n    return go()\n",
    "house/high/peeps.py": "from house.low import other\nimport house.low.work\nfrom elsewhere import low\n",
    "house/cli/__init__.py": "from house.high import asks\n",
}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name, text in HOUSE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path / "house"


def test_sizes_that_the_code_shows(house: Path) -> None:
    assert architecture.imports_across(house) == {
        "house.base",
        "house.low",
        "house.low.other",
        "house.low.work",
        "house.high.asks",
    }
    assert architecture.static_sizes(house) == {
        "modules": 5,
        "doors": 4,
        "lines": sum(text.count("\n") for text in HOUSE.values()),
        "longest": 6,
        "imported": 1,
        "past": 3,
    }


def test_rooms_change_along_the_modules_of_a_walk() -> None:
    walk = architecture.Walk({name: [] for name in ("s.a.x", "s.a.y", "s.b.x", "s.a.z", "s.c")})
    assert walk.switches == 3
    assert architecture.Walk().switches == 0


def test_a_walk_enters_the_modules_whose_functions_run() -> None:
    from shoal.text import Message

    def work() -> None:
        str(Message("random-order"))

    work()
    assert list(architecture.walk_of(work).modules) == ["shoal.text.sentences"]


LIMITS = {
    "modules": architecture.Limit("modules", 10, 14),
    "lines": architecture.Limit("lines", 1_000, 1_000),
}


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ({"modules": 14, "lines": 1_000}, []),
        ({"modules": 9, "lines": 10}, []),
        ({"modules": 15, "lines": 1_000}, ["modules: 15, at most 14 before."]),
        ({"modules": 14, "lines": 1_001}, ["lines: 1,001, at most 1,000 before."]),
    ],
)
def test_a_size_above_its_limit_is_told(found: dict[str, int], wrong: list[str]) -> None:
    assert architecture.judged(found, LIMITS)[1] == wrong


def test_sizes_stand_beside_goals_and_limits() -> None:
    lines, _ = architecture.judged({"modules": 12, "lines": 900}, LIMITS)
    assert [line.split() for line in lines] == [
        ["size", "goal", "limit"],
        ["modules", "12", "10", "14"],
        ["lines", "900", "1,000"],
    ]


def test_the_house_is_within_its_limits_as_far_as_its_code_shows() -> None:
    found = architecture.static_sizes(architecture.PACKAGE)
    limits = {name: limit for name, limit in architecture.LIMITS.items() if name in found}
    assert len(limits) == len(found)
    assert architecture.judged(found, limits)[1] == []


def test_a_question_enters_the_server_and_no_release(tmp_path: Path) -> None:
    entered = set(architecture.question(tmp_path / "served").modules)
    assert {"shoal.query.server.app", "shoal.query.answers", "shoal.ledger.ledger"} <= entered
    assert not {architecture.package_of(name) for name in entered} & {"release", "mechanisms", "evaluation"}
    assert len(entered) <= architecture.LIMITS["question"].most


@pytest.mark.slow
def test_all_sizes_are_within_their_limits() -> None:
    lines, wrong = architecture.judged(architecture.sizes(), architecture.LIMITS)
    assert wrong == [], "\n".join(lines)
