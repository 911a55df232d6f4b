"""Third-party extensions: register methods, noises, partitions, measures and formats.

Shoal does not vouch for third-party stages: by default their claim is `none` and their releases are not for
publication, unless the stage is registered with an accounting that passes. Shoal calls the accounting on pairs of small
neighbouring tables, and it returns how well a release distinguishes them; if that ever exceeds ε, the stage is not
registered. Statements name who makes the claim.
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

# number of pairs of neighbouring tables an accounting is checked on
_PAIRS = 200
# tolerance for rounding in a loss computed in floating point
_ROOM = 1e-9


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring tables that differ in one record, and the parameters of a release.

    Attributes:
        epsilon: the budget, shared equally among the columns.
        k: the minimum cluster size.
        widths: the public domain of each column is 0 to this number, in steps of 1.
        before, after: the values of each column.
    """

    epsilon: Fraction
    k: int
    widths: Mapping[str, int]
    before: Mapping[str, tuple[int, ...]]
    after: Mapping[str, tuple[int, ...]]

    @property
    def share(self) -> Fraction:
        """ε of one column."""
        return self.epsilon / len(self.widths)


_MethodClass = TypeVar("_MethodClass", bound=type[Method])
# what a subclass may define besides parameter defaults and keep the claim of its base, which follows from its stage
_NAMED = {"name", "about", "paper", "partition"}
# options of calls and commands, which cannot be names of a method's parameters
_WORDS = """
all conf config confidence data dataset date_format decimal dry_run encoding engine evaluate everything file format
header_row help help_all internal json labels ledger log master method not_same_records on out people plot progress
quote range rehearse runs same_records schema seed separator sheet shoal spreadsheet_safe staging statistics taxonomy
thousands types view work workers
"""
_OPTIONS = frozenset(_WORDS.split())
# the largest log-ratio of output probabilities between the two tables of a pair
Accounting = Callable[[Pair], "Fraction | float"]


def pairs(k: int | None = None) -> Iterator[Pair]:
    """The fixed pairs an accounting is checked on; with k = 1, clusters have one record."""
    draw = random.Random(18)
    for _ in range(_PAIRS):
        rows = draw.randint(1, 6)
        widths = {name: draw.choice((1, 3, 10)) for name in "ab"[: draw.randint(1, 2)]}

        def value(width: int) -> int:
            # half of the values lie at the ends of the domain, where the loss is largest
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
    """Register a kind of noise. Its accounting is checked on clusters of one record.

    Raises:
        OptionError: the name is taken.
        ClaimError: the accounting finds a loss above ε.
    """
    _free("noise", name, NOISES)
    add_noise(name, replace(family, outside=_accounted(name, who, accounting, k=1)))


def register_partition(
    name: str, stage: PartitionStage, *, who: str, accounting: Accounting | None = None
) -> None:
    """Register a partition algorithm; its accounting is for Laplace noise on the cluster sums.

    Raises:
        OptionError: the name is taken.
        ClaimError: the accounting finds a loss above ε.
    """
    _free("partition", name, PARTITIONS)
    add_partition(name, replace(stage, outside=_accounted(name, who, accounting)))


def register_method(cls: _MethodClass, *, who: str, accounting: Accounting | None = None) -> _MethodClass:
    """Register a method by its name, for `shoal.protect`, recipes, the command line, tuning and Studio.

    Methods of installed packages are found automatically through the entry point group `shoal.methods`: the entry
    point is a function that calls this one.

    Args:
        cls: a subclass of `Method`, or of one of Shoal's own methods.
        who: who vouches for it, named in statements.
        accounting: the privacy loss of its releases; without one it claims nothing, unless it only changes
            values of one of Shoal's methods: parameter defaults, or which registered stages it uses. Such a method
            makes the claim of those stages.

    Raises:
        OptionError: the name is taken, a parameter has the name of another option, a stage is not registered, or
            `plan` or `run` is missing.
        ClaimError: the accounting finds a loss above ε.
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
    lacking = next((name for name in ("plan", "run") if not cls.work and name not in _inherited(cls)), None)
    if lacking is not None:
        raise OptionError("method-lacks-function", method=cls.name, lacking=lacking)
    own = accounting is None and _only_values(cls)
    cls.outside = None if own else _accounted(cls.name, who, accounting)
    register(cls)
    return cls


def _inherited(cls: type[Method]) -> set[str]:
    """What a class and its bases define, up to `Method`, which looks for it in a module of Shoal."""
    return {name for base in cls.__mro__ if base not in (Method, object) for name in vars(base)}


def _check_default(method: str, known: Parameter) -> None:
    if isinstance(known.default, str) and known.choices and not known.form.keyed:
        allowed = {*known.choices, *known.form.besides}
        if known.default not in allowed:
            raise OptionError(
                "method-names-none", option="method", method=method, what=known.name, named=known.default
            )


def _only_values(cls: type[Method]) -> bool:
    """Whether a class overrides nothing about operation or claim, so that those of its base hold."""
    base, *_ = cls.__bases__
    if not issubclass(base, Method) or base is Method:
        return False
    computed = (property, classmethod, staticmethod, FunctionType)
    # set by the party that registers it
    own = {
        name: value for name, value in vars(cls).items() if name != "outside" and not name.startswith("__")
    }
    return (
        base.__module__.startswith(f"{__package__}.")
        and len(cls.__bases__) == 1
        # whatever else a claim follows from must not be overridden
        and own.keys() <= {*_NAMED, *base.parameters()}
        and not any(isinstance(value, computed) for value in own.values())
    )


def _free(what: str, name: str, table: Container[str]) -> None:
    if name in table:
        raise OptionError("there-is-a-already", what=what, name=name)


def _accounted(name: str, who: str, accounting: Accounting | None, k: int | None = None) -> Outside:
    """The origin of a stage, once its accounting has passed."""
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
