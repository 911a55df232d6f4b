"""Pairs over private trees: a described table comes in, rows that agree with noisy contrasts of all pairs leave."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns.attribute import target_column
from shoal.columns.describe import Described
from shoal.errors import OptionError, closest
from shoal.mechanisms.base import Rebuilt, gap_terms
from shoal.mechanisms.histogram import Histogram
from shoal.mechanisms.method import ShareNoise
from shoal.mechanisms.pairs.currency import Concentrated, Currency, PureEpsilon, Shape
from shoal.mechanisms.pairs.drawing import draw_values, fitted, with_triples
from shoal.mechanisms.pairs.expected import noise_alone, noise_of_pairs
from shoal.mechanisms.pairs.gaps import ABSENT, flags_of, present_positions, with_flags
from shoal.mechanisms.pairs.joint import lay_out_tails
from shoal.mechanisms.pairs.mixture import ROUNDS, Mixture
from shoal.mechanisms.pairs.model import Measured, Model, counted, measure_pairs
from shoal.mechanisms.pairs.oneway import measure_oneway
from shoal.mechanisms.pairs.plan import (
    OF_ALL,
    OF_ONE,
    OF_ROWS,
    OF_THREE,
    OF_TWO,
    Facts,
    Halves,
    OneWay,
    Pairs,
    halves,
    lay_out_oneway,
    lay_out_pairs,
)
from shoal.mechanisms.pairs.rows import block_sizes
from shoal.mechanisms.pairs.triples import Triples, lay_out_triples
from shoal.mechanisms.pairs.words import oneway_terms, outline, pair_terms, tail_terms, triple_terms
from shoal.noise import Source
from shoal.privacy import Accountant
from shoal.privacy.budget import Plan
from shoal.progress import Progress, silent
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.mechanisms.pairs.method import PairsDP

Integers = NDArray[np.int64]

# More noise on the number of rows than this, and a table could come out that fills the memory.
_MOST_ROWS_NOISE = 100_000
# Noise beyond this cannot be drawn.
_LARGEST_NOISE = 1 << 50
# Rounds of fitting the model that a trial goes through, and how often.
_ROUNDS_TRIED, _TRIES = 8, 3


def plan(method: PairsDP, described: Described) -> Plan:
    """Share the budget over the number of rows, single attributes and pairs, from public facts."""
    attributes = _facts(described)
    budget = _budget(method)
    counting = _rows_share(method, budget)
    budget -= counting
    spending = {} if not counting else {OF_ROWS: counting}
    rows = _public_rows(method, described)
    shares = dict.fromkeys(described.columns, budget / len(described.columns))
    if rows is None:
        spending[OF_ALL] = budget
        return Plan(spending, shares, (Message("measured-by-noisy-rows"), *gap_terms(described)), {})
    laid_out = _lay_out(method, described, rows, budget)
    spending |= _reserved(laid_out.shared, laid_out.triples)
    condition = Message.of("measured-by-rows", rows=rows)
    flags = flags_of(attributes)
    costs = {}
    for number, column in enumerate(described.columns):
        both = (number, flags[number]) if number in flags else (number,)
        paired = laid_out.beyond_one * any(attributes[a].points > 1 for a in both)
        costs[column] = laid_out.oneway.cost(*both) + paired
    conditions = (condition, *laid_out.terms(rows), *gap_terms(described))
    return Plan(spending, shares, conditions, {} if method.adjacency.hides_size else costs)


def _reserved(shared: Halves, triples: Triples | None) -> dict[str, Fraction]:
    """The shares by purpose, once the number of rows is known."""
    found = {OF_ONE: shared.oneway}
    if shared.pairs:
        found[OF_TWO] = shared.pairs
    if triples is not None:
        found[OF_THREE] = triples.share
    return found


@dataclass(frozen=True, slots=True)
class _LaidOut:
    """All that is measured for a number of rows, as far as it is known before any of it is.

    Attributes:
        asked: whether triples are wanted; they may be hopeless all the same.
    """

    currency: Currency
    attributes: tuple[Facts, ...]
    shared: Halves
    oneway: OneWay
    pairs: Pairs
    triples: Triples | None
    asked: bool

    @property
    def beyond_one(self) -> Fraction:
        """What all but single attributes costs."""
        return self.shared.pairs + (Fraction(0) if self.triples is None else self.triples.share)

    def terms(self, rows: float) -> tuple[Message, ...]:
        return (
            *oneway_terms(self.attributes, self.oneway, self.currency, rows),
            *pair_terms(self.attributes, self.pairs, rows),
            *triple_terms(self.attributes, self.triples, self.asked, rows),
            *tail_terms(self.attributes, self.pairs, self.currency, self.shared.pairs, rows),
        )


def _lay_out(method: PairsDP, described: Described, rows: float, budget: Fraction) -> _LaidOut:
    """What a budget without the share of the number of rows is spent on."""
    currency, attributes, target = _currency(method), _facts(described), _target(method, described)
    shared, triples = _shared(method, attributes, budget, rows, target)
    oneway = lay_out_oneway(currency, attributes, shared.oneway, rows)
    pairs = lay_out_pairs(
        currency,
        *outline(attributes, oneway),
        shared.pairs,
        rows,
        target,
        only_target=shared.only_target,
        flags=flags_of(attributes),
    )
    return _LaidOut(currency, attributes, shared, oneway, pairs, triples, method.triples)


def _shared(
    method: PairsDP, attributes: Sequence[Facts], budget: Fraction, rows: float, target: int | None
) -> tuple[Halves, Triples | None]:
    """Shares of single attributes and pairs, and what is taken from the pairs for triples, if any are wanted.

    Attributes that can be missing take no part in triples, and neither do names of which there are more than two.
    """
    currency = _currency(method)
    shared = halves(currency, attributes, budget, rows, target)
    if not method.triples or shared.only_target:
        return shared, None
    gaps = {number for pair in flags_of(attributes).items() for number in pair}
    columns = [
        number
        for number, facts in enumerate(attributes)
        if facts.points > 1 and not facts.many_names and number not in gaps
    ]
    triples = lay_out_triples(currency, columns, shared.pairs, rows)
    if triples is not None:
        shared = replace(shared, pairs=shared.pairs - triples.share)
    return shared, triples


def share_noise(method: PairsDP, described: Described) -> ShareNoise:
    """The noise to expect on shares of the rows, from public facts and the number of rows.

    Whether a value is missing is no column, and nothing is told of it.
    """
    rows = _public_rows(method, described) or max(described.n, 1)
    budget = _budget(method)
    found = _lay_out(method, described, rows, budget - _rows_share(method, budget))
    alone = noise_alone(found.attributes, found.oneway, found.currency, rows)
    pairs = noise_of_pairs(found.attributes, found.oneway, alone, found.pairs, rows)
    return ShareNoise(
        {column: alone[column] for column in described.columns},
        {pair: noise for pair, noise in pairs.items() if set(pair) <= set(described.columns)},
    )


def check(method: PairsDP, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise, whatever number of rows is drawn.

    Deep levels and pairs are measured only where their noise is below the number of rows, so the noise of single
    attributes is the largest there can be.
    """
    currency, number = _currency(method), len(_facts(described))
    budget = _budget(method)
    least = budget * currency.oneway / number / 10
    if currency.deviation(Shape(1, number, 1), least) > _LARGEST_NOISE:
        raise OptionError(
            "epsilon-too-small-columns-noise-would",
            budget=float(method.budget),
            number_of_columns=len(described.columns),
        )
    share = _rows_share(method, budget)
    noise = currency.deviation(Shape(1, 1, 1), share) if share else 0.0
    if noise > _MOST_ROWS_NOISE:
        raise OptionError("epsilon-too-small-draw-number-rows", budget=float(method.budget), noise=noise)


def run(
    method: PairsDP,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Measure attributes and pairs, make one model of what was measured, draw rows from it.

    Guarantee:
        ε-DP of the original records, (ε, δ)-DP with a δ, by adaptive composition of the measurements:
        docs/proofs/pairs.md.

    Cost:
        A sort per attribute and one pass over the records per pair of attributes; then, whatever the records,
        rows · attributes² · bins.
    """
    return _run(method, described, account, progress, fitted)


def trial(method: PairsDP, described: Described, plan: Plan, account: Accountant) -> tuple[Rebuilt, float]:
    """A run that fits its model in a few rounds, and the processor seconds of those left out."""
    left_out = 0.0

    def in_part(model: Model, known: Measured, source: Source) -> Mixture | None:
        nonlocal left_out
        taken = []
        # threads of linear algebra that wait for each other on a busy machine are no work: the shortest counts
        for _ in range(_TRIES):
            started = time.process_time()
            made = fitted(model, known, source, _ROUNDS_TRIED)
            taken.append(time.process_time() - started)
        left_out = min(taken) * ROUNDS / _ROUNDS_TRIED - sum(taken)
        return made

    return _run(method, described, account, silent, in_part), left_out


def _run(
    method: PairsDP,
    described: Described,
    account: Accountant,
    progress: Progress,
    fitted: Callable[[Model, Measured, Source], Mixture | None],
) -> Rebuilt:
    attributes = _facts(described)
    steps = len(attributes) + 3
    flags = flags_of(attributes)
    positions, clipped = pair_positions(described)
    found = [Histogram(own) for own in present_positions(positions, flags)]
    known = measure_attributes(method, described, found, account)
    progress("measuring attributes", 1, steps)
    sums = counted(positions, known)
    model = measure_pairs(sums, known, described.n, account)
    progress("measuring pairs", 2, steps)
    made = fitted(model, known, account.free("a model of pairs"))
    drawing = with_triples(made, model, known, sums, account)
    source, drawn = account.free("rows from noisy sums"), []
    for number in range(len(block_sizes(known.rows))):
        drawn.append(draw_values(drawing, described, number, source))
        progress("drawing rows", steps, steps)
    values = {column: np.concatenate([one[column] for one in drawn]) for column in described.columns}
    internal = {"values_clipped": clipped, "rows_released": known.rows, "clusters": []}
    return Rebuilt(values, [], aligned=False, internal=internal, conditions=known.conditions)


def pair_positions(described: Described) -> tuple[list[Integers], dict[str, int]]:
    """Positions of all attributes, those that say whether another is missing last, and how many values were clipped."""
    positions: list[Integers] = []
    clipped: dict[str, int] = {}
    flags = flags_of(_facts(described))
    for number, column in enumerate(described.columns):
        found, clipped[column] = described.positions(column)
        positions.append(np.where(described.absent(column), ABSENT, found) if number in flags else found)
    positions += [(positions[number] == ABSENT).astype(np.int64) for number in flags]
    return positions, clipped


def measure_attributes(
    method: PairsDP, described: Described, positions: Sequence[Histogram], account: Accountant
) -> Measured:
    """The number of rows, and every attribute by itself, of the records that have a value."""
    currency, attributes = _currency(method), _facts(described)
    public, budget = _public_rows(method, described), _budget(method)
    rows = public
    if rows is None:
        share = _rows_share(method, budget)
        budget -= share
        noisy = currency.measure(np.array([described.n]), Shape(1, 1, 1), account.spend(OF_ROWS, share))
        rows = max(int(noisy[0]), 1)
    target = _target(method, described)
    shared, triples = _shared(method, attributes, budget, rows, target)
    if public is None:
        account.divide(OF_ALL, _reserved(shared, triples))
    layout = lay_out_oneway(currency, attributes, shared.oneway, rows)
    trees = [described.tree(column) for column in described.columns]
    marginals = measure_oneway(positions, attributes, trees, layout, currency, rows, account)
    flags, conditions = flags_of(attributes), told(method, described, rows)
    clipped = lay_out_tails(marginals, flags, currency, shared.pairs, rows)
    if clipped is not None:
        shared = replace(shared, pairs=shared.pairs - clipped.share)
    return Measured(rows, currency, shared, target, tuple(marginals), flags, clipped, triples, conditions)


def told(method: PairsDP, described: Described, rows: int) -> tuple[Message, ...]:
    """What is measured, where it follows from the noisy number of rows: as many are released."""
    # a number of rows that was public has had its words before
    if _public_rows(method, described) is not None:
        return ()
    budget = _budget(method)
    return _lay_out(method, described, rows, budget - _rows_share(method, budget)).terms(rows)


def _currency(method: PairsDP) -> Currency:
    factor = 1 if method.adjacency.hides_size else 2
    return PureEpsilon(factor) if method.pure else Concentrated(factor)


def _budget(method: PairsDP) -> Fraction:
    """What may be spent: ε, or ρ where there is a δ."""
    rho = method.rho
    return method.budget if rho is None else rho


def _rows_share(method: PairsDP, budget: Fraction) -> Fraction:
    """What the number of rows costs: nothing where it is public or declared."""
    noisy = method.adjacency.hides_size and method.rows is None
    return budget * _currency(method).rows if noisy else Fraction(0)


def _target(method: PairsDP, described: Described) -> int | None:
    """The number of the attribute to predict."""
    if method.target is None:
        return None
    column = target_column(method.target, described.columns)
    if column not in described.columns:
        raise OptionError(
            "target-names-column-not-released",
            column=column,
            option="target",
            hint=closest(column, described.columns),
        )
    return described.columns.index(column)


def _public_rows(method: PairsDP, described: Described) -> int | None:
    """The number of rows to release, where it is known without looking: public, or declared."""
    return method.rows if method.adjacency.hides_size else described.n


def _facts(described: Described) -> tuple[Facts, ...]:
    found = []
    for column in described.columns:
        tree = described.tree(column)
        points = described.lattices[column].steps + 1 if tree is None else len(tree.domain)
        found.append(Facts(column, points, tree is None))
    return with_flags(found, described.flagged)
