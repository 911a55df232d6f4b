"""`shoal.evaluate` and `shoal.check`: tables come in, in memory or as files of any size; the same measures leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shoal.columns.schema import Schema
from shoal.evaluation import Evaluation
from shoal.evaluation.measured import Check
from shoal.evaluation.pair import unmatched
from shoal.io import Conventions
from shoal.progress import Progress, silent
from shoal.release.engines.stages import Runner
from shoal.release.measuring.check import check_in_parts
from shoal.release.measuring.evaluate import evaluate_in_parts
from shoal.release.measuring.side import Reading, Side
from shoal.report.subject import Subject, published

_SIDE_BY_SIDE = (
    ("same_order", "rows are compared one by one"),
    ("target", "a classifier learns from whole tables"),
    ("weight", "survey estimates weigh every record"),
    ("strata", "survey estimates weigh every record"),
)
_NOT_ESTIMATED = "Survey estimates were not made: they weigh every record, which takes engine=memory."


def in_memory_because(options: Mapping[str, Any]) -> str:
    """Why options of an evaluation take the tables in memory, in words; empty if they do not."""
    return next((f"{name}: {words}" for name, words in _SIDE_BY_SIDE if options.get(name)), "")


def data_of(bundle: Subject | None, released: Any) -> Any:
    """Where the released table is: the data of a bundle, or what was named."""
    return released if bundle is None else bundle.table.path


def evaluated(
    runners: Sequence[Runner],
    bundle: Any = None,
    *,
    columns: Sequence[str] | None = None,
    na: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    file: Conventions | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure two tables that runners have; the bundle says what is public about the columns.

    Args:
        bundle: a `Subject`, or None where neither table is a release.
    """
    schema = None if bundle is None else bundle.schema
    before = Side(runners[0], Reading(schema, tuple(na), types, file))
    after = Side(runners[1], before.reading)
    if schema is not None:
        # what was released is as it is after the steps
        after = Side(runners[1], Reading(replace(schema, steps=(), before=None), tuple(na)))
    pair = unmatched(before.table(), after.table(), None if bundle is None else published(bundle))
    found = evaluate_in_parts(before, after, pair, columns, progress or silent)
    weight = None if schema is None else schema.weight
    if weight is not None and weight.name in pair.before.names:
        found = replace(found, remarks=(*found.remarks, _NOT_ESTIMATED))
    return found


def checked(
    runner: Runner,
    quasi: Sequence[str] | None = None,
    confidential: Sequence[str] | None = None,
    *,
    schema: Schema | None = None,
    levels: Mapping[str, float | None],
    na: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    file: Conventions | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Check:
    """Check a table that a runner has."""
    side = Side(runner, Reading(schema, tuple(na), types, file))
    return check_in_parts(side, quasi, confidential, schema, levels, progress or silent)
