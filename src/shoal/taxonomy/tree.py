"""Taxonomies: the public tree of concepts of a nominal attribute, built from links or read from files."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import display
from shoal.display import displayed, internal
from shoal.errors import InputError, MissingExtraError, OptionError, OutputError, closest, needs_extra
from shoal.numbers import Integers
from shoal.taxonomy.marginality import (
    TreeShape,
    histogram_blocks,
    marginality_sums,
    nearest_and_farthest,
    whole_table,
)
from shoal.text import Message

# Distance tables grow with the square of the number of levels; published taxonomies stay far below this limit.
MOST_LEVELS = 256
_JOINTS = re.compile(r"[-_\s]+")


def parents_of_pairs(pairs: Iterable[tuple[Any, Any]]) -> dict[str, str | None]:
    """Parent of every name; a pair with an empty parent declares a root. Pairs may be repeated.

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
    """Parent of every name of nested dicts and lists, where each name must occur once.

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
        InputError: no concepts, a cycle, no root or several, or too many levels.

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
    """A value as the label of its concept: 3 and 3.0 are the same, surrounding blanks are ignored.

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
    """A name without case, Unicode encoding of accents, hyphens, underscores and blanks, for loose comparison.

    >>> loose("United-States") == loose("united_states ") == loose("United  States")
    True
    """
    return _JOINTS.sub(" ", unicodedata.normalize("NFKC", name).casefold()).strip()


@internal()
@dataclass(frozen=True, slots=True)
class LabelCodes:
    """Codes by exact label, or by loose spelling where there is no exact match."""

    exact: Mapping[str, int]
    similar: Mapping[str, tuple[int, ...]]
    labels: Sequence[str]

    @classmethod
    def of(cls, labels: Sequence[str]) -> LabelCodes:
        similar: dict[str, tuple[int, ...]] = {}
        for code, name in enumerate(labels):
            key = loose(name)
            similar[key] = (*similar.get(key, ()), code)
        return cls({name: code for code, name in enumerate(labels)}, similar, labels)

    def find(self, value: Any, place: Mapping[str, Any], *, listed_values: bool = False) -> int:
        """The code of a label by exact or loose spelling; `listed_values`: no taxonomy was declared.

        Args:
            place: where the label occurs, as facts of an error.

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
        """Codes of distinct values, each with its spelling; two spellings of one concept are an error."""
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
        """Codes of a column, allowed concepts only; an error names the first row at fault."""
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
    """Where a label occurs, as facts of an error: what it belongs to, with the column's name if known.

    >>> print(place_of(Message.of("column-named", column="job"), 3)["what"])
    column 'job', row 3
    """
    known = {} if isinstance(what, str) else dict(what.facts)
    if row is None:
        return {**known, "what": what}
    return {**known, "row": row, "what": Message.of("in-row", what=what, row=row)}


def distinct(values: Iterable[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values of a column, and the index of each row's value (-1 where it is missing).

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
        # text and numbers in one column can only be compared as text
        texts = [None if value is None or value != value else label(value) for value in values]
        column = pa.array(texts, pa.string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_null(column.type):
        # a column of missing values only has no type and no values
        return [], np.full(len(column), -1, dtype=np.int64)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    which = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return column.dictionary.to_pylist(), which


# Beyond this many concepts, a table of all pairs would cost more memory than it saves time.
LARGEST_TABLE = 2_000
# Sums of distances in whole units of 2^-bits: exact ties stay ties, and the sums stay below 2^62.
_FINEST_BITS, _SUM_BITS = 45, 62
# default name in errors for values whose place is unknown
_COLUMN, _DOMAIN = Message("the-column"), Message("domain-of-taxonomy")


@displayed(display.of_taxonomy)
@dataclass(frozen=True)
class Taxonomy:
    """A tree of concepts, each with a code: parents before children, the children of a concept by label.

    Codes do not depend on the order in which the tree was written, so equal trees are equal values.

    Attributes:
        labels: name of each concept.
        parents: code of each concept's parent; -1 for the root, which is concept 0.
        domain: codes of the concepts that are values of the attribute, its public domain, ascending: the
            leaves, unless restricted by `minimal`. The other concepts are groups of values.

    >>> sports = Taxonomy.from_dict({"sport": {"water": ["sailing", "swimming"], "field": ["soccer"]}})
    >>> sports.labels
    ('sport', 'field', 'soccer', 'water', 'sailing', 'swimming')
    >>> round(sports.distance(sports.code("sailing"), sports.code("swimming")), 4)
    0.585
    """

    labels: tuple[str, ...]
    parents: tuple[int, ...]
    domain: tuple[int, ...]

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Any, Any]]) -> Taxonomy:
        """A tree from (child, parent) pairs in any order; its values are its leaves.

        >>> Taxonomy.from_pairs([("x", "*"), ("y", "*")]) == Taxonomy.flat(["y", "x"])
        True
        """
        return cls._of(parents_of_pairs(pairs))

    @classmethod
    def from_dict(cls, nested: Mapping[Any, Any]) -> Taxonomy:
        """A tree from nested dicts, with lists or empty dicts at the leaves."""
        if not isinstance(nested, Mapping):
            raise InputError("nested-taxonomy-dict", found=type(nested).__name__)
        return cls._of(parents_of_nested(nested))

    @classmethod
    def flat(cls, values: Iterable[Any], root: str = "*") -> Taxonomy:
        """The taxonomy of values without further structure: all of them below one root."""
        return cls._of(parents_of_nested({root: list(values)}))

    @classmethod
    def load(cls, path: str | Path) -> Taxonomy:
        """A tree from a file: OWL or other RDF, SKOS, CSV (pairs, or one row per leaf with its ancestors), or JSON.

        Raises:
            InputError: the file cannot be read, or its content is not a tree.
            MissingExtraError: it is OWL, SKOS or other RDF, and the extra 'rdf' is not installed.
        """

        try:
            return cls.from_pairs(read_pairs(Path(path)))
        except (InputError, MissingExtraError) as error:
            raise type(error)("of-taxonomy", path=path, reason=error) from None

    @classmethod
    def _of(cls, parent_of: Mapping[str, str | None]) -> Taxonomy:
        labels, parents = canonical(parent_of)
        inner = set(parents)
        return cls(labels, parents, tuple(code for code in range(len(labels)) if code not in inner))

    def save(self, path: str | Path) -> None:
        """Write (child, parent) pairs as CSV."""

        write_pairs(Path(path), self.to_pairs())

    def to_pairs(self) -> list[tuple[str, str]]:
        """(child, parent) of every concept, an empty parent for the root."""
        return [
            (name, self.labels[parent] if parent >= 0 else "")
            for name, parent in zip(self.labels, self.parents, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts, empty ones at the leaves.

        >>> Taxonomy.flat(["b", "a"]).to_dict()
        {'*': {'a': {}, 'b': {}}}
        """
        nested: list[dict[str, Any]] = [{} for _ in self.labels]
        for code, parent in enumerate(self.parents):
            if parent >= 0:
                nested[parent][self.labels[code]] = nested[code]
        return {self.labels[0]: nested[0]}

    def __post_init__(self) -> None:
        size = len(self.labels)
        if len(self.parents) != size or not size or self.parents[0] != -1:
            raise InputError("taxonomy-needs-many-parents-labels-root")
        if any(not 0 <= parent < code for code, parent in enumerate(self.parents[1:], start=1)):
            raise InputError("codes-taxonomy-ascend-from-parents-children")
        if not self.domain or list(self.domain) != sorted(set(self.domain)):
            raise InputError("domain-taxonomy-hold-value-more-ascending")
        if self.domain[0] < 0 or self.domain[-1] >= size:
            raise InputError("domain-taxonomy-hold-codes-below", size=size)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def size(self) -> int:
        """Number of concepts."""
        return len(self.labels)

    @property
    def root(self) -> int:
        return 0

    @cached_property
    def shape(self) -> TreeShape:
        """The tree without names, for array operations."""
        return TreeShape(np.array(self.parents, dtype=np.int64))

    @property
    def depths(self) -> Integers:
        """Steps from each concept up to the root."""
        return self.shape.depths

    @property
    def levels(self) -> int:
        return self.shape.levels

    @property
    def leaves(self) -> Integers:
        return self.shape.leaves

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Labels of the domain."""
        return tuple(self.labels[code] for code in self.domain)

    @cached_property
    def names(self) -> LabelCodes:
        return LabelCodes.of(self.labels)

    def code(self, name: Any) -> int:
        """The code of a concept; case, hyphens, underscores and blanks may differ if unambiguous.

        >>> Taxonomy.flat(["United_States"]).code("united-states")
        1
        """
        return self.names.find(name, place_of(Message("the-concept")))

    def ancestors(self, code: int) -> tuple[int, ...]:
        """The concept itself, its parent, and so on up to the root."""
        line = [code]
        while self.parents[line[-1]] >= 0:
            line.append(self.parents[line[-1]])
        return tuple(line)

    def minimal(self, values: Iterable[Any], what: str | Message = _DOMAIN) -> Taxonomy:
        """The values of a public domain and their ancestors only; values keep the given spelling.

        Raises:
            InputError: a value is not in the taxonomy, or two values are the same concept.

        >>> tree = Taxonomy.from_dict({"*": {"a": ["x", "y"], "b": ["z"]}})
        >>> tree.minimal(["Z"]).labels
        ('*', 'b', 'Z')
        """
        wanted = self.names.find_all(values, what)
        kept = sorted({ancestor for code in wanted for ancestor in self.ancestors(code)})
        spelled = {code: wanted.get(code, self.labels[code]) for code in kept}
        if len(set(spelled.values())) < len(spelled):
            raise InputError("value-spelled-like-another-concept-taxonomy", **place_of(what))
        labels, parents = canonical(
            {spelled[code]: spelled[self.parents[code]] if code else None for code in kept}
        )
        places = {name: place for place, name in enumerate(labels)}
        return Taxonomy(labels, parents, tuple(sorted(places[name] for name in wanted.values())))

    def encode(
        self,
        values: Iterable[Any],
        what: str | Message = _COLUMN,
        *,
        concepts: bool = False,
        missing: int | None = None,
        listed_values: bool = False,
    ) -> Integers:
        """Codes of a column of labels; each distinct value is looked up once.

        Args:
            values: labels in an array, a list, or a column of any dataframe library.
            what: how an error names the column.
            concepts: also accept groups of values, which generalised tables contain.
            missing: the code for missing values, usually -1; if None, they are an error.
            listed_values: the tree is only a list of values, and errors say so.

        Raises:
            InputError: a value is missing or not in the domain; names the row.

        >>> Taxonomy.flat(["a", "b"]).encode(["b", "a", "B"]).tolist()
        [2, 1, 2]
        """
        allowed = None if concepts else frozenset(self.domain)
        return self.names.encode(values, what, allowed, missing, listed_values=listed_values)

    def check(self, values: Iterable[Any], what: str | Message = _COLUMN) -> None:
        """Raise the error of `encode` unless every value is in the domain or missing."""
        self.encode(values, what, missing=-1)

    def decode(self, codes: ArrayLike) -> NDArray[np.object_]:
        """Labels of codes; None for -1.

        >>> Taxonomy.flat(["a", "b"]).decode([2, -1, 0]).tolist()
        ['b', None, '*']
        """
        numbers = np.asarray(codes, dtype=np.int64)
        if numbers.size and (numbers.min() < -1 or numbers.max() >= self.size):
            raise OptionError("codes-from-0-1-missing-value", option="codes", size=self.size - 1)
        names = np.array([*self.labels, None], dtype=object)
        found: NDArray[np.object_] = names[numbers]
        return found

    def distance(self, a: int, b: int) -> float:
        """The semantic distance δ of two concepts: 0 for the same, always below 1.

        δ(a, b) = log2(1 + (|A ∪ B| - |A ∩ B|) / |A ∪ B|), A and B being the ancestors of a and b, themselves included.

        Reference:
            The thesis, Equation 6.6.
        """
        return float(self.shape.distances(a, b))

    def distances(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """δ of each pair of two arrays of codes, broadcast against each other, without a table of all pairs."""
        return self.shape.distances(a, b)

    def distances_to(self, code: int) -> NDArray[np.float64]:
        """δ of every concept to one of them."""
        return self.shape.distances(np.arange(self.size), code)

    def distance_table(self) -> NDArray[np.float64]:
        """δ of all pairs of concepts, for kernels that use a lookup table.

        Raises:
            OptionError: more than 2,000 concepts.
        """
        if self.size > LARGEST_TABLE:
            raise OptionError("taxonomy-concepts-table-all-pairs-most", found=self.size, most=LARGEST_TABLE)
        every = np.arange(self.size)
        return self.shape.distances(every[:, np.newaxis], every)

    @cached_property
    def diameter(self) -> float:
        """The largest δ of two values of the domain: the maximum effect of one record on a marginality."""
        _, farthest = nearest_and_farthest(self.shape, self._domain, self.shape.distance_of_counts)
        return float(farthest[self._domain].max())

    @cached_property
    def boundaries(self) -> tuple[int, int]:
        """The most marginal value of the domain, each value counted once, and the one farthest from it.

        Ties go to the lowest code. Independent of the records.

        Reference:
            The thesis, Equations 6.2 and 6.3.
        """
        once = np.zeros(self.size, dtype=np.int64)
        once[self._domain] = 1
        sums = marginality_sums(self.shape, once[np.newaxis], whole_table(self.shape, self._bits(self.size)))[
            0
        ]
        first = int(self._domain[np.argmax(sums[self._domain])])
        away = self.distances_to(first)[self._domain]
        return first, int(self._domain[np.argmax(away)])

    @cached_property
    def width(self) -> float:
        """δ of the two boundaries: the divisor that makes distances of several attributes comparable."""
        return self.distance(*self.boundaries)

    def marginalities(self, histograms: ArrayLike) -> NDArray[np.float64]:
        """The marginality of every concept in a sample: the sum of its distances to the sample's values.

        Args:
            histograms: count of each concept in the sample, shape (size,), or (samples, size) for many.

        Cost:
            Time samples · concepts · levels².

        >>> Taxonomy.flat(["a", "b"]).marginalities([0, 2, 0]).round(4).tolist()
        [1.1699, 0.0, 1.4739]
        """
        counts = np.asarray(histograms, dtype=np.int64)
        if counts.shape[-1] != self.size or counts.ndim > 2 or (counts < 0).any():
            raise OptionError("histogram-hold-counts-least-0-per", size=self.size)
        rows = counts.reshape(-1, self.size)
        bits = self._bits(int(rows.sum(axis=1).max(initial=0)))
        sums = marginality_sums(self.shape, rows, whole_table(self.shape, bits))
        return np.ldexp(sums.astype(np.float64), -bits).reshape(counts.shape)

    def centroids(
        self, labels: ArrayLike, codes: ArrayLike, clusters: int, *, generalise: bool = True
    ) -> Integers:
        """The least marginal concept of each cluster. Not private by itself: see `categorical_centroids`.

        Args:
            labels: cluster of each record, 0 .. clusters - 1.
            codes: value of each record.
            clusters: number of clusters.
            generalise: allow groups of values as centroids, not only values.

        Reference:
            The thesis, Equation 6.4.

        >>> tree = Taxonomy.flat(["a", "b"])
        >>> tree.decode(tree.centroids([0, 0, 0, 1], tree.encode(["a", "a", "b", "b"]), 2)).tolist()
        ['a', 'b']
        """
        which, values = np.asarray(labels, dtype=np.int64), np.asarray(codes, dtype=np.int64)
        candidates = self.candidates(generalise=generalise)
        largest = int(np.bincount(which, minlength=1).max())
        table = whole_table(self.shape, self._bits(largest))
        found = np.empty(clusters, dtype=np.int64)
        for block, counts in histogram_blocks(self.shape, which, values, clusters):
            sums = marginality_sums(self.shape, counts, table)
            found[block] = candidates[np.argmin(sums[:, candidates], axis=1)]
        return found

    def centroid(self, codes: ArrayLike, *, generalise: bool = True) -> int:
        """The least marginal concept of one sample; ties go to the lowest code."""
        values = np.asarray(codes, dtype=np.int64)
        return int(self.centroids(np.zeros(values.size, np.int64), values, 1, generalise=generalise)[0])

    def candidates(self, *, generalise: bool) -> Integers:
        """Codes that can represent a cluster: all concepts, or the values only."""
        return np.arange(self.size) if generalise else self._domain

    @cached_property
    def _domain(self) -> Integers:
        return np.array(self.domain, dtype=np.int64)

    @staticmethod
    def _bits(largest: int) -> int:
        return min(_FINEST_BITS, _SUM_BITS - largest.bit_length())


Pairs = list[tuple[str, str]]

# Length of the beginning of a file from which its format is detected.
_OPENING = 4096
_HEADER_WORDS = {"child", "concept", "leaf", "value", "narrower"}
_DELIMITERS = (";", "\t", ",", "|")
_RDF_ENDINGS = {
    ".owl": "xml",
    ".rdf": "xml",
    ".ttl": "turtle",
    ".nt": "nt",
    ".n3": "n3",
    ".jsonld": "json-ld",
}
_XML = re.compile(r"\s*<(\?xml|rdf:RDF|!DOCTYPE|!--)")
_TURTLE = re.compile(r"\s*(#[^\n]*\n\s*)*(@prefix|@base|PREFIX\s|BASE\s|<[a-z]+:)", re.IGNORECASE)


def read_pairs(path: Path) -> Pairs:
    """The links of a taxonomy file of any format.

    Raises:
        InputError: the file is missing, unreadable or not a taxonomy.
        MissingExtraError: it is RDF, and rdflib is not installed.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError("it-cannot-be-read", reason=error.strerror or error) from None
    if not content.strip():
        raise InputError("it-is-empty")
    rdf_form = rdf_format(path, content[:_OPENING].decode("utf-8-sig", "replace"))
    if rdf_form is not None:
        with needs_extra("rdf", "files in OWL, SKOS or other RDF need"):
            from shoal.taxonomy.rdf import rdf_pairs

        return rdf_pairs(content, rdf_form)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not-utf-8-text") from None
    if text.lstrip().startswith("{"):
        return json_pairs(text)
    return csv_pairs(text)


def rdf_format(path: Path, text: str) -> str | None:
    """rdflib's name of the syntax, or None for other formats.

    >>> rdf_format(Path("a.owl"), "@prefix : <x#> ."), rdf_format(Path("a.csv"), "a,b")
    ('turtle', None)
    """
    if _XML.match(text):
        return "xml"
    if path.suffix.lower() not in (".csv", ".tsv", ".txt", ".json") and _TURTLE.match(text):
        return "nt" if path.suffix.lower() == ".nt" else "turtle"
    return _RDF_ENDINGS.get(path.suffix.lower())


def json_pairs(text: str) -> Pairs:
    """Links of nested JSON objects and arrays.

    >>> json_pairs('{"*": ["a", "b"]}')
    [('*', ''), ('a', '*'), ('b', '*')]
    """
    try:
        nested = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError("not-valid-json", reason=error) from None
    return [(child, parent or "") for child, parent in parents_of_nested(nested).items()]


def csv_pairs(text: str) -> Pairs:
    """Links of a CSV: rows of child,parent, or rows of a leaf and its ancestors up to the root.

    Two cells in a row mean the same in both forms. A first row that shares no cell with the others is a header.
    In the long form a name repeated along its row is one concept, and trailing empty cells are ignored.

    >>> csv_pairs("child,parent\\nx,a\\na,\\n")
    [('x', 'a'), ('a', '')]
    >>> csv_pairs("x;a;*\\ny;a;*\\n*;*;*\\n")
    [('x', 'a'), ('a', '*'), ('y', 'a'), ('a', '*'), ('*', '')]
    """
    rows = _cells(text)
    later = {cell for row in rows[1:] for cell in row if cell}
    named = rows[0][0].casefold() in _HEADER_WORDS
    if (len(rows) > 2 or named) and not later & set(rows[0]):
        rows = rows[1:]
    pairs: Pairs = []
    for number, row in enumerate(rows, start=1):
        while row and not row[-1]:
            row.pop()
        if not all(row):
            raise InputError("row-links-empty-name-before", row=number, name=row[-1])
        line = [cell for place, cell in enumerate(row) if place == 0 or cell != row[place - 1]]
        pairs += pairwise(line) if len(line) > 1 else [(line[0], "")]
    return pairs


def _cells(text: str) -> list[list[str]]:
    """Cells without surrounding blanks, split at the first delimiter that splits every row, or nearly every row."""
    best: list[list[str]] = []
    most = 0
    for delimiter in _DELIMITERS:
        reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
        try:
            rows = [[cell.strip() for cell in row] for row in reader if any(cell.strip() for cell in row)]
        except csv.Error as error:
            raise InputError("not-valid-csv-file", reason=error) from None
        parted = sum(len(row) > 1 for row in rows)
        if parted > most:
            best, most = rows, parted
    if not best:
        raise InputError("it-has-one-column-only")
    return best


def write_pairs(path: Path, pairs: Pairs) -> None:
    """Write a CSV with the header child,parent, through a temporary file that is then renamed."""
    aside = path.with_name(path.name + ".part")
    try:
        with aside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("child", "parent"))
            writer.writerows(pairs)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OutputError("cannot-write-taxonomy", path=path, reason=error.strerror or error) from None
