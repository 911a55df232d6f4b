"""`suppress`: local suppression with as few emptied quasi-identifier cells as possible."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from shoal.columns import KINDS
from shoal.mechanisms import parameter_fields
from shoal.mechanisms.method import Method
from shoal.mechanisms.parameter_fields import Exact, parameter, shared
from shoal.privacy import Case, Claim
from shoal.text import Message


class Suppress(Method):
    """Empty as few cells of quasi-identifiers as possible such that every combination of them is frequent.

    Guarantee: k-anonymity of the released table, which is not differential privacy; none with
    `missing_as="wildcard"`.
    """

    name: ClassVar[str] = "suppress"
    paper: ClassVar[str] = "local suppression, with a missing value as a category of its own"
    about: ClassVar[str] = (
        "local suppression: the fewest quasi-identifier cells emptied so that every combination is frequent"
    )
    mechanism: ClassVar[str] = "suppress"
    work: ClassVar[str] = "shoal.mechanisms.suppression.mechanism"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    by_frequency: ClassVar[bool] = True
    claims: ClassVar[Claim] = Claim(
        (
            Case("none", Message("because-empty-cells-fit-any"), {"missing_as": ("wildcard",)}),
            Case("k-anonymity", Message("because-same-quasi-identifiers")),
        ),
        shows_gaps=True,
        free=True,
    )

    k: int = shared("k", default=3)
    risk: Exact = parameter(
        parameter_fields.NUMBER,
        "largest risk of a record: 1/k where an empty cell is a separate value, by weights where it matches any",
        group="guarantee",
        least=Fraction(1, 1000),
        most=1,
    )
    combinations: Any = parameter(
        parameter_fields.COMBINATIONS,
        "sets of quasi-identifiers with their own k, in addition to the k of all of them, for example "
        "{{'age,sex': 10}}",
        group="guarantee",
        least=1,
    )
    importance: Any = parameter(
        parameter_fields.IMPORTANCE,
        "weight of an emptied cell by column, 1 by default, for example {{'sex': 5}}",
        least=0,
    )
    missing_as: str = parameter(
        parameter_fields.CHOICE,
        "how an empty cell counts",
        group="guarantee",
        choices={
            "category": "as a separate value, which the claim needs",
            "wildcard": "as any value, no guarantee",
        },
        default="category",
    )
    alpha: Exact = parameter(
        parameter_fields.NUMBER,
        "with missing_as=wildcard: weight of a row with an empty cell in the counts of other rows, 0 to 1",
        least=0,
        most=1,
        default=Fraction(1),
    )
    strata: Any = shared("strata")

    def compares(self) -> bool:
        # an empty cell that matches any value is compared with all rows; otherwise rows are sorted
        return self.missing_as == "wildcard"
