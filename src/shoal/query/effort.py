"""How long a question can take at worst: CPU seconds from the checked question and the public size of the table alone.

Nothing here looks at a record, so nothing that is computed from it can tell anything about one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.query.cells import cells_of
from shoal.query.facts import Facts
from shoal.query.parsing import as_number
from shoal.query.spec import Query

# CPU seconds of one core, above the worst that was measured over tables and truths made for it, with up to a million
# records. A question of any kind is also read, charged, stored and sent.
_QUESTION = 1.2e-3
_VALUE = 1.5e-5
_CHARACTER = 1e-7
_ROW = 3e-9
_CONDITION = 3e-5
_COMPARED = 4e-9
_LISTED = 1.5e-8
_ADDED = 1.5e-8
_COUNTED = 3e-8
_SAMPLE = 5e-3
_CELL = 8e-6
_RUN = 2.5e-7
_POWER = 4e-6
_GROUP = 5e-6
_REFINED = 1.5e-3
_ANSWER = 4e-7
_MOVED = 6e-7
_NORMAL = 4e-7
_PAIR = 3e-7


def effort(query: Query, rows: int) -> float:
    """The CPU seconds that a question takes at most on a table of this size, whatever its records hold.

    Args:
        query: the question.
        rows: the number of records where it is public, otherwise a public bound of it.

    >>> from shoal.query.facts import Facts
    >>> from shoal.query.spec import parse
    >>> from shoal.columns.schema import Schema
    >>> facts = Facts(Schema(()), rows=1000)
    >>> 0 < effort(parse({"kind": "count", "epsilon": 1}, facts), 1000) < 0.002
    True
    """
    options, kind = query.options, query.kind
    while kind in ("protocol-1", "protocol-2"):
        inner: Mapping[str, Any] = options["query"]
        kind, options = inner["kind"], dict(inner)
    values, characters = _written(options)
    return _QUESTION + values * _VALUE + characters * _CHARACTER + _of_kind(kind, options, query, rows)


def _written(given: Any) -> tuple[int, int]:
    """How many values a question is made of, and how many characters: what it takes to read, store and send it."""
    if isinstance(given, Mapping):
        parts = [_written(part) for part in given.values()]
        named = sum(map(len, given))
    elif isinstance(given, list):
        parts, named = [_written(part) for part in given], 0
    else:
        return 1, len(given)
    return 1 + sum(one for one, _ in parts), named + sum(other for _, other in parts)


def _of_kind(kind: str, options: Mapping[str, Any], query: Query, rows: int) -> float:
    matched = rows * _ROW + _conditions(options.get("where"), rows)
    match kind:
        case "count":
            return matched
        case "sum" | "mean":
            return 2 * matched + rows * _ADDED
        case "histogram":
            cells = len(cells_of(query.facts, dict(options)).names)
            return matched + rows * _COUNTED + _SAMPLE + cells * _CELL
        case "quantile":
            return matched + rows * _COUNTED + _chosen_by_rank(options, query, rows)
        case "ranking-means":
            groups = rows // max(int(as_number("k", options["k"])), 1) + 1
            return rows * 2 * _COUNTED + _SAMPLE + groups * _GROUP
    return _by_refinement(options, query, rows)


def _by_refinement(options: Mapping[str, Any], query: Query, rows: int) -> float:
    answers = int(query.offer.error.get("possible_answers", 0))
    parts = options.get("statistics") or options.get("columns") or [options.get("statistic", options)]
    parts = [part if isinstance(part, Mapping) else {"column": part} for part in parts]
    looked = sum(
        rows * (_ROW + 3 * _ADDED) + 2 * _conditions(part.get("where"), rows) + _distances(query.facts, part)
        for part in parts
    )
    moved = _MOVED if "delta" in options else 0.0
    return _REFINED + looked + answers * (_ANSWER + _NORMAL + moved)


def _chosen_by_rank(options: Mapping[str, Any], query: Query, rows: int) -> float:
    """Runs of equal penalty, and powers of the factor by which a penalty lowers a chance."""
    share = as_number("q", options["q"]).denominator
    runs = query.facts.ranked(options["column"]) or 2 * rows + 2
    # penalties further than 89 / rate are never looked up: shoal.noise.choice
    furthest = min(89 * 2 * share / float(query.offer.epsilon), share * rows)
    return runs * _RUN + (256 + 2 * furthest / 256) * _POWER


def _distances(facts: Facts, part: Mapping[str, Any]) -> float:
    """What it takes to compute the distances between all labels of a taxonomy."""
    tree = facts.attribute(part["column"]).tree if "column" in part else None
    return 0.0 if tree is None else min(len(tree.values), 1000) ** 2 * _PAIR


def _conditions(where: Any, rows: int) -> float:
    """What conditions take."""
    if not isinstance(where, Mapping):
        return 0.0
    for how in ("and", "or"):
        if how in where:
            return sum(_conditions(part, rows) for part in where[how])
    return _CONDITION + rows * (_LISTED if where.get("op") == "in" else _COMPARED)
