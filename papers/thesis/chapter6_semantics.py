"""Properties of the distances on taxonomies of sections 6.3.4 and 6.3.5."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.noise.choice import centroid_probabilities
from shoal.taxonomy import Taxonomy

Matrix = NDArray[np.float64]


def broken_axioms(tree: Taxonomy) -> int:
    """How many pairs and triples of concepts break non-negativity, identity, symmetry or the triangle inequality."""
    table = tree.distance_table()
    detour = (table[:, :, np.newaxis] + table[np.newaxis, :, :]).min(axis=1)
    off = ~np.eye(tree.size, dtype=bool)
    wrong = (table < 0) | (off & (table == 0)) | (~off & (table != 0)) | (table != table.T)
    return int(wrong.sum() + (table > detour + 1e-12).sum())


def outlying(tree: Taxonomy) -> dict[str, float]:
    """The largest over the mean distance of two values: of Eq. 6.6, of the fraction inside its logarithm, of edges."""
    domain = np.array(tree.domain)
    logarithmic = tree.distances(domain[:, np.newaxis], domain)
    fractions = 2**logarithmic - 1
    pairs = ~np.eye(domain.size, dtype=bool)
    return {
        name: float(table[pairs].max() / table[pairs].mean())
        for name, table in (
            ("logarithm", logarithmic),
            ("fraction", fractions),
            ("edges", edges(tree, domain)),
            ("exponential", 2**fractions - 1),
        )
    }


def edges(tree: Taxonomy, domain: NDArray[np.int64]) -> Matrix:
    """Links on the way between two concepts.

    >>> tree = Taxonomy.from_dict({"*": {"a": ["x", "y"], "b": ["z"]}})
    >>> edges(tree, np.array(tree.domain)).astype(int).tolist()
    [[0, 2, 4], [2, 0, 4], [4, 4, 0]]
    """
    lines = [set(tree.ancestors(int(code))) for code in domain]
    return np.array([[float(len(one ^ two)) for two in lines] for one in lines])


def certainty_of_a_tie(k: int) -> float:
    """The probability of the best concept at ε = 1 in a cluster of k values, half of one and half of another."""
    tree = Taxonomy.flat(["a", "b"])
    counts = np.array([0, k // 2, k // 2])
    found = centroid_probabilities(counts, tree, Fraction(1), rule="exponential", generalise=False)
    return float(found.max())


def same_differences(tree: Taxonomy) -> bool:
    """Whether the quality -m tells two candidates apart by as much as the marginality m does."""
    scores = tree.marginalities(np.ones(tree.size, dtype=np.int64))
    return bool(
        np.allclose(np.abs(np.subtract.outer(-scores, -scores)), np.abs(np.subtract.outer(scores, scores)))
    )
