"""The smallest method with a δ, for tests: every value plus discrete Gaussian noise, Laplace noise without a δ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.columns.describe import Described
from shoal.mechanisms import table
from shoal.mechanisms.base import Mechanism, Progress, Rebuilt
from shoal.method import presets
from shoal.method.budget import Plan
from shoal.method.claims import Case, Claim
from shoal.method.method import Method
from shoal.noise import Source, discrete_gaussian, discrete_laplace, round_up_scale

NAME = "values"


def plan(method: Method, described: Described) -> Plan:
    budget = method.budget if method.rho is None else method.rho
    shares = dict.fromkeys(described.columns, budget / len(described.columns))
    return Plan({f"values of {name}": share for name, share in shares.items()}, shares)


def with_noise(too_little: Fraction = Fraction(1)) -> Any:
    """A run whose noise is `too_little` of what is needed."""

    def run(
        method: Method,
        described: Described,
        plan: Plan,
        source: Source,
        progress: Progress,
        labels: ArrayLike | None = None,
    ) -> Rebuilt:
        values = {}
        for name, share in plan.shares.items():
            lattice = described.lattices[name]
            width = lattice.steps
            found, _ = described.positions(name)
            if method.pure:
                noise = discrete_laplace(round_up_scale(width / share * too_little), found.size, source)
            else:
                noise = discrete_gaussian(width**2 / (2 * share) * too_little**2, found.size, source)
            values[name] = lattice.values(np.clip(found + noise, 0, width))
        return Rebuilt(values, [], aligned=True)

    return run


def entry(too_little: Fraction = Fraction(1)) -> table.Entry:
    return table.Entry(
        Claim(
            (
                Case("approximate-dp", "every value has noise for its width, in ρ", {"pure": (False,)}),
                Case("dp", "every value has noise for its width"),
            )
        ),
        mechanism=Mechanism(plan, with_noise(too_little)),
    )


METHOD = Method(
    name=NAME,
    paper="none",
    about="every value with noise of its own",
    partition="boxes",
    grouping="joint",
    mechanism=NAME,
    adjustable=("epsilon", "delta", "split", "neighbours"),
)


@contextmanager
def registered(too_little: Fraction = Fraction(1)) -> Iterator[None]:
    """While this lasts there is a method of this name."""
    table.ENTRIES[NAME] = entry(too_little)
    presets.PRESETS[NAME] = METHOD
    try:
        yield
    finally:
        del table.ENTRIES[NAME], presets.PRESETS[NAME]
