"""A frame comes in, its columns are handed out as arrays; arrays come back, the same kind of frame goes out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import InputError, did_you_mean
from shoal.io.codebook import Codebook
from shoal.io.formats import Format

if TYPE_CHECKING:
    import pyarrow as pa


@internal(".frame")
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table at the edge: the caller's frame behind one surface, columns handed out as arrays.

    Attributes:
        frame: the caller's frame; without rows if the table stays on disk.
        path: the Parquet file of a table whose columns are read one at a time, when asked for.
        codebook: what a statistics package keeps beside the values, for tables that come from its files.
    """

    frame: nw.DataFrame[Any]
    format: Format = "parquet"
    path: Path | None = None
    codebook: Codebook | None = None
    dtypes: Mapping[str, nw.dtypes.DType] = field(init=False)

    def __post_init__(self) -> None:
        # asked for often, and slow to compute in some frame libraries
        object.__setattr__(self, "dtypes", dict(self.frame.schema))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.dtypes)

    @property
    def n(self) -> int:
        return len(self.frame) if self.path is None else parquet_rows(self.path)

    def series(self, name: str) -> nw.Series[Any]:
        """A column as it is stored."""
        self.known(name)
        frame = (
            self.frame
            if self.path is None
            else nw.from_native(read_parquet(self.path, [name]), eager_only=True)
        )
        column: nw.Series[Any] = frame.get_column(name)
        return column

    def dtype(self, name: str) -> nw.dtypes.DType:
        return self.dtypes[self.known(name)]

    def is_numeric(self, name: str) -> bool:
        return bool(self.dtype(name).is_numeric())

    def is_integer(self, name: str) -> bool:
        return bool(self.dtype(name).is_integer())

    def integer_limits(self, name: str) -> tuple[int, int]:
        """Smallest and largest number the column's integer type can hold (at most 64 bits, signed)."""
        text = str(self.dtype(name))
        bits = min(int(text.lstrip("UInt")), 64)
        if text.startswith("U"):
            return 0, min(2**bits, 2**63) - 1
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def float_type(self, name: str) -> type[np.floating[Any]]:
        """The binary floating-point type that stores the column (float64 for anything else)."""
        narrow: dict[str, type[np.floating[Any]]] = {"Float16": np.float16, "Float32": np.float32}
        return narrow.get(str(self.dtype(name)), np.float64)

    def known(self, name: str) -> str:
        """The name itself, or an error with a hint when the table has no such column."""
        if name not in self.dtypes:
            raise InputError(f"there is no column '{name}' in the table.{did_you_mean(name, self.names)}")
        return name

    def numeric(self, name: str) -> NDArray[np.float64]:
        """A column as float64, missing values as NaN; text is an error that names the row."""
        series = self.series(name)
        if not self.is_numeric(name):
            raise InputError(_not_numeric(name, series))
        if self.is_integer(name) and "128" not in str(series.dtype) and series.null_count() == 0:
            values = np.asarray(series.to_numpy()).astype(np.float64)
        else:
            values = np.asarray(series.cast(nw.Float64()).to_numpy(), dtype=np.float64)
        if self.path is not None:
            # Arrow keeps freed memory for itself; the next column of a large file needs it
            import pyarrow as pa

            del series
            pa.default_memory_pool().release_unused()
        return values

    def rows(self, keep: NDArray[np.int64]) -> Table:
        """The same table with only the rows of the given numbers."""
        return Table(self.frame[keep, :], self.format, codebook=self.codebook)

    def like(self, columns: Mapping[str, NDArray[Any]], *, keep_dtypes: bool) -> Any:
        """A frame of the caller's own library from arrays, with the caller's dtypes if asked for."""
        # pandas keeps Python values as they are in an array, the others take an array of them for something opaque
        whole = self.frame.implementation.is_pandas_like()
        plain = {
            name: values if whole or values.dtype != object else values.tolist()
            for name, values in columns.items()
        }
        built = nw.from_dict(plain, backend=self.frame.implementation)
        if keep_dtypes and self.frame.implementation.is_pandas_like():
            # narwhals' dtypes do not tell nullable and Arrow-backed pandas columns from plain ones
            dtypes = self.frame.to_native().dtypes
            return built.to_native().astype({name: dtypes[name] for name in columns})
        if keep_dtypes:
            try:
                if self.frame.implementation.is_pyarrow():
                    # narwhals knows one categorical type, Arrow many
                    return self._as_arrow_types(built.to_native())
                built = built.with_columns(nw.col(name).cast(self.dtype(name)) for name in columns)
            except Exception as error:
                # each library has its own error for a decimal type without room for the domain
                decimals = [name for name in columns if isinstance(self.dtype(name), nw.Decimal)]
                if not decimals:
                    raise
                raise InputError(
                    f"column '{decimals[0]}' is a decimal type that cannot hold its whole domain: convert it to float."
                ) from error
        return built.to_native()

    def _as_arrow_types(self, built: pa.Table) -> pa.Table:
        import pyarrow as pa

        kept = self.frame.to_native().schema
        return built.cast(pa.schema([kept.field(name).with_nullable(True) for name in built.column_names]))


def without_texts(table: Table, na: Sequence[str]) -> Table:
    """The table with these texts taken for missing values.

    >>> without_texts(Table(nw.from_dict({"job": ["clerk", " ?"]}, backend="pyarrow")), ["?"]).series("job").to_list()
    ['clerk', None]
    """
    names = [name for name in table.names if isinstance(table.dtype(name), nw.String)]
    if not na or not names:
        return table
    if table.path is not None:
        raise InputError(
            f"'{table.path}' is read column by column, where no text can stand for a missing value."
        )
    kept = [
        nw.when(~nw.col(name).str.strip_chars().is_in(list(na))).then(nw.col(name)).alias(name)
        for name in names
    ]
    return Table(table.frame.with_columns(*kept), table.format, codebook=table.codebook)


def first_row(where: NDArray[np.bool_]) -> int:
    """One-based number of the first row that is marked, counted without the header."""
    return int(np.argmax(where)) + 1


def read_parquet(path: Path, columns: list[str] | None = None) -> pa.Table:
    from pyarrow import parquet

    return parquet.ParquetFile(path).read(columns)


def parquet_rows(path: Path) -> int:
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


def _not_numeric(name: str, series: nw.Series[Any]) -> str:
    values = series.to_list()
    for row, value in enumerate(values, start=1):
        if value is None:
            continue
        try:
            float(value)
        except (TypeError, ValueError):
            shown = str(value)[:40]
            comma = " (decimals take a point, thousands no separator)" if re.search(r"\d,\d", shown) else ""
            return (
                f"column '{name}' should hold numbers, but row {row} holds '{shown}': correct it{comma}, "
                "or leave the column out."
            )
    return f"column '{name}' holds numbers stored as {series.dtype}: convert it to a numeric column first."
