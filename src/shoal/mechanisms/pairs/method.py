"""`pairs-dp`: synthetic records that agree with noisy one-way and two-way marginals."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from shoal.columns import KINDS
from shoal.errors import OptionError
from shoal.mechanisms import parameter_fields
from shoal.mechanisms.method import (
    Expected,
    Method,
    check_membership,
    check_unit_settings,
    membership_terms,
)
from shoal.mechanisms.parameter_fields import Exact, parameter, shared
from shoal.privacy import Case, Claim, Currency, MethodTerms, moved
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Described
    from shoal.privacy import Plan


class PairsDP(Method):
    """Synthetic records from noisy counts of single columns and of all pairs of columns.

    Guarantee: ε-DP of the records, (ε, δ)-DP with a `delta`; docs/proofs/trees.md#pairs.
    """

    name: ClassVar[str] = "pairs-dp"
    paper: ClassVar[str] = "ours, noise fitted to what one record can do"
    about: ClassVar[str] = (
        "noisy contrasts of all pairs of attributes over private cuts, synthetic records drawn to match them"
    )
    mechanism: ClassVar[str] = "pairs"
    work: ClassVar[str] = "shoal.mechanisms.pairs.mechanism"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    synthetic: ClassVar[bool] = True
    intervals: ClassVar[str] = "all"
    keeps_rules: ClassVar[bool] = True
    claims: ClassVar[Claim] = Claim(
        (
            Case("dp", Message("because-rows-from-noisy-pairs"), {"pure": (True,)}),
            Case("approximate-dp", Message("because-rows-from-noisy-pairs-in-rho")),
        ),
        proofs=("pairs", "record-noise", "gaussian", "missing"),
    )
    partition = "boxes"

    epsilon: Exact = shared("epsilon")
    delta: Exact = parameter(
        parameter_fields.DELTA,
        "probability δ with which the guarantee may fail; 0 for pure differential privacy",
        group="guarantee",
        default=parameter_fields.NOTHING,
        after="epsilon",
    )
    neighbours: str = shared("neighbours", default="add-remove")
    rows: int | None = shared("rows")
    strata: Any = shared("strata")
    membership: str | None = shared("membership")
    unit_columns: Any = shared("unit_columns")
    unit_order: str | None = shared("unit_order")
    target: str | None = parameter(parameter_fields.NAME, "column to predict from the others", after="rows")
    triples: bool | None = parameter(
        parameter_fields.SWITCH,
        "{on} also looks for structure among three to five columns, such as an exclusive or, with up to a fifth of the "
        "share of pairs, {off} never does; by default it looks where a twentieth of that share finds a large effect",
    )

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
    def in_parts(self) -> str:
        return "" if self.strata else "by_pairs"

    def expected(self, described: Described, plan: Plan | None) -> Expected:
        if self.strata or self.measures_units:
            return Expected(unknown="by-stratum" if self.strata else "by-units")
        from shoal.mechanisms.pairs import mechanism

        return Expected(shares=mechanism.share_noise(self, self.ruled(described)))

    @property
    def expects_shares(self) -> bool:
        return self.strata is None and not self.measures_units

    def terms(self, attributes: int) -> MethodTerms:
        return membership_terms(self)

    def within_replaced(self) -> PairsDP:
        """The method inside a stratum of private size, under replace-one."""
        part = Fraction(1, moved(Currency.EPSILON if self.pure else Currency.RHO))
        return replace(self, neighbours="add-remove").for_part(part)

    def for_part(self, part: Fraction) -> PairsDP:
        """The method for one of the tables that are measured, with a part of its budget of ε or ρ."""
        settings: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(PairsDP)}
        settings |= dict.fromkeys(("strata", "membership", "unit_columns", "unit_order"))
        if self.measures_units:
            settings["unit_rows"] = 1
        if self.pure:
            return PairsDP(**{**settings, "epsilon": self.budget * part})
        return _PartOfPairs(**settings, part=part)


class _PartOfPairs(PairsDP):
    # a part of ρ has no ε of its own at the same δ
    part: Fraction = Fraction(1)

    @property
    def rho(self) -> Fraction | None:
        whole = super().rho
        return None if whole is None else whole * self.part
