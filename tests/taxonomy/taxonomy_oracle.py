"""Slow references on ancestor sets, and random trees to compare them with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import strategies as st

from shoal.taxonomy import Taxonomy


def ancestor_set(tree: Taxonomy, code: int) -> set[int]:
    found = set()
    while code >= 0:
        found.add(code)
        code = tree.parents[code]
    return found


def set_distance(tree: Taxonomy, a: int, b: int) -> float:
    """Equation 6.6 as it is printed."""
    first, second = ancestor_set(tree, a), ancestor_set(tree, b)
    union, common = len(first | second), len(first & second)
    return math.log2(1 + (union - common) / union)


def set_marginality(tree: Taxonomy, concept: int, sample: Sequence[int]) -> float:
    """Equation 6.1 as it is printed."""
    return math.fsum(set_distance(tree, value, concept) for value in sample)


@st.composite
def trees(draw: st.DrawFn, largest: int = 25) -> Taxonomy:
    """Random trees, bushy to chain-like, whose domain holds all leaves and some inner concepts."""
    size = draw(st.integers(2, largest))
    reach = draw(st.integers(1, size))
    parents = [draw(st.integers(max(0, code - reach), code - 1)) for code in range(1, size)]
    names = draw(st.permutations([f"n{code}" for code in range(size)]))
    tree = Taxonomy.from_pairs(
        [(names[0], ""), *((names[code + 1], names[parent]) for code, parent in enumerate(parents))]
    )
    extra = draw(st.sets(st.integers(0, size - 1), max_size=3))
    return Taxonomy(tree.labels, tree.parents, tuple(sorted({*tree.domain, *extra})))
