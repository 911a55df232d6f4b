"""Randomised response. In: a private yes or no of each record and an ε. Out: answers, each reversed now and then."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.categorical import exponential_places
from shoal.noise.entropy import Source
from shoal.noise.scale import round_up_scale


def randomised_response(truth: NDArray[np.bool_], epsilon: Fraction, source: Source) -> NDArray[np.bool_]:
    """The answers, each of them true with odds of e^ε to 1, by itself.

    Guarantee:
        Both answers of a record have probabilities whose ratio is at most e^ε: a record costs ε, exactly.

    Cost:
        Linear in the number of records.

    Reference:
        Warner, "Randomized Response: A Survey Technique for Eliminating Evasive Answer Bias"; docs/proofs/missing.md.

    >>> from shoal.noise.entropy import Seeded
    >>> randomised_response(np.array([True, False]), Fraction(60), Seeded(1)).tolist()
    [True, False]
    """
    untruth, scale = _untruth(epsilon)
    answers = np.where(truth[:, np.newaxis], [untruth, 0], [0, untruth]).astype(np.int64)
    told: NDArray[np.bool_] = exponential_places(answers, scale, source) == 1
    return told


def reversal_probability(epsilon: Fraction) -> float:
    """How often an answer is reversed, for a statement.

    >>> round(reversal_probability(Fraction(1, 2)), 3)
    0.378
    """
    return 1 / (1 + math.exp(min(float(epsilon), 700.0)))


def check_response(epsilon: Fraction, column: str) -> None:
    """An error if answers with this ε cannot be drawn."""
    try:
        _untruth(epsilon)
    except OptionError as error:
        raise OptionError("column-whether-value-missing", column=column, reason=error) from None


def _untruth(epsilon: Fraction) -> tuple[int, Fraction]:
    """Score of the wrong answer, that of the right one being 0, and a scale of at least 1 that makes it cost ε."""
    untruth = max(1, math.ceil(epsilon))
    return untruth, round_up_scale(untruth / epsilon)
