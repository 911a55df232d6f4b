"""Stages from outside the package: noises, partitions, mechanisms, presets, measures and formats are registered here.

What is promised with a stage that is no part of Shoal is the word of whoever brings it. It is taken for nothing: the
claim is `none`, and a release is not for publication, unless the stage comes with an accounting that passes. The
accounting is called for pairs of small neighbouring tables that are made here, and says how much a release can tell
them apart; if that is more than ε once, nothing is registered. A statement names whose claim it is.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from shoal.errors import ClaimError, OptionError
from shoal.evaluation.measures import Measure, register_measure
from shoal.io import Format, register_format
from shoal.mechanisms.table import ENTRIES, Entry
from shoal.method.presets import PRESETS
from shoal.method.settings import SETTINGS
from shoal.method.stages import _PARTITIONS, PARTITIONS, PartitionStage
from shoal.noise.families import _NOISES, NOISES, NoiseFamily
from shoal.origin import Outside
from shoal.report.sections import Section, register_section

if TYPE_CHECKING:
    from shoal.mechanisms.base import Mechanism
    from shoal.method.claims import Claim
    from shoal.method.method import Method

__all__ = [
    "Accounting",
    "Format",
    "Measure",
    "Pair",
    "Section",
    "pairs",
    "register_format",
    "register_measure",
    "register_mechanism",
    "register_noise",
    "register_partition",
    "register_preset",
    "register_section",
]

# pairs of neighbouring tables that an accounting is asked about
_PAIRS = 200
# what rounding may add to a loss that was computed in floating point
_ROOM = 1e-9


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tables that differ in one record, and how one of them would be released.

    Attributes:
        epsilon: the budget; shared equally over the columns.
        k: the least size of a cluster.
        widths: by column, the public domain is 0 to this many, in steps of 1.
        before, after: the values of each column.
    """

    epsilon: Fraction
    k: int
    widths: Mapping[str, int]
    before: Mapping[str, tuple[int, ...]]
    after: Mapping[str, tuple[int, ...]]

    @property
    def share(self) -> Fraction:
        """ε of each column."""
        return self.epsilon / len(self.widths)


# the most that any output tells the two tables of a pair apart: the largest log-ratio of its probabilities
Accounting = Callable[[Pair], "Fraction | float"]


def pairs(k: int | None = None) -> Iterator[Pair]:
    """The pairs that an accounting is asked about, always the same ones; with clusters of one where k is 1."""
    draw = random.Random(18)
    for _ in range(_PAIRS):
        rows = draw.randint(1, 6)
        widths = {name: draw.choice((1, 3, 10)) for name in "ab"[: draw.randint(1, 2)]}

        def value(width: int) -> int:
            # half of the values lie at the ends of the domain, where most is at stake
            return draw.choice((0, width)) if draw.random() < 0.5 else draw.randint(0, width)

        before = {name: tuple(value(width) for _ in range(rows)) for name, width in widths.items()}
        place = draw.randrange(rows)
        after = {
            name: (*values[:place], value(widths[name]), *values[place + 1 :])
            for name, values in before.items()
        }
        epsilon = Fraction(draw.choice(("0.1", "1", "2.5")))
        yield Pair(epsilon, k or draw.randint(1, max(1, rows // 2)), widths, before, after)


def register_noise(name: str, family: NoiseFamily, *, who: str, accounting: Accounting | None = None) -> None:
    """Add a kind of noise. Its accounting is asked about clusters of one record.

    Raises:
        OptionError: the name is taken.
        ClaimError: the accounting finds that more than ε can be lost.
    """
    _free("noise", name, NOISES)
    _NOISES[name] = replace(family, outside=_accounted(name, who, accounting, k=1))


def register_partition(
    name: str, stage: PartitionStage, *, who: str, accounting: Accounting | None = None
) -> None:
    """Add a way to group records; its accounting is of Laplace noise on the sums of its clusters.

    Raises:
        OptionError: the name is taken.
        ClaimError: the accounting finds that more than ε can be lost.
    """
    _free("partition", name, PARTITIONS)
    _PARTITIONS[name] = replace(stage, outside=_accounted(name, who, accounting))


def register_mechanism(
    name: str, mechanism: Mechanism, claim: Claim, *, who: str, accounting: Accounting | None = None
) -> None:
    """Add a mechanism with what it claims.

    Raises:
        OptionError: the name is taken.
        ClaimError: the accounting finds that more than ε can be lost.
    """
    _free("mechanism", name, ENTRIES)
    ENTRIES[name] = Entry(claim, mechanism=mechanism, outside=_accounted(name, who, accounting))


def register_preset(method: Method) -> None:
    """Add a method that is made of registered stages. What it promises follows from those.

    Raises:
        OptionError: the name is taken, or a stage or a setting is unknown.
    """
    _free("method", method.name, PRESETS)
    known: tuple[tuple[str, str, Mapping[str, object]], ...] = (
        ("mechanism", method.mechanism, ENTRIES),
        ("partition", method.partition, PARTITIONS),
        ("noise", method.noise, NOISES),
        *(("setting", option, SETTINGS) for option in method.adjustable),
    )
    for what, named, table in known:
        if named not in table:
            raise OptionError(
                "method-names-none", option="method", method=method.name, what=what, named=named
            )
    PRESETS[method.name] = method


def _free(what: str, name: str, table: Mapping[str, object]) -> None:
    if name in table:
        raise OptionError("there-is-a-already", what=what, name=name)


def _accounted(name: str, who: str, accounting: Accounting | None, k: int | None = None) -> Outside:
    """Whose a stage is, once the accounting that came with it passed."""
    if accounting is None:
        return Outside(who)
    asked, most = 0, 0.0
    for pair in pairs(k):
        lost = accounting(pair)
        number = float(lost) if isinstance(lost, int | float | Fraction) else math.nan
        if not 0 <= number <= float(pair.epsilon) + _ROOM:
            raise ClaimError(
                "accounting-loses-too-much",
                name=name,
                found=lost,
                epsilon=float(pair.epsilon),
                before=dict(pair.before),
                after=dict(pair.after),
                k=pair.k,
            )
        asked, most = asked + 1, max(most, number)
    if not most:
        raise ClaimError("accounting-finds-no-loss-between-any", name=name)
    return Outside(who, asked)
