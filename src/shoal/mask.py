"""Summarise, calibrate, mask: a group and its clusters come in, noisy cluster sums on the lattice leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise import Source, discrete_laplace
from shoal.partition import Partition
from shoal.sensitivity import cluster_sum_scale
from shoal.stages import Group


@dataclass(frozen=True, slots=True, eq=False)
class MaskedSums:
    """Noisy sums of every cluster, one array per attribute of the group; safe to post-process at will."""

    partition: Partition
    sums: tuple[NDArray[np.int64], ...]


def mask_sums(
    group: Group, partition: Partition, shares: Mapping[str, Fraction], source: Source
) -> MaskedSums:
    """Exact cluster sums plus one draw of discrete Laplace noise per cluster and attribute.

    Guarantee:
        Attribute j's sums are `shares[j]`-DP with respect to whatever change keeps their L1 distance within the
        attribute's width (see `shoal.sensitivity.cluster_sum_scale`); over the group the shares add up.

    Reference:
        MDAI-2017, Algorithms 1 and 2; PSD-2014, Algorithm 1.
    """
    sums = []
    for column, lattice, positions in zip(group.columns, group.lattices, group.positions, strict=True):
        try:
            scale = cluster_sum_scale(lattice.steps, shares[column])
        except OptionError as error:
            raise OptionError(f"column '{column}': {error}") from None
        noise = discrete_laplace(scale, len(partition), source)
        sums.append(partition.sums(positions) + noise)
    return MaskedSums(partition, tuple(sums))
