"""Covariances and coskewnesses as whole numbers of lattice steps: exact sums come in, rounded entries leave.

Attributes are divided by their public widths. A cluster's entries live on a lattice of its own, a fraction of how far
one record can move them, so that the same noise in steps fits every cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.moments.statistics.power_sums import Centred, Objects
from shoal.mechanisms.moments.statistics.sensitivity import coskewness_factors
from shoal.mechanisms.moments.statistics.summary import Index

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """Exact fractions, one row per cluster and one column per entry.

    Attributes:
        above: numerators.
        under: denominators, above 0.
    """

    above: Objects
    under: Objects

    def rounded(self, times: Objects | int) -> Whole:
        """The nearest whole numbers to `times` the fractions, halves upwards."""
        doubled = 2 * self.under
        return np.asarray((2 * self.above * times + self.under) // doubled, dtype=np.int64)

    def floats(self) -> Floats:
        """The nearest binary fractions."""
        return np.asarray(self.above / self.under, dtype=np.float64)


def covariance_ratios(centred: Centred, widths: Sequence[int], entries: Sequence[Index]) -> Ratios:
    """Unbiased covariances (|C|·Σxy - Σx·Σy) / (|C|·(|C|-1)) of attributes divided by their widths.

    >>> from shoal.partition import Partition
    >>> made = Centred.of([np.array([0, 10])], Partition.from_labels([0, 0]))
    >>> covariance_ratios(made, [10], [(0, 0)]).floats().tolist()
    [[0.5]]
    """
    size = centred.sizes.astype(object)
    first = [centred.sums(number) for number in range(len(centred.columns))]
    above, under = [], []
    for i, j in entries:
        above.append(size * centred.sums(i, j) - first[i] * first[j])
        under.append(size * (size - 1) * (widths[i] * widths[j]))
    return Ratios(np.stack(above, axis=1), np.stack(under, axis=1))


def coskewness_ratios(centred: Centred, widths: Sequence[int], entries: Sequence[Index]) -> Ratios:
    """Fisher's coskewness |C|·Σ(x-x̄)(y-ȳ)(z-z̄) / ((|C|-1)·(|C|-2)) of attributes divided by their widths."""
    size = centred.sizes.astype(object)
    first = [centred.sums(number) for number in range(len(centred.columns))]
    pairs = {pair: centred.sums(*pair) for a, b, c in entries for pair in ((a, b), (a, c), (b, c))}
    above, under = [], []
    for a, b, c in entries:
        mixed = pairs[a, b] * first[c] + pairs[a, c] * first[b] + pairs[b, c] * first[a]
        above.append(size * size * centred.sums(a, b, c) - size * mixed + 2 * first[a] * first[b] * first[c])
        under.append(size * (size - 1) * (size - 2) * (widths[a] * widths[b] * widths[c]))
    return Ratios(np.stack(above, axis=1), np.stack(under, axis=1))


def covariance_step(sizes: Whole, fineness: int) -> Floats:
    """The lattice step of a cluster's covariances: the change one record can make, cut into `fineness` parts."""
    return np.asarray(1.0 / (sizes * float(fineness)), dtype=np.float64)


def coskewness_step(sizes: Whole, fineness: int) -> Floats:
    """The same for coskewnesses."""
    return np.asarray(coskewness_factors(sizes) / (sizes * float(fineness)), dtype=np.float64)


def covariance_steps(ratios: Ratios, sizes: Whole, fineness: int) -> Whole:
    """Covariances as numbers of steps.

    Guarantee:
        One record moves an entry by at most `fineness` + 1 steps.

    Reference:
        docs/proofs/moments.md, section 6.
    """
    return ratios.rounded((sizes.astype(object) * fineness)[:, np.newaxis])


def coskewness_steps(ratios: Ratios, sizes: Whole, fineness: int) -> Whole:
    """Coskewnesses as numbers of steps.

    Guarantee:
        One record moves an entry by at most `fineness` + 1 steps.

    Reference:
        docs/proofs/moments.md, section 6.
    """
    factors = coskewness_factors(sizes).astype(object)[:, np.newaxis]
    # multiplying the denominator keeps everything whole
    return Ratios(ratios.above, ratios.under * factors).rounded(
        (sizes.astype(object) * fineness)[:, np.newaxis]
    )
