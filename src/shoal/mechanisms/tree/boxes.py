"""The tree over all attributes. In: the cut points of every attribute. Out: what each node halves, and the leaves.

A node is a box, an interval of every attribute's cut points. Its shape follows from cut points and noisy interval
counts, both paid for already, so it is public before a record is sorted into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal

Integers = NDArray[np.int64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The shape of a tree.

    Attributes:
        attributes: for each level, the attribute that each of its nodes halves.
        fractions: for each level, the left child's share of its node if attributes were independent.
        halved: how often each leaf's box was halved in each attribute, shape (leaves, attributes).
        place: which of the 2^halved intervals of the attribute that is, same shape.
    """

    attributes: tuple[Integers, ...]
    fractions: tuple[NDArray[np.float64], ...]
    halved: Integers
    place: Integers

    @property
    def leaves(self) -> int:
        return len(self.halved)


def grow(edges: Sequence[Integers], counts: Sequence[Sequence[NDArray[np.float64]]], depth: int) -> Tree:
    """A tree of `depth` levels; every node halves the attribute in which its box is largest.

    Largest is meant half by width and half by records: the geometric mean of the box's share of the domain and its
    interval's share of the noisy counts. Ties go to the first attribute.

    Args:
        edges: the 2^cuts + 1 edges of each attribute, where `cuts` is how often it can be halved.
        counts: interval counts of each attribute, for each number of halvings from 0 to its `cuts`.
        depth: at most the sum of all cuts.
    """
    number = len(edges)
    halved = np.zeros((1, number), dtype=np.int64)
    place = np.zeros((1, number), dtype=np.int64)
    cuts = np.array([len(of_attribute) - 1 for of_attribute in counts])
    nodes_of = (2 << int(cuts.max())) - 1
    sizes, shares = np.full((number, nodes_of), -1.0), np.full((number, nodes_of), 0.5)
    for j in range(number):
        all_own = (2 << int(cuts[j])) - 1
        sizes[j, :all_own], shares[j, :all_own] = (
            _sizes(edges[j], counts[j], int(cuts[j])),
            _left_shares(counts[j]),
        )
    attributes, fractions = [], []
    for _ in range(depth):
        columns = np.arange(number)
        # nodes of an attribute's own tree are numbered level by level: 2^halved - 1 + place
        own = (1 << halved) - 1 + place
        size = np.where(halved < cuts, sizes[columns, own], -1.0)
        chosen = size.argmax(axis=1)
        nodes = np.arange(len(chosen))
        attributes.append(chosen)
        fractions.append(shares[chosen, own[nodes, chosen]])
        halved, place = np.repeat(halved, 2, axis=0), np.repeat(place, 2, axis=0)
        child, split = np.arange(2 * len(chosen)), np.repeat(chosen, 2)
        place[child, split] = 2 * place[child, split] + child % 2
        halved[child, split] += 1
    return Tree(tuple(attributes), tuple(fractions), halved, place)


def sort_into(tree: Tree, codes: NDArray[np.integer[Any]], cuts: Sequence[int]) -> Integers:
    """The leaf of every record. `codes` has one row per attribute: the number of the record's interval."""
    levels = np.asarray(cuts, dtype=np.int64)
    number = codes.shape[1]
    records = np.arange(number)
    node = np.zeros(number, dtype=np.int64)
    halved = np.zeros((1, len(codes)), dtype=np.int64)
    for chosen in tree.attributes:
        attribute = chosen[node]
        used = halved[np.arange(len(chosen)), chosen][node]
        node = 2 * node + (codes[attribute, records].astype(np.int64) >> (levels[attribute] - 1 - used) & 1)
        halved = np.repeat(halved, 2, axis=0)
        halved[np.arange(len(halved)), np.repeat(chosen, 2)] += 1
    return node


def _sizes(edges: Integers, counts: Sequence[NDArray[np.float64]], cuts: int) -> NDArray[np.float64]:
    """Size of every node of an attribute's own tree that can be halved, level by level."""
    # noise that drowns every count can leave none at all
    width, total = float(edges[-1] - edges[0]), max(float(counts[0][0]), 1e-9)
    found = []
    for level in range(cuts):
        positions = np.diff(edges[:: 1 << (cuts - level)])
        # small floors keep the order of nodes that are empty in one respect
        size = np.sqrt(np.maximum(positions / width, 1e-9) * np.maximum(counts[level] / total, 1e-9))
        # a node of one position has no halves: only where nothing else is left
        found.append(np.where(positions > 1, size, 0.0))
    return np.concatenate([*found, np.full(1 << cuts, -1.0)])


def _left_shares(counts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    found = []
    for above, below in pairwise(counts):
        found.append(np.divide(below[::2], above, out=np.full(above.size, 0.5), where=above > 1e-9))
    return np.concatenate([*found, np.full(counts[-1].size, 0.5)])
