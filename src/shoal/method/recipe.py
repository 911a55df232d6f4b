"""The recipe of a release as a file: enough to repeat it on another table, and nothing private."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal._version import __version__
from shoal.columns.circumstances import MOST_EPSILON
from shoal.columns.declaration import Declaration
from shoal.columns.schema import Schema
from shoal.errors import OptionError
from shoal.io.common import dumps, load
from shoal.method.method import Method
from shoal.method.parameters import DECLARATIONS
from shoal.method.registry import parameters

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
