"""What is to be learned: a target in words and a table come in, the class of every row leaves."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.schema import Attribute
from shoal.display import internal
from shoal.errors import InputError, OptionError
from shoal.io import Table

Codes = NDArray[np.int64]

MOST_CLASSES = 50
NO_CLASS = -1
_THRESHOLD = re.compile(
    r"(?P<column>.+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)\s*", re.I
)
_OPPOSITE = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A column as a class attribute; the classes are those of the original table.

    Attributes:
        column: the column the classes come from.
        classes: names of the classes, in the order of their codes.
        values: the numbers behind the classes of a numeric column; None for text and for a threshold.
        bound: the number that parts the two classes of a threshold, with the side that `bound` itself is on.
    """

    text: str
    column: str
    classes: tuple[str, ...]
    values: NDArray[np.float64] | None = None
    bound: tuple[str, float] | None = None

    def codes(self, table: Table, attribute: Attribute | None = None) -> Codes:
        """The class of every row of a table; `NO_CLASS` where it has none, or one the original does not know.

        Numbers that are no class of the original, as noise produces them, belong to the nearest one.

        Args:
            table: the original, or a released table.
            attribute: kind of the column, for unrounded values: they are places where labels have an order.
        """
        in_places = attribute is not None and attribute.kind_facts.listed
        labels = _labels_at(table.numeric(self.column), attribute) if attribute and in_places else None
        if self.bound is None and self.values is None:
            return self._of_labels(labels or _labels(table, self.column))
        numbers = np.array(labels, dtype=np.float64) if labels else table.numeric(self.column)
        codes = self._of_numbers(np.where(np.isfinite(numbers), numbers, 0.0))
        codes[~np.isfinite(numbers)] = NO_CLASS
        return codes

    def _of_numbers(self, numbers: NDArray[np.float64]) -> Codes:
        if self.bound is not None:
            sign, bound = self.bound
            above = numbers > bound if sign in (">", "<=") else numbers >= bound
            return above.astype(np.int64)
        assert self.values is not None
        middles = (self.values[1:] + self.values[:-1]) / 2
        return np.searchsorted(middles, numbers).astype(np.int64)

    def _of_labels(self, labels: list[str | None]) -> Codes:
        place: dict[str | None, int] = {name: code for code, name in enumerate(self.classes)}
        return np.array([place.get(label, NO_CLASS) for label in labels], dtype=np.int64)


def target_column(text: str, columns: Collection[str]) -> str:
    """The column that a target is about, with or without a threshold.

    >>> target_column("income > 30000", ["age", "income"]), target_column("a>1", ["a>1"])
    ('income', 'a>1')
    """
    known = None if text in columns else _THRESHOLD.fullmatch(text)
    return known["column"] if known else text


def parse_target(text: str, table: Table) -> Target:
    """The target that a text names: a column of classes, or a numeric column with a threshold.

    Raises:
        InputError: there is no such column, or it does not hold at least two classes.
        OptionError: it holds too many different values to be classes.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> people = read(pa.table({"wage": [10.5, 30.0, 99.0], "sex": ["f", "m", "f"]}))
    >>> parse_target("wage>30", people).classes, parse_target("sex", people).classes
    (('<=30', '>30'), ('f', 'm'))
    >>> parse_target("wage > 30", people).codes(people).tolist()
    [0, 0, 1]
    """
    parsed = _THRESHOLD.fullmatch(text.strip())
    if text not in table.names and parsed is not None:
        target = _threshold(text, table, parsed["column"], parsed["sign"], parsed["bound"])
    else:
        target = _column(text, table)
    counts = np.bincount(target.codes(table) + 1, minlength=len(target.classes) + 1)[1:]
    present = [name for name, count in zip(target.classes, counts, strict=True) if count]
    if not present:
        raise InputError("target-no-value-any-row", text=text)
    if len(present) == 1:
        raise InputError("every-row-target-class", text=text, present=present[0])
    return target


def _threshold(text: str, table: Table, column: str, sign: str, bound: str) -> Target:
    table.numeric(table.known(column))  # text raises the error that names the row
    other = _OPPOSITE[sign]
    low, high = (other, sign) if sign.startswith(">") else (sign, other)
    return Target(text, column, (f"{low}{bound}", f"{high}{bound}"), bound=(sign, float(bound)))


def _column(text: str, table: Table) -> Target:
    table.known(text)
    if not table.is_numeric(text):
        labels = sorted({label for label in _labels(table, text) if label is not None})
        if len(labels) > MOST_CLASSES:
            raise OptionError(
                "target-too-many-labels", text=text, found=len(labels), most_classes=MOST_CLASSES
            )
        return Target(text, text, tuple(labels))
    numbers = table.numeric(text)
    values = np.unique(numbers[np.isfinite(numbers)])
    threshold = float(np.median(values)) if values.size else 0.0
    if (values != np.rint(values)).any():
        raise OptionError("target-holds-numbers-not-whole", text=text, threshold=threshold)
    if values.size > MOST_CLASSES:
        raise OptionError(
            "target-too-many-numbers",
            text=text,
            found=values.size,
            most_classes=MOST_CLASSES,
            threshold=threshold,
        )
    return Target(text, text, tuple(f"{value:.0f}" for value in values), values=values)


def _labels(table: Table, name: str) -> list[str | None]:
    """Text of a column; an empty cell is a missing value."""
    series: nw.Series[Any] = table.series(name)
    if series.dtype == nw.Boolean():
        # frame libraries write truth values differently
        return [None if value is None else str(bool(value)).lower() for value in series.to_list()]
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    texts = [str(value) for value in series.to_list()]
    return [None if gone or not text else text for text, gone in zip(texts, missing, strict=True)]


def _labels_at(places: NDArray[np.float64], attribute: Attribute) -> list[str | None]:
    """Labels at places in their order, which noise may have moved between and beyond them."""
    last = len(attribute.ordered) - 1
    return [attribute.ordered[int(place)] for place in np.clip(np.rint(places), 0, last)]
