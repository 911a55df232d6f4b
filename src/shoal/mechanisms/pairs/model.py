"""The model of pairs-dp: consistent tables and correlations fitted to the noisy measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.mechanisms.pairs._kernels import (
    draw_rows,
    exchange,
    fit_table,
    place_latent,
    polish,
    rake_table,
)
from shoal.mechanisms.pairs.budget import (
    NO_FLAGS,
    OF_TWO,
    ContrastGroup,
    Currency,
    Halves,
    PairMeasurements,
    lay_out_pairs,
)
from shoal.mechanisms.pairs.distributions import (
    ODD,
    Fine,
    Zeros,
    copula_table,
    drawn_tables,
    shrunk,
    tetrachoric,
)
from shoal.mechanisms.pairs.measure_one import ABSENT, Marginal, Presence, of_present, presence
from shoal.mechanisms.pairs.measure_pairs import (
    LARGEST,
    MIXTURE_ROUNDS,
    Clipped,
    InsideBins,
    Mixture,
    PairCounts,
    Tails,
    Triple,
    Triples,
    exact_products,
    exact_triples,
    exchanged,
    fit,
    functions,
    group_sums,
    inside_order,
    measure_tails,
    measure_triples,
    predicted,
    sign_products,
    to_follow,
)
from shoal.mechanisms.rules import keeping_rules
from shoal.mechanisms.tree.intervals import whole_counts
from shoal.noise import Source
from shoal.numbers import Bools, Floats, Integers
from shoal.privacy import Accountant, RecordSum
from shoal.text import Message
from shoal.workers import threaded

Codes = NDArray[np.uint8]

BLOCK = 1 << 16
SWEEPS = 3
GIBBS = 10
_EXCHANGES = 20
_FAR = 8.0
NO_NAMES: Mapping[int, InsideBins] = MappingProxyType({})
NO_ZEROS: Mapping[Pair, Bools] = MappingProxyType({})


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
    mixture: Mixture,
    goals: Floats,
    rows: int,
    source: Source,
    triples: Sequence[Triple] = (),
    middles: Integers | None = None,
) -> Codes:
    """Bins of this many rows; `middles` are the first bins of the second halves, where bins are split."""
    if middles is None:
        middles = np.diff(mixture.starts) // 2
    seed, turn = source.words(2)
    codes = draw_rows(whole_counts(mixture.weights, rows), mixture.bins, mixture.starts, seed)
    scaled = np.where(goals >= 0, goals * rows, -1.0)
    attributes = np.full((len(triples), LARGEST), -1, dtype=np.int64)
    for number, one in enumerate(triples):
        attributes[number, : len(one.attributes)] = one.attributes
    products = np.array([rows * one.mean for one in triples])
    stride = _stride(rows, int(turn))
    polish(codes, mixture.starts, middles, scaled, stride, SWEEPS, attributes, products)
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
    inside: Mapping[int, InsideBins] = NO_NAMES,
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
            values = placed[:, list(latent).index(number)]
            if number in inside:
                assert own.parts is not None
                names = codes[:, inside[number].names]
                whole = codes[:, number]
                if own.within is not None:
                    whole = own.within[whole].astype(np.uint8)
                values = inside_order(whole, values, names, inside[number].parts, own.parts)
            if own.within is None:
                yield _in_order(values, own.fine, source, missing)
            else:
                yield _in_bins(values, codes[:, number], own, source, missing)


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
        found[number] = _in_order(column, marginals[number].fine, source, missing)
    yield from (found[number] for number in range(len(marginals)))


def _in_order(values: Floats, fine: Fine, source: Source, missing: NDArray[np.bool_] | None = None) -> Floats:
    """Positions at evenly spaced levels of a distribution, in the order of the values; only for those not missing."""
    found = np.empty(values.size)
    if missing is not None:
        found[missing] = fine.positions(np.array([0.5]))
        found[~missing] = _in_order(values[~missing], fine, source)
        return found
    order = np.argsort(values)
    # ascending levels are looked up faster
    found[order] = fine.positions((np.arange(order.size) + _uniform(order.size, source)) / order.size)
    return found


def _in_bins(
    values: Floats, codes: Codes, own: Marginal, source: Source, missing: NDArray[np.bool_] | None
) -> Floats:
    """The same bin by bin, so that every position is in the bin of its row: rules can depend on that."""
    assert own.edges is not None
    here = np.ones(codes.size, dtype=np.bool_) if missing is None else ~missing
    found = np.full(codes.size, own.fine.positions(np.array([0.5]))[0])
    bins = codes[here]
    order = np.lexsort((values[here], bins))
    sizes = np.bincount(bins, minlength=own.bins)
    ranks = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    sorted_bins = bins[order]
    below = own.fine.below(own.edges)
    level = (ranks + _uniform(order.size, source)) / np.maximum(sizes, 1)[sorted_bins]
    level = below[sorted_bins] + level * np.diff(below)[sorted_bins]
    low, high = own.edges[:-1][sorted_bins], own.edges[1:][sorted_bins] - 1
    placed = np.empty(order.size)
    placed[order] = np.clip(own.fine.positions(level), low, np.maximum(high, low))
    found[here] = placed
    return found


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
    shares = [own.shares for own in known.drawn]
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
    shares = [own.shares for own in known.drawn]
    triples: tuple[Triple, ...] = ()
    layout, rows = known.triples, known.rows
    if layout is not None and sums.triples is not None:
        expected = predicted(made, layout, known.middles)
        found = measure_triples(sums.triples, expected, layout, known.currency, rows, account)
        triples = to_follow(expected, layout, *found, rows)
        if model.from_signs and not triples and known.zeros is None:
            return Drawing(model, known)
    return Drawing(model, known, made, goals_of(shares, model.tables, made.starts), triples)


def draw_pair_values(
    drawing: Drawing,
    described: Described,
    number: int,
    source: Source,
    seen: Callable[[Sequence[Floats]], None] | None = None,
) -> dict[str, Floats]:
    """The rows of one block, by its index, column by column; `seen` is called with their positions."""
    model, marginals = drawing.model, drawing.known.drawn
    size = block_sizes(drawing.known.rows)[number]
    own = source.child("rows of pairs", number)
    known = (marginals, model.latent, model.correlations, own, model.flags)
    if drawing.mixture is None or drawing.goals is None:
        placed = list(positions_of_latent(size, *known))
    else:
        middles = drawing.known.middles
        codes = draw_block(drawing.mixture, drawing.goals, size, own, drawing.triples, middles)
        placed = list(positions_of(codes, *known, exactly=model.from_signs, inside=model.inside))
    if model.tails is not None:
        placed = exchanged(placed, model.tails, marginals, model.flags, own)
    if seen is not None:
        seen(placed)
    values: dict[str, Floats] = {}
    for place, column in enumerate(described.columns):
        lattice, tree, found = described.lattices[column], described.tree(column), placed[place]
        if tree is None:
            values[column] = np.clip(lattice.values(found), float(lattice.lo), float(lattice.hi))
        else:
            values[column] = np.asarray(tree.domain)[found.astype(np.int64)].astype(np.float64)
        if place in model.flags:
            values[column][placed[model.flags[place]] > 0] = np.nan
    return keeping_rules(described, values, own)


Pair = tuple[int, int]
# two attributes and their levels
Contrasts = tuple[int, int, int, int]

# Squared effect sizes of dependence considered, relative to independence.
_STRENGTHS = np.concatenate(([0.0], np.geomspace(1e-6, 4.0, 60)))
# A block's own strength is estimated together with this many observations of the usual one.
_PSEUDO = 2.0
_RAKES, _LAST_RAKES = 3, 20
_PASSES = 20


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class ContrastBlock:
    """Contrasts of one pair at one fineness, as shares of the rows; the first attribute comes before the second.

    Attributes:
        level, depth: levels of the functions of the first and the second attribute; -1 for names.
        noisy: one number for each pair of functions.
        noise: standard deviation of each.
    """

    first: int
    second: int
    level: int
    depth: int
    noisy: Floats
    noise: float

    @property
    def fineness(self) -> int:
        return max(self.level, 0) + max(self.depth, 0)

    @property
    def names(self) -> bool:
        return min(self.level, self.depth) < 0

    @property
    def contrasts(self) -> Contrasts:
        return self.first, self.second, self.level, self.depth

    @property
    def least(self) -> float:
        """Contrasts of halves smaller than this are known already from coarser ones; names are not halved."""
        return self.noise / 2 if self.names else self.noise

    def combined(self, other: ContrastBlock) -> ContrastBlock:
        """The same contrasts, measured twice."""
        weight = self.noise**-2 / (self.noise**-2 + other.noise**-2)
        noisy = weight * self.noisy + (1 - weight) * other.noisy
        return replace(self, noisy=noisy, noise=(self.noise**-2 + other.noise**-2) ** -0.5)

    @property
    def turned(self) -> ContrastBlock:
        return ContrastBlock(self.second, self.first, self.depth, self.level, self.noisy.T, self.noise)


def blocks_of(
    groups: Sequence[ContrastGroup], sums: Sequence[Floats], rows_of: Callable[[int, int], float]
) -> list[ContrastBlock]:
    """The measured groups, pair by pair, as shares of the rows with a value of both; repeated ones are combined."""
    found = []
    for group, noisy in zip(groups, sums, strict=True):
        ends = np.cumsum(group.shape.block_sizes)[:-1]
        parts = np.split(noisy.reshape(len(noisy), -1), ends, axis=1)
        for b, part, deviation in zip(group.partners, parts, group.deviations, strict=True):
            rows = rows_of(group.pivot, b)
            found.append(
                ContrastBlock(group.pivot, b, group.level, group.depth, part / rows, deviation / rows)
            )
    together: dict[Contrasts, ContrastBlock] = {}
    for block in found:
        own = block if block.first < block.second else block.turned
        again = together.get(own.contrasts)
        together[own.contrasts] = own if again is None else own.combined(again)
    return list(together.values())


def blocks_of_signs(
    products: Floats,
    signs: Sequence[int],
    deviation: float,
    rows_of: Callable[[int, int], float],
    flags: Mapping[int, int],
) -> list[ContrastBlock]:
    """The mean products of signs, pair by pair; an attribute and its own flag are not a pair."""
    return [
        ContrastBlock(
            signs[j], signs[i], 0, 0, products[i : i + 1, j : j + 1], deviation / rows_of(signs[i], signs[j])
        )
        for i in range(len(signs))
        for j in range(i)
        if flags.get(signs[j]) != signs[i]
    ]


def pair_tables(
    marginals: Sequence[Marginal],
    correlations: Mapping[Pair, float],
    blocks: Sequence[ContrastBlock],
    cells: Mapping[Pair, Bools] = NO_ZEROS,
) -> dict[Pair, Floats]:
    """A table for every pair of attributes that have more than one bin, the first attribute before the second.

    `cells` that cannot hold rows are 0, whatever was measured there.
    """
    telling = [number for number, own in enumerate(marginals) if own.bins > 1]
    tables: dict[Pair, Floats] = {}
    for place, a in enumerate(telling):
        for b in telling[place + 1 :]:
            first, second = marginals[a].shares, marginals[b].shares
            r = correlations.get((a, b), 0.0)
            tables[a, b] = np.outer(first, second)
            if r:
                # some records are atypical: without them a tilt could not produce what latent normals never do
                tables[a, b] = (1 - ODD) * copula_table(first, second, r) + ODD * tables[a, b]
            _without(tables, marginals, (a, b), cells, _LAST_RAKES)
    wanted: dict[Pair, list[ContrastBlock]] = {pair: [] for pair in tables}
    blocks = centred(blocks, tables, marginals)
    clear = clear_structure(blocks, tables, marginals)
    for fineness in sorted({block.fineness for block in blocks}):
        for names in (False, True):
            here = [block for block in blocks if block.fineness == fineness and block.names == names]
            if here:
                _tilt_all(tables, marginals, here, wanted, cells, clear)
                for pair in cells:
                    _without(tables, marginals, pair, cells, _LAST_RAKES)
    # tilting by one block and raking disturb the others: once more in turn, until all agree, the coarsest last, which
    # have the least noise
    for (a, b), table in tables.items():
        if len(wanted[a, b]) > 1:
            _towards(table, marginals[a], marginals[b], wanted[a, b][::-1], _PASSES)
        rake_table(table, marginals[a].shares, marginals[b].shares, _LAST_RAKES)
        _without(tables, marginals, (a, b), cells, _LAST_RAKES)
    return tables


def _without(
    tables: Mapping[Pair, Floats],
    marginals: Sequence[Marginal],
    pair: Pair,
    cells: Mapping[Pair, Bools],
    rakes: int,
) -> None:
    """Empty the cells of a pair's table that cannot hold rows; changed."""
    if pair in cells and pair in tables:
        tables[pair][~cells[pair]] = 0.0
        rake_table(tables[pair], marginals[pair[0]].shares, marginals[pair[1]].shares, rakes)


def centred(
    blocks: Sequence[ContrastBlock], tables: Mapping[Pair, Floats], marginals: Sequence[Marginal]
) -> list[ContrastBlock]:
    """Least-squares contrasts given those of single attributes: over all names they add up to these.

    That removes the part of the noise that the sums over names have.
    """
    found = []
    for block in blocks:
        if not block.names:
            found.append(block)
            continue
        residual, _ = _residuals(tables, marginals, block)
        moved, part = residual, 1.0
        for axis, level in enumerate((block.level, block.depth)):
            if level < 0:
                moved = moved - moved.mean(axis=axis, keepdims=True)
                part *= 1 - 1 / moved.shape[axis]
        noisy, noise = block.noisy - residual + moved, block.noise * part**0.5
        found.append(replace(block, noisy=noisy, noise=noise))
    return found


def clear_structure(
    blocks: Sequence[ContrastBlock], tables: Mapping[Pair, Floats], marginals: Sequence[Marginal]
) -> dict[Contrasts, Floats]:
    """The part of the residuals of pairs with names that is too regular to be noise.

    All contrasts of a pair, in units of their noise, form a matrix with a line for each name. Products of few lines and
    columns, such as an income that rises with education, have singular values beyond the largest of noise alone; these
    are kept, less what noise adds to them. Single contrasts may not show them.

    Reference:
        Gavish and Donoho, "Optimal Shrinkage of Singular Values".
    """
    found: dict[Contrasts, Floats] = {}
    pairs: dict[Pair, list[ContrastBlock]] = {}
    for block in blocks:
        if block.names:
            pairs.setdefault((block.first, block.second), []).append(block)
    for own in pairs.values():
        turned = [block.level >= 0 for block in own]
        residuals = [_residuals(tables, marginals, block)[0] / block.noise for block in own]
        lines = [one.T if turn else one for one, turn in zip(residuals, turned, strict=True)]
        low = _without_noise(np.concatenate(lines, axis=1))
        parts = np.split(low, np.cumsum([one.shape[1] for one in lines])[:-1], axis=1)
        for block, part, turn in zip(own, parts, turned, strict=True):
            found[block.contrasts] = block.noise * (part.T if turn else part)
    return found


def _without_noise(matrix: Floats) -> Floats:
    """The signal of few dimensions in a matrix with independent noise of variance 1.

    >>> np.abs(_without_noise(np.random.default_rng(0).standard_normal((20, 30)))).max() < 0.2
    True
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    first, second = matrix.shape
    clear = values > first**0.5 + second**0.5
    less = np.sqrt(np.maximum((values**2 - first - second) ** 2 - 4 * first * second, 0.0))
    kept = np.where(clear, less / np.maximum(values, 1.0), 0.0)
    found: Floats = (left * kept) @ right
    return found


def _tilt_all(
    tables: Mapping[Pair, Floats],
    marginals: Sequence[Marginal],
    blocks: Sequence[ContrastBlock],
    wanted: Mapping[Pair, list[ContrastBlock]],
    cells: Mapping[Pair, Bools],
    clear: Mapping[Contrasts, Floats],
) -> None:
    """Tilt tables by blocks of one fineness, and record the contrasts that they should have.

    What noise explains is removed, except from clear structure; rules leave no structure where they fix a contrast.
    """
    seen = []
    for block in blocks:
        known = cells.get((block.first, block.second))
        residual, expected = _residuals(tables, marginals, block, known)
        kept = clear.get(block.contrasts, np.zeros_like(residual))
        seen.append((residual - (kept if known is None else np.where(expected > 0, kept, 0.0)), expected))
    usual = _strength(
        np.concatenate([residual.ravel() for residual, _ in seen]),
        np.concatenate([expected.ravel() for _, expected in seen]),
        np.repeat([block.noise**2 for block in blocks], [residual.size for residual, _ in seen]),
    )
    for block, (residual, expected) in zip(blocks, seen, strict=True):
        noise = np.full(residual.size, block.noise**2)
        prior = _strength(residual.ravel(), expected.ravel(), noise, usual) * expected
        trust = prior / (prior + block.noise**2)
        steady = replace(block, noisy=block.noisy - (1 - trust) * residual)
        a, b = block.first, block.second
        _towards(tables[a, b], marginals[a], marginals[b], [steady], 1)
        wanted[a, b].append(steady)


def _towards(
    table: Floats, first: Marginal, second: Marginal, blocks: Sequence[ContrastBlock], passes: int
) -> None:
    """Tilt the table of a pair towards these contrasts; changed."""
    starts = np.cumsum([0, *(block.noisy.size for block in blocks)])
    shape = np.array([(b.level, b.depth, start) for b, start in zip(blocks, starts, strict=False)])
    contrasts = np.concatenate([block.noisy.ravel() for block in blocks])
    levels = np.array([first.levels, second.levels])
    least = np.array([block.least for block in blocks])
    fit_table(table, first.shares, second.shares, levels, shape, contrasts, least, passes, _RAKES)


def _residuals(
    tables: Mapping[Pair, Floats],
    marginals: Sequence[Marginal],
    block: ContrastBlock,
    cells: Bools | None = None,
) -> tuple[Floats, Floats]:
    """The difference of the measured contrasts to those of the table, and the product of the shares of their nodes."""
    a, b = block.first, block.second
    table = tables[a, b]
    own = functions(marginals[a].levels, block.level, marginals[a].bins)
    other = functions(marginals[b].levels, block.depth, marginals[b].bins)
    (one, small), (two, less) = _halves_of(own, marginals[a].shares), _halves_of(other, marginals[b].shares)
    # where a half is small, the contrast is known already from coarser ones
    open_ = np.minimum(np.outer(small, two), np.outer(one, less)) > block.least
    if cells is not None:
        # where rules leave cells of one sign or none, the contrast is known without noise
        signs = [np.abs(own).T @ cells @ np.abs(other), own.T @ cells @ other]
        names = block.level < 0 and block.depth < 0
        open_ &= signs[0] > 0 if names else np.abs(signs[1]) < signs[0]
    expected = np.outer(one, two) * open_
    return block.noisy - own.T @ table @ other, expected


def _halves_of(signs: Integers, shares: Floats) -> tuple[Floats, Floats]:
    """Shares of nodes, and of the smaller half of each; names are not halved."""
    left, right = np.maximum(signs, 0).T @ shares, np.maximum(-signs, 0).T @ shares
    names = signs.min(axis=0) >= 0
    return left + right, np.where(names, left, np.minimum(left, right))


def _strength(residuals: Floats, expected: Floats, noise: Floats, usual: float | None = None) -> float:
    """The maximum likelihood τ² if residuals are normal with variance τ²·expected + noise."""
    variance = _STRENGTHS[:, None] * expected + noise
    score = -0.5 * (np.log(variance) + residuals**2 / variance).sum(axis=1)
    if usual is not None:
        typical, least = float(expected.mean()), float(noise.mean())
        spread = _STRENGTHS * typical + least
        score -= _PSEUDO * 0.5 * (np.log(spread) + (usual * typical + least) / spread)
    return float(_STRENGTHS[int(np.argmax(score))])


def of_parts(block: ContrastBlock, marginals: Sequence[Marginal]) -> bool:
    """Whether these contrasts of names are between parts of bins."""
    ordered = marginals[block.second if block.level < 0 else block.first]
    return min(block.level, block.depth) < 0 and max(block.level, block.depth) >= ordered.levels > 0


def inside_bins(
    blocks: Sequence[ContrastBlock], tables: Mapping[Pair, Floats], marginals: Sequence[Marginal]
) -> dict[int, InsideBins]:
    """How values inside bins follow names: for each attribute, those of the column of names that tells most.

    Differences to what the attribute alone says are shrunk by what noise explains.
    """
    found: dict[int, tuple[float, InsideBins]] = {}
    pairs: dict[Pair, list[ContrastBlock]] = {}
    for block in blocks:
        turned = block if block.level < 0 else block.turned
        pairs.setdefault((turned.first, turned.second), []).append(turned)
    for (names, number), own in pairs.items():
        alone = marginals[number].parts
        assert alone is not None
        table = tables[names, number] if names < number else tables[number, names].T
        told, shares = 0.0, np.broadcast_to(alone, (*table.shape, alone.shape[1])).copy()
        for block in sorted(own, key=lambda one: one.depth):
            # nodes of bins, each with two halves of some parts
            nodes = (*table.shape, 1 << (block.depth - marginals[number].levels), 2, -1)
            halves = shares.reshape(nodes).sum(axis=4)
            mass = table[:, :, None] * halves.sum(axis=3)
            missed = block.noisy.reshape(mass.shape) - table[:, :, None] * (halves[..., 0] - halves[..., 1])
            noise = np.full(missed.size, block.noise**2)
            prior = _strength(missed.ravel(), mass.ravel() ** 2, noise) * mass**2
            moved = prior / (prior + block.noise**2) * missed / np.maximum(table[:, :, None], 1e-12) / 2
            after = np.maximum(halves + np.stack([moved, -moved], axis=3), 0.0)
            after *= halves.sum(axis=3, keepdims=True) / np.maximum(after.sum(axis=3, keepdims=True), 1e-300)
            factor = after / np.maximum(halves, 1e-300)
            shares = (shares.reshape(nodes) * factor[..., None]).reshape(shares.shape)
            told += float(prior.sum())
        if told > found.get(number, (0.0, None))[0]:
            found[number] = told, InsideBins(names, shares)
    return {number: one for number, (_, one) in found.items()}


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMarginals:
    """The results of measuring single attributes; all of it charged.

    Attributes:
        rows: number of rows to release.
        marginals: the attributes, missing-value flags last.
        flags: the indices of these flags, by the index of their attribute.
        clipped: products of values to be measured in addition, if any.
        triples: products of three signs that can be measured, if any.
        conditions: what is measured, if it follows from the noisy number of rows.
        zeros: what rules of two columns forbid, if anything.
    """

    rows: int
    currency: Currency
    shared: Halves
    target: int | None
    marginals: tuple[Marginal, ...]
    flags: Mapping[int, int]
    clipped: Clipped | None = None
    triples: Triples | None = None
    conditions: tuple[Message, ...] = ()
    zeros: Zeros | None = None

    @property
    def drawn(self) -> tuple[Marginal, ...]:
        """The attributes in the bins that rows are drawn in."""
        return self.marginals if self.zeros is None else self.zeros.drawn

    @property
    def middles(self) -> Integers:
        """The first bins of the second halves, of those that rows are drawn in."""
        return np.array([own.middle for own in self.drawn], dtype=np.int64)

    @property
    def levels(self) -> list[int]:
        """Levels by which records are counted: parts of bins, too, where there are names to tell them apart."""
        more = any(own.names and own.bins > 1 for own in self.marginals)
        return [own.all_levels if more else own.levels for own in self.marginals]

    @property
    def bins(self) -> list[int]:
        """Numbers of bins by which records are counted."""
        return [
            1 << level if level else own.bins for level, own in zip(self.levels, self.marginals, strict=True)
        ]


def pair_codes(known: MeasuredMarginals, positions: Sequence[Integers]) -> list[NDArray[np.uint8]]:
    """The bins by which records are counted; a missing value gets the index after the last. Private."""
    levels = known.levels

    def codes_of(number: int) -> NDArray[np.uint8]:
        own = known.marginals[number]
        return own.codes(positions[number], finer=levels[number] > own.levels)

    codes = list(threaded(codes_of, range(len(levels))))
    for number in known.flags:
        codes[number][positions[number] == ABSENT] = known.bins[number]
    return codes


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class PairsModel:
    """The denoised model of pairs.

    Attributes:
        latent: attributes with a latent normal.
        correlations: correlations of these.
        tables: probabilities of the bins of pairs; empty if the correlations determine them.
        flags: missing-value flags.
        tails: products of values, if measured.
        from_signs: the tables contain no more information than the correlations.
        inside: how values inside bins follow names, by attribute.
        layout: the measurements of pairs, with the noisy products of signs and the noisy sums of its groups.
    """

    latent: tuple[int, ...]
    correlations: Floats
    tables: dict[tuple[int, int], Floats]
    flags: Mapping[int, int]
    tails: Tails | None = None
    from_signs: bool = False
    inside: Mapping[int, InsideBins] = field(default_factory=dict)
    layout: PairMeasurements = field(default_factory=PairMeasurements)
    products: Floats | None = None
    sums: tuple[Floats, ...] = ()


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class RecordSums:
    """Exact sums over the records, before noise. Private.

    Attributes:
        products: products of values, if measured.
        triples: products of three signs, if measured.
    """

    counts: PairCounts
    products: Integers | None
    triples: Integers | None


def counted(positions: Sequence[Integers], known: MeasuredMarginals) -> RecordSums:
    """All sums of these records that pairs and triples may need."""
    codes = pair_codes(known, positions)
    products = None if known.clipped is None else exact_products(positions, known.clipped)
    triples = None
    if known.triples is not None:
        halved = [level - own.levels for level, own in zip(known.levels, known.marginals, strict=True)]
        bins = [(own >> more).astype(np.uint8) for own, more in zip(codes, halved, strict=True)]
        triples = exact_triples(bins, known.marginals, known.triples)
    return RecordSums(PairCounts(codes, known.bins), products, triples)


def measure_pairs(sums: RecordSums, known: MeasuredMarginals, n: int, account: Accountant) -> PairsModel:
    """Spend the share of pairs of n records: products of signs, then the other contrasts, group by group.

    Guarantee:
        Bins are functions of earlier measurements; given them, each group costs its share.
    """
    tails = None
    if known.clipped is not None and sums.products is not None:
        tails = measure_tails(sums.products, known.clipped, known.currency, known.rows, account)
    return replace(_measure_contrasts(sums.counts, known, n, account), tails=tails)


def _measure_contrasts(
    counts: PairCounts, known: MeasuredMarginals, n: int, account: Accountant
) -> PairsModel:
    marginals, currency, rows, flags = known.marginals, known.currency, known.rows, known.flags
    bins, levels = known.bins, known.levels
    groups = [own.bins if own.names and own.bins > 1 else 0 for own in marginals]
    latent = tuple(number for number, own in enumerate(levels) if own)
    layout = lay_out_pairs(
        currency,
        levels,
        groups,
        known.shared.pairs,
        rows,
        known.target,
        only_target=known.shared.only_target,
        flags=flags,
    )
    if not layout.measured and known.zeros is None:
        return PairsModel(latent, np.eye(len(latent)), {}, flags)
    correlations, known_gaps, noisy = np.eye(len(latent)), presence(marginals, flags), None
    if layout.signs:
        exact = sign_products(counts, layout.signs, levels, n)
        noisy = _noisy_products(exact, layout, currency, account)
        products, known_gaps = of_present(noisy / rows, layout.signs, marginals, known_gaps)
        correlations = _correlations(products, marginals, layout, rows, known_gaps)
    sums = [
        currency.measure(
            group_sums(counts, group, levels, bins),
            group.shape,
            account.spend(OF_TWO, group.share, _what(group), over="cells"),
            _contrast(group, currency),
        )
        for group in layout.groups
    ]
    between = {
        (a, b): float(correlations[i, j])
        for i, a in enumerate(latent)
        for j, b in enumerate(latent)
        if a < b and flags.get(a) != b
    }
    if not layout.groups and known.triples is None and known.zeros is None:
        return PairsModel(latent, correlations, {}, flags, layout=layout, products=noisy, sums=tuple(sums))

    def rows_of(a: int, b: int) -> float:
        return rows * known_gaps.of(a, b)

    blocks: list[ContrastBlock] = []
    parts: list[ContrastBlock] = []
    for block in blocks_of(layout.groups, sums, rows_of):
        (parts if of_parts(block, marginals) else blocks).append(block)
    if layout.signs:
        blocks += blocks_of_signs(products, layout.signs, layout.sign_deviation, rows_of, flags)
    tables = pair_tables(marginals, between, blocks, {} if known.zeros is None else known.zeros.cells)
    inside = inside_bins(parts, tables, marginals)
    if known.zeros is not None:
        tables = drawn_tables(tables, between, known.zeros)
    return PairsModel(
        latent,
        correlations,
        tables,
        flags,
        from_signs=not layout.groups,
        inside=inside,
        layout=layout,
        products=noisy,
        sums=tuple(sums),
    )


def _contrast(group: ContrastGroup, currency: Currency) -> RecordSum:
    """What a group measures: for each partner in turn its functions, whose noise follows their number."""
    where = {
        "level": group.level,
        "depth": group.depth,
        "sizes": group.shape.block_sizes,
        "sds": currency.deviations(group.shape, group.share),
    }
    return RecordSum("contrast", (group.pivot, *group.partners), where)


def _what(group: ContrastGroup) -> str:
    """The name of a group's measurement in the account; names have level -1."""
    partners = ", ".join(map(str, group.partners))
    return f"contrasts of attribute {group.pivot} (level {group.level}) with {partners} (level {group.depth})"


def _noisy_products(
    exact: Integers, layout: PairMeasurements, currency: Currency, account: Accountant
) -> Floats:
    shape = currency.sign_shape(len(layout.signs))
    spend = account.spend(OF_TWO, layout.sign_share, "products of signs")
    what = RecordSum("product", layout.signs)
    if shape.signs:
        return currency.measure(exact, shape, spend, what)
    below = np.tril_indices(len(exact), -1)
    noisy = np.zeros(exact.shape)
    noisy[below] = currency.measure(exact[below], shape, spend, what)
    return noisy + noisy.T


def _correlations(
    products: Floats, marginals: Sequence[Marginal], layout: PairMeasurements, rows: float, gaps: Presence
) -> Floats:
    from scipy.special import ndtri

    left = np.array([marginals[a].shares[: marginals[a].bins // 2].sum() for a in layout.signs])
    left = np.clip(left, 1e-4, 1 - 1e-4)
    density = np.exp(-(ndtri(left) ** 2) / 2) / np.sqrt(2 * np.pi)
    # fewer records contribute to the products of an attribute with gaps, so their noise is relatively larger
    scale = 2 * density * np.array([gaps.shares.get(a, 1.0) for a in layout.signs])
    return shrunk(tetrachoric(products, left), scale, layout.sign_deviation / rows)
