"""tree-dp: synthetic rows from a private partition tree over several columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.errors import OptionError
from shoal.mechanisms.divided import (
    check_in_strata,
    check_units,
    plan_in_strata,
    plan_units,
    run_in_strata,
    run_units,
)
from shoal.mechanisms.method import Learned, Rebuilt, gap_terms, noisy_numbers, numbers_terms
from shoal.mechanisms.rules import Bins, keeping_rules, possible_cells
from shoal.mechanisms.tree.intervals import (
    BY_ROWS,
    ROWS,
    CutIntervals,
    Layout,
    Level,
    Purposes,
    Purse,
    codes_of,
    consistent_counts,
    halved,
    intervals_of,
    lay_out,
    measure_intervals,
    nearest_counts,
    noisy,
    possible_layouts,
    rake,
    rows_share,
    scale_of,
    whole_counts,
)
from shoal.mechanisms.tree.method import TreeDP
from shoal.mechanisms.tree.sample import (
    DrawnTree,
    RowBlock,
    blocks_of,
    draw_block,
    draw_concepts,
    grow,
    sort_into,
)
from shoal.noise import Source
from shoal.numbers import Bools, Floats, Integers
from shoal.privacy import Accountant, Measurements, Plan, RecordSum
from shoal.progress import Progress
from shoal.text import Message


def measure_values(
    positions: Integers, points: int, total: float, layout: Layout, purse: Purse
) -> tuple[CutIntervals, NDArray[np.uint16]]:
    """Spend one attribute's share on a count of each of its `points` values.

    Returns:
        The intervals, and for every record the number of its interval (private).

    Guarantee:
        A replaced record changes two counts by one, an added one one: noise of scale 2/share (1/share when adding)
        costs the share. Counts and edges are functions of the noisy counts.

    Cost:
        One pass over the positions.

    Reference:
        docs/proofs/trees.md#tree, section 3.
    """
    exact = np.bincount(positions, minlength=points).astype(np.int64)
    found = values_of(exact, total, layout, purse)
    return found, codes_of(positions, found.edges, points - 1)


def values_of(exact: Integers, total: float, layout: Layout, purse: Purse) -> CutIntervals:
    """`measure_values` from the exact count of each value."""
    points = exact.size
    spend = purse.spend(purse.purposes.values, layout.attribute, over="values")
    counts = nearest_counts(noisy(exact, layout.moved, spend, purse.sums("count")), total)
    gap = layout.gap > 0
    cuts = len(layout.cuts) + gap
    edges = halved(counts, len(layout.cuts), [0, *([points - 1] if gap else []), points])
    running = np.concatenate(([0.0], np.cumsum(counts)))
    by_level = [np.diff(running[edges[:: 1 << (cuts - level)]]) for level in range(cuts + 1)]
    return CutIntervals(edges, by_level, None, None, points=counts, gap=gap)


# Prior standard deviation of a child's share around that of independent attributes.
_DEPENDENCE = 0.6
# Above this noise on the number of rows, the table could fill the memory.
_MOST_ROWS_NOISE = 100_000


def plan(method: TreeDP, described: Described) -> Plan:
    """Split ε among cut points, counts and sums, level by level, by the public number of rows.

    Under add-remove with a noisy number of rows that number determines the levels, so only stages are listed.
    """
    if method.strata:
        return plan_in_strata(method, described)
    if method.unit_columns is not None:
        return plan_units(method, described)
    number = len(described.columns)
    rows = _public_rows(method, described)
    counting = rows_share(method)
    budget = method.budget - counting
    if rows is None:
        # the stages' totals differ with the depth, which follows from the noisy number of rows
        said = (Message("tree-by-noisy-rows"), *gap_terms(described), *numbers_terms(described))
        return Plan(
            {ROWS: counting, BY_ROWS: budget}, dict.fromkeys(described.columns, budget / number), said, {}
        )
    layout = lay_out(method, number, rows, budget)
    counted = _counted(described, layout, rows)
    conditions = [
        Message.of(
            "tree-by-rows",
            levels=len(layout.leaves),
            cuts=len(layout.cuts),
            rows=rows,
            attributes=number,
        )
    ]
    if counted:
        conditions.append(Message.of("values-counted", columns=tuple(counted)))
    conditions += [*gap_terms(described), *numbers_terms(described)]
    shares = dict.fromkeys(described.columns, budget / number)
    return Plan(
        Purposes.of(layout, described, counted).reserved(),
        shares,
        tuple(conditions),
        _per_attribute(method, described, layout),
    )


def _per_attribute(method: TreeDP, described: Described, layout: Layout) -> Mapping[str, Fraction]:
    """The cost of a change in one attribute alone: its own share, and the counts of the tree over all attributes.

    Empty under add-remove, where neighbours differ by a whole record.
    """
    if method.adjacency.hides_size:
        return {}
    return dict.fromkeys(described.columns, layout.attribute + sum(layout.leaves, Fraction(0)))


def rows_noise(method: TreeDP) -> float:
    """The scale of the noise on a private number of rows, 0 for a public one."""
    share = rows_share(method)
    return float(scale_of(1, share)) if share else 0.0


def check(method: TreeDP, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise, for any drawn number of rows and any intervals."""
    if method.strata:
        check_in_strata(method, described)
        return
    if method.unit_columns is not None:
        check_units(method, described)
        return
    rows, number = _public_rows(method, described), len(described.columns)
    if rows is None:
        scale = rows_noise(method)
        if scale > _MOST_ROWS_NOISE:
            raise OptionError(
                "mechanism-epsilon-too-small-draw-number-rows",
                budget=float(method.unit_epsilon or method.budget),
                scale=scale,
            )
        layouts = possible_layouts(method, number, method.budget - rows_share(method))
    else:
        layouts = [lay_out(method, number, rows, method.budget)]
    for layout in layouts:
        counted = () if rows is None else _counted(described, layout, rows)
        for column in described.columns:
            points = tree_points(described, column)
            plain = (
                column not in described.nominal and column not in counted and points > 1 << len(layout.cuts)
            )
            own = layout.for_gaps if column in described.flagged else layout
            try:
                own.check(points - 1 if plain else None)
            except OptionError as error:
                raise OptionError("of-column", column=column, reason=error) from None


@dataclass(frozen=True, slots=True, eq=False)
class KnownAttribute:
    """What is known before an attribute is measured, public or charged.

    Attributes:
        rows: number of rows to release.
        counted: the attributes whose values are counted individually.
        purposes: the purposes its parts are charged to.
    """

    rows: int
    layout: Layout
    counted: tuple[str, ...]
    purposes: Purposes


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class TreeModel:
    """Everything rows are drawn from: noisy, so drawing repeatedly is post-processing."""

    intervals: tuple[CutIntervals, ...]
    tree: DrawnTree
    per_leaf: NDArray[np.int64]
    rebuild: str
    generalise: bool


# a saved model consists of these
MODEL_PARTS = (DrawnTree, CutIntervals, TreeModel)


def run(
    method: TreeDP,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Draw cut points, count and sum between them, count the leaves of the tree over all attributes, draw rows.

    Guarantee:
        ε-DP of the original records, by adaptive composition of the stages: docs/proofs/trees.md#tree.

    Cost:
        A sort per attribute, one pass over the records per level of the tree, a sort of the rows per attribute.
    """
    if method.strata:
        return run_in_strata(method, described, account, progress)
    if method.unit_columns is not None:
        return run_units(method, described, account, progress)
    learned = learn(method, described, plan, account, progress)
    source = account.free("rows drawn from noisy counts")
    return learned.rebuilt(draw(method, learned, described, learned.rows, source, progress))


def learn(
    method: TreeDP, described: Described, plan: Plan, account: Accountant, progress: Progress
) -> Learned:
    """Draw cut points, count and sum between them, and count the leaves; the guarantee and cost of `run`."""
    columns = described.columns
    known = settle_rows(method, described, account)
    layout, rows = known.layout, known.rows
    steps = 2 * len(columns) + 1
    measured: list[CutIntervals] = []
    codes = np.empty((len(columns), described.n), dtype=np.uint16)
    clipped: dict[str, int] = {}
    for number, column in enumerate(columns):
        positions, clipped[column] = tree_positions(described, column)
        points, own = tree_points(described, column), own_layout(described, column, known)
        purse = Purse(account, known.purposes, column, number)
        if column in known.counted:
            found, codes[number] = measure_values(positions, points, float(rows), own, purse)
        else:
            found, codes[number] = measure_intervals(positions, points - 1, float(rows), own, purse)
        measured.append(found)
        progress("cutting attributes", number + 1, steps)
    tree = grown(measured, layout)
    exact = leaves_of(tree, codes, measured)
    cells = noisy_leaves(tree, exact, measured, known, account, described)
    progress("counting leaves", len(columns) + 1, steps)
    model = TreeModel(tuple(measured), tree, whole_counts(cells, rows), method.rebuild, method.generalise)
    internal = {"values_clipped": clipped, "rows_released": rows, "clusters": []}
    return Learned(model, rows, internal, (), tree_numbers(described, account, rows))


def draw(
    method: TreeDP,
    learned: Learned,
    described: Described,
    rows: int,
    source: Source,
    progress: Progress,
) -> dict[str, Floats]:
    """Rows drawn from a model, unrounded; post-processing."""
    model: TreeModel = learned.model
    if rows != learned.rows:
        model = replace(model, per_leaf=whole_counts(model.per_leaf.astype(np.float64), rows))
    columns, steps = described.columns, 2 * len(described.columns) + 1
    drawn = []
    for number, block in enumerate(blocks_of(model.per_leaf)):
        drawn.append(draw_tree_values(model, described, block, number, source))
        progress("drawing rows", len(columns) + 2, steps)
    return {column: np.concatenate([one[column] for one in drawn]) for column in drawn[0]}


def tree_numbers(described: Described, account: Accountant, rows: int) -> Measurements | None:
    """The noisy numbers of a run, which may be published; the last position of a flagged column is "missing"."""
    return noisy_numbers(described, account, rows, (), [{} for _ in described.columns])


def settle_rows(method: TreeDP, described: Described, account: Accountant) -> KnownAttribute:
    """The number of rows, drawn if it is neither public nor declared, and the layout that follows from it.

    The reservation that depends on the number of rows is divided as the layout requires.
    """
    public, budget, number = _public_rows(method, described), method.budget, len(described.columns)
    if public is not None:
        layout = lay_out(method, number, public, budget)
        counted = _counted(described, layout, public)
        return KnownAttribute(public, layout, counted, Purposes.of(layout, described, counted))
    share = rows_share(method)
    count = noisy(np.array([described.n]), 1, account.spend(ROWS, share), RecordSum("rows"))
    rows = max(int(count[0]), 1)
    layout = lay_out(method, number, rows, budget - share, fitting=True)
    counted = _counted(described, layout, rows)
    purposes = Purposes.of(layout, described, counted)
    account.divide(BY_ROWS, purposes.reserved())
    return KnownAttribute(rows, layout, counted, purposes)


def tree_positions(described: Described, column: str) -> tuple[NDArray[np.int64], int]:
    """Positions of an attribute, the last of them for missing values if it has a "missing" state."""
    positions, clipped = described.positions(column)
    if column in described.flagged:
        positions = np.where(described.absent(column), tree_points(described, column) - 1, positions)
    return positions, clipped


def own_layout(described: Described, column: str, known: KnownAttribute) -> Layout:
    """The layout for one attribute."""
    layout = known.layout.for_gaps if column in described.flagged else known.layout
    return layout.for_names if column in described.nominal and column not in known.counted else layout


def measure_attribute(
    described: Described,
    column: str,
    positions: NDArray[np.int64],
    counts: NDArray[np.int64],
    known: KnownAttribute,
    account: Accountant,
) -> CutIntervals:
    """An attribute from the distinct positions of `tree_positions` and the number of records at each."""
    purse = Purse(account, known.purposes, column, described.columns.index(column))
    own, points = own_layout(described, column, known), tree_points(described, column)
    if column not in known.counted:
        return intervals_of(positions, counts, points - 1, float(known.rows), own, purse)
    exact = np.zeros(points, dtype=np.int64)
    exact[positions] = counts
    return values_of(exact, float(known.rows), own, purse)


def grown(measured: Sequence[CutIntervals], layout: Layout) -> DrawnTree:
    """The tree over all attributes; its shape is public once they are measured."""
    return grow([one.edges for one in measured], [one.counts for one in measured], len(layout.leaves))


def leaves_of(
    tree: DrawnTree, codes: NDArray[np.uint16], measured: Sequence[CutIntervals]
) -> NDArray[np.int64]:
    """Number of the given records in each leaf, from the indices of their intervals. Private."""
    leaf = sort_into(tree, codes, [len(one.counts) - 1 for one in measured])
    return np.bincount(leaf, minlength=tree.leaves).astype(np.int64)


def draw_tree_values(
    model: TreeModel, described: Described, block: RowBlock, place: int, source: Source
) -> Mapping[str, Floats]:
    """The rows of the block at an index among all blocks, column by column."""
    values: dict[str, NDArray[np.float64]] = {}
    for number, column in enumerate(described.columns):
        own = source.child("rows of a tree", number, place)
        found = model.intervals[number]
        positions = draw_block(number, found, model.tree, block, model.rebuild, own)
        lattice, taxonomy = described.lattices[column], described.tree(column)
        if taxonomy is None:
            drawn = np.clip(lattice.values(positions), float(lattice.lo), float(lattice.hi))
            if column in described.flagged:
                drawn[positions > lattice.steps] = np.nan
        else:
            drawn = draw_concepts(positions, found, taxonomy, generalise=model.generalise)
        values[column] = drawn
    return keeping_rules(described, values, source.child("rows of a tree", len(model.intervals), place))


def _public_rows(method: TreeDP, described: Described) -> int | None:
    """The number of rows to release, if it is public or declared."""
    if not method.adjacency.hides_size:
        return described.n
    return method.rows


def tree_points(described: Described, column: str) -> int:
    """Number of values an attribute can take, including "missing" if that is a separate state."""
    tree = described.tree(column)
    if tree is not None:
        return len(tree.domain)
    return described.lattices[column].steps + 1 + (column in described.flagged)


def _counted(described: Described, layout: Layout, rows: int) -> tuple[str, ...]:
    """The attributes whose values are counted individually, determined by public facts."""
    return tuple(
        column
        for column in described.columns
        if layout.counts_values(tree_points(described, column), rows, nominal=column in described.nominal)
    )


def possible_leaves(tree: DrawnTree, measured: Sequence[CutIntervals], described: Described) -> Bools | None:
    """The boxes in which rules of two columns allow records; None if they allow them in all."""
    columns = described.columns
    bins = [
        Bins(found.edges, gap=column in described.flagged)
        for column, found in zip(columns, measured, strict=True)
    ]
    found = np.ones(tree.leaves, dtype=np.bool_)
    for pair, cells in possible_cells(described, bins).items():
        inside = np.zeros([size + 1 for size in cells.shape], dtype=np.int64)
        inside[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
        ends = []
        for number in pair:
            span = 1 << (len(measured[number].counts) - 1 - tree.halved[:, number])
            ends.append((tree.place[:, number] * span, (tree.place[:, number] + 1) * span))
        (low, high), (left, right) = ends
        found &= inside[high, right] - inside[low, right] - inside[high, left] + inside[low, left] > 0
    return None if found.all() else found


def noisy_leaves(
    tree: DrawnTree,
    exact: NDArray[np.int64],
    measured: Sequence[CutIntervals],
    known: KnownAttribute,
    account: Accountant,
    described: Described,
) -> NDArray[np.float64]:
    """Noisy counts of all levels of the tree, made consistent with each other and with the attributes' intervals.

    Guarantee:
        Given the cut points the boxes are public and a record is in one box of a level: noise of scale 2/share
        (1/share when adding) costs each level its share. Boxes that rules forbid have no records and are 0.
    """
    layout, rows = known.layout, float(known.rows)
    if not layout.leaves:
        return np.array([rows])
    levels = []
    possible = possible_leaves(tree, measured, described)
    for level, share in enumerate(layout.leaves):
        counts = exact.reshape(2 << level, -1).sum(axis=1)
        spend = account.spend(known.purposes.tree_counts(level), share, over="boxes")
        variance = 2 * float(layout.count_scale(share)) ** 2
        what = RecordSum("boxes", tuple(range(len(measured))), {"halved": tree.attributes[: level + 1]})
        drawn = noisy(counts, layout.moved, spend, what)
        here: Bools | None = None
        if possible is not None:
            here = np.asarray(possible.reshape(2 << level, -1).any(axis=1))
            drawn = np.where(here, drawn, 0.0)
        levels.append(Level(drawn, variance, tree.fractions[level], _DEPENDENCE, here))
    cells = consistent_counts(rows, levels)[-1]
    groupings, targets = [], []
    for number, found in enumerate(measured):
        # the finest halving that every leaf resolves
        level = int(tree.halved[:, number].min())
        if level:
            groupings.append(tree.place[:, number] >> (tree.halved[:, number] - level))
            targets.append(found.counts[level])
    return rake(cells, groupings, targets)
