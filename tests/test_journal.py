"""The journal of use: what it keeps, who may read it, what it reports by name, and what it asks about."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal import journal as journals
from shoal.errors import OptionError
from shoal.journal import Journal

DOMAINS = {"age": {"lo": "0", "hi": "120"}}
SETTINGS = {"method": "laplace", "epsilon": "1"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state" / "shoal" / "journal.jsonl"


@pytest.fixture
def journal(place: Path) -> Journal:
    return Journal.open(place)


def facts(journal: Journal, dataset: str | None = "people", **options: Any) -> dict[str, Any]:
    given = {"columns": ("age",), "settings": SETTINGS, "domains": DOMAINS, **options}
    return {fact.code: fact.facts for fact in journal.recorded(dataset, **given)}


def release(journal: Journal, dataset: str | None = "people", **more: Any) -> str:
    known = {"settings": SETTINGS, "domains": DOMAINS, **more}
    return journal.note("released", dataset=dataset, columns=["age"], **known)


def test_only_the_owner_can_read_it(journal: Journal, place: Path) -> None:
    journal.note("viewed", dataset="people", table="digest", columns=["age"], views=["rows"])
    assert place.parent.stat().st_mode & 0o777 == 0o700
    files = sorted(place.parent.iterdir())
    assert [file.name for file in files] == ["journal.jsonl", "journal.jsonl.key"]
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    place.chmod(0o644)
    journal.note("viewed", dataset="people")
    assert place.stat().st_mode & 0o777 == 0o600


def test_it_is_kept_in_the_state_folder_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHOAL_JOURNAL", str(tmp_path / "mine.jsonl"))
    assert Journal.open().places == (tmp_path / "mine.jsonl",)
    monkeypatch.delenv("SHOAL_JOURNAL")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert Journal.open().places == (tmp_path / "state" / "shoal" / "journal.jsonl",)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Journal.open().places == (tmp_path / ".local" / "state" / "shoal" / "journal.jsonl",)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert Journal.open().places[0].is_relative_to(tmp_path / "Library")


def test_a_line_that_was_cut_off_takes_no_other_with_it(journal: Journal, place: Path) -> None:
    release(journal)
    with place.open("ab") as file:
        file.write(b'{"id":"use-00000000","at":"2026')
    assert [entry.kind for entry in journal.entries()] == ["released"]
    release(journal)
    assert [entry.kind for entry in Journal.open(place).entries()] == ["released", "released"]
    journals._KNOWN.clear()
    assert [entry.kind for entry in Journal.open(place).entries()] == ["released", "released"]


def test_processes_that_write_at_once_lose_no_line(place: Path) -> None:
    script = (
        "import sys; from shoal.journal import Journal\n"
        "journal = Journal.open(sys.argv[1])\n"
        "for number in range(50):\n"
        "    journal.note('viewed', dataset=sys.argv[2], table='digest', columns=['x' * 4000])\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(place), name]) for name in ("first", "second")
    ]
    assert [process.wait() for process in running] == [0, 0]
    lines = [json.loads(line) for line in place.read_text("utf-8").splitlines()]
    assert sorted(line["dataset"] for line in lines) == ["first"] * 50 + ["second"] * 50
    # both used one key
    assert len({line["table"] for line in lines}) == 1


def test_what_another_process_wrote_is_known_at_once(journal: Journal, place: Path) -> None:
    release(journal)
    assert facts(journal)["earlier-releases"]["count"] == 1
    script = (
        "import sys; from shoal.journal import Journal\n"
        "Journal.open(sys.argv[1]).note('released', dataset='people')"
    )
    subprocess.run([sys.executable, "-c", script, str(place)], check=True)
    assert facts(journal)["earlier-releases"]["count"] == 2


def test_nothing_is_recorded_without_a_name_or_under_another_one(journal: Journal) -> None:
    release(journal, "others", measured=True)
    release(journal, None, measured=True)
    assert facts(journal) == {}
    assert facts(journal, None) == {}


def test_releases_measurements_and_downloads_are_counted_once_each(journal: Journal) -> None:
    first = release(journal, measured=True, folder="/a")
    journal.note("measured", release=first)
    second = release(journal, folder="/b")
    for _ in range(2):
        journal.note("measured", dataset="people", folder="/b")
        journal.note("downloaded", release=second)
    journal.note("measured", dataset="people", folder="/of-another-tool")
    assert facts(journal)["earlier-releases"] == {"count": 2, "measured": 2, "downloaded": 1}
    assert facts(journal)["records-measured"] == {"count": 1}
    assert journal.entries()[1].dataset == "people"


def test_releases_that_only_a_ledger_knows_are_counted_too(journal: Journal) -> None:
    release(journal, charge="aa")
    counted = facts(journal, charges={"aa": True, "bb": True, "cc": False})["earlier-releases"]
    assert counted == {"count": 3, "measured": 1, "downloaded": 0}


@pytest.mark.parametrize("kind", ["measured", "downloaded"])
def test_settings_that_changed_after_something_was_shown_are_named(journal: Journal, kind: Any) -> None:
    made = release(journal)
    changed = {**SETTINGS, "epsilon": "2"}
    assert "settings-changed" not in facts(journal, settings=changed)
    journal.note(kind, release=made)
    assert "settings-changed" not in facts(journal)
    assert facts(journal, settings=changed)["settings-changed"] == {"settings": ["epsilon"]}
    release(journal, settings=changed)
    # back to what was fixed before anything was shown
    assert "settings-changed" not in facts(journal)
    assert facts(journal, settings={"method": "mdav", "k": 3})["settings-changed"] == {"settings": ["method"]}
    other = {"age": {"lo": "0", "hi": "100"}}
    assert facts(journal, domains=other)["settings-changed"] == {"settings": ["domain:age"]}
    assert facts(journal, domains={**DOMAINS, "pay": {}})["settings-changed"] == {"settings": ["columns"]}


def test_a_column_viewed_before_its_range_was_declared_is_named(journal: Journal) -> None:
    journal.note("viewed", dataset="people", columns=["age"], views=["histogram"])
    journal.note("viewed", dataset="people", columns=["*"], views=["rows"])
    journal.note("viewed", dataset="people", columns=["pay"], views=["rows"])
    assert facts(journal)["column-viewed"] == {"column": "age", "views": ["histogram", "rows"]}


def test_a_range_that_was_declared_before_is_not_held_against_a_view(journal: Journal) -> None:
    journal.note("declared", dataset="people", columns=["age"], domains=DOMAINS)
    journal.note("viewed", dataset="people", columns=["age"], views=["histogram"])
    assert "column-viewed" not in facts(journal)
    narrower = {"age": {"lo": "16", "hi": "99"}}
    assert facts(journal, domains=narrower)["column-viewed"]["views"] == ["histogram"]


def test_the_same_content_under_another_name_is_a_question_and_no_fact(journal: Journal, place: Path) -> None:
    journal.note("viewed", dataset="people", table="digest", columns=["age"], views=["rows"])
    journal.note("released", dataset="people", table="digest", columns=["age"])
    assert "digest" not in place.read_text("utf-8")
    assert journal.matches("digest", "people") == ()
    assert journal.matches("another", "citizens") == ()
    (match,) = journal.matches("digest", "citizens")
    assert (match.dataset, match.counts) == ("people", {"viewed": 1, "released": 1})
    assert facts(journal, "citizens") == {}
    # answered now, and once it was noted
    assert journal.matches("digest", "citizens", same_records=["people"]) == ()
    assert journal.matches("digest", "citizens", not_same=["people"]) == ()
    journal.declare_same("citizens", ["people"], same=False)
    assert journal.matches("digest", "citizens") == ()
    assert facts(journal, "citizens") == {}


def test_an_answer_is_a_declaration_that_joins_both_names(journal: Journal) -> None:
    release(journal, "people", table="digest", measured=True)
    given = facts(journal, "citizens", same_records=["people"])
    assert given["same-records"] == {"datasets": ["people"]}
    assert given["earlier-releases"]["count"] == 1
    journal.declare_same("citizens", ["people"])
    assert facts(journal, "citizens") == given
    assert facts(journal, "people")["same-records"] == {"datasets": ["citizens"]}
    journal.declare_same("inhabitants", ["citizens"])
    assert facts(journal, "inhabitants")["same-records"] == {"datasets": ["citizens", "people"]}


def test_uses_without_a_name_are_claimed_by_their_id(journal: Journal) -> None:
    first = journal.note("measured", table="digest")
    journal.note("measured", table="digest")
    journal.note("measured", table="another")
    (match,) = journal.matches("digest", "people")
    assert (match.dataset, match.answer, match.counts) == (None, first, {"measured": 2})
    # which table is at hand does not matter: no table is given here
    claimed = facts(journal, same_records=[first])
    assert claimed == {"records-measured": {"count": 2}}
    journal.declare_same("people", [first])
    assert facts(journal) == claimed
    assert journal.matches("digest", "people") == ()


def test_answers_that_cannot_be_kept_are_refused(journal: Journal) -> None:
    with pytest.raises(OptionError, match="dataset="):
        journal.check_answers(None, ["people"])
    with pytest.raises(OptionError, match="use-00000000"):
        journal.check_answers("people", ["use-00000000"])
    journal.check_answers("people", ["others"])


def test_who_shares_a_ledger_shares_what_was_done(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    mine, theirs = (Journal.open(tmp_path / f"{name}.jsonl", ledger=ledger) for name in ("mine", "theirs"))
    release(mine, table="digest")
    assert len(mine.entries()) == 1
    assert facts(theirs)["earlier-releases"]["count"] == 1
    assert theirs.matches("digest", "citizens")[0].dataset == "people"
    assert facts(Journal.open(tmp_path / "mine.jsonl"))["earlier-releases"]["count"] == 1
    assert Journal.open(tmp_path / "mine.jsonl", ledger="postgresql://host/budget").places == mine.places[:1]


def test_a_place_that_cannot_be_written_is_said_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    journal = Journal.open(tmp_path / "file" / "journal.jsonl")
    release(journal, table="digest")
    assert journal.problem is not None
    assert journal.problem.code == "journal-not-written"
    assert "cannot be" in str(journal.problem)
    assert facts(journal) == {}
    assert journal.matches("digest", "people") == ()


def test_it_is_cleared_as_a_whole_or_by_name(journal: Journal, place: Path) -> None:
    release(journal, "people")
    release(journal, "others")
    assert journal.clear("people") == 1
    assert facts(journal) == {}
    assert facts(journal, "others")["earlier-releases"]["count"] == 1
    assert journal.clear() == 2
    assert [entry.kind for entry in journal.entries()] == ["cleared"]
    assert place.stat().st_mode & 0o777 == 0o600
    release(journal)
    assert facts(journal)["earlier-releases"]["count"] == 1
