"""What a careful colleague would say before a release: settled facts come in, one line each leaves.

It is said to the custodian and not published.
"""

from __future__ import annotations

from fractions import Fraction

from shoal.columns.coding import releasable
from shoal.columns.describe import Described
from shoal.decimals import decimal_text
from shoal.io.spreadsheets import first_formula
from shoal.method.budget import Plan
from shoal.method.method import Method

_FEW_ROWS = 10
# expected number of people for whom the promise fails, above which the custodian is warned
_MOST_FAILURES = Fraction(1, 10)
# a factor of e^20 is about five hundred million
_MUCH_EPSILON = 20
# columns that share ε, and the share from which on noise drowns what a column of most tables says
_MANY_COLUMNS, _LITTLE_EPSILON = 20, 0.05


def advice(method: Method, described: Described, plan: Plan) -> tuple[str, ...]:
    """Warnings about tables and budgets that leave little protection or little to read."""
    return tuple(
        line
        for line in (
            *_starved(method, plan),
            *_risky(method, described),
            _about_rows(described),
            _about_epsilon(method),
            _about_columns(method, described, plan),
            *_about_formulas(method, described),
        )
        if line is not None
    )


def _starved(method: Method, plan: Plan) -> list[str]:
    """A warning for attributes that an uneven split leaves almost nothing of the budget."""
    if method.epsilon is None or not method.pure or not plan.shares:
        return []
    fair = method.epsilon / len(plan.shares)
    poor = [name for name, share in plan.shares.items() if share * 20 < fair]
    if not poor:
        return []
    words = method.split if isinstance(method.split, str) else "by weights"
    return [
        f"split {words} gives {', '.join(poor)} less than a twentieth of an equal share of ε, because widths are "
        "compared in the columns' own units: use split=equal where units differ."
    ]


def _risky(method: Method, described: Described) -> list[str]:
    """A warning for a δ with which somebody's record may well be told: not a figure about the records."""
    if method.delta * described.n <= _MOST_FAILURES:
        return []
    return [
        f"delta {decimal_text(method.delta)} times the number of rows is above {decimal_text(_MOST_FAILURES)}: the "
        "promise may fail for somebody; use a delta far below 1 over the number of rows."
    ]


def _about_rows(described: Described) -> str | None:
    if described.n >= _FEW_ROWS:
        return None
    rows = {0: "no rows", 1: "one row"}.get(described.n, f"{described.n} rows")
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
