"""A number of attributes in, the corners of their domain out, one after the other, each once.

A corner is a whole number with one bit per attribute, the first attribute's bit the highest: 0 stands for the low end
of the attribute's domain, 1 for the high end. There are 2^m corners: they are made only as far as they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from shoal.errors import OptionError, closest


def corner_sequence(attributes: int, rule: str = "alternate") -> Iterator[int]:
    """The corners in the order in which clusters are taken from them; it depends on nothing but m and the rule.

    `alternate` counts upwards and takes the opposite corner after each. `hamming` goes each time to the corner that
    differs in most attributes from the one before; ties go to the one farthest from the corner before that, and so
    on back to the first, then to the lowest number.

    Reference: thesis, section 6.3.3 (`hamming`); `alternate` is the sequence behind its printed tables.

    >>> [f"{corner:03b}" for corner in corner_sequence(3)]
    ['000', '111', '001', '110', '010', '101', '011', '100']
    >>> [f"{corner:03b}" for corner in corner_sequence(3, "hamming")]
    ['000', '111', '001', '110', '011', '100', '010', '101']
    """
    if rule not in CORNER_RULES:
        raise OptionError(
            "corners-not-known",
            option="corners",
            found=rule,
            allowed=tuple(CORNER_RULES),
            hint=closest(rule, CORNER_RULES),
        )
    return CORNER_RULES[rule](attributes)


def _alternate(attributes: int) -> Iterator[int]:
    everything = (1 << attributes) - 1
    for corner in range(1 << (attributes - 1)):
        yield corner
        yield everything ^ corner


def _hamming(attributes: int) -> Iterator[int]:
    """Opposite corners always follow each other, so only the first of each pair has to be chosen.

    Farthest from the opposite of the pair before means nearest to its first corner, and likewise further back.
    """
    everything = (1 << attributes) - 1
    firsts: list[int] = []
    taken: set[int] = set()
    for _ in range(1 << (attributes - 1)):
        corner = _nearest_free(firsts, taken, attributes) if firsts else 0
        firsts.append(corner)
        taken |= {corner, everything ^ corner}
        yield corner
        yield everything ^ corner


def _nearest_free(firsts: list[int], taken: set[int], attributes: int) -> int:
    free: list[int] = []
    distance = 0
    while not free:
        distance += 1
        flips = (sum(1 << bit for bit in bits) for bits in combinations(range(attributes), distance))
        free = [corner for flip in flips if (corner := firsts[-1] ^ flip) not in taken]
    for earlier in reversed(firsts[:-1]):
        if len(free) == 1:
            break
        nearest = min((corner ^ earlier).bit_count() for corner in free)
        free = [corner for corner in free if (corner ^ earlier).bit_count() == nearest]
    return min(free)


CORNER_RULES: Mapping[str, Callable[[int], Iterator[int]]] = {"alternate": _alternate, "hamming": _hamming}
