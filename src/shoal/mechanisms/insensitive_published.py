"""Noise of the insensitive method as published: one draw for each record, without a guarantee."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.noise import Source, discrete_laplace, exponential_places, round_up_scale, score_by
from shoal.partition import Partition
from shoal.taxonomy import Taxonomy, histogram_blocks, marginality_sums

# number of rows drawn at once
_ROWS = 1 << 15


def noisy_rows(
    positions: NDArray[np.int64], steps: int, partition: Partition, k: int, epsilon: Fraction, source: Source
) -> NDArray[np.float64]:
    """Every record's cluster mean plus Laplace noise of scale steps/(k·ε), one draw for each record.

    Drawn on the cluster sum, whose step is the |C|-th part of a lattice step.

    Reference:
        thesis, Algorithm 6.2 with section 6.3.1.

    >>> from shoal.noise import Seeded
    >>> two = Partition.from_labels([0, 0, 1, 1])
    >>> noisy_rows(np.array([0, 2, 8, 10]), 10, two, 2, Fraction(10**9), Seeded(1)).tolist()
    [1.0, 1.0, 9.0, 9.0]
    """
    sizes = partition.sizes[partition.labels]
    sums = partition.sums(positions)[partition.labels]
    noise = np.zeros(positions.size, dtype=np.int64)
    for size in np.unique(partition.sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        noise[rows] = discrete_laplace(round_up_scale(size * steps / (k * epsilon)), rows.size, source)
    rows_of_means: NDArray[np.float64] = (sums + noise) / sizes
    return rows_of_means


def drawn_rows(
    codes: NDArray[np.int64],
    partition: Partition,
    taxonomy: Taxonomy,
    epsilon: Fraction,
    source: Source,
    *,
    generalise: bool = True,
) -> NDArray[np.int64]:
    """A concept for every record, drawn by the exponential mechanism from its cluster, one draw for each record.

    Reference:
        thesis, Algorithm 6.2 with Algorithm 6.3.

    >>> from shoal.noise import Seeded
    >>> tree, two = Taxonomy.flat(["a", "b"]), Partition.from_labels([0, 0, 1, 1])
    >>> drawn = drawn_rows(tree.encode(["a", "a", "b", "b"]), two, tree, Fraction(10**6), Seeded(1))
    >>> tree.decode(drawn).tolist()
    ['a', 'a', 'b', 'b']
    """
    candidates = taxonomy.candidates(generalise=generalise)
    scoring = score_by(taxonomy, epsilon, generalise=generalise, adjacency="replace-one")
    if scoring.scale is None:
        return candidates[source.below(candidates.size, codes.size)]
    scores = np.empty((len(partition), candidates.size), dtype=np.int64)
    for block, counts in histogram_blocks(taxonomy.shape, partition.labels, codes, len(partition)):
        scores[block] = marginality_sums(taxonomy.shape, counts, scoring.table)[:, candidates]
    places = np.empty(codes.size, dtype=np.int64)
    for start in range(0, codes.size, _ROWS):
        rows = slice(start, start + _ROWS)
        places[rows] = exponential_places(scores[partition.labels[rows]], scoring.scale, source)
    return candidates[places]
