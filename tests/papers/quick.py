"""A paper's module comes in; its quick run on real data, made once, leaves. Tests are skipped where the data is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from papers import Claim, Desk
from tests.conftest import DATA_FOLDER, data_file

Made = TypeVar("Made")


def once(make: Callable[[Desk], Made], *files: str) -> Callable[[], Made]:
    """Makes something at a quick desk when it is first asked for."""

    @cache
    def ask() -> Made:
        for file in files:
            data_file(file)
        return make(Desk(DATA_FOLDER, quick=True))

    return ask


def only(claims: Iterable[Claim], said: str) -> Claim:
    """The one statement with these words."""
    (found,) = [claim for claim in claims if said in claim.said]
    return found
