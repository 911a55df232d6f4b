"""Public n and k come in, what strict composition does with them leaves: how many clusters pay, and the default k."""

from __future__ import annotations

import math

from shoal.text import Message


def paying_clusters(n: int, k: int) -> int:
    """How many clusters one replaced record can change, and so among how many ε is divided.

    Every cluster can change, by one record each; there are ⌊n/k⌋. Clusters of one record are an exception: they hold
    the record's own values and nothing else, in whatever order they are made.

    >>> paying_clusters(1080, 34), paying_clusters(1080, 1), paying_clusters(50, 34)
    (31, 1, 1)
    """
    return 1 if k == 1 else n // k


def default_size(n: int) -> int:
    """⌈√n⌉ + 1, at most n: with ⌊n/k⌋ clusters paying, noise on a mean of k is below that on a value from k > √n on.

    >>> default_size(1080), default_size(30162), default_size(2)
    (34, 175, 2)
    """
    return min(n, math.isqrt(n - 1) + 2)


def size_note(n: int, k: int) -> tuple[Message, ...]:
    """Why a k is too small to gain anything; nothing where it is not.

    >>> str(size_note(1080, 5)[0])[:88]
    'k = 5 with 1080 rows: one record can change 216 clusters, so each gets 1/216 of ε, and t'
    >>> size_note(1080, 34), size_note(1080, 1)
    ((), ())
    """
    paying = paying_clusters(n, k)
    if paying < k or k == 1:
        return ()
    factor = paying / k
    return (
        Message.of("k-pays-too-often", k=k, rows=n, paying=paying, factor=factor, default=default_size(n)),
    )
