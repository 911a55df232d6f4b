"""The model of pairs-dp: consistent tables and correlations fitted to the noisy measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.pairs._kernels import fit_table, rake_table
from shoal.mechanisms.pairs.budget import (
    OF_TWO,
    ContrastGroup,
    Currency,
    Halves,
    PairMeasurements,
    lay_out_pairs,
)
from shoal.mechanisms.pairs.marginal import ABSENT, Marginal, Presence, of_present, presence
from shoal.mechanisms.pairs.measure_pairs import (
    Clipped,
    PairCounts,
    Tails,
    Triples,
    exact_products,
    exact_triples,
    functions,
    group_sums,
    measure_tails,
    sign_products,
)
from shoal.numbers import Floats, Integers
from shoal.privacy import Accountant
from shoal.text import Message

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_LARGEST = 0.995
# Bounds of the minimum variance of latent normals in any direction, which depends on the noise.
_LEAST_VARIANCE, _MOST_LEAST, _PER_NOISE = 0.002, 0.03, 0.6
# Noise eigenvalues below this are too small for spectral shrinkage to help.
_LITTLE_EDGE = 0.5


def both_below(h: Floats, k: Floats, r: Floats) -> Floats:
    """Probability that two standard normals with correlation r are below h and k.

    >>> both_below(np.zeros(2), np.zeros(2), np.array([0.0, 0.5])).round(6).tolist()
    [0.25, 0.333333]
    """
    from scipy.special import ndtr

    # the derivative by r is smooth in the angle whose sine is r
    angle = np.arcsin(r)[..., None] * (_NODES + 1) / 2
    sine, cosine = np.sin(angle), np.maximum(np.cos(angle), 1e-9)
    h, k = h[..., None], k[..., None]
    density = np.exp(-(h * h + k * k - 2 * h * k * sine) / (2 * cosine * cosine))
    area = (density * _WEIGHTS).sum(axis=-1) * np.arcsin(r) / 2
    found: Floats = ndtr(h[..., 0]) * ndtr(k[..., 0]) + area / (2 * np.pi)
    return found


def tetrachoric(products: Floats, left: Floats) -> Floats:
    """Latent correlations for mean products of signs.

    Args:
        products: (d, d) means of the products of two signs.
        left: share of +1 of each sign.
    """
    from scipy.special import ndtri

    cut = ndtri(left)
    rows, columns = np.tril_indices(left.size, -1)
    p, q = left[rows], left[columns]
    wanted = (products[rows, columns] + 2 * p + 2 * q - 1) / 4
    low, high = np.full(p.size, -_LARGEST), np.full(p.size, _LARGEST)
    for _ in range(40):
        middle = (low + high) / 2
        small = both_below(cut[rows], cut[columns], middle) < wanted
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    found = np.eye(left.size)
    found[rows, columns] = found[columns, rows] = (low + high) / 2
    return found


def shrunk(correlations: Floats, scale: Floats, noise: float) -> Floats:
    """Correlations with most of their noise removed.

    In the scale of the products (correlation times `scale` of both attributes) all entries have about the same
    noise. Its eigenvalues are at most 2·noise·√d in size: what exceeds them is signal and is shrunk by what noise adds
    to it; the rest is shrunk as a whole, by the part of its variance that noise explains. If noise makes eigenvalues of
    at most a half, shrinking costs more than it gains and is omitted: a rule that depends on the noise and d only.

    Reference:
        Gavish and Donoho, "Optimal Shrinkage of Singular Values".
    """
    size = len(correlations)
    if size < 2:
        return correlations
    least = min(max(_PER_NOISE * noise, _LEAST_VARIANCE), _MOST_LEAST)
    edge = 2 * noise * np.sqrt(size)
    if edge <= _LITTLE_EDGE:
        return nearest_correlation(correlations, least)
    both = np.outer(scale, scale)
    scaled = correlations * both
    np.fill_diagonal(scaled, 0.0)
    values, vectors = np.linalg.eigh(scaled)
    clear = np.abs(values) > edge
    kept = (vectors[:, clear] * values[clear]) @ vectors[:, clear].T
    less = np.sign(values[clear]) * np.sqrt(values[clear] ** 2 - edge**2)
    signal = (vectors[:, clear] * less) @ vectors[:, clear].T
    rest = scaled - kept
    off = ~np.eye(size, dtype=np.bool_)
    variance = float((rest[off] ** 2).mean())
    trust = max(0.0, 1 - noise**2 / variance) if variance > 0 else 0.0
    return nearest_correlation((signal + trust * rest) / both, least)


def nearest_correlation(matrix: Floats, least: float, rounds: int = 100) -> Floats:
    """A nearby correlation matrix with at least this variance in all directions, by alternating projections.

    Reference:
        Higham, "Computing the nearest correlation matrix: a problem from finance".
    """
    found = matrix.copy()
    np.fill_diagonal(found, 1.0)
    correction = np.zeros_like(found)
    for _ in range(rounds):
        values, vectors = np.linalg.eigh(found - correction)
        positive = (vectors * np.maximum(values, least)) @ vectors.T
        correction = positive - (found - correction)
        before, found = found, positive.copy()
        np.fill_diagonal(found, 1.0)
        if np.abs(found - before).max() < 1e-9:
            break
    values, vectors = np.linalg.eigh(found)
    positive = (vectors * np.maximum(values, least)) @ vectors.T
    spread = np.sqrt(np.diag(positive))
    nearest: Floats = positive / np.outer(spread, spread)
    return nearest


def copula_table(rows: Floats, columns: Floats, r: float) -> Floats:
    """Probabilities of the bins of two attributes whose latent normals have correlation r.

    >>> copula_table(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.5).round(4).tolist()
    [[0.3333, 0.1667], [0.1667, 0.3333]]
    """
    from scipy.special import ndtr, ndtri

    nodes, weights = _SHORT
    ends = np.concatenate(([0.0], np.cumsum(rows)))
    ends /= ends[-1]
    level = ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2
    latent = ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    inner = np.cumsum(columns)[:-1] / columns.sum()
    cuts = np.concatenate(([-np.inf], ndtri(np.clip(inner, 1e-12, 1 - 1e-12)), [np.inf]))
    spread = np.sqrt(1 - r * r)
    below = ndtr((cuts - r * latent[..., None]) / spread)
    table: Floats = (np.diff(below, axis=2) * weights[None, :, None]).sum(axis=1) / 2 * rows[:, None]
    return np.maximum(table, 1e-12)


_SHORT = np.polynomial.legendre.leggauss(12)


Pair = tuple[int, int]

# Squared effect sizes of dependence considered, relative to independence.
_STRENGTHS = np.concatenate(([0.0], np.geomspace(1e-6, 4.0, 60)))
# A block's own strength is estimated together with this many observations of the usual one.
_PSEUDO = 2.0
_RAKES, _LAST_RAKES = 3, 20
_PASSES = 20
# Share of records assumed independent in all attributes.
_ODD = 0.02


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
    def turned(self) -> ContrastBlock:
        return ContrastBlock(self.second, self.first, self.depth, self.level, self.noisy.T, self.noise)


def blocks_of(
    groups: Sequence[ContrastGroup], sums: Sequence[Floats], rows_of: Callable[[int, int], float]
) -> list[ContrastBlock]:
    """The measured groups, pair by pair, as shares of the rows with a value of both."""
    found = [
        ContrastBlock(
            group.pivot,
            b,
            group.level,
            group.depth,
            noisy[:, place] / rows_of(group.pivot, b),
            group.deviation / rows_of(group.pivot, b),
        )
        for group, noisy in zip(groups, sums, strict=True)
        for place, b in enumerate(group.partners)
    ]
    return [block if block.first < block.second else block.turned for block in found]


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
    marginals: Sequence[Marginal], correlations: Mapping[Pair, float], blocks: Sequence[ContrastBlock]
) -> dict[Pair, Floats]:
    """A table for every pair of attributes that have more than one bin, the first attribute before the second."""
    telling = [number for number, own in enumerate(marginals) if own.bins > 1]
    tables: dict[Pair, Floats] = {}
    for place, a in enumerate(telling):
        for b in telling[place + 1 :]:
            first, second = marginals[a].shares, marginals[b].shares
            r = correlations.get((a, b), 0.0)
            tables[a, b] = np.outer(first, second)
            if r:
                # some records are atypical: without them a tilt could not produce what latent normals never do
                tables[a, b] = (1 - _ODD) * copula_table(first, second, r) + _ODD * tables[a, b]
    wanted: dict[Pair, list[ContrastBlock]] = {pair: [] for pair in tables}
    for fineness in sorted({block.fineness for block in blocks}):
        for names in (False, True):
            here = [
                block
                for block in blocks
                if block.fineness == fineness and (min(block.level, block.depth) < 0) == names
            ]
            if here:
                _tilt_all(tables, marginals, here, wanted)
    # tilting by one block and raking disturb the others: once more in turn, until all agree
    for (a, b), table in tables.items():
        if len(wanted[a, b]) > 1:
            _towards(table, marginals[a], marginals[b], wanted[a, b], _PASSES)
        rake_table(table, marginals[a].shares, marginals[b].shares, _LAST_RAKES)
    return tables


def _tilt_all(
    tables: Mapping[Pair, Floats],
    marginals: Sequence[Marginal],
    blocks: Sequence[ContrastBlock],
    wanted: Mapping[Pair, list[ContrastBlock]],
) -> None:
    """Tilt tables by blocks of one fineness, and record the contrasts that they should have."""
    seen = [_residuals(tables, marginals, block) for block in blocks]
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
    fit_table(table, first.shares, second.shares, levels, shape, contrasts, passes, _RAKES)


def _residuals(
    tables: Mapping[Pair, Floats], marginals: Sequence[Marginal], block: ContrastBlock
) -> tuple[Floats, Floats]:
    """The difference of the measured contrasts to those of the table, and the product of the shares of their nodes."""
    a, b = block.first, block.second
    table = tables[a, b]
    own = functions(marginals[a].levels, block.level, marginals[a].bins)
    other = functions(marginals[b].levels, block.depth, marginals[b].bins)
    expected = np.outer(np.abs(own).T @ marginals[a].shares, np.abs(other).T @ marginals[b].shares)
    return block.noisy - own.T @ table @ other, expected


def _strength(residuals: Floats, expected: Floats, noise: Floats, usual: float | None = None) -> float:
    """The maximum likelihood τ² if residuals are normal with variance τ²·expected + noise."""
    variance = _STRENGTHS[:, None] * expected + noise
    score = -0.5 * (np.log(variance) + residuals**2 / variance).sum(axis=1)
    if usual is not None:
        typical, least = float(expected.mean()), float(noise.mean())
        spread = _STRENGTHS * typical + least
        score -= _PSEUDO * 0.5 * (np.log(spread) + (usual * typical + least) / spread)
    return float(_STRENGTHS[int(np.argmax(score))])


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

    @property
    def bins(self) -> list[int]:
        return [own.bins for own in self.marginals]


def pair_codes(
    marginals: Sequence[Marginal], positions: Sequence[Integers], flags: Mapping[int, int]
) -> list[NDArray[np.uint8]]:
    """The bins of records; a missing value gets the index after the last. Private."""
    codes = [own.codes(found) for own, found in zip(marginals, positions, strict=True)]
    for number in flags:
        codes[number][positions[number] == ABSENT] = marginals[number].bins
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
    """

    latent: tuple[int, ...]
    correlations: Floats
    tables: dict[tuple[int, int], Floats]
    flags: Mapping[int, int]
    tails: Tails | None = None
    from_signs: bool = False


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
    codes = pair_codes(known.marginals, positions, known.flags)
    return RecordSums(
        PairCounts(codes, known.bins),
        None if known.clipped is None else exact_products(positions, known.clipped),
        None if known.triples is None else exact_triples(codes, known.marginals, known.triples),
    )


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
    bins, levels = known.bins, [own.levels for own in marginals]
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
    if not layout.measured:
        return PairsModel(latent, np.eye(len(latent)), {}, flags)
    correlations, known_gaps = np.eye(len(latent)), presence(marginals, flags)
    if layout.signs:
        exact = sign_products(counts, layout.signs, levels, n)
        measured = _noisy_products(exact, layout, currency, account) / rows
        products, known_gaps = of_present(measured, layout.signs, marginals, known_gaps)
        correlations = _correlations(products, marginals, layout, rows, known_gaps)
    sums = [
        currency.measure(
            group_sums(counts, group, levels, bins),
            group.shape,
            account.spend(OF_TWO, group.share, _what(group), over="cells"),
        )
        for group in layout.groups
    ]
    between = {
        (a, b): float(correlations[i, j])
        for i, a in enumerate(latent)
        for j, b in enumerate(latent)
        if a < b and flags.get(a) != b
    }
    if not layout.groups and known.triples is None:
        return PairsModel(latent, correlations, {}, flags)

    def rows_of(a: int, b: int) -> float:
        return rows * known_gaps.of(a, b)

    blocks = blocks_of(layout.groups, sums, rows_of)
    if layout.signs:
        blocks += blocks_of_signs(products, layout.signs, layout.sign_deviation, rows_of, flags)
    tables = pair_tables(marginals, between, blocks)
    return PairsModel(latent, correlations, tables, flags, from_signs=not layout.groups)


def _what(group: ContrastGroup) -> str:
    """The name of a group's measurement in the account; names have level -1."""
    partners = ", ".join(map(str, group.partners))
    return f"contrasts of attribute {group.pivot} (level {group.level}) with {partners} (level {group.depth})"


def _noisy_products(
    exact: Integers, layout: PairMeasurements, currency: Currency, account: Accountant
) -> Floats:
    shape = currency.sign_shape(len(layout.signs))
    spend = account.spend(OF_TWO, layout.sign_share, "products of signs")
    if shape.signs:
        return currency.measure(exact, shape, spend)
    below = np.tril_indices(len(exact), -1)
    noisy = np.zeros(exact.shape)
    noisy[below] = currency.measure(exact[below], shape, spend)
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
