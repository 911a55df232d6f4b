"""Labels and parents of a taxonomy: build them from links, and find concepts by the names that tables use.

Everything that can be wrong with a taxonomy is found here, before any record is looked at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import InputError, closest
from shoal.text import Message

# Tables of distances grow with the square of the number of levels; no published taxonomy comes near.
MOST_LEVELS = 256
_JOINTS = re.compile(r"[-_\s]+")


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


def loose(name: str) -> str:
    """What is left of a name when case, accents' encoding, hyphens, underscores and blanks do not count.

    >>> loose("United-States") == loose("united_states ") == loose("United  States")
    True
    """
    return _JOINTS.sub(" ", unicodedata.normalize("NFKC", name).casefold()).strip()


@internal()
@dataclass(frozen=True, slots=True)
class Names:
    """Codes by exact label, and by loose spelling where exactly the label is not there."""

    exact: Mapping[str, int]
    similar: Mapping[str, tuple[int, ...]]
    labels: Sequence[str]

    @classmethod
    def of(cls, labels: Sequence[str]) -> Names:
        similar: dict[str, tuple[int, ...]] = {}
        for code, name in enumerate(labels):
            key = loose(name)
            similar[key] = (*similar.get(key, ()), code)
        return cls({name: code for code, name in enumerate(labels)}, similar, labels)

    def find(self, value: Any, place: Mapping[str, Any], *, listed_values: bool = False) -> int:
        """The code of a label, spelled exactly or nearly so; `listed_values` says that nobody declared a taxonomy.

        Args:
            place: where the label stands, as facts of an error.

        Raises:
            InputError: there is no such concept, or the spelling fits several.
        """
        name = label(value)
        code = self.exact.get(name)
        if code is not None:
            return code
        candidates = self.similar.get(loose(name), ())
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            several = tuple(self.labels[c] for c in candidates)
            kind = "can-be-several-declared" if listed_values else "can-be-several"
            raise InputError(kind, **place, found=name, allowed=several)
        hint = closest(name, self.labels) or closest(loose(name), self.similar)
        if listed_values:
            raise InputError("not-among-declared-values-correct-add", **place, found=name, hint=hint)
        raise InputError("not-taxonomy-correct-value-add-taxonomy", **place, found=name, hint=hint)

    def find_all(self, values: Iterable[Any], what: str | Message) -> dict[int, str]:
        """Codes of different values, each with its spelling; two spellings of one concept are an error."""
        place = place_of(what)
        found: dict[int, str] = {}
        for value in values:
            code = self.find(value, place)
            if code in found:
                raise InputError("and-are-the-same-concept", **place, found=found[code], other=value)
            found[code] = label(value)
        if not found:
            raise InputError("has-no-values", **place)
        return found

    def encode(
        self,
        values: Iterable[Any],
        what: str | Message,
        allowed: frozenset[int] | None,
        missing: int | None,
        *,
        listed_values: bool = False,
    ) -> NDArray[np.int64]:
        """Codes of a column, of the allowed concepts only; the first row in the way is named."""
        found, which = distinct(values)
        codes = np.empty(len(found) + 1, dtype=np.int64)
        codes[-1] = -1 if missing is None else missing
        numbers, first = np.unique(which, return_index=True)
        for number, at in zip(numbers.tolist(), first.tolist(), strict=True):
            place = place_of(what, at + 1)
            if number < 0:
                if missing is None:
                    raise InputError("the-value-is-missing", **place)
                continue
            codes[number] = code = self.find(found[number], place, listed_values=listed_values)
            if allowed is not None and code not in allowed:
                hint = closest(label(found[number]), [self.labels[c] for c in sorted(allowed)])
                raise InputError("group-not-value", **place, found=label(found[number]), hint=hint)
        return codes[which]


def place_of(what: str | Message, row: int | None = None) -> dict[str, Any]:
    """Where a label stands, as facts of an error: what it belongs to, with the column's name if that is known.

    >>> print(place_of(Message.of("column-named", column="job"), 3)["what"])
    column 'job', row 3
    """
    known = {} if isinstance(what, str) else dict(what.facts)
    if row is None:
        return {**known, "what": what}
    return {**known, "row": row, "what": Message.of("in-row", what=what, row=row)}


def distinct(values: Iterable[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """The different values of a column, and for each row which of them it holds (-1 where it is missing).

    >>> found, which = distinct(["b", "a", None, "b"])
    >>> found, which.tolist()
    (['b', 'a'], [0, 1, -1, 0])
    >>> distinct([None, None])
    ([], array([-1, -1]))
    """
    import pyarrow as pa

    native = values.to_arrow() if hasattr(values, "to_arrow") else values
    try:
        column = (
            native if isinstance(native, pa.ChunkedArray | pa.Array) else pa.array(native, from_pandas=True)
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        # text and numbers side by side: only their text can be compared
        texts = [None if value is None or value != value else label(value) for value in values]
        column = pa.array(texts, pa.string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_null(column.type):
        # nothing but gaps has no type either, and no value
        return [], np.full(len(column), -1, dtype=np.int64)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    which = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return column.dictionary.to_pylist(), which
