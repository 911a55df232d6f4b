"""Recipes and logs: the TOML files that repeat a release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal._version import __version__
from shoal.columns.circumstances import MOST_EPSILON
from shoal.columns.declaration import Declaration
from shoal.columns.schema import Schema
from shoal.errors import InputError, OptionError
from shoal.io.common import dumps, load
from shoal.mechanisms.method import Method
from shoal.mechanisms.parameters import DECLARATIONS
from shoal.mechanisms.registry import parameters
from shoal.privacy.statement import PrivacyStatement
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.release.protect import Release


# the tables of a schema, which a recipe holds too; a log has the entries of what was done besides
_SCHEMA = ("attribute", "file", "publication", "step", "margin")
_LOGGED = "done"
_HEADER = "# The recipe of a release. Repeat it with: shoal protect DATA --config method.toml --out DIR\n"


def recipe_text(release: Release) -> str:
    """The recipe as TOML. A seed is left out: whoever knows it can remove the noise."""
    return settled_text(release.method, release.schema, release.declared, release.columns)


def settled_text(method: Method, schema: Schema, declared: Declaration, columns: tuple[str, ...]) -> str:
    """The recipe of a release that was prepared but perhaps never made."""
    return _HEADER + dumps(_document(method, schema, declared, columns))


def recipe_document(release: Release) -> dict[str, Any]:
    """The recipe as plain values."""
    return _document(release.method, release.schema, release.declared, release.columns)


def _document(
    method: Method, schema: Schema, declared: Declaration, columns: tuple[str, ...]
) -> dict[str, Any]:
    settings = method.settings()
    tables = {name: value for name, value in settings.items() if isinstance(value, dict)}
    plain = {name: value for name, value in settings.items() if name not in tables}
    document: dict[str, Any] = {
        "shoal": __version__,
        "method": method.name,
        **plain,
        "columns": list(columns),
    }
    document |= {"outside": declared.outside, "missing": declared.missing}
    if declared.na:
        document["na"] = list(declared.na)
    if declared.tuned is not None:
        document["tuned"] = declared.tuned.text
        if declared.tuned.epsilon is not None:
            document["tuned_epsilon"] = declared.tuned.epsilon
    if declared.most_epsilon != MOST_EPSILON:
        document["most_epsilon"] = declared.most_epsilon
    if declared.domain_from_data is not None:
        document["domain_from_data"] = declared.domain_from_data
    document |= tables
    if declared.tuned is not None and declared.tuned.choice:
        document["tuned_choice"] = [choice.to_dict() for choice in declared.tuned.choice]
    return document | schema.to_dict()


def load_recipe(path: str | Path) -> dict[str, Any]:
    """The keyword arguments of `shoal.protect` that a recipe file stands for."""
    path = Path(path)
    raw = load(path, "toml-recipe")
    # domains stand with their attributes
    known = {"shoal", "method", _LOGGED, *_SCHEMA, *DECLARATIONS, *parameters()} - {"domains"}
    for key in raw:
        if key not in known:
            raise OptionError("recipe-unknown-key", path=path, key=key)
    if "method" not in raw:
        raise OptionError("recipe-names-no-method", path=path)
    arguments = {key: value for key, value in raw.items() if key not in ("shoal", _LOGGED, *_SCHEMA)}
    if not isinstance(raw["method"], str):
        raise OptionError("recipe-method-name-method", path=path, found=raw["method"])
    if "attribute" in raw:
        if _LOGGED in raw and isinstance(told := raw.get("publication"), Mapping):
            # what is done again is published on another day
            raw["publication"] = {key: told[key] for key in told if key not in ("date", "review_by")}
        arguments["schema"] = Schema.from_dict(raw)
    return arguments


LOG = "log.toml"
_LOG_HEADER = (
    "# What was done, in order, and the recipe. Repeat it with: shoal redo log.toml DATA --out DIR\n"
)


def log_text(release: Release) -> str:
    """The log as TOML. A seed is left out: a repetition draws anew."""
    return _LOG_HEADER + dumps({"done": log_entries(release), **recipe_document(release)})


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
