"""Which drawn row stands for which record, to measure errors: drawn rows and original ones come in, matched rows leave.

For measuring only. A release never matches: that would be one more look at the records, which no budget pays for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.partition import Partition

Floats = NDArray[np.float64]


def matched(drawn: Floats, original: Floats, partition: Partition, how: str) -> Floats:
    """Rows of each cluster in the order that fits its records.

    `none` leaves them as drawn. `rank` pairs the values of each attribute in order of size, attribute by attribute: the
    least error that values of these columns can have. `assignment` pairs whole rows so that the sum of squared
    errors is least.

    Cost:
        A sort per attribute; for `assignment` the cube of the cluster size, for each cluster.

    >>> one = Partition.from_labels([0, 0])
    >>> matched(np.array([[9.0, 1.0], [1.0, 9.0]]), np.array([[0.0, 0.0], [5.0, 5.0]]), one, "rank").tolist()
    [[1.0, 1.0], [9.0, 9.0]]
    """
    if how == "none":
        return drawn
    result = np.empty_like(drawn)
    if how == "rank" or drawn.shape[1] == 1:
        for j in range(drawn.shape[1]):
            places = np.lexsort((original[:, j], partition.labels))
            result[places, j] = drawn[np.lexsort((drawn[:, j], partition.labels)), j]
        return result
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    order = np.argsort(partition.labels, kind="stable")
    for end, size in zip(np.cumsum(partition.sizes).tolist(), partition.sizes.tolist(), strict=True):
        records = order[end - size : end]
        rows, columns = linear_sum_assignment(cdist(original[records], drawn[records], "sqeuclidean"))
        result[records[rows]] = drawn[records[columns]]
    return result
