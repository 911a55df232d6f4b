"""The thesis as a whole: chapters are put together, and what sums them up follows their verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from papers import Claim, Desk, Erratum, Number, Section, Series, Study, thesis
from papers.study import ClaimVerdict
from papers.thesis import contributions
from tests.conftest import data_file


def made_up(chapter: str, verdict: ClaimVerdict) -> Study:
    """A chapter with nothing but the statements that summaries rest on."""
    said = [
        one for summary in contributions.SUMMARIES if summary.chapter == chapter for one in summary.rests_on
    ]
    claims = [Claim(chapter, f"{one} and so on.", "found", verdict) for one in dict.fromkeys(said)]
    return Study(
        chapter,
        "",
        [Section(chapter, numbers=[Number(chapter, "x", "1", 1.0)], claims=claims)],
        [Erratum(chapter, "a", "b", "c")],
        [Series(chapter, ("x",), [(1,)])],
    )


@pytest.mark.parametrize("verdict", ["holds", "holds partly", "fails"])
def test_summaries_follow_the_chapters(verdict: ClaimVerdict) -> None:
    chapters = {name: made_up(name, verdict) for name in thesis.CHAPTERS}
    section = contributions.section(chapters)
    assert {claim.verdict for claim in section.claims[: len(contributions.SUMMARIES)]} == {verdict}
    # the background is measured or cited, whatever the chapters say
    assert [claim.verdict for claim in section.claims[len(contributions.SUMMARIES) :]] == [
        "holds",
        "holds",
        "holds partly",
        *["not tested"] * 5,
    ]


def test_a_mixture_holds_partly() -> None:
    assert contributions.combined(["holds", "fails"]) == "holds partly"
    assert contributions.combined(["holds partly", "fails"]) == "holds partly"


def test_laplace_noise_loses_epsilon_at_most_and_less_scale_more() -> None:
    assert 0.9 < contributions.largest_laplace_loss(3, 1.0, 500) <= 1 + 1e-9
    assert contributions.largest_laplace_loss(3, 1.1, 500) > 1


def test_many_accurate_counts_give_the_bits_away_and_few_or_wrong_ones_do_not() -> None:
    assert contributions.reconstructed(64, 256, 1) > 0.95
    assert contributions.reconstructed(64, 256, 200) < 0.8
    assert contributions.reconstructed(64, 8, 1) < 0.9


def test_all_chapters_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        def __init__(self, name: str) -> None:
            self.name = name.rsplit(".", 1)[1]

        def study(self, desk: Desk) -> Study:
            return made_up(self.name, "holds")

    monkeypatch.setattr(thesis, "import_module", Module)
    found = thesis.study(Desk(Path()))
    assert [section.title for section in found.sections[:-1]] == list(thesis.CHAPTERS)
    assert len(found.errata) == len(found.series) == len(thesis.CHAPTERS)
    assert len(found.numbers) == len(thesis.CHAPTERS)


@pytest.mark.slow
def test_the_quick_study_judges_everything() -> None:
    data_file("adult.csv")
    data_file("eia.csv")
    found = thesis.study(Desk(data_file("census.csv").parent, quick=True))
    assert all(number.why for number in found.numbers if number.verdict == "differs")
    assert len({series.name for series in found.series}) == len(found.series)
    assert len({figure.name for figure in found.figures}) == len(found.figures)
