"""Taxonomies: the public tree of concepts of a nominal attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import summaries
from shoal.display import displayed
from shoal.errors import InputError, MissingExtraError, OptionError
from shoal.taxonomy.links import Names, canonical, parents_of_nested, parents_of_pairs, place_of
from shoal.taxonomy.marginality import (
    Codes,
    Shape,
    histogram_blocks,
    marginality_sums,
    nearest_and_farthest,
    whole_table,
)
from shoal.text import Message

# A table of all pairs beyond this many concepts would take more memory than it saves time.
LARGEST_TABLE = 2_000
# Sums of distances in whole units of 2^-bits: exact ties stay ties, and the sums stay below 2^62.
_FINEST_BITS, _SUM_BITS = 45, 62
# what errors call values of which nobody says where they stand
_COLUMN, _DOMAIN = Message("the-column"), Message("domain-of-taxonomy")


@displayed(summaries.of_taxonomy)
@dataclass(frozen=True)
class Taxonomy:
    """A tree of concepts, each with a code: parents before children, the children of a concept by label.

    Codes do not depend on the order in which the tree was written down, so equal trees are equal values.

    Attributes:
        labels: name of each concept.
        parents: code of each concept's parent; -1 for the root, which is concept 0.
        domain: codes of the concepts that are values of the attribute, its public domain, ascending: the leaves, unless
            `minimal` has been told otherwise. The other concepts are groups of values.

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
        """A tree from nested dicts, with lists or empty dicts at the ends."""
        if not isinstance(nested, Mapping):
            raise InputError("nested-taxonomy-dict", found=type(nested).__name__)
        return cls._of(parents_of_nested(nested))

    @classmethod
    def flat(cls, values: Iterable[Any], root: str = "*") -> Taxonomy:
        """The taxonomy of values about which nothing else is known: all of them below one root."""
        return cls._of(parents_of_nested({root: list(values)}))

    @classmethod
    def load(cls, path: str | Path) -> Taxonomy:
        """A tree from a file: OWL or other RDF, SKOS, CSV (pairs, or one row per leaf with its ancestors), JSON.

        Raises:
            InputError: the file cannot be read, or what it holds is not a tree.
            MissingExtraError: it is OWL, SKOS or other RDF, and the extra 'rdf' is not installed.
        """
        from shoal.taxonomy.files import read_pairs

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
        from shoal.taxonomy.files import write_pairs

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
    def shape(self) -> Shape:
        """The tree without names, for array work."""
        return Shape(np.array(self.parents, dtype=np.int64))

    @property
    def depths(self) -> Codes:
        """Steps from each concept up to the root."""
        return self.shape.depths

    @property
    def levels(self) -> int:
        return self.shape.levels

    @property
    def leaves(self) -> Codes:
        return self.shape.leaves

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Labels of the domain."""
        return tuple(self.labels[code] for code in self.domain)

    @cached_property
    def names(self) -> Names:
        return Names.of(self.labels)

    def code(self, name: Any) -> int:
        """The code of a concept; case, hyphens, underscores and blanks may differ where that is unambiguous.

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
        """The values of a public domain and their ancestors, nothing else; values are spelled as given.

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
    ) -> Codes:
        """Codes of a column of labels; only its different values are looked up one by one.

        Args:
            values: labels in an array, a list, or a column of any dataframe library.
            what: how an error names the column.
            concepts: accept groups of values too, as generalised tables hold them.
            missing: the code of missing values, -1 usually; without one they are an error.
            listed_values: the tree is a mere list of values, and errors call it so.

        Raises:
            InputError: a value is not in the domain, or missing; names the row.

        >>> Taxonomy.flat(["a", "b"]).encode(["b", "a", "B"]).tolist()
        [2, 1, 2]
        """
        allowed = None if concepts else frozenset(self.domain)
        return self.names.encode(values, what, allowed, missing, listed_values=listed_values)

    def check(self, values: Iterable[Any], what: str | Message = _COLUMN) -> None:
        """Nothing if every value is in the domain (missing ones aside), otherwise the error of `encode`."""
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
        """The semantic distance δ of two concepts: 0 for the same, below 1 always.

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
        """δ of all pairs of concepts, for kernels that look distances up.

        Raises:
            OptionError: more than 2,000 concepts.
        """
        if self.size > LARGEST_TABLE:
            raise OptionError("taxonomy-concepts-table-all-pairs-most", found=self.size, most=LARGEST_TABLE)
        every = np.arange(self.size)
        return self.shape.distances(every[:, np.newaxis], every)

    @cached_property
    def diameter(self) -> float:
        """The largest δ of two values of the domain: how far one record can move a marginality."""
        _, farthest = nearest_and_farthest(self.shape, self._domain, self.shape.distance_of_counts)
        return float(farthest[self._domain].max())

    @cached_property
    def boundaries(self) -> tuple[int, int]:
        """The most marginal value of the domain, each value counted once, and the one farthest from it.

        Ties go to the lowest code. The records play no part.

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
        """δ of the two boundaries: what a distance is divided by when it is added to those of other attributes."""
        return self.distance(*self.boundaries)

    def marginalities(self, histograms: ArrayLike) -> NDArray[np.float64]:
        """The marginality of every concept towards a sample: the sum of its distances to the values of the sample.

        Args:
            histograms: how often each concept occurs in the sample, shape (size,), or (samples, size) for many.

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
    ) -> Codes:
        """The least marginal concept of each cluster. No privacy by itself: see `categorical_centroids`.

        Args:
            labels: cluster of each record, 0 .. clusters - 1.
            codes: value of each record.
            clusters: number of clusters.
            generalise: groups of values can be centroids too, not only values.

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

    def candidates(self, *, generalise: bool) -> Codes:
        """Codes that can stand for a cluster: all concepts, or the values only."""
        return np.arange(self.size) if generalise else self._domain

    @cached_property
    def _domain(self) -> Codes:
        return np.array(self.domain, dtype=np.int64)

    @staticmethod
    def _bits(largest: int) -> int:
        return min(_FINEST_BITS, _SUM_BITS - largest.bit_length())


def as_taxonomy(given: Taxonomy | Mapping[Any, Any] | Sequence[Any] | str | Path) -> Taxonomy:
    """A taxonomy from whatever a user may write: one already made, a nested dict, a list of values, a path.

    >>> as_taxonomy(["a", "b"]).labels
    ('*', 'a', 'b')
    """
    if isinstance(given, Taxonomy):
        return given
    if isinstance(given, str | Path):
        return Taxonomy.load(given)
    if isinstance(given, Mapping):
        return Taxonomy.from_dict(given)
    return Taxonomy.flat(given)
