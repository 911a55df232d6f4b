"""Private choices: the exponential mechanism, centroids of nominal values, randomised response and its matrices.

The score of a concept is its marginality in the cluster: a sum of distances in integer units, rounded once. Its
sensitivity to one record is an integer determined by the public tree alone. The choice among concepts only needs
exact coins of probability exp(-x) with rational x, so no probability is a floating-point number.

An interval of `length` equally good candidates with `penalty` p has weight length · exp(-rate · p). The choice inverts
the cumulative weights at one uniform real number. Floating-point sums with a proven error bound decide almost every
draw; the others are decided in integers, with as many digits as needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arguments import renamed_arguments
from shoal.display import internal
from shoal.errors import InputError, OptionError, closest
from shoal.noise.entropy import Source
from shoal.noise.exact import LARGEST_NUMERATOR, bernoulli_exp, exp_fixed, round_up_scale, settle, shown
from shoal.numbers import Integers
from shoal.taxonomy import (
    Taxonomy,
    histogram_blocks,
    marginality_sums,
    nearest_and_farthest,
    whole_table,
)

Neighbours = Literal["replace-one", "add-remove"]
Rule = Literal["permute-and-flip", "exponential"]

# Units of a distance: 2^-30, so that the scores of 2^32 records stay below 2^62.
_FINEST_BITS = 30
_MOST_RECORDS = 1 << 32
# With fewer bits than these ε is so small that a choice is indistinguishable from a uniform one.
_FEWEST_BITS = 4
# Number of proposals drawn at once for each cluster without an accepted one.
_TRIES = 16
# Penalties this far (in units of 1/rate) above the smallest weigh less than 2^-128 of the best candidate each.
_FAR = 89
_TABLE_BITS = 128
_LOW = 256
# Numbers of weights that are added at once.
_PART = 1 << 10
# Rounding of a product of two table entries and a length, against the sum of all weights.
_PRODUCT_SLACK = 8


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """How concepts are scored, and the scale of relevant differences: public, independent of the records.

    Attributes:
        table: distances by counts of ancestors, in integer units.
        sensitivity: maximum change of the difference of two candidates' scores by one record, in units.
        scale: units of score per unit of exponent, at least sensitivity / ε; None where the choice is uniform.
    """

    table: NDArray[np.int64]
    sensitivity: int
    scale: Fraction | None


@renamed_arguments(neighbours="adjacency")
def categorical_centroids(
    labels: ArrayLike,
    codes: ArrayLike,
    clusters: int,
    taxonomy: Taxonomy,
    epsilon: Fraction,
    source: Source,
    *,
    generalise: bool = True,
    adjacency: Neighbours = "replace-one",
    rule: Rule = "permute-and-flip",
    counts: Integers | None = None,
) -> Integers:
    """One concept for each cluster; less marginal concepts are more likely.

    Args:
        labels: cluster of each record, 0 .. clusters - 1.
        codes: value of each record, a code of the taxonomy's domain.
        clusters: number of clusters; an empty one gets a uniform choice.
        taxonomy: the public tree of the attribute's domain.
        epsilon: the privacy loss of one cluster when one of its records changes.
        source: source of the bits.
        generalise: allow any concept, not only values of the domain.
        adjacency: a change replaces a record of the cluster, or adds or removes one.
        rule: `permute-and-flip`, or `exponential`, the mechanism of the thesis, which is never better.
        counts: number of records each label and code stand for; one each by default.

    Raises:
        InputError: a code outside the domain, or a label outside the clusters.
        OptionError: ε not above 0, or an unknown rule or adjacency.

    Guarantee:
        When one record of a cluster changes, each outcome's probability changes by a factor within e^±ε, exactly.
        A record that affects several clusters costs ε for each of them.

    Cost:
        Time clusters · concepts · levels², and one coin per cluster and candidate; memory in blocks.

    Reference:
        The thesis, Algorithm 6.3; McKenna and Sheldon, "Permute-and-Flip: A New Mechanism for Differentially Private
        Selection"; docs/proofs/noise.md#categorical.

    >>> from shoal.noise.entropy import Seeded
    >>> tree = Taxonomy.flat(["a", "b"])
    >>> values = tree.encode(["a"] * 90 + ["b"] * 80)
    >>> chosen = categorical_centroids([0] * 90 + [1] * 80, values, 2, tree, Fraction(5), Seeded(1))
    >>> tree.decode(chosen).tolist()
    ['a', 'b']
    """
    which, values = _checked(labels, codes, clusters, taxonomy)
    scoring = score_by(taxonomy, epsilon, generalise=generalise, adjacency=adjacency)
    choose = _RULES[_known(rule)]
    candidates = taxonomy.candidates(generalise=generalise)
    chosen = np.empty(clusters, dtype=np.int64)
    for block, found in histogram_blocks(taxonomy.shape, which, values, clusters, counts):
        if scoring.scale is None:
            places = source.below(candidates.size, found.shape[0])
        else:
            scores = marginality_sums(taxonomy.shape, found, scoring.table)[:, candidates]
            places = choose(scores, scoring.scale, source)
        chosen[block] = candidates[places]
    return chosen


@renamed_arguments(neighbours="adjacency")
def score_by(taxonomy: Taxonomy, epsilon: Fraction, *, generalise: bool, adjacency: Neighbours) -> Scoring:
    """Table, sensitivity and scale for a taxonomy and an ε: public facts only.

    Replace-one: where value x becomes y, the score of c changes by table(c, y) - table(c, x), at most the largest
    spread of table(c, .) over the domain; the difference of two scores changes by at most twice that. Add-remove: all
    scores change in the same direction, that of c by table(c, x) >= 0, and a difference of two by at most the largest
    entry.

    >>> scoring = score_by(Taxonomy.flat(["a", "b"]), Fraction(1), generalise=True, adjacency="replace-one")
    >>> scoring.sensitivity / 2**31 == round(Taxonomy.flat(["a", "b"]).diameter * 2**30) / 2**30
    True
    """
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise OptionError("epsilon-fraction-above-0", option="epsilon", found=shown(epsilon))
    if adjacency not in get_args(Neighbours):
        raise OptionError("neighbours-replace-add-remove", option="adjacency", found=shown(adjacency))
    bits = _bits(epsilon)
    table = whole_table(taxonomy.shape, max(bits, 0))
    domain = np.array(taxonomy.domain, dtype=np.int64)
    nearest, farthest = nearest_and_farthest(taxonomy.shape, domain, table)
    candidates = taxonomy.candidates(generalise=generalise)
    if adjacency == "replace-one":
        sensitivity = 2 * int((farthest - nearest)[candidates].max())
    else:
        sensitivity = int(farthest[candidates].max())
    if bits < _FEWEST_BITS:
        return Scoring(table, sensitivity, None)
    # a scale below one unit is never needed, and rounding up is always safe
    return Scoring(table, sensitivity, max(round_up_scale(sensitivity / epsilon), Fraction(1)))


def _bits(epsilon: Fraction) -> int:
    """Bits of a unit of distance such that 2 · 2^bits / ε is a scale the coins support."""
    largest = epsilon * (LARGEST_NUMERATOR // 2)
    return min(_FINEST_BITS, (largest.numerator // largest.denominator).bit_length() - 1)


def _checked(
    labels: ArrayLike, codes: ArrayLike, clusters: int, taxonomy: Taxonomy
) -> tuple[Integers, Integers]:
    which, values = np.asarray(labels, dtype=np.int64), np.asarray(codes, dtype=np.int64)
    if which.ndim != 1 or which.shape != values.shape:
        raise InputError("there-label-code-per-record", found=which.size, codes=values.size)
    if which.size >= _MOST_RECORDS:
        raise InputError("records-too-many-exact-scores", found=which.size)
    if which.size and (which.min() < 0 or which.max() >= clusters):
        raise InputError("labels-from-0-number-last-cluster", most=clusters - 1)
    inside = np.zeros(taxonomy.size, dtype=np.bool_)
    inside[list(taxonomy.domain)] = True
    wrong = (values < 0) | (values >= taxonomy.size)
    wrong |= ~inside[np.where(wrong, 0, values)]
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError("row-code-not-value-taxonomy-domain", row=row + 1, found=values[row])
    return which, values


def permute_and_flip(scores: NDArray[np.int64], scale: Fraction, source: Source) -> Integers:
    """The index of one score in each row, exactly as permute-and-flip chooses it: lower scores are more likely.

    In random order every candidate flips a coin of probability exp(-(score - lowest) / scale), and the first
    success is chosen. Coins do not depend on the order, so all may be flipped first: the choice is then uniform among
    the successes, which always include the lowest score.

    Guarantee:
        If a change alters the difference of any two scores of a row by at most D, it costs at most D / scale.

    Reference:
        docs/proofs/noise.md#categorical, sections 2 and 3.

    >>> from shoal.noise.entropy import Seeded
    >>> permute_and_flip(np.array([[0, 10**9], [10**9, 0]]), Fraction(1), Seeded(1)).tolist()
    [0, 1]
    """
    heads = _coins(scores - scores.min(axis=1, keepdims=True), scale, source)
    rank = source.below(heads.sum(axis=1))
    found: Integers = np.argmax(np.cumsum(heads, axis=1) > rank[:, np.newaxis], axis=1).astype(np.int64)
    return found


def exponential_places(scores: NDArray[np.int64], scale: Fraction, source: Source) -> Integers:
    """The index of one score in each row, with probability exactly proportional to exp(-score / scale).

    A uniform candidate is accepted with probability exp(-(score - lowest) / scale), otherwise another is drawn.

    Guarantee:
        If a change alters the difference of any two scores of a row by at most D, it costs at most D / scale.

    Cost:
        At most as many proposals as there are candidates, on average.
    """
    excess = scores - scores.min(axis=1, keepdims=True)
    chosen = np.zeros(scores.shape[0], dtype=np.int64)
    pending = np.arange(scores.shape[0])
    while pending.size:
        proposed = source.below(scores.shape[1], pending.size * _TRIES).reshape(-1, _TRIES)
        kept = _coins(excess[pending[:, np.newaxis], proposed], scale, source)
        first = np.argmax(kept, axis=1)
        done = kept.any(axis=1)
        chosen[pending[done]] = proposed[done, first[done]]
        pending = pending[~done]
    return chosen


_RULES: dict[str, Callable[[NDArray[np.int64], Fraction, Source], Integers]] = {
    "permute-and-flip": permute_and_flip,
    "exponential": exponential_places,
}


@renamed_arguments(neighbours="adjacency")
def centroid_probabilities(
    histogram: ArrayLike,
    taxonomy: Taxonomy,
    epsilon: Fraction,
    *,
    generalise: bool = True,
    adjacency: Neighbours = "replace-one",
    rule: Rule = "permute-and-flip",
) -> NDArray[np.float64]:
    """The probability of every concept for one cluster, in floating point: for evaluation, never for drawing.

    Permute-and-flip chooses c with probability p_c ∫ Π (1 - p_j + p_j·t) dt over t from 0 to 1, the product over all
    j other than c and p_j the coin of j: a polynomial, which Gauss' rule integrates exactly.

    >>> centroid_probabilities([0, 5, 5], Taxonomy.flat(["a", "b"]), Fraction(1), generalise=False).tolist()
    [0.0, 0.5, 0.5]
    """
    scoring = score_by(taxonomy, epsilon, generalise=generalise, adjacency=adjacency)
    candidates = taxonomy.candidates(generalise=generalise)
    counts = np.asarray(histogram, dtype=np.int64)[np.newaxis]
    scores = marginality_sums(taxonomy.shape, counts, scoring.table)[0, candidates]
    exponents = (scores - scores.min()) / float(scoring.scale) if scoring.scale else np.zeros(scores.size)
    coins = np.exp(-exponents)
    found = np.zeros(taxonomy.size)
    if _known(rule) == "exponential":
        found[candidates] = coins / coins.sum()
        return found
    nodes, weights = np.polynomial.legendre.leggauss(candidates.size // 2 + 1)
    factors = 1 - coins * (1 - nodes[:, np.newaxis]) / 2
    products = np.exp(np.log(factors).sum(axis=1, keepdims=True) - np.log(factors))
    found[candidates] = coins * (weights @ products) / 2
    return found


def _known(rule: str) -> str:
    if rule not in _RULES:
        raise OptionError(
            "unknown-rule",
            option="rule",
            allowed=tuple(_RULES),
            found=shown(rule),
            hint=closest(rule, _RULES),
        )
    return rule


def _coins(excess: NDArray[np.int64], scale: Fraction, source: Source) -> NDArray[np.bool_]:
    """True with probability exactly exp(-excess / scale).

    With scale t/s and excess = q·t + r the exponent is q·s + r·s/t. Neither product leaves 64 bits: a scale from
    `round_up_scale` with s > 1 is below 2^20, so r < t < 2^40 and s <= 2^20; and q·s <= excess, the scale being >= 1.
    """
    t, s = scale.numerator, scale.denominator
    whole, rest = np.divmod(excess, t)
    heads = bernoulli_exp(rest * s, t, source)
    turns = heads & (whole > 0)
    heads[turns] = bernoulli_exp(whole[turns] * s, 1, source)
    return heads


def exponential_choice(
    lengths: NDArray[np.int64],
    penalties: NDArray[np.int64],
    rate: Fraction,
    source: Source,
    largest: int | None = None,
) -> int:
    """The index of one interval, drawn with probability exactly proportional to length · exp(-rate · penalty).

    Args:
        lengths: numbers of equally good candidates, at least 0 each, at most 2^53 in total and not all 0.
        penalties: how much worse than ideal a candidate is, integers of at least 0.
        rate: at least 0.
        source: source of the bits.
        largest: a bound of all penalties that does not depend on the records. With it the work depends on the
            bound, the rate and the number of intervals, not on the penalties, except for draws that need integers.

    Guarantee:
        If one record changes every penalty by at most D, the choice (followed by a uniform candidate of the
        interval) costs at most 2·rate·D. No probability is rounded.

    Cost:
        Linear in the number of intervals; exact integer work happens once in 10^9 draws for small tables and
        once in 10^3 for a million intervals.

    Reference:
        McSherry and Talwar, "Mechanism Design via Differential Privacy"; docs/proofs/trees.md#tree.

    >>> from shoal.noise.entropy import Seeded
    >>> exponential_choice(np.array([0, 3, 0]), np.array([0, 7, 1]), Fraction(1, 3), Seeded(1))
    1
    """
    lengths, penalties = np.asarray(lengths, dtype=np.int64), np.asarray(penalties, dtype=np.int64)
    possible = np.flatnonzero(lengths > 0)
    # usually all of them
    allowed = penalties if possible.size == lengths.size else penalties[possible]
    if possible.size == 0 or lengths.min() < 0 or rate < 0 or allowed.min() < 0:
        raise OptionError("exponential-mechanism-needs-rate-penalties-least")
    if largest is not None:
        # keep intervals without candidates: their number must not show in the running time
        least = np.maximum(penalties, (lengths == 0) * np.iinfo(np.int64).max).min()
        # a common factor of all weights is irrelevant, and makes the best weight at least 1
        excess, word = np.maximum(penalties - least, 0), int(source.words(1)[0])
        number = _by_floats_evenly(lengths, excess, rate, word, largest)
        return _by_integers(lengths, excess, rate, word, source) if number is None else number
    if possible.size == 1:
        return int(possible[0])
    lengths = lengths if possible.size == lengths.size else lengths[possible]
    excess = allowed - allowed.min()
    word = int(source.words(1)[0])
    number = _by_floats(lengths, excess, rate, word)
    if number is None:
        number = _by_integers(lengths, excess, rate, word, source)
    return int(possible[number])


def _by_floats(
    lengths: NDArray[np.int64], excess: NDArray[np.int64], rate: Fraction, word: int
) -> int | None:
    """The interval that contains a uniform real with the first 64 bits `word`, or None if that is uncertain.

    Every partial sum is within `slack` of the truth: table entries, products and sums are correctly rounded, and
    the omitted distant terms are below 2^53 · 2^-128.
    """
    furthest = int(excess.max())
    limit = min(int(_FAR / rate) + 1, furthest) if rate else furthest
    if furthest <= limit:
        return _settled_in_parts(_weights(lengths, excess, rate, furthest), word, complete=True)
    near = np.flatnonzero(excess <= limit)
    excess = excess[near]
    weights = _weights(lengths[near], excess, rate, int(excess.max()))
    number = _settled_in_parts(weights, word, complete=False)
    return None if number is None else int(near[number])


def _by_floats_evenly(
    lengths: NDArray[np.int64], excess: NDArray[np.int64], rate: Fraction, word: int, largest: int
) -> int | None:
    """The same over all intervals: distant ones weigh 0 and are added like the others.

    Uses the longest floating-point type, so that integers, which are far slower, are hardly ever needed.
    """
    furthest = min(int(_FAR / rate) + 1, largest) if rate else largest
    near = excess <= furthest
    fine, coarse = _long_tables(rate, 1 << furthest.bit_length())
    bounded = np.minimum(excess, furthest)
    # by bits: the duration of a division depends on the operands
    weights = (lengths * near) * (fine[bounded & (_LOW - 1)] * coarse[bounded >> _LOW.bit_length() - 1])
    return _settled(np.cumsum(weights), word, int(np.count_nonzero(near)) == excess.size)


def _settled(sums: NDArray[np.floating[Any]], word: int, complete: bool) -> int | None:
    """Where a uniform real with these first bits falls among partial sums; `complete`: no distant term was omitted."""
    low, high = _ends_of(word, sums[-1], sums.size)
    # counted over all: the duration of a search would depend on the position
    number = int(np.count_nonzero(sums <= low))
    # beyond the first and the last partial sum there is nothing, unless distant terms were omitted
    from_below = number > 0 or complete or low >= 0
    from_above = number < sums.size and (high < sums[number] or (complete and number == sums.size - 1))
    return number if from_below and from_above else None


def _settled_in_parts(weights: NDArray[np.float64], word: int, complete: bool) -> int | None:
    """The same for weights: first a part of them, then a weight of this part, so that few sums are made one by one.

    In whatever order n numbers are added, the sum is as near to the truth as `_ends_of` allows for.
    """
    if weights.size <= 2 * _PART:
        return _settled(np.cumsum(weights), word, complete)
    ends = np.cumsum(np.add.reduceat(weights, np.arange(0, weights.size, _PART)))
    low, high = _ends_of(word, ends[-1], weights.size)
    part = int(np.count_nonzero(ends <= low))
    if part == ends.size:
        return None
    first = part * _PART
    sums = (ends[part - 1] if part else 0.0) + np.cumsum(weights[first : first + _PART])
    number = int(np.count_nonzero(sums <= low))
    if number == sums.size:
        return None
    from_below = first + number > 0 or complete or low >= 0
    from_above = high < sums[number] or (complete and first + number == weights.size - 1)
    return first + number if from_below and from_above else None


def _ends_of(word: int, total: np.floating[Any], terms: int) -> tuple[Any, Any]:
    """Both ends of the interval of the word, allowing for errors of the total, of a partial sum and of these lines."""
    real = type(total)
    slack = real((terms + _PRODUCT_SLACK) * np.finfo(real).eps) * total
    return real(word) / real(2**64) * total - 3 * slack, real(word + 1) / real(2**64) * total + 3 * slack


def _weights(
    lengths: NDArray[np.int64], excess: NDArray[np.int64], rate: Fraction, largest: int
) -> NDArray[np.float64]:
    # a power of two, so that the nodes of a level share few tables
    fine, coarse = _float_tables(rate, 1 << largest.bit_length())
    # few passes, in place
    weights: NDArray[np.float64] = fine[excess & (_LOW - 1)]
    weights *= coarse[excess >> _LOW.bit_length() - 1]
    weights *= lengths
    return weights


@lru_cache(maxsize=64)
def _float_tables(rate: Fraction, largest: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low, high = _tables(rate, largest, _TABLE_BITS)
    one = 1 << _TABLE_BITS
    # integers divide with correct rounding
    return np.array([entry / one for entry in low]), np.array([entry / one for entry in high])


@lru_cache(maxsize=64)
def _long_tables(rate: Fraction, largest: int) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """The same in the longest floating-point type: the rounding error of the ordinary one is added."""
    one = 1 << _TABLE_BITS
    found = []
    for table in _tables(rate, largest, _TABLE_BITS):
        first = [entry / one for entry in table]
        rest = [(entry - int(part * one)) / one for entry, part in zip(table, first, strict=True)]
        found.append(np.array(first, dtype=np.longdouble) + np.array(rest, dtype=np.longdouble))
    return found[0], found[1]


def _by_integers(
    lengths: NDArray[np.int64], excess: NDArray[np.int64], rate: Fraction, word: int, source: Source
) -> int:
    """The interval that contains a uniform real starting with `word`; digits are drawn until it is certain."""
    return settle(lambda bits: cumulative_bounds(lengths, excess, rate, bits), word, 64, source)


def cumulative_bounds(
    lengths: NDArray[np.int64], penalties: NDArray[np.int64], rate: Fraction, bits: int
) -> tuple[list[int], list[int]]:
    """Integers below and above 2^bits times every partial sum of length · exp(-rate · penalty).

    >>> lower, upper = cumulative_bounds(np.array([2, 1]), np.array([0, 1]), Fraction(1), 20)
    >>> [round(bound / 2**20, 4) for bound in lower], [round(bound / 2**20, 4) for bound in upper]
    ([2.0, 2.3679], [2.0, 2.3679])
    """
    low, high = _tables(rate, int(penalties.max()), bits)
    lower, upper = [], []
    below = above = 0
    for length, penalty in zip(lengths.tolist(), penalties.tolist(), strict=True):
        product = low[penalty % _LOW] * high[penalty // _LOW] >> bits
        # each factor is hardly more than one unit below its value and the shift loses less than one more
        below += length * product
        above += length * (product + 4)
        lower.append(below)
        upper.append(above)
    return lower, upper


def _tables(rate: Fraction, largest: int, bits: int) -> tuple[list[int], list[int]]:
    """exp(-rate·i) for i < 256 and exp(-rate·256·i) up to the largest penalty, in units of 2^-bits, rounded down."""
    count = largest // _LOW + 1
    return _powers(exp_fixed(rate, bits + 64), min(_LOW, largest + 1), bits), _powers(
        exp_fixed(_LOW * rate, bits + 64 + count.bit_length()), count, bits, 64 + count.bit_length()
    )


def _powers(base: int, count: int, bits: int, guard: int = 64) -> list[int]:
    """base^0 .. base^(count-1), `base` in units of 2^-(bits + guard); at most one unit of 2^-bits below the truth."""
    power, powers = 1 << bits + guard, []
    for _ in range(count):
        powers.append(power >> guard)
        power = power * base >> bits + guard
    return powers


def randomised_response(truth: NDArray[np.bool_], epsilon: Fraction, source: Source) -> NDArray[np.bool_]:
    """Randomised responses, each independently true with odds of e^ε to 1.

    Guarantee:
        Both answers of a record have probabilities whose ratio is at most e^ε: a record costs ε, exactly.

    Cost:
        Linear in the number of records.

    Reference:
        Warner, "Randomized Response: A Survey Technique for Eliminating Evasive Answer Bias";
        docs/proofs/trees.md#missing.

    >>> from shoal.noise.entropy import Seeded
    >>> randomised_response(np.array([True, False]), Fraction(60), Seeded(1)).tolist()
    [True, False]
    """
    untruth, scale = _untruth(epsilon)
    answers = np.where(truth[:, np.newaxis], [untruth, 0], [0, untruth]).astype(np.int64)
    told: NDArray[np.bool_] = exponential_places(answers, scale, source) == 1
    return told


def reversal_probability(epsilon: Fraction) -> float:
    """Probability that a response is reversed, for a statement.

    >>> round(reversal_probability(Fraction(1, 2)), 3)
    0.378
    """
    return 1 / (1 + math.exp(min(float(epsilon), 700.0)))


def check_response(epsilon: Fraction, column: str) -> None:
    """Raise if responses with this ε cannot be drawn."""
    try:
        _untruth(epsilon)
    except OptionError as error:
        raise OptionError("column-whether-value-missing", column=column, reason=error) from None


def _untruth(epsilon: Fraction) -> tuple[int, Fraction]:
    """Score of the false response, the true one's being 0, and a scale of at least 1 that makes it cost ε."""
    untruth = max(1, math.ceil(epsilon))
    return untruth, round_up_scale(untruth / epsilon)


def through_matrix(
    states: NDArray[np.int64], weights: NDArray[np.int64], source: Source
) -> NDArray[np.int64]:
    """States passed through a matrix: each record's new state is drawn from the row of its state, independently.

    Args:
        states: the state of each record, from 0.
        weights: integers of at least 0, one row for each state; the probabilities of a row are its weights divided
            by their sum, which is above 0 and below 2^62.
        source: source of the bits.

    Guarantee:
        Every probability is exactly weight / sum: an exactly uniform integer below the sum is placed in the row's
        running sums. A record costs the largest log-ratio of two probabilities in one column of the matrix.

    Cost:
        A sort of the states, and a search in one row for each record.

    Reference:
        Gouweleeuw, Kooiman, Willenborg and de Wolf, "Post Randomisation for Statistical Disclosure Control";
        docs/proofs/noise.md#pram.

    >>> from shoal.noise.entropy import Seeded
    >>> through_matrix(np.array([0, 1, 1]), np.array([[0, 1], [3, 0]]), Seeded(1)).tolist()
    [1, 0, 0]
    """
    running = np.cumsum(weights, axis=1)
    drawn = source.below(running[:, -1][states])
    found = np.empty(states.size, dtype=np.int64)
    order = np.argsort(states, kind="stable")
    starts = np.searchsorted(states[order], np.arange(len(weights) + 1))
    for state, (first, end) in enumerate(pairwise(starts.tolist())):
        rows = order[first:end]
        found[rows] = np.searchsorted(running[state], drawn[rows], side="right")
    return found
