"""Matching of drawn rows to records, against all permutations."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from shoal.mechanisms.moments.sampling import matched
from shoal.partition import Partition


@pytest.mark.parametrize("seed", range(5))
def test_matches_against_all_permutations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    partition = Partition.from_labels(rng.permutation([0, 0, 0, 0, 0, 1, 1, 1]))
    drawn, original = rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    rows = matched(drawn, original, partition, "assignment")
    columns = matched(drawn, original, partition, "rank")
    assert matched(drawn, original, partition, "none") is drawn
    for cluster in range(2):
        here = np.flatnonzero(partition.labels == cluster)
        assert sorted(map(tuple, rows[here])) == sorted(map(tuple, drawn[here]))
        least = min(((original[here] - drawn[list(order)]) ** 2).sum() for order in permutations(here))
        assert ((original[here] - rows[here]) ** 2).sum() == pytest.approx(least)
        for j in range(2):
            assert sorted(columns[here, j]) == sorted(drawn[here, j])
            least = min(
                ((original[here, j] - drawn[list(order), j]) ** 2).sum() for order in permutations(here)
            )
            assert ((original[here, j] - columns[here, j]) ** 2).sum() == pytest.approx(least)
