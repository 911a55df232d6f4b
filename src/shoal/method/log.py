"""The log of a release: everything that was done to the table, in order, as a file that `shoal redo` repeats.

It holds what the recipe holds, and one entry for each thing that was done, in words. Nothing in it is private: counts
stand in the internal report, and parameters that were taken from the records are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.columns.schema import Schema
from shoal.errors import InputError
from shoal.io.common import dumps, load
from shoal.method.recipe import load_recipe, recipe_document
from shoal.method.statement import PrivacyStatement
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.release.protect import Release

LOG = "log.toml"
_HEADER = "# What was done, in order, and the recipe. Repeat it with: shoal redo log.toml DATA --out DIR\n"


def log_text(release: Release) -> str:
    """The log as TOML. A seed is left out: a repetition draws anew."""
    return _HEADER + dumps({"done": log_entries(release), **recipe_document(release)})


def log_entries(release: Release) -> list[dict[str, str]]:
    """What was done, one entry each: what, the column if it was one, in words, and where parameters are known from."""
    return entries_of(
        release.schema, release.statement, tuple(release.columns), verified=release.verify is not None
    )


def entries_of(
    schema: Schema, statement: PrivacyStatement, columns: tuple[str, ...], *, verified: bool
) -> list[dict[str, str]]:
    """The entries of a release that was prepared but perhaps never made."""
    done = [_entry("read")]
    for step in schema.declared.steps:
        known = {"source": step.source} if step.source else {}
        done.append({"do": step.do, "column": step.column, "words": step.words, **known})
    done.append(_entry("choose", columns=columns))
    settings = tuple(
        Message.of("fact-named", name=name, value=value) for name, value in statement.settings.items()
    )
    words = Message.of(
        "log-protect-with" if settings else "log-protect", method=statement.method, settings=settings
    )
    done.append({"do": "protect", "words": str(words)})
    if statement.entropy == "seed":
        done.append(_entry("seed"))
    done.append(_entry("shuffle"))
    weight = schema.weight
    if weight is not None and weight.release == "raked":
        for margin in schema.margins:
            raked = _entry("rake", weight=weight.name, column=margin.column)
            done.append({"do": "rake", "column": margin.column, **raked, "source": margin.source})
    if verified:
        done.append(_entry("verify"))
    return done


def _entry(do: str, **facts: Any) -> dict[str, str]:
    return {"do": do, "words": str(Message(f"log-{do}", facts))}


def log_path(log: str | Path) -> Path:
    """The log itself, or that in the folder of a release.

    Raises:
        InputError: there is none.
    """
    path = Path(log)
    if path.is_dir():
        path = path / LOG
    if not path.is_file():
        raise InputError("there-no-log", path=path)
    return path


def load_log(log: str | Path) -> dict[str, Any]:
    """The keyword arguments of `shoal.publish` that repeat what a log says.

    Raises:
        InputError, OptionError: it is no log, or its parameters were taken from the records and are not in it.
    """
    return load_recipe(log_path(log))


def done_in(path: Path) -> tuple[Mapping[str, str], ...]:
    """The entries of a log on disk; none where there is no log."""
    if not path.is_file():
        return ()
    raw = load(path, "toml-log").get("done", [])
    if not isinstance(raw, list) or not all(isinstance(entry, Mapping) and "words" in entry for entry in raw):
        raise InputError("the-log-is-damaged", path=path)
    return tuple(raw)
