"""Names of concepts. In: labels as a table or a person spells them. Out: codes, or an error with a hint."""

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
from shoal.taxonomy.build import label
from shoal.text import Message

_JOINTS = re.compile(r"[-_\s]+")


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
