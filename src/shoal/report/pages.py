"""Report pages: public, internal and comparison reports, each a self-contained HTML document.

One template makes all three: the public report, the internal report of a release, and the comparison of a bundle
with its original. A page has no script and loads nothing: it forbids both itself.

A new section is one entry and one template (`shoal/templates/sections/`); `register_section` adds a third-party
section, whose template is given as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.columns import read_declared
from shoal.display import internal
from shoal.errors import InputError, OptionError, closest
from shoal.evaluation import RISK_WORDS, USE_WORDS, RiskLine, most_moved, verdict
from shoal.io import Table
from shoal.look import tokens
from shoal.privacy import CANNOT_CHECK, three_parts
from shoal.progress import Progress, silent
from shoal.report.differences import different_rows, percent_words
from shoal.report.figures import (
    attribute_sections,
    cluster_figure,
    learning_strips,
    relation_sections,
    risk_strip,
)
from shoal.report.findings import (
    Disclosure,
    Findings,
    Risks,
    Subject,
    attacked,
    disclosed,
    find,
    measure_lines,
    of_bundle,
    of_release,
    published,
)
from shoal.report.words import NOT_ANY, criteria, epsilon_words, explanation, k_words
from shoal.text import Message, roughly

if TYPE_CHECKING:
    import jinja2

    from shoal.evaluation import Evaluation
    from shoal.release import Release


PUBLIC, INTERNAL, COMPARISON = "Public report", "Internal report", "Comparison"
# runs of learning for a report: enough for an interval
_RUNS = 3
# what the statement of synthetic rows says of them
NO_SAMPLE = "rows-are-no-sample"


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """The data of a page.

    Attributes:
        before: the original table, None where it is not available.
        measured: the results of `shoal.evaluate`, as plain values.
        private: the page holds facts about the original data.
        rows_drawn: the released rows are synthetic records.
        short: leave out what takes too long for every release.
        facts: private facts of the release recorded by its mechanism.
        clusters: sizes of the clusters, by the columns that define them.
        disclosure: the risk by the quasi-identifiers, before and after.
        numbers: intervals of means and shares, from the public numbers of the release.
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
    numbers: Sequence[Any] = ()


def _nothing(page: Page) -> dict[str, Any]:
    return {}


def _always(values: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a page.

    Attributes:
        id: of its heading, the target of links in the contents.
        values: computes what its template needs from the page's data.
        shown: whether the page has it, given the values of all sections.
        text: the template itself, for a third-party section.
    """

    id: str
    title: str
    values: Callable[[Page], dict[str, Any]] = _nothing
    shown: Callable[[Mapping[str, Any]], bool] = _always
    text: str | None = None


def _terms(page: Page) -> dict[str, Any]:
    return {"three": three_parts(page.subject.statement), "cannot_check": CANNOT_CHECK}


def _numbers(page: Page) -> dict[str, Any]:
    """Main numbers with intervals; the section only warns where a method has none."""
    terms = page.subject.statement.get("terms", {}).get("conditions", ())
    said = any(term.get("code") == NO_SAMPLE for term in terms)
    cautions: dict[str, list[str]] = {}
    for one in page.numbers:
        for flag in one.flags:
            cautions.setdefault(one.words_of(flag), []).append(one.name)
    return {"numbers": page.numbers, "cautions": cautions, "no_sample": said and not page.private}


def _columns(page: Page) -> dict[str, Any]:
    return {
        "attributes": attribute_sections(page.subject, page.before, page.measured),
        "remarks": page.remarks,
    }


def _together(page: Page) -> dict[str, Any]:
    # synthetic records were drawn from a model of the pairs of columns
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


def _section_facts(page: Page) -> dict[str, Any]:
    drawn = cluster_figure(page.clusters) if page.clusters else None
    return {"facts": page.facts, "clusters": drawn, "notes": page.notes}


def _strata(page: Page) -> dict[str, Any]:
    """Private facts by stratum: groups and loss, or suppressed cells."""
    found = page.facts or {}
    return {"strata": found.get("strata") or (), "emptied": found.get("cells_emptied") or ()}


def _log(page: Page) -> dict[str, Any]:
    """The processing steps; on internal pages with the number of cells that each step changed."""
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
        Section("numbers", "Main numbers, with intervals", _numbers, lambda values: values["no_sample"]),
        Section("columns", "Columns", _columns),
        Section(
            "together",
            "Relations between columns",
            _together,
            lambda values: bool(values["relations"].get("correlations") or values["relations"].get("pairs")),
        ),
        Section("learning", "Prediction", _learning, lambda values: bool(values["learning"])),
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
        Section("facts", "Facts about the original data", _section_facts, lambda values: values["private"]),
        Section(
            "strata",
            "Strata and suppressed cells",
            _strata,
            lambda values: values["private"] and bool(values["strata"] or values["emptied"]),
        ),
        Section("measures", "All measures", _measures, lambda values: bool(values["measured"])),
        Section("log", "Processing log", _log, lambda values: bool(values["log"])),
        Section("recipe", "Recipe", lambda page: {"recipe": page.subject.recipe}),
    )
}
SECTIONS: Mapping[str, Section] = _SECTIONS


def section_values(page: Page) -> dict[str, Any]:
    """The values of all sections, and the sections that the page has."""
    values: dict[str, Any] = {"private": page.private}
    for section in SECTIONS.values():
        values |= section.values(page)
    return {**values, "sections": tuple(one for one in SECTIONS.values() if one.shown(values))}


def register_section(section: Section) -> None:
    """Register a third-party section, placed before the recipe.

    Raises:
        OptionError: a section of that name exists, or it has no template.
    """
    if section.id in SECTIONS:
        raise OptionError("there-section-already", id=section.id)
    if section.text is None:
        raise OptionError("section-needs-template-text", id=section.id)
    last = _SECTIONS.pop("recipe")
    _SECTIONS[section.id] = section
    _SECTIONS["recipe"] = last


def public_report(release: Release) -> str:
    """A page about the released table and its statement: nothing else in it depends on the original."""
    subject = of_release(release)
    # every release writes one, so joint tables are left to 'shoal report'
    page = Page(
        subject,
        None,
        None,
        Risks(),
        private=False,
        short=True,
        numbers=_main_numbers(release) if subject.table.records is None else (),
    )
    return _page(PUBLIC, _first_screen(subject), page)


def _main_numbers(release: Any) -> Sequence[Any]:
    """Intervals from a release or the folder of a bundle: post-processing, so they cost nothing."""
    found: Sequence[Any] = import_module("shoal.inference").main_numbers(release)
    return found


def internal_report(
    release: Release,
    evaluation: Evaluation | None = None,
    original: Any = None,
    progress: Progress | None = None,
    found: Findings | None = None,
) -> str:
    """A page for the custodian with facts about the original data, so it must not be published.

    Args:
        release: the release.
        evaluation: the result of `shoal.evaluate`; by default computed here, of large tables on a sample.
        original: the table that was protected, a path or a frame: columns are compared before and after, and both
            tables are attacked. Without it the page has only what the release itself contains.
        progress: called with (what, done, total); an exception that it raises stops the work.
        found: findings about release and original computed elsewhere, where neither is in memory.

    Raises:
        InputError: the original cannot be read, or is not the table that was protected.

    Cost:
        One sort per column; with an original, twice that of `shoal.attack` with 300 attempts on at most 50,000 rows,
        and without an evaluation that of `shoal.evaluate` on as many.
    """
    whole = of_release(release)
    tell = progress or silent
    if found is None:
        found = find(whole, release, evaluation, original, tell)
        # the risk in a sample differs from that in the table
        if found.before is not None and found.subject.table.n == whole.table.n:
            risk = disclosed(found.before, found.subject, release.declared.schema, tell)
            found = replace(found, disclosure=risk)
    tell("drawing the internal report", 0, 1)
    clusters = [(", ".join(made.columns) or "records", made.sizes) for made in release.partition]
    page = Page(
        found.subject,
        found.before,
        found.measured,
        found.risks,
        private=True,
        remarks=found.remarks,
        notes=release.notes,
        facts=_facts(release.internal),
        clusters=clusters,
        rows_drawn=release.aligned is None,
        disclosure=found.disclosure,
    )
    first = _first_screen(
        whole, private=True, measured=found.measured, risks=found.risks, before=found.before
    )
    return _page(INTERNAL, first, page)


def bundle_report(
    folder: str | Path,
    original: Any = None,
    target: str | None = None,
    progress: Progress | None = None,
) -> str:
    """A page about a bundle on disk.

    Args:
        folder: what `shoal protect`, `shoal.publish` or `Release.save` wrote.
        original: the table that was protected; with it the page holds facts about the original data.
        target: with an original, also measure how well this column can be predicted from the release.
        progress: called with (what, done, total); an exception that it raises stops the work.

    Raises:
        InputError: the folder is not a bundle, a table cannot be read, or the original lacks a released column.
        MissingExtraError: there is a target, and the extra 'learn' is not installed.
    """
    tell = progress or silent
    tell("reading the bundle", 0, 1)
    subject = of_bundle(folder)
    if original is None:
        return bundle_page(subject, _main_numbers(folder) if subject.table.records is None else ())
    from shoal.evaluation import check_target, evaluate

    before = read_declared(original, subject.schema, na=subject.na)
    check_original(subject, before, folder)
    if target is not None:
        check_target(target, before)  # refused before the long work begins
    measured = evaluate(before, published(subject), target=target, runs=_RUNS, progress=tell).to_dict()
    risks = attacked(before, subject.table, subject.columns, progress=tell)
    tell("comparing columns", 0, 1)
    disclosure = disclosed(before, subject, progress=tell)
    return comparison(Findings(subject, before, measured, risks, (), disclosure))


def check_original(subject: Subject, before: Table, folder: str | Path) -> None:
    """Refuse a table that lacks a released column."""
    for name in subject.columns:
        if name not in before.names:
            raise InputError(
                "original-no-column-bundle-released",
                column=name,
                folder=folder,
                hint=closest(name, before.names),
            )


def bundle_page(subject: Subject, numbers: Sequence[Any] = ()) -> str:
    """The public page about a bundle, with intervals if they are known."""
    page = Page(subject, None, None, Risks(), private=False, numbers=numbers)
    return _page(PUBLIC, _first_screen(subject), page)


def comparison(found: Findings) -> str:
    """The page about a bundle and its original."""
    subject, before = found.subject, found.before
    assert before is not None
    risks = replace(found.risks, told=(*found.risks.told, Message("bundle-not-linked")))
    page = Page(
        subject,
        before,
        found.measured,
        risks,
        private=True,
        remarks=(*_other_size(before, subject.table), *found.remarks),
        disclosure=found.disclosure,
    )
    first = _first_screen(subject, private=True, measured=found.measured, risks=risks, before=before)
    return _page(COMPARISON, first, page)


def _page(title: str, first: Mapping[str, Any], page: Page) -> str:
    values = section_values(page)
    templates = [
        {
            "id": section.id,
            "title": section.title,
            "template": f"sections/{section.id}.html.j2"
            if section.text is None
            else _environment().from_string(section.text),
        }
        for section in values["sections"]
    ]
    everything = {**first, **values, "sections": templates, "title": title, "tokens": tokens()}
    return _environment().get_template("report.html.j2").render(**everything)


def _other_size(before: Table, after: Table) -> tuple[str, ...]:
    if before.n == after.n:
        return ()
    return (str(Message.of("original-has-other-size", original=before.n, released=after.n)),)


def _first_screen(
    subject: Subject,
    *,
    private: bool = False,
    measured: Mapping[str, Any] | None = None,
    risks: Risks | None = None,
    before: Table | None = None,
) -> dict[str, Any]:
    """The opening section of every page."""
    lines = () if risks is None else risks.lines
    told = explanation(subject.statement)
    lost = _lost(measured) if measured is not None else _detail(subject)
    linked = next((line for line in lines if line.links_records and not line.beyond), None)
    return {
        "private": private,
        "compared": before is not None,
        "statement": subject.statement,
        "rows": subject.table.n,
        "told": told,
        "verdict": verdict(subject.statement, measured, lines),
        "measured_words": {"risk": RISK_WORDS, "use": USE_WORDS},
        # a guarantee without such a figure gets no card
        "cards": [
            card
            for card in (
                ("ε", *epsilon_words(subject.statement)),
                ("k", *k_words(subject.statement)),
                ("Information loss" if measured is not None else "Remaining detail", *lost),
                (
                    "Residual risk",
                    *((told.bound, told.bound_note) if linked is None else _linked(linked)),
                ),
            )
            if card[1] != NOT_ANY
        ],
    }


def _detail(subject: Subject) -> tuple[str, str]:
    """Loss of detail visible in the released table itself."""
    note = "information loss is a fact about the original records, known to their custodian"
    found = different_rows(subject)
    if found is None:
        return "not counted", note
    return f"{found:,} distinct rows", f"among {subject.table.n:,}; {note}"


def _lost(measured: Mapping[str, Any]) -> tuple[str, str]:
    utility = measured["utility"]
    words = []
    if utility["mean_variation"] is not None:
        words.append(f"means changed by {percent_words(utility['mean_variation'])} on average")
    if utility["correlation_difference"] is not None:
        words.append(f"correlations changed by {utility['correlation_difference']:.2g}")
    moved = most_moved(utility)
    if moved is None:
        return "not measured", ", ".join(words)
    return roughly(moved.value), "; ".join([str(moved.message), *words])


def _linked(line: RiskLine) -> tuple[str, str]:
    low, high = line.interval
    bare = "" if line.unprotected is None else f", {100 * line.unprotected:.3g}% in the unprotected table"
    return (
        f"{100 * line.success:.3g}% linked",
        f"rows whose record is re-identified ({100 * low:.3g}% to {100 * high:.3g}%); {100 * line.chance:.2g}% by "
        f"guessing"
        f"{bare}",
    )


def _facts(internal: Mapping[str, Any]) -> dict[str, Any]:
    """The private facts of a release, with those that have no line of their own flattened."""
    own = (
        "rows_read",
        "rows_released",
        "values_clipped",
        "clusters",
        "repairs",
        "clusters_without_noise",
        "steps",
        "cells_emptied",
        "strata",
        "rules_broken",
    )
    more: dict[str, Any] = {}
    for name, value in internal.items():
        if name in own:
            continue
        words = name.replace("_", " ")
        parts = value if isinstance(value, Mapping) else {"": value}
        more |= {f"{words} {key}".replace("_", " ").strip(): item for key, item in parts.items()}
    return {**{name: internal.get(name, {}) for name in own}, "more": more}


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("shoal"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
