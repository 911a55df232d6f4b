"""The smallest method with a δ, for tests: every value plus discrete Gaussian noise, Laplace noise without a δ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shoal.columns.description import Described
from shoal.mechanisms import parameter_fields, registry
from shoal.mechanisms.method import Method, Rebuilt
from shoal.mechanisms.parameter_fields import Exact, parameter, shared
from shoal.noise import discrete_gaussian, discrete_laplace, round_up_scale
from shoal.privacy import Accountant
from shoal.privacy.accountant import Plan
from shoal.privacy.verdict import Case, Claim
from shoal.progress import Progress

NAME = "values"


class Values(Method):
    """Every value with noise of its own.

    Attributes:
        too_little: by how much the noise falls short of what is needed.
    """

    name: ClassVar[str] = NAME
    paper: ClassVar[str] = "none"
    about: ClassVar[str] = "every value with noise of its own"
    mechanism: ClassVar[str] = NAME
    claims: ClassVar[Claim] = Claim(
        (
            Case("approximate-dp", "every value has noise for its width, in ρ", {"pure": (False,)}),
            Case("dp", "every value has noise for its width"),
        )
    )
    too_little: ClassVar[Fraction] = Fraction(1)
    partition = "boxes"

    epsilon: Exact = shared("epsilon")
    delta: Exact = parameter(parameter_fields.DELTA, "the chance of more", default=parameter_fields.NOTHING)
    split: Any = shared("split")
    neighbours: str = shared("neighbours")

    def plan(self, described: Described) -> Plan:
        budget = self.budget if self.rho is None else self.rho
        shares = dict.fromkeys(described.columns, budget / len(described.columns))
        return Plan({f"values of {name}": share for name, share in shares.items()}, shares)

    def run(
        self,
        described: Described,
        plan: Plan,
        account: Accountant,
        progress: Progress,
        labels: ArrayLike | None = None,
    ) -> Rebuilt:
        values = {}
        for name, planned in plan.shares.items():
            lattice = described.lattices[name]
            width = lattice.steps
            found, _ = described.positions(name)
            share, source = account.spend(f"values of {name}", planned, over="records").take()
            if self.pure:
                noise = discrete_laplace(round_up_scale(width / share * self.too_little), found.size, source)
            else:
                variance = width**2 / (2 * share) * self.too_little**2
                noise = discrete_gaussian(variance, found.size, source)
            values[name] = lattice.values(np.clip(found + noise, 0, width))
        return Rebuilt(values, [], aligned=True)


METHOD = Values
# its claim counts as that of a method of the package
METHOD.outside = None


@contextmanager
def registered(too_little: Fraction = Fraction(1)) -> Iterator[None]:
    """While this lasts there is a method of this name."""
    registry.register(Values)
    Values.too_little = too_little
    try:
        yield
    finally:
        Values.too_little = Fraction(1)
        del registry._registered[NAME]
