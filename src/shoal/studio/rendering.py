"""Templates: values come in, HTML leaves; a fragment also says which place on the page it replaces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from shoal.columns.attribute import RECORDS, SOURCES
from shoal.columns.missing import POLICIES
from shoal.method.parts import CANNOT_CHECK, NOTHING_RECORDED, three_parts
from shoal.method.verdict import DECISIONS
from shoal.studio.editing import KINDS, ROLES, TYPES
from shoal.studio.recipe import OFF, ON
from shoal.text import capital as begun

HERE = Path(__file__).parent
LIGHTS: Mapping[str, str] = {"green": "good", "amber": "warn", "red": "bad"}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
    made.filters["cap"] = capital
    made.filters["light"] = lambda level: LIGHTS[level]
    made.filters["three_parts"] = three_parts
    made.globals.update(
        ROLES=ROLES, KINDS=KINDS, TYPES=TYPES, SOURCES=SOURCES, POLICIES=POLICIES, ON=ON, OFF=OFF
    )
    made.globals.update(DECISIONS=DECISIONS, RECORDS=RECORDS)
    made.globals.update(CANNOT_CHECK=CANNOT_CHECK, NOTHING_RECORDED=NOTHING_RECORDED)
    return made


def capital(said: object) -> str:
    """A sentence begins with a capital, unless it begins with the letter of a setting.

    >>> capital("values move"), capital("k was chosen"), capital("a row")
    ('Values move', 'k was chosen', 'A row')
    """
    text = str(said)
    first = text.partition(" ")[0]
    return text if len(first) == 1 and first in "klt" else begun(text)


def render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def fragment(into: str, html: str) -> str:
    """A piece of a page and the place that it replaces."""
    return f'<template data-into="{into}">{html}</template>'
