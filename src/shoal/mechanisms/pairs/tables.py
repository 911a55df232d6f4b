"""The tables of pairs in pairs-dp: consistent and non-negative, from noisy contrasts of which noise is removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from shoal.display import internal
from shoal.mechanisms.pairs._kernels import fit_table, rake_table
from shoal.mechanisms.pairs.budget import ContrastGroup
from shoal.mechanisms.pairs.distributions import ODD, copula_table, without_noise
from shoal.mechanisms.pairs.measure_one import Marginal
from shoal.mechanisms.pairs.measure_pairs import InsideBins, functions
from shoal.numbers import Bools, Floats, Integers

Pair = tuple[int, int]
NO_ZEROS: Mapping[Pair, Bools] = MappingProxyType({})
# two attributes and their levels
Contrasts = tuple[int, int, int, int]

# Lower bound of the share of records with a value.
_LEAST_SHARE = 0.01
# Squared effect sizes of dependence considered, relative to independence.
_STRENGTHS = np.concatenate(([0.0], np.geomspace(1e-6, 4.0, 60)))
# A block's own strength is estimated together with this many observations of the usual one.
_PSEUDO = 2.0
_RAKES, _LAST_RAKES = 3, 20
_PASSES = 20


@dataclass(frozen=True, slots=True)
class Presence:
    """Shares of the records that have a value.

    Attributes:
        flags: the missing-value flag of each attribute that has one.
        shares: of records with a value, by these attributes.
        both: share of records with a value of both attributes; other pairs are assumed independent.
    """

    flags: Mapping[int, int]
    shares: Mapping[int, float]
    both: Mapping[tuple[int, int], float]

    def of(self, a: int, b: int) -> float:
        """The share of records that can change a sum over attributes a and b."""
        apart = self.shares.get(a, 1.0) * self.shares.get(b, 1.0)
        return self.both.get((min(a, b), max(a, b)), apart)


def presence(marginals: Sequence[Marginal], flags: Mapping[int, int]) -> Presence:
    """Presence as estimated from single attributes."""
    shares = {a: max(float(marginals[flag].shares[0]), _LEAST_SHARE) for a, flag in flags.items()}
    return Presence(flags, shares, {})


def of_present(
    products: Floats, signs: Sequence[int], marginals: Sequence[Marginal], known: Presence
) -> tuple[Floats, Presence]:
    """Mean products of signs as they would be without gaps, and the joint shares of gaps they imply.

    A mean product with the sign of a value is over the records that have it. If these differ from others, the other
    sign has another mean among them, which follows from its product with the flag: that contribution is removed. A
    value and its own flag are unrelated.
    """
    if not known.flags:
        return products, known
    place = {number: i for i, number in enumerate(signs)}
    means = {a: float(2 * marginals[a].shares[: marginals[a].bins // 2].sum() - 1) for a in signs}
    values = [a for a in known.flags if a in place]
    both = {
        (a, b): _together(products, place, means, known, a, b)
        for a in known.flags
        for b in known.flags
        if a < b
    }
    known = replace(known, both=both)
    found = products.copy()
    for a in values:
        flag = known.flags[a]
        for b in signs:
            i, j = place[a], place[b]
            if b == a:
                continue
            if b == flag:
                mean = means[a] * means[b]
            elif b in known.flags:
                mean = float(products[i, j]) / known.of(a, b)
            else:
                among = (means[b] + float(products[place[flag], j])) / (2 * known.shares[a])
                mean = float(products[i, j]) / known.shares[a] - means[a] * (
                    min(max(among, -1), 1) - means[b]
                )
            found[i, j] = found[j, i] = min(max(mean, -1.0), 1.0)
    return found, known


def _together(
    products: Floats,
    place: Mapping[int, int],
    means: Mapping[int, float],
    known: Presence,
    a: int,
    b: int,
) -> float:
    """Share of the records with a value of both, by the product of their flags."""
    first, second = known.flags[a], known.flags[b]
    share = (1 + means[first] + means[second] + float(products[place[first], place[second]])) / 4
    p, q = known.shares[a], known.shares[b]
    return min(max(share, p + q - 1, p * q / 2, _LEAST_SHARE), p, q)


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
        low = without_noise(np.concatenate(lines, axis=1))
        parts = np.split(low, np.cumsum([one.shape[1] for one in lines])[:-1], axis=1)
        for block, part, turn in zip(own, parts, turned, strict=True):
            found[block.contrasts] = block.noise * (part.T if turn else part)
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
