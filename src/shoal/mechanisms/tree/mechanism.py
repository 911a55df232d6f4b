"""The private partition tree: a described table comes in, rows drawn from noisy counts of public boxes leave."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns.describe import Described
from shoal.errors import OptionError
from shoal.mechanisms.base import Mechanism, Progress, Rebuilt
from shoal.mechanisms.tree.boxes import Tree, grow, sort_into
from shoal.mechanisms.tree.counts import Level, consistent_counts, rake, whole_counts
from shoal.mechanisms.tree.gate import noisy
from shoal.mechanisms.tree.intervals import Intervals, measure_intervals
from shoal.mechanisms.tree.layout import Layout, lay_out, possible_layouts, rows_share
from shoal.mechanisms.tree.rows import draw_concepts, draw_positions
from shoal.mechanisms.tree.values import measure_values
from shoal.method.budget import Plan
from shoal.method.method import Method
from shoal.noise import Source, round_up_scale

# Standard deviation of a child's share around that of independent attributes, if nothing is known.
_DEPENDENCE = 0.6
# More noise on the number of rows than this, and a table could come out that fills the memory.
_MOST_ROWS_NOISE = 100_000


def plan(method: Method, described: Described) -> Plan:
    """Share ε over cut points, counts and sums, level by level, from the public number of rows.

    Under add/remove with a noisy number of rows the levels are settled by that number, so only stages are listed.
    """
    number = len(described.columns)
    rows = _public_rows(method, described)
    counting = rows_share(method)
    budget = method.budget - counting
    if rows is None:
        # the stages' totals differ with the depth, which follows from the noisy number of rows
        spending = {
            "number of rows": counting,
            "cut points, counts and sums, level by level as the number of rows allows": budget,
        }
        condition = "Depth and shares follow from the noisy number of rows, ε and the number of attributes."
        said = (condition, *_about_gaps(described))
        return Plan(spending, dict.fromkeys(described.columns, budget / number), said, {})
    layout = lay_out(method, number, rows, budget)
    counted = _counted(described, layout, rows)
    condition = (
        f"The tree has {len(layout.leaves)} levels over {len(layout.cuts)} levels of cut points per attribute, settled "
        f"by {rows} rows, ε and the number of attributes ({number})."
    )
    conditions = [condition]
    if counted:
        conditions.append(
            f"Values of {', '.join(counted)} are counted one by one, as the size of their domain allows."
        )
    conditions += _about_gaps(described)
    shares = dict.fromkeys(described.columns, budget / number)
    return Plan(
        _spending(layout, described, counted),
        shares,
        tuple(conditions),
        _per_attribute(method, described, layout),
    )


def _about_gaps(described: Described) -> list[str]:
    if not described.flagged:
        return []
    return [
        f"Missing values of {', '.join(described.flagged)} are a place of their own beside the values. How many "
        "there are "
        "is noisy like every count: a table without any can be released with some."
    ]


def _per_attribute(method: Method, described: Described, layout: Layout) -> Mapping[str, Fraction]:
    """What a change in one attribute alone costs: its own share, and the counts of the tree over all attributes.

    Nothing is said under add/remove, where neighbours differ by a whole record.
    """
    if method.neighbours != "replace-one":
        return {}
    return dict.fromkeys(described.columns, layout.attribute + sum(layout.leaves, Fraction(0)))


def check(method: Method, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise, whatever number of rows is drawn and whatever intervals are."""
    rows, number = _public_rows(method, described), len(described.columns)
    if rows is None:
        share = rows_share(method)
        scale = round_up_scale(1 / share)
        if scale > _MOST_ROWS_NOISE:
            raise OptionError(
                f"epsilon {float(method.budget):g} is too small to draw the number of rows, which would be off by "
                f"about {float(scale):.3g}: declare a number of rows to release with rows=, or use a larger epsilon."
            )
        layouts = possible_layouts(method, number, method.budget - share)
    else:
        layouts = [lay_out(method, number, rows, method.budget)]
    for layout in layouts:
        counted = () if rows is None else _counted(described, layout, rows)
        for column in described.columns:
            points = _points(described, column)
            plain = (
                column not in described.nominal and column not in counted and points > 1 << len(layout.cuts)
            )
            own = layout.for_gaps if column in described.flagged else layout
            try:
                own.check(points - 1 if plain else None)
            except OptionError as error:
                raise OptionError(f"column '{column}': {error}") from None


def run(
    method: Method,
    described: Described,
    plan: Plan,
    source: Source,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Draw cut points, count and sum between them, count the leaves of the tree over all attributes, draw rows.

    Guarantee:
        ε-DP of the original records, by adaptive composition of the stages: docs/proofs/tree.md.

    Cost:
        A sort per attribute, one pass over the records per level of the tree, a sort of the rows per attribute.
    """
    columns = described.columns
    rows, budget = _public_rows(method, described), method.budget
    if rows is None:
        share = rows_share(method)
        count = noisy(np.array([described.n]), round_up_scale(1 / share), source)
        rows = max(int(count[0]), 1)
        budget -= share
    layout = lay_out(method, len(columns), rows, budget, fitting=_public_rows(method, described) is None)
    counted = _counted(described, layout, rows)
    steps = 2 * len(columns) + 1
    measured: list[Intervals] = []
    codes = np.empty((len(columns), described.n), dtype=np.uint16)
    clipped: dict[str, int] = {}
    for number, column in enumerate(columns):
        positions, clipped[column] = described.positions(column)
        points, own = _points(described, column), layout
        if column in described.flagged:
            own = layout.for_gaps
            positions = np.where(described.absent(column), points - 1, positions)
        if column in counted:
            found, codes[number] = measure_values(positions, points, float(rows), own, source)
        else:
            own = layout.for_names if column in described.nominal else own
            found, codes[number] = measure_intervals(positions, points - 1, float(rows), own, source)
        measured.append(found)
        progress("cutting attributes", number + 1, steps)
    tree = grow(
        [one.edges for one in measured],
        [one.counts for one in measured],
        len(layout.leaves),
    )
    cells = _leaf_counts(tree, codes, measured, layout, float(rows), source)
    progress("counting leaves", len(columns) + 1, steps)
    per_leaf = whole_counts(cells, rows)
    values: dict[str, NDArray[np.float64]] = {}
    for number, column in enumerate(columns):
        positions_drawn = draw_positions(number, measured[number], tree, per_leaf, method.rebuild, source)
        lattice, taxonomy = described.lattices[column], described.tree(column)
        if taxonomy is None:
            drawn = np.clip(lattice.values(positions_drawn), float(lattice.lo), float(lattice.hi))
            if column in described.flagged:
                drawn[positions_drawn > lattice.steps] = np.nan
        else:
            drawn = draw_concepts(positions_drawn, measured[number], taxonomy, generalise=method.generalise)
        values[column] = drawn
        progress("drawing rows", len(columns) + 2 + number, steps)
    return Rebuilt(
        values, [], aligned=False, internal={"values_clipped": clipped, "rows_released": rows, "clusters": []}
    )


def _public_rows(method: Method, described: Described) -> int | None:
    """The number of rows to release, where it is known without looking: public, or declared."""
    if method.neighbours == "replace-one":
        return described.n
    return method.rows


def _points(described: Described, column: str) -> int:
    """How many values an attribute can take, "missing" among them where that is a place of its own."""
    tree = described.tree(column)
    if tree is not None:
        return len(tree.domain)
    return described.lattices[column].steps + 1 + (column in described.flagged)


def _counted(described: Described, layout: Layout, rows: int) -> tuple[str, ...]:
    """The attributes whose values are counted one by one: settled by public facts."""
    return tuple(
        column
        for column in described.columns
        if layout.counts_values(_points(described, column), rows, nominal=column in described.nominal)
    )


def _spending(layout: Layout, described: Described, counted: tuple[str, ...]) -> Mapping[str, Fraction]:
    cut = [column for column in described.columns if column not in counted]
    names = [column for column in cut if column in described.nominal]
    number = len(cut) - len(names)
    flagged = sum(column in described.flagged for column in cut)
    gaps = layout.for_gaps
    parts: dict[str, Fraction] = {}
    if counted:
        parts[f"value counts {_of(len(counted), described)}"] = layout.attribute * len(counted)
    levels = len(layout.cuts)
    for level in range(levels if cut else 0):
        parts[f"cut points {_of(len(cut), described)}, level {level + 1} of {levels}"] = layout.cuts[
            level
        ] * len(cut)
    if flagged:
        parts[f"missing values {_of(flagged, described)}"] = gaps.gap * flagged
    for level in range(levels if cut else 0):
        share = layout.intervals[level] * (number - flagged) + gaps.intervals[level] * flagged
        share += layout.for_names.intervals[level] * len(names)
        parts[f"interval counts {_of(len(cut), described)}, level {level + 1} of {levels}"] = share
    for level, share in enumerate(layout.leaves, start=1):
        parts[f"counts of the tree, level {level} of {len(layout.leaves)}"] = share
    if number:
        sums = layout.means * (number - flagged) + gaps.means * flagged
        parts[f"interval sums {_of(number, described)}"] = sums
    if number and layout.squares:
        squares = layout.squares * (number - flagged) + gaps.squares * flagged
        parts[f"interval sums of squares {_of(number, described)}"] = squares
    return parts


def _of(number: int, described: Described) -> str:
    if number == len(described.columns):
        return "of all attributes"
    return f"of {number} attribute{'s' if number > 1 else ''}"


def _leaf_counts(
    tree: Tree,
    codes: NDArray[np.uint16],
    measured: list[Intervals],
    layout: Layout,
    rows: float,
    source: Source,
) -> NDArray[np.float64]:
    """Noisy counts of all levels of the tree, made consistent with each other and with the attributes' intervals.

    Guarantee:
        Given the cut points the boxes are public and a record is in one box of a level: noise of scale 2/share
        (1/share when adding) costs each level its share.
    """
    if not layout.leaves:
        return np.array([rows])
    leaf = sort_into(tree, codes, [len(one.counts) - 1 for one in measured])
    exact = np.bincount(leaf, minlength=tree.leaves).astype(np.int64)
    levels = []
    for level, share in enumerate(layout.leaves):
        scale = layout.count_scale(share)
        counts = exact.reshape(2 << level, -1).sum(axis=1)
        levels.append(
            Level(noisy(counts, scale, source), 2 * float(scale) ** 2, tree.fractions[level], _DEPENDENCE)
        )
    cells = consistent_counts(rows, levels)[-1]
    groupings, targets = [], []
    for number, found in enumerate(measured):
        # the finest halving that every leaf resolves
        level = int(tree.halved[:, number].min())
        if level:
            groupings.append(tree.place[:, number] >> (tree.halved[:, number] - level))
            targets.append(found.counts[level])
    return rake(cells, groupings, targets)


TREE = Mechanism(plan, run, check=check)
