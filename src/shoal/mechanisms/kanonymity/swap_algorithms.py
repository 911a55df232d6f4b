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
# approximate number of ranks whose permutations share one random stream
BLOCK = 1 << 14
# called with the number of swaps done and the total
Progress = Callable[[int, int], None]
# function from indices of attributes, the current owners of their values, and a minimum size to groups
Cluster = Callable[[Sequence[int], Mapping[int, NDArray[np.int64]], int], Partition]
# function from groups, the points they were made on and the indices of the attributes to swap to larger groups
Refine = Callable[[Partition, NDArray[np.float64], tuple[int, ...]], Partition]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """The result of swapping.

    Attributes:
        owners: for each swapped attribute, by its index, the record whose value each record got.
        groups: the groups of each swap, in the order of the swaps.
        swaps: the attributes swapped together in each swap.
    """

    owners: dict[int, NDArray[np.int64]]
    groups: list[Partition]
    swaps: list[tuple[int, ...]]


def permute_within(partition: Partition, source: Source) -> NDArray[np.int64]:
    """A uniform permutation inside every group, independent between groups: record i gets the value of `order[i]`.

    All records are permuted uniformly; restricted to one group, that is a uniform permutation of the group.

    Cost: one permutation of n records and two sorts of n words, for any number of groups.

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
    """A uniform permutation inside every group of consecutive ranks: rank `first` + i gets the value of entry i.

    Groups that begin in the same block of ranks share a random stream, and each block has its own: a part of the
    groups that begins with a block is permuted as within the whole.

    Args:
        sizes: sizes of consecutive groups; the first of them begins a block.
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
    """Swap every attribute separately among records of neighbouring rank.

    Args:
        attributes: the sensitive attributes, one vector of numbers each; others are not involved.
        k: minimum group size, one for all attributes or one for each.
        remainder: which rank group takes the left-over records, see `shoal.partition.ranking`.
        refine: merges groups before values are swapped, for example until they are diverse.
        source: source of the permutations; the operating system's entropy by default.
        progress: called with the number of attributes done and the total.

    Guarantee:
        Probabilistic k-anonymity against an intruder who knows all attributes but one: the value of that one
        belongs to the record with probability at most 1/k. Values in a group are close to each other, so the intruder
        still learns its approximate value: choose k larger than for other methods.

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
    """The random source of the swaps of an attribute that is ranked separately."""
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
    """Swap sensitive attributes among records that are close in what an intruder knows.

    Args:
        attributes: all attributes, scaled for distances (see `shoal.partition.normalise`): a vector of numbers
            each, or a table of several coordinates, such as those of a nominal attribute.
        k: minimum group size, one for all sensitive attributes or one for each.
        confidential: indices of the attributes to swap; all others are quasi-identifiers and stay.
        intruder: `uninformed` knows the quasi-identifiers only: MDAV on those, sensitive attributes swapped
            together (all those of the same k). `informed` knows all attributes but one: for each sensitive attribute in
            turn, MDAV on all others in their current state, and that attribute swapped separately.
        cluster: groups records by some of the attributes, if not by Euclidean distances.
        refine: merges groups before values are swapped, for example until they are diverse.
        source: source of the permutations; the operating system's entropy by default.
        progress: called with the number of swaps done and the total.

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
    """The known attributes, the swapped attributes and the minimum group size of each swap."""
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
        quasi: one row per record in random order: the unchanged quasi-identifiers, and the group number.
        confidential: one row per group and value (or combination of values): the group number, the sensitive
            attributes, and the number of records of the group with them. Sorted by group and value.
        group: name of the linking column.
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
    """Split quasi-identifiers and sensitive attributes into two tables linked by group.

    Args:
        quasi: the quasi-identifiers by name, one value per record.
        confidential: the sensitive attributes by name, one value per record.
        partition: the groups.
        source: source of row order and group numbers; the operating system's entropy by default.

    Guarantee:
        Probabilistic k-anonymity, k the size of the smallest group: to somebody who knows only the two tables,
        the row of the first table to which a value of the second belongs is known with probability at most
        count/|group|. A value that a whole group shares is disclosed: see `diversify`.

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
    # numbers in the order of creation would reveal outlying groups
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
    # missing values have no place among texts: they come first
    distinct = sorted(set(raw.tolist()), key=lambda value: (value is not None, value))
    numbers = {value: number for number, value in enumerate(distinct)}
    return np.array([numbers[value] for value in raw.tolist()], dtype=np.int64)


def _free(wanted: str, taken: Mapping[str, object]) -> str:
    """The name, with underscores appended until it differs from every column."""
    while wanted in taken:
        wanted += "_"
    return wanted
