"""`tree-dp`: synthetic records from noisy counts and means in the boxes of a private partition tree."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from shoal.columns import KINDS
from shoal.errors import OptionError
from shoal.mechanisms import parameter_fields
from shoal.mechanisms.method import (
    Expected,
    Method,
    Output,
    check_membership,
    check_unit_settings,
    membership_terms,
)
from shoal.mechanisms.parameter_fields import Exact, parameter, shared, words
from shoal.privacy import BY_STABILITY, Claim, Currency, MethodTerms, moved

if TYPE_CHECKING:
    from shoal.columns import Described
    from shoal.privacy import Plan


class TreeDP(Method):
    """Synthetic records from noisy counts and means of boxes, whose cuts are private medians.

    Guarantee: ε-DP of the records; docs/proofs/trees.md#tree.
    """

    name: ClassVar[str] = "tree-dp"
    paper: ClassVar[str] = "ours, the differential privacy the papers were after"
    about: ClassVar[str] = (
        "boxes of a tree of private medians, synthetic records drawn from noisy counts and means"
    )
    mechanism: ClassVar[str] = "tree"
    work: ClassVar[str] = "shoal.mechanisms.tree.mechanism"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    synthetic: ClassVar[bool] = True
    intervals: ClassVar[str] = "single"
    keeps_rules: ClassVar[bool] = True
    claims: ClassVar[Claim] = Claim(BY_STABILITY, proofs=("tree", "missing"))
    partition = "boxes"
    # noise is calibrated to public widths
    sensitivity = "global"

    epsilon: Exact = shared("epsilon")
    generalise: bool = shared("generalise")
    cuts: int | None = parameter(
        parameter_fields.WHOLE,
        "levels of cut points of each attribute, 2^cuts intervals; default: as many as pay off",
        least=0,
        after="corners",
    )
    depth: int | None = parameter(
        parameter_fields.WHOLE, "levels of the tree over all attributes; default: as many as pay off", least=0
    )
    shares: Any = parameter(
        parameter_fields.SHARES,
        "weights of the parts of the privacy budget, by default from the depth",
        choices=words("cuts", "intervals", "leaves", "means"),
    )
    rebuild: str = parameter(
        parameter_fields.CHOICE,
        "distribution of the synthetic records in a box",
        choices=words("uniform", "centroid", "normal"),
        default="uniform",
    )
    neighbours: str = shared("neighbours")
    rows: int | None = shared("rows")
    strata: Any = shared("strata")
    membership: str | None = shared("membership")
    unit_columns: Any = shared("unit_columns")
    unit_order: str | None = shared("unit_order")

    def check(self) -> None:
        if self.rows is not None and not self.adjacency.hides_size:
            raise OptionError("rows-neighbours-add-remove", option="rows")
        check_membership(self)
        check_unit_settings(self)

    @property
    def measures_units(self) -> bool:
        return self.unit_columns is not None

    @property
    def not_in_parts(self) -> str:
        return "unit-columns-not-in-parts" if self.measures_units else ""

    @property
    def output(self) -> Output:
        return Output(generalise=self.generalise)

    @property
    def in_parts(self) -> str:
        return "" if self.strata else "by_tree"

    def terms(self, attributes: int) -> MethodTerms:
        return membership_terms(self)

    def expected(self, described: Described, plan: Plan | None) -> Expected:
        if self.strata or self.measures_units:
            return Expected(unknown="by-stratum" if self.strata else "by-units")
        return super().expected(described, plan)

    def within_replaced(self) -> TreeDP:
        """The method inside a stratum of private size, under replace-one."""
        return replace(self, neighbours="add-remove").for_part(Fraction(1, moved(Currency.EPSILON)))

    def for_part(self, part: Fraction) -> TreeDP:
        """The method for one of the tables that are measured, with a part of its budget."""
        rows = 1 if self.measures_units else self.unit_rows
        changed: dict[str, Any] = {
            "strata": None,
            "membership": None,
            "unit_columns": None,
            "unit_order": None,
        }
        return replace(self, **changed, epsilon=self.budget * part, unit_rows=rows)
