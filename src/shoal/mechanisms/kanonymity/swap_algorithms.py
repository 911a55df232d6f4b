"""Algorithms that break the link between columns: rank swapping, swapping within clusters, Anatomy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError, OptionError
from shoal.noise import Source
from shoal.noise import source as noise_source
from shoal.partition import Partition, as_matrix, mdav, ranking, stable_order

INTRUDERS = ("informed", "uninformed")
# ranks whose order inside their groups is drawn from a stream of their own, about
BLOCK = 1 << 14
# called with how many swaps are done and how many there are
Progress = Callable[[int, int], None]
# numbers of attributes, whose value each record has of those moved so far, and a minimum size come in, groups leave
Cluster = Callable[[Sequence[int], Mapping[int, NDArray[np.int64]], int], Partition]
# groups, the points they were made on and the numbers of the attributes to be moved come in, larger groups leave
Refine = Callable[[Partition, NDArray[np.float64], tuple[int, ...]], Partition]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """What became of the records.

    Attributes:
        owners: for each swapped attribute, by its number, whose value each record got.
        groups: the groups of each swap, in the order of the swaps.
        swaps: the attributes that were moved in each swap.
    """

    owners: dict[int, NDArray[np.int64]]
    groups: list[Partition]
    swaps: list[tuple[int, ...]]


def permute_within(partition: Partition, source: Source) -> NDArray[np.int64]:
    """A uniform permutation inside every group, independent between groups: record i gets the value of `order[i]`.

    All records are put into one uniform order; read group by group, that is a uniform order of every group.

    Cost: one permutation of n records and two sorts of n words, whatever the number of groups.

    >>> from shoal.noise import Seeded
    >>> order = permute_within(Partition.from_labels([0, 1, 0, 1, 1]), Seeded(1))
    >>> sorted(order[[0, 2]].tolist()), sorted(order[[1, 3, 4]].tolist())
    ([0, 2], [1, 3, 4])
    """
    drawn = source.permutation(partition.n)
    order = np.empty(partition.n, dtype=np.int64)
    order[stable_order(partition.labels)] = drawn[stable_order(partition.labels[drawn])]
    return order


def swapped_ranks(sizes: NDArray[np.int64], first: int, source: Source) -> NDArray[np.int64]:
    """A uniform permutation inside every group of consecutive ranks: rank `first` + i gets the value of i's entry.

    Groups that begin in the same block of ranks share a stream, and blocks have one each: a part of the groups that
    begins with a block is permuted as in the whole.

    Args:
        sizes: of consecutive groups; the first of them begins a block.
        first: rank of the first record of the first group.

    >>> from shoal.noise import Seeded
    >>> whole = swapped_ranks(np.array([BLOCK, 3, 2]), 0, Seeded(1))
    >>> sorted(whole[BLOCK : BLOCK + 3].tolist()) == list(range(BLOCK, BLOCK + 3))
    True
    >>> (swapped_ranks(np.array([3, 2]), BLOCK, Seeded(1)) == whole[BLOCK:]).all().item()
    True
    """
    starts = first + np.cumsum(sizes) - sizes
    cuts = np.append(np.flatnonzero(np.diff(starts // BLOCK, prepend=-1)), sizes.size)
    found = []
    for low, high in pairwise(cuts.tolist()):
        own = sizes[low:high]
        drawn = source.child("block", int(starts[low]) // BLOCK).permutation(int(own.sum()))
        labels = np.repeat(np.arange(own.size), own)
        found.append(starts[low] + drawn[stable_order(labels[drawn])])
    return np.concatenate(found)


def swap(values: ArrayLike, partition: Partition, source: Source | None = None) -> NDArray[np.generic]:
    """Swap values among the records of each group, whole rows if `values` is a table.

    Guarantee:
        Probabilistic k-anonymity, k the size of the smallest group: an intruder who knows the groups and considers
        every permutation inside a group equally likely links a record to its own value with probability 1/k at most.

    Reference: the thesis, section 3.3.1.

    >>> from shoal.noise import Seeded
    >>> swapped = swap(["a", "b", "c", "d"], Partition.from_labels([0, 0, 1, 1]), Seeded(2))
    >>> sorted(swapped[:2].tolist()), sorted(swapped[2:].tolist())
    (['a', 'b'], ['c', 'd'])
    """
    kept = np.asarray(values)
    if kept.ndim == 0 or kept.shape[0] != partition.n:
        raise InputError("swapping-needs-value-per-record-shape", n=partition.n, shape=kept.shape)
    return kept[permute_within(partition, source or noise_source(None))]


def swap_ranking(
    attributes: Sequence[ArrayLike],
    k: int | Sequence[int],
    *,
    remainder: str = "middle",
    refine: Refine | None = None,
    source: Source | None = None,
    progress: Progress | None = None,
) -> Swap:
    """Swap every attribute by itself among records of neighbouring rank.

    Args:
        attributes: the confidential attributes, one vector of numbers each; others take no part.
        k: minimum group size, one for all attributes or one for each.
        remainder: which rank group takes the records left over, see `shoal.partition.ranking`.
        refine: joins groups before values are swapped, for example until they are diverse.
        source: where the permutations come from; the operating system's entropy by default.
        progress: called with the attributes done and their number.

    Guarantee:
        Probabilistic k-anonymity against an intruder who knows all attributes but one: the value of that one
        belongs to the record with probability 1/k at most. Values in a group are close to each other, so the
        intruder still learns the value's surroundings: choose k larger than for other methods.

    Cost: two sorts per attribute, and one of each block of ranks.

    Reference: the thesis, section 3.3.3 (IR-SWAP).

    >>> from shoal.noise import Seeded
    >>> income = np.array([30.0, 1.0, 40.0, 2.0])
    >>> made = swap_ranking([income], 2, source=Seeded(1))
    >>> sorted(income[made.owners[0]][[1, 3]].tolist()), made.groups[0].sizes.tolist()
    ([1.0, 2.0], [2, 2])
    """
    drawn = source or noise_source(None)
    owners: dict[int, NDArray[np.int64]] = {}
    groups: list[Partition] = []
    for j, size in enumerate(sizes_by_attribute(k, len(attributes))):
        made = ranking(attributes[j], size, remainder)
        if refine:
            groups.append(refine(made, as_matrix(attributes[j]), (j,)))
            owners[j] = permute_within(groups[-1], drawn)
        else:
            groups.append(made)
            order = stable_order(np.asarray(attributes[j]))
            owners[j] = np.empty_like(order)
            owners[j][order] = order[swapped_ranks(made.sizes, 0, swap_source(drawn, j))]
        if progress:
            progress(j + 1, len(attributes))
    return Swap(owners, groups, [(j,) for j in range(len(attributes))])


def swap_source(source: Source, number: int) -> Source:
    """Where the swaps of an attribute come from that is ranked by itself."""
    return source.child("swapped ranks", number)


def swap_mdav(
    attributes: Sequence[ArrayLike],
    k: int | Sequence[int],
    confidential: Sequence[int],
    *,
    intruder: str = "informed",
    cluster: Cluster | None = None,
    refine: Refine | None = None,
    source: Source | None = None,
    progress: Progress | None = None,
) -> Swap:
    """Swap confidential attributes among records that are close in what an intruder knows.

    Args:
        attributes: all attributes, scaled for distances (see `shoal.partition.normalise`): a vector of numbers
            each, or a table of several coordinates, such as those of a nominal attribute.
        k: minimum group size, one for all confidential attributes or one for each.
        confidential: numbers of the attributes to swap; all others are quasi-identifiers and stay.
        intruder: `uninformed` knows the quasi-identifiers only: MDAV on those, confidential attributes swapped
            together (all those of the same k). `informed` knows all attributes but one: for each confidential
            attribute in turn, MDAV on all others as they are by then, and that attribute swapped by itself.
        cluster: groups records by some of the attributes, if not by Euclidean distances.
        refine: joins groups before values are swapped, for example until they are diverse.
        source: where the permutations come from; the operating system's entropy by default.
        progress: called with the swaps done and their number.

    Guarantee:
        Probabilistic k-anonymity against that intruder.

    Cost: one MDAV partition per swap.

    Reference: the thesis, sections 3.3.1 and 3.3.2 (MDAV-SWAP).

    >>> from shoal.noise import Seeded
    >>> age, income = np.array([20.0, 60.0, 21.0, 62.0]), np.array([1.0, 2.0, 3.0, 4.0])
    >>> made = swap_mdav([age, income], 2, confidential=[1], source=Seeded(3))
    >>> sorted(income[made.owners[1]][[0, 2]].tolist())
    [1.0, 3.0]
    """
    current = [as_matrix(attribute) for attribute in attributes]
    columns = _checked(confidential, len(current))
    drawn = source or noise_source(None)
    owners: dict[int, NDArray[np.int64]] = {}
    groups: list[Partition] = []
    rounds = _rounds(columns, len(current), sizes_by_attribute(k, len(columns)), intruder)
    for done, (known, moved, size) in enumerate(rounds, start=1):
        points = np.hstack([current[j] for j in known])
        made = cluster(known, owners, size) if cluster else mdav(points, size)
        groups.append(refine(made, points, moved) if refine else made)
        order = permute_within(groups[-1], drawn)
        for j in moved:
            owners[j] = order
            current[j] = current[j][order]
        if progress:
            progress(done, len(rounds))
    return Swap(owners, groups, [moved for _, moved, _ in rounds])


def sizes_by_attribute(k: int | Sequence[int], count: int) -> list[int]:
    """One minimum group size for each of `count` attributes.

    >>> sizes_by_attribute(5, 2), sizes_by_attribute([5, 9], 2)
    ([5, 5], [5, 9])
    """
    sizes = [k] * count if isinstance(k, int | np.integer) else list(k)
    if len(sizes) != count:
        raise OptionError("k-whole-number-each-attributes", option="k", count=count, found=k)
    return [int(size) for size in sizes]


def _checked(confidential: Sequence[int], count: int) -> list[int]:
    columns = [int(column) for column in confidential]
    if not columns or len(set(columns)) < len(columns) or not set(columns) <= set(range(count)):
        raise OptionError(
            "confidential-name-attributes-from-0-each", option="confidential", count=count - 1, found=columns
        )
    return columns


def _rounds(
    columns: list[int], count: int, sizes: list[int], intruder: str
) -> list[tuple[list[int], tuple[int, ...], int]]:
    """What is known, what is moved and how large groups must be, swap by swap."""
    if intruder not in INTRUDERS:
        raise OptionError("unknown-intruder", option="intruder", intruder=intruder, allowed=tuple(INTRUDERS))
    by_attribute = list(zip(columns, sizes, strict=True))
    rounds: list[tuple[list[int], tuple[int, ...], int]]
    if intruder == "informed":
        rounds = [
            ([j for j in range(count) if j != column], (column,), size) for column, size in by_attribute
        ]
    else:
        quasi = [j for j in range(count) if j not in columns]
        rounds = [
            (quasi, tuple(column for column, own in by_attribute if own == size), size)
            for size in dict.fromkeys(sizes)
        ]
    if not rounds[0][0]:
        raise OptionError("swapping-mdav-needs-attribute-besides-swapped")
    return rounds


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class LinkedTables:
    """Two linked tables, columns by name.

    Attributes:
        quasi: one row per record in random order: the quasi-identifiers as they are, and the number of the group.
        confidential: one row per group and value (or combination of values): the number of the group, the
            confidential attributes, and how many records of the group have them. Sorted by group and value.
        group: name of the column that links them.
        count: name of the column with the number of records.
    """

    quasi: dict[str, NDArray[Any]]
    confidential: dict[str, NDArray[Any]]
    group: str
    count: str


def dissect(
    quasi: Mapping[str, ArrayLike],
    confidential: Mapping[str, ArrayLike],
    partition: Partition,
    source: Source | None = None,
) -> LinkedTables:
    """Part quasi-identifiers and confidential attributes into two tables linked by group.

    Args:
        quasi: the quasi-identifiers by name, one value per record.
        confidential: the confidential attributes by name, one value per record.
        partition: the groups.
        source: where row order and group numbers come from; the operating system's entropy by default.

    Guarantee:
        Probabilistic k-anonymity, k the size of the smallest group: which row of the first table a value of the
        second belongs to is known with probability count/|group| at most, to somebody who knows no more than the
        two tables. A value that a whole group shares is disclosed: see `diversify`.

    Reference: the thesis, section 7.1.2, after the Anatomy method.

    >>> from shoal.noise import Seeded
    >>> made = dissect({"age": [31, 35, 60, 62]}, {"ill": ["a", "b", "b", "b"]}, Partition.from_labels([0, 0, 1, 1]),
    ...                Seeded(1))
    >>> sorted(made.quasi["age"].tolist()), made.confidential["count"].tolist()
    ([31, 35, 60, 62], [1, 1, 2])
    """
    from shoal.partition import row_groups

    columns = {**quasi, **confidential}
    for name, values in columns.items():
        if np.shape(values)[:1] != (partition.n,):
            raise InputError("column-needs-value-per-record", column=name, n=partition.n)
    if not quasi or not confidential:
        raise InputError("two-linked-tables-need-least-quasi")
    drawn = source or noise_source(None)
    group, count = _free("group", columns), _free("count", columns)
    # numbers in the order of creation would tell outlying groups from others
    numbers = drawn.permutation(len(partition))[partition.labels] + 1
    order = drawn.permutation(partition.n)
    combined = row_groups([numbers, *(_numbered(values) for values in confidential.values())])
    first = combined.first
    return LinkedTables(
        {**{name: np.asarray(values)[order] for name, values in quasi.items()}, group: numbers[order]},
        {
            group: numbers[first],
            **{name: np.asarray(values)[first] for name, values in confidential.items()},
            count: combined.sizes,
        },
        group,
        count,
    )


def _numbered(values: ArrayLike) -> NDArray[np.int64]:
    raw = np.asarray(values)
    if raw.dtype != object:
        return np.unique(raw, return_inverse=True)[1].astype(np.int64)
    # what is missing has no place among texts: it comes first
    distinct = sorted(set(raw.tolist()), key=lambda value: (value is not None, value))
    numbers = {value: number for number, value in enumerate(distinct)}
    return np.array([numbers[value] for value in raw.tolist()], dtype=np.int64)


def _free(wanted: str, taken: Mapping[str, object]) -> str:
    """The name, with as many underscores as it takes to be unlike every column."""
    while wanted in taken:
        wanted += "_"
    return wanted
