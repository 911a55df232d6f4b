"""The grid of a tuning: methods, sizes, splits and noises come in, the settings to compare leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shoal.decimals import decimal_text
from shoal.errors import OptionError
from shoal.method.registry import method_class
from shoal.noise.gaussian import parse_delta

DEFAULT_METHODS = (
    "pairs-dp",
    "laplace",
    "mdav-dp",
    "ranking-dp",
    "optimal-dp",
    "idp-cbls",
    "insensitive-dp",
    "tree-dp",
)
# sizes that are compared if none are named
_SIZES = 10
_SMALLEST = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to protect a table: a method, and those of its settings that are compared; None is the method's own.

    >>> str(Setting("ranking-dp", 50, "optimal")), str(Setting("laplace"))
    ('ranking-dp, k = 50, split optimal', 'laplace')
    """

    method: str
    k: int | None = None
    split: str | None = None
    noise: str | None = None
    delta: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The settings as arguments of `shoal.protect`."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "method"}

    def __str__(self) -> str:
        words = [self.method]
        if self.k is not None:
            words.append(f"k = {self.k}")
        words += [f"{name} {value}" for name, value in self.options.items() if name != "k"]
        return ", ".join(words)

    def to_dict(self) -> dict[str, Any]:
        return {"method": self.method, **self.options}


def default_sizes(n: int) -> tuple[int, ...]:
    """Ten sizes from 3 to half of the rows, each about the same factor larger than the one before.

    They follow from the number of rows alone.

    >>> default_sizes(1080)
    (3, 5, 10, 17, 30, 54, 96, 170, 303, 540)
    >>> default_sizes(7), default_sizes(2)
    ((3,), (2,))
    """
    smallest = min(_SMALLEST, n)
    largest = max(smallest, n // 2)
    return tuple(sorted({round(size) for size in np.geomspace(smallest, largest, _SIZES).tolist()}))


def make_grid(
    methods: Sequence[str] | None,
    ks: Sequence[int] | None,
    splits: Sequence[str] | None,
    noises: Sequence[str] | None,
    n: int,
    deltas: Sequence[Any] | None = None,
) -> tuple[Setting, ...]:
    """Every combination of what a method can be told; a method without an option appears once for it.

    Raises:
        OptionError: a list is empty or holds something twice, a size is none, or a method is unknown.

    >>> [str(setting) for setting in make_grid(["laplace", "ranking-dp"], [5, 9], None, None, 100)]
    ['laplace', 'ranking-dp, k = 5', 'ranking-dp, k = 9']
    >>> [str(setting) for setting in make_grid(["pairs-dp", "tree-dp"], None, None, None, 100, ["0", "1e-6"])]
    ['pairs-dp, delta 0', 'pairs-dp, delta 1e-06', 'tree-dp']
    """
    names = _listed("methods", methods) or DEFAULT_METHODS
    sizes = _listed("ks", ks) or default_sizes(n)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise OptionError("every-k-whole-number-least-1", found=size)
    shares, families = _listed("splits", splits), _listed("noises", noises)
    chances = _listed("deltas", None if deltas is None else _deltas(deltas))
    grid: list[Setting] = []
    for name in names:
        known = method_class(name).parameters()
        grid += [
            Setting(name, k, split, noise, delta)
            for k in (sizes if "k" in known else (None,))
            for split in (shares if shares and "split" in known else (None,))
            for noise in (families if families and "noise" in known else (None,))
            for delta in (chances if chances and "delta" in known else (None,))
        ]
    return tuple(grid)


def compared(settings: Sequence[Setting]) -> tuple[str, ...]:
    """What the settings differ in: this is what a choice among them chooses.

    A size or a split that no other setting of its method has is part of the choice of the method.

    >>> compared([Setting("laplace"), Setting("ranking-dp", 5), Setting("ranking-dp", 9)])
    ('method', 'k')
    """
    found = ["method"] if len({setting.method for setting in settings}) > 1 else []
    for name in ("k", "split", "noise", "delta"):
        pairs = {(setting.method, getattr(setting, name)) for setting in settings}
        if len(pairs) > len({method for method, _ in pairs}):
            found.append(name)
    return tuple(found)


def _deltas(values: Sequence[Any]) -> Sequence[Any]:
    """As decimal texts, so that one number has one form; what is no list is left to be refused."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        return values
    return [decimal_text(parse_delta(value)) for value in values]


def _listed(option: str, values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise OptionError("option-list-least-entry", option=option, found=values)
    for value in values:
        if list(values).count(value) > 1:
            raise OptionError("option-names-twice", option=option, value=value)
    return tuple(values)
