"""The public facts about a column after a step before protection, and where they are known from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal.columns.attribute import RECORDS, Attribute
from shoal.columns.bounds import bound_text
from shoal.columns.dates import day_number
from shoal.errors import closest
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.steps import Step


def _settled(step: Step, before: Attribute, *facts: str, names_all: bool) -> dict[str, str]:
    """The sources of an attribute after a step, which decides the given facts.

    What was read off the records stays so, unless the step itself names every value that comes out of it
    (`names_all`) and says where it is known from.
    """
    said = "" if step.from_records else step.source
    domain = before.source.get("domain", "")
    found = dict(before.source)
    for fact in facts:
        read_off = RECORDS in (domain, before.source.get(fact))
        found[fact] = RECORDS if read_off and not (said and names_all) else said or domain
    return {fact: origin for fact, origin in found.items() if origin}


def _bands(step: Step, before: Attribute) -> Attribute:
    if not before.kind_facts.ranged:
        raise step.refusal("breaks-numbers-dates-column", found=before.kind)
    if any(isinstance(end, str) for end in step.breaks) and not before.kind_facts.days:
        raise step.refusal("breaks-dates-column", found=before.kind)
    if len(step.bands) < 2:
        raise step.refusal("band-all-values-says-nothing")
    settled = _settled(step, before, "kind", "type", "domain", names_all=True)
    return replace(_without_range(before), kind="ordinal", type="text", ordered=step.bands, source=settled)


def _without_range(before: Attribute) -> Attribute:
    """A column of names, without what only numbers and dates have."""
    return replace(
        before, kind="nominal", type="text", lo=None, hi=None, step=None, decimals=None, format=None
    )


def _level(step: Step, before: Attribute) -> Attribute:
    tree = replace(before, missing=None).tree
    if before.taxonomy is None or tree is None:
        raise step.refusal("level-needs-taxonomy-nominal-column")
    assert step.level is not None
    if step.level >= tree.levels:
        raise step.refusal("level-above-values-below-level-1", levels=tree.levels, found=step.level)
    groups = tuple(dict.fromkeys(above(step, before).values()))
    return replace(
        before,
        taxonomy=tree.minimal(groups),
        values=groups,
        type="text",
        source=_settled(step, before, "type", "domain", names_all=False),
    )


def above(step: Step, before: Attribute) -> dict[str, str]:
    """The concept at the level of the step above each value; a value that is not so deep stays."""
    tree = replace(before, missing=None).tree
    assert tree is not None
    assert step.level is not None
    found = {}
    for code in tree.domain:
        line = tree.ancestors(code)
        found[tree.labels[code]] = tree.labels[line[max(len(line) - 1 - step.level, 0)]]
    return found


def _mapping(step: Step, before: Attribute) -> Attribute:
    if before.kind_facts.ranged:
        raise step.refusal("mapping-names-column", found=before.kind)
    renamed = dict(step.mapping)
    names = before.ordered or before.values or (before.taxonomy.values if before.taxonomy is not None else ())
    if names:
        for old in renamed:
            if old not in names:
                raise step.refusal("column-no-value", found=old, hint=closest(old, names))
    now = [renamed.get(name, name) for name in names]
    merged = tuple(dict.fromkeys(now))
    if before.ordered and len(merged) != 1 + sum(a != b for a, b in itertools.pairwise(now)):
        raise step.refusal("values-new-name-neighbours-order")
    if before.ordered and len(merged) < 2:
        raise step.refusal("name-all-values-says-nothing")
    source = _settled(step, before, "type", "domain", names_all=bool(names) and set(names) <= set(renamed))
    settled = replace(before, type="text", source=source)
    if before.ordered:
        return replace(settled, ordered=merged)
    return replace(settled, values=merged, taxonomy=None)


def _coded(step: Step, before: Attribute) -> Attribute:
    if not before.kind_facts.ranged:
        raise step.refusal("numbers-dates-column", found=before.kind)
    if before.kind_facts.days != isinstance(step.at, str):
        code = "at-date" if before.kind_facts.days else "at-number"
        raise step.refusal(code, found=bound_text(step.at))
    at, put = (_exact(end) for end in (step.at, step.at if step.put is None else step.put))
    if before.type == "integer" and put.denominator != 1:
        raise step.refusal("column-holds-whole-numbers-none", found=bound_text(put))
    if before.lo is None or before.hi is None:
        return before
    is_top = step.do == "top"
    inside = (before.lo, min(before.hi, at)) if is_top else (max(before.lo, at), before.hi)
    # nothing is replaced where the declared range ends before
    touched = before.hi > at if is_top else before.lo < at
    lo, hi = (min(inside[0], put), max(inside[1], put)) if touched else (before.lo, before.hi)
    if lo >= hi:
        raise step.refusal("nothing-left-between", lo=bound_text(lo), hi=bound_text(hi))
    return replace(before, lo=lo, hi=hi)


def _truncate(step: Step, before: Attribute) -> Attribute:
    if before.kind_facts.ordered:
        raise step.refusal("truncate-needs-codes", found=before.kind)
    if before.taxonomy is not None:
        raise step.refusal("the-column-has-a-taxonomy")
    values = tuple(dict.fromkeys(value[: step.length].strip() for value in before.values))
    if before.values and len(values) < 2:
        raise step.refusal("code-all-values-says-nothing")
    return replace(
        before, type="text", values=values, source=_settled(step, before, "type", "domain", names_all=False)
    )


def _exact(bound: Any) -> Fraction:
    return day_number(bound, Message("a-date"))


def withheld(step: Step, before: Attribute) -> Attribute:
    """What can be said about a column whose step is not published: no range, and no names."""
    if step.do in ("recode", "truncate"):
        return _without_range(replace(before, ordered=(), values=(), taxonomy=None))
    return replace(before, lo=None, hi=None)


def _drop(step: Step, before: Attribute) -> None:
    return None


AFTER: Mapping[str, Callable[[Step, Attribute], Attribute | None]] = {
    "bands": _bands,
    "level": _level,
    "mapping": _mapping,
    "top": _coded,
    "bottom": _coded,
    "truncate": _truncate,
    "drop": _drop,
}
