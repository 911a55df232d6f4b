"""Tables of pairs. In: noisy contrasts, single attributes, latent correlations. Out: a table of bins for every pair.

A table starts as that of latent normals, or of independence where a name is involved. Contrasts, coarse ones first,
tilt it as far as they are clear of noise, and it is raked to the shares of its two attributes. All of it is
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.pairs._kernels import fit_table, rake_table
from shoal.mechanisms.pairs.contrasts import functions
from shoal.mechanisms.pairs.correlation import copula_table
from shoal.mechanisms.pairs.marginal import Marginal
from shoal.mechanisms.pairs.plan import Group

Floats = NDArray[np.float64]
Pair = tuple[int, int]

# Squared sizes of dependence that are considered, in parts of independence.
_STRENGTHS = np.concatenate(([0.0], np.geomspace(1e-6, 4.0, 60)))
# A block's own strength is estimated together with so many observations of what is usual.
_PSEUDO = 2.0
_RAKES, _LAST_RAKES = 3, 20
_PASSES = 20
# Share of records that are taken to be independent in all attributes.
_ODD = 0.02


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Contrasts of one pair at one fineness, in parts of the rows; the first attribute comes before the second.

    Attributes:
        level, depth: of the functions of the first and the second attribute; -1 for names.
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
    def turned(self) -> Block:
        return Block(self.second, self.first, self.depth, self.level, self.noisy.T, self.noise)


def blocks_of(
    groups: Sequence[Group], sums: Sequence[Floats], rows_of: Callable[[int, int], float]
) -> list[Block]:
    """The measured groups, pair by pair, in parts of the rows that have a value of both."""
    found = [
        Block(
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
) -> list[Block]:
    """The mean products of signs, pair by pair; an attribute and its own flag are no pair."""
    return [
        Block(
            signs[j], signs[i], 0, 0, products[i : i + 1, j : j + 1], deviation / rows_of(signs[i], signs[j])
        )
        for i in range(len(signs))
        for j in range(i)
        if flags.get(signs[j]) != signs[i]
    ]


def pair_tables(
    marginals: Sequence[Marginal], correlations: Mapping[Pair, float], blocks: Sequence[Block]
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
                # some records are odd: without them a tilt could not make what latent normals never do
                tables[a, b] = (1 - _ODD) * copula_table(first, second, r) + _ODD * tables[a, b]
    wanted: dict[Pair, list[Block]] = {pair: [] for pair in tables}
    for fineness in sorted({block.fineness for block in blocks}):
        for names in (False, True):
            here = [
                block
                for block in blocks
                if block.fineness == fineness and (min(block.level, block.depth) < 0) == names
            ]
            if here:
                _tilt_all(tables, marginals, here, wanted)
    # tilting by one block and raking move what others have settled: once more in turn, until all agree
    for (a, b), table in tables.items():
        if len(wanted[a, b]) > 1:
            _towards(table, marginals[a], marginals[b], wanted[a, b], _PASSES)
        rake_table(table, marginals[a].shares, marginals[b].shares, _LAST_RAKES)
    return tables


def _tilt_all(
    tables: Mapping[Pair, Floats],
    marginals: Sequence[Marginal],
    blocks: Sequence[Block],
    wanted: Mapping[Pair, list[Block]],
) -> None:
    """Tilt tables by blocks of one fineness, and note down the contrasts that they should have."""
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


def _towards(table: Floats, first: Marginal, second: Marginal, blocks: Sequence[Block], passes: int) -> None:
    """Give the table of a pair these contrasts; changed."""
    starts = np.cumsum([0, *(block.noisy.size for block in blocks)])
    shape = np.array([(b.level, b.depth, start) for b, start in zip(blocks, starts, strict=False)])
    contrasts = np.concatenate([block.noisy.ravel() for block in blocks])
    levels = np.array([first.levels, second.levels])
    fit_table(table, first.shares, second.shares, levels, shape, contrasts, passes, _RAKES)


def _residuals(
    tables: Mapping[Pair, Floats], marginals: Sequence[Marginal], block: Block
) -> tuple[Floats, Floats]:
    """What the measured contrasts have beyond those of the table, and the product of the shares of their nodes."""
    a, b = block.first, block.second
    table = tables[a, b]
    own = functions(marginals[a].levels, block.level, marginals[a].bins)
    other = functions(marginals[b].levels, block.depth, marginals[b].bins)
    expected = np.outer(np.abs(own).T @ marginals[a].shares, np.abs(other).T @ marginals[b].shares)
    return block.noisy - own.T @ table @ other, expected


def _strength(residuals: Floats, expected: Floats, noise: Floats, usual: float | None = None) -> float:
    """The most likely τ² if residuals are normal with variance τ²·expected + noise."""
    variance = _STRENGTHS[:, None] * expected + noise
    score = -0.5 * (np.log(variance) + residuals**2 / variance).sum(axis=1)
    if usual is not None:
        typical, least = float(expected.mean()), float(noise.mean())
        spread = _STRENGTHS * typical + least
        score -= _PSEUDO * 0.5 * (np.log(spread) + (usual * typical + least) / spread)
    return float(_STRENGTHS[int(np.argmax(score))])
