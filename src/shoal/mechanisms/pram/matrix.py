"""Matrices of PRAM: read from what a caller declares, made for an ε or a smallest diagonal, and priced."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import OptionError, closest
from shoal.mechanisms.parameter_fields import Form, Parameter, from_json
from shoal.noise import enclose_exp
from shoal.numbers import Integers, decimal_text, exact
from shoal.text import Message

# the sum of a row's weights, of which a draw takes a uniform integer
_MOST_SUM = 1 << 62
# probabilities of a matrix made for an ε have 15 decimals, all of which a float64 shows
_PARTS = 10**15
# ε of a matrix is rounded up to this many decimals
_DECIMALS = 9
_BITS = 160


@dataclass(frozen=True, slots=True)
class DeclaredMatrix:
    """A matrix as declared: the probabilities of the released values, one row for each original value.

    Attributes:
        rows: the probabilities; every row adds up to exactly 1.
        names: the values in the order of rows and columns; empty for the order of the declared values.
    """

    rows: tuple[tuple[Fraction, ...], ...]
    names: tuple[str, ...] = ()

    @property
    def plain(self) -> Any:
        """As a recipe stores it; probabilities are texts, because a third has no decimal form."""
        rows = [[probability_text(entry) for entry in row] for row in self.rows]
        if not self.names:
            return rows
        return {
            name: dict(zip(self.names, row, strict=True)) for name, row in zip(self.names, rows, strict=True)
        }


# the matrix of a column, or one for each value of the stratum
Declared = DeclaredMatrix | tuple[tuple[str, DeclaredMatrix], ...]


def declared(value: Declared) -> Iterator[DeclaredMatrix]:
    """The matrix of a column, or all of them where they differ by stratum."""
    yield from (value,) if isinstance(value, DeclaredMatrix) else (one for _, one in value)


def probability_text(value: Fraction) -> str:
    """A probability that is read back as the same number.

    >>> probability_text(Fraction(9, 10)), probability_text(Fraction(1, 3))
    ('0.9', '1/3')
    """
    text = decimal_text(value)
    return text if exact(text, "matrix") == value else f"{value.numerator}/{value.denominator}"


def _probability(column: str, value: Any) -> Fraction:
    what = Message.of("matrix-of-column", column=column)
    above, line, under = value.partition("/") if isinstance(value, str) else (value, "", "")
    if line and above.strip().isdigit() and under.strip().isdigit() and int(under) > 0:
        found = Fraction(int(above), int(under))
    else:
        found = exact(value, what)
    if not 0 <= found <= 1:
        raise OptionError("matrix-entry-no-probability", column=column, option="matrix", found=value)
    return found


def _checked(column: str, rows: Sequence[Sequence[Any]], names: Sequence[str] = ()) -> DeclaredMatrix:
    read = tuple(tuple(_probability(column, entry) for entry in row) for row in rows)
    for number, row in enumerate(read):
        if len(row) != len(read):
            raise OptionError(
                "matrix-not-square", column=column, option="matrix", rows=len(read), entries=len(row)
            )
        if sum(row) != 1:
            name = names[number] if names else str(number + 1)
            found = probability_text(sum(row, Fraction(0)))
            raise OptionError("matrix-row-sum", column=column, option="matrix", name=name, found=found)
        if math.lcm(*(entry.denominator for entry in row)) >= _MOST_SUM:
            raise OptionError("matrix-too-fine", column=column, option="matrix")
    return DeclaredMatrix(read, tuple(names))


def _of_mapping(column: str, given: Mapping[Any, Any]) -> DeclaredMatrix:
    names = [str(name) for name in given]
    rows = []
    for own, row in given.items():
        if not isinstance(row, Mapping):
            raise OptionError("matrix-not-understood", column=column, option="matrix", found=row)
        known = {str(name): entry for name, entry in row.items()}
        for name in known:
            if name not in names:
                raise OptionError(
                    "matrix-value-without-row",
                    column=column,
                    option="matrix",
                    found=name,
                    name=str(own),
                    hint=closest(name, names),
                )
        rows.append([known.get(name, 0) for name in names])
    return _checked(column, rows, names)


def _of_file(column: str, path: Path) -> DeclaredMatrix:
    """A CSV file: the released values in the first line, an original value before each further line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(
            "matrix-file-unreadable", column=column, option="matrix", path=path, reason=reason
        ) from None
    if len(lines) < 2 or any(len(line) != len(lines[0]) for line in lines):
        raise OptionError("matrix-file-no-table", column=column, option="matrix", path=path)
    released = lines[0][1:]
    return _of_mapping(column, {line[0]: dict(zip(released, line[1:], strict=True)) for line in lines[1:]})


def _is_rows(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(row, list | tuple) for row in given)


def _one(column: str, given: Any) -> DeclaredMatrix:
    if isinstance(given, DeclaredMatrix):
        return given
    if isinstance(given, str | Path):
        return _of_file(column, Path(given))
    if isinstance(given, Mapping) and given:
        return _of_mapping(column, given)
    if _is_rows(given) and given:
        return _checked(column, given)
    raise OptionError("matrix-not-understood", column=column, option="matrix", found=given)


def _differs(given: Any) -> bool:
    """Whether this is a matrix for each stratum."""
    if isinstance(given, tuple) and given and isinstance(given[0], tuple) and len(given[0]) == 2:
        return isinstance(given[0][1], DeclaredMatrix)
    if not isinstance(given, Mapping) or not given:
        return False
    first = next(iter(given.values()))
    if isinstance(first, str | Path | DeclaredMatrix) or _is_rows(first):
        return True
    return isinstance(first, Mapping) and any(isinstance(row, Mapping) for row in first.values())


def _read(setting: Parameter, value: Any) -> tuple[tuple[str, Declared], ...]:
    if not isinstance(value, Mapping) or not value:
        raise OptionError("matrix-by-column", option=setting.name, found=value)
    found: list[tuple[str, Declared]] = []
    for column, given in value.items():
        name = str(column)
        if _differs(given):
            each = dict(given).items()
            found.append((name, tuple((str(stratum), _one(name, one)) for stratum, one in each)))
        else:
            found.append((name, _one(name, given)))
    return tuple(found)


def _parse(name: str, text: str) -> Any:
    if text.lstrip().startswith("{"):
        return from_json(name, text)
    pairs = [part.partition("=") for part in text.split(",")]
    return {column.strip(): path.strip() for column, _, path in pairs}


def _plain(value: tuple[tuple[str, Declared], ...]) -> dict[str, Any]:
    return {
        column: one.plain if isinstance(one, DeclaredMatrix) else {stratum: own.plain for stratum, own in one}
        for column, one in value
    }


MATRIX = Form("a matrix per column", "a=FILE,b=FILE", _read, _parse, by_name=True, plain=_plain)


def in_order(column: str, matrix: DeclaredMatrix, values: Sequence[str]) -> Integers:
    """The integer weights of a declared matrix, with the values of the column in their order.

    Raises:
        OptionError: its values are not those of the column.
    """
    names = matrix.names or tuple(values)
    if len(matrix.rows) != len(values):
        raise OptionError(
            "matrix-size-differs",
            column=column,
            option="matrix",
            rows=len(matrix.rows),
            values=len(values),
            allowed=tuple(values),
        )
    for name in names:
        if name not in values:
            raise OptionError(
                "matrix-names-no-value", column=column, option="matrix", found=name, allowed=tuple(values)
            )
    place = [names.index(value) for value in values]
    weights = []
    for number in place:
        row = matrix.rows[number]
        under = math.lcm(*(entry.denominator for entry in row))
        weights.append([int(row[other] * under) for other in place])
    return np.array(weights, dtype=np.int64)


def _alike(values: int, stays: int, moves: int) -> Integers:
    return np.full((values, values), moves, dtype=np.int64) + np.eye(values, dtype=np.int64) * (stays - moves)


def for_epsilon(values: int, epsilon: Fraction) -> Integers:
    """Randomised response over so many values: a value keeps its place with odds of at most e^ε to 1 each.

    Probabilities have 15 decimals; that of a change is rounded up, so that the odds never exceed e^ε.

    >>> for_epsilon(2, Fraction(1))[0].tolist()
    [731058578630004, 268941421369996]
    """
    _, above = enclose_exp(epsilon, _BITS)
    # e^ε is at least 2^bits / above
    moves = -(-_PARTS * above // ((1 << _BITS) + (values - 1) * above)) or 1
    stays = _PARTS - (values - 1) * moves
    return _alike(values, stays, moves) if stays >= moves else _alike(values, 1, 1)


def for_diagonal(values: int, keep: Fraction) -> Integers:
    """The matrix that keeps every value with exactly this probability, and changes it to all others alike.

    >>> for_diagonal(3, Fraction(4, 5))[0].tolist()
    [8, 1, 1]
    """
    if values == 1:
        return _alike(1, 1, 1)
    stays, moves = keep.numerator * (values - 1), keep.denominator - keep.numerator
    common = math.gcd(stays, moves)
    return _alike(values, stays // common, moves // common)


def largest_ratio(weights: Sequence[Integers]) -> Fraction | None:
    """The largest ratio of two probabilities of one released value, over all rows of all matrices.

    None if a value is possible after one original value and impossible after another.

    >>> largest_ratio([np.array([[3, 1], [1, 1]])])
    Fraction(2, 1)
    """
    rows = np.concatenate(list(weights))
    sums = rows.sum(axis=1)
    most = Fraction(1)
    for column in rows.T:
        if not column.any():
            continue
        if not column.all():
            return None
        if (sums == sums[0]).all():
            most = max(most, Fraction(int(column.max()), int(column.min())))
        else:
            found = [Fraction(int(entry), int(total)) for entry, total in zip(column, sums, strict=True)]
            most = max(most, max(found) / min(found))
    return most


def log_rounded_up(ratio: Fraction) -> Fraction:
    """The smallest number with 9 decimals that is at least the logarithm of a ratio of at least 1.

    >>> log_rounded_up(Fraction(1)), log_rounded_up(Fraction(3))
    (Fraction(0, 1), Fraction(1098612289, 1000000000))
    """
    near = (math.log(ratio.numerator) - math.log(ratio.denominator)) * 10**_DECIMALS
    found = max(math.floor(near - 1e-3), 0)
    # exp(-found) · ratio <= 1, by a bound on the exponential from above
    while enclose_exp(Fraction(found, 10**_DECIMALS), _BITS)[1] * ratio > 1 << _BITS:
        found += 1
    return Fraction(found, 10**_DECIMALS)
