"""A private measurement never changes a byte of the bundle of an ε-claim: not its data, its verdict or its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.evaluation import assessment as verdicts
from shoal.privacy.verdict import Level, Reason
from shoal.survey import survey, survey_schema
from tests.privacy.accounting.transcript import recording, replaying

from .test_edge import files_of

COLUMNS = ["age", "education", "income"]
CLAIMS: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": "1"},
    "tree-dp": {"epsilon": "1"},
    "pairs-dp": {"epsilon": "1"},
    "pairs-dp with a delta": {"epsilon": "1", "delta": "0.000001"},
    "mdav-dp": {"epsilon": "1", "k": 20},
    "idp-cbls": {"epsilon": "1", "k": 20},
    "laplace, an empty budget": {"epsilon": "1000"},
}


def published(folder: Path, case: str, **more: Any) -> dict[str, bytes]:
    method = case.partition(" with")[0].partition(",")[0]
    arguments = {"columns": COLUMNS, **CLAIMS[case], **more}
    shoal.publish(survey(300), survey_schema(), method, out=folder / "out", **arguments)
    return files_of(folder / "out")


@pytest.mark.parametrize("case", CLAIMS)
def test_measuring_changes_no_byte_of_the_bundle(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(1) as transcript:
        plain = published(tmp_path / "plain", case)
    folder = tmp_path / "measured"
    with replaying(transcript.draws):
        measured = published(folder, case, evaluate=True, internal=folder / "i.html")
    assert measured == plain
    # and whatever is found, the worst and the best
    levels: tuple[Level, ...] = ("red", "green")
    for level in levels:
        found = Reason(level, "What was found.")
        monkeypatch.setattr(verdicts, "_of_risks", lambda lines, most, found=found: [found] if lines else [])
        monkeypatch.setattr(verdicts, "usefulness", lambda utility, found=found: found)
        place = tmp_path / level
        with replaying(transcript.draws):
            assert published(place, case, evaluate=True, internal=place / "i.html") == plain
        assert "What was found." in (place / "i.html").read_text("utf-8")


def test_the_check_sees_a_bundle_that_follows_a_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle written with the verdict of the internal page would be found out."""
    from shoal.report import pages

    with recording(1) as transcript:
        plain = published(tmp_path / "plain", "laplace")
    own = pages.verdict

    def leaking(statement: Any, measured: Any, lines: Any) -> Any:
        found = own(statement, measured, lines)
        worst = verdicts.Measured((Reason("red", "What was found."),))
        return verdicts.Verdict(found.public, worst, counts=True)

    monkeypatch.setattr(pages, "verdict", leaking)
    with replaying(transcript.draws):
        leaked = published(tmp_path / "leaked", "laplace")
    assert leaked["report.html"] != plain["report.html"]
    assert leaked["data.parquet"] == plain["data.parquet"]
