"""Nominal values as points: a taxonomy comes in, coordinates whose squared distances are semantic ones leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shoal.taxonomy import Taxonomy

# coordinates that add less than this to any squared distance are left out
_NEGLIGIBLE = 1e-12


def embed(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points whose squared Euclidean distances are the given ones, by classical scaling.

    The semantic distance is log2(1 + J) with J the share of ancestors that two concepts do not share. J is of
    negative type and log2(1 + x) keeps that, so such points exist for every taxonomy.

    Args:
        distances: symmetric, zero on the diagonal.

    >>> points = embed(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))
    >>> float(((points[0] - points[2]) ** 2).sum().round(9))
    1.0
    """
    size = distances.shape[0]
    centring = np.eye(size) - 1.0 / size
    strengths, directions = np.linalg.eigh(-0.5 * centring @ distances @ centring)
    kept = strengths > _NEGLIGIBLE
    return np.asarray(directions[:, kept] * np.sqrt(strengths[kept]))


def coordinates_of_values(tree: Taxonomy, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each record's value as a point; squared distances are semantic ones, the two ends of the domain being 1 apart.

    >>> from shoal.taxonomy import Taxonomy
    >>> tree = Taxonomy.flat(["a", "b", "c"])
    >>> points = coordinates_of_values(tree, tree.encode(["a", "b", "a"]))
    >>> ((points - points[0]) ** 2).sum(axis=1).round(9).tolist()
    [0.0, 1.0, 0.0]
    """
    present, place = np.unique(codes, return_inverse=True)
    distances = tree.distances(present[:, np.newaxis], present)
    points = embed(distances / (tree.width or 1.0))
    if points.shape[1] == 0:
        return np.zeros((codes.size, 1))
    return points[place]


def place_in_tree(tree: Taxonomy) -> NDArray[np.float64]:
    """Place of each concept when the tree is walked branch by branch: values of one branch are neighbours.

    >>> from shoal.taxonomy import Taxonomy
    >>> tree = Taxonomy.from_dict({"*": {"b": ["x"], "a": ["z", "y"]}})
    >>> [tree.labels[code] for code in np.argsort(place_in_tree(tree))]
    ['*', 'a', 'y', 'z', 'b', 'x']
    """
    paths = [tree.ancestors(code)[::-1] for code in range(tree.size)]
    places = np.empty(tree.size, dtype=np.float64)
    places[sorted(range(tree.size), key=lambda code: paths[code])] = np.arange(tree.size)
    return places
