"""Private choices in the ledger: one is charged before it is drawn, kept when it is drawn, and recognised later.

A release with the chosen values states the price of the choice together with its own. Where the choice was charged to
the same data set, only the rest is charged with the release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from shoal.ledger.entry import canonical, fraction_text
from shoal.ledger.ledger import Ledger
from shoal.ledger.operations import Charge, Deposit
from shoal.ledger.units import account_of
from shoal.method.tuned import Tuned

Values = Mapping[str, int | str]


def charge_choice(
    ledger: Ledger,
    dataset: str,
    candidates: Mapping[str, Sequence[int | str]],
    epsilon: Fraction,
    cost: Fraction,
    neighbours: str,
    unit: str,
) -> int:
    """Charge a private choice before the records are looked at.

    Args:
        candidates: the values of each setting that is chosen.
        epsilon: the budget of the choice, per row.
        cost: what that is per unit of the data set.

    Returns:
        The number of the charge, for `keep_choice`.

    Raises:
        OverdrawnError: the budget does not allow it.
        ClaimError: the budget is about another relation of neighbours, or another unit.
    """
    account_of(ledger, dataset, neighbours, unit)
    content = canonical(_request(candidates, epsilon))
    return ledger.charge(Charge(dataset, "", content, cost)).charge


def keep_choice(ledger: Ledger, dataset: str, charge: int, chosen: Values) -> None:
    """Note what was drawn. A charge without it was cut off, and has bought nothing."""
    ledger.deposit(Deposit(dataset, charge, "", canonical({"chosen": dict(chosen)})))


def paid_before(ledger: Ledger, dataset: str, bought: Tuned) -> bool:
    """Whether this very choice, with these values, was charged to the data set."""
    if bought.epsilon is None:
        return False
    candidates = {one.setting: one.candidates for one in bought.choice}
    request = canonical(_request(candidates, bought.epsilon))
    answer = canonical({"chosen": {one.setting: one.chosen for one in bought.choice}})
    charges = {entry.number for entry in ledger.entries(dataset) if entry.content == request}
    return any(entry.refers in charges and entry.content == answer for entry in ledger.entries(dataset))


def choice_words(request: str, answer: str | None) -> str | None:
    """A private choice as a listing shows it; None for any other charge.

    >>> choice_words('{"choice":{"k":[5,9]},"epsilon":"1/2"}', '{"chosen":{"k":9}}')
    'k = 9 of 5, 9'
    """
    choice = json.loads(request).get("choice")
    if choice is None:
        return None
    chosen = {} if answer is None else json.loads(answer)["chosen"]
    return "; ".join(
        f"{name}{f' = {chosen[name]}' if name in chosen else ''} of {', '.join(map(str, values))}"
        for name, values in choice.items()
    )


def _request(candidates: Mapping[str, Sequence[int | str]], epsilon: Fraction) -> dict[str, Any]:
    return {
        "choice": {name: list(values) for name, values in candidates.items()},
        "epsilon": fraction_text(epsilon),
    }
