"""Summarise, calibrate, mask: a group and its clusters come in, noisy cluster sums on the lattice leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise import Source, discrete_box, discrete_laplace, discrete_staircase
from shoal.partition import Partition
from shoal.sensitivity import cluster_sum_scale
from shoal.stages import Group


@dataclass(frozen=True, slots=True, eq=False)
class MaskedSums:
    """Noisy sums of every cluster, one array per attribute of the group; safe to post-process at will."""

    partition: Partition
    sums: tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, slots=True)
class NoiseFamily:
    """A kind of noise for cluster sums.

    Attributes:
        draw: for sensitivities in lattice steps, their ε, a number of clusters, what to optimise and a source: one
            column of noise per sensitivity.
        joint: all sums of a cluster get their noise together and share one ε; otherwise each attribute has its own.
        blockwise: the whole ε is spent as soon as a cluster's sums change at all, so a record may touch one
            cluster only.
    """

    draw: Callable[[tuple[int, ...], Fraction, int, str, Source], NDArray[np.int64]]
    joint: bool = False
    blockwise: bool = True


def _laplace(
    steps: tuple[int, ...], epsilon: Fraction, n: int, optimise: str, source: Source
) -> NDArray[np.int64]:
    return discrete_laplace(cluster_sum_scale(sum(steps), epsilon), (n, len(steps)), source)


def _staircase(
    steps: tuple[int, ...], epsilon: Fraction, n: int, optimise: str, source: Source
) -> NDArray[np.int64]:
    (width,) = steps
    return discrete_staircase(width, epsilon, (n, 1), source, optimise=optimise)


def _box(
    steps: tuple[int, ...], epsilon: Fraction, n: int, optimise: str, source: Source
) -> NDArray[np.int64]:
    return discrete_box(steps, epsilon, n, source, optimise=optimise)


NOISES: Mapping[str, NoiseFamily] = {
    "laplace": NoiseFamily(_laplace, blockwise=False),
    "staircase": NoiseFamily(_staircase),
    "box": NoiseFamily(_box, joint=True),
}


def mask_sums(
    group: Group,
    partition: Partition,
    shares: Mapping[str, Fraction],
    source: Source,
    noise: str = "laplace",
    optimise: str = "variance",
) -> MaskedSums:
    """Exact cluster sums plus one draw of noise per cluster and attribute, or per cluster for joint noise.

    Guarantee:
        Laplace noise: attribute j's sums are `shares[j]`-DP with respect to whatever change keeps their L1 distance
        within the attribute's width (see `shoal.sensitivity.cluster_sum_scale`); over the group the shares add up.
        Staircase noise: the same, for changes of one cluster only. Box noise: all sums of the group together are
        DP with their common share, for changes of one cluster only (`shoal.noise_rule.noise_allowed`).

    Reference:
        MDAI-2017, Algorithms 1 and 2; PSD-2014, Algorithm 1; thesis, chapter 4.
    """
    family = NOISES[noise]
    everything = range(len(group.columns))
    sums: list[NDArray[np.int64]] = []
    for together in [everything] if family.joint else [[number] for number in everything]:
        names = [group.columns[number] for number in together]
        steps = tuple(group.lattices[number].steps for number in together)
        try:
            draws = family.draw(steps, shares[names[0]], len(partition), optimise, source)
        except OptionError as error:
            raise OptionError(
                f"column{'s' if len(names) > 1 else ''} '{', '.join(names)}': {error}"
            ) from None
        sums += [
            partition.sums(group.positions[number]) + draws[:, place] for place, number in enumerate(together)
        ]
    return MaskedSums(partition, tuple(sums))
