"""Pairs of attributes. In: single attributes that are measured, and the records. Out: what is known of pairs, noisy.

This is where the budget of pairs is spent; what becomes of the noisy sums is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from shoal.display import internal
from shoal.mechanisms.pairs.contrasts import PairCounts, group_sums, sign_products
from shoal.mechanisms.pairs.correlation import shrunk, tetrachoric
from shoal.mechanisms.pairs.currency import Currency
from shoal.mechanisms.pairs.gaps import ABSENT, Presence, of_present, presence
from shoal.mechanisms.pairs.joint import Clipped, Tails, exact_products, measure_tails
from shoal.mechanisms.pairs.marginal import Marginal
from shoal.mechanisms.pairs.plan import OF_TWO, Group, Halves, Pairs, lay_out_pairs
from shoal.mechanisms.pairs.tables import blocks_of, blocks_of_signs, pair_tables
from shoal.mechanisms.pairs.triples import Triples, exact_triples
from shoal.privacy import Accountant
from shoal.text import Message

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What is known once single attributes are measured; all of it paid for.

    Attributes:
        rows: how many are released.
        marginals: of the attributes, those that say whether another is missing last.
        flags: the numbers of these, by the number of the other.
        clipped: which products of values are measured besides, if any.
        triples: which products of three signs can be measured, if any.
        conditions: what is measured, where it follows from the noisy number of rows.
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
    """The bins of records; a missing value has the number behind the last. Private."""
    codes = [own.codes(found) for own, found in zip(marginals, positions, strict=True)]
    for number in flags:
        codes[number][positions[number] == ABSENT] = marginals[number].bins
    return codes


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What is known about pairs, without their noise.

    Attributes:
        latent: attributes with a latent normal.
        correlations: of these.
        tables: probabilities of the bins of pairs; empty where the correlations say all there is to say.
        flags: attributes that say whether another has a value.
        tails: products of values, where they are measured.
        from_signs: the tables say no more than the correlations.
    """

    latent: tuple[int, ...]
    correlations: Floats
    tables: dict[tuple[int, int], Floats]
    flags: Mapping[int, int]
    tails: Tails | None = None
    from_signs: bool = False


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Sums over the records, ready for the gate. Private.

    Attributes:
        products: of values, where they are measured.
        triples: of products of three signs, where some are measured.
    """

    counts: PairCounts
    products: Integers | None
    triples: Integers | None


def counted(positions: Sequence[Integers], known: Measured) -> Counted:
    """All sums that pairs and triples can need, of these records."""
    codes = pair_codes(known.marginals, positions, known.flags)
    return Counted(
        PairCounts(codes, known.bins),
        None if known.clipped is None else exact_products(positions, known.clipped),
        None if known.triples is None else exact_triples(codes, known.marginals, known.triples),
    )


def measure_pairs(sums: Counted, known: Measured, n: int, account: Accountant) -> Model:
    """Spend the share of pairs of n records: products of signs, then the other contrasts, group by group.

    Guarantee:
        Bins are functions of what was measured before; given them, each group costs its share.
    """
    tails = None
    if known.clipped is not None and sums.products is not None:
        tails = measure_tails(sums.products, known.clipped, known.currency, known.rows, account)
    return replace(_measure_contrasts(sums.counts, known, n, account), tails=tails)


def _measure_contrasts(counts: PairCounts, known: Measured, n: int, account: Accountant) -> Model:
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
        return Model(latent, np.eye(len(latent)), {}, flags)
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
        return Model(latent, correlations, {}, flags)

    def rows_of(a: int, b: int) -> float:
        return rows * known_gaps.of(a, b)

    blocks = blocks_of(layout.groups, sums, rows_of)
    if layout.signs:
        blocks += blocks_of_signs(products, layout.signs, layout.sign_deviation, rows_of, flags)
    tables = pair_tables(marginals, between, blocks)
    return Model(latent, correlations, tables, flags, from_signs=not layout.groups)


def _what(group: Group) -> str:
    """The measurement of a group, for the account; names have level -1."""
    partners = ", ".join(map(str, group.partners))
    return f"contrasts of attribute {group.pivot} (level {group.level}) with {partners} (level {group.depth})"


def _noisy_products(exact: Integers, layout: Pairs, currency: Currency, account: Accountant) -> Floats:
    shape = currency.sign_shape(len(layout.signs))
    spend = account.spend(OF_TWO, layout.sign_share, "products of signs")
    if shape.signs:
        return currency.measure(exact, shape, spend)
    below = np.tril_indices(len(exact), -1)
    noisy = np.zeros(exact.shape)
    noisy[below] = currency.measure(exact[below], shape, spend)
    return noisy + noisy.T


def _correlations(
    products: Floats, marginals: Sequence[Marginal], layout: Pairs, rows: float, gaps: Presence
) -> Floats:
    left = np.array([marginals[a].shares[: marginals[a].bins // 2].sum() for a in layout.signs])
    left = np.clip(left, 1e-4, 1 - 1e-4)
    density = np.exp(-(ndtri(left) ** 2) / 2) / np.sqrt(2 * np.pi)
    # fewer records are behind the products of an attribute with gaps, and noise is larger beside them
    scale = 2 * density * np.array([gaps.shares.get(a, 1.0) for a in layout.signs])
    return shrunk(tetrachoric(products, left), scale, layout.sign_deviation / rows)
