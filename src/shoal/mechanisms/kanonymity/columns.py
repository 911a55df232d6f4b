"""Columns of the k-anonymity family: roles, coordinates for distances, bucket labels, and checks of the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described, Schema, day_text
from shoal.display import internal
from shoal.errors import ClaimError, InputError, OptionError, closest
from shoal.io import Table
from shoal.mechanisms.kanonymity.grouping_algorithms import lacks_persons
from shoal.mechanisms.kanonymity.methods import GroupMethod
from shoal.mechanisms.method import Method
from shoal.mechanisms.strata import Stratum, units_of
from shoal.numbers import Floats, Integers
from shoal.partition import (
    Partition,
    count_groups,
    distinct_values,
    mdav,
    mdav_mixed,
    normalise,
    places,
    ratio_distances,
    row_groups,
    units_of_groups,
    vmdav,
    within,
)
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation import Check
    from shoal.taxonomy import Taxonomy


# coordinates that add less than this to any squared distance are omitted
_NEGLIGIBLE = 1e-12


def embed(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points with the given squared Euclidean distances, by classical scaling.

    The semantic distance is log2(1 + J) with J the share of ancestors that two concepts do not share. J is of
    negative type and log2(1 + x) preserves that, so such points exist for every taxonomy.

    Args:
        distances: symmetric, zero on the diagonal.

    >>> points = embed(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))
    >>> float(((points[0] - points[2]) ** 2).sum().round(9))
    1.0
    """
    size = distances.shape[0]
    centring = np.eye(size) - 1.0 / size
    strengths, directions = np.linalg.eigh(-0.5 * centring @ distances @ centring)
    kept = strengths > _NEGLIGIBLE
    return np.asarray(directions[:, kept] * np.sqrt(strengths[kept]))


def coordinates_of_values(tree: Taxonomy, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each record's value as a point; squared distances are semantic ones, with the two ends of the domain 1 apart.

    >>> from shoal.taxonomy import Taxonomy
    >>> tree = Taxonomy.flat(["a", "b", "c"])
    >>> points = coordinates_of_values(tree, tree.encode(["a", "b", "a"]))
    >>> ((points - points[0]) ** 2).sum(axis=1).round(9).tolist()
    [0.0, 1.0, 0.0]
    """
    present, place = np.unique(codes, return_inverse=True)
    distances = tree.distances(present[:, np.newaxis], present)
    points = embed(distances / (tree.width or 1.0))
    if points.shape[1] == 0:
        return np.zeros((codes.size, 1))
    return points[place]


def place_in_tree(tree: Taxonomy) -> NDArray[np.float64]:
    """Index of each concept in a depth-first walk of the tree: values of one branch are neighbours.

    >>> from shoal.taxonomy import Taxonomy
    >>> tree = Taxonomy.from_dict({"*": {"b": ["x"], "a": ["z", "y"]}})
    >>> [tree.labels[code] for code in np.argsort(place_in_tree(tree))]
    ['*', 'a', 'y', 'z', 'b', 'x']
    """
    paths = [tree.ancestors(code)[::-1] for code in range(tree.size)]
    places = np.empty(tree.size, dtype=np.float64)
    places[sorted(range(tree.size), key=lambda code: paths[code])] = np.arange(tree.size)
    return places


@dataclass(frozen=True, slots=True)
class ColumnRole:
    """Operations of the family on a kind of column.

    Attributes:
        values: the column as numbers, in input order: the values, places in an order, days, or codes of
            concepts; and the number of values clipped to the domain.
        coordinates: the same records as points for Euclidean distances.
        centre: one number per cluster that represents its members, by their survey weights if there are any;
            possibly a group of values, if that is allowed.
        ordered: adjacent values are similar.
    """

    values: Callable[[Described, str], tuple[Floats, int]]
    coordinates: Callable[[Described, str, Floats, str], Floats]
    centre: Callable[[Described, str, Floats, Partition, bool, Floats | None], Floats]
    ordered: bool = True


def _plain(described: Described, name: str) -> tuple[Floats, int]:
    """The column's values inside its domain; only clipped ones are changed."""
    clipped = described.positions(name)[1]
    lattice = described.lattices[name]
    return np.clip(described.original(name), float(lattice.lo), float(lattice.hi)), clipped


def _codes(described: Described, name: str) -> tuple[Floats, int]:
    return described.codes(name).astype(np.float64), 0


def _scaled(described: Described, name: str, values: Floats, how: str) -> Floats:
    return normalise(values, how, [float(described.lattices[name].width)])


def _semantic(described: Described, name: str, values: Floats, how: str) -> Floats:
    tree = described.attribute(name).tree
    assert tree is not None
    return coordinates_of_values(tree, values.astype(np.int64))


def _mean(
    described: Described,
    name: str,
    values: Floats,
    partition: Partition,
    generalise: bool,
    weights: Floats | None,
) -> Floats:
    if weights is None:
        return partition.centroids(values)
    totals = np.bincount(partition.labels, weights, minlength=len(partition))
    # about the plain mean, so that equal values are unchanged
    middle = partition.centroids(values)
    apart = np.bincount(
        partition.labels, weights * (values - middle[partition.labels]), minlength=len(partition)
    )
    return np.asarray(middle + apart / totals)


def _median(
    described: Described,
    name: str,
    values: Floats,
    partition: Partition,
    generalise: bool,
    weights: Floats | None,
) -> Floats:
    """The lower median: one of the existing values."""
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
    values: Floats,
    partition: Partition,
    generalise: bool,
    weights: Floats | None,
) -> Floats:
    # names have no middle between them that weights could move
    tree = described.attribute(name).tree
    assert tree is not None
    concepts = tree.centroids(
        partition.labels, values.astype(np.int64), len(partition), generalise=generalise
    )
    return concepts.astype(np.float64)


# by the kind of representative of several values
KINDS: Mapping[str, ColumnRole] = {
    "mean": ColumnRole(_plain, _scaled, _mean),
    "median": ColumnRole(_plain, _scaled, _median),
    "concept": ColumnRole(_codes, _semantic, _least_marginal, ordered=False),
}


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The released columns, each as numbers in input order, and the number of clipped values.

    Attributes:
        normalise: the scaling of numbers for distances.
        generalise: groups of values may represent several values.
        weights: survey weights of the records, if the schema has a weight.
        units: the person of each record, by number; None if every record is a separate person.
    """

    described: Described
    values: Mapping[str, Floats]
    clipped: Mapping[str, int]
    normalise: str = "domain"
    generalise: bool = False
    weights: Floats | None = None
    units: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        return int(next(iter(self.values.values())).size)

    def rows(self, which: NDArray[np.int64]) -> Columns:
        """The columns with only some of the records."""
        return replace(
            self,
            values={name: values[which] for name, values in self.values.items()},
            weights=None if self.weights is None else self.weights[which],
            units=None if self.units is None else self.units[which],
        )

    def kind(self, name: str) -> ColumnRole:
        return KINDS[self.described.attribute(name).kind_facts.middle]

    def coordinates(self, name: str) -> Floats:
        """A column as points, shape (n, d), on a common scale of all columns."""
        return self.kind(name).coordinates(self.described, name, self.values[name], self.normalise)

    def points(self, names: Sequence[str]) -> Floats:
        """Several columns as points; a column of zeros if there are none, so that all records are equal."""
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

        `owners` gives the owner of each record's values in columns swapped earlier.
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

    def ranks(self, name: str) -> Floats:
        """A column as numbers in an order in which similar values are close: its own, or that of its taxonomy."""
        if self.kind(name).ordered:
            return self.values[name]
        tree = self.described.attribute(name).tree
        assert tree is not None
        return place_in_tree(tree)[self.values[name].astype(np.int64)]

    def centres(self, name: str, partition: Partition) -> Floats:
        """The column with every value replaced by the middle of its cluster."""
        middle = self.kind(name).centre(
            self.described, name, self.values[name], partition, self.generalise, self.weights
        )
        return np.asarray(middle[partition.labels])


def _in_order(values: Floats, order: NDArray[np.int64] | None) -> Floats:
    return values if order is None else values[order]


def with_role(described: Described, role: str) -> tuple[str, ...]:
    """The released columns with a role in the schema."""
    return tuple(attribute.name for attribute in described.attributes if attribute.role == role)


def quasi_identifiers(described: Described) -> tuple[str, ...]:
    """What an intruder may know according to the schema; all columns if the schema names none."""
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
    """The column of survey weights, if the schema has one in the table."""
    # a column that only looks like a weight has no effect
    declared = described.schema is not None and described.provenance.weight
    weight = described.schema.weight if described.schema is not None and declared else None
    # a raked weight is computed from released rows and public totals alone
    if weight is None or weight.release == "raked":
        return None
    return weight.name if weight.name in described.table.names else None


def refuse_masked_weight(method: Method, described: Described) -> None:
    """Refuse to release a survey weight as one more column: the family leaves most columns unchanged."""
    weight = described.schema.weight if described.schema is not None else None
    if weight is not None and described.provenance.weight and weight.release == "masked":
        raise OptionError(
            "column-method-would-release-masked-weight",
            column=weight.name,
            weight=weight.name,
            method=method.name,
        )


def survey_weights(described: Described) -> Floats | None:
    """The survey weights of the records that take part, None without weights.

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
    """The partition with the names of its columns."""
    return replace(partition, columns=tuple(names))


def diversity_term(code: str, method: GroupMethod, described: Described) -> Message:
    """A statement message about distinct values of a group, each of another person if persons are counted."""
    of_persons = "" if described.provenance.unit is None else "-of-persons"
    return Message.of(f"{code}{of_persons}", l=method.l)


def even_term(k: int | str) -> Message:
    """A statement message about swapped values in a group, if persons are counted."""
    return Message.of("even-rows", k=k)


def or_none(names: Sequence[str]) -> tuple[str | Message, ...]:
    """Column names for a sentence, or a message that there are none."""
    return tuple(names) or (Message("no-value"),)


def confidential_columns(method: Method, described: Described) -> tuple[str, ...]:
    """The sensitive columns by the schema; raises if there are none."""
    found = with_role(described, "confidential")
    if not found:
        raise OptionError("method-needs-confidential-column", option="method", method=method.name)
    return found


def bucket_words(
    columns: Columns, names: Sequence[str], buckets: NDArray[np.int64]
) -> dict[str, NDArray[np.object_]]:
    """The bucket of each record's sensitive values, column by column.

    A bucket of an ordered column is written `least to greatest`, that of a nominal column `a | b | c`.
    """
    return {name: _words(columns, name, buckets)[buckets] for name in names}


def _words(columns: Columns, name: str, buckets: NDArray[np.int64]) -> NDArray[np.object_]:
    values = columns.values[name]
    words = np.empty(int(buckets.max()) + 1, dtype=object)
    for bucket in range(words.size):
        own = np.unique(values[buckets == bucket])
        if not columns.kind(name).ordered:
            words[bucket] = " | ".join(_shown(columns, name, value) for value in own.tolist())
        elif own.size == 1:
            words[bucket] = _shown(columns, name, float(own[0]))
        else:
            words[bucket] = (
                f"{_shown(columns, name, float(own[0]))} to {_shown(columns, name, float(own[-1]))}"
            )
    return words


def _shown(columns: Columns, name: str, value: float) -> str:
    attribute = columns.described.attribute(name)
    if attribute.kind_facts.days:
        return day_text(round(value))
    if attribute.kind_facts.listed:
        return attribute.ordered[round(value)]
    if not attribute.kind_facts.ordered:
        assert attribute.tree is not None
        return attribute.tree.labels[round(value)]
    return f"{value:.15g}"


def reached(
    check: Callable[..., Check],
    table: Table,
    quasi: Sequence[str],
    confidential: Sequence[str],
    described: Described,
    *,
    k: int,
    l: int | None = None,  # noqa: E741
    t_emd: float | None = None,
) -> None:
    """Measure the anonymity levels of a table that was read back from disk.

    Raises:
        ClaimError: a level is not reached; the table must not be published.
    """
    found = check(
        table,
        quasi,
        confidential if l is not None or t_emd is not None else [],
        schema=Schema(described.attributes),
        k=k,
        l=l,
        t_emd=t_emd,
    )
    if not found.met:
        missed = tuple(requirement.words for requirement in found.requirements if not requirement.met)
        raise _broken("levels-missed", missed=missed)


def linked_tables_hold(
    quasi: Table,
    confidential: Table,
    names: Sequence[str],
    k: int,
    l: int | None,  # noqa: E741
    t: int | None,
) -> None:
    """Measure two linked tables that were read back from disk: group sizes, values of each group, ratios.

    Raises:
        ClaimError: a level is not reached, or the tables do not fit together.
    """
    from shoal.partition import column_codes

    group, count = confidential.names[0], confidential.names[-1]
    members = np.bincount(quasi.numeric(group).astype(np.int64))
    groups, counts = (confidential.numeric(name).astype(np.int64) for name in (group, count))
    if not np.array_equal(np.bincount(groups, weights=counts, minlength=members.size), members):
        raise _broken("tables-count-differently")
    least = int(members[members > 0].min())
    if least < k:
        raise _broken("level-missed", level="k", asked=k, found=least)
    records = np.repeat(np.unique(groups, return_inverse=True)[1], counts)
    columns = [column_codes(confidential, name) for name in names]
    if l is not None:
        for name, codes in zip(names, columns, strict=True):
            found = int(distinct_values(count_groups(records, _numbered(np.repeat(codes, counts)))).min())
            if found < l:
                raise _broken("level-missed-of", level="l", asked=l, column=name, found=found)
    if t is not None:
        combined = np.repeat(row_groups(columns).labels, counts)
        ratio = float(ratio_distances(count_groups(records, _numbered(combined))).max())
        if not within(ratio, t):
            raise _broken("level-missed", level="t", asked=t, found=f"{ratio:.6g}")


def groups_hold(partition: Partition, units: NDArray[np.int64] | None, k: int, *, even: bool) -> None:
    """Count the persons of groups before values are swapped in them, or released by group.

    Raises:
        ClaimError: a group has too few persons, or too many rows of one; the table must not be published.
    """
    if units is not None and lacks_persons(units, k, even=even)(partition).any():
        raise ClaimError("group-would-not-hold-persons-claim", k=k)


def persons_hold(
    columns: Sequence[NDArray[np.float64] | NDArray[np.int64]],
    strata: Sequence[Stratum],
    units: NDArray[np.int64],
    k: int,
) -> None:
    """Count the persons behind every combination of values to be released, in each stratum.

    The owner of a row is not in the release, so this is measured before it is written.

    Raises:
        ClaimError: fewer than k persons share a combination; the table must not be published.
    """
    for stratum in strata:
        groups = row_groups([column[stratum.rows] for column in columns])
        found = int(units_of_groups(groups.labels, units[stratum.rows]).min())
        if found < k:
            raise ClaimError("combination-quasi-identifiers-would-shared-persons", found=found, k=k)


def _numbered(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _broken(code: str, **facts: Any) -> ClaimError:
    return ClaimError("written-table-read-back-does-not", missed=Message(code, facts))


def check_unit_columns(
    method: GroupMethod, described: Described, classes: Sequence[Stratum], least: int, labels: Any = None
) -> None:
    """Refuse attributes of a unit that differ within one, and units that cannot stay whole.

    Args:
        classes: the records among which groups are made.
        least: the largest number of units that a group needs.
        labels: the caller's clusters.
    """
    if method.unit_columns is None:
        return
    unit = described.provenance.unit
    if unit is None:
        raise OptionError("unit-columns-need-a-unit", option="unit_columns")
    for name in method.unit_columns:
        if name not in described.columns:
            raise OptionError(
                "setting-names-column-not-released",
                column=name,
                option="unit_columns",
                hint=closest(name, described.columns),
            )
    units = units_of(described)
    if units is None:
        return
    first = first_rows(units)
    rows = np.arange(described.n) if described.kept is None else described.kept
    for name in method.unit_columns:
        positions, _ = described.positions(name)
        absent = described.gaps.get(name, np.zeros(described.n, dtype=np.bool_))
        differs = (positions != positions[first][units]) | (absent != absent[first][units])
        if differs.any():
            row = int(rows[np.argmax(differs)]) + 1
            raise InputError("column-differs-within-unit", column=name, unit=unit, row=row)
    weights = survey_weights(described)
    if weights is not None and (weights != weights[first][units]).any():
        raise OptionError("weight-differs-within-unit", option="unit_columns", unit=unit)
    for own in classes:
        inside = np.zeros(described.n, dtype=np.bool_)
        inside[own.rows] = True
        if (inside != inside[first][units]).any():
            raise OptionError("unit-in-several-strata", option="strata", unit=unit)
        if np.unique(units[own.rows]).size < least:
            raise OptionError(
                "fewer-units-than-k",
                option="k",
                unit=unit,
                least=least,
                where=own.where or Message("the-table"),
            )
    if labels is not None and method.partition == "given":
        found = np.asarray(labels)[rows]
        if (found != found[first][units]).any():
            raise OptionError("labels-divide-a-unit", option="labels", unit=unit)


def first_rows(units: Integers) -> Integers:
    """The first row of each unit."""
    return np.unique(units, return_index=True)[1].astype(np.int64)


def whole_units(method: GroupMethod, columns: Columns, names: Sequence[str], least: int) -> Partition | None:
    """Groups of at least k units close in some columns, by the mean of their rows; None if rows are grouped.

    All rows of a unit get the group of their unit, so a group has at least k units, and rows of no other.

    Cost: that of grouping the units.
    """
    if method.unit_columns is None or columns.units is None or method.partition == "given":
        return None
    units = places(columns.units)
    points = _means(columns.points(names), units)
    made = vmdav(points, least, float(method.gamma)) if method.partition == "vmdav" else mdav(points, least)
    return _of_rows(made.labels, units)


def _means(values: NDArray[np.float64], units: Integers) -> NDArray[np.float64]:
    sizes = np.bincount(units)
    table = values if values.ndim > 1 else values[:, np.newaxis]
    found = np.stack([np.bincount(units, column) / sizes for column in table.T], axis=1)
    # the rows of a unit that are equal have exactly their value as their mean
    first = table[first_rows(units)]
    equal = np.ones(found.shape, dtype=np.bool_)
    for place, column in enumerate(table.T):
        np.logical_and.at(equal[:, place], units, column == first[units, place])
    found = np.where(equal, first, found)
    return found if values.ndim > 1 else found[:, 0]


def _of_rows(labels: Integers, units: Integers) -> Partition:
    """A partition of units as one of their rows."""
    own = labels[units]
    return Partition(own, np.bincount(own, minlength=int(labels.max()) + 1))


def table_of_units(columns: Columns) -> tuple[Columns, Integers, Integers]:
    """One row for each unit, the first row of each, and the unit of each row.

    Columns that differ within a unit get the mean of its rows, or for names the first of their order.
    """
    assert columns.units is not None
    units = places(columns.units)
    first = first_rows(units)
    values = {}
    for name, own in columns.values.items():
        if columns.kind(name).ordered:
            values[name] = _means(own, units)
        else:
            least = np.full(first.size, np.inf)
            np.minimum.at(least, units, own)
            values[name] = least
    weights = None if columns.weights is None else columns.weights[first]
    return replace(columns, values=values, weights=weights, units=None), first, units


def classes_of_units(classes: Sequence[Stratum], first: Integers, units: Integers) -> list[Stratum]:
    """The units of each class of rows; every unit is in one class."""
    place = np.zeros(units.size, dtype=np.int64)
    for number, one in enumerate(classes):
        place[one.rows] = number
    return [replace(one, rows=np.flatnonzero(place[first] == number)) for number, one in enumerate(classes)]


def rows_of_units(owners: Integers, first: Integers, units: Integers) -> Integers:
    """For each row, a row of the unit whose value its unit got."""
    return first[owners[units]]


def groups_of_rows(group: Partition, units: Integers) -> Partition:
    """A partition of units as one of their rows, for the internal report."""
    return replace(_of_rows(group.labels, units), columns=group.columns)
