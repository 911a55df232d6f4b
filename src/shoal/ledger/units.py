"""Adjacency and unit of a budget: find the account of a data set, or refuse a claim that does not add up.

ε per row and ε per person are different amounts, as are those of two relations of neighbours: neither adds up.
"""

from __future__ import annotations

from fractions import Fraction

from shoal.columns.schema import ROW, unit_words
from shoal.decimals import exact
from shoal.errors import ClaimError, OptionError
from shoal.ledger.account import Standing, Terms
from shoal.ledger.entry import Currency, LedgerError, Register
from shoal.ledger.ledger import Ledger
from shoal.noise import parse_delta, parse_epsilon, rho_from
from shoal.privacy import Adjacency


def named_dataset(ledger: object, dataset: str | None) -> str | None:
    """The declared name of a data set, which a ledger charges.

    A name that were taken from a file would be another one for each copy of the same table, and the same one for the
    tables of different people.

    Raises:
        OptionError: there is a ledger, and no name.
    """
    if ledger is not None and not dataset:
        raise OptionError("ledger-needs-dataset", option="dataset")
    return dataset or None


def opened_budget(
    dataset: str,
    neighbours: str,
    epsilon: str | None,
    delta: str,
    rho: str | None,
    unit: str | None = None,
    max_rows: int | None = None,
) -> Register:
    """The terms of a budget as its holder writes them: ε, or ε and δ, or ρ and δ.

    Raises:
        OptionError: what was given does not make a budget.

    >>> float(opened_budget("people", "add-remove", "1", "1e-6", None).ceiling)
    0.0243559703595
    """
    if (epsilon is None) == (rho is None):
        raise OptionError("budget-opened-epsilon-rho")
    if unit is None and max_rows is not None:
        raise OptionError("units-max-rows-persons-who-values-column", option="max_rows")
    words = ROW if unit is None else unit_words(unit, max_rows or 1)
    failure = parse_delta(delta)
    if rho is not None:
        most = exact(rho, "rho")
        if most <= 0:
            raise OptionError("rho-above-0", option="rho", found=rho)
    else:
        most = parse_epsilon(epsilon or "")
        most = rho_from(most, failure) if failure else most
    currency: Currency = "rho" if rho is not None or failure else "epsilon"
    return Register(dataset, Adjacency.named(neighbours), most, failure, unit=words, currency=currency)


def account_of(
    ledger: Ledger,
    dataset: str,
    neighbours: str,
    unit: str | None,
    table: str = "",
    delta: Fraction = Fraction(0),
) -> Standing:
    """The account of a data set that a claim about this unit can be charged to; a new name gets one without a ceiling.

    Args:
        unit: what the claim is about, in the words of a statement; None for a release that is not counted.
        delta: with it, a new name gets a budget in (ρ, δ).

    Raises:
        ClaimError: the account is about something else.
    """
    standing = _standing(ledger, dataset, neighbours, unit, table, delta)
    terms = standing.terms
    if unit is None or (terms.neighbours, terms.unit) == (neighbours, unit):
        return standing
    if terms.neighbours != neighbours:
        raise ClaimError(
            "data-set-counts-under-neighbour-relation",
            dataset=dataset,
            neighbours=terms.neighbours,
            neighbours_2=neighbours,
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
    """Fix the unit of a data set that has none.

    Raises:
        OptionError: it has another one.
        LedgerError: there is no such data set.
    """
    ledger.register(_again(dataset, ledger.standing(dataset).terms, unit))


def _again(dataset: str, terms: Terms, unit: str) -> Register:
    return Register(
        dataset,
        terms.neighbours,
        terms.ceiling,
        terms.delta_ceiling,
        terms.analysts,
        terms.every_analyst,
        terms.fingerprint,
        unit,
        terms.currency,
    )


def _standing(
    ledger: Ledger, dataset: str, neighbours: str, unit: str | None, table: str, delta: Fraction
) -> Standing:
    try:
        return ledger.standing(dataset)
    except LedgerError:
        if dataset in ledger.datasets():
            raise
    currency: Currency = "rho" if delta else "epsilon"
    ledger.register(
        Register(dataset, neighbours, None, delta, fingerprint=table, unit=unit, currency=currency)
    )
    return ledger.standing(dataset)
