"""The sections of a report, one record each: what a page knows comes in, the sections that it has leave.

A new section is one entry and one template (`shoal/templates/sections/`); `register_section` adds one from outside the
package, whose template is a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.display import internal
from shoal.errors import OptionError
from shoal.method.parts import CANNOT_CHECK, three_parts
from shoal.report.measures import measure_lines
from shoal.report.officer import criteria
from shoal.report.page_figures import attribute_sections, relation_sections
from shoal.report.risk_figures import cluster_figure, learning_strips, risk_strip

if TYPE_CHECKING:
    from shoal.io import Table
    from shoal.report.disclosure import Disclosure
    from shoal.report.risks import Risks
    from shoal.report.subject import Subject


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What a page is made from.

    Attributes:
        before: the original table, None where it is not there.
        measured: what `shoal.evaluate` found, as plain values.
        private: the page holds facts about the original data.
        rows_drawn: the released rows belong to nobody.
        short: what is not worth its time at every release is left out.
        facts: private facts of the release that its mechanism wrote down.
        clusters: sizes of the clusters, by the columns that they are of.
        disclosure: the risk by the quasi-identifiers, before and after.
    """

    subject: Subject
    before: Table | None
    measured: Mapping[str, Any] | None
    risks: Risks
    private: bool
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] | None = None
    clusters: Sequence[tuple[str, Any]] = ()
    short: bool = False
    rows_drawn: bool = False
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


def _terms(page: Page) -> dict[str, Any]:
    return {"three": three_parts(page.subject.statement), "cannot_check": CANNOT_CHECK}


def _columns(page: Page) -> dict[str, Any]:
    return {
        "attributes": attribute_sections(page.subject, page.before, page.measured),
        "remarks": page.remarks,
    }


def _together(page: Page) -> dict[str, Any]:
    # rows that belong to nobody were drawn from what was learned about pairs of columns
    drawn = page.private and page.rows_drawn
    return {"relations": {} if page.short else relation_sections(page.subject, page.before), "drawn": drawn}


def _learning(page: Page) -> dict[str, Any]:
    learning = None if page.measured is None else page.measured["learning"]
    return {
        "learning": learning,
        "learning_strips": {} if learning is None else learning_strips(learning),
    }


def _estimates(page: Page) -> dict[str, Any]:
    return {"estimates": None if page.measured is None else page.measured.get("estimates")}


def _risk(page: Page) -> dict[str, Any]:
    return {"risks": page.risks, "strips": [risk_strip(line) for line in page.risks.lines]}


def _facts(page: Page) -> dict[str, Any]:
    drawn = cluster_figure(page.clusters) if page.clusters else None
    return {"facts": page.facts, "clusters": drawn, "notes": page.notes}


def _strata(page: Page) -> dict[str, Any]:
    """Private facts by stratum: groups and loss, or the cells that were emptied."""
    found = page.facts or {}
    return {"strata": found.get("strata") or (), "emptied": found.get("cells_emptied") or ()}


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
        Section("terms", "Statement in detail", _terms),
        Section("columns", "Columns", _columns),
        Section(
            "together",
            "Columns together",
            _together,
            lambda values: bool(values["relations"].get("correlations") or values["relations"].get("pairs")),
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
        Section(
            "officer",
            "For the data protection officer",
            lambda page: {"criteria": criteria(page.subject.statement, page.risks.lines)},
            lambda values: values["private"],
        ),
        Section("facts", "Facts about the original data", _facts, lambda values: values["private"]),
        Section(
            "strata",
            "Strata and emptied cells",
            _strata,
            lambda values: values["private"] and bool(values["strata"] or values["emptied"]),
        ),
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
        raise OptionError("there-section-already", id=section.id)
    if section.text is None:
        raise OptionError("section-needs-template-text", id=section.id)
    last = _SECTIONS.pop("recipe")
    _SECTIONS[section.id] = section
    _SECTIONS["recipe"] = last
