"""MDAV on mixed records equals a reference in plain loops, and MDAV itself where all attributes are numbers."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import InputError, OptionError
from shoal.partition import mdav
from shoal.partition.multivariate import mdav_mixed
from shoal.taxonomy import Taxonomy

TREE = Taxonomy.from_dict({"*": {"a": {"x": [], "y": []}, "b": {"z": [], "c": ["u", "v", "w"]}}})
FLAT = Taxonomy.flat(["p", "q", "r"])


def reference(numbers: np.ndarray, codes: list[np.ndarray], trees: list[Taxonomy], k: int) -> list[int]:
    """The rule in words, one record at a time."""
    n = len(numbers)

    def distance(one: tuple[np.ndarray, list[int]], other: tuple[np.ndarray, list[int]]) -> float:
        total = 0.0
        for a, b in zip(one[0], other[0], strict=True):
            total += (a - b) ** 2
        for tree, a, b in zip(trees, one[1], other[1], strict=True):
            total += (tree.distance(a, b) / tree.width) ** 2
        return total

    records = [(numbers[i], [int(c[i]) for c in codes]) for i in range(n)]
    left, labels, cluster = list(range(n)), [0] * n, 0

    def average() -> tuple[np.ndarray, list[int]]:
        middles = []
        for j, tree in enumerate(trees):
            sums = {value: sum(tree.distance(value, records[i][1][j]) for i in left) for value in tree.domain}
            # sums of the same numbers in another order may differ in the last digit
            least = min(sums.values())
            middles.append(next(value for value in tree.domain if sums[value] <= least + 1e-9))
        return numbers[left].mean(axis=0), middles

    def take(around: tuple[np.ndarray, list[int]]) -> None:
        nonlocal cluster
        nearest = sorted(left, key=lambda i: (distance(records[i], around), i))[:k]
        for i in nearest:
            labels[i] = cluster
            left.remove(i)
        cluster += 1

    def farthest(around: tuple[np.ndarray, list[int]]) -> tuple[np.ndarray, list[int]]:
        return records[max(left, key=lambda i: (distance(records[i], around), -i))]

    while len(left) >= 2 * k:
        several = len(left) >= 3 * k
        first = farthest(average())
        take(first)
        if several:
            take(farthest(first))
    for i in left:
        labels[i] = cluster
    return labels


@pytest.mark.parametrize("seed", range(40))
def test_labels_equal_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 40)), int(rng.integers(1, 6))
    k = min(k, n)
    # dyadic numbers add up exactly, so that ties are ties in both
    numbers = rng.integers(0, 9, (n, int(rng.integers(0, 3)))) / 8
    codes = [np.asarray(tree.domain)[rng.integers(0, len(tree.domain), n)] for tree in (TREE, FLAT)]
    made = mdav_mixed(numbers if numbers.shape[1] else None, codes, [TREE, FLAT], k)
    assert made.labels.tolist() == reference(numbers, codes, [TREE, FLAT], k)
    assert made.sizes.min() >= k


@pytest.mark.parametrize("seed", range(10))
def test_numbers_alone_give_the_clusters_of_mdav(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((50, 3))
    assert mdav_mixed(values, [], [], 4).labels.tolist() == mdav(values, 4).labels.tolist()


def test_progress_and_errors() -> None:
    codes = [TREE.encode(["x", "y", "z", "u"])]
    seen: list[tuple[int, int]] = []
    mdav_mixed(None, codes, [TREE], 2, lambda done, total: seen.append((done, total)))
    assert seen[-1][1] == 4
    with pytest.raises(OptionError, match="k = 9"):
        mdav_mixed(None, codes, [TREE], 9)
    with pytest.raises(InputError, match="no attribute"):
        mdav_mixed(None, [], [], 2)
