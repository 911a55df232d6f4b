"""Draws per second of exact discrete Laplace noise, compared with OpenDP's integer and numpy's float sampler."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from shoal.noise import discrete_laplace

DRAWS = 1_000_000
OPENDP_DRAWS = 20_000
ROUNDS = 5
SCALES = (1, 10, 10**3, 10**6, 10**9)


@dataclass(frozen=True, slots=True)
class Row:
    """Draws per second at one scale; OpenDP takes one scale per call, so a mixed array has no peer there."""

    scale: str
    shoal: float
    numpy: float
    opendp: float | None


def measure() -> list[Row]:
    """One row per scale and one for an array of different scales. All samplers run on one core, interleaved."""
    dp.enable_features("contrib")
    rng = np.random.default_rng(1)
    mixed = np.round(10 ** rng.uniform(0, 9, DRAWS)).astype(np.int64)
    rows = [_row(f"{scale:,}", scale, rng, _opendp(scale)) for scale in SCALES]
    return [*rows, _row("1 .. 1,000,000,000, all different", mixed, rng, None)]


def table() -> str:
    """The measurement as a Markdown table."""
    lines = [
        "| scale (lattice steps) | shoal (draws/s) | OpenDP | numpy float | shoal / OpenDP | shoal / numpy |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in measure():
        peer = "-" if row.opendp is None else f"{row.opendp:,.0f}"
        ratio = "-" if row.opendp is None else f"{row.shoal / row.opendp:.0f}x"
        lines.append(
            f"| {row.scale} | {row.shoal:,.0f} | {peer} | {row.numpy:,.0f} | {ratio} | {row.shoal / row.numpy:.3f}x |"
        )
    return "\n".join(lines)


def _row(
    name: str, scale: int | NDArray[np.int64], rng: np.random.Generator, opendp: Callable[[], object] | None
) -> Row:
    samplers: list[tuple[Callable[[], object], int]] = [
        (lambda: discrete_laplace(scale, DRAWS), DRAWS),
        (lambda: rng.laplace(0.0, scale, DRAWS), DRAWS),
    ]
    if opendp is not None:
        samplers.append((opendp, OPENDP_DRAWS))
    best = [0.0] * len(samplers)
    for _ in range(ROUNDS):
        for number, (sampler, draws) in enumerate(samplers):
            start = time.perf_counter()
            sampler()
            best[number] = max(best[number], draws / (time.perf_counter() - start))
    return Row(name, best[0], best[1], best[2] if opendp is not None else None)


def _opendp(scale: int) -> Callable[[], object]:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = dp.m.make_laplace(*space, scale=float(scale))
    zeros = [0] * OPENDP_DRAWS
    return lambda: mechanism(zeros)


if __name__ == "__main__":
    print(table())
