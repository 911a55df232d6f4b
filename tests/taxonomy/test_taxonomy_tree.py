"""Taxonomies are trees in one canonical order; everything else is refused with its reason before any work."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.taxonomy import Taxonomy
from shoal.taxonomy.tree import MOST_LEVELS

from .taxonomy_oracle import ancestor_set, trees

SPORTS = {"sport": {"water": ["sailing", "swimming"], "field": ["soccer"], "chess": {}}}


@given(trees(), st.randoms())
def test_codes_do_not_depend_on_the_order_of_the_links(tree: Taxonomy, order: random.Random) -> None:
    pairs = tree.to_pairs()
    order.shuffle(pairs)
    again = Taxonomy.from_pairs(pairs)
    assert (again.labels, again.parents) == (tree.labels, tree.parents)


@given(trees())
def test_subtrees_are_runs_of_codes_and_lines_lead_to_the_root(tree: Taxonomy) -> None:
    for code in range(tree.size):
        below = {other for other in range(tree.size) if code in ancestor_set(tree, other)}
        assert below == set(range(code, int(tree.shape.ends[code])))
        line = tree.ancestors(code)
        assert set(line) == ancestor_set(tree, code)
        assert len(line) == tree.depths[code] + 1
        assert [int(c) for c in tree.shape.lines[code] if c >= 0] == list(reversed(line))
    inner = set(tree.parents)
    assert tree.leaves.tolist() == [code for code in range(tree.size) if code not in inner]


def test_siblings_are_in_order_of_their_labels() -> None:
    tree = Taxonomy.from_dict(SPORTS)
    assert tree.labels == ("sport", "chess", "field", "soccer", "water", "sailing", "swimming")
    assert tree.values == ("chess", "soccer", "sailing", "swimming")
    assert (tree.root, tree.size, len(tree), tree.levels) == (0, 7, 7, 3)


def test_dicts_and_pairs_lead_back_to_the_same_tree() -> None:
    tree = Taxonomy.from_dict(SPORTS)
    assert Taxonomy.from_dict(tree.to_dict()) == tree
    assert Taxonomy.from_pairs(tree.to_pairs()) == tree
    assert hash(Taxonomy.from_pairs(tree.to_pairs())) == hash(tree)
    assert Taxonomy.from_dict({"*": ["a", {"b": ["c"]}, 3]}).labels == ("*", "3", "a", "b", "c")


def test_the_flat_taxonomy_puts_all_values_below_one_root() -> None:
    tree = Taxonomy.flat(["red", "blue"])
    assert tree.labels == ("*", "blue", "red")
    assert tree.parents == (-1, 0, 0)
    assert tree.domain == (1, 2)


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([], "empty"),
        ([("a", "b"), ("b", "c"), ("c", "a")], "cycle, 'a' below 'b' below 'c' below 'a'"),
        ([("x", "*"), ("a", "b"), ("b", "a")], "cycle"),
        ([("a", "a")], "cycle, 'a' below 'a'"),
        ([("x", "a"), ("y", "b")], "2 roots, 'a' and 'b'"),
        ([(f"x{i}", f"r{i}") for i in range(5)], "5 roots, 'r0', 'r1', 'r2' and 2 more"),
        ([("x", "a"), ("x", "b"), ("a", "*"), ("b", "*")], "'x' has more than one parent.*'a' and 'b'"),
        ([("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")], "'x' and 'y' have more than one parent"),
        ([("x", "a"), (" ", "a")], "link 2 has an empty name"),
        ([("x", "a", "b")], "link 1 must be a pair"),
        ([(f"c{i + 1}", f"c{i}") for i in range(MOST_LEVELS)], "more than 256 levels"),
    ],
)
def test_what_is_not_a_tree_is_refused(pairs: list[Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Taxonomy.from_pairs(pairs)


@pytest.mark.parametrize(
    ("nested", "reason"),
    [
        ({"*": {"a": ["x"], "b": ["x"]}}, "'x' occurs twice, below 'a' and below 'b'"),
        ({"*": ["a", "a"]}, "'a' occurs twice"),
        ({"*": ["a", "*"]}, "'\\*' occurs twice, at the top level and below '\\*'"),
        ({"*": ["", "a"]}, "below '\\*' has an empty name"),
        ({"a": [], "b": []}, "2 roots"),
        ({}, "empty"),
        (["a"], "must be a dict, got list"),
    ],
)
def test_nested_forms_that_are_not_a_tree_are_refused(nested: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Taxonomy.from_dict(nested)


def test_a_taxonomy_cannot_be_put_together_wrongly_by_hand() -> None:
    for labels, parents, domain in [
        (("a",), (-1,), ()),
        (("a",), (0,), (0,)),
        (("a", "b"), (-1, 1), (1,)),
        (("a", "b"), (-1, 0), (1, 1)),
        (("a", "b"), (-1, 0), (2,)),
        (("a", "b"), (-1,), (1,)),
    ]:
        with pytest.raises(InputError):
            Taxonomy(labels, parents, domain)


@given(trees(), st.data())
def test_the_minimal_tree_holds_the_values_and_their_ancestors(tree: Taxonomy, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(range(tree.size)), min_size=1))
    small = tree.minimal([tree.labels[code] for code in chosen])
    expected = {tree.labels[a] for code in chosen for a in ancestor_set(tree, code)}
    assert set(small.labels) == expected
    assert set(small.values) == {tree.labels[code] for code in chosen}
    # distances do not notice what was left out
    for a in small.domain:
        for b in small.domain:
            there = tree.distance(tree.code(small.labels[a]), tree.code(small.labels[b]))
            assert small.distance(a, b) == there


def test_the_minimal_tree_spells_values_as_the_domain_does() -> None:
    tree = Taxonomy.from_dict({"Country": {"Asian_country": ["Viet_Nam", "laos"]}})
    small = tree.minimal(["Viet-Nam", "Laos"])
    assert small.labels == ("Country", "Asian_country", "Laos", "Viet-Nam")
    with pytest.raises(InputError, match="the domain: 'Laos' and 'LAOS' are the same concept"):
        tree.minimal(["Laos", "LAOS"])
    with pytest.raises(
        InputError, match=r"column 'land': 'Laoz' is not in the taxonomy\. Did you mean 'laos'\?"
    ):
        tree.minimal(["Laoz"], "column 'land'")
    with pytest.raises(InputError, match="no values"):
        tree.minimal([])
