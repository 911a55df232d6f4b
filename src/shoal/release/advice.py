"""What a careful colleague would say before a release: settled facts come in, one message each leaves.

It is said to the custodian and not published.
"""

from __future__ import annotations

from fractions import Fraction

from shoal.columns.column import releasable
from shoal.columns.describe import Described
from shoal.decimals import decimal_text
from shoal.io.text_files import first_formula
from shoal.mechanisms.method import Method
from shoal.privacy.budget import Plan
from shoal.text import Message

_FEW_ROWS = 10
# expected number of people for whom the promise fails, above which the custodian is warned
_MOST_FAILURES = Fraction(1, 10)
# a factor of e^20 is about five hundred million
_MUCH_EPSILON = 20
# columns that share ε, and the share from which on noise drowns what a column of most tables says
_MANY_COLUMNS, _LITTLE_EPSILON = 20, 0.05


def advice(method: Method, described: Described, plan: Plan) -> tuple[Message, ...]:
    """Warnings about tables and budgets that leave little protection or little to read."""
    return tuple(
        said
        for said in (
            _starved(method, plan),
            _risky(method, described),
            _about_rows(described),
            _about_epsilon(method),
            _about_columns(method, described, plan),
            *_about_formulas(method, described),
        )
        if said is not None
    )


def _starved(method: Method, plan: Plan) -> Message | None:
    """A warning for attributes that an uneven split leaves almost nothing of the budget."""
    if method.epsilon is None or not method.pure or not plan.shares:
        return None
    fair = method.epsilon / len(plan.shares)
    poor = [name for name, share in plan.shares.items() if share * 20 < fair]
    if not poor:
        return None
    split = method.settings().get("split", "equal")
    if isinstance(split, str):
        return Message.of("split-starves", split=split, columns=poor)
    return Message.of("weights-starve", columns=poor)


def _risky(method: Method, described: Described) -> Message | None:
    """A warning for a δ with which somebody's record may well be told: not a figure about the records."""
    if method.delta * described.n <= _MOST_FAILURES:
        return None
    return Message.of("delta-too-large", delta=decimal_text(method.delta), most=decimal_text(_MOST_FAILURES))


def _about_rows(described: Described) -> Message | None:
    if described.n >= _FEW_ROWS:
        return None
    return Message(
        {0: "table-of-no-rows", 1: "table-of-one-row"}.get(described.n, "table-of-few-rows"),
        {"rows": described.n},
    )


def _about_epsilon(method: Method) -> Message | None:
    if method.epsilon is None or method.epsilon < _MUCH_EPSILON:
        return None
    return Message.of("epsilon-promises-nothing", epsilon=decimal_text(method.epsilon))


def _about_columns(method: Method, described: Described, plan: Plan) -> Message | None:
    number = len(described.columns)
    if method.epsilon is None or number < _MANY_COLUMNS or not plan.shares:
        return None
    share = float(method.epsilon) / number
    if share >= _LITTLE_EPSILON:
        return None
    epsilon = decimal_text(method.epsilon)
    return Message.of("epsilon-shared-by-many", epsilon=epsilon, columns=number, share=share)


def _about_formulas(method: Method, described: Described) -> list[Message]:
    found = []
    conventions = described.table.conventions
    for attribute in described.attributes:
        names = [
            attribute.name,
            *map(str, releasable(described.table, attribute, generalise=method.output.generalise) or ()),
        ]
        formula = first_formula(names)
        if formula is not None and not conventions.spreadsheet_safe:
            found.append(Message.of("formula-released", column=attribute.name, formula=formula[:40]))
    return found
