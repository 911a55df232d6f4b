"""Distances, marginalities, centroids and boundaries against the definitions on ancestor sets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import OptionError
from shoal.taxonomy import Taxonomy, marginality
from shoal.taxonomy.marginality import marginality_sums, nearest_and_farthest, whole_table

from .taxonomy_oracle import set_distance, set_marginality, trees


@given(trees())
def test_distances_are_those_of_the_ancestor_sets(tree: Taxonomy) -> None:
    every = np.arange(tree.size)
    table = tree.distance_table()
    expected = [[set_distance(tree, a, b) for b in range(tree.size)] for a in range(tree.size)]
    np.testing.assert_allclose(table, expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(tree.distances(every[:, np.newaxis], every), table)
    for code in range(tree.size):
        np.testing.assert_array_equal(tree.distances_to(code), table[code])
    assert tree.distance(0, tree.size - 1) == table[0, -1]
    assert tree.diameter == max(table[a, b] for a in tree.domain for b in tree.domain)


@given(trees(12))
def test_the_distance_is_a_metric_below_one(tree: Taxonomy) -> None:
    table = tree.distance_table()
    assert (table == table.T).all()
    assert ((table == 0) == np.eye(tree.size, dtype=bool)).all()
    assert table.max() < 1
    for a, b, c in itertools.product(range(tree.size), repeat=3):
        assert table[a, c] <= table[a, b] + table[b, c] + 1e-12


@given(trees(), st.data())
def test_marginalities_are_sums_of_distances(tree: Taxonomy, data: st.DataObject) -> None:
    samples = data.draw(st.lists(st.lists(st.sampled_from(tree.domain), max_size=6), min_size=1, max_size=4))
    histograms = np.array([np.bincount(sample, minlength=tree.size) for sample in samples], dtype=np.int64)
    found = tree.marginalities(histograms)
    for row, sample in zip(found, samples, strict=True):
        expected = [set_marginality(tree, concept, sample) for concept in range(tree.size)]
        np.testing.assert_allclose(row, expected, atol=1e-9)
    np.testing.assert_array_equal(tree.marginalities(histograms[0]), found[0])


@given(trees(), st.integers(1, 40), st.data())
def test_whole_number_marginalities_are_exact(tree: Taxonomy, bits: int, data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 10**6), min_size=tree.size, max_size=tree.size))
    table = whole_table(tree.shape, bits)
    pairs = [[round(set_distance(tree, c, x) * 2**bits) for x in range(tree.size)] for c in range(tree.size)]
    expected = [sum(n * entry for n, entry in zip(counts, row, strict=True)) for row in pairs]
    assert marginality_sums(tree.shape, np.array([counts]), table)[0].tolist() == expected


@given(trees(), st.data())
def test_centroids_are_the_least_marginal_concepts_with_the_lowest_code(
    tree: Taxonomy, data: st.DataObject
) -> None:
    rows = data.draw(
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from(tree.domain)), min_size=1, max_size=12)
    )
    labels, codes = (np.array(side) for side in zip(*rows, strict=True))
    for generalise in (True, False):
        found = tree.centroids(labels, codes, 4, generalise=generalise)
        for cluster in range(4):
            sample = codes[labels == cluster]
            candidates = range(tree.size) if generalise else tree.domain
            sums = {c: set_marginality(tree, c, sample) for c in candidates}
            best = min(sums.values())
            # sums that differ by rounding only are ties
            assert found[cluster] == min(c for c, value in sums.items() if value < best + 1e-9)
            if sample.size:
                assert tree.centroid(sample, generalise=generalise) == found[cluster]


@given(trees())
def test_boundaries_are_those_of_the_domain(tree: Taxonomy) -> None:
    sums = {c: set_marginality(tree, c, tree.domain) for c in tree.domain}
    most = max(sums.values())
    first = min(c for c, value in sums.items() if value > most - 1e-9)
    away = {c: set_distance(tree, c, first) for c in tree.domain}
    second = min(c for c, value in away.items() if value > max(away.values()) - 1e-12)
    assert tree.boundaries == (first, second)
    assert tree.width == tree.distance(first, second)
    assert tree.width <= tree.diameter


@given(trees())
def test_nearest_and_farthest_values_of_every_concept(tree: Taxonomy) -> None:
    table = tree.shape.distance_of_counts
    nearest, farthest = nearest_and_farthest(tree.shape, np.array(tree.domain), table)
    away = tree.distance_table()[:, list(tree.domain)]
    np.testing.assert_array_equal(nearest, away.min(axis=1))
    np.testing.assert_array_equal(farthest, away.max(axis=1))


def test_the_width_of_the_boundaries_can_be_less_than_the_diameter() -> None:
    """Why the sensitivity of a centroid is the diameter and not the distance of the boundaries."""
    tree = Taxonomy.from_dict({"*": {"a": {"b": ["c"]}, "d": {"e": ["f"]}, "g": [], "h": [], "i": []}})
    tree = tree.minimal(["b", "c", "e", "f", "g", "h", "i"])
    assert tree.diameter == tree.distance(tree.code("c"), tree.code("f"))
    assert tree.width < tree.diameter


@settings(max_examples=20)
@given(trees(), st.integers(1, 200))
def test_blocks_make_no_difference(tree: Taxonomy, block: int) -> None:
    generator = np.random.default_rng(block)
    labels, codes = generator.integers(0, 30, 200), generator.choice(tree.domain, 200)
    whole = tree.centroids(labels, codes, 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginality, "BLOCK", block)
        np.testing.assert_array_equal(tree.centroids(labels, codes, 30), whole)


def large_tree(size: int) -> Taxonomy:
    return Taxonomy.from_pairs((f"c{i}", f"c{(i - 1) // 3}" if i else "") for i in range(size))


def test_large_trees_need_no_table_and_get_none() -> None:
    tree = large_tree(3_000)
    with pytest.raises(OptionError, match="3000 concepts"):
        tree.distance_table()
    generator = np.random.default_rng(1)
    a, b = generator.integers(0, tree.size, (2, 400))
    expected = [set_distance(tree, int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(tree.distances(a, b), expected, rtol=1e-14)
    histogram = np.bincount(a, minlength=tree.size)
    concept = int(b[0])
    assert math.isclose(
        tree.marginalities(histogram)[concept], set_marginality(tree, concept, a.tolist()), rel_tol=1e-9
    )
    farthest = max(tree.distances_to(value)[list(tree.domain)].max() for value in tree.domain[:50])
    assert farthest <= tree.diameter


def test_a_million_rows_are_encoded_grouped_and_decoded_without_a_loop_over_rows() -> None:
    tree = large_tree(60)
    codes = np.random.default_rng(2).choice(tree.domain, 10**6)
    column = tree.decode(codes)
    np.testing.assert_array_equal(tree.encode(column), codes)
    centroids = tree.centroids(np.arange(10**6) // 100, codes, 10**4)
    sample = codes[4_200:4_300]
    assert centroids[42] == tree.centroid(sample)
    assert tree.distances(codes, codes[::-1]).shape == (10**6,)


@pytest.mark.parametrize("wrong", [[1, 2], [[[0, 0, 0]]], [0, -1, 3]])
def test_histograms_that_do_not_fit_are_refused(wrong: object) -> None:
    with pytest.raises(OptionError, match="3 non-negative counts"):
        Taxonomy.flat(["a", "b"]).marginalities(wrong)  # type: ignore[arg-type]
