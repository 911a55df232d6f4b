"""Quick runs of the papers on real data, each made once for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from papers import Claim, Desk
from tools.public_data import data_folder

Made = TypeVar("Made")


def once(make: Callable[[Desk], Made]) -> Callable[[], Made]:
    """Makes something at a quick desk when it is first asked for."""

    @cache
    def ask() -> Made:
        return make(Desk(data_folder(), quick=True))

    return ask


def only(claims: Iterable[Claim], said: str) -> Claim:
    """The one statement with these words."""
    (found,) = [claim for claim in claims if said in claim.said]
    return found
