"""Lemma 1 of PSD-2014 on small worlds: how far centroids can move, by the way of grouping values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from shoal.partition import Partition, mdav, ranking

Centroids = NDArray[np.float64]
# number of values, k, largest value
World = tuple[int, int, int]

WORLDS: tuple[World, ...] = (
    (5, 2, 4),
    (6, 2, 4),
    (7, 2, 4),
    (7, 3, 4),
    (8, 3, 4),
    (9, 2, 3),
    (10, 3, 3),
    (11, 4, 3),
)
REMAINDERS = ("last", "first", "middle")


@dataclass(frozen=True)
class Move:
    """The largest sum of changes of all centroids when one value is replaced, in two units.

    Attributes:
        of_change: over |x' - x|/k, the bound of the lemma.
        of_width: over W/k, W the width of the domain: what noise is scaled to.
    """

    of_change: float
    of_width: float


def largest_move(world: World, grouped: Callable[[Centroids, int], Partition]) -> Move:
    """Over all tables of the world and all replacements of one value; centroids are matched in order of size."""
    n, k, top = world
    known = {
        values: _centroids(values, k, grouped) for values in combinations_with_replacement(range(top + 1), n)
    }
    of_change = of_width = 0.0
    for values, before in known.items():
        for place in range(n):
            rest = (*values[:place], *values[place + 1 :])
            for value in range(values[place] + 1, top + 1):
                after = known[tuple(sorted((*rest, value)))]
                moved = k * float(np.abs(after - before).sum())
                of_change = max(of_change, moved / (value - values[place]))
                of_width = max(of_width, moved / top)
    return Move(of_change, of_width)


def _centroids(values: tuple[int, ...], k: int, grouped: Callable[[Centroids, int], Partition]) -> Centroids:
    x = np.array(values, dtype=np.float64)
    return np.sort(grouped(x, k).centroids(x))


def ranked_moves(worlds: tuple[World, ...]) -> Mapping[tuple[World, str], Move]:
    """Groups at fixed ranks, for every place of the remainder."""
    return {
        (world, remainder): largest_move(world, lambda x, k, place=remainder: ranking(x, k, place))  # type: ignore[misc]
        for world in worlds
        for remainder in REMAINDERS
    }


def farthest_first_moves(worlds: tuple[World, ...]) -> Mapping[World, Move]:
    """Univariate MDAV, which starts at the end farther from the mean."""
    return {world: largest_move(world, mdav) for world in worlds}


def ordered_records_move(top: int = 2, n: int = 4, k: int = 2) -> Move:
    """The same for records of two attributes in one total order, by their distance to the corner of the domain.

    Distances are Euclidean, so the triangle inequality holds; the sum of changes over |r' - r|/k should be 1 if that
    were enough. The width is the diameter of the domain.
    """
    points = sorted(
        product(range(top + 1), repeat=2), key=lambda point: (point[0] ** 2 + point[1] ** 2, point)
    )
    place_of = {point: place for place, point in enumerate(points)}
    coordinates = np.array(points, dtype=np.float64)
    of_change = of_width = 0.0
    for places in combinations_with_replacement(range(len(points)), n):
        before = coordinates[list(places)].reshape(n // k, k, 2).mean(axis=1)
        for replaced in range(n):
            rest = (*places[:replaced], *places[replaced + 1 :])
            for point in points:
                other = place_of[point]
                if other == places[replaced]:
                    continue
                after = coordinates[sorted((*rest, other))].reshape(n // k, k, 2).mean(axis=1)
                moved = float(np.linalg.norm(after - before, axis=1).sum())
                apart = float(np.linalg.norm(coordinates[other] - coordinates[places[replaced]]))
                of_change = max(of_change, k * moved / apart)
                of_width = max(of_width, k * moved / (top * math.sqrt(2)))
    return Move(of_change, of_width)


def alternating_move(clusters: int = 3, k: int = 3, top: int = 1000) -> tuple[int, float]:
    """How many clusters change, and by how much over Δ/k, if records of one order lie at two far ends in turn.

    The order is by distance to the corner (0, 0); the first record is replaced by one behind the last, and every
    cluster passes one record on to the one before.
    """
    records = clusters * k + 1
    places = np.arange(records)
    ordered = np.where(
        places[:, np.newaxis] % 2 == 0,
        np.stack([places, places * 0 + top], 1),
        np.stack([places * 0 + top, places], 1),
    ).astype(np.float64)
    assert (np.diff(np.linalg.norm(ordered, axis=1)) > 0).all()
    before, after = (part.reshape(clusters, k, 2).mean(axis=1) for part in (ordered[:-1], ordered[1:]))
    moved = np.linalg.norm(after - before, axis=1)
    return int((moved > 0).sum()), float(k * moved.sum() / (top * math.sqrt(2)))
