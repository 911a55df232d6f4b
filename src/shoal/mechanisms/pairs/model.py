"""The model of pairs-dp: consistent tables and correlations fitted to the noisy measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.mechanisms.pairs._kernels import (
    draw_rows,
    exchange,
    place_latent,
    polish,
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
    Fine,
    Zeros,
    drawn_tables,
    shrunk,
    tetrachoric,
)
from shoal.mechanisms.pairs.measure_one import ABSENT, Marginal
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
    group_sums,
    inside_order,
    measure_tails,
    measure_triples,
    predicted,
    sign_products,
    to_follow,
)
from shoal.mechanisms.pairs.tables import (
    ContrastBlock,
    Pair,
    Presence,
    blocks_of,
    blocks_of_signs,
    inside_bins,
    of_parts,
    of_present,
    pair_tables,
    presence,
)
from shoal.mechanisms.rules import keeping_rules
from shoal.mechanisms.tree.intervals import whole_counts
from shoal.noise import Source
from shoal.numbers import Floats, Integers
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
