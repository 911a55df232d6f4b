"""What a careful colleague would say before a release: settled facts come in, one line each leaves.

It is said to the custodian and not published.
"""

from __future__ import annotations

from shoal.columns.coding import releasable
from shoal.columns.describe import Described
from shoal.decimals import decimal_text
from shoal.io.spreadsheets import first_formula
from shoal.method.budget import Plan
from shoal.method.method import Method

_FEW_ROWS = 10
# a factor of e^20 is about five hundred million
_MUCH_EPSILON = 20
# columns that share ε, and the share from which on noise drowns what a column of most tables says
_MANY_COLUMNS, _LITTLE_EPSILON = 20, 0.05


def advice(method: Method, described: Described, plan: Plan) -> tuple[str, ...]:
    """Warnings about tables and budgets that leave little protection or little to read."""
    return tuple(
        line
        for line in (
            _about_rows(described),
            _about_epsilon(method),
            _about_columns(method, described, plan),
            *_about_formulas(method, described),
        )
        if line is not None
    )


def _about_rows(described: Described) -> str | None:
    if described.n >= _FEW_ROWS:
        return None
    rows = "one row" if described.n == 1 else f"{described.n} rows"
    return (
        f"the table has {rows}: whoever is in it is protected by noise alone, and what is released says little; "
        "collect more "
        "before you publish."
    )


def _about_epsilon(method: Method) -> str | None:
    if method.epsilon is None or method.epsilon < _MUCH_EPSILON:
        return None
    return (
        f"epsilon {decimal_text(method.epsilon)} promises next to nothing: one record may change the odds of an "
        "outcome by a "
        f"factor of e^{decimal_text(method.epsilon)}; usual are 0.1 to 10."
    )


def _about_columns(method: Method, described: Described, plan: Plan) -> str | None:
    number = len(described.columns)
    if method.epsilon is None or number < _MANY_COLUMNS or not plan.shares:
        return None
    share = float(method.epsilon) / number
    if share >= _LITTLE_EPSILON:
        return None
    return (
        f"epsilon {decimal_text(method.epsilon)} is shared by {number} columns, about {share:.2g} each: noise will "
        "drown most of "
        "what they say; release fewer of them (columns=)."
    )


def _about_formulas(method: Method, described: Described) -> list[str]:
    found = []
    conventions = described.table.conventions
    for attribute in described.attributes:
        names = [
            attribute.name,
            *map(str, releasable(described.table, attribute, generalise=method.generalise) or ()),
        ]
        formula = first_formula(names)
        if formula is not None and not conventions.spreadsheet_safe:
            found.append(
                f"column '{attribute.name}' can be released with '{formula[:40]}', which a spreadsheet would run: "
                "spreadsheet_safe=True writes it with an apostrophe in front."
            )
    return found
