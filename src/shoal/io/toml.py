"""TOML files: read with errors that name them; written as tables of plain values and lists of such tables."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from shoal.decimals import decimal_text
from shoal.errors import InputError
from shoal.text import Message

Purpose = Literal["toml-schema", "toml-recipe", "toml-log", "toml-tokens", "toml-data-set"]


def load(path: Path, purpose: Purpose) -> dict[str, Any]:
    """The content of a TOML file, decimals exact; errors name its purpose."""
    what = Message(purpose)
    try:
        return tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise InputError("no-such-file", what=what, path=path) from None
    except OSError as error:
        raise InputError("the-cannot-be-read", what=what, path=path, reason=error.strerror) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("not-valid-toml", what=what, path=path, reason=error) from None


def dumps(document: Mapping[str, Any]) -> str:
    """TOML text; `tomllib` reads it back to the same values.

    >>> print(dumps({"k": 5, "columns": ["a b"], "attribute": [{"name": "a b"}]}), end="")
    k = 5
    columns = ["a b"]
    <BLANKLINE>
    [[attribute]]
    name = "a b"
    """
    lines: list[str] = []
    tables: list[str] = []
    for key, value in document.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_key(key)}]", *_pairs(value)]
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for item in value:
                tables += ["", f"[[{_key(key)}]]", *_pairs(item)]
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return "\n".join(lines + (tables if lines else tables[1:])) + "\n"


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        # JSON strings are TOML basic strings, except for one control character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_pairs(value)) + " }"
    return repr(value)
