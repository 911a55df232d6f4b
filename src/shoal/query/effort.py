"""How long a question may take. In: a checked query and the public size of the table. Out: seconds, from these alone.

Nothing here looks at a record, so nothing that is computed from it can tell anything about one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.query.facts import Facts
from shoal.query.parsing import as_number
from shoal.query.spec import Query

# Seconds of one core, a little above what was measured with a million records; a question of any kind is also read,
# charged, stored and sent.
_QUESTION = 1.2e-3
_ROW = 2e-9
_COMPARED = 1.5e-9
_LISTED = 6e-8
_ADDED = 1e-8
_SORTED = 2.5e-7
_CELL = 3e-6
_RUN = 4e-8
_POWER = 1e-6
_ANSWER = 1e-7
_GROUP = 1e-5
_CONCEPT = 2e-6


def effort(query: Query, rows: int) -> float:
    """The seconds that a question takes on a table of this size, however many records it is about.

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
    return _QUESTION + _of_kind(kind, options, query, rows)


def _of_kind(kind: str, options: Mapping[str, Any], query: Query, rows: int) -> float:
    matched = rows * (_ROW + _conditions(options.get("where")))
    match kind:
        case "count":
            return matched
        case "sum" | "mean":
            return 2 * matched + rows * _ADDED
        case "histogram":
            cells = len(options.get("edges", ())) + len(options.get("cells", ())) or 1000
            return matched + rows * 2 * _ADDED + cells * _CELL
        case "quantile":
            return matched + rows * 2 * _ADDED + _chosen_by_rank(options, query, rows)
        case "ranking-means":
            groups = rows // max(int(as_number("k", options["k"])), 1) + 1
            return rows * _SORTED + groups * _GROUP
    answers = int(query.offer.error.get("possible_answers", 0))
    parts = options.get("statistics") or options.get("columns") or [options.get("statistic", options)]
    parts = [part if isinstance(part, Mapping) else {"column": part} for part in parts]
    looked = sum(2 * _conditions(part.get("where")) + _ROW + 3 * _ADDED for part in parts)
    return rows * looked + answers * _ANSWER + sum(_concepts(query.facts, part) for part in parts) * _CONCEPT


def _chosen_by_rank(options: Mapping[str, Any], query: Query, rows: int) -> float:
    """Runs of equal penalty, and powers of the factor by which a penalty lowers a chance."""
    share = as_number("q", options["q"]).denominator
    runs = 2 * min(rows, _steps(query.facts, options["column"])) + 1
    # penalties further than 89 / rate are never looked up: shoal.noise.exponential
    furthest = min(89 * 2 * share / float(query.offer.epsilon), share * rows)
    return runs * _RUN + (256 + furthest / 256) * _POWER


def _concepts(facts: Facts, part: Mapping[str, Any]) -> int:
    """The concepts of the taxonomy of a column, between which distances are computed."""
    tree = facts.attribute(part["column"]).tree if "column" in part else None
    return 0 if tree is None else len(tree.values)


def _steps(facts: Facts, column: str) -> int:
    return facts.lattice(column).steps + 1


def _conditions(where: Any) -> float:
    """Seconds per record that conditions take."""
    if not isinstance(where, Mapping):
        return 0.0
    for how in ("and", "or"):
        if how in where:
            return sum(_conditions(part) for part in where[how])
    return _LISTED if where.get("op") == "in" else 2 * _COMPARED
