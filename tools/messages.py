"""Write results/messages.md: every message of the catalogue, rendered with sample facts.

    python -m tools.messages

Every sentence is rendered with sample facts, as the library and as the command line show it.
"""

from __future__ import annotations

import json
import re
import string
from pathlib import Path
from typing import Any

from shoal.cli import app
from shoal.cli.command import flag
from shoal.text import catalogue, render

PAGE = Path(__file__).parents[1] / "results" / "messages.md"
ROOMS = Path(__file__).parents[1] / "src" / "shoal" / "text" / "en"
_HEAD = """\
# Messages

What Shoal says: errors, warnings, notes, and the sentences of statements and verdicts. Each of them is a *code* and
*facts*. Programs branch on the code and read the facts, as in `error.code == "infinite"` and `error.facts["row"]`;
sentences may change, codes stay. Most codes are of errors; some are phrases that are parts of other sentences.

The facts in the sentences below are made up. Where the command line says it differently, because it has flags in the
place of options, its sentence follows; it also ends with the flag in brackets if the error is about an option that
the sentence does not name. Codes are grouped by the part of the package that they belong to.

This page is written by `python -m tools.messages`.
"""
# sample values for facts of these names
_SAMPLES: dict[str, Any] = {
    "address": "ledger.db",
    "allowed": ("this", "that"),
    "claim": "dp",
    "column": "income",
    "columns": ("age", "income"),
    "dataset": "survey",
    "day": "2026-01-31",
    "decimal": ",",
    "delta": "1e-6",
    "engine": "memory",
    "epsilon": 1,
    "found": 0,
    "folder": "release",
    "format": "csv",
    "hint": "income",
    "key": "name",
    "kind": "numeric",
    "label": "north",
    "method": "mdav-dp",
    "model": "dp",
    "name": "income",
    "neighbours": "replace-one",
    "op": "==",
    "out": "release",
    "path": "people.csv",
    "parent": "folder",
    "place": "report.html",
    "plot": "tuning.svg",
    "protocol": "protocol-1",
    "reason": "the reason",
    "role": "confidential",
    "secret": "income",
    "separator": ";",
    "setting": "mdav-dp, k = 5",
    "sheet": "Sheet1",
    "source": "questionnaire",
    "target": "income>30000",
    "text": "north",
    "token": "1",
    "type": "integer",
    "unit": "person",
    "url": "http://127.0.0.1:8200",
    "value": "north",
    "view": "original",
    "weight": "weight",
    "what": "the value",
    "where": "people.csv",
    "which": "original",
}
# names of counts and sizes
_COUNTS = re.compile(
    r"(most|least|fewest|number|largest|smallest|longest|deepest|max)(_.*)?|.*(rows?|records|runs|steps|count|size)"
    r"|n|np|n_2|k|l|t|port|status|version|attempts|persons|pairs|seconds|decimals|thresholds"
)


def samples(code: str) -> dict[str, Any]:
    """Sample facts for a template, each of the type that its format requires.

    >>> samples("infinite")
    {'column': 'income', 'row': 3}
    """
    formats: dict[str, list[str]] = {}
    for part in catalogue()[code]:
        for _, name, spec, _ in string.Formatter().parse(part):
            if name:
                formats.setdefault(name, []).append(spec or "")
    facts = {name: _sample(name, specs) for name, specs in formats.items()}
    # an option is marked as one, so that the command line has its flag
    return {**facts, "option": "k"} if "option" in facts else facts


def _sample(name: str, specs: list[str]) -> Any:
    spec = max(specs)  # a non-empty one, if there is any
    kind = spec.partition(" ")[0]
    if kind in ("list", "and", "or", "clauses", "lines"):
        known = _SAMPLES.get(name, ())
        return known if isinstance(known, tuple) and known else ("one", "another")
    if kind == "guess":
        return _SAMPLES["hint"]
    if kind in ("percent", "roughly") or "." in spec:
        return 0.25
    if spec or _COUNTS.fullmatch(name):
        return 3
    known = _SAMPLES.get(name, name.replace("_", " "))
    return known[0] if isinstance(known, tuple) else known


def page() -> str:
    """The whole page."""
    # flags are known once the commands are
    assert app.registered_commands
    lines = [_HEAD]
    for room in sorted(ROOMS.glob("*.json")):
        lines += [f"## {room.stem}", "", "| code | sentence |", "| --- | --- |"]
        lines += [_row(code) for code in json.loads(room.read_text("utf-8"))]
        lines.append("")
    return "\n".join(lines)


def _row(code: str) -> str:
    facts = samples(code)
    said, typed = render(code, facts), render(code, facts, flag)
    own = "" if typed == said else f"<br>*command line:* {_escaped(typed)}"
    return f"| `{code}` | {_escaped(said)}{own} |"


def _escaped(sentence: str) -> str:
    """A sentence escaped for Markdown."""
    shown = re.sub(r"([\\`*_\[\]|~])", r"\\\1", sentence.strip())
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "<br>")


def main() -> None:
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
