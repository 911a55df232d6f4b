"""Stages from outside the package: methods, noises, partitions, measures and formats are registered here.

What is promised with a stage that is no part of Shoal is the word of whoever brings it. It is taken for nothing: the
claim is `none`, and a release is not for publication, unless the stage comes with an accounting that passes. The
accounting is called for pairs of small neighbouring tables that are made here, and says how much a release can tell
them apart; if that is more than ε once, nothing is registered. A statement names whose claim it is.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import FunctionType
from typing import TypeVar

from shoal.errors import ClaimError, OptionError
from shoal.evaluation import Measure, register_measure
from shoal.io import Format, register_format
from shoal.mechanisms import (
    DECLARATIONS,
    PARTITIONS,
    Method,
    Parameter,
    PartitionStage,
    add_partition,
    names,
    parameter,
    register,
    shared,
)
from shoal.noise import NOISES, NoiseFamily, add_noise
from shoal.origin import Outside
from shoal.report import Section, register_section

__all__ = [
    "Accounting",
    "Format",
    "Measure",
    "Pair",
    "Section",
    "pairs",
    "parameter",
    "register_format",
    "register_measure",
    "register_method",
    "register_noise",
    "register_partition",
    "register_section",
    "shared",
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


_MethodClass = TypeVar("_MethodClass", bound=type[Method])
# what a subclass may say besides defaults of parameters and keep the claim of its base, which follows from its stage
_NAMED = {"name", "about", "paper", "partition"}
# options of calls and commands, which no parameter of a method can be called
_WORDS = """
all conf config confidence data dataset date_format decimal dry_run encoding engine evaluate everything file format
header_row help help_all internal json labels ledger log master method not_same_records on out people plot progress
quote range rehearse runs same_records schema seed separator sheet shoal spreadsheet_safe staging statistics taxonomy
thousands types view work workers
"""
_OPTIONS = frozenset(_WORDS.split())
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
    add_noise(name, replace(family, outside=_accounted(name, who, accounting, k=1)))


def register_partition(
    name: str, stage: PartitionStage, *, who: str, accounting: Accounting | None = None
) -> None:
    """Add a way to group records; its accounting is of Laplace noise on the sums of its clusters.

    Raises:
        OptionError: the name is taken.
        ClaimError: the accounting finds that more than ε can be lost.
    """
    _free("partition", name, PARTITIONS)
    add_partition(name, replace(stage, outside=_accounted(name, who, accounting)))


def register_method(cls: _MethodClass, *, who: str, accounting: Accounting | None = None) -> _MethodClass:
    """Make a method known by its name: to `shoal.protect`, recipes, the command line, tuning and Studio.

    The method of a package that is installed is found by itself, if the package has an entry point in the group
    `shoal.methods`, which is a function that calls this one.

    Args:
        cls: a subclass of `Method`, or of a method of the package.
        who: whose it is, for statements.
        accounting: what its releases lose; without one it claims nothing, unless all it changes of a method of the
            package is values: defaults of parameters, or which registered stages it has. Such a method claims what
            those do.

    Raises:
        OptionError: the name is taken, a parameter is called like another option, or a stage is not registered.
        ClaimError: the accounting finds that more than ε can be lost.
    """
    _free("method", cls.name, names())
    for option, known in cls.parameters().items():
        if option in _OPTIONS or option in DECLARATIONS:
            raise OptionError("there-is-a-already", what="option", name=option)
        _check_default(cls.name, known)
    if cls.partition not in PARTITIONS:
        raise OptionError(
            "method-names-none", option="method", method=cls.name, what="partition", named=cls.partition
        )
    own = accounting is None and _only_values(cls)
    cls.outside = None if own else _accounted(cls.name, who, accounting)
    register(cls)
    return cls


def _check_default(method: str, known: Parameter) -> None:
    if isinstance(known.default, str) and known.choices and not known.form.keyed:
        allowed = {*known.choices, *known.form.besides}
        if known.default not in allowed:
            raise OptionError(
                "method-names-none", option="method", method=method, what=known.name, named=known.default
            )


def _only_values(cls: type[Method]) -> bool:
    """Whether a class says nothing of its own about what it does and claims, so that those of its base hold."""
    base, *_ = cls.__bases__
    if not issubclass(base, Method) or base is Method:
        return False
    computed = (property, classmethod, staticmethod, FunctionType)
    # whose it is, is settled by who registers it
    own = {
        name: value for name, value in vars(cls).items() if name != "outside" and not name.startswith("__")
    }
    return (
        base.__module__.startswith(f"{__package__}.")
        and len(cls.__bases__) == 1
        # whatever else a claim follows from is not for a subclass to say
        and own.keys() <= {*_NAMED, *base.parameters()}
        and not any(isinstance(value, computed) for value in own.values())
    )


def _free(what: str, name: str, table: Container[str]) -> None:
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
