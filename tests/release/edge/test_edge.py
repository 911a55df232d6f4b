"""Everything released besides the values is public: neighbouring tables with one transcript give identical bundles.

Types, codes, labels, metadata and documents must not follow the records, and no file tells when, where and by whom it
was written.
"""

from __future__ import annotations

import datetime
import getpass
import os
import shutil
import socket
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.errors import JournalWarning
from shoal.io import read
from shoal.io.table import content_digest
from shoal.journal import PLACE, Journal
from shoal.mechanisms.registry import methods
from tests.mechanisms.kanonymity.mixed import mixed, mixed_schema
from tests.mechanisms.test_conformance import release_of
from tests.privacy.accounting.transcript import recording, replaying
from tests.support.presets import sampled

from . import neighbours
from .neighbours import FORMATS, NAMES, NOMINAL, schema
from .rewrite import rewrite

ORDERED = tuple(name for name in NAMES if name not in NOMINAL)
# every method whose claim is differential privacy of the original records, on columns of every kind that it takes
PRIVATE: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "laplace": ("laplace", NAMES, {}),
    "insensitive-dp, staircase": ("insensitive-dp", ORDERED, {"k": 2, "noise": "staircase"}),
    "ranking-dp, not linked": ("ranking-dp", ORDERED, {"k": 2, "link": False}),
    "ranking-dp, one column": ("ranking-dp", ("rooms",), {"k": 2}),
    "insensitive-dp": ("insensitive-dp", NAMES, {"k": 2}),
    "tree-dp": ("tree-dp", NAMES, {}),
    "tree-dp, add-remove": ("tree-dp", NAMES, {"neighbours": "add-remove"}),
    "pairs-dp": ("pairs-dp", NAMES, {}),
    "pairs-dp, replace-one": ("pairs-dp", NAMES, {"neighbours": "replace-one"}),
    "xm-20": ("xm-20", ("rooms",), {"k": 2}),
    "pram": ("pram", NAMES, {}),
    "pairs-dp, δ": ("pairs-dp", NAMES, {"delta": "0.000001"}),
}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def bundle_of(path: Path, case: str, out: Path, *, gaps: bool = False) -> dict[str, bytes]:
    method, names, options = PRIVATE[case]
    declared = schema(*names, labelled=path.suffix in (".dta", ".sav"), gaps=gaps)
    release = shoal.protect(path, declared, method, epsilon="1", **options)
    assert release.statement.model == ("approximate-dp" if "delta" in options else "dp")
    assert release.statement.publishable
    return files_of(release.save(out))


# every method as text, and one method in every format; all of both with the slow tests
BOTH = [
    pytest.param(case, ending, marks=[] if ending == "csv" or case == "tree-dp" else [pytest.mark.slow])
    for case in PRIVATE
    for ending in FORMATS
]


@pytest.mark.parametrize(("case", "ending"), BOTH)
def test_neighbours_and_one_transcript_give_one_bundle(case: str, ending: str, tmp_path: Path) -> None:
    usual, odd = (
        neighbours.write(tmp_path / f"{name}.{ending}", odd=name == "odd") for name in ("usual", "odd")
    )
    assert usual.read_bytes() != odd.read_bytes()
    for seed in (1, 2):
        with recording(seed) as mine:
            first = bundle_of(usual, case, tmp_path / f"first-{seed}")
        with replaying(mine.draws):
            second = bundle_of(odd, case, tmp_path / f"second-{seed}")
        assert first.keys() == second.keys()
        # what the rows were drawn from is published with them
        assert ("measurements.json" in first) == case.startswith(("pairs-dp", "tree-dp"))
        assert [name for name in first if first[name] != second[name]] == []


def known_bundle(
    path: Path, case: str, out: Path, dataset: str | None, **answers: Any
) -> tuple[dict[str, bytes], list[str]]:
    """The files of a release under a name, and what the journal asks the custodian about it."""
    method, names, options = PRIVATE[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", JournalWarning)
        release = shoal.protect(
            path, schema(*names, labelled=False), method, epsilon="1", dataset=dataset, **answers, **options
        )
    asked = [str(warning.message) for warning in caught if issubclass(warning.category, JournalWarning)]
    return files_of(release.save(out)), asked


# every method under the known name, and three that differ most under another and without one
KNOWN = [
    pytest.param(
        dataset,
        case,
        marks=[]
        if dataset == "people" or case in ("ranking-dp, one column", "tree-dp", "pairs-dp, δ")
        else [pytest.mark.slow],
    )
    for dataset in ("citizens", "people", None)
    for case in PRIVATE
]


@pytest.mark.parametrize(("dataset", "case"), KNOWN)
def test_neighbours_give_one_bundle_when_the_journal_knows_one_of_them(
    case: str, dataset: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal knows one of them by content, with everything that can be recorded; the other it never met.

    Under another name, or without one, only the custodian of the known one is asked. Under the same name, and with the
    same answer, both have the same facts recorded.
    """
    usual, odd = (neighbours.write(tmp_path / f"{name}.csv", odd=name == "odd") for name in ("usual", "odd"))
    method, names, options = PRIVATE[case]
    digest = content_digest(read(odd, strict=False))
    journal = Journal.open()
    journal.note("viewed", dataset="people", table=digest, columns=["*"], views=["rows"])
    use = journal.note("rehearsed", table=digest)
    with pytest.warns(JournalWarning, match=use):
        made = shoal.protect(
            odd, schema(*names, labelled=False), method, epsilon="2", dataset="people", **options
        )
    shoal.evaluate(odd, made, dataset="people")
    before = journal.places[0].read_bytes()
    for answers in [{}] if dataset is None else [{}, {"same_records": ["others", use]}]:
        bundles, questions, run = {}, {}, None
        for name, path in (("usual", usual), ("odd", odd)):
            # both meet the same journal
            again = tmp_path / f"{name} {len(answers)}.jsonl"
            again.write_bytes(before)
            shutil.copy(f"{journal.places[0]}.key", f"{again}.key")
            monkeypatch.setenv(PLACE, str(again))
            with recording(1) if name == "usual" else replaying(run.draws) as run:
                out = tmp_path / f"{name} {len(answers)}"
                bundles[name], questions[name] = known_bundle(path, case, out, dataset, **answers)
        assert [file for file in bundles["odd"] if bundles["odd"][file] != bundles["usual"][file]] == []
        # positive control: what is known under the name is published, and the journal does know the content
        assert (b'"earlier-releases"' in bundles["odd"]["statement.json"]) == (dataset == "people")
        assert (b'"same-records"' in bundles["odd"]["statement.json"]) == bool(answers)
        assert questions["usual"] == []
        assert bool(questions["odd"]) == (dataset != "people" or not answers)


@pytest.mark.parametrize(
    ("case", "ending"),
    [both for both in BOTH if both.values[0] in ("laplace", "tree-dp", "tree-dp, add-remove", "pairs-dp")],
)
def test_whether_a_number_is_missing_shows_nowhere(case: str, ending: str, tmp_path: Path) -> None:
    """One table without any gap, its neighbour with a record that has nothing but gaps."""
    usual, odd = (
        neighbours.write(tmp_path / f"{name}.{ending}", odd=name == "odd", gaps=True)
        for name in ("usual", "odd")
    )
    for seed in (1, 2):
        with recording(seed) as mine:
            first = bundle_of(usual, case, tmp_path / f"first-{seed}", gaps=True)
        with replaying(mine.draws):
            second = bundle_of(odd, case, tmp_path / f"second-{seed}", gaps=True)
        assert [name for name in first if first[name] != second[name]] == []


def test_the_instrument_sees_types_that_follow_the_records(tmp_path: Path) -> None:
    """Positive control: the same columns without declared types. Their statement is tainted for that reason."""
    facts = shoal.Schema.from_dict(
        {"attribute": [{"name": "rooms", "lo": 0, "hi": 20, "source": {"domain": "these records"}}]}
    )
    files = {}
    for odd in (False, True):
        path = neighbours.write(tmp_path / f"{odd}.csv", odd=odd)
        with recording(1):
            release = shoal.protect(path, facts, "laplace", epsilon=1)
        assert not release.statement.publishable
        files[odd] = files_of(release.save(tmp_path / f"out-{odd}", format="parquet"))
    assert [name for name in files[True] if files[True][name] != files[False][name]] == ["data.parquet"]


def test_every_method_that_claims_differential_privacy_is_among_them() -> None:
    claiming = {info.name for info in methods() if "dp" in info.claim.replace(";", " ").split()}
    assert claiming == {method for method, _, _ in PRIVATE.values()}


def preset_release(name: str) -> shoal.Release:
    if name == "anatomy":
        return shoal.protect(mixed(), mixed_schema(), name, k=6)
    return release_of(name, "pyarrow", seed=None)


@pytest.mark.parametrize("name", sampled(info.name for info in methods()))
def test_documents_are_written_again_by_who_never_saw_the_original(name: str, tmp_path: Path) -> None:
    bundle = preset_release(name).save(tmp_path / "bundle")
    rewrite(bundle, tmp_path / "again")
    again = files_of(tmp_path / "again")
    assert set(again) - {"measurements.json"} == {"statement.json", "method.toml", "log.toml", "report.html"}
    assert {file: files_of(bundle)[file] for file in again} == again


def test_documents_are_written_again_in_another_process(tmp_path: Path) -> None:
    path = neighbours.write(tmp_path / "people.csv", odd=True)
    release = shoal.protect(path, schema(labelled=False), "tree-dp", epsilon=1)
    bundle = release.save(tmp_path / "bundle")
    path.unlink()
    command = [sys.executable, "-m", "tests.release.edge.rewrite", str(bundle), str(tmp_path / "again")]
    root = Path(__file__).parents[3]
    subprocess.run(command, check=True, cwd=root)
    again = files_of(tmp_path / "again")
    assert {file: files_of(bundle)[file] for file in again} == again


@pytest.mark.parametrize("ending", FORMATS)
def test_no_file_tells_when_where_and_by_whom_it_was_written(ending: str, tmp_path: Path) -> None:
    path = neighbours.write(tmp_path / f"in.{ending}", odd=True)
    declared = schema(labelled=ending in ("dta", "sav"))
    files = files_of(shoal.protect(path, declared, "tree-dp", epsilon=1).save(tmp_path / "out"))
    now = datetime.datetime.now()
    traces = [now.strftime(form) for form in ("%Y-%m-%d", "%d %b %Y", "%d %b %y", "%d.%m.%Y", "%H:%M:")]
    traces += [str(tmp_path), str(Path.home()), os.getcwd(), socket.gethostname()]
    traces += [getpass.getuser()] if len(getpass.getuser()) > 4 else []
    for name, content in files.items():
        found = [trace for trace in traces if trace.encode() in content]
        assert found == [], f"{name} holds {found}"
