"""Selected after looking: a table to be released comes in, whether its measurements were seen before leaves.

Whoever sees what a release lost, and then makes another one of the same records, has chosen by looking at them. Shoal
cannot see through walls: it knows what a ledger keeps, and the internal reports that lie beside the new files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.io import Table, read
from shoal.io.fingerprint import fingerprint
from shoal.report.pages import LOOKED_AT

if TYPE_CHECKING:
    from shoal.release.protect import Preparation

SELECTED = (
    "Selected after looking: this table was released before, what that release lost or risked was shown, and this run "
    "repeats it."
)
# a page says in its head which table it is about
_HEAD = 4096
_MARK = re.compile(rf'<meta name="{LOOKED_AT}" content="([0-9a-f]{{64}})">')


def fingerprint_of(data: Any) -> str:
    """The fingerprint of a path, by its bytes, or of a table."""
    if isinstance(data, (str, Path)):
        return fingerprint(Path(data))
    return fingerprint(data if isinstance(data, Table) else read(data, strict=False))


def reports_about(places: Iterable[Path], table: Callable[[], str]) -> tuple[Path, ...]:
    """The internal reports about a table in these folders; `table` is asked for only if there is any report."""
    marked = {}
    for folder in dict.fromkeys(place.absolute() for place in places):
        for page in sorted(folder.glob("*.html")) if folder.is_dir() else ():
            try:
                with page.open(encoding="utf-8", errors="replace") as file:
                    found = _MARK.search(file.read(_HEAD))
            except OSError:
                continue
            if found is not None:
                marked[page] = found[1]
    own = table() if marked else ""
    return tuple(page for page, mark in marked.items() if mark == own)


def after_looking(prepared: Preparation) -> Preparation:
    """The same release, whose statement says that it was selected after looking."""
    described = prepared.described
    before = described.circumstances
    if SELECTED in before.data_dependent:
        return prepared
    told = replace(before, data_dependent=(*before.data_dependent, SELECTED))
    return prepared.stated(replace(described, circumstances=told))
