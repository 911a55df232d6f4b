"""The sections of a report, one record each: what a page knows comes in, the sections that it has leave.

A new section is one entry and one template (`shoal/templates/sections/`); `register_section` adds one from outside the
package, whose template is a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.errors import OptionError
from shoal.report.measures import measure_lines
from shoal.report.page_figures import Album, attribute_sections, relation_sections

if TYPE_CHECKING:
    from shoal.io import Table
    from shoal.report.disclosure import Disclosure
    from shoal.report.risks import Risks
    from shoal.report.subject import Subject


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What a page is made from.

    Attributes:
        album: draws the figures.
        before: the original table, None where it is not there.
        measured: what `shoal.evaluate` found, as plain values.
        private: the page holds facts about the original data.
        facts: private facts of the release that its mechanism wrote down.
        clusters: sizes of the clusters, by the columns that they are of.
        disclosure: the risk by the quasi-identifiers, before and after.
    """

    album: Album
    subject: Subject
    before: Table | None
    measured: Mapping[str, Any] | None
    risks: Risks
    private: bool
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] | None = None
    clusters: Sequence[tuple[str, Any]] = ()
    disclosure: Disclosure | None = None


def _nothing(page: Page) -> dict[str, Any]:
    return {}


def _always(values: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a page.

    Attributes:
        id: of its heading, which the contents lead to.
        values: what its template needs, from what the page is made from.
        shown: whether the page has it, by the values of all sections.
        text: the template itself, for a section from outside the package.
    """

    id: str
    title: str
    values: Callable[[Page], dict[str, Any]] = _nothing
    shown: Callable[[Mapping[str, Any]], bool] = _always
    text: str | None = None


def _columns(page: Page) -> dict[str, Any]:
    return {
        "attributes": attribute_sections(page.album, page.subject, page.before),
        "remarks": page.remarks,
    }


def _together(page: Page) -> dict[str, Any]:
    return {"relations": relation_sections(page.album, page.subject, page.before)}


def _learning(page: Page) -> dict[str, Any]:
    learning = None if page.measured is None else page.measured["learning"]
    return {
        "learning": learning,
        "learning_figure": None if learning is None else page.album.learning(learning),
    }


def _estimates(page: Page) -> dict[str, Any]:
    return {"estimates": None if page.measured is None else page.measured.get("estimates")}


def _risk(page: Page) -> dict[str, Any]:
    lines = page.risks.lines
    return {"risks": page.risks, "risk_figure": page.album.risks(lines) if lines else None}


def _facts(page: Page) -> dict[str, Any]:
    drawn = page.album.clusters(page.clusters) if page.clusters else None
    return {"facts": page.facts, "clusters": drawn, "notes": page.notes}


def _log(page: Page) -> dict[str, Any]:
    """What was done; where facts about the original are, with the number of cells that each step changed."""
    counts = {} if page.facts is None else page.facts.get("steps", {})
    return {"log": [(entry, counts.get(entry["words"])) for entry in page.subject.log]}


def _measures(page: Page) -> dict[str, Any]:
    found = page.measured or {}
    return {
        "measured": page.measured,
        "measures": {part: measure_lines(found.get(part, {})) for part in ("utility", "risk")},
    }


_SECTIONS: dict[str, Section] = {
    section.id: section
    for section in (
        Section("terms", "The promise in detail"),
        Section("columns", "Columns", _columns),
        Section(
            "together",
            "Columns together",
            _together,
            lambda values: bool(values["relations"]["correlations"] or values["relations"]["pairs"]),
        ),
        Section("learning", "Learning", _learning, lambda values: bool(values["learning"])),
        Section("estimates", "Survey estimates", _estimates, lambda values: bool(values["estimates"])),
        Section("risk", "Risk", _risk, lambda values: values["private"]),
        Section(
            "disclosure",
            "Disclosure risk",
            lambda page: {"disclosure": page.disclosure},
            lambda values: values["private"] and values["disclosure"] is not None,
        ),
        Section("facts", "Facts about the original data", _facts, lambda values: values["private"]),
        Section("measures", "All measures", _measures, lambda values: bool(values["measured"])),
        Section("log", "What was done", _log, lambda values: bool(values["log"])),
        Section("recipe", "Recipe", lambda page: {"recipe": page.subject.recipe}),
    )
}
SECTIONS: Mapping[str, Section] = _SECTIONS


def section_values(page: Page) -> dict[str, Any]:
    """The values of all sections, and which of them the page has."""
    values: dict[str, Any] = {"private": page.private}
    for section in SECTIONS.values():
        values |= section.values(page)
    return {**values, "sections": tuple(one for one in SECTIONS.values() if one.shown(values))}


def register_section(section: Section) -> None:
    """Add a section from outside the package, before the recipe.

    Raises:
        OptionError: there is one of that name, or it has no template.
    """
    if section.id in SECTIONS:
        raise OptionError(f"there is a section '{section.id}' already: choose another name.")
    if section.text is None:
        raise OptionError(f"the section '{section.id}' needs a template (text=).")
    last = _SECTIONS.pop("recipe")
    _SECTIONS[section.id] = section
    _SECTIONS["recipe"] = last
