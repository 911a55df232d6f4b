"""Compiled loops over key patterns, imported on first use because numba is slow to import."""

from __future__ import annotations

import numpy as np

from shoal.kernels import compiled
from shoal.numbers import Integers


@compiled
def minimal_uniques(codes: Integers, levels: Integers, person: Integers) -> tuple[Integers, Integers]:
    """The pattern and the set of keys, one bit each, of every minimal sample unique.

    Key sets are visited in the order of their bits as numbers, so every subset of a set comes before it. A set is
    visited with the patterns that its parent, the set without its lowest key, could not separate, in groups. A pattern
    alone in its group, or grouped only with patterns of the same person, is unique; what was unique before is not
    minimal and has been removed. Groups without a record that can become unique are removed too.

    Args:
        codes: (keys, patterns), below 0 for a missing value.
        levels: number of codes of each key.
        person: the person of each pattern, from 0; below 0 if several persons have the pattern, which is never unique.
    """
    keys, size = codes.shape
    most = 1
    for key in range(keys):
        most = max(most, levels[key])
    rows = np.empty((keys + 1, size), dtype=np.int64)
    starts = np.zeros((keys + 1, size + 1), dtype=np.int64)
    groups = np.zeros(keys + 1, dtype=np.int64)
    sets = np.zeros(keys + 1, dtype=np.int64)
    following = np.zeros(keys + 1, dtype=np.int64)
    lowest = np.full(keys + 1, keys, dtype=np.int64)
    count = np.zeros(most, dtype=np.int64)
    hopeful = np.zeros(most, dtype=np.bool_)
    one_person = np.zeros(most, dtype=np.int64)
    place = np.zeros(most, dtype=np.int64)
    seen = np.empty(most, dtype=np.int64)
    # the uniques of a pattern form one linked list
    head = np.full(size, -1, dtype=np.int64)
    owner = np.empty(1024, dtype=np.int64)
    found = np.empty(1024, dtype=np.int64)
    behind = np.empty(1024, dtype=np.int64)
    number = 0
    for row in range(size):
        rows[0, row] = row
    starts[0, 1] = size
    groups[0] = 1 if size > 0 else 0
    depth = 0
    while depth >= 0:
        key = following[depth]
        if key == lowest[depth] or groups[depth] == 0:
            depth -= 1
            continue
        following[depth] += 1
        below = depth + 1
        inside = sets[depth] | (np.int64(1) << key)
        filled = 0
        groups[below] = 0
        for group in range(groups[depth]):
            different = 0
            for at in range(starts[depth, group], starts[depth, group + 1]):
                row = rows[depth, at]
                code = codes[key, row]
                if code < 0:
                    continue
                if count[code] == 0:
                    seen[different] = code
                    different += 1
                    hopeful[code] = False
                    one_person[code] = person[row]
                count[code] += 1
                hopeful[code] |= person[row] >= 0
                if one_person[code] != person[row]:
                    one_person[code] = -1
            for one in range(different):
                code = seen[one]
                if not hopeful[code]:
                    place[code] = -1
                elif one_person[code] < 0:
                    place[code] = filled
                    filled += count[code]
                    groups[below] += 1
                    starts[below, groups[below]] = filled
                else:
                    place[code] = -2
            for at in range(starts[depth, group], starts[depth, group + 1]):
                row = rows[depth, at]
                code = codes[key, row]
                if code < 0:
                    continue
                if place[code] >= 0:
                    rows[below, place[code]] = row
                    place[code] += 1
                elif place[code] == -2:
                    minimal = True
                    link = head[row]
                    while link >= 0:
                        if found[link] & inside == found[link]:
                            minimal = False
                            break
                        link = behind[link]
                    if minimal:
                        if number == owner.size:
                            owner = np.concatenate((owner, np.empty_like(owner)))
                            found = np.concatenate((found, np.empty_like(found)))
                            behind = np.concatenate((behind, np.empty_like(behind)))
                        owner[number] = row
                        found[number] = inside
                        behind[number] = head[row]
                        head[row] = number
                        number += 1
            for one in range(different):
                count[seen[one]] = 0
        if groups[below] > 0 and key > 0:
            sets[below] = inside
            lowest[below] = key
            following[below] = 0
            depth = below
    return owner[:number], found[:number]
