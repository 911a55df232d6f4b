"""One model of all pairs. In: a table for every pair of attributes. Out: a mixture of classes, independent inside.

Rows drawn from it agree with all tables as nearly as such a mixture can. Post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
Pair = tuple[int, int]

CLASSES = 128
ROUNDS = 200
# How wide a class is in each attribute at the start, in standard deviations.
_WIDTH = 0.7
_LEAST = 1e-9
# A table of three attributes counts as so many tables of two.
WEIGHT = 1.0
_SIGNS = np.array([1.0, -1.0])


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Classes with their weights, and the bins' probabilities inside, all attributes beside each other.

    Attributes:
        weights: of the classes.
        bins: (classes, all bins) probabilities, adding up to one for every class and attribute.
        starts: where each attribute's bins begin; one more for the end.
    """

    weights: Floats
    bins: Floats
    starts: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Triple:
    """Three attributes, and the shares of rows in the halves of all of them, (2, 2, 2)."""

    attributes: tuple[int, int, int]
    table: Floats

    @property
    def mean(self) -> float:
        """Of the product of their signs."""
        return float(np.einsum("ijl,i,j,l->", self.table, _SIGNS, _SIGNS, _SIGNS) / self.table.sum())


def signs_of(mixture: Mixture, attribute: int) -> Floats:
    """The mean sign of an attribute with halves in each class: +1 in its first half, -1 in its second."""
    own = mixture.bins[:, mixture.starts[attribute] : mixture.starts[attribute + 1]]
    half = own.shape[1] // 2
    found: Floats = own[:, :half].sum(axis=1) - own[:, half:].sum(axis=1)
    return found


def fit(
    shares: Sequence[Floats],
    tables: Mapping[Pair, Floats],
    correlations: Floats,
    latent: Sequence[int],
    random: np.random.Generator,
    rounds: int = ROUNDS,
    triples: Sequence[Triple] = (),
) -> Mixture:
    """Fit by expectation maximisation of the composite likelihood, the sum of those of all pairs, and of triples.

    Args:
        shares: probabilities of every attribute's bins.
        correlations, latent: of latent normals, and the attributes they belong to: where classes begin.
    """
    starts = np.concatenate(([0], np.cumsum([own.size for own in shares])))
    if not tables:
        return Mixture(np.ones(1), np.concatenate(shares)[None], starts)
    target = np.zeros((starts[-1], starts[-1]))
    for (a, b), table in tables.items():
        target[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = table
    target += target.T
    bins, weights = _start(shares, correlations, latent, random), np.full(CLASSES, 1 / CLASSES)
    owner = np.repeat(np.arange(len(shares)), np.diff(starts))
    # attributes that take part in no table stay as they are
    taking = np.isin(owner, [number for pair in tables for number in pair])
    for _ in range(rounds):
        weighted = bins * weights[:, None]
        model = bins.T @ weighted
        ratio = np.divide(target, model, out=np.zeros_like(target), where=target > 0)
        # how many (in shares) of each bin belong to each class
        belonging = weighted * (bins @ ratio)
        if triples:
            belonging += weighted * _by_triples(bins, weights, starts, triples)
        own = np.add.reduceat(belonging, starts[:-1], axis=1)
        weights = own.sum(axis=1)
        weights /= weights.sum()
        scaled = belonging / np.maximum(own, 1e-300)[:, owner]
        bins = np.where(taking, np.maximum(scaled, _LEAST), bins)
    bins /= np.add.reduceat(bins, starts[:-1], axis=1)[:, owner]
    return Mixture(weights, bins, starts)


def _by_triples(
    bins: Floats, weights: Floats, starts: NDArray[np.int64], triples: Sequence[Triple]
) -> Floats:
    """By class and bin: how often what the tables of triples have is what the model has, over its other two halves."""
    found = np.zeros_like(bins)
    for triple in triples:
        spans = [slice(starts[a], starts[a + 1]) for a in triple.attributes]
        sizes = [(span.stop - span.start) // 2 for span in spans]
        one, two, three = (
            bins[:, span].reshape(len(bins), 2, size).sum(axis=2)
            for span, size in zip(spans, sizes, strict=True)
        )
        model = np.einsum("k,ki,kj,kl->ijl", weights, one, two, three)
        ratio = triple.table / np.maximum(model, 1e-12)
        parts = (
            np.einsum("ijl,kj,kl->ki", ratio, two, three),
            np.einsum("ijl,ki,kl->kj", ratio, one, three),
            np.einsum("ijl,ki,kj->kl", ratio, one, two),
        )
        for span, size, part in zip(spans, sizes, parts, strict=True):
            found[:, span] += WEIGHT * np.repeat(part, size, axis=1)
    return found


def _start(
    shares: Sequence[Floats], correlations: Floats, latent: Sequence[int], random: np.random.Generator
) -> Floats:
    """Classes around points of the latent normals; names a little different in every class."""
    centres = random.standard_normal((CLASSES, len(latent))) @ np.linalg.cholesky(correlations).T
    parts = []
    for number, own in enumerate(shares):
        if number in latent:
            ends = np.concatenate(([0.0], np.cumsum(own))) / own.sum()
            middle = ndtri(np.clip((ends[:-1] + ends[1:]) / 2, 1e-6, 1 - 1e-6))
            centre = centres[:, list(latent).index(number)]
            part = own * np.exp(-((middle - centre[:, None]) ** 2) / (2 * _WIDTH**2))
        else:
            part = own * random.gamma(2.0, 0.5, (CLASSES, own.size))
        part = np.maximum(part, _LEAST)
        parts.append(part / part.sum(axis=1, keepdims=True))
    return np.concatenate(parts, axis=1)
