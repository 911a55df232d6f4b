"""`pram`: every released column passes a declared matrix over its values (post-randomisation)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from shoal.columns import KINDS, ORDERED_KINDS
from shoal.errors import OptionError
from shoal.mechanisms import parameter_fields
from shoal.mechanisms.method import Expected, Method
from shoal.mechanisms.parameter_fields import Exact, parameter, shared
from shoal.mechanisms.pram.matrix import MATRIX, declared
from shoal.numbers import decimal_text
from shoal.privacy import Case, Claim, MethodTerms
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Described
    from shoal.privacy import Plan


# the largest denominator of a probability of staying, so that no draw runs out of bits
_FINEST = 10**6


class Pram(Method):
    """Every value of a released column is replaced by one drawn from its row of a public matrix, missing included.

    Guarantee: ε-DP of the records if no matrix has zeros, none with zeros or `invariant`; docs/proofs/noise.md#pram.
    """

    name: ClassVar[str] = "pram"
    paper: ClassVar[str] = "post-randomisation (Gouweleeuw et al.), with randomised response as its claim"
    about: ClassVar[str] = "every value changed at random by a public matrix over the values of its column"
    mechanism: ClassVar[str] = "matrix"
    work: ClassVar[str] = "shoal.mechanisms.pram.mechanism"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    intervals: ClassVar[str] = "matrix"
    claims: ClassVar[Claim] = Claim(
        (
            Case("none", Message("because-matrix-fits-records"), {"invariant": (True,)}),
            Case("none", Message("because-matrix-has-zeros"), {"zeros": (True,)}),
            Case("dp", Message("because-own-row-of-matrix")),
        ),
        proofs=("pram",),
    )
    partition = "alone"

    epsilon: Exact = shared("epsilon", required=False)
    keep: Any = parameter(
        parameter_fields.FLOOR,
        "smallest probability with which a value stays as it is; ε follows from it, and a given ε is an upper limit; "
        "a number, or one per column",
        group="guarantee",
        least=0,
        most=1,
        after="epsilon",
    )
    matrix: Any = parameter(
        MATRIX,
        "matrix of a column: probabilities of the released values by original value, in CSV files or as tables, "
        "for example {{'sex': {{'f': {{'f': 0.9, 'm': 0.1}}, 'm': {{'f': 0.2, 'm': 0.8}}}}}}",
        group="guarantee",
        after="keep",
    )
    stratum: str | None = parameter(
        parameter_fields.NAME,
        "column whose value selects among the matrices of a column, where matrix has one for each of its values",
        after="matrix",
    )
    invariant: bool = parameter(
        parameter_fields.SWITCH,
        "{on} preserves the frequencies of the table in expectation, with keep; they are read from the records, "
        "so there is no guarantee",
        default=False,
        group="guarantee",
        after="stratum",
    )
    split: Any = shared("split")
    bands: int = parameter(
        parameter_fields.WHOLE,
        "most values of a numeric or date column that pass the matrix one by one; a longer range is divided into "
        "this many bands, each released as its middle",
        default=20,
        least=1,
        kinds=ORDERED_KINDS,
        after="invariant",
    )

    def check(self) -> None:
        if self.epsilon is None and self.keep is None and self.matrix is None:
            raise OptionError("epsilon-keep-or-matrix", option="epsilon")
        if self.invariant and (self.keep is None or self.matrix is not None or self.epsilon is not None):
            raise OptionError("invariant-takes-keep", option="invariant")
        for one in self._kept:
            if one.denominator > _FINEST:
                raise OptionError("keep-too-fine", option="keep", found=decimal_text(one))
        if self.stratum is None:
            for column, value in self.matrix or ():
                if isinstance(value, tuple):
                    raise OptionError("matrix-differs-without-stratum", column=column, option="stratum")
        if self.zeros and self.epsilon is not None:
            raise OptionError("matrix-with-zeros-has-no-epsilon", option="epsilon")

    @classmethod
    def example(cls, **settings: Any) -> Self:
        usual = {} if {"epsilon", "keep", "matrix"} & settings.keys() else {"epsilon": 1}
        return super().example(**{**usual, **settings})

    @property
    def _kept(self) -> tuple[Fraction, ...]:
        if self.keep is None:
            return ()
        return tuple(one for _, one in self.keep) if isinstance(self.keep, tuple) else (self.keep,)

    @property
    def zeros(self) -> bool:
        """Whether a matrix has a zero, so that a released value can rule out an original one and ε is infinite."""
        if any(one in (Fraction(0), Fraction(1)) for one in self._kept):
            return True
        matrices = [one for _, value in self.matrix or () for one in declared(value)]
        return any(not entry for one in matrices for row in one.rows for entry in row)

    @property
    def in_parts(self) -> str:
        # an invariant matrix needs the frequencies of the whole table
        return "" if self.invariant else "by_record"

    def terms(self, attributes: int) -> MethodTerms:
        return MethodTerms(data_dependent=(Message("matrix-by-records"),) if self.invariant else ())

    def expected(self, described: Described, plan: Plan | None) -> Expected:
        return Expected(unknown="passes-matrix")
