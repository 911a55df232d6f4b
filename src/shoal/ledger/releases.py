"""Releases in the ledger: a table that is about to be published comes in, its charge and warnings leave.

What a release costs can only be added to answers under the same relation of neighbours and for the same unit, and only
where its claim is about the original records. Everything else is recorded, and has no place under a ceiling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction

from shoal.decimals import decimal_text
from shoal.errors import ClaimError, ShoalError
from shoal.ledger.choices import paid_before
from shoal.ledger.entry import Entry, canonical
from shoal.ledger.ledger import Ledger, open_ledger
from shoal.ledger.operations import SYMBOLS, Charge, Currency
from shoal.ledger.units import account_of
from shoal.method.models import MODELS
from shoal.method.statement import PrivacyStatement
from shoal.method.tuned import Tuned
from shoal.text import Message


@dataclass(frozen=True, slots=True)
class Recorded:
    """A release in the ledger.

    Attributes:
        dataset: whose budget it was charged to.
        charge: number of the entry.
        added: what it added to the total of the data set, in its currency; None for a claim that is recorded and not
            counted.
        currency: of the data set.
        warnings: for the custodian.
        head: hash of the entry.
    """

    dataset: str
    charge: int
    added: Fraction | None
    currency: Currency
    warnings: tuple[Message, ...]
    head: str = ""

    @property
    def cost(self) -> str:
        """What was charged, in words; empty where nothing was."""
        return "" if self.added is None else f"{SYMBOLS[self.currency]} = {decimal_text(self.added)}"


def record_release(
    ledger: Ledger,
    dataset: str,
    statement: PrivacyStatement,
    neighbours: str,
    table: str,
    bought: Tuned | None = None,
    *,
    measured: bool = False,
) -> Recorded:
    """Charge a release before it is made, and say what else is known about the same table.

    Args:
        ledger: where it is recorded.
        dataset: whose budget it is; a new name is registered without a ceiling.
        statement: of the release.
        neighbours: the relation that the statement is about, "replace-one" or "add-remove".
        table: fingerprint of the original.
        bought: settings that were chosen under a budget, which the statement contains; it is not charged again where
            the choice itself was charged to this data set.
        measured: what the release loses and risks will be shown to the custodian.

    Returns:
        What was charged, and warnings for the custodian.

    Raises:
        OverdrawnError: the budget does not allow it.
        ClaimError: the data set has a ceiling, and the claim of the release cannot be counted under it; or it counts
            under another relation of neighbours, or for another unit.
    """
    warnings = list(_other_uses(ledger, table))
    counted = (
        MODELS[statement.model].of_records and not statement.data_dependent and statement.epsilon is not None
    )
    unit = statement.unit if counted else None
    delta = statement.delta if counted else Fraction(0)
    terms = account_of(ledger, dataset, neighbours, unit, table, delta).terms
    if terms.ceiling is not None and not counted:
        raise ClaimError("data-set-ceiling-release-no-original", dataset=dataset, model=statement.model)
    content = {
        "release": statement.method,
        "model": statement.model,
        "claimed": None if statement.epsilon is None else str(statement.epsilon),
        **({} if statement.rho is None else {"delta": str(statement.delta), "rho": str(statement.rho)}),
        "unit": statement.unit,
        "columns": list(statement.attributes),
        "publishable": statement.publishable,
        "table": table,
        **({"measured": True} if measured else {}),
    }
    pure = counted and statement.epsilon is not None and statement.rho is None
    cost = statement.epsilon if pure and statement.epsilon is not None else Fraction(0)
    if cost and bought is not None and paid_before(ledger, dataset, bought):
        cost -= statement.spending[f"choice of {bought.words}"] or Fraction(0)
    rho = statement.rho if counted else None
    receipt = ledger.charge(Charge(dataset, "", canonical(content), cost, kind="release", rho=rho))
    added = receipt.added if counted else None
    return Recorded(dataset, receipt.charge, added, terms.currency, tuple(warnings), receipt.head)


def releases_in(address: str, dataset: str) -> dict[str, bool]:
    """The hashes of the releases of a data set that a ledger knows, and whether each was measured.

    No ledger at the address is a new one, which is made when it is charged.
    """
    try:
        with closing(open_ledger(address, create=False)) as ledger:
            if dataset not in ledger.datasets():
                return {}
            made = [entry for entry in ledger.entries(dataset) if entry.kind == "release"]
    except ShoalError:
        # what is wrong with it is said when it is charged
        return {}
    return {entry.hash: bool(json.loads(entry.content).get("measured")) for entry in made}


def _other_uses(ledger: Ledger, table: str) -> Iterator[Message]:
    for name in ledger.datasets():
        for entry in ledger.entries(name):
            yield from _use(entry, table)


def _use(entry: Entry, table: str) -> Iterator[Message]:
    if entry.kind == "release":
        earlier = json.loads(entry.content)
        if earlier["table"] == table:
            claim: list[str | Message] = [earlier["model"]]
            if earlier["claimed"] is not None:
                epsilon = decimal_text(Fraction(earlier["claimed"]))
                claim.append(Message.of("claimed-epsilon", epsilon=epsilon))
            if "delta" in earlier:
                claim.append(Message.of("claimed-delta", delta=decimal_text(Fraction(earlier["delta"]))))
            yield Message.of(
                "released-before",
                day=entry.at[:10],
                method=earlier["release"],
                claim=tuple(claim),
                dataset=entry.dataset,
            )
    elif entry.kind == "terms" and entry.number == 1:
        terms = json.loads(entry.content)
        if terms["fingerprint"] == table and terms["ceiling"] is not None:
            yield Message.of("questions-answered", dataset=entry.dataset)
