"""Draw synthetic rows from the model of pairs-dp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.mechanisms.pairs._kernels import draw_rows, exchange, place_latent, polish
from shoal.mechanisms.pairs.budget import NO_FLAGS
from shoal.mechanisms.pairs.marginal import Marginal
from shoal.mechanisms.pairs.measure_pairs import (
    MIXTURE_ROUNDS,
    Mixture,
    Triple,
    exchanged,
    fit,
    measure_triples,
    predicted,
    to_follow,
)
from shoal.mechanisms.pairs.model import MeasuredMarginals, PairsModel, RecordSums
from shoal.mechanisms.tree.intervals import whole_counts
from shoal.noise import Source
from shoal.numbers import Floats
from shoal.privacy import Accountant

Codes = NDArray[np.uint8]
Pair = tuple[int, int]

BLOCK = 1 << 16
SWEEPS = 3
GIBBS = 10
_EXCHANGES = 20
_FAR = 8.0


def block_sizes(rows: int) -> list[int]:
    """Number of rows of each block: full blocks and a remainder."""
    return [min(BLOCK, rows - first) for first in range(0, rows, BLOCK)]


def goals_of(shares: Sequence[Floats], tables: Mapping[Pair, Floats], starts: NDArray[np.int64]) -> Floats:
    """Target share of the rows for every cell; -1 where there is no target."""
    goals = np.full((starts[-1], starts[-1]), -1.0)
    for number, own in enumerate(shares):
        here = np.arange(starts[number], starts[number + 1])
        goals[here, here] = own
    for (a, b), table in tables.items():
        goals[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = table
        goals[starts[b] : starts[b + 1], starts[a] : starts[a + 1]] = table.T
    return goals


def draw_block(
    mixture: Mixture, goals: Floats, rows: int, source: Source, triples: Sequence[Triple] = ()
) -> Codes:
    """Bins of this many rows."""
    seed, turn = source.words(2)
    codes = draw_rows(whole_counts(mixture.weights, rows), mixture.bins, mixture.starts, seed)
    scaled = np.where(goals >= 0, goals * rows, -1.0)
    attributes = np.array([one.attributes for one in triples], dtype=np.int64).reshape(-1, 3)
    products = np.array([rows * one.mean for one in triples])
    stride = _stride(rows, int(turn))
    polish(codes, mixture.starts, scaled, stride, SWEEPS, attributes, products)
    return codes


def _stride(rows: int, turn: int) -> int:
    """A step size that visits every row once before repeating."""
    step = turn % max(rows, 1)
    while np.gcd(step, rows) != 1:
        step += 1
    return int(step)


def positions_of(
    codes: Codes,
    marginals: Sequence[Marginal],
    latent: Sequence[int],
    correlations: Floats,
    source: Source,
    flags: Mapping[int, int] = NO_FLAGS,
    *,
    exactly: bool = False,
) -> Iterator[Floats]:
    """Positions of the rows, attribute by attribute: inside bins, at quantiles given by latent normals.

    Rows without a value of an attribute (`flags`) have an arbitrary position there and do not affect the others.
    With `exactly`, latent normals are exchanged inside bins until their correlations match as exactly as possible, for
    bins that contain less information than these.
    """
    placed = _latent(codes, marginals, latent, correlations, source)
    if exactly:
        every = np.arange(len(latent))
        bins = codes[:, list(latent)].astype(np.int64)
        scores = (placed - placed.mean(axis=0)) / np.maximum(placed.std(axis=0), 1e-9)
        weights = np.ones(correlations.shape)
        exchange(scores, placed, bins, every, correlations, weights, _EXCHANGES, source.words(1)[0])
    for number, own in enumerate(marginals):
        if own.groups is not None:
            yield _names(codes[:, number], own, source)
        elif own.exact_bins:
            assert own.edges is not None
            yield np.minimum(own.edges[codes[:, number]], own.edges[-1] - 1).astype(np.float64)
        else:
            missing = codes[:, flags[number]] > 0 if number in flags else None
            yield own.fine.positions(_levels(placed[:, list(latent).index(number)], source, missing))


def positions_of_latent(
    rows: int,
    marginals: Sequence[Marginal],
    latent: Sequence[int],
    correlations: Floats,
    source: Source,
    flags: Mapping[int, int] = NO_FLAGS,
) -> Iterator[Floats]:
    """Positions where only marginals and latent correlations are known, which the rows match as exactly as possible."""
    random = np.random.Generator(np.random.Philox(int(source.words(1)[0])))
    normal = random.standard_normal((rows, len(latent)))
    if rows > 2 * len(latent) > 0:
        # remove the chance correlations of this many rows
        normal -= normal.mean(axis=0)
        normal = normal @ np.linalg.inv(np.linalg.cholesky(normal.T @ normal / rows)).T
    placed = normal @ np.linalg.cholesky(correlations).T
    # missing values are decided before the values
    order = sorted(range(len(marginals)), key=lambda number: number not in flags.values())
    found: dict[int, Floats] = {}
    for number in order:
        column = placed[:, list(latent).index(number)] if number in latent else random.random(rows)
        missing = found[flags[number]] > 0 if number in flags else None
        found[number] = marginals[number].fine.positions(_levels(column, source, missing))
    yield from (found[number] for number in range(len(marginals)))


def _levels(values: Floats, source: Source, missing: NDArray[np.bool_] | None = None) -> Floats:
    """Evenly spaced levels from 0 to 1, in the order of the values; only for those that are not missing."""
    if missing is not None:
        levels = np.full(values.size, 0.5)
        levels[~missing] = _levels(values[~missing], source)
        return levels
    order = np.argsort(values)
    levels = np.empty(order.size)
    levels[order] = (np.arange(order.size) + _uniform(order.size, source)) / order.size
    return levels


def _latent(
    codes: Codes, marginals: Sequence[Marginal], latent: Sequence[int], correlations: Floats, source: Source
) -> Floats:
    from scipy.special import ndtri

    widest = max((marginals[a].bins for a in latent), default=1)
    cuts = np.full((len(latent), widest + 1), _FAR)
    for place, a in enumerate(latent):
        shares = marginals[a].shares
        ends = np.cumsum(shares)[:-1] / shares.sum()
        cuts[place, : shares.size] = np.concatenate(([-_FAR], ndtri(np.clip(ends, 1e-12, 1 - 1e-12))))
    root = np.linalg.cholesky(correlations).astype(np.float64)
    precision = np.linalg.inv(correlations).astype(np.float64)
    sweeps = GIBBS if len(latent) > 1 else 0
    seed = source.words(1)[0]
    return place_latent(codes, np.asarray(latent, dtype=np.int64), cuts, root, precision, sweeps, seed)


def _names(codes: Codes, own: Marginal, source: Source) -> Floats:
    """A value of the group of each row, in proportion to the shares of the values."""
    assert own.groups is not None
    found = np.empty(codes.size)
    order = source.permutation(codes.size)
    order = order[np.argsort(codes[order], kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=own.bins))
    levels = _uniform(codes.size, source)
    for group in range(own.bins):
        members = np.flatnonzero(own.groups == group)
        here = order[ends[group - 1] if group else 0 : ends[group]]
        running = np.cumsum(own.fine.shares[members])
        level = (np.arange(here.size) + levels[here]) / max(here.size, 1) * running[-1]
        found[here] = members[np.minimum(np.searchsorted(running, level, side="right"), members.size - 1)]
    return found


def _uniform(count: int, source: Source) -> Floats:
    return (source.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """Everything rows are drawn from: noisy, so drawing repeatedly is post-processing.

    Attributes:
        mixture: one model of all pairs; None if the correlations determine them.
        goals: target share of the rows for every cell.
        triples: target mean products of three signs.
    """

    model: PairsModel
    known: MeasuredMarginals
    mixture: Mixture | None = None
    goals: Floats | None = None
    triples: tuple[Triple, ...] = ()


def fitted(
    model: PairsModel, known: MeasuredMarginals, source: Source, rounds: int = MIXTURE_ROUNDS
) -> Mixture | None:
    """One model of all measured pairs; None if the correlations determine them."""
    if not model.tables:
        return None
    shares = [own.shares for own in known.marginals]
    random = np.random.Generator(np.random.Philox(int(source.words(1)[0])))
    return fit(shares, model.tables, model.correlations, model.latent, random, rounds)


def with_triples(
    made: Mixture | None, model: PairsModel, known: MeasuredMarginals, sums: RecordSums, account: Accountant
) -> Drawing:
    """The model for drawing rows: a model of pairs, and the triples it shows to be worth measuring.

    Guarantee:
        The model of pairs is a function of earlier measurements; given it, triples cost their share.
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


def draw_pair_values(
    drawing: Drawing, described: Described, number: int, source: Source
) -> dict[str, Floats]:
    """The rows of one block, by its index, column by column."""
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
