"""A check after drawing: how far the rows of pairs-dp are from the noisy numbers they were made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.mechanisms.pairs.measure_one import ABSENT
from shoal.mechanisms.pairs.measure_pairs import PairCounts, exact_products, group_sums, sign_products
from shoal.mechanisms.pairs.model import MeasuredMarginals, PairsModel, pair_codes
from shoal.numbers import Floats, Integers


@dataclass(frozen=True, slots=True)
class Agreement:
    """Deviations of rows from measurements, in standard deviations of their noise.

    Attributes:
        numbers: how many noisy numbers were compared.
        worst: the largest deviation.
        what: the measurement it belongs to.
        explained: what the largest of so many noises exceeds once in a hundred times.
    """

    numbers: int
    worst: float
    what: str
    explained: float

    def facts(self) -> dict[str, Any]:
        """For the internal log."""
        return {
            "numbers_compared": self.numbers,
            "worst_deviation_in_standard_errors": round(self.worst, 2),
            "of": self.what,
            "explained_by_noise_up_to": round(self.explained, 2),
        }


def agreement(
    placed: Sequence[Floats], known: MeasuredMarginals, model: PairsModel, names: Sequence[str]
) -> Agreement | None:
    """Compare rows with everything measured of single columns and pairs; None if nothing was measured.

    Only noisy numbers and released rows take part, so this costs no privacy budget. Numbers that were measured on
    few records, or that a model of all of them cannot agree with, show here.

    Args:
        placed: positions of some rows, for each attribute.
        names: of the attributes.
    """
    whole = [np.clip(own, 0, None).astype(np.int64) for own in placed]
    for a, flag in known.flags.items():
        whole[a] = np.where(whole[flag] > 0, ABSENT, whole[a])
    scale = known.rows / max(whole[0].size, 1)
    worst, what, numbers = 0.0, "", 0
    for told, noisy, own, noise in _compared(whole, known, model, names):
        # rows are whole: they cannot agree better than that
        deviations = np.abs(own * scale - noisy) / np.hypot(noise, scale)
        if not deviations.size:
            continue
        numbers += deviations.size
        if (largest := float(deviations.max())) > worst or not what:
            worst, what = largest, told
    return Agreement(numbers, worst, what, known.currency.largest(numbers)) if numbers else None


def _compared(
    positions: Sequence[Integers], known: MeasuredMarginals, model: PairsModel, names: Sequence[str]
) -> Iterator[tuple[str, Floats, Floats, float]]:
    """What was measured: its name, the noisy numbers, those of the rows, the standard deviation of the noise."""
    for number, marginal in enumerate(known.marginals):
        own = positions[number][positions[number] != ABSENT]
        for answers in marginal.answers:
            yield answers.what, answers.noisy, answers.of(own), answers.deviation
    layout = model.layout
    if not layout.measured:
        return
    counts, levels = PairCounts(pair_codes(known, positions), known.bins), known.levels
    if layout.signs and model.products is not None:
        rows = sign_products(counts, layout.signs, levels, positions[0].size).astype(np.float64)
        below = np.tril_indices(len(rows), -1)
        yield "halves of pairs of columns", model.products[below], rows[below], layout.sign_deviation
    for group, noisy in zip(layout.groups, model.sums, strict=True):
        rows = group_sums(counts, group, levels, known.bins).astype(np.float64)
        with_whom = ", ".join(names[b] for b in group.partners)
        yield f"{names[group.pivot]} with {with_whom}", noisy, rows, group.deviation
    if model.tails is not None:
        clipped = model.tails.clipped
        unit = clipped.shape.unit
        rows = exact_products(positions, clipped) / unit
        noisy = model.tails.products * known.rows
        yield "products of values", noisy, rows, clipped.noise * known.rows
