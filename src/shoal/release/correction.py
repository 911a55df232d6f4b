"""Frequencies of a release corrected for the matrices that its values passed, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from shoal import display
from shoal.columns import Declaration, Schema, describe
from shoal.display import displayed
from shoal.errors import OptionError, Problems
from shoal.io import read
from shoal.mechanisms import CorrectedFrequency, Method


@displayed(display.of_corrected)
@dataclass(frozen=True, slots=True)
class Corrected:
    """Estimated frequencies of the original values of one column; post-processing of the released table.

    Attributes:
        column: its name.
        rows: number of released rows.
        values: the values that the column can have, "(missing)" included.
        released: how many released rows have each value.
        counts: unbiased estimates of how many records had it. They add up to the number of rows; rare values can have
            negative estimates.
        standard_errors: of the estimates. They cover the random changes of the values, not the choice of a sample.
    """

    column: str
    rows: int
    values: tuple[str, ...]
    released: tuple[int, ...]
    counts: tuple[float, ...]
    standard_errors: tuple[float, ...]

    @property
    def shares(self) -> tuple[float, ...]:
        """The estimated counts as shares of the rows."""
        return tuple(count / max(self.rows, 1) for count in self.counts)

    def interval(self, level: float = 0.95) -> tuple[tuple[float, float], ...]:
        """An interval for each count that contains it with this probability, by the normal approximation.

        Raises:
            OptionError: the level is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise OptionError("level-between-0-and-1", option="level", found=level)
        factor = NormalDist().inv_cdf((1 + level) / 2)
        return tuple(
            (count - factor * error, count + factor * error)
            for count, error in zip(self.counts, self.standard_errors, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "column": self.column,
            "rows": self.rows,
            "values": [
                {"value": value, "released": released, "count": count, "standard_error": error}
                for value, released, count, error in zip(
                    self.values, self.released, self.counts, self.standard_errors, strict=True
                )
            ],
        }


def corrected(data: Any, method: Method, schema: Schema, columns: tuple[str, ...], column: str) -> Corrected:
    """The frequencies of one released column before the matrix that it passed.

    Args:
        data: the released table.
        schema: the public facts about its columns.
        columns: all released columns, among which ε was split.

    Raises:
        OptionError: the column is not released, or its values passed no matrix that has an inverse.
    """
    # cleaning steps and units belong to the table before protection
    released = Schema(tuple(one for one in schema.attributes if one.name in columns), schema.file)
    problems = Problems()
    described = describe(
        read(data),
        Declaration.of(replace(released, before=None), columns=list(columns), outside="clip"),
        method.kinds,
        flags=method.stage.flags,
        problems=problems,
    )
    problems.raise_all()
    found: CorrectedFrequency = method.corrected(described, column)
    return Corrected(
        column,
        described.n,
        found.names,
        tuple(found.released.tolist()),
        tuple(found.counts.tolist()),
        tuple(found.errors.tolist()),
    )
