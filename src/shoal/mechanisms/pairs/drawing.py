"""A model of what was measured. In: single attributes, pairs and triples, noisy. Out: rows, block by block.

Triples are measured here, because which ones follows from a model of the pairs; all else is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.display import internal
from shoal.mechanisms.pairs.joint import exchanged
from shoal.mechanisms.pairs.mixture import ROUNDS, Mixture, fit
from shoal.mechanisms.pairs.model import Counted, Measured, Model
from shoal.mechanisms.pairs.rows import (
    block_sizes,
    draw_block,
    goals_of,
    positions_of,
    positions_of_latent,
)
from shoal.mechanisms.pairs.triples import Triple, measure_triples, predicted, to_follow
from shoal.noise import Source
from shoal.privacy import Accountant

Floats = NDArray[np.float64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """All that rows are drawn from: noisy, and therefore safe to draw from as often as one likes.

    Attributes:
        mixture: one model of all pairs; None where the correlations say all there is to say.
        goals: what share of the rows every cell should have.
        triples: mean products of three signs that rows should have besides.
    """

    model: Model
    known: Measured
    mixture: Mixture | None = None
    goals: Floats | None = None
    triples: tuple[Triple, ...] = ()


def fitted(model: Model, known: Measured, source: Source, rounds: int = ROUNDS) -> Mixture | None:
    """One model of all pairs that were measured; None where the correlations say all there is to say."""
    if not model.tables:
        return None
    shares = [own.shares for own in known.marginals]
    random = np.random.Generator(np.random.Philox(int(source.words(1)[0])))
    return fit(shares, model.tables, model.correlations, model.latent, random, rounds)


def with_triples(
    made: Mixture | None, model: Model, known: Measured, sums: Counted, account: Accountant
) -> Drawing:
    """What rows are drawn from: a model of pairs, and the triples that it shows to be worth measuring.

    Guarantee:
        The model of pairs is a function of what was measured; given it, triples cost their share.
    """
    if made is None:
        return Drawing(model, known)
    shares = [own.shares for own in known.marginals]
    triples: tuple[Triple, ...] = ()
    layout, rows = known.triples, known.rows
    if layout is not None and sums.triples is not None:
        expected = predicted(made, layout)
        found = measure_triples(sums.triples, expected, layout, known.currency, rows, account)
        triples = to_follow(expected, layout, *found, rows)
        if model.from_signs and not triples:
            return Drawing(model, known)
    return Drawing(model, known, made, goals_of(shares, model.tables, made.starts), triples)


def draw_values(drawing: Drawing, described: Described, number: int, source: Source) -> dict[str, Floats]:
    """The rows of one block, by its number, column by column."""
    model, marginals = drawing.model, drawing.known.marginals
    size = block_sizes(drawing.known.rows)[number]
    own = source.child("rows of pairs", number)
    known = (marginals, model.latent, model.correlations, own, model.flags)
    if drawing.mixture is None or drawing.goals is None:
        placed = list(positions_of_latent(size, *known))
    else:
        codes = draw_block(drawing.mixture, drawing.goals, size, own, drawing.triples)
        placed = list(positions_of(codes, *known, exactly=model.from_signs))
    if model.tails is not None:
        placed = exchanged(placed, model.tails, marginals, model.flags, own)
    values: dict[str, Floats] = {}
    for place, column in enumerate(described.columns):
        lattice, tree, found = described.lattices[column], described.tree(column), placed[place]
        if tree is None:
            values[column] = np.clip(lattice.values(found), float(lattice.lo), float(lattice.hi))
        else:
            values[column] = np.asarray(tree.domain)[found.astype(np.int64)].astype(np.float64)
        if place in model.flags:
            values[column][placed[model.flags[place]] > 0] = np.nan
    return values
