"""Evaluate and check releases that are read in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import narwhals as nw
import numpy as np

from shoal.columns import KIND_FACTS, MISSING_VALUE, Schema
from shoal.errors import OptionError
from shoal.evaluation import measures as loss
from shoal.evaluation import utility
from shoal.evaluation.checks import asked_columns, check_levels, checked
from shoal.evaluation.disclosure.measure import figures_of_sizes
from shoal.evaluation.in_parts.closeness import Secret, measure_closeness
from shoal.evaluation.in_parts.counts import Grouping, Side, actual_k, count_groups
from shoal.evaluation.in_parts.summaries import (
    MOST_VALUES,
    CountedColumn,
    CountingPlan,
    Cut,
    JointColumns,
    Numbers,
    Standardisation,
    TextCounts,
    Values,
    count_together,
    count_values,
)
from shoal.evaluation.measure import chosen_columns, measures_of, moved, skipped_columns, summed_up
from shoal.evaluation.measured import Check, Closeness
from shoal.evaluation.measures import MEASURES
from shoal.evaluation.pair import MISSING, TablePair, kind_of
from shoal.evaluation.result import Evaluation, plain
from shoal.evaluation.utility import DomainParts, contingency_of, counted_variation
from shoal.io import Table
from shoal.partition import ActualK
from shoal.progress import Progress
from shoal.taxonomy import Taxonomy
from shoal.text import Message

# measures with a function of their own that need only correlation matrices before and after
_COMPUTED: Mapping[str, Callable[[JointColumns, JointColumns], float | None]] = {
    "eigen": lambda before, after: loss.eigenvalues_moved(before.pearson, after.pearson),
    "il_correl": lambda before, after: loss.inverses_moved(before.gapless, after.gapless),
}
_TOO_MANY = Message("texts-not-counted-in-parts")
# pairs of columns that a remark names
_PAIRS = 3


def evaluate_in_parts(
    before: Side, after: Side, pair: TablePair, columns: Sequence[str] | None, tell: Progress
) -> Evaluation:
    """Utility loss and disclosure risk of a release, from aggregates.

    Args:
        before: the original records.
        after: the released ones.
        pair: both tables without records: their columns and types, and what is known about them.
        columns: measure only these; by default all comparable columns.
    """
    chosen = chosen_columns(pair, columns)
    asked = [
        CountedColumn(name, pair.attributes.get(name), KIND_FACTS[kind_of(pair, name) or "nominal"].ordered)
        for name in chosen
    ]
    seen = count_values(before, asked, tell), count_values(after, asked, tell)
    crowded = [one.name for one in asked if _crowded(seen, one.name)]
    asked = [one for one in asked if one.name not in crowded]
    names = tuple(one.name for one in asked)
    cuts = [_cut(pair, one, *seen) for one in asked]
    found = [
        count_together(side, _plan(pair, own, values), tell)
        for side, own, values in zip(
            (before, after), zip(*cuts, strict=True) if cuts else ((), ()), seen, strict=True
        )
    ]
    pairs, unseen = _pairs(names, found)
    groups = pair.released if columns is None else names
    reached = actual_k(after, groups, seen[1].n, tell)
    return Evaluation(
        utility=plain(_utility(pair, names, seen, found, pairs)),
        risk=plain(_risk(reached)),
        columns=names,
        rows_matched=False,
        rows={"original": seen[0].n, "released": seen[1].n},
        missing={
            name: dict(
                zip(("original", "released"), (_missing(one.columns[name]) for one in seen), strict=True)
            )
            for name in names
        },
        unmeasured={**skipped_columns(pair, chosen, columns), **dict.fromkeys(crowded, _TOO_MANY)},
        told=_told(seen, names, crowded, unseen),
    )


def _crowded(seen: tuple[Values, Values], name: str) -> bool:
    return any(isinstance(column := one.columns[name], TextCounts) and column.counts is None for one in seen)


def _missing(column: Numbers | TextCounts) -> int:
    return column.facts.missing if isinstance(column, Numbers) else column.missing


def _cut(pair: TablePair, asked: CountedColumn, before: Values, after: Values) -> tuple[Cut, Cut]:
    """A column of both tables, cut into the same categories."""
    first, second = before.columns[asked.name], after.columns[asked.name]
    if isinstance(first, Numbers):
        kind = kind_of(pair, asked.name)
        assert kind is not None
        facts = first.facts
        ends = (facts.low, facts.high) if facts.low is not None and facts.high is not None else (0.0, 0.0)
        lo, hi = pair.domains.get(asked.name, ends)
        parts = DomainParts.of(kind, (float(lo), float(hi)))
        return Cut(asked, parts), Cut(asked, parts)
    assert isinstance(second, TextCounts)
    texts = [list(found.counts or ()) for found in (first, second)]
    taxonomy = pair.taxonomies.get(asked.name)
    if taxonomy is not None:
        gone = taxonomy.labels.index(MISSING_VALUE) if MISSING_VALUE in taxonomy.labels else MISSING
        one, other = (
            Cut(asked, None, _codes_of(taxonomy, asked.name, which, some), taxonomy.size + 1, gone)
            for which, some in zip(("original", "released"), texts, strict=True)
        )
        return one, other
    every = {text: code for code, text in enumerate(dict.fromkeys((*texts[0], *texts[1])))}
    return Cut(asked, codes=every, size=len(every) + 1), Cut(asked, codes=every, size=len(every) + 1)


def _codes_of(taxonomy: Taxonomy, name: str, which: str, texts: Sequence[str]) -> dict[str, int]:
    codes = taxonomy.encode(
        np.array(texts, dtype=object),
        Message.of("column-of-original" if which == "original" else "column-of-released", column=name),
        concepts=which != "original",
        missing=MISSING,
    )
    return dict(zip(texts, codes.tolist(), strict=True))


def _plan(pair: TablePair, cuts: Sequence[Cut], values: Values) -> CountingPlan:
    scales, ranks = {}, {}
    for place, cut in enumerate(cuts):
        column, kind = values.columns[cut.asked.name], kind_of(pair, cut.asked.name)
        if isinstance(column, Numbers) and kind is not None:
            ranks[place] = Standardisation.of_ranks(column)
            if KIND_FACTS[kind].measured:
                scales[place] = Standardisation.of(column)
    return CountingPlan(tuple(cuts), scales, ranks)


def _pairs(
    names: Sequence[str], found: Sequence[JointColumns]
) -> tuple[dict[tuple[str, str], float], list[tuple[str, str]]]:
    """Total variation distances of two-way tables, and the pairs with too many cells."""
    moved_pairs: dict[tuple[str, str], float] = {}
    unseen = []
    for places, before in found[0].counts.items():
        if len(places) != 2:
            continue
        pair, after = (names[places[0]], names[places[1]]), found[1].counts[places]
        if before is None or after is None:
            unseen.append(pair)
        else:
            moved_pairs[pair] = counted_variation(before, after)
    return moved_pairs, unseen


def _utility(
    pair: TablePair,
    names: Sequence[str],
    seen: tuple[Values, Values],
    found: Sequence[JointColumns],
    pairs: Mapping[tuple[str, str], float],
) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(names):
        kind = kind_of(pair, name)
        assert kind is not None
        counts = [one.counts[(place,)] for one in found]
        assert counts[0] is not None
        assert counts[1] is not None
        line = measures_of(kind, counted_variation(counts[0], counts[1]))
        before, after = (one.columns[name] for one in seen)
        if isinstance(before, Numbers) and isinstance(after, Numbers):
            first, second = before.facts.moments, after.facts.moments
            distance = utility.wasserstein_of(before.distribution, after.distribution, first.variance)
            line |= moved(kind, first, second, distance)
        attributes[name] = line
    products, ranks = ([getattr(one, what).correlations() for one in found] for what in ("products", "ranks"))
    return summed_up(
        attributes,
        utility.correlation_difference(*products),
        utility.correlations_kept(*ranks),
        contingency_of(pairs),
        (None, None),
        _computed("utility", found),
    )


def _computed(part: Literal["utility", "risk"], found: Sequence[JointColumns]) -> dict[str, float | None]:
    """Measures with a function of their own: computed from products where possible, None for the others."""
    return {
        name: _COMPUTED[name](*found) if name in _COMPUTED else None
        for name, measure in MEASURES.items()
        if measure.part == part and measure.compute is not None
    }


def _risk(reached: ActualK) -> dict[str, Any]:
    linked = ("", "_interval", "_confidence", "_chance", "_records", "_rows", "_widths")
    return {
        **{f"record_linkage{word}": None for word in linked},
        "actual_k": reached.k,
        "groups": reached.groups,
        "unique_share": reached.unique_share,
        **_computed("risk", ()),
        "actual_k_per_attribute": reached.per_attribute,
    }


def _told(
    seen: tuple[Values, Values],
    names: Sequence[str],
    crowded: Sequence[str],
    unseen: Sequence[tuple[str, str]],
) -> tuple[Message, ...]:
    """What is missing, or only approximate, compared with the measures of a table in memory."""
    found = []
    rough = [
        name
        for name in names
        if any(isinstance(column := one.columns[name], Numbers) and not column.exact for one in seen)
    ]
    if rough:
        found.append(Message.of("ranks-to-one-part", columns=rough, parts=MOST_VALUES))
    if crowded:
        found.append(Message.of("not-measured-columns", reason=_TOO_MANY, columns=crowded))
    if unseen:
        pairs = [Message.of("pair-of-columns", first=first, second=second) for first, second in unseen]
        code = "pairs-left-out" if len(pairs) <= _PAIRS else "pairs-left-out-and-more"
        found.append(Message.of(code, pairs=pairs[:_PAIRS], more=len(pairs) - _PAIRS))
    others = [
        name
        for name, measure in MEASURES.items()
        if measure.compute is not None and not measure.of_rows and name not in _COMPUTED
    ]
    if others:
        found.append(Message.of("measures-not-in-parts", measures=others))
    return tuple(found)


def check_in_parts(
    side: Side,
    quasi_identifiers: str | Sequence[str] | None,
    sensitive: str | Sequence[str] | None,
    schema: Schema | None,
    levels: Mapping[str, float | None],
    tell: Progress,
) -> Check:
    """The protection that a table reaches, from group sizes and the worst groups.

    Two passes, and two more for sensitive attributes. Risks of weighted records and special uniques are left out, and a
    line says so. Persons with several rows are refused.
    """
    table = side.table()
    known, secret = asked_columns(table, quasi_identifiers, sensitive, schema)
    check_levels(levels, secret)
    unit = _by_role(table, schema, "unit")
    if unit is not None:
        raise OptionError("column-unit-persons-counted-side-side", column=unit, unit=unit)
    claimed = Grouping(known)
    # the risk treats an empty text as a missing value
    told_apart = any(isinstance(table.dtype(name), (nw.String, nw.Categorical, nw.Enum)) for name in known)
    coarse = Grouping(known, blank_missing=True) if told_apart else claimed
    groupings = [claimed, coarse] if told_apart else [claimed]
    counted = count_groups(side, groupings, tell)
    found: dict[str, Closeness] = {}
    least: dict[str, dict[str, float]] = {}
    if secret:
        secrets = [Secret.of(table, name, schema) for name in secret]
        found, least = measure_closeness(side, secrets, groupings, tell)
    weight = _by_role(table, schema, "weight")
    disclosure = None if weight is not None else figures_of_sizes(known, *counted[-1], least)
    told = (
        Message("special-uniques-not-in-parts")
        if weight is None
        else Message.of("risk-of-weights-not-in-parts", column=weight)
    )
    result = checked(known, *counted[0], found, disclosure, levels, (told,))
    rules: dict[str, int | None] = {} if schema is None else {rule.words: None for rule in schema.rules}
    return replace(result, rules=rules)


def _by_role(table: Table, schema: Schema | None, role: str) -> str | None:
    """The single column of a role, if the table has it."""
    attributes = () if schema is None else schema.attributes
    return next((a.name for a in attributes if a.role == role and a.name in table.names), None)
