"""The noisy numbers of a release: what passed the privacy accountant, as published beside the rows drawn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.display import DisplaySummary, displayed
from shoal.errors import InputError
from shoal.numbers import Integers

# version of the file format
VERSION = 1


@dataclass(frozen=True, slots=True)
class RecordSum:
    """A function of one record, or several of them, summed over all records; docs/measurements.md lists the kinds.

    Attributes:
        kind: the functions, such as `sign`, `count` or `contrast`.
        columns: the attributes, by number.
        where: what the functions depend on besides: cut points, levels, pairs; functions of earlier outputs.
    """

    kind: str
    columns: tuple[int, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)


@displayed(lambda found: DisplaySummary(f"{found.sums.size} noisy sums", (found.kind,)))
@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Noisy sums over the records, or cut points drawn from them: an output of the accountant, already paid for.

    Attributes:
        kind, columns, where: as for `RecordSum`.
        sums: exact sums plus noise; empty where positions were drawn, which are in `where`.
        sd: standard deviation of the noise on each.
        law: distribution of the noise, exactly: its name and parameters, fractions as text.
    """

    kind: str
    columns: tuple[int, ...]
    where: Mapping[str, Any]
    sums: Integers
    sd: float
    law: Mapping[str, Any]

    @classmethod
    def of(cls, what: RecordSum, sums: Integers, sd: float, **law: Any) -> Measurement:
        return cls(what.kind, what.columns, what.where, np.asarray(sums, dtype=np.int64), float(sd), law)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "where": plain(self.where),
            "sums": self.sums.tolist(),
            "sd": self.sd,
            "law": plain(self.law),
        }


def plain(value: Any) -> Any:
    """A value as JSON holds it: arrays as lists, fractions as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def _shown(found: Measurements) -> DisplaySummary:
    kinds = dict.fromkeys(one.kind for one in found.measured)
    sums = sum(one.sums.size for one in found.measured)
    return DisplaySummary(f"{sums} noisy sums of {len(found.attributes)} attributes", (", ".join(kinds),))


@displayed(_shown)
@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """All noisy numbers of a release.

    Attributes:
        rows: number of rows that were drawn.
        rows_sd: standard deviation of the noise on that number; 0 where it is public or declared.
        currency: the privacy measure in which the noise was paid for, `epsilon` or `rho`.
        attributes: what the columns of measurements refer to: columns, followed by their missing-value flags.
        bins: how pairs divide the values of each attribute: `edges` of positions, or the `group` of each value.
        measured: the measurements, in the order in which they were made.
        publishable: whether the noise is real; False for a seeded run, whose noise anybody can draw again.
    """

    rows: int
    rows_sd: float
    currency: str
    attributes: tuple[Mapping[str, Any], ...]
    bins: tuple[Mapping[str, Any], ...]
    measured: tuple[Measurement, ...]
    publishable: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measurements) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def number(self, column: str, *, missing: bool = False) -> int:
        """The number of a column, or of its missing-value flag, among the attributes.

        Raises:
            KeyError: it was not measured.
        """
        for place, one in enumerate(self.attributes):
            if one["column"] == column and bool(one.get("missing")) == missing:
                return place
        raise KeyError(column)

    def of_kind(self, kind: str) -> list[Measurement]:
        return [one for one in self.measured if one.kind == kind]

    def to_dict(self) -> dict[str, Any]:
        """As `measurements.json` holds it."""
        return {
            "version": VERSION,
            "publishable": self.publishable,
            "rows": self.rows,
            "rows_sd": self.rows_sd,
            "currency": self.currency,
            "attributes": plain(self.attributes),
            "bins": plain(self.bins),
            "measured": [one.to_dict() for one in self.measured],
        }

    @classmethod
    def from_dict(cls, found: Any, where: str = "measurements.json") -> Measurements:
        """The measurements that `to_dict` wrote.

        Raises:
            InputError: a key is missing or of another type, or the version is unknown.
        """
        version = found.get("version") if isinstance(found, dict) else None
        if version != VERSION:
            raise InputError("measurements-version", file=where, found=version, version=VERSION)
        try:
            attributes = tuple(dict(one) for one in found["attributes"])
            bins = tuple(dict(one) for one in found["bins"])
            measured = tuple(
                Measurement(
                    str(one["kind"]),
                    tuple(int(place) for place in one["columns"]),
                    dict(one["where"]),
                    np.array(one["sums"], dtype=np.int64),
                    float(one["sd"]),
                    dict(one["law"]),
                )
                for one in found["measured"]
            )
            rows, rows_sd = int(found["rows"]), float(found["rows_sd"])
            currency, publishable = str(found["currency"]), bool(found["publishable"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError("measurements-damaged", file=where, reason=str(error)) from None
        places = {place for one in measured for place in one.columns}
        if len(bins) != len(attributes) or rows < 1 or not places <= set(range(len(attributes))):
            raise InputError("measurements-damaged", file=where, reason="columns")
        return cls(rows, rows_sd, currency, attributes, bins, measured, publishable)
