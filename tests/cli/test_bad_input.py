"""Invalid input gives one helpful line and status 2, and creates no file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from shoal.cli import run

GOOD = "age,income,town\n" + "".join(f"{20 + i},{1000 + 37 * i},T{i % 3}\n" for i in range(30))
DOMAINS = ["--domain", "age=0:120", "--domain", "income=0:5000"]
USUAL = ["--method", "ranking-dp", "--epsilon", "1", "--k", "3", *DOMAINS, "--out", "out"]


def without(option: str, arguments: list[str] = USUAL) -> list[str]:
    """The arguments with every use of an option taken out."""
    found = [i for i, word in enumerate(arguments) if word == option]
    return [word for i, word in enumerate(arguments) if i not in found and i - 1 not in found]


def instead(option: str, *values: str) -> list[str]:
    return without(option) + [word for value in values for word in (option, value)]


@dataclass(frozen=True)
class Case:
    """A mistake: the content of the table, the words after `shoal protect data.csv`, and what the line must say."""

    content: str | bytes | None
    words: list[str]
    says: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)


def schema(text: str) -> dict[str, str]:
    return {"s.toml": text}


WITH_SCHEMA = [*without("--domain"), "--schema", "s.toml"]
WITH_CONFIG = ["--config", "s.toml", "--out", "out"]
AGE = '[[attribute]]\nname = "age"\nlo = 0\nhi = 120\n'
UNIT = '\n[[attribute]]\nname = "town"\nkind = "nominal"\nrole = "unit"\n'

CASES = {
    # the file
    "missing file": Case(None, USUAL, ("there is no file 'data.csv'",)),
    "empty file": Case("", USUAL, ("'data.csv' is empty",)),
    "header only": Case("age,income\n", USUAL, ("'data.csv' has a header but no rows",)),
    "binary junk": Case(bytes(range(256)) * 9, USUAL, ("'data.csv'",)),
    "null bytes": Case(b"a\x00b,c\n1,2\n", USUAL, ("not a text file",)),
    "not utf-8": Case("größe,income\n1,2\n".encode("latin-1"), USUAL, ("not UTF-8 text", "--encoding")),
    "duplicate columns": Case("age,age\n1,2\n", USUAL, ("two columns named 'age'",)),
    "nameless column": Case("age,\n1,2\n", USUAL, ("column 2 has no name",)),
    "ragged row": Case("age,income\n1,2\n1,2,3\n", USUAL, ("'data.csv': row 2 has 3 fields",)),
    # columns
    "unknown column in --domain": Case(
        GOOD,
        instead("--domain", "age=0:120", "incom=0:5000"),
        ("no column 'incom'", "Did you mean 'income'?"),
    ),
    "unknown column in --columns": Case(GOOD, [*USUAL, "--columns", "age,wage"], ("no column 'wage'",)),
    "column named twice": Case(GOOD, [*USUAL, "--columns", "age,age,income"], ("names 'age' twice",)),
    "one domain missing": Case(
        GOOD, instead("--domain", "age=0:120"), ("column 'income' has no public domain",)
    ),
    "domain of a column left out": Case(
        GOOD, [*USUAL, "--columns", "age"], ("'income'", "which columns does not contain")
    ),
    "text column asked for": Case(
        GOOD,
        [*instead("--method", "optimal-dp"), "--columns", "age,income,town"],
        ("'town'", "it is nominal", "numeric, ordinal or date columns"),
    ),
    "lo above hi": Case(
        GOOD, instead("--domain", "age=120:0", "income=0:5000"), ("'age'", "lo < hi", "120:0")
    ),
    "lo equals hi": Case(GOOD, instead("--domain", "age=5:5", "income=0:5000"), ("'age'", "lo < hi")),
    "domain without bounds": Case(
        GOOD, instead("--domain", "age"), ("--domain", "column=lo:hi", "got 'age'")
    ),
    "domain in words": Case(GOOD, instead("--domain", "age=low:high"), ("--domain 'age=low:high'", "'low'")),
    "infinite domain": Case(GOOD, instead("--domain", "age=0:inf"), ("must be finite",)),
    "absurd domain": Case(GOOD, instead("--domain", "age=0:1e999999999"), ("1e150",)),
    "domain given twice": Case(GOOD, [*USUAL, "--domain", "age=0:99"], ("'age' twice",)),
    "value outside the domain": Case(
        GOOD,
        instead("--domain", "age=0:40", "income=0:5000"),
        ("some values of column 'age' lie outside 0:40: widen", "--outside clip"),
    ),
    "domain without a whole number": Case(
        GOOD,
        [*instead("--domain", "age=0.2:0.8", "income=0:5000"), "--type", "age=integer", "--outside", "clip"],
        ("'age'", "Int64"),
    ),
    "only text columns": Case(
        "town\nA\nB\n",
        without("--domain"),
        ("no numeric, ordinal, date or nominal column", "'town'", "values"),
    ),
    # values
    "text in a numeric column": Case(GOOD + "old,5,T\n", USUAL, ("'age'", "row 31", "'old'")),
    "missing value": Case(
        GOOD + ",5,T\n", USUAL, ("'age'", "missing values, the first in row 31", "--missing", "drop")
    ),
    "NaN": Case(GOOD + "NaN,5,T\n", USUAL, ("'age'", "missing", "row 31")),
    "infinity": Case(GOOD + "inf,5,T\n", USUAL, ("'age'", "infinite", "row 31")),
    "nothing but missing values": Case(
        "age,income\n,1\n,2\n3,\n", [*USUAL, "--missing", "drop"], ("every row has a missing value",)
    ),
    "no positive value for a domain from the data": Case(
        "age\n-1\n-2\n-3\n", [*without("--domain"), "--domain-from-data", "1.5"], ("no positive value",)
    ),
    # settings
    "k of zero": Case(GOOD, instead("--k", "0"), ("k must be", "0")),
    "negative k": Case(GOOD, instead("--k", "-3"), ("k must be", "-3")),
    "k in words": Case(GOOD, instead("--k", "many"), ("--k",)),
    "k above n": Case(GOOD, instead("--k", "31"), ("k = 31", "30")),
    "epsilon missing": Case(GOOD, without("--epsilon"), ("epsilon is missing",)),
    "epsilon of zero": Case(GOOD, instead("--epsilon", "0"), ("epsilon", "'0'")),
    "negative epsilon": Case(GOOD, instead("--epsilon", "-1"), ("epsilon", "'-1'")),
    "epsilon NaN": Case(GOOD, instead("--epsilon", "nan"), ("epsilon", "nan")),
    "infinite epsilon": Case(GOOD, instead("--epsilon", "inf"), ("epsilon", "inf")),
    "huge epsilon": Case(GOOD, instead("--epsilon", "1e300"), ("epsilon", "1e300")),
    "absurd epsilon": Case(GOOD, instead("--epsilon", "1e999999999"), ("epsilon",)),
    "epsilon in words": Case(GOOD, instead("--epsilon", "some"), ("epsilon", "some")),
    "epsilon too small for the domain": Case(
        GOOD,
        [*without("--epsilon", instead("--domain", "age=0:5e9", "income=0:5e9")), "--epsilon", "1e-9"],
        ("exceeds 2^52", "larger epsilon"),
    ),
    "unknown method": Case(
        GOOD, instead("--method", "ranking-pd"), ("unknown method 'ranking-pd'", "Did you mean 'ranking-dp'?")
    ),
    "method missing": Case(GOOD, without("--method"), ("forms no groups", "leave k out", "ranking-dp")),
    "option of another method": Case(GOOD, [*USUAL, "--normalise", "domain"], ("no option 'normalise'",)),
    "unknown option": Case(GOOD, [*USUAL, "--epsilom", "1"], ("--epsilom",)),
    "unknown remainder": Case(GOOD, [*USUAL, "--remainder", "midle"], ("'midle'", "Did you mean 'middle'?")),
    "unknown split": Case(GOOD, [*USUAL, "--split", "fair"], ("split 'fair'", "proportional")),
    "split without a column": Case(GOOD, [*USUAL, "--split", "age=1"], ("'income'",)),
    "split weight of zero": Case(GOOD, [*USUAL, "--split", "age=0,income=1"], ("'age'", "above 0")),
    "unknown outside": Case(GOOD, [*USUAL, "--outside", "ignore"], ("outside 'ignore'",)),
    "unknown missing": Case(GOOD, [*USUAL, "--missing", "guess"], ("missing 'guess'",)),
    "unknown format": Case(GOOD, [*USUAL, "--format", "xlsx"], ("format 'xlsx'",)),
    "negative seed": Case(GOOD, [*USUAL, "--seed", "-1"], ("seed",)),
    "groups that leave a column out": Case(
        GOOD,
        [*instead("--method", "mdav-dp"), "--groups", "age"],
        ("groups does not contain column 'income'",),
    ),
    "labels without labels": Case(
        GOOD, [*instead("--method", "mdav-dp"), "--partition", "given"], ("needs labels",)
    ),
    # schema and recipe files
    "missing schema": Case(GOOD, WITH_SCHEMA, ("no schema file 's.toml'",)),
    "broken schema": Case(GOOD, WITH_SCHEMA, ("'s.toml' is not valid TOML",), schema("[[attribute]\nname")),
    "empty schema": Case(GOOD, WITH_SCHEMA, ("[[attribute]]",), schema("")),
    "schema entry without a name": Case(
        GOOD, WITH_SCHEMA, ("needs a name",), schema("[[attribute]]\nlo = 0\n")
    ),
    "schema with an unknown key": Case(
        GOOD, WITH_SCHEMA, ("'age'", "unknown key 'high'"), schema(AGE + "high = 3\n")
    ),
    "schema with an unknown role": Case(
        GOOD, WITH_SCHEMA, ("role 'secret'",), schema(AGE + 'role = "secret"\n')
    ),
    "schema with half a domain": Case(
        GOOD, WITH_SCHEMA, ("'age'", "both lo and hi"), schema('[[attribute]]\nname = "age"\nlo = 0\n')
    ),
    "schema with a step of zero": Case(
        GOOD, WITH_SCHEMA, ("step must be greater than 0",), schema(AGE + "step = 0\n")
    ),
    "schema with a step too fine": Case(
        GOOD, WITH_SCHEMA, ("too fine",), schema(AGE + "step = 0.00000000000000001\n")
    ),
    "schema with a column twice": Case(GOOD, WITH_SCHEMA, ("'age' twice",), schema(AGE + AGE)),
    "schema with a column the table lacks": Case(
        GOOD, WITH_SCHEMA, ("no column 'wage'",), schema(AGE + '[[attribute]]\nname = "wage"\n')
    ),
    "schema that misspells ordered": Case(GOOD, WITH_SCHEMA, ("ordered",), schema(AGE + "ordered = 3\n")),
    "person with several rows": Case(
        GOOD, WITH_SCHEMA, ("unit column 'town'", "declare max_rows"), schema(AGE + UNIT)
    ),
    "person with more rows than declared": Case(
        GOOD,
        WITH_SCHEMA,
        ("'town'", "a unit has more rows than the declared max_rows = 4"),
        schema(AGE + UNIT + "max_rows = 4\n"),
    ),
    "max_rows that is no number": Case(
        GOOD, WITH_SCHEMA, ("max_rows", "positive integer"), schema(AGE + UNIT + 'max_rows = "two"\n')
    ),
    "missing recipe": Case(GOOD, WITH_CONFIG, ("no recipe 's.toml'",)),
    "broken recipe": Case(GOOD, WITH_CONFIG, ("not valid TOML",), schema("method =")),
    "recipe without a method": Case(GOOD, WITH_CONFIG, ("does not name a method",), schema("epsilon = 1\n")),
    "recipe with an unknown key": Case(
        GOOD, WITH_CONFIG, ("unknown key 'sede'",), schema('method = "laplace"\nsede = 1\n')
    ),
    "recipe whose method is a number": Case(GOOD, WITH_CONFIG, ("method",), schema("method = 3\n")),
    "recipe whose columns are a number": Case(
        GOOD, WITH_CONFIG, ("columns",), schema('method = "laplace"\nepsilon = 1\ncolumns = 3\n')
    ),
    "recipe whose groups are a number": Case(
        GOOD, [*WITH_CONFIG, *DOMAINS], ("groups",), schema('method = "mdav-dp"\nepsilon = 1\ngroups = 3\n')
    ),
    "recipe whose weights are words": Case(
        GOOD,
        [*WITH_CONFIG, *DOMAINS],
        ("split", "'age'"),
        schema('method = "laplace"\nepsilon = 1\n[split]\nage = "much"\n'),
    ),
    # where the result goes
    "out missing": Case(GOOD, without("--out"), ("--out is missing",)),
    "out is not empty": Case(GOOD, USUAL, ("'out' is not empty",), {"out/notes.txt": "mine"}),
    "out is a file": Case(GOOD, USUAL, ("'out' is a file",), {"out": "mine"}),
    "out below a file": Case(GOOD, instead("--out", "a/b/out"), ("a' is a file", "'a/b/out'"), {"a": "mine"}),
    "out with an endless name": Case(GOOD, instead("--out", "x" * 300), ("name too long",)),
    "internal inside out": Case(GOOD, [*USUAL, "--internal", "out/internal.html"], ("inside the published",)),
    "internal is out": Case(GOOD, [*USUAL, "--internal", "out"], ("inside the published",)),
    "internal deep inside out": Case(
        GOOD, [*USUAL, "--internal", "x/../out/a/i.html"], ("inside the published",)
    ),
    "internal is a folder": Case(GOOD, [*USUAL, "--internal", "."], ("is a folder",)),
    "internal exists": Case(GOOD, [*USUAL, "--internal", "i.html"], ("already exists",), {"i.html": "mine"}),
}


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def lay_out(case: Case, folder: Path) -> None:
    if case.content is not None:
        content = case.content.encode() if isinstance(case.content, str) else case.content
        (folder / "data.csv").write_bytes(content)
    for name, text in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def refused(words: list[str], capsys: pytest.CaptureFixture[str], folder: Path) -> str:
    """Run, and check all that every refusal must do; gives the one line back."""
    before = snapshot(folder)
    assert run(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("shoal: ")
    assert printed.err.endswith("\n")
    assert printed.err.count("\n") == 1
    assert snapshot(folder) == before
    return printed.err.lower()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_protect_refuses(case: Case, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(case, here)
    line = refused(["protect", "data.csv", *case.words], capsys, here)
    for fragment in case.says:
        assert fragment.lower() in line


def test_everything_that_is_wrong_is_said_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns without a domain, a gap, an outlier, a method without ε: a line each."""
    header = "age,income,rent,gaps,far\n"
    (here / "data.csv").write_text(header + "".join(f"{20 + i},5,7,{i or ''},{i}\n" for i in range(9)))
    words = [*without("--epsilon", without("--domain")), "--domain", "gaps=0:9", "--domain", "far=0:7"]
    assert run(["protect", "data.csv", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("shoal: ") for line in lines)
    told = [
        "epsilon is missing",
        "column 'gaps' has missing values, the first in row 1",
        "column 'age' has no public domain: give one (--domain 'age=lo:hi')",
        "column 'income' has no public domain",
        "column 'rent' has no public domain",
        "some values of column 'far' lie outside 0:7: widen",
    ]
    assert len(lines) == len(told)
    for words_of, line in zip(told, lines, strict=True):
        assert words_of in line
    assert [path.name for path in here.iterdir()] == ["data.csv"]


def test_the_arguments_of_the_cases_work_on_a_good_table(here: Path) -> None:
    lay_out(Case(GOOD, USUAL, ()), here)
    assert run(["protect", "data.csv", *USUAL]) == 0
    assert {path.name for path in (here / "out").iterdir()} == {
        *("data.csv", "statement.json", "method.toml", "log.toml", "report.html")
    }


def test_unwritable_folder(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(Case(GOOD, USUAL, ()), here)
    monkeypatch.setattr(os, "access", lambda path, mode, **_: not mode & os.W_OK)
    assert "no permission to write" in refused(["protect", "data.csv", *USUAL], capsys, here)


def test_disk_that_fills_up(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(Case(GOOD, USUAL, ()), here)

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shoal.report.public_report", full)
    words = [
        "protect",
        "data.csv",
        *instead("--out", "a/b/out"),
        "--internal",
        "c/internal.html",
        # little noise: nothing else is to be said
        "--epsilon",
        "9",
    ]
    assert "no space left" in refused(words, capsys, here)


def test_folder_and_odd_ending_as_input(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "data.csv").mkdir()
    (here / "data.ods").write_text("x")
    assert "is a folder" in refused(["protect", "data.csv", *USUAL], capsys, here)
    assert "unknown file extension" in refused(["protect", "data.ods", *USUAL], capsys, here)
    assert "name too long" in refused(["protect", "x" * 300 + ".csv", *USUAL], capsys, here)


def test_broken_and_empty_parquet(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "junk.parquet").write_bytes(b"PAR1" + bytes(100))
    assert "cannot be read as parquet" in refused(["protect", "junk.parquet", *USUAL], capsys, here)
    parquet.write_table(pa.table({"age": pa.array([], pa.int64())}), here / "none.parquet")
    assert "no rows" in refused(["protect", "none.parquet", *USUAL], capsys, here)
    parquet.write_table(
        pa.table({"age": np.arange(9.0), "income": [1.0] * 8 + [np.inf]}), here / "inf.parquet"
    )
    assert "'income' has an infinite value in row 9" in refused(
        ["protect", "inf.parquet", *USUAL], capsys, here
    )


OTHER_COMMANDS: dict[str, tuple[list[str], str]] = {
    "unknown command": (["protekt"], "protekt"),
    "no table": (["protect"], "data"),
    "unknown method listed": (["methods", "laplas"], "did you mean 'laplace'?"),
    "schema of a missing table": (["schema", "none.csv"], "no file 'none.csv'"),
    "schema over a file": (["schema", "data.csv", "--out", "data.csv"], "already exists"),
    "schema into nowhere": (["schema", "data.csv", "--out", "no/s.toml"], "no/s.toml"),
    "evaluate one table": (["evaluate", "data.csv"], "released"),
    "evaluate a missing table": (["evaluate", "data.csv", "none.csv"], "no file 'none.csv'"),
    "evaluate unrelated tables": (["evaluate", "data.csv", "other.csv"], "no common column"),
    "evaluate an unknown column": (["evaluate", "data.csv", "data.csv", "--columns", "wage"], "'wage'"),
    "demo over a folder": (["demo", "--out", "full"], "not empty"),
    "demo of nobody": (["demo", "--people", "3"], "--people"),
}


@pytest.mark.parametrize(("words", "says"), OTHER_COMMANDS.values(), ids=OTHER_COMMANDS)
def test_other_commands_refuse(
    words: list[str], says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "data.csv").write_text(GOOD)
    (here / "other.csv").write_text("x\n1\n")
    (here / "full").mkdir()
    (here / "full" / "notes.txt").write_text("mine")
    assert says in refused(words, capsys, here)


STARTERS: dict[str, Callable[[], list[str]]] = {
    "python -m shoal": lambda: [sys.executable, "-m", "shoal"],
    "shoal": lambda: [str(Path(sys.executable).with_name("shoal"))],
}


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(STARTERS["python -m shoal"], marks=pytest.mark.slow, id="python -m shoal"),
        pytest.param(STARTERS["shoal"], id="shoal"),
    ],
)
def test_the_real_command_refuses_in_one_line(start: Callable[[], list[str]], tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(GOOD + "old,5,T\n")
    done = subprocess.run(
        [*start(), "protect", "data.csv", *USUAL], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "shoal: column 'age' should hold numbers, but row 31 holds 'old': correct it, declare it missing with --na "
        "'old', or leave the column out.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]
