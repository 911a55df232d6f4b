"""From links to a tree. In: who is whose parent, in any order. Out: labels and parents in one canonical order.

Everything that can be wrong with a taxonomy is found here, before any record is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.errors import InputError
from shoal.text import Message

# Tables of distances grow with the square of the number of levels; no published taxonomy comes near.
MOST_LEVELS = 256


def parents_of_pairs(pairs: Iterable[tuple[Any, Any]]) -> dict[str, str | None]:
    """Parent of every name; a pair with an empty parent declares a root. The same pair may come twice.

    >>> parents_of_pairs([("x", "a"), ("a", None), ("x", "a")])
    {'x': 'a', 'a': None}
    """
    found: dict[str, list[str]] = {}
    for number, pair in enumerate(pairs, start=1):
        try:
            child, parent = pair
        except (TypeError, ValueError):
            raise InputError("link-pair-child-parent", number=number, found=pair) from None
        name = label(child)
        if not name:
            raise InputError("link-empty-name", number=number)
        above = "" if parent is None else label(parent)
        parents = found.setdefault(name, [])
        if above and above not in parents:
            parents.append(above)
        if above:
            found.setdefault(above, [])
    torn = [name for name, parents in found.items() if len(parents) > 1]
    if torn:
        first, *others = found[torn[0]]
        raise InputError(
            "more-than-one-parent" if len(torn) == 1 else "several-with-more-than-one-parent",
            concepts=torn,
            concept=torn[0],
            first=first,
            other=others[0],
        )
    return {name: parents[0] if parents else None for name, parents in found.items()}


def parents_of_nested(nested: Mapping[Any, Any]) -> dict[str, str | None]:
    """Parent of every name of nested dicts and lists, where every name may stand once.

    >>> parents_of_nested({"*": {"a": ["x", "y"], "b": {}}})
    {'*': None, 'a': '*', 'x': 'a', 'y': 'a', 'b': '*'}
    """
    found: dict[str, str | None] = {}

    def add(children: Any, parent: str | None) -> None:
        if children is None:
            return
        if isinstance(children, Mapping):
            items = list(children.items())
        elif isinstance(children, list | tuple | set | frozenset):
            items = [
                item
                for child in children
                for item in (child.items() if isinstance(child, Mapping) else [(child, None)])
            ]
        else:
            items = [(children, None)]
        for child, below in items:
            name = label(child)
            if not name:
                raise InputError("concept-below-empty-name", parent=parent)
            if name in found:
                raise InputError("stands-twice", name=name, first=_place(found[name]), other=_place(parent))
            found[name] = parent
            add(below, name)

    try:
        add(nested, None)
    except RecursionError:
        raise _too_deep() from None
    return found


def canonical(parent_of: Mapping[str, str | None]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Labels and parent codes, parents before children, the children of a concept by label; the root's parent is -1.

    Raises:
        InputError: nothing there, a cycle, no root or several, or too many levels.

    >>> canonical({"y": "a", "a": "*", "x": "a", "*": None})
    (('*', 'a', 'x', 'y'), (-1, 0, 1, 1))
    """
    if not parent_of:
        raise InputError("the-taxonomy-is-empty")
    _refuse_cycle(parent_of)
    roots = sorted(name for name, parent in parent_of.items() if parent is None)
    if len(roots) > 1:
        raise InputError("several-roots", count=len(roots), roots=roots)
    children: dict[str, list[str]] = {}
    for name, parent in parent_of.items():
        if parent is not None:
            children.setdefault(parent, []).append(name)
    labels: list[str] = []
    parents: list[int] = []
    waiting = [(roots[0], -1, 1)]
    while waiting:
        name, above, level = waiting.pop()
        if level > MOST_LEVELS:
            raise _too_deep()
        code = len(labels)
        labels.append(name)
        parents.append(above)
        waiting += [(child, code, level + 1) for child in sorted(children.get(name, ()), reverse=True)]
    return tuple(labels), tuple(parents)


def label(value: Any) -> str:
    """A value as the text that names its concept: 3 and 3.0 are one value, blanks around do not count.

    >>> label(" a "), label(3.0), label(True)
    ('a', '3', 'True')
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _refuse_cycle(parent_of: Mapping[str, str | None]) -> None:
    safe: set[str] = set()
    for start in parent_of:
        path: dict[str, None] = {}
        here: str | None = start
        while here is not None and here not in safe:
            if here in path:
                names = list(path)
                ring = [*names[names.index(here) :], here]
                raise InputError("links-in-a-circle", ring=" below ".join(repr(name) for name in ring))
            path[here] = None
            here = parent_of[here]
        safe.update(path)


def _place(parent: str | None) -> Message:
    return Message("at-the-top") if parent is None else Message.of("below-concept", parent=parent)


def _too_deep() -> InputError:
    return InputError("taxonomy-more-than-levels", most=MOST_LEVELS)
