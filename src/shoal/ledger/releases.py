"""Releases in the ledger: units and adjacency of a budget, and the charge of a release."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal._moved import renamed
from shoal.columns import ROW, same_unit, unit_words
from shoal.errors import ClaimError, OptionError, ShoalError
from shoal.ledger.account import (
    SYMBOLS,
    Charge,
    Currency,
    Deposit,
    LedgerEntry,
    LedgerError,
    Register,
    Standing,
    Terms,
    canonical,
    fraction_text,
    rounded_up,
)
from shoal.ledger.ledger import Ledger, open_ledger
from shoal.noise import parse_delta, parse_epsilon, rho_from
from shoal.numbers import decimal_text, exact
from shoal.privacy import MODELS, Adjacency, PrivacyStatement
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.mechanisms import Tuned


def named_dataset(ledger: object, dataset: str | None) -> str | None:
    """The declared name of a data set, under which a ledger charges.

    A name taken from a file would differ between copies of the same table, and coincide for tables of different people.

    Raises:
        OptionError: there is a ledger, but no name.
    """
    if ledger is not None and not dataset:
        raise OptionError("ledger-needs-dataset", option="dataset")
    return dataset or None


def opened_budget(
    dataset: str,
    adjacency: str,
    epsilon: str | None,
    delta: str,
    rho: str | None,
    unit: str | None = None,
    max_rows: int | None = None,
    called: str | None = None,
) -> Register:
    """The terms of a budget as the custodian writes them: ε, or ε and δ, or ρ and δ.

    Args:
        unit: the column that identifies a unit; None for a budget per row.
        max_rows: the most rows of a unit, as the schema declares it.
        called: the word for a unit, as the schema declares it.

    Raises:
        OptionError: the values do not form a budget.

    >>> float(opened_budget("people", "add-remove", "1", "1e-6", None).ceiling)
    0.0243559703595
    """
    if (epsilon is None) == (rho is None):
        raise OptionError("budget-opened-epsilon-rho")
    if unit is None and (max_rows is not None or called is not None):
        raise OptionError("units-max-rows-persons-who-values-column", option="max_rows")
    words = ROW if unit is None else unit_words(unit, max_rows or 1, called)
    failure = parse_delta(delta)
    if rho is not None:
        most = exact(rho, "rho")
        if most <= 0:
            raise OptionError("rho-above-0", option="rho", found=rho)
    else:
        most = parse_epsilon(epsilon or "")
        most = rho_from(most, failure) if failure else most
    currency: Currency = "rho" if rho is not None or failure else "epsilon"
    return Register(dataset, Adjacency.named(adjacency), most, failure, unit=words, currency=currency)


def account_of(
    ledger: Ledger,
    dataset: str,
    adjacency: str,
    unit: str | None,
    table: str = "",
    delta: Fraction = Fraction(0),
) -> Standing:
    """The account of a data set to which a claim for this unit can be charged; a new name gets one without a ceiling.

    Args:
        unit: the unit of the claim, as in statements; None for a release that is not counted.
        delta: with a δ, a new name gets a budget in (ρ, δ).

    Raises:
        ClaimError: the account is for another unit or adjacency.
    """
    standing = _standing(ledger, dataset, adjacency, unit, table, delta)
    terms = standing.terms
    if unit is None or (terms.adjacency == adjacency and same_unit(terms.unit, unit)):
        return standing
    if terms.adjacency != adjacency:
        raise ClaimError(
            "data-set-counts-under-neighbour-relation",
            dataset=dataset,
            neighbours=terms.adjacency,
            neighbours_2=adjacency,
        )
    if terms.unit is not None:
        raise ClaimError(
            "budget-data-set-per-release-claims",
            option="dataset",
            dataset=dataset,
            unit=terms.unit,
            unit_2=unit,
        )
    if terms.ceiling is not None or standing.spent or standing.delta_spent:
        raise ClaimError("budget-data-set-begun-version-shoal", dataset=dataset, unit=unit)
    declare_unit(ledger, dataset, unit)
    return ledger.standing(dataset)


def declare_unit(ledger: Ledger, dataset: str, unit: str) -> None:
    """Fix the unit of a data set without one.

    Raises:
        OptionError: it has another unit.
        LedgerError: there is no such data set.
    """
    ledger.register(_again(dataset, ledger.standing(dataset).terms, unit))


def _again(dataset: str, terms: Terms, unit: str) -> Register:
    return Register(
        dataset,
        terms.adjacency,
        terms.ceiling,
        terms.delta_ceiling,
        terms.analysts,
        terms.every_analyst,
        terms.fingerprint,
        unit,
        terms.currency,
    )


def _standing(
    ledger: Ledger, dataset: str, adjacency: str, unit: str | None, table: str, delta: Fraction
) -> Standing:
    try:
        return ledger.standing(dataset)
    except LedgerError:
        if dataset in ledger.datasets():
            raise
    currency: Currency = "rho" if delta else "epsilon"
    ledger.register(
        Register(dataset, adjacency, None, delta, fingerprint=table, unit=unit, currency=currency)
    )
    return ledger.standing(dataset)


Values = Mapping[str, int | str]


def charge_choice(
    ledger: Ledger,
    dataset: str,
    candidates: Mapping[str, Sequence[int | str]],
    epsilon: Fraction,
    adjacency: str,
    unit: str,
) -> int:
    """Charge a private choice before the records are read.

    Args:
        candidates: the candidate values of each chosen setting.
        epsilon: the budget of the choice, per unit of the data set.

    Returns:
        The number of the charge, for `keep_choice`.

    Raises:
        OverdrawnError: the budget does not allow it.
        ClaimError: the budget is about another adjacency, or another unit.
    """
    account_of(ledger, dataset, adjacency, unit)
    content = canonical(_request(candidates, epsilon))
    return ledger.charge(Charge(dataset, "", content, epsilon)).charge


def keep_choice(ledger: Ledger, dataset: str, charge: int, chosen: Values) -> None:
    """Store the result of a choice. A charge without a result was interrupted and covers nothing."""
    ledger.deposit(Deposit(dataset, charge, "", canonical({"chosen": dict(chosen)})))


def paid_before(ledger: Ledger, dataset: str, bought: Tuned) -> bool:
    """Whether exactly this choice, with these values, was charged to the data set."""
    if bought.epsilon is None:
        return False
    candidates = {one.setting: one.candidates for one in bought.choice}
    request = _request(candidates, bought.epsilon)["choice"]
    answer = canonical({"chosen": {one.setting: one.chosen for one in bought.choice}})
    # the request of an earlier version states the budget of a row, but its charge was that of the unit
    charges = {
        entry.number
        for entry in ledger.entries(dataset)
        if entry.kind == "charge"
        and entry.epsilon == rounded_up(bought.epsilon)
        and json.loads(entry.content).get("choice") == request
    }
    return any(entry.refers in charges and entry.content == answer for entry in ledger.entries(dataset))


def choice_words(request: str, answer: str | None) -> str | None:
    """A private choice as shown in a listing; None for any other charge.

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


@dataclass(frozen=True, slots=True)
class RecordedRelease:
    """A release in the ledger.

    Attributes:
        dataset: the data set whose budget was charged.
        charge: number of the entry.
        added: the amount it added to the total of the data set, in its currency; None for a claim that is
            recorded but not counted.
        currency: currency of the data set.
        warnings: warnings for the custodian.
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
        """The charged amount as text; empty if nothing was charged."""
        return "" if self.added is None else f"{SYMBOLS[self.currency]} = {decimal_text(self.added)}"


def record_release(
    ledger: Ledger,
    dataset: str,
    statement: PrivacyStatement,
    adjacency: str,
    table: str,
    bought: Tuned | None = None,
    *,
    measured: bool = False,
) -> RecordedRelease:
    """Charge a release before it is made, and report what else is known about the same table.

    Args:
        ledger: where it is recorded.
        dataset: the data set to charge; a new name is registered without a ceiling.
        statement: the statement of the release.
        adjacency: the adjacency of the statement, "replace-one" or "add-remove".
        table: fingerprint of the original.
        bought: settings chosen under a budget that the statement includes; that budget is not charged again if
            the choice itself was charged to this data set.
        measured: whether utility and risk of the release will be shown to the custodian.

    Returns:
        The charge, and warnings for the custodian.

    Raises:
        OverdrawnError: the budget does not allow it.
        ClaimError: the data set has a ceiling under which the claim of the release cannot be counted, or it has
            another adjacency or unit.
    """
    warnings = list(_other_uses(ledger, table))
    counted = (
        MODELS[statement.model].of_records and not statement.data_dependent and statement.epsilon is not None
    )
    unit = statement.unit if counted else None
    delta = statement.delta if counted else Fraction(0)
    terms = account_of(ledger, dataset, adjacency, unit, table, delta).terms
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
    return RecordedRelease(dataset, receipt.charge, added, terms.currency, tuple(warnings), receipt.head)


def releases_in(address: str, dataset: str) -> dict[str, bool]:
    """The hashes of the releases of a data set in a ledger, and whether each was measured.

    If there is no ledger at the address, it will be created by the first charge.
    """
    try:
        with closing(open_ledger(address, create=False)) as ledger:
            if dataset not in ledger.datasets():
                return {}
            made = [entry for entry in ledger.entries(dataset) if entry.kind == "release"]
    except ShoalError:
        # problems with the ledger are reported when it is charged
        return {}
    return {entry.hash: bool(json.loads(entry.content).get("measured")) for entry in made}


def kept_bound_key(address: str, dataset: str) -> bytes | None:
    """The key of a data set in a ledger; None if there is no such ledger, or no key in it."""
    try:
        with closing(open_ledger(address, create=False)) as ledger:
            return ledger.bound_key(dataset)
    except ShoalError:
        # problems with the ledger are reported when it is charged
        return None


def _other_uses(ledger: Ledger, table: str) -> Iterator[Message]:
    for name in ledger.datasets():
        for entry in ledger.entries(name):
            yield from _use(entry, table)


def _use(entry: LedgerEntry, table: str) -> Iterator[Message]:
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


__getattr__ = renamed(__name__, Recorded="RecordedRelease")
