"""Private centroids: sensitivities by brute force, exact probabilities, every neighbour within e^ε, exact draws."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from shoal.errors import InputError, OptionError
from shoal.noise import Seeded, choice
from shoal.noise.choice import (
    Scoring,
    categorical_centroids,
    centroid_probabilities,
    exponential_places,
    permute_and_flip,
    score_by,
)
from shoal.noise.entropy import Source
from shoal.taxonomy import Taxonomy

from .decision_tree import enumerate_paths, exp_minus

THRESHOLD = 1e-9
RULES = ("permute-and-flip", "exponential")
NEIGHBOURS = ("replace-one", "add-remove")
# values at three depths, one of them an inner concept; boundaries closer than the diameter
SMALL = Taxonomy.from_dict({"*": {"a": {"b": ["c"]}, "d": ["e"], "g": []}}).minimal(["b", "c", "e", "g"])


def pair_table(tree: Taxonomy, scoring: Scoring) -> list[list[int]]:
    """Whole-number distances of all pairs, by ancestor sets."""

    def entry(a: int, b: int) -> int:
        first, second = set(tree.ancestors(a)), set(tree.ancestors(b))
        return int(scoring.table[len(first & second), len(first | second)])

    return [[entry(a, b) for b in range(tree.size)] for a in range(tree.size)]


def exact_probabilities(excess: list[int], scale: Fraction, rule: str) -> list[Decimal]:
    """To 50 digits and by the definition: every set of successful coins, every winner among them."""
    coins = [_decimal(exp_minus(Fraction(x) / scale)) for x in excess]
    with localcontext(prec=50):
        if rule == "exponential":
            return [coin / sum(coins) for coin in coins]
        found = [Decimal(0)] * len(coins)
        for heads in itertools.product((False, True), repeat=len(coins)):
            weight = Decimal(1)
            for coin, head in zip(coins, heads, strict=True):
                weight *= coin if head else 1 - coin
            for place in range(len(coins)):
                found[place] += weight / sum(heads) if heads[place] and weight else 0
        return found


def _decimal(value: Fraction) -> Decimal:
    with localcontext(prec=50):
        return Decimal(value.numerator) / Decimal(value.denominator)


def oracle(
    tree: Taxonomy, sample: tuple[int, ...], scoring: Scoring, generalise: bool, rule: str
) -> list[Decimal]:
    assert scoring.scale is not None
    table = pair_table(tree, scoring)
    scores = [sum(table[c][x] for x in sample) for c in tree.candidates(generalise=generalise).tolist()]
    return exact_probabilities([score - min(scores) for score in scores], scoring.scale, rule)


def samples(tree: Taxonomy, size: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations_with_replacement(tree.domain, size)


def changed(tree: Taxonomy, neighbours: str, size: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for sample in samples(tree, size):
        for value in tree.domain:
            yield sample, (*sample[1:], value) if neighbours == "replace-one" else (*sample, value)


def worst_loss(tree: Taxonomy, scoring: Scoring, neighbours: str, generalise: bool, rule: str) -> Decimal:
    """The largest |log ratio| over all clusters of up to 3 records, all changes of a record, all outcomes."""
    known: dict[tuple[int, ...], list[Decimal]] = {}

    def probabilities(sample: tuple[int, ...]) -> list[Decimal]:
        key = tuple(sorted(sample))
        if key not in known:
            known[key] = oracle(tree, key, scoring, generalise, rule)
        return known[key]

    with localcontext(prec=50):
        return max(
            abs((p / q).ln())
            for size in (1, 2, 3)
            for sample, other in changed(tree, neighbours, size)
            for p, q in zip(probabilities(sample), probabilities(other), strict=True)
        )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("generalise", [True, False])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2)])
def test_every_neighbour_is_within_epsilon_and_a_smaller_scale_is_not(
    rule: str, generalise: bool, neighbours: Any, epsilon: Fraction
) -> None:
    scoring = score_by(SMALL, epsilon, generalise=generalise, adjacency=neighbours)
    assert scoring.scale is not None
    loss = worst_loss(SMALL, scoring, neighbours, generalise, rule)
    assert loss <= _decimal(epsilon)
    broken = Scoring(scoring.table, scoring.sensitivity, scoring.scale / 3)
    assert worst_loss(SMALL, broken, neighbours, generalise, rule) > _decimal(epsilon)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_distance_of_the_boundaries_would_be_too_small_a_sensitivity(neighbours: Any) -> None:
    """The thesis takes δ(b, t), which two other values of this domain exceed."""
    tree = Taxonomy.from_dict({"*": {"a": {"b": ["c"]}, "d": {"e": ["f"]}, "g": [], "h": [], "i": []}})
    tree = tree.minimal(["b", "c", "e", "f", "g", "h", "i"])
    epsilon = Fraction(3)
    scoring = score_by(tree, epsilon, generalise=False, adjacency=neighbours)
    assert scoring.scale is not None
    assert tree.width < tree.diameter
    narrow = Scoring(scoring.table, 0, scoring.scale * Fraction(tree.width / tree.diameter))
    sample, other = (tree.code("c"),) * 30, tree.code("f")
    neighbour = (*sample[1:], other) if neighbours == "replace-one" else (*sample, other)
    for scores, holds in ((scoring, True), (narrow, False)):
        p, q = (oracle(tree, records, scores, False, "exponential") for records in (sample, neighbour))
        with localcontext(prec=50):
            loss = max(abs((x / y).ln()) for x, y in zip(p, q, strict=True))
        assert (loss <= _decimal(epsilon)) is holds


@st.composite
def small_trees(draw: st.DrawFn) -> Taxonomy:
    size = draw(st.integers(2, 9))
    tree = Taxonomy.from_pairs(
        [
            ("0", ""),
            *((str(code), str(draw(st.integers(max(0, code - 3), code - 1)))) for code in range(1, size)),
        ]
    )
    extra = draw(st.sets(st.integers(0, size - 1)))
    return Taxonomy(tree.labels, tree.parents, tuple(sorted({*tree.domain, *extra})))


@given(small_trees(), st.booleans())
def test_sensitivities_are_those_found_by_brute_force(tree: Taxonomy, generalise: bool) -> None:
    replace = score_by(tree, Fraction(1), generalise=generalise, adjacency="replace-one")
    add = score_by(tree, Fraction(1), generalise=generalise, adjacency="add-remove")
    table = pair_table(tree, replace)
    candidates = tree.candidates(generalise=generalise).tolist()
    moved = [[table[c][y] - table[c][x] for c in candidates] for x in tree.domain for y in tree.domain]
    brute = max(max(moves) - min(moves) for moves in moved)
    # x and y themselves move by their distance in opposite directions: but for rounding, the bound is reached
    assert brute <= replace.sensitivity <= brute + 4
    added = [[table[c][x] for c in candidates] for x in tree.domain]
    assert add.sensitivity == max(max(moves) - min(moves) for moves in added)
    assert abs(replace.sensitivity / 2 - tree.diameter * 2**30) <= 2


@given(
    small_trees(), st.lists(st.integers(0, 4), min_size=9, max_size=9), st.sampled_from(RULES), st.booleans()
)
@settings(max_examples=40)
def test_probabilities_are_those_of_the_definition(
    tree: Taxonomy, counts: list[int], rule: Any, generalise: bool
) -> None:
    histogram = np.zeros(tree.size, dtype=np.int64)
    histogram[list(tree.domain)] = counts[: len(tree.domain)]
    sample = tuple(np.repeat(np.arange(tree.size), histogram).tolist())
    scoring = score_by(tree, Fraction(3), generalise=generalise, adjacency="replace-one")
    expected = oracle(tree, sample, scoring, generalise, rule)
    found = centroid_probabilities(histogram, tree, Fraction(3), generalise=generalise, rule=rule)
    np.testing.assert_allclose(
        found[tree.candidates(generalise=generalise)], np.array(expected, dtype=float), rtol=1e-9, atol=1e-15
    )
    assert np.isclose(found.sum(), 1)


def p_value(drawn: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    counts = np.bincount(drawn, minlength=expected.size)
    assert not counts[expected == 0].any()
    keep = expected > 0
    wanted = drawn.size * expected[keep]
    return float(chi2.sf(((counts[keep] - wanted) ** 2 / wanted).sum(), keep.sum() - 1))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("generalise", [True, False])
def test_draws_follow_the_probabilities_and_other_ones_are_noticed(rule: Any, generalise: bool) -> None:
    histogram = np.zeros(SMALL.size, dtype=np.int64)
    histogram[list(SMALL.domain)] = [4, 1, 2, 3]
    clusters = 60_000
    codes = np.tile(np.repeat(np.arange(SMALL.size), histogram), clusters)
    labels = np.repeat(np.arange(clusters), histogram.sum())
    epsilon = Fraction(1)
    drawn = categorical_centroids(
        labels, codes, clusters, SMALL, epsilon, Seeded(5), generalise=generalise, rule=rule
    )
    expected = centroid_probabilities(histogram, SMALL, epsilon, generalise=generalise, rule=rule)
    assert p_value(drawn, expected) > THRESHOLD
    off = centroid_probabilities(histogram, SMALL, epsilon * Fraction(6, 5), generalise=generalise, rule=rule)
    assert p_value(drawn, off) < THRESHOLD
    other: Any = RULES[1 - RULES.index(rule)]
    assert (
        p_value(drawn, centroid_probabilities(histogram, SMALL, epsilon, generalise=generalise, rule=other))
        < THRESHOLD
    )


@pytest.mark.parametrize("rule", RULES)
def test_every_path_of_the_sampler_has_its_exact_weight(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All decisions are walked; what the oracle says lies within the weight of the paths not walked to the end."""
    monkeypatch.setattr(choice, "_TRIES", 1)
    scores, scale = [2, 0, 1], Fraction(7, 2)
    places = {"permute-and-flip": permute_and_flip, "exponential": exponential_places}[rule]

    def draw(source: Source) -> int:
        return int(places(np.array([scores]), scale, source)[0])

    weights, undecided = enumerate_paths(draw, 5e-5)
    expected = exact_probabilities(scores, scale, rule)
    assert undecided < Fraction(1, 50)
    for place, probability in enumerate(expected):
        assert weights[place] <= Fraction(probability) <= weights[place] + undecided
    other = exact_probabilities(scores, scale, RULES[1 - RULES.index(rule)])
    assert not weights[1] <= Fraction(other[1]) <= weights[1] + undecided


@given(
    st.lists(st.integers(0, 100), min_size=2, max_size=5),
    st.fractions(Fraction(1), Fraction(100), max_denominator=100),
)
@settings(max_examples=60)
def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism(
    scores: list[int], scale: Fraction
) -> None:
    """At every threshold: a score above it is at most as likely, hence the expected score is at most as high."""
    excess = [score - min(scores) for score in scores]
    flip, exponential = (exact_probabilities(excess, scale, rule) for rule in RULES)
    for threshold in set(excess):
        tails = [
            sum(p for p, x in zip(probabilities, excess, strict=True) if x > threshold)
            for probabilities in (flip, exponential)
        ]
        assert tails[0] <= tails[1] + Decimal(10) ** -40


@pytest.mark.parametrize(
    ("excess", "scale"),
    [
        (2**61, Fraction(1)),
        (2**61, Fraction(2**52)),
        (2**61, Fraction(2**20 * 3 - 1, 3)),
        (2**40 - 1, Fraction(2**40 - 1, 2**20)),
        (10**9, Fraction(2**30 - 1, 1000)),
    ],
)
def test_large_exponents_do_not_wrap_around(excess: int, scale: Fraction) -> None:
    """A coin of exponent 2^9 or more that ever succeeded would show a product that left 64 bits."""
    assert not choice._coins(np.full(2_000, excess), scale, Seeded(3)).any()


def test_coins_of_a_fractional_scale_have_their_probability() -> None:
    """Exponent 3 + 1/5 at scale 5/4, split into whole turns and a rest."""
    heads = choice._coins(np.full(200_000, 4), Fraction(5, 4), Seeded(8)).sum()
    for exponent, fits in ((3.2, True), (3.0, False), (4.0, False)):
        p = np.exp(-exponent)
        z = (heads - 200_000 * p) / np.sqrt(200_000 * p * (1 - p))
        assert bool(abs(z) < 6) is fits


def test_large_epsilon_gives_the_centroid_and_tiny_epsilon_a_uniform_choice() -> None:
    generator = np.random.default_rng(3)
    labels, codes = generator.integers(0, 50, 2_000), generator.choice(SMALL.domain, 2_000)
    for generalise in (True, False):
        drawn = categorical_centroids(
            labels, codes, 50, SMALL, Fraction(10**6), Seeded(1), generalise=generalise
        )
        np.testing.assert_array_equal(drawn, SMALL.centroids(labels, codes, 50, generalise=generalise))
    for epsilon in (Fraction(1, 10**9), Fraction(1, 10**15), Fraction(1, 10**30)):
        drawn = categorical_centroids(
            np.arange(20_000), [SMALL.domain[0]] * 20_000, 20_000, SMALL, epsilon, Seeded(2)
        )
        assert p_value(drawn, np.full(SMALL.size, 1 / SMALL.size)) > THRESHOLD
        assert centroid_probabilities(np.eye(SMALL.size)[2], SMALL, epsilon).max() < 1 / SMALL.size + 1e-8


def test_scales_are_never_below_what_epsilon_asks_for() -> None:
    for epsilon in [
        Fraction(10**e) * f for e in range(-13, 7) for f in (Fraction(1), Fraction(1, 3), Fraction(2, 7))
    ]:
        for neighbours in NEIGHBOURS:
            scoring = score_by(SMALL, epsilon, generalise=True, adjacency=neighbours)  # type: ignore[arg-type]
            assert scoring.scale is not None
            assert scoring.scale >= max(scoring.sensitivity / epsilon, 1)
            assert scoring.scale <= scoring.sensitivity / epsilon * Fraction(1_000_001, 1_000_000) + 1


def test_clusters_without_records_and_domains_of_one_value_are_no_special_case() -> None:
    drawn = categorical_centroids([], [], 20_000, SMALL, Fraction(5), Seeded(4))
    assert p_value(drawn, np.full(SMALL.size, 1 / SMALL.size)) > THRESHOLD
    alone = Taxonomy.flat(["only"])
    assert score_by(alone, Fraction(1), generalise=True, adjacency="replace-one").sensitivity == 0
    assert categorical_centroids([0], [1], 1, alone, Fraction(1), Seeded(1), generalise=False).tolist() == [1]


def test_order_of_records_and_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(7)
    labels, codes = generator.integers(0, 40, 500), generator.choice(SMALL.domain, 500)
    order = generator.permutation(500)
    first = categorical_centroids(labels, codes, 40, SMALL, Fraction(1), Seeded(9))
    again = categorical_centroids(labels[order], codes[order], 40, SMALL, Fraction(1), Seeded(9))
    np.testing.assert_array_equal(first, again)
    whole = SMALL.centroids(labels, codes, 40)
    monkeypatch.setattr("shoal.taxonomy.marginality.BLOCK", 100)
    drawn = categorical_centroids(labels, codes, 40, SMALL, Fraction(10**6), Seeded(9))
    np.testing.assert_array_equal(drawn, whole)


def test_two_thousand_concepts_are_not_too_many() -> None:
    tree = Taxonomy.from_pairs((f"c{i}", f"c{(i - 1) // 5}" if i else "") for i in range(2_000))
    codes = np.random.default_rng(1).choice(tree.domain, 5_000)
    labels = np.arange(5_000) // 50
    drawn = categorical_centroids(labels, codes, 100, tree, Fraction(10**6), Seeded(1))
    for cluster in range(100):
        marginalities = tree.marginalities(np.bincount(codes[labels == cluster], minlength=tree.size))
        assert marginalities[drawn[cluster]] < marginalities.min() + 1e-5
    probabilities = centroid_probabilities(np.bincount(codes, minlength=tree.size), tree, Fraction(1))
    assert np.isclose(probabilities.sum(), 1)


@pytest.mark.parametrize(
    ("changes", "error", "reason"),
    [
        ({"epsilon": Fraction(0)}, OptionError, "epsilon must be a Fraction greater than 0"),
        ({"epsilon": 0.5}, OptionError, "epsilon must be a Fraction"),
        ({"adjacency": "replace"}, OptionError, "adjacency must be replace-one or add-remove"),
        ({"rule": "exponentional"}, OptionError, "Did you mean 'exponential'"),
        ({"codes": [0, 1]}, InputError, "row 1: code 0 is not a value"),
        ({"codes": [2, 99]}, InputError, "row 2: code 99 is not a value"),
        ({"codes": [2, -1]}, InputError, "row 2: code -1 is not a value"),
        ({"labels": [0, 2]}, InputError, "labels must be from 0 to 1"),
        ({"labels": [0]}, InputError, "one label and one code per record"),
    ],
)
def test_what_would_break_the_guarantee_is_refused(
    changes: dict[str, Any], error: type[Exception], reason: str
) -> None:
    given: dict[str, Any] = {"labels": [0, 1], "codes": [2, 2], "clusters": 2, "taxonomy": SMALL}
    given |= {"epsilon": Fraction(1), "source": Seeded(1)} | changes
    with pytest.raises(error, match=reason):
        categorical_centroids(**given)
