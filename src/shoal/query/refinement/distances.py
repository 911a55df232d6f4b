"""What is near the truth. In: possible answers and the number of the true one. Out: a distance for every answer.

No promise depends on a distance: it only settles which answers are raised. Floating point is good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OptionError
from shoal.query.refinement.support import Grid, Support

Distance = Callable[[Support, int], NDArray[Any]]


def absolute(support: Support, truth: int) -> NDArray[Any]:
    """Steps between two points of a lattice, or places between two labels of an order.

    >>> from shoal.query.refinement.support import Labels
    >>> absolute(Labels(("low", "middle", "high")), 2).tolist()
    [2, 1, 0]
    """
    # short whole numbers: `refine` passes over them once for every bit
    return np.asarray(np.abs(np.arange(support.size, dtype=np.int32) - np.int32(truth)))


def nominal(support: Support, truth: int) -> NDArray[Any]:
    """0 for the truth, 1 for everything else.

    >>> from shoal.query.refinement.support import Labels
    >>> nominal(Labels(("a", "b", "c")), 1).tolist()
    [1, 0, 1]
    """
    return np.asarray(np.arange(support.size) != truth, dtype=np.int8)


def from_table(table: ArrayLike) -> Distance:
    """Distances read off a square table, one row for each true answer: a taxonomy's, for example.

    >>> from shoal.query.refinement.support import Labels
    >>> from_table([[0, 2], [2, 0]])(Labels(("a", "b")), 1).tolist()
    [2.0, 0.0]
    """
    square = np.array(table, dtype=np.float64)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or not (square >= 0).all():
        raise OptionError("table-distances-square-numbers-least-0")
    square.setflags(write=False)

    def looked_up(support: Support, truth: int) -> NDArray[Any]:
        if support.size != square.shape[0]:
            raise OptionError(
                "table-distances-rows-but-there-answers", shape=square.shape[0], size=support.size
            )
        return np.asarray(square[truth])

    return looked_up


def from_function(function: Callable[[Any, Any], float]) -> Distance:
    """The caller's own distance between two answers, such as that of a taxonomy. What is not a number counts as far.

    >>> from shoal.query.refinement.support import Labels
    >>> from_function(lambda a, b: abs(len(a) - len(b)))(Labels(("a", "bb", "cccc")), 0).tolist()
    [0.0, 1.0, 3.0]
    """

    def computed(support: Support, truth: int) -> NDArray[Any]:
        true = support.answer(truth)
        found = [float(function(true, support.answer(number))) for number in range(support.size)]
        return np.asarray(np.nan_to_num(np.array(found), nan=np.inf, posinf=np.inf))

    return computed


class Taxonomy(Protocol):
    """What a tree of concepts must tell: the number of a concept, and its distances from all others."""

    def code(self, name: Any) -> int: ...

    def distances_to(self, code: int) -> NDArray[np.float64]: ...


def from_taxonomy(taxonomy: Taxonomy) -> Distance:
    """Semantic distances between labels that are concepts of a taxonomy.

    >>> from shoal.query.refinement.support import Labels
    >>> from shoal.taxonomy import Taxonomy
    >>> beings = Taxonomy.from_dict({"being": {"plant": ["oak"], "animal": ["cat", "dog"]}})
    >>> from_taxonomy(beings)(Labels(("oak", "cat", "dog")), 1).round(3).tolist()
    [0.848, 0.0, 0.585]
    """

    def looked_up(support: Support, truth: int) -> NDArray[Any]:
        codes = [taxonomy.code(support.answer(number)) for number in range(support.size)]
        return np.asarray(taxonomy.distances_to(codes[truth])[codes])

    return looked_up


def combined(parts: Sequence[Distance], how: str = "sum", scales: Sequence[float] | None = None) -> Distance:
    """A distance of vectors from distances of their parts, each divided by its scale.

    Args:
        parts: one distance for each part of the grid.
        how: "sum" or "max".
        scales: by default the number of answers of the part less one, so that no unit of measurement counts.

    >>> from shoal.query.refinement.support import Labels
    >>> grid = Grid((Labels(("a", "b")), Labels(("x", "y", "z"))))
    >>> combined([nominal, absolute])(grid, 0).tolist()
    [0.0, 0.5, 1.0, 1.0, 1.5, 2.0]
    """
    if how not in ("sum", "max"):
        raise OptionError("distances-combined-sum-max", found=how)

    def of_grid(support: Support, truth: int) -> NDArray[Any]:
        if not isinstance(support, Grid) or len(support.parts) != len(parts):
            raise OptionError("distances-need-vector-many-parts", number_of_parts=len(parts))
        sizes = [part.size for part in support.parts]
        places = np.unravel_index(truth, sizes)
        dividers = [max(size - 1, 1) for size in sizes] if scales is None else scales
        total = np.zeros(sizes)
        for axis, (part, distance) in enumerate(zip(support.parts, parts, strict=True)):
            # a nominal distance is 0 or 1 whatever the number of answers
            divider = 1 if distance is nominal and scales is None else dividers[axis]
            along = distance(part, int(places[axis])) / divider
            along = along.reshape([-1 if other == axis else 1 for other in range(len(sizes))])
            total = total + along if how == "sum" else np.maximum(total, along)
        return total.ravel()

    return of_grid
