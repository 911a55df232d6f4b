"""Random real numbers whose digits are drawn when they are asked for. In: a source. Out: whole numbers that enclose.

A comparison of two of them draws as many digits as it takes, so it is decided as for the ideal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.noise.entropy import Source
from shoal.noise.exact import geometric_exp

WORD = 64


@internal()
@dataclass(eq=False)
class Uniforms:
    """n independent uniform reals in [0, 1), of which so far some leading words are known.

    >>> from shoal.noise.entropy import Seeded
    >>> reals = Uniforms(2, Seeded(1))
    >>> first, more = reals.leading(1), reals.leading(2)
    >>> [long >> 64 for long in more] == first
    True
    """

    n: int
    source: Source
    words: list[NDArray[np.unsignedinteger[Any]]] = field(default_factory=list)

    def word(self, number: int) -> NDArray[np.unsignedinteger[Any]]:
        """The word of this number of every real."""
        while len(self.words) <= number:
            self.words.append(self.source.digits(WORD, self.n))
        return self.words[number]

    def leading(self, count: int) -> list[int]:
        """The first `count` words as one whole number w each: the real is from w to w + 1 last units."""
        found = [0] * self.n
        for number in range(count):
            found = [
                known << WORD | word for known, word in zip(found, self.word(number).tolist(), strict=True)
            ]
        return found

    def picked(self, index: NDArray[np.intp]) -> Uniforms:
        """Some of them; the others must not be used again."""
        return Uniforms(index.size, self.source, [word[index] for word in self.words])


def joined(parts: list[Uniforms]) -> Uniforms:
    """All of them, one part after the other."""
    known = max(len(part.words) for part in parts)
    words = [np.concatenate([part.word(number) for part in parts]) for number in range(known)]
    return Uniforms(sum(part.n for part in parts), parts[0].source, words)


def below(left: Uniforms, right: Uniforms) -> NDArray[np.bool_]:
    """Which of `left` are below their partner in `right`."""
    result = np.zeros(left.n, dtype=np.bool_)
    open_ended = np.arange(left.n)
    number = 0
    while open_ended.size:
        one, other = left.word(number)[open_ended], right.word(number)[open_ended]
        result[open_ended] = one < other
        open_ended = open_ended[one == other]
        number += 1
    return result


@internal()
@dataclass(frozen=True, eq=False)
class Exponentials:
    """Real numbers with P(X > x) = exp(-x): a whole part and a uniform real that was accepted.

    Reference:
        von Neumann, "Various techniques used in connection with random digits"; docs/proofs/record-noise.md.
    """

    whole: NDArray[np.int64]
    rest: Uniforms

    def total(self, count: int) -> tuple[int, int]:
        """Their sum in units of the last bit of `count` words: a whole number below it, and by how much at most."""
        unit = count * WORD
        return (int(self.whole.sum()) << unit) + sum(self.rest.leading(count)), self.whole.size


def exponentials(n: int, source: Source) -> Exponentials:
    """n independent ones, exactly.

    Whole part and rest are independent. The rest has density proportional to exp(-x): a uniform real x is kept with
    that probability, namely if a row x > x1 > x2 > ... of uniform reals breaks at an odd number.
    """
    whole = geometric_exp(n, source)
    rest = [Uniforms(0, source)]
    missing = n
    while missing:
        proposed = Uniforms(missing, source)
        kept = np.flatnonzero(_breaks_odd(proposed))
        rest.append(proposed.picked(kept))
        missing -= kept.size
    return Exponentials(whole, joined(rest))


def _breaks_odd(first: Uniforms) -> NDArray[np.bool_]:
    odd = np.zeros(first.n, dtype=np.bool_)
    alive, last, step = np.arange(first.n), first, 1
    while alive.size:
        following = Uniforms(alive.size, first.source)
        falls = below(following, last)
        odd[alive[~falls]] = step % 2 == 1
        alive, last, step = alive[falls], following.picked(np.flatnonzero(falls)), step + 1
    return odd
