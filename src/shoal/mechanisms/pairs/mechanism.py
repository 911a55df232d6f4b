"""pairs-dp: synthetic rows from noisy marginals of single columns, pairs and triples."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.columns import Described, target_column
from shoal.errors import OptionError, closest
from shoal.mechanisms.divided import (
    check_in_strata,
    check_units,
    plan_in_strata,
    plan_units,
    run_in_strata,
    run_units,
)
from shoal.mechanisms.method import Learned, Rebuilt, ShareNoise, gap_terms, noisy_numbers, numbers_terms
from shoal.mechanisms.pairs.budget import (
    INSIDE_LEVELS,
    OF_ALL,
    OF_ONE,
    OF_ROWS,
    OF_THREE,
    OF_TWO,
    PAIR_LEVELS,
    AttributeFacts,
    Concentrated,
    ContrastGroup,
    Currency,
    Halves,
    MeasurementShape,
    OneWay,
    PairMeasurements,
    PureEpsilon,
    halves,
    lay_out_oneway,
    lay_out_pairs,
    most_groups,
)
from shoal.mechanisms.pairs.distributions import MISFIT, Answers, Fine, Zeros
from shoal.mechanisms.pairs.measure_one import (
    ABSENT,
    Histogram,
    Marginal,
    flags_of,
    measure_oneway,
    present_positions,
    with_flags,
)
from shoal.mechanisms.pairs.measure_pairs import (
    FOUND,
    LARGE,
    LARGEST,
    MIXTURE_ROUNDS,
    TOO_MUCH,
    Clipped,
    InsideBins,
    Mixture,
    Tails,
    Triple,
    Triples,
    lay_out_tails,
    lay_out_triples,
    tails_possible,
)
from shoal.mechanisms.pairs.model import (
    Agreement,
    Drawing,
    MeasuredMarginals,
    PairsModel,
    agreement,
    block_sizes,
    counted,
    draw_pair_values,
    fitted,
    measure_pairs,
    with_triples,
)
from shoal.mechanisms.rules import Bins, changes_of_rules, possible_cells
from shoal.noise import Source
from shoal.numbers import Floats, Integers
from shoal.privacy import Accountant, Measurements, Plan, RecordSum
from shoal.progress import Progress, silent
from shoal.text import Message
from shoal.workers import threaded

if TYPE_CHECKING:
    from shoal.mechanisms.pairs.method import PairsDP


_FINE = (Message("halves"), Message("quarters"), Message("eighths"), Message("sixteenths"))


# a saved model consists of these
MODEL_PARTS = (
    Answers,
    Clipped,
    Concentrated,
    ContrastGroup,
    Drawing,
    Fine,
    Halves,
    InsideBins,
    Marginal,
    MeasurementShape,
    MeasuredMarginals,
    Mixture,
    PairMeasurements,
    PairsModel,
    PureEpsilon,
    Tails,
    Triple,
    Triples,
    Zeros,
)


def outline(attributes: Sequence[AttributeFacts], layout: OneWay) -> tuple[list[int], list[int]]:
    """Maximum levels and numbers of groups of names available to pairs; rare names may still be merged.

    >>> facts = [AttributeFacts("x", 1000, True), AttributeFacts("s", 2, True), AttributeFacts("name", 5, False)]
    >>> outline(facts, OneWay((1,), (2,), (0,), 0, 0, (), (0, 0, 0), (), 0))
    ([3, 1, 0], [0, 0, 5])
    """
    levels, groups = [0] * len(attributes), [0] * len(attributes)
    most = most_groups(attributes)
    # names tell parts of bins apart, too
    deepest = PAIR_LEVELS + (INSIDE_LEVELS if most else 0)
    for number, facts in enumerate(attributes):
        if facts.many_names:
            groups[number] = most[number]
        elif number in layout.cut:
            levels[number] = min(layout.levels, deepest)
        elif facts.points > 1:
            levels[number] = min(deepest, (facts.points - 1).bit_length())
    return levels, groups


def oneway_terms(
    attributes: Sequence[AttributeFacts], layout: OneWay, currency: Currency, rows: float
) -> list[Message]:
    """Statement messages about how single attributes are measured."""
    found = []
    if layout.signs:
        noise = currency.deviation(MeasurementShape(1, len(layout.signs), 1), layout.sign_share) / (2 * rows)
        found.append(
            Message.of("shares-of-two-values", columns=_names(attributes, layout.signs), noise=noise)
        )
    if layout.counted:
        noise = currency.deviation(MeasurementShape(1, 1, 3), layout.each) / rows
        found.append(
            Message.of("shares-of-all-values", columns=_names(attributes, layout.counted), noise=noise)
        )
    if layout.heaps:
        noise = max(currency.deviation(MeasurementShape(1, 1, 3), share) for _, share in layout.heaps) / rows
        names = _names(attributes, [number for number, _ in layout.heaps])
        found.append(Message.of("shares-of-single-values", columns=names, noise=noise))
    if layout.rounds:
        noise = currency.deviation(MeasurementShape(1, len(layout.cut), 1), layout.rounds[0]) / (2 * rows)
        found.append(
            Message.of(
                "shares-below-thresholds",
                thresholds=len(layout.rounds),
                columns=_names(attributes, layout.cut),
                noise=noise,
            )
        )
    elif layout.cut:
        level = len(layout.counts) - 1
        shape = MeasurementShape(1, len(layout.cut), 1 << level)
        noise = currency.deviation(shape, layout.counts[level]) / (2 * rows)
        found.append(
            Message.of(
                "shares-of-intervals",
                intervals=2 << level,
                columns=_names(attributes, layout.cut),
                noise=noise,
            )
        )
        shape = MeasurementShape(1, len(layout.cut), 2 << level)
        found.append(
            Message.of(
                "shares-of-frequent-values",
                columns=_names(attributes, layout.cut),
                least=layout.least_frequent(currency, rows),
                noise=currency.deviation(shape, layout.frequent) / rows,
            )
        )
    return found


def pair_terms(attributes: Sequence[AttributeFacts], pairs: PairMeasurements, rows: float) -> list[Message]:
    """Statement messages about which pairs are measured, and how finely."""
    if not pairs.measured:
        return [Message("pairs-not-measured")]
    found = []
    if pairs.signs:
        number = len(pairs.signs) * (len(pairs.signs) - 1) // 2
        found.append(
            Message.of(
                "like-halves-of-pairs",
                pairs=number,
                columns=_names(attributes, pairs.signs),
                noise=pairs.sign_deviation / (2 * rows),
            )
        )
    finest = max((g for g in pairs.groups if g.level >= 0), key=lambda g: g.fineness, default=None)
    if finest is not None:
        found.append(
            Message.of(
                "finest-pairs",
                one=_FINE[finest.level],
                other=_FINE[max(finest.depth, 0)],
                noise=finest.deviation / rows,
            )
        )
    named = [g for g in pairs.groups if g.level < 0]
    if named:
        with_names = sorted({g.pivot for g in named} | {b for g in named for b in g.partners if g.depth < 0})
        noise = min(g.deviation for g in named) / rows
        found.append(Message.of("pairs-with-names", columns=_names(attributes, with_names), noise=noise))
    return found


def tail_terms(
    attributes: Sequence[AttributeFacts],
    pairs: PairMeasurements,
    currency: Currency,
    budget: Fraction,
    rows: float,
) -> list[Message]:
    """Statement messages about products of values; of which columns is known only once these are measured."""
    wide = any(attributes[number].points > 1 << PAIR_LEVELS for number in pairs.signs)
    if not wide or not tails_possible(currency, len(pairs.signs), budget, rows):
        return []
    return [Message.of("products-of-values", limit=TOO_MUCH)]


def triple_terms(
    attributes: Sequence[AttributeFacts], triples: Triples | None, asked: bool | None, rows: float
) -> list[Message]:
    """Statement messages about the triples, and larger sets, that can be measured."""
    if asked is False:
        return []
    if triples is None and asked:
        return [Message.of("triples-not-measured", least=FOUND / 2)]
    if triples is None:
        return [Message("no-set-measured")] if len(_multiplied(attributes)) > 2 else []
    number, noise = triples.rounds, triples.deviation / (2 * rows)
    code = "all-triples" if not triples.choice else "one-triple" if number == 1 else "triples-chosen"
    found = Message.of(
        code,
        triples=number,
        columns=_names(attributes, triples.columns),
        largest=triples.largest,
        noise=noise,
        followed=LARGE / 2,
    )
    if triples.largest < min(LARGEST, len(triples.columns)):
        return [found, Message.of("larger-sets-not-measured", largest=triples.largest)]
    return [found]


def _names(attributes: Sequence[AttributeFacts], numbers: Sequence[int]) -> tuple[str | Message, ...]:
    """Their names, or their number if there are many."""
    if len(numbers) > 6:
        return (Message.of("so-many-columns", count=len(numbers)),)
    return tuple(attributes[number].name for number in numbers)


# Maximum error of a distribution function after a few noisy answers.
_AT_WORST = 0.25
# Thresholds are answers about a curve with this many free parameters.
_CURVE = 4
# Halves are not exactly those of the medians: this part of the uncertainty about either column separately. It would be
# 0
# if two columns are symmetric about their medians, and 1 if one determines the other there. An estimate near the
# former,
# chosen on synthetic people and on normal, skewed, uniform and bimodal columns of seeds from 1000 and 2000 on.
_HALVES = 1 / 64
# Rows drawn as latent normals have their correlations exactly. What that leaves to chance for equal halves: the product
# of two signs has a correlation of 2/π with that of their normals, where these are independent.
_BY_CHANCE = 1 - (2 / math.pi) ** 2
# The mean distance of a normal number from its mean, in standard deviations.
_MEAN_DISTANCE = math.sqrt(2 / math.pi)


def noise_alone(
    attributes: Sequence[AttributeFacts], layout: OneWay, currency: Currency, rows: float
) -> dict[str, float]:
    """By attribute: noise on the share of rows below a threshold, averaged over thresholds, or with one name.

    A contrast of a node changes the distribution function by half of it at the node's cut and by nothing at its ends,
    linearly: over all thresholds that is a twelfth of its variance. Counted values change the function as a random walk
    tied at both ends.
    """
    found: dict[str, float] = {}
    for number, facts in enumerate(attributes):
        if number in layout.signs:
            noise = currency.deviation(MeasurementShape(1, len(layout.signs), 1), layout.sign_share) / 2
        elif number in layout.counted:
            noise = currency.deviation(MeasurementShape(1, 1, facts.points), layout.each)
            if facts.ordered:
                noise *= math.sqrt((facts.points + 1) / 6)
        elif layout.rounds and number in layout.cut:
            answer = currency.deviation(MeasurementShape(1, len(layout.cut), 1), layout.rounds[0]) / 2
            noise = math.hypot(answer * math.sqrt(_CURVE / len(layout.rounds)), _between(layout) * rows)
        elif number in layout.cut:
            levels = (
                currency.deviation(MeasurementShape(1, len(layout.cut), 1 << level), share)
                for level, share in enumerate(layout.counts)
            )
            noise = math.sqrt(sum(one**2 for one in levels) / 12)
        else:
            noise = 0.0
        found[facts.name] = _bounded(noise / rows)
    return found


def noise_of_pairs(
    attributes: Sequence[AttributeFacts],
    layout: OneWay,
    alone: Mapping[str, float],
    pairs: PairMeasurements,
    rows: float,
) -> dict[tuple[str, str], float]:
    """By pair: noise on the share of rows in equal halves of both, or with a name instead of a half.

    A product of signs is +1 in equal halves and -1 in others, so the share changes by half of its noise. Repeated
    measurements are combined.
    """
    precision: dict[tuple[int, int], float] = {}

    def measured(a: int, b: int, noise: float) -> None:
        pair = (min(a, b), max(a, b))
        precision[pair] = precision.get(pair, 0.0) + noise**-2

    for place, a in enumerate(pairs.signs):
        for b in pairs.signs[:place]:
            measured(a, b, pairs.sign_deviation / 2)
    for group in pairs.groups:
        if group.level <= 0 and group.depth <= 0:
            for b, deviation in zip(group.partners, group.deviations, strict=True):
                measured(group.pivot, b, deviation * _part(group))
    # in any case: rows are drawn, and halves are not those of the medians
    bin_share = 2.0 ** -min(layout.levels, PAIR_LEVELS)

    def unsettled(noise: float) -> float:
        # with tables of bins, the rows between a median and the nearest cut; with bisection, up to the uncertainty
        apart = min(bin_share, _MEAN_DISTANCE * noise) if layout.rounds else bin_share
        return _HALVES * noise**2 + (apart / (4 * rows) if pairs.groups else 0.0)

    by_chance = 0.0 if pairs.groups else _BY_CHANCE / (4 * rows)
    found: dict[tuple[str, str], float] = {}
    for pair, known in sorted(precision.items()):
        first, second = (attributes[number].name for number in pair)
        variance = 1 / known / rows**2 + by_chance
        cut = [alone[attributes[number].name] for number in pair if number in layout.cut]
        variance += sum(map(unsettled, cut))
        if len(cut) == 2:
            # cuts that miss both medians by p and q: 2pq more rows are in equal halves, for independent columns
            variance += 4 * (cut[0] * cut[1]) ** 2
        found[first, second] = _bounded(math.sqrt(variance))
    return found


def _between(layout: OneWay) -> float:
    """Average distance of a distribution function from the curve through its thresholds.

    A curve misses it by about `MISFIT` in the middle. As a walk tied at the ends and at thresholds, it has two
    thirds of that variance on average, divided by the number of intervals between thresholds.
    """
    return MISFIT * math.sqrt(2 / 3 / (len(layout.rounds) + 1))


def _part(group: ContrastGroup) -> float:
    """The part of a contrast's noise in a share: all of it if two names are counted."""
    return 1.0 if group.level < 0 and group.depth < 0 else 0.5


def _bounded(noise: float) -> float:
    return noise * _AT_WORST / math.hypot(noise, _AT_WORST)


# Above this noise on the number of rows, the table could fill the memory.
_MOST_ROWS_NOISE = 100_000
# Noise beyond this cannot be drawn.
_LARGEST_NOISE = 1 << 50
# Rounds of model fitting in a trial, and number of repetitions.
_ROUNDS_TRIED, _TRIES = 8, 3


def plan(method: PairsDP, described: Described) -> Plan:
    """Split the budget among the number of rows, single attributes and pairs, from public facts."""
    if method.strata:
        return plan_in_strata(method, described)
    if method.unit_columns is not None:
        return plan_units(method, described)
    attributes = _facts(described)
    budget = _budget(method)
    counting = _rows_share(method, budget)
    budget -= counting
    spending = {} if not counting else {OF_ROWS: counting}
    rows = _public_rows(method, described)
    shares = dict.fromkeys(described.columns, budget / len(described.columns))
    if rows is None:
        spending[OF_ALL] = budget
        said = (Message("measured-by-noisy-rows"), *gap_terms(described), *numbers_terms(described))
        return Plan(spending, shares, said, {})
    laid_out = _lay_out(method, described, rows, budget)
    spending |= _reserved(laid_out.shared, laid_out.triples)
    condition = Message.of("measured-by-rows", rows=rows)
    flags = flags_of(attributes)
    costs = {}
    for number, column in enumerate(described.columns):
        both = (number, flags[number]) if number in flags else (number,)
        paired = laid_out.beyond_one * any(attributes[a].points > 1 for a in both)
        costs[column] = laid_out.oneway.cost(*both) + paired
    conditions = (condition, *laid_out.terms(rows), *gap_terms(described), *numbers_terms(described))
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
    """The measurement plan for a number of rows, as far as it is known in advance.

    Attributes:
        asked: whether triples are requested; they may still be hopeless. None if that is left to Shoal.
    """

    currency: Currency
    attributes: tuple[AttributeFacts, ...]
    shared: Halves
    oneway: OneWay
    pairs: PairMeasurements
    triples: Triples | None
    asked: bool | None

    @property
    def beyond_one(self) -> Fraction:
        """The cost of everything except single attributes."""
        return self.shared.pairs + (Fraction(0) if self.triples is None else self.triples.share)

    def terms(self, rows: float) -> tuple[Message, ...]:
        return (
            *oneway_terms(self.attributes, self.oneway, self.currency, rows),
            *pair_terms(self.attributes, self.pairs, rows),
            *(triple_terms(self.attributes, self.triples, self.asked, rows) if self.pairs.measured else ()),
            *tail_terms(self.attributes, self.pairs, self.currency, self.shared.pairs, rows),
        )


def _lay_out(method: PairsDP, described: Described, rows: float, budget: Fraction) -> _LaidOut:
    """Plan the budget that remains after the number of rows."""
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
    method: PairsDP, attributes: Sequence[AttributeFacts], budget: Fraction, rows: float, target: int | None
) -> tuple[Halves, Triples | None]:
    """Shares of single attributes and pairs, and the part of the pair budget used for triples, if any.

    Attributes that can be missing are excluded from triples, and so are nominal ones with more than two names.
    """
    currency = _currency(method)
    shared = halves(currency, attributes, budget, rows, target)
    if method.triples is False or shared.only_target:
        return shared, None
    triples = lay_out_triples(
        currency, _multiplied(attributes), shared.pairs, rows, asked=bool(method.triples)
    )
    if triples is not None:
        shared = replace(shared, pairs=shared.pairs - triples.share)
    return shared, triples


def _multiplied(attributes: Sequence[AttributeFacts]) -> list[int]:
    """The attributes whose signs can be multiplied in triples."""
    gaps = {number for pair in flags_of(attributes).items() for number in pair}
    return [
        number
        for number, facts in enumerate(attributes)
        if facts.points > 1 and not facts.many_names and number not in gaps
    ]


def share_noise(method: PairsDP, described: Described) -> ShareNoise:
    """The expected noise on shares of the rows, from public facts and the number of rows.

    Missing-value flags are not columns and are not reported.
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


def rows_noise(method: PairsDP) -> float:
    """The standard deviation of the noise on a private number of rows, 0 for a public one."""
    share = _rows_share(method, _budget(method))
    return _currency(method).deviation(MeasurementShape(1, 1, 1), share) if share else 0.0


def check(method: PairsDP, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise, for any drawn number of rows.

    Deep levels and pairs are measured only if their noise is below the number of rows, so the noise of single
    attributes is the largest possible.
    """
    if method.strata:
        check_in_strata(method, described)
        return
    if method.unit_columns is not None:
        check_units(method, described)
        return
    currency, number = _currency(method), len(_facts(described))
    budget = _budget(method)
    least = budget * currency.oneway_counted / number / 20
    if currency.deviation(MeasurementShape(1, number, 1), least) > _LARGEST_NOISE:
        raise OptionError(
            "epsilon-too-small-columns-noise-would",
            budget=float(method.unit_epsilon or method.budget),
            number_of_columns=len(described.columns),
        )
    noise = rows_noise(method)
    if noise > _MOST_ROWS_NOISE:
        raise OptionError(
            "epsilon-too-small-draw-number-rows",
            budget=float(method.unit_epsilon or method.budget),
            noise=noise,
        )


def run(
    method: PairsDP,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Measure attributes and pairs, fit one model to the measurements, draw rows from it.

    Guarantee:
        ε-DP of the original records, (ε, δ)-DP with a δ, by adaptive composition of the measurements:
        docs/proofs/trees.md#pairs.

    Cost:
        A sort per attribute and one pass over the records per pair of attributes; then, independent of the
        records, rows · attributes² · bins.
    """
    if method.strata:
        return run_in_strata(method, described, account, progress)
    if method.unit_columns is not None:
        return run_units(method, described, account, progress)
    learned = learn(method, described, plan, account, progress)
    source = account.free("rows from noisy sums")
    found: list[Agreement] = []
    values = _drawn(learned.model, described, source, progress, found)
    made = learned.rebuilt(values)
    if not found:
        return made
    return replace(made, internal={**made.internal, "rows_and_measurements": found[0].facts()})


def learn(
    method: PairsDP, described: Described, plan: Plan, account: Accountant, progress: Progress
) -> Learned:
    """Measure attributes and pairs, and fit one model to the measurements; the guarantee and cost of `run`."""
    return _learn(method, described, account, progress, fitted)


def draw(
    method: PairsDP,
    learned: Learned,
    described: Described,
    rows: int,
    source: Source,
    progress: Progress,
) -> dict[str, Floats]:
    """Rows drawn from a model, unrounded; post-processing."""
    drawing: Drawing = learned.model
    return _drawn(replace(drawing, known=replace(drawing.known, rows=rows)), described, source, progress, [])


def _drawn(
    drawing: Drawing, described: Described, source: Source, progress: Progress, found: list[Agreement]
) -> dict[str, Floats]:
    """Rows block by block, in threads; `found` receives how the first block agrees with the measurements."""
    steps, drawn, seen = len(_facts(described)) + 3, [], _comparing(drawing, described, found)

    def draw_block(number: int) -> dict[str, Floats]:
        return draw_pair_values(drawing, described, number, source, None if number else seen)

    for block in threaded(draw_block, range(len(block_sizes(drawing.known.rows)))):
        drawn.append(block)
        progress("drawing rows", steps, steps)
    return {column: np.concatenate([one[column] for one in drawn]) for column in drawn[0]}


def _comparing(
    drawing: Drawing, described: Described, found: list[Agreement]
) -> Callable[[Sequence[Floats]], None]:
    """A function that adds to `found` how rows agree with the measurements."""
    names = [facts.name for facts in _facts(described)]

    def seen(placed: Sequence[Floats]) -> None:
        one = agreement(placed, drawing.known, drawing.model, names)
        found.extend([] if one is None else [one])

    return seen


def compared(drawing: Drawing, described: Described, source: Source) -> dict[str, Any]:
    """For the internal log, where rows are drawn in other processes: their first block, drawn here once more."""
    found: list[Agreement] = []
    draw_pair_values(drawing, described, 0, source, _comparing(drawing, described, found))
    return {"rows_and_measurements": found[0].facts()} if found else {}


def trial(method: PairsDP, described: Described, plan: Plan, account: Accountant) -> tuple[Rebuilt, float]:
    """A run that fits its model in a few rounds, and the processor seconds of the omitted rounds."""
    if method.strata or method.unit_columns is not None:
        return run(method, described, plan, account, silent), 0.0
    left_out = 0.0

    def in_part(model: PairsModel, known: MeasuredMarginals, source: Source) -> Mixture | None:
        nonlocal left_out
        taken = []
        # linear algebra threads waiting for each other on a busy machine are not work: the shortest time counts
        for _ in range(_TRIES):
            started = time.process_time()
            made = fitted(model, known, source, _ROUNDS_TRIED)
            taken.append(time.process_time() - started)
        left_out = min(taken) * MIXTURE_ROUNDS / _ROUNDS_TRIED - sum(taken)
        return made

    learned = _learn(method, described, account, silent, in_part)
    source = account.free("rows from noisy sums")
    return learned.rebuilt(draw(method, learned, described, learned.rows, source, silent)), left_out


def _learn(
    method: PairsDP,
    described: Described,
    account: Accountant,
    progress: Progress,
    fitted: Callable[[PairsModel, MeasuredMarginals, Source], Mixture | None],
) -> Learned:
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
    internal = {"values_clipped": clipped, "rows_released": known.rows, "clusters": []}
    numbers = pair_numbers(described, known, account)
    # conditions are part of the statement
    drawing = replace(drawing, known=replace(drawing.known, conditions=()))
    return Learned(drawing, known.rows, internal, known.conditions, numbers)


def pair_numbers(described: Described, known: MeasuredMarginals, account: Accountant) -> Measurements | None:
    """The noisy numbers of a run, which may be published."""
    bins = [
        {"group": own.groups}
        if own.groups is not None
        else {"edges": own.finer if level > own.levels else own.edges, "levels": level}
        for own, level in zip(known.marginals, known.levels, strict=True)
    ]
    return noisy_numbers(described, account, known.rows, described.flagged, bins)


def pair_positions(described: Described) -> tuple[list[Integers], dict[str, int]]:
    """Positions of all attributes, missing-value flags last, and the number of clipped values."""
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
) -> MeasuredMarginals:
    """The number of rows, and every attribute separately, for the records that have a value."""
    currency, attributes = _currency(method), _facts(described)
    public, budget = _public_rows(method, described), _budget(method)
    rows = public
    if rows is None:
        share = _rows_share(method, budget)
        budget -= share
        noisy = currency.measure(
            np.array([described.n]),
            MeasurementShape(1, 1, 1),
            account.spend(OF_ROWS, share),
            RecordSum("rows"),
        )
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
    zeros = zeros_of(described, marginals, flags)
    return MeasuredMarginals(
        rows, currency, shared, target, tuple(marginals), flags, clipped, triples, conditions, zeros
    )


def zeros_of(described: Described, marginals: Sequence[Marginal], flags: Mapping[int, int]) -> Zeros | None:
    """What rules of two columns say about the bins of these; None if they say nothing.

    Guarantee:
        A function of measured bins and of public rules.
    """

    def bins(own: Sequence[Marginal]) -> list[Bins]:
        return [Bins(one.edges, one.groups, flags.get(number)) for number, one in enumerate(own)]

    changes = changes_of_rules(described, bins(marginals))
    drawn = tuple(own.split(changes[a]) if a in changes else own for a, own in enumerate(marginals))
    cells, drawn_cells = possible_cells(described, bins(marginals)), possible_cells(described, bins(drawn))
    return Zeros(drawn, cells, drawn_cells) if drawn_cells else None


def told(method: PairsDP, described: Described, rows: int) -> tuple[Message, ...]:
    """What is measured, if it follows from the noisy number of rows, which are released."""
    # a public number of rows has been stated already
    if _public_rows(method, described) is not None:
        return ()
    budget = _budget(method)
    return _lay_out(method, described, rows, budget - _rows_share(method, budget)).terms(rows)


def _currency(method: PairsDP) -> Currency:
    factor = 1 if method.adjacency.hides_size else 2
    return PureEpsilon(factor) if method.pure else Concentrated(factor)


def _budget(method: PairsDP) -> Fraction:
    """The available budget: ε, or ρ if there is a δ."""
    rho = method.rho
    return method.budget if rho is None else rho


def _rows_share(method: PairsDP, budget: Fraction) -> Fraction:
    """The cost of the number of rows: zero if it is public or declared."""
    noisy = method.adjacency.hides_size and method.rows is None
    return budget * _currency(method).rows if noisy else Fraction(0)


def _target(method: PairsDP, described: Described) -> int | None:
    """The index of the prediction target."""
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
    """The number of rows to release, if it is public or declared."""
    return method.rows if method.adjacency.hides_size else described.n


def _facts(described: Described) -> tuple[AttributeFacts, ...]:
    found = []
    for column in described.columns:
        tree = described.tree(column)
        lattice = described.lattices[column]
        points = lattice.steps + 1 if tree is None else len(tree.domain)
        declared = np.array([float(spike) for spike in described.attribute(column).spikes])
        spikes = tuple(np.unique(lattice.positions(declared)).tolist())
        found.append(AttributeFacts(column, points, tree is None, spikes=spikes))
    return with_flags(found, described.flagged)
