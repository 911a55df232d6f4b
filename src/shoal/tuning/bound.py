"""A private choice of the number of rows per unit: a quantile of rows per unit, by the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.columns import read_declared, texts, unit_words
from shoal.errors import InputError, OptionError
from shoal.io import dumps
from shoal.mechanisms import DEFAULT_METHOD, Choice, Tuned
from shoal.noise import exponential_choice
from shoal.noise import source as noise_source
from shoal.numbers import Integers, exact
from shoal.privacy import Accountant, Adjacency, Spend
from shoal.tuning.private import account as account_of
from shoal.tuning.private import private_epsilon

if TYPE_CHECKING:
    from shoal.columns import Schema

SETTING = "bound"
_PURPOSE = "choice of bound"
_MOST_ROWS = 10_000
_FINEST = 10_000
# probability with which a choice may miss its share by more than `units_off` says
_MISSED = 0.05
_RECIPE = "# A bound on the rows of each unit that was chosen privately, with its cost.\n"


@dataclass(frozen=True, slots=True)
class BoundChoice:
    """A bound chosen privately; it may be published.

    Attributes:
        rows: the chosen number of rows.
        tuned: the choice with its cost, for `shoal.protect`.
    """

    rows: int
    tuned: Tuned

    @property
    def bound(self) -> dict[str, int]:
        """The bound, for `shoal.protect` and schemas."""
        return {"rows": self.rows}

    def recipe_text(self, schema: Schema) -> str:
        """The beginning of a recipe: the schema with this bound, and the choice with its cost.

        `shoal protect --config` takes it with an ε, and a method other than pairs-dp if one is given.
        """
        document = {
            "method": DEFAULT_METHOD,
            "tuned": self.tuned.text,
            "tuned_epsilon": self.tuned.epsilon,
            "tuned_choice": [choice.to_dict() for choice in self.tuned.choice],
        }
        return _RECIPE + dumps({**document, **schema.with_bound(self.bound).to_dict()})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "rows": self.rows,
            "epsilon": float(self.tuned.epsilon or 0),
            "tuned_choice": [choice.to_dict() for choice in self.tuned.choice],
        }


def units_off(epsilon: Any, most: int, share: Any = Fraction(9, 10)) -> float:
    """By how many units a choice may miss its share, with a probability of 95%: from public quantities alone.

    A penalty above t occurs with a probability of at most `most` · exp(-ε t / (2 max(q, 1 - q))), because some
    bound has the penalty 0.

    >>> round(units_off("0.1", 30), 1)
    115.1
    """
    budget, wanted = _checked(epsilon, most, share)
    return 2 * float(max(wanted, 1 - wanted)) / float(budget) * math.log(most / _MISSED)


def choose_bound(
    data: Any,
    schema: Schema,
    epsilon: Any,
    *,
    most: int,
    share: Any = Fraction(9, 10),
    ledger: str | Path | None = None,
    dataset: str | None = None,
) -> BoundChoice:
    """Choose how many rows of a unit may take part, so that about a share of the units lose none.

    Args:
        data: a path or a table.
        schema: its declarations, with a unit column.
        epsilon: the budget of the choice, per unit; a release with the chosen bound adds it to its own ε.
        most: the largest number of rows to choose; a public fact, fixed without looking at the records.
        share: of the units, whose rows should all take part.
        ledger: charge the choice to this ledger before it is made.
        dataset: the name of the data set that the ledger charges.

    Guarantee:
        ε-DP of the original records under add-remove of a whole unit. Proof: docs/proofs/units.md, section 4.

    Raises:
        OptionError: an option cannot be used; nothing was charged.
        InputError: a row has no unit; nothing was charged.

    >>> import pyarrow as pa
    >>> from shoal import Schema
    >>> schema = Schema.from_dict({"attribute": [{"name": "who", "role": "unit", "type": "integer"}]})
    >>> stays = pa.table({"who": [i // 2 for i in range(400)]})
    >>> choose_bound(stays, schema, 5, most=30).bound
    {'rows': 2}
    """
    unit = schema.stepped.unit
    if unit is None:
        raise OptionError("bound-needs-unit", option="bound")
    budget, wanted = _checked(epsilon, most, share)
    charged = account_of(ledger, dataset, budget)
    names, codes = texts(read_declared(data, schema, empty=True), unit.name)
    if (codes < 0).any():
        raise InputError("unit-column-missing-values", column=unit.name)
    counts = np.bincount(codes, minlength=len(names))
    candidates = tuple(range(1, most + 1))
    account = Accountant.of(
        {_PURPOSE: budget}, budget, noise_source(None), adjacency=Adjacency.ADD_REMOVE, unit=unit.name
    )
    if charged is None:
        rows = draw_bound(counts, most, wanted, account.spend(_PURPOSE, budget))
    else:
        from shoal.ledger import charge_choice, keep_choice, open_ledger

        opened = open_ledger(charged.address)
        try:
            words = unit_words(unit.name, None, unit.called)
            number = charge_choice(
                opened, charged.dataset, {SETTING: candidates}, budget, Adjacency.ADD_REMOVE, words
            )
            rows = draw_bound(counts, most, wanted, account.spend(_PURPOSE, budget))
            keep_choice(opened, charged.dataset, number, {SETTING: rows})
        finally:
            opened.close()
    return BoundChoice(rows, Tuned((SETTING,), budget, (Choice(SETTING, rows, candidates),)))


def _checked(epsilon: Any, most: int, share: Any) -> tuple[Fraction, Fraction]:
    """The budget and the share."""
    budget = private_epsilon(epsilon)
    if type(most) is not int or not 2 <= most <= _MOST_ROWS:
        raise OptionError("most-rows-to-choose", option="most", most=_MOST_ROWS, found=most)
    wanted = exact(share, "share")
    if not 0 < wanted < 1 or wanted.denominator > _FINEST:
        raise OptionError("share-of-units", option="share", finest=_FINEST, found=share)
    return budget, wanted


def penalties_of(counts: Integers, most: int, share: Fraction) -> Integers:
    """How far the share of the units lies outside the ranks of each candidate 1 .. most, in units of 1/denominator.

    The ranks of r go from the number of units with fewer rows to that of units with at most r; a unit with more than
    `most` rows counts as one with `most`.

    >>> penalties_of(np.array([1, 1, 2, 7]), 4, Fraction(1, 2)).tolist()
    [0, 0, 2, 2]
    """
    clipped = np.minimum(counts, most)
    upto = np.cumsum(np.bincount(clipped, minlength=most + 1))[1:].astype(np.int64)
    below = np.concatenate((np.zeros(1, dtype=np.int64), upto[:-1]))
    wanted = share.numerator * counts.size
    found: Integers = np.maximum(
        0, np.maximum(wanted - share.denominator * upto, share.denominator * below - wanted)
    )
    return found


def draw_bound(counts: Integers, most: int, share: Fraction, spend: Spend) -> int:
    """The bound, by the exponential mechanism: a unit moves a penalty by at most the larger of share and 1 - share."""
    epsilon, source = spend.take()
    steps = max(share.numerator, share.denominator - share.numerator)
    lengths = np.ones(most, dtype=np.int64)
    return 1 + exponential_choice(lengths, penalties_of(counts, most, share), epsilon / (2 * steps), source)
