"""Tables of any tool come in, number matrices with one meaning per column leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.draft import stored_kind
from shoal.columns.kinds import KIND_FACTS, Kind
from shoal.display import internal
from shoal.errors import InputError, OptionError, closest
from shoal.io import Table, first_row


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """What the columns mean and how far apart two values are.

    Attributes:
        nominal: whether a column holds names; two of them are 0 or 1 apart.
        widths: range of a numeric column over the original and the released table; differences are divided
            by it. 0 for a constant column, which carries no distance.
    """

    names: tuple[str, ...]
    nominal: NDArray[np.bool_]
    widths: NDArray[np.float64]

    def part(self, columns: Sequence[int]) -> Space:
        """The same for some of the columns."""
        picked = np.asarray(columns, dtype=np.int64)
        return Space(tuple(self.names[j] for j in columns), self.nominal[picked], self.widths[picked])


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """The tables as matrices, columns contiguous; names are replaced by whole numbers common to all tables."""

    space: Space
    original: NDArray[np.float64]
    released: NDArray[np.float64]
    control: NDArray[np.float64] | None


def encode(original: Table, released: Table, control: Table | None, columns: Sequence[str] | None) -> Encoded:
    """Bring the tables into one space.

    Numbers, dates and times are numeric; text and truth values are nominal.

    Raises:
        InputError: no common column, an unknown one, a missing value, or different types under one name.
    """
    tables = {"original": original, "released": released}
    if control is not None:
        tables["control"] = control
    for which, table in tables.items():
        if table.n == 0:
            raise InputError("encode-table-no-rows", which=which)
    names = _common(tables, columns)
    kinds = [_common_kind(tables, name) for name in names]
    matrices = {
        which: np.empty((table.n, len(names)), dtype=np.float64, order="F") for which, table in tables.items()
    }
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        for which, values in _column(tables, name, kind).items():
            matrices[which][:, j] = values
    nominal = np.array([not KIND_FACTS[kind].ordered for kind in kinds])
    ends = [matrices[which] for which in ("original", "released")]
    highest = np.maximum(*(matrix.max(axis=0) for matrix in ends))
    lowest = np.minimum(*(matrix.min(axis=0) for matrix in ends))
    widths = np.where(nominal, 1.0, highest - lowest)
    return Encoded(
        Space(names, nominal, widths), matrices["original"], matrices["released"], matrices.get("control")
    )


def _common(tables: Mapping[str, Table], columns: Sequence[str] | None) -> tuple[str, ...]:
    original, released = tables["original"], tables["released"]
    if columns is None:
        names = tuple(name for name in original.names if name in released.names)
        if not names:
            raise InputError("no-common-column", original=original.names, released=released.names)
    else:
        names = tuple(dict.fromkeys([columns] if isinstance(columns, str) else columns))
        if not names:
            raise OptionError("columns-is-empty", option="columns")
    for which, table in tables.items():
        for name in names:
            if name not in table.names:
                hint = closest(name, table.names)
                raise InputError("there-no-column-table", column=name, which=which, hint=hint)
    return names


def _common_kind(tables: Mapping[str, Table], name: str) -> Kind:
    kinds = {which: stored_kind(table.dtype(name)) for which, table in tables.items()}
    for which, kind in kinds.items():
        if kind != kinds["original"]:
            raise InputError(
                "column-holds-original-table",
                column=name,
                cell=KIND_FACTS[kinds["original"]].cell,
                cell_2=KIND_FACTS[kind].cell,
                which=which,
            )
    return kinds["original"]


def _column(tables: Mapping[str, Table], name: str, kind: Kind) -> dict[str, NDArray[np.float64]]:
    """One column of every table as numbers, without missing values."""
    if not KIND_FACTS[kind].ordered:
        return _codes({which: _text(table, name, which) for which, table in tables.items()})
    out: dict[str, NDArray[np.float64]] = {}
    for which, table in tables.items():
        values = table.numeric(name) if KIND_FACTS[kind].measured else _moments(table.series(name))
        _refuse(~np.isfinite(values), name, which)
        out[which] = values
    return out


def _moments(series: nw.Series[Any]) -> NDArray[np.float64]:
    return np.asarray(series.dt.timestamp("ms").cast(nw.Float64()).to_numpy(), dtype=np.float64)


def _text(table: Table, name: str, which: str) -> Any:
    import pyarrow as pa

    series = table.series(name)
    _refuse(np.asarray(series.is_null().to_numpy(), dtype=bool), name, which)
    if series.dtype == nw.Boolean():
        # frame libraries write truth values differently
        return pa.array(
            np.where(np.asarray(series.to_numpy(), dtype=bool), "true", "false"), pa.large_string()
        )
    return pa.array([str(value) for value in series.to_list()], pa.large_string())


def _codes(texts: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    import pyarrow as pa

    codes = pa.concat_arrays(list(texts.values())).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    ends = np.cumsum([len(text) for text in texts.values()])
    return {
        which: part.astype(np.float64) for which, part in zip(texts, np.split(codes, ends[:-1]), strict=True)
    }


def _refuse(missing: NDArray[np.bool_], name: str, which: str) -> None:
    if missing.any():
        raise InputError(
            "column-table-missing-infinite-value-row", column=name, row=first_row(missing), which=which
        )
