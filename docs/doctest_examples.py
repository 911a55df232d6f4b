"""For the reference page: docstrings come in, their doctests leave as example sections instead of running text."""

from __future__ import annotations

from typing import Any

import griffe


class DoctestExamples(griffe.Extension):
    """Put every run of `>>>` lines and their output under the heading that the docstring parser knows."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_example_sections(obj.docstring.value)


def with_example_sections(text: str) -> str:
    """Paragraphs that start with `>>>` indented under `Examples:`; all others as they are.

    >>> with_example_sections("Add.\\n\\n>>> 1 + 1\\n2")
    'Add.\\n\\nExamples:\\n    >>> 1 + 1\\n    2'
    """
    paragraphs = text.split("\n\n")
    return "\n\n".join(_example(part) if part.startswith(">>>") else part for part in paragraphs)


def _example(paragraph: str) -> str:
    return "\n".join(["Examples:", *(f"    {line}" for line in paragraph.splitlines())])
