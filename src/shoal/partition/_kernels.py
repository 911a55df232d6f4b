"""Compiled loops: nearest and farthest records, patterns with missing values, and shortest paths on Monge costs.

Imported late because numba is slow to import.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels import compiled
from shoal.numbers import Floats, Integers
from shoal.partition.base import MISSING

# Distances of one block stay in the first-level cache between being computed and being compared.
BLOCK = 512
NO_INDEX = 2**62


@compiled(keep=False)
def add_squares(columns: Floats, start: int, count: int, point: Floats, out: Floats) -> None:
    """out[i] = (x0-p0)^2 + (x1-p1)^2 + ... in this order; four attributes per pass save loads and stores."""
    d = point.size
    j = 0
    total = out[:count]
    if d >= 4:
        a, b = columns[0, start : start + count], columns[1, start : start + count]
        c, e = columns[2, start : start + count], columns[3, start : start + count]
        p, q, r, s = point[0], point[1], point[2], point[3]
        for i in range(count):
            t = (a[i] - p) * (a[i] - p)
            t += (b[i] - q) * (b[i] - q)
            t += (c[i] - r) * (c[i] - r)
            total[i] = t + (e[i] - s) * (e[i] - s)
        j = 4
    else:
        a, p = columns[0, start : start + count], point[0]
        for i in range(count):
            total[i] = (a[i] - p) * (a[i] - p)
        j = 1
    while j + 4 <= d:
        a, b = columns[j, start : start + count], columns[j + 1, start : start + count]
        c, e = columns[j + 2, start : start + count], columns[j + 3, start : start + count]
        p, q, r, s = point[j], point[j + 1], point[j + 2], point[j + 3]
        for i in range(count):
            t = total[i] + (a[i] - p) * (a[i] - p)
            t += (b[i] - q) * (b[i] - q)
            t += (c[i] - r) * (c[i] - r)
            total[i] = t + (e[i] - s) * (e[i] - s)
        j += 4
    while j < d:
        a, p = columns[j, start : start + count], point[j]
        for i in range(count):
            total[i] += (a[i] - p) * (a[i] - p)
        j += 1


@compiled(inline=True, keep=False)
def offer(heap: Floats, heap_index: Integers, size: int, distance: float, index: int) -> None:
    """Insert a record into the heap of the nearest so far, largest (distance, index) first.

    A heap of `size` records below its capacity grows by one; a full one drops its largest.
    """
    if size < heap.size:
        at = size
        while at > 0:
            above = (at - 1) // 2
            if heap[above] > distance or (heap[above] == distance and heap_index[above] > index):
                break
            heap[at], heap_index[at] = heap[above], heap_index[above]
            at = above
    else:
        at = 0
        while True:
            below = 2 * at + 1
            if below >= size:
                break
            right = below + 1
            if right < size and (
                heap[right] > heap[below]
                or (heap[right] == heap[below] and heap_index[right] > heap_index[below])
            ):
                below = right
            if heap[below] < distance or (heap[below] == distance and heap_index[below] < index):
                break
            heap[at], heap_index[at] = heap[below], heap_index[below]
            at = below
    heap[at], heap_index[at] = distance, index


@compiled
def scan(
    columns: Floats, index: Integers, count: int, point: Floats, heap: Floats, heap_index: Integers
) -> tuple[float, int, int]:
    """Fill the heap with the nearest records; returns the farthest (distance, index) and the heap's size.

    Ties go to the lowest index. With a heap of capacity 0 only the farthest is found.
    """
    want = heap.size
    filled = 0
    worst, worst_index = np.inf, NO_INDEX
    best, best_index = -1.0, NO_INDEX
    distances = np.empty(BLOCK)
    for start in range(0, count, BLOCK):
        m = min(BLOCK, count - start)
        add_squares(columns, start, m, point, distances)
        inside = 0
        outside = 0
        for i in range(m):
            inside += distances[i] <= worst
            outside += distances[i] >= best
        if outside > 0:
            for i in range(m):
                t = distances[i]
                if t > best or (t == best and index[start + i] < best_index):
                    best, best_index = t, index[start + i]
        if inside > 0 and want > 0:
            for i in range(m):
                t = distances[i]
                if t < worst or (t == worst and index[start + i] < worst_index):
                    offer(heap, heap_index, filled, t, index[start + i])
                    filled = min(filled + 1, want)
                    if filled == want:
                        worst, worst_index = heap[0], heap_index[0]
    return best, best_index, filled


@compiled
def remove(
    columns: Floats, index: Integers, count: int, place: Integers, gone: Integers, cut: Floats, sums: Floats
) -> int:
    """Remove records: the last ones fill the gaps, their pieces leave the sums; returns the remaining number."""
    d = columns.shape[0]
    for g in range(gone.size):
        at = place[gone[g]]
        count -= 1
        for j in range(d):
            rest = columns[j, at]
            for piece in range(cut.shape[1]):
                lead = (rest + cut[j, piece]) - cut[j, piece]
                sums[j, piece] -= lead
                rest -= lead
            columns[j, at] = columns[j, count]
        index[at] = index[count]
        place[index[at]] = at
    return count


@compiled
def people_who_fit(
    codes: Integers, starts: Integers, members: Integers, weights: Floats, alpha: float
) -> tuple[Floats, Floats]:
    """fk and Fk of each pattern in persons; `frequencies.as_wildcard` defines the weights."""
    keys, size = codes.shape
    gaps = np.zeros(size, dtype=np.int64)
    for pattern in range(size):
        for key in range(keys):
            gaps[pattern] += codes[key, pattern] == MISSING
    partly = np.flatnonzero(gaps > 0)
    every = np.arange(size)
    fk, population = np.zeros(size), np.zeros(size)
    counted = np.zeros(weights.size)
    touched = np.empty(weights.size, dtype=np.int64)
    for own in range(size):
        number = 0
        # a pattern without gaps matches itself and some with gaps; it is in neither list twice
        others = partly if gaps[own] == 0 else every
        for place in range(-1, others.size):
            other = own if place < 0 else others[place]
            if place >= 0 and other == own:
                continue
            fits = True
            for key in range(keys):
                a, b = codes[key, own], codes[key, other]
                if a != b and a != MISSING and b != MISSING:
                    fits = False
                    break
            if not fits:
                continue
            share = alpha
            if other == own or gaps[other] == 0 or gaps[own] == keys:
                share = 1.0
            elif keys > 1 and gaps[own] == 0 and gaps[other] == keys:
                share = 0.0
            for at in range(starts[other], starts[other + 1]):
                unit = members[at]
                if share > counted[unit]:
                    if counted[unit] == 0.0:
                        touched[number] = unit
                        number += 1
                    counted[unit] = share
        for at in range(number):
            unit = touched[at]
            fk[own] += counted[unit]
            population[own] += counted[unit] * weights[unit]
            counted[unit] = 0.0
    return fk, population


# As in `shoal.partition.optimal`.
ROUGH = 2.0**-47
PATH_TIE = 2.0**-84
SUMS_TIE = 2.0**-100
SPLITTER = 134217729.0


@compiled(inline=True)
def two_sum(a: float, b: float) -> tuple[float, float]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compiled(inline=True)
def normalised(high: float, low: float) -> tuple[float, float]:
    total = high + low
    return total, low - (total - high)


@compiled(inline=True)
def two_product(a: float, b: float) -> tuple[float, float]:
    product = a * b
    scaled = SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled(inline=True)
def add(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    high, rest = two_sum(a, b)
    low, last = two_sum(a_low, b_low)
    high, rest = normalised(high, rest + low)
    return normalised(high, rest + last)


@compiled(inline=True)
def square(a: float, a_low: float) -> tuple[float, float]:
    product, rest = two_product(a, a)
    return normalised(product, rest + (2.0 * (a * a_low) + a_low * a_low))


@compiled(inline=True)
def divide(a: float, a_low: float, by: float) -> tuple[float, float]:
    quotient = a / by
    product, rest = two_product(quotient, by)
    return normalised(quotient, (((a - product) - rest) + a_low) / by)


@compiled(inline=True)
def caught_sum(
    total: float, caught: float, rest: float, value: float, low: float
) -> tuple[float, float, float, float, float]:
    """Add one more value to the running sum, kept in three parts and as a pair."""
    total, error = two_sum(total, value)
    caught, error = two_sum(caught, error)
    rest += error
    caught, error = two_sum(caught, low)
    rest += error
    high, second = two_sum(total, caught)
    high, second = normalised(high, second + rest)
    return total, caught, rest, high, second


@compiled
def running_sums(high: Floats, low: Floats, sums: Floats) -> None:
    """Fill the sums of `Costs` from centred values; twin of the function in `shoal.partition.univariate`."""
    n = high.size
    middle = n // 2
    s = t = u = 0.0
    p = q = r = 0.0
    for i in range(middle, n):
        s, t, u, sums[i + 1, 0], sums[i + 1, 1] = caught_sum(s, t, u, high[i], low[i])
        x, x_low = square(high[i], low[i])
        p, q, r, sums[i + 1, 2], sums[i + 1, 3] = caught_sum(p, q, r, x, x_low)
    s = t = u = 0.0
    p = q = r = 0.0
    for i in range(middle - 1, -1, -1):
        s, t, u, sums[i, 0], sums[i, 1] = caught_sum(s, t, u, -high[i], -low[i])
        x, x_low = square(high[i], low[i])
        p, q, r, sums[i, 2], sums[i, 3] = caught_sum(p, q, r, -x, -x_low)
    total = 0.0
    for i in range(n):
        total += high[i] * high[i]
        sums[i + 1, 4] = total


@compiled
def path_cost(
    sums: Floats, path: Floats, i: int, j: int, noise: float, noise_low: float
) -> tuple[float, float]:
    """Cost of the best partition of the first i values plus one cluster of the values i .. j-1, as a pair."""
    s, s_low = add(sums[j, 0], sums[j, 1], -sums[i, 0], -sums[i, 1])
    q, q_low = add(sums[j, 2], sums[j, 3], -sums[i, 2], -sums[i, 3])
    s, s_low = square(s, s_low)
    s, s_low = add(s, s_low, -noise, -noise_low)
    s, s_low = divide(s, s_low, float(j - i))
    q, q_low = add(q, q_low, -s, -s_low)
    return add(path[i, 0], path[i, 1], q, q_low)


@compiled
def closely_better(
    sums: Floats, path: Floats, later: int, earlier: int, j: int, noise: float, noise_low: float
) -> bool:
    """Whether a last cluster from `later` is strictly cheaper than one from `earlier`, to about 84 bits."""
    a, a_low = path_cost(sums, path, earlier, j, noise, noise_low)
    b, b_low = path_cost(sums, path, later, j, noise, noise_low)
    difference: float = (a - b) + (a_low - b_low)
    return difference > PATH_TIE * a + SUMS_TIE * float(sums[j, 4])


@compiled(inline=True)
def better(
    sums: Floats,
    path: Floats,
    later: int,
    earlier: int,
    fixed: float,
    mean: float,
    slack: float,
    j: int,
    noise: float,
    noise_low: float,
) -> bool:
    """Whether a last cluster from `later` is strictly cheaper than one from `earlier`, for the first j values.

    With m values between the starts, of mean µ, and l from `later` on, of mean ν, the later start saves
    fixed + m/(m + l) · (l (µ - ν)² - noise/l): `fixed` is the squared error of the m values less the difference of
    the paths. Nothing large cancels in this form, so doubles are nearly always enough.
    """
    m = float(later - earlier)
    length = float(j - later)
    inverse = 1.0 / length
    other = ((sums[j, 0] - sums[later, 0]) + (sums[j, 1] - sums[later, 1])) * inverse
    distance = abs(mean - other)
    drift = length * distance
    noisy = noise * inverse
    gain = (m + length) * fixed + m * (drift * distance - noisy)
    doubt = (m + length) * slack + m * ROUGH * (drift * (distance + abs(mean) + abs(other)) + noisy)
    if abs(gain) > doubt:
        return bool(gain > 0.0)
    return closely_better(sums, path, later, earlier, j, noise, noise_low)


@compiled
def shortest_path(sums: Floats, k: int, noise: float, noise_low: float) -> Integers:
    """For every j, the start of the last cluster in the best partition of the first j values.

    Costs satisfy the quadrangle inequality, so a later start that is better for the first j values stays better for
    larger j: each start is best in one interval of j. A queue holds these starts and the beginnings of their intervals.
    """
    n = sums.shape[0] - 1
    path = np.zeros((n + 1, 2))
    previous = np.zeros(n + 1, dtype=np.int64)
    starts = np.empty(n + 1, dtype=np.int64)
    begins = np.empty(n + 1, dtype=np.int64)
    # a tie, or a rounding error of the precise comparison, must not be lost in a rough one
    tie = SUMS_TIE * sums[n, 4]
    head = 0
    count = 0
    offset = 2 * k
    for j in range(k, n + 1):
        start = j - k
        if start == 0 or start >= k:
            begin = j
            rival = 0
            fixed = mean = slack = 0.0
            while count > head:
                rival = starts[count - 1]
                begin = max(begins[count - 1], j)
                m = float(start - rival)
                s = (sums[start, 0] - sums[rival, 0]) + (sums[start, 1] - sums[rival, 1])
                q = (sums[start, 2] - sums[rival, 2]) + (sums[start, 3] - sums[rival, 3])
                f = (path[start, 0] - path[rival, 0]) + (path[start, 1] - path[rival, 1])
                mean = s / m
                fixed = (q - s * mean) - f
                slack = ROUGH * (q + abs(f)) + PATH_TIE * path[start, 0] + tie
                if not better(sums, path, start, rival, fixed, mean, slack, begin, noise, noise_low):
                    break
                count -= 1
            if count == head:
                starts[count] = start
                begins[count] = j
                count += 1
            elif begin < n:
                # the new start wins above `low`, at `high` at the latest: search near the previous result
                low = begin
                high = n + 1
                probe = min(max(start + offset, begin + 1), n)
                step = 1
                if better(sums, path, start, rival, fixed, mean, slack, probe, noise, noise_low):
                    high = probe
                    probe -= 1
                    while probe > low and better(
                        sums, path, start, rival, fixed, mean, slack, probe, noise, noise_low
                    ):
                        high = probe
                        step *= 2
                        probe -= step
                    low = max(low, probe)
                else:
                    low = probe
                    probe += 1
                    while probe <= n and not better(
                        sums, path, start, rival, fixed, mean, slack, probe, noise, noise_low
                    ):
                        low = probe
                        step *= 2
                        probe += step
                    high = min(high, probe)
                while high - low > 1:
                    middle = (low + high) // 2
                    if better(sums, path, start, rival, fixed, mean, slack, middle, noise, noise_low):
                        high = middle
                    else:
                        low = middle
                if high <= n:
                    offset = high - start
                    starts[count] = start
                    begins[count] = high
                    count += 1
        while head + 1 < count and begins[head + 1] <= j:
            head += 1
        previous[j] = starts[head]
        path[j, 0], path[j, 1] = path_cost(sums, path, starts[head], j, noise, noise_low)
    return previous
