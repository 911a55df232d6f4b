"""Publish a release: checks, texts and the bundle to download.

The checks depend on the public part of the verdict and on the files themselves. What was measured on the
original records decides only where the guarantee is about the table itself, and never enters the bundle.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shoal.columns import LEAST_REASON, RECORDS, weight_words
from shoal.errors import OptionError, ShoalError
from shoal.evaluation import check
from shoal.io import private_text
from shoal.privacy import DATA_DEPENDENT, MODELS, Reason, three_parts
from shoal.release import Bundle, write_documents
from shoal.studio.edit import in_rule
from shoal.studio.runs import StudioRun
from shoal.text import Message

OVERRIDE = "override.json"
# the earliest time that a zip file can hold: the real one would reveal when the release was made
_NO_MOMENT = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Checked:
    """One line of the checklist.

    Attributes:
        level: good, warn or bad; a bad one blocks the download.
        fix: text of a button that leads to the solution; empty where there is none.
        step: the step to which that button leads.
        sent: the request it sends first; empty where it only leads there.
    """

    level: str
    title: str
    detail: str
    fix: str = ""
    step: str = "guarantee"
    sent: Mapping[str, Any] = field(default_factory=dict)


def checklist(run: StudioRun) -> tuple[Checked, ...]:
    """The checks of a release before it may be downloaded."""
    statement = run.facts["statement"]
    facts = MODELS[statement["model"]]
    return (
        _choices(statement, facts.of_the_table),
        _sources(run),
        _guarantee(statement),
        _seed(statement),
        Checked("good", "Rows are in random order", _left_behind(run)),
        *_smallest_class(run, _quasi(run)),
        *_measured(run),
        _read_back(run.bundle),
        Checked(
            "warn" if facts.budgeted and not run.charged else "good",
            "Earlier releases about the same people",
            f"Charged to the ledger: {run.facts['ledger']}."
            if run.charged
            else "There is no ledger here: add this ε to that of every other release about the same people."
            if facts.budgeted
            else "This guarantee has no ε that composes; someone with another release about the same people can learn "
            "more.",
        ),
    )


def _quasi(run: StudioRun) -> list[str]:
    released = run.facts["statement"]["attributes"]
    return [a.name for a in run.recipe.taken if a.role == "quasi-identifier" and a.name in released]


def blocked(checks: tuple[Checked, ...]) -> bool:
    return any(check.level == "bad" for check in checks)


def _choices(statement: Mapping[str, Any], of_table: bool) -> Checked:
    """Recorded choices: a data-dependent choice voids a claim about the records, other facts are limits."""
    title, lines = "Recorded uses and choices", three_parts(statement).recorded
    if statement["data_dependent"]:
        return Checked(
            "warn" if of_table else "bad", title, " ".join(lines), "Name a public source", "columns"
        )
    return Checked("warn" if statement["recorded"] else "good", title, " ".join(lines))


def _sources(run: StudioRun) -> Checked:
    title = "Ranges and lists have a public source"
    unknown = [a.name for a in run.recipe.taken if not a.source.get("domain") and a.has_domain]
    private = [a.name for a in run.recipe.taken if RECORDS in a.source.values() and a.has_domain]
    if private:
        detail = f"Known from these records only: {', '.join(private)}."
        of_table = MODELS[run.facts["statement"]["model"]].of_the_table
        return Checked("warn" if of_table else "bad", title, detail, "Name a public source", "columns")
    if unknown:
        detail = f"No source named: {', '.join(unknown)}."
        return Checked("warn", title, detail, "Name their source", "columns")
    return Checked("good", title, "Each range and list names its source.")


def _guarantee(statement: Mapping[str, Any]) -> Checked:
    others = [
        Reason("red", one["code"], one["facts"]).text
        for one in statement["obstacles"]
        if one["code"] not in (DATA_DEPENDENT, "seeded")
    ]
    if others:
        return Checked("bad", "The guarantee is reliable", " ".join(others), "Choose another guarantee")
    if statement.get("override"):
        return Checked("warn", "The guarantee is reliable", f"Published anyway: {statement['override']}")
    return Checked("good", "The guarantee is reliable", statement["sentence"])


def _left_behind(run: StudioRun) -> str:
    weight = weight_words(run.recipe.schema)
    return f"Identifiers and the index were dropped.{'' if weight is None else f' {weight}'}"


def _seed(statement: Mapping[str, Any]) -> Checked:
    if statement["computed"]["entropy"] == "seed":
        return Checked("bad", "No seed", Reason.of("seeded").text)
    return Checked("good", "No seed", "Nobody can reproduce the noise, including you.")


def _smallest_class(run: StudioRun, quasi: Sequence[str]) -> Iterator[Checked]:
    """Recount the equivalence classes in the file that will be published."""
    k = run.facts["statement"]["settings"].get("k")
    if k is None or run.facts["statement"]["model"] != "k-anonymity" or not quasi:
        return
    title = f"Equivalence classes of at least {k} confirmed in the released file"
    try:
        smallest = check(Bundle.load(run.bundle).data, quasi_identifiers=list(quasi)).k
    except ShoalError as error:
        yield Checked("bad", title, str(error))
        return
    detail = f"The smallest has {smallest:,}, equal in {', '.join(quasi)}."
    yield Checked("good" if smallest >= k else "bad", title, detail)


def _measured(run: StudioRun) -> Iterator[Checked]:
    """Where the guarantee is about the table itself, the measures count too."""
    facts = run.facts
    if facts["decision"] != facts["public_decision"]:
        level = "warn" if run.override else "bad"
        detail = " ".join(facts["measured"])
        yield Checked(
            level, "The measurements allow publication", detail, "Use a larger k, or leave columns out"
        )


def _read_back(folder: Path) -> Checked:
    try:
        found = Bundle.load(folder)
    except ShoalError as error:
        return Checked("bad", "The written files can be read back", str(error))
    return Checked(
        "good",
        "The written files can be read back",
        f"{len(found.data):,} rows of {len(found.data.column_names)} columns, with statement, recipe and report.",
    )


def overridden(run: StudioRun, reason: str, name: str) -> None:
    """Publish despite the verdict: the reason is recorded in the statement, in the report and in a separate file.

    Where only private advice advises against it, the reason stays internal: it would reveal that there was some.

    Raises:
        OptionError: the reason is too short, or the confirmation does not match the file's name.
    """
    words = " ".join(reason.split())
    if len(words) < LEAST_REASON:
        raise OptionError("say-why-least-characters", least_reason=LEAST_REASON)
    _, release = run.kept
    if name.strip() != release_name(run):
        raise OptionError("type-the-folder", folder=release_name(run))
    run.override = words
    statement = release.statement
    if not statement.not_publishable_because:
        private_text(run.folder / OVERRIDE, json.dumps(_record(words, ()), indent=2) + "\n")
        return
    left = tuple(reason for reason in statement.obstacles if reason.code != "epsilon-too-large")
    changed = replace(release, statement=replace(statement, override=words, obstacles=left))
    with contextlib.ExitStack() as undo:
        write_documents(changed, run.bundle, undo)
    record = _record(words, statement.not_publishable_because)
    (run.bundle / OVERRIDE).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")
    run.facts["statement"] = changed.statement.to_dict()


def _record(reason: str, because: tuple[str, ...]) -> dict[str, Any]:
    return {"reason": reason, "although": list(because), "on": time.strftime("%Y-%m-%d")}


def release_name(run: StudioRun) -> str:
    """The name of the release folder."""
    return f"release-{run.letter}"


def zipped(run: StudioRun) -> bytes:
    """The bundle as one file, without the times or the local paths of its files."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        for path in sorted(run.bundle.iterdir()):
            entry = zipfile.ZipInfo(f"{release_name(run)}/{path.name}", _NO_MOMENT)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return found.getvalue()


def contents(folder: Path) -> list[tuple[str, str]]:
    """The files of a bundle with their sizes."""
    return [(path.name, _size(path.stat().st_size)) for path in sorted(folder.iterdir())]


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(count // 1000, 1)} kB"


# what the statement of synthetic rows says of them
_NO_SAMPLE = "rows-are-no-sample"


def for_analysts(run: StudioRun) -> dict[str, Any] | None:
    """What readers who compute with the rows must know, and main numbers with intervals; None for other releases."""
    statement = run.facts["statement"]
    if all(term["code"] != _NO_SAMPLE for term in statement["terms"]["conditions"]):
        return None
    measured = [a for a in run.recipe.taken if a.kind_facts.measured and a.name in statement["attributes"]]
    example = shlex.quote(f"mean({in_rule(measured[0].name)})") if measured else ""
    return {
        "sentence": str(Message(_NO_SAMPLE)),
        "command": f"shoal intervals {release_name(run)} {example}".strip(),
        "numbers": run.facts["main_numbers"],
        "about": run.facts["about_numbers"],
    }


def texts(run: StudioRun, name: str) -> dict[str, list[str]]:
    """Texts for the director, the readers of the web page and the data protection officer, computed from a release."""
    facts = run.facts
    statement, words = facts["statement"], facts["explained"]
    rows, columns = facts["rows"]["released"], len(statement["attributes"])
    limits = facts["limits"] if facts["public_level"] != "green" else []
    parts = three_parts(statement)
    return {
        "director": [
            f"We are publishing {columns} columns in {rows:,} rows, made from {name}.",
            words["sentence"],
            words["plain"],
            *statement["not_promised"][:1],
            *(["Someone has to accept this: " + " ".join(limits)] if limits else []),
        ],
        "web": [f"{statement['sentence']} {words['sentence']}"],
        "officer": [
            f"Model: {statement['model']}. Protected: {statement['target']}. Unit: {statement['unit']}.",
            *(f"Condition: {line}" for line in statement["conditions"]),
            *(f"Declared by the publisher: {line} Shoal cannot check this." for line in parts.declared),
            *parts.recorded,
            *(f"Not guaranteed: {line}" for line in statement["not_promised"]),
            # reading the measures counts as viewing the release
            *(f"Internal, not for publication: {line}" for line in facts["measured"] if run.seen),
        ],
    }
