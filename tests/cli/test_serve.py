"""The commands around the query server: serve, ask, token, ledger, and releases that are charged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cli import run
from shoal.errors import install_words

SURVEY = ["--token-file", "served/analyst.token"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """`shoal serve --demo` as a process, its folder's parent and its address."""
    here = tmp_path_factory.mktemp("served")
    words = [
        sys.executable,
        "-m",
        "shoal",
        "serve",
        "--data",
        "served",
        "--demo",
        "--port",
        "0",
        "--pace",
        "0",
    ]
    process = subprocess.Popen(words, cwd=here, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    made, serving = process.stderr.readline(), process.stderr.readline()
    assert "a token for an analyst is in served/analyst.token" in made
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
    reader.start()
    yield here, serving.partition(" on ")[2].partition(" ")[0]
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0
    reader.join()
    assert all(json.loads(line)["event"] in ("serving", "request") for line in lines), lines


@pytest.fixture
def here(served: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(served[0])
    monkeypatch.setenv("SHOAL_URL", served[1])
    return served[0]


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """What a command prints, on both streams."""
    assert run(list(words)) == status
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_the_demo_folder_is_for_its_owner(here: Path) -> None:
    assert (here / "served").stat().st_mode & 0o077 == 0
    assert (here / "served" / "analyst.token").stat().st_mode & 0o077 == 0


def test_ask_describes_previews_answers_and_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, "ask", "survey", *SURVEY)
    assert "income (numeric, 0 to 300000)" in text
    assert "ε you have left: 2." in text
    mean = ["ask", "survey", "mean", "--column", "income", *SURVEY]
    assert "Costs ε 0.5, adds 0.5" in said(capsys, *mean, "--epsilon", "0.5", "--preview")
    text = said(capsys, *mean, "--epsilon", "0.5", "--key", "one")
    assert "ε-differential privacy of the original records, ε = 0.5 per row" in text
    value = text.splitlines()[0]
    assert said(capsys, *mean, "--epsilon", "0.5", "--key", "one").splitlines()[0] == value
    conditions = ["--where", "age >= 65", "--where", '{"column": "region", "op": "in", "values": ["North"]}']
    document = json.loads(
        said(capsys, "ask", "survey", "count", *conditions, "--epsilon", "0.25", "--json", *SURVEY)
    )
    assert document["question"]["where"]["and"][0] == {"column": "age", "op": ">=", "value": "65"}
    assert document["statement"]["epsilon"] == "1/4"
    assert len(document["receipt"]["head"]) == 64
    edges = ["--option", "edges=[0, 100000, 300000]", "--epsilon", "0.25", "--column", "income"]
    assert "[0, 100000)" in said(capsys, "ask", "survey", "histogram", *edges, *SURVEY)
    asked = '{"kind": "quantile", "column": "income", "q": "0.5"}'
    said(capsys, "ask", "survey", asked, "--epsilon", "0.75", *SURVEY)
    refused = said(capsys, *mean, "--epsilon", "0.5", status=2)
    assert refused.splitlines() == [
        "shoal: The remaining privacy budget does not allow this query. No privacy budget was used. "
        "Requested 0.5, remaining 0.25, missing "
        "0.25 (budget of the analyst)."
    ]
    assert "more than is left" in said(capsys, *mean, "--epsilon", "0.5", "--preview")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ask", "survey", "meen", "--epsilon", "1", *SURVEY], "Did you mean 'mean'?"),
        (["ask", "nothing", *SURVEY], "There is no such data set or page."),
        (["ask", "survey", '{"kind"', *SURVEY], "the question starts like JSON but is not valid JSON"),
        (["ask", "survey", "count", "--where", "age", *SURVEY], "--where must be a condition, got 'age'"),
        (
            ["ask", "survey", "count", "--option", "q", *SURVEY],
            "--option must have the form name=value, got 'q'",
        ),
        (["ask", "survey", "--token-file", "nowhere"], "cannot read the token file 'nowhere'"),
        (["ask", "survey"], "no token was given"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    expected: str,
) -> None:
    monkeypatch.delenv("SHOAL_TOKEN", raising=False)
    text = said(capsys, *words, status=2)
    assert expected in text
    assert len(text.splitlines()) == 1


def test_ledger_shows_verifies_and_exports(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = ["--epsilon", "0", "--key", "two"]
    said(capsys, "ask", "survey", "count", *SURVEY, *key[2:], "--epsilon", "0.01")
    path = "served/ledger.sqlite"
    assert "survey (replace-one): ε" in said(capsys, "ledger", "show", path)
    (standing,) = json.loads(said(capsys, "ledger", "show", path, "--json"))
    assert standing["analysts"].keys() == {"demo"}
    text = said(capsys, "ledger", "verify", path, "--head", standing["head"])
    assert f"{standing['entries']} entries, no problem found. Last hash {standing['head']}" in text
    assert "Every named checkpoint is in the ledger." in text
    text = said(capsys, "ledger", "verify", path, "--head", "f" * 64, status=2)
    assert "is not in this ledger" in text
    lines = said(capsys, "ledger", "export", path).splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(1, standing["entries"] + 1))
    assert run(["ledger", "export", path, "--out", "entries.jsonl"]) == 0
    assert Path("entries.jsonl").read_text().splitlines() == lines
    assert "exists" in said(capsys, "ledger", "export", path, "--out", "entries.jsonl", status=2)
    assert "ledger 'none.sqlite' does not exist" in said(capsys, "ledger", "show", "none.sqlite", status=2)
    assert not Path("none.sqlite").exists()


def test_tokens_are_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--data", str(tmp_path)]
    assert run(["token", "new", *folder, "--name", "ada", "--dataset", "survey"]) == 0
    printed = capsys.readouterr()
    text = printed.out.strip()
    assert text.startswith("shoal_")
    assert "does not store it" in printed.err
    run(["token", "new", *folder, "--name", "hilda", "--role", "holder"])
    capsys.readouterr()
    listed = json.loads(said(capsys, "token", "list", *folder, "--json"))
    assert [(entry["name"], entry["role"], entry["datasets"]) for entry in listed] == [
        ("ada", "analyst", ["survey"]),
        ("hilda", "holder", []),
    ]
    assert "ada (analyst)" in said(capsys, "token", "list", *folder)
    number = listed[0]["id"]
    assert "has been revoked" in said(capsys, "token", "revoke", *folder, number)
    assert "there is no token" in said(capsys, "token", "revoke", *folder, number, status=2)
    assert "hilda" in said(capsys, "token", "list", *folder)
    assert "role 'king'" in said(capsys, "token", "new", *folder, "--name", "x", "--role", "king", status=2)


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    """As in an environment where the packages are not installed."""
    code = (
        "import sys; sys.modules['fastapi'] = sys.modules['sqlalchemy'] = None\n"
        "from shoal.cli import run\n"
        "run(['ledger', 'show', 'x'])\n"
        "sys.exit(run(['serve', '--data', 'x', '--demo']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"shoal: the ledger needs the extra 'server': {install_words('server')}.",
        f"shoal: the query server needs the extra 'server': {install_words('server')}.",
    ]
    assert not os.listdir(tmp_path)


def test_what_cannot_be_served_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no folder" in said(
        capsys, "serve", "--data", str(tmp_path / "none"), "--port", "0", status=2
    )
    text = said(capsys, "serve", "--data", str(tmp_path), "--host", "192.0.2.1", "--port", "0", status=2)
    assert "cannot listen on 192.0.2.1" in text


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "people.csv"
    path.write_text("age,income\n" + "".join(f"{20 + i},{1000 + 37 * i}\n" for i in range(30)))
    return path


def protect(out: str, *words: str, method: str = "laplace") -> int:
    domains = ["--domain", "age=0:120", "--domain", "income=0:5000"]
    domains += ["--type", "age=integer", "--type", "income=integer"]
    start = ["protect", "people.csv", "--method", method, *domains, "--out", out, "--ledger", "ledger.sqlite"]
    named = [] if "--dataset" in words else ["--dataset", "people"]
    return run([*start, "--epsilon", "0.5", *named, *words])


def test_protect_charges_the_ledger_and_warns_the_second_time(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert protect("one") == 0
    assert "released before" not in capsys.readouterr().err
    assert protect("two", "--k", "3", method="mdav-dp") == 0
    assert "this table was released before" in capsys.readouterr().err
    assert protect("three", "--dataset", "another") == 0
    warned = capsys.readouterr().err
    assert "with laplace (dp, ε = 0.5), data set 'people'" in warned
    assert "with mdav-dp (dp-given-partition, ε = 0.5)" in warned
    text = said(capsys, "ledger", "show", "ledger.sqlite")
    assert "people (replace-one): ε 0.5 spent, no ceiling" in text
    assert "with mdav-dp (dp-given-partition, not counted)" in text
    assert "another (replace-one): ε 0.5 spent" in text


def test_another_table_is_not_warned_about(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert protect("one") == 0
    table.write_text(table.read_text() + "77,777\n")
    capsys.readouterr()
    assert protect("two") == 0
    assert "released before" not in capsys.readouterr().err


def test_a_release_respects_the_ceiling_of_a_served_data_set(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fractions import Fraction

    from shoal.io.table import fingerprint
    from shoal.ledger import Register, open_ledger

    ledger = open_ledger("ledger.sqlite")
    ledger.register(Register("served", "replace-one", Fraction(1), fingerprint=fingerprint(table)))
    ledger.register(Register("counted", "add-remove", Fraction(1)))
    assert protect("one", "--dataset", "served") == 0
    assert "queries about this table are answered as data set 'served'" in capsys.readouterr().err
    assert protect("two", "--dataset", "served") == 0
    capsys.readouterr()
    assert protect("three", "--dataset", "served") == 2
    assert "epsilon 0.5 was requested, but only 0 remains" in capsys.readouterr().err
    assert not Path("three").exists()
    assert protect("four", "--k", "3", "--dataset", "served", method="mdav-dp") == 2
    assert "has a ceiling, but this release (dp-given-partition) has no ε" in capsys.readouterr().err
    assert protect("five", "--dataset", "counted") == 2
    assert "'add-remove', but this release claims 'replace-one'" in capsys.readouterr().err
    assert ledger.standing("served").spent == 1
    ledger.close()


def test_a_dry_run_charges_nothing(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert protect("one", "--dry-run") == 0
    assert not Path("ledger.sqlite").exists()
