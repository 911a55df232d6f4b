"""Published values of the cross-moment paper, from printed.toml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from papers.texts import rows


class KMin(NamedTuple):
    """A printed size from which a method beats another."""

    where: str
    data: str
    method: str
    base: str
    epsilon: float
    printed: str
    about: str = ""


_PRINTED = rows("cross_moment/printed")
# log2 SSE of plain noise, by data set, at each of the printed ε
TABLE_1: Mapping[str, tuple[str, ...]] = {data: tuple(line) for data, line in _PRINTED["table_1"].items()}
PROTOTYPE_TABLE_1: Mapping[str, str] = _PRINTED["prototype_table_1"]
K_MIN: tuple[KMin, ...] = tuple(KMin(*row) for row in _PRINTED["k_min"])
# per cent by data set: k_min at ε = 2 against ε = 1, and of EIA against Census
REDUCTIONS: Mapping[str, str] = _PRINTED["reductions"]
INCREASES: Mapping[str, str] = _PRINTED["increases"]


def first_order(data: str, epsilon: float) -> float:
    """The printed k from which order 1 beats order 0 with MDAV.

    >>> first_order("EIA 3", 2.0)
    608.0
    """
    return next(
        float(one.printed) for one in K_MIN if (one.data, one.epsilon, one.method) == (data, epsilon, "xm-3")
    )
