"""A distribution from few noisy answers. In: shares of the records below some thresholds. Out: a distribution function.

Answers are weighed against many curves of simple shapes, each as likely as it fits them; where answers are clear of
noise they have the last word. It also says where to ask next. All of it is post-processing of answers already paid for.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

# Places in a domain from 0 to 1 where curves are known: evenly, and closer and closer towards its ends.
_EVEN, _NEAR = 256, 64
_CENTRES, _WIDTHS = 48, 24
_NARROWEST, _WIDEST = 0.003, 0.6
# Domains are often generous: curves that start at one end on another scale, whose zero lies this far beyond it.
_OFFSETS = (0.003, 0.03)
# How far a real distribution function is from the nearest curve, about.
MISFIT = 0.05
_LEAST = 1e-4


@lru_cache(maxsize=1)
def places() -> Floats:
    """Where curves are known."""
    end = np.geomspace(1e-7, 1 / _EVEN, _NEAR)
    found: Floats = np.unique(np.concatenate((np.linspace(0, 1, _EVEN + 1), end, 1 - end)))
    return found


@lru_cache(maxsize=1)
def _curves() -> Floats:
    """Distribution functions, a row for each place: normal ones, and those on scales stretched at either end."""
    x = places()
    found = []
    for scale in (x, *(np.log1p(x / o) / np.log1p(1 / o) for o in _OFFSETS)):
        centres = np.linspace(-0.1, 1.1, _CENTRES)[:, None, None]
        widths = np.geomspace(_NARROWEST, _WIDEST, _WIDTHS)[:, None]
        below = ndtr((scale - centres) / widths).reshape(-1, x.size)
        found.append(below)
        if scale is not x:
            found.append(1 - below[:, ::-1])
    return np.ascontiguousarray(np.concatenate(found).T)


def likely(asked: Floats, answers: Floats, noise: float | Floats) -> Floats:
    """The mean distribution function at all places, given the answers; one row for each attribute.

    >>> nothing = np.zeros((1, 0))
    >>> round(float(np.interp(0.5, places(), likely(nothing, nothing, 1.0)[0])), 6)
    0.5
    """
    curves, x = _curves(), places()
    spread = np.broadcast_to(np.sqrt(np.asarray(noise) ** 2 + MISFIT**2), len(asked))
    scores = np.zeros((len(asked), curves.shape[1]))
    right = np.clip(np.searchsorted(x, asked), 1, x.size - 1)
    part = (asked - x[right - 1]) / (x[right] - x[right - 1])
    for number, turn in np.ndindex(asked.shape):
        place, share = right[number, turn], part[number, turn]
        here = curves[place - 1] * (1 - share) + curves[place] * share
        scores[number] -= ((answers[number, turn] - here) / spread[number]) ** 2 / 2
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    mean: Floats = (weights / weights.sum(axis=1, keepdims=True)) @ curves.T
    return mean


def where(curve: Floats, level: float) -> float:
    """The place at which a distribution function reaches a level."""
    return float(np.interp(level, curve, places()))


def settled(asked: Floats, answers: Floats, noise: float) -> Floats:
    """A distribution function at all places: the likely one, moved to answers as far as these are clear of noise."""
    x = places()
    mean = likely(asked[None], answers[None], noise)[0]
    inner, which = np.unique(asked, return_inverse=True)
    times = np.bincount(which)
    expected = np.interp(inner, x, mean)
    trust = MISFIT**2 / (MISFIT**2 + noise**2 / times)
    level = isotonic(expected + trust * (np.bincount(which, answers) / times - expected), times / 1.0)
    # between thresholds the curve keeps its shape, in normal scores
    shift = ndtri(np.clip(level, _LEAST, 1 - _LEAST)) - ndtri(np.clip(expected, _LEAST, 1 - _LEAST))
    moved = ndtr(ndtri(np.clip(mean, 1e-9, 1 - 1e-9)) + np.interp(x, inner, shift))
    found: Floats = np.maximum.accumulate(moved)
    return found


def least_known(asked: Floats, answers: Floats, noise: float) -> float:
    """The middle of the interval between thresholds where most can be in the wrong place: by its share and width.

    A distribution of several humps has gaps that no simple curve knows of; this finds them.

    >>> least_known(np.array([0.5, 0.2]), np.array([0.9, 0.1]), 0.001)
    0.35
    """
    ends = np.unique(np.concatenate(([0.0], asked, [1.0])))
    level = np.interp(ends, places(), settled(asked, answers, noise))
    level[0], level[-1] = 0.0, 1.0
    widest = int(np.argmax(np.diff(level) * np.diff(ends)))
    return float(ends[widest] + ends[widest + 1]) / 2


def isotonic(values: Floats, weights: Floats) -> Floats:
    """The nearest values that never fall, by weighted squared distance: pool adjacent violators.

    >>> isotonic(np.array([1.0, 3.0, 2.0]), np.ones(3)).tolist()
    [1.0, 2.5, 2.5]
    """
    means: list[float] = []
    sizes: list[float] = []
    members: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        means.append(value)
        sizes.append(weight)
        members.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            last, size, count = means.pop(), sizes.pop(), members.pop()
            means[-1] = (means[-1] * sizes[-1] + last * size) / (sizes[-1] + size)
            sizes[-1] += size
            members[-1] += count
    return np.repeat(means, members)
