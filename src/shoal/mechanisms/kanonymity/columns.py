"""Columns as the k-anonymity family needs them: a described table comes in, values, distances and centres leave.

Each kind of column has its own way to measure distances and its own middle; a new kind is one more entry of KINDS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.display import internal
from shoal.errors import InputError, OptionError
from shoal.mechanisms.kanonymity.algorithms.embedding import coordinates_of_values, place_in_tree
from shoal.mechanisms.kanonymity.methods import GroupMethod
from shoal.mechanisms.method import Method
from shoal.mechanisms.strata import units_of
from shoal.partition import Partition, mdav, normalise
from shoal.partition.multivariate import mdav_mixed
from shoal.text import Message

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of column means to the family.

    Attributes:
        values: the column as numbers, in input order: itself, places in an order, days, or codes of concepts; and how
            many of them had to be clipped to the domain.
        coordinates: the same records as points between which Euclidean distances are taken.
        centre: one number per cluster that stands for its members, by their survey weights where there are any; a
            group of values too, where that is allowed.
        ordered: values next to each other are similar.
    """

    values: Callable[[Described, str], tuple[Values, int]]
    coordinates: Callable[[Described, str, Values, str], Values]
    centre: Callable[[Described, str, Values, Partition, bool, Values | None], Values]
    ordered: bool = True


def _plain(described: Described, name: str) -> tuple[Values, int]:
    """The column's own values inside its domain; only those that had to be clipped are changed."""
    clipped = described.positions(name)[1]
    lattice = described.lattices[name]
    return np.clip(described.original(name), float(lattice.lo), float(lattice.hi)), clipped


def _codes(described: Described, name: str) -> tuple[Values, int]:
    return described.codes(name).astype(np.float64), 0


def _scaled(described: Described, name: str, values: Values, how: str) -> Values:
    return normalise(values, how, [float(described.lattices[name].width)])


def _semantic(described: Described, name: str, values: Values, how: str) -> Values:
    tree = described.attribute(name).tree
    assert tree is not None
    return coordinates_of_values(tree, values.astype(np.int64))


def _mean(
    described: Described,
    name: str,
    values: Values,
    partition: Partition,
    generalise: bool,
    weights: Values | None,
) -> Values:
    if weights is None:
        return partition.centroids(values)
    totals = np.bincount(partition.labels, weights, minlength=len(partition))
    # about the plain mean, so that equal values stay what they are
    middle = partition.centroids(values)
    apart = np.bincount(
        partition.labels, weights * (values - middle[partition.labels]), minlength=len(partition)
    )
    return np.asarray(middle + apart / totals)


def _median(
    described: Described,
    name: str,
    values: Values,
    partition: Partition,
    generalise: bool,
    weights: Values | None,
) -> Values:
    """The lower median: one of the values that are there."""
    order = np.lexsort((values, partition.labels))
    starts = np.cumsum(partition.sizes) - partition.sizes
    if weights is None:
        return np.asarray(values[order[starts + (partition.sizes - 1) // 2]])
    total = np.cumsum(weights[order])
    before = total[starts] - weights[order[starts]]
    half = before + np.bincount(partition.labels, weights, minlength=len(partition)) / 2.0
    place = np.searchsorted(total, half * (1.0 - 1e-12))
    return np.asarray(values[order[np.clip(place, starts, starts + partition.sizes - 1)]])


def _least_marginal(
    described: Described,
    name: str,
    values: Values,
    partition: Partition,
    generalise: bool,
    weights: Values | None,
) -> Values:
    # names have no middle between them that weights could move
    tree = described.attribute(name).tree
    assert tree is not None
    concepts = tree.centroids(
        partition.labels, values.astype(np.int64), len(partition), generalise=generalise
    )
    return concepts.astype(np.float64)


# by what stands for several values of a kind of column
KINDS: Mapping[str, Kind] = {
    "mean": Kind(_plain, _scaled, _mean),
    "median": Kind(_plain, _scaled, _median),
    "concept": Kind(_codes, _semantic, _least_marginal, ordered=False),
}


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The released columns, every one as numbers in input order, and how many values were clipped.

    Attributes:
        normalise: how numbers are scaled before distances are taken.
        generalise: groups of values can stand for several of them.
        weights: survey weights of the records, where the schema has a weight.
        units: the person of each record, by number; None where every record is a person of its own.
    """

    described: Described
    values: Mapping[str, Values]
    clipped: Mapping[str, int]
    normalise: str = "domain"
    generalise: bool = False
    weights: Values | None = None
    units: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        return int(next(iter(self.values.values())).size)

    def rows(self, which: NDArray[np.int64]) -> Columns:
        """Some of the records."""
        return replace(
            self,
            values={name: values[which] for name, values in self.values.items()},
            weights=None if self.weights is None else self.weights[which],
            units=None if self.units is None else self.units[which],
        )

    def kind(self, name: str) -> Kind:
        return KINDS[self.described.attribute(name).kind_facts.middle]

    def coordinates(self, name: str) -> Values:
        """A column as points, shape (n, d), on a scale that all columns share."""
        return self.kind(name).coordinates(self.described, name, self.values[name], self.normalise)

    def points(self, names: Sequence[str]) -> Values:
        """Several columns as points; one column of zeros where there are none, so that all records are alike."""
        if not names:
            return np.zeros((self.n, 1))
        return np.hstack([self.coordinates(name) for name in names])

    def clusters(
        self,
        names: Sequence[str],
        k: int,
        owners: Mapping[str, NDArray[np.int64]] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Partition:
        """Clusters of records that are close in some columns, by MDAV.

        `owners` says whose value each record has of the columns that were swapped already.
        """
        moved = owners or {}
        nominal = [name for name in names if not self.kind(name).ordered]
        plain = [name for name in names if name not in nominal]
        points = [_in_order(self.coordinates(name), moved.get(name)) for name in plain]
        if not nominal:
            return mdav(np.hstack(points) if points else self.points(()), k, progress=progress)
        codes = [_in_order(self.values[name], moved.get(name)).astype(np.int64) for name in nominal]
        trees = [tree for name in nominal if (tree := self.described.attribute(name).tree) is not None]
        return mdav_mixed(np.hstack(points) if points else None, codes, trees, k, progress)

    def ranks(self, name: str) -> Values:
        """A column as numbers in an order where similar values are close: its own, or that of its taxonomy."""
        if self.kind(name).ordered:
            return self.values[name]
        tree = self.described.attribute(name).tree
        assert tree is not None
        return place_in_tree(tree)[self.values[name].astype(np.int64)]

    def centres(self, name: str, partition: Partition) -> Values:
        """The column with every value replaced by the middle of its cluster."""
        middle = self.kind(name).centre(
            self.described, name, self.values[name], partition, self.generalise, self.weights
        )
        return np.asarray(middle[partition.labels])


def _in_order(values: Values, order: NDArray[np.int64] | None) -> Values:
    return values if order is None else values[order]


def with_role(described: Described, role: str) -> tuple[str, ...]:
    """The released columns that have a role in the schema."""
    return tuple(attribute.name for attribute in described.attributes if attribute.role == role)


def quasi_identifiers(described: Described) -> tuple[str, ...]:
    """What an intruder may know by the schema; everything where the schema names nothing."""
    return with_role(described, "quasi-identifier") or described.columns


def columns_of(described: Described, normalise: str = "domain", *, generalise: bool = False) -> Columns:
    """The released columns, read once."""
    read = {
        name: KINDS[described.attribute(name).kind_facts.middle].values(described, name)
        for name in described.columns
    }
    return Columns(
        described,
        {name: values for name, (values, _) in read.items()},
        {name: clipped for name, (_, clipped) in read.items()},
        normalise,
        generalise,
        survey_weights(described),
        units_of(described),
    )


def weight_name(described: Described) -> str | None:
    """The column of survey weights, where the schema has one that the records bring along."""
    # a column that only looks like a weight changes nothing
    declared = described.schema is not None and described.circumstances.weight
    weight = described.schema.weight if described.schema is not None and declared else None
    # a raked weight is made from released rows and public totals alone
    if weight is None or weight.release == "raked":
        return None
    return weight.name if weight.name in described.table.names else None


def refuse_masked_weight(method: Method, described: Described) -> None:
    """Refuse to release a survey weight as one more column: the family leaves most columns as they are."""
    weight = described.schema.weight if described.schema is not None else None
    if weight is not None and described.circumstances.weight and weight.release == "masked":
        raise OptionError(
            "column-method-would-release-masked-weight",
            column=weight.name,
            weight=weight.name,
            method=method.name,
        )


def survey_weights(described: Described) -> Values | None:
    """The survey weights of the records that take part, None without any.

    Raises:
        InputError: one is missing or not above 0.
    """
    name = weight_name(described)
    if name is None:
        return None
    values = np.asarray(described.table.numeric(name), dtype=np.float64)
    kept = np.arange(values.size) if described.kept is None else described.kept
    wrong = ~(values[kept] > 0) | np.isinf(values[kept])
    if wrong.any():
        row = int(kept[int(np.argmax(wrong))])
        raise InputError("weight-above-0-row", row=row + 1, name=name, values=values[row])
    return values[kept]


def named(partition: Partition, names: Sequence[str]) -> Partition:
    """The partition with the columns it is about."""
    return replace(partition, columns=tuple(names))


def diversity_term(code: str, method: GroupMethod, described: Described) -> Message:
    """What a statement says about different values of a group; each is of another person where persons are counted."""
    of_persons = "" if described.circumstances.unit is None else "-of-persons"
    return Message.of(f"{code}{of_persons}", l=method.l)


def even_term(k: int | str) -> Message:
    """What a statement says where values of a group have lost their owner, and persons are counted."""
    return Message.of("even-rows", k=k)


def or_none(names: Sequence[str]) -> tuple[str | Message, ...]:
    """Column names for a sentence that says so where there are none."""
    return tuple(names) or (Message("no-value"),)


def confidential_columns(method: Method, described: Described) -> tuple[str, ...]:
    """What is to be kept from an intruder by the schema, or an error where that is nothing."""
    found = with_role(described, "confidential")
    if not found:
        raise OptionError("method-needs-confidential-column", option="method", method=method.name)
    return found
