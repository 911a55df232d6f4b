"""How the budget ε is shared out: public widths come in, one exact share per attribute leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from shoal.decimals import exact
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.text import Message

# Irrational weights are rounded down to this many parts, so the shares never add up to more than ε.
_PARTS = 2**40
SPLITS = ("equal", "proportional", "optimal")
Split = str | Mapping[str, object]


@internal()
@dataclass(frozen=True, slots=True)
class Plan:
    """How ε will be spent, settled before any record is looked at.

    Attributes:
        spending: ε by purpose, in words; adds up to at most the method's budget.
        shares: ε of each attribute's values.
        per_attribute: what a change in one attribute alone costs, where that is not its share; empty where neighbours
            never differ in one attribute alone.
        conditions: what the statement should say about how the plan was made.
        flags: ε of whether a value is missing, for columns where that is drawn by itself.
    """

    spending: Mapping[str, Fraction]
    shares: Mapping[str, Fraction]
    conditions: tuple[Message, ...] = ()
    per_attribute: Mapping[str, Fraction] | None = None
    flags: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def stated(self) -> Mapping[str, Fraction]:
        """What the statement says that a change in one attribute alone costs."""
        return self.shares if self.per_attribute is None else self.per_attribute


def split_budget(
    epsilon: Fraction, names: Sequence[str], widths: Sequence[Fraction | None], split: Split
) -> tuple[Fraction, ...]:
    """Share ε over attributes. The shares are exact and never add up to more than ε.

    `equal` gives every attribute the same. `proportional` gives ε_j ∝ W_j, the split that a joint L1 query in
    the attributes' own units amounts to. `optimal` gives ε_j ∝ W_j^(2/3), which minimises Σ W_j²/ε_j², the
    noise variance before clipping. A mapping gives explicit weights. Attributes without a width (None: nominal
    ones) get an equal share, and the others split what is left.

    Reference:
        MDAI-2017, IR_MDAV+DP_1 (equal) and IR_MDAV+DP_2 (proportional).

    >>> split_budget(Fraction(1), ["a", "b"], [Fraction(1), Fraction(3)], "proportional")
    (Fraction(1, 4), Fraction(3, 4))
    """
    weights = _weights(names, widths, split)
    total = sum(weights)
    return tuple(epsilon * weight / total for weight in weights)


def _weights(names: Sequence[str], widths: Sequence[Fraction | None], split: Split) -> list[Fraction]:
    if isinstance(split, str):
        known = [width for width in widths if width is not None]
        if split == "equal" or not known:
            return [Fraction(1)] * len(names)
        if len(known) < len(widths):
            among = iter(_weights(["?"] * len(known), known, split))
            parts = [None if width is None else next(among) for width in widths]
            mean = sum((part for part in parts if part is not None), Fraction(0)) / len(known)
            return [mean if part is None else part for part in parts]
        if split == "proportional":
            return known
        if split == "optimal":
            roots = [float(width / max(known)) ** (2 / 3) for width in known]
            return [Fraction(max(1, math.floor(root * _PARTS)), _PARTS) for root in roots]
        raise OptionError(
            "unknown-split",
            option="split",
            split=split,
            allowed=tuple(SPLITS),
            hint=closest(split, SPLITS),
        )
    for name in split:
        if name not in names:
            raise OptionError(
                "split-names-column-not-protected", column=name, option="split", hint=closest(name, names)
            )
    missing = [name for name in names if name not in split]
    if missing:
        raise OptionError("split-gives-no-weight-column", column=missing[0])
    weights = [
        exact(split[name], Message.of("weight-of-column", setting="split", column=name)) for name in names
    ]
    for name, weight in zip(names, weights, strict=True):
        if weight <= 0:
            raise OptionError("split-weight-column-above-0", column=name, found=float(weight))
    return weights
