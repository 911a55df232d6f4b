"""Refuse documents that could load external resources or grow without bound."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from shoal.errors import InputError


class _RootReached(Exception):  # noqa: N818
    """Declarations of a document come before its first element."""


def check_xml(opening: bytes, path: Path | None = None) -> None:
    """Refuse XML that declares a document type: its entities can expand to gigabytes, or read other files.

    >>> check_xml(b"<?xml version='1.0'?><rdf/>")
    """
    from xml.parsers import expat

    declared: list[object] = []

    def stop(*element: object) -> None:
        raise _RootReached

    def note(*names: object) -> None:
        declared.extend(names)
        raise _RootReached

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = note
    parser.StartElementHandler = stop
    # malformed XML is left to the parser
    with contextlib.suppress(expat.ExpatError, _RootReached, LookupError, ValueError):
        parser.Parse(opening, False)
    if declared:
        if path is None:
            raise InputError("declares-document-type-doctype-whose-entities")
        raise InputError("file-declares-document-type", path=path)


def check_json_ld(content: bytes) -> None:
    """Refuse JSON-LD with an external context.

    >>> check_json_ld(b'{"@context": {"a": "http://example.org/a"}}')
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        # left to the parser
        return
    waiting = [document]
    while waiting:
        part: Any = waiting.pop()
        if isinstance(part, dict):
            contexts = part.get("@context", [])
            if any(isinstance(one, str) for one in (contexts if isinstance(contexts, list) else [contexts])):
                raise InputError("context-address-nothing-loaded-from-elsewhere")
            if "@import" in part:
                raise InputError("import-nothing-loaded-from-elsewhere")
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
