"""The edge: a path or a frame comes in, arrays go on; arrays come back, the same kind of frame goes out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["csv", "parquet"]
SUFFIXES: Mapping[str, Format] = {".csv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table at the edge: the caller's frame behind one surface, columns handed out as arrays.

    Attributes:
        frame: the caller's frame; without rows if the table stays on disk.
        path: the Parquet file of a table whose columns are read one at a time, when asked for.
    """

    frame: nw.DataFrame[Any]
    format: Format = "parquet"
    path: Path | None = None
    dtypes: Mapping[str, nw.dtypes.DType] = field(init=False)

    def __post_init__(self) -> None:
        # asked for often, and slow to compute in some frame libraries
        object.__setattr__(self, "dtypes", dict(self.frame.schema))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.dtypes)

    @property
    def n(self) -> int:
        return len(self.frame) if self.path is None else _parquet_rows(self.path)

    def series(self, name: str) -> nw.Series[Any]:
        """A column as it is stored."""
        self.known(name)
        frame = (
            self.frame
            if self.path is None
            else nw.from_native(_read_parquet(self.path, [name]), eager_only=True)
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
        return Table(self.frame[keep, :], self.format)

    def like(self, columns: Mapping[str, NDArray[Any]], *, keep_dtypes: bool) -> Any:
        """A frame of the caller's own library from arrays, with the caller's dtypes if asked for."""
        built = nw.from_dict(dict(columns), backend=self.frame.implementation)
        if keep_dtypes and self.frame.implementation.is_pandas_like():
            # narwhals' dtypes do not tell nullable and Arrow-backed pandas columns from plain ones
            dtypes = self.frame.to_native().dtypes
            return built.to_native().astype({name: dtypes[name] for name in columns})
        if keep_dtypes:
            try:
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


def read(source: Any) -> Table:
    """A table from a path (CSV, Parquet) or from a pandas, polars or pyarrow frame.

    Raises:
        InputError: the file is missing, empty, not a table, or has two columns of one name.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, Path)):
        return _read_path(Path(source))
    try:
        frame = nw.from_native(source)
    except nw.exceptions.DuplicateError as error:
        raise InputError(f"two columns have the same name: {_names_in(error)}. Rename one.") from None
    except TypeError:
        raise InputError(
            f"expected a path or a pandas, polars or pyarrow table, got {type(source).__name__}."
        ) from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    if not eager.columns:
        raise InputError("the table has no columns.")
    if not all(isinstance(name, str) for name in eager.columns):
        raise InputError("column names must be text: rename them, for example with df.columns.astype(str).")
    return Table(eager)


def format_of(path: Path) -> Format:
    """The file format by the name's ending."""
    try:
        return SUFFIXES[path.suffix.lower()]
    except KeyError:
        endings = ", ".join(SUFFIXES)
        raise InputError(f"'{path.name}' has an unknown ending: use one of {endings}.") from None


def write(frame: Any, path: Path) -> None:
    """Write a frame of any supported library as CSV or Parquet, by the path's ending."""
    table = nw.from_native(frame, eager_only=True).to_arrow()
    if format_of(path) == "csv":
        from pyarrow import csv

        csv.write_csv(table, path, csv.WriteOptions(quoting_style="needed"))
    else:
        from pyarrow import parquet

        # only names and types: frame libraries hide index and origin in the file's metadata
        parquet.write_table(table.replace_schema_metadata(None), path)


def first_row(where: NDArray[np.bool_]) -> int:
    """One-based number of the first row that is marked, counted without the header."""
    return int(np.argmax(where)) + 1


def read_columnwise(path: Path) -> Table:
    """A Parquet file as a table that stays on disk: only one column at a time is in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    _check_file(path)
    try:
        empty = parquet.read_schema(path).empty_table()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, "parquet", error) from None
    _check_names(empty.column_names, path)
    table = Table(nw.from_native(empty, eager_only=True), "parquet", path)
    if table.n == 0:
        raise InputError(f"'{path}' has a header but no rows.")
    return table


def _read_path(path: Path) -> Table:
    import pyarrow as pa

    kind = _check_file(path)
    try:
        arrow = _read_csv(path) if kind == "csv" else _read_parquet(path)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise _unreadable(path, kind, error) from None
    _check_names(arrow.column_names, path)
    if arrow.num_rows == 0:
        raise InputError(f"'{path}' has a header but no rows.")
    return Table(nw.from_native(arrow, eager_only=True), kind)


def _check_file(path: Path) -> Format:
    """The format of a file that is there and not empty."""
    if path.is_dir():
        raise InputError(f"'{path}' is a folder: name a CSV or Parquet file in it.")
    if not path.exists():
        folder = path.parent if path.parent.is_dir() else None
        near = did_you_mean(path.name, [p.name for p in folder.iterdir()]) if folder else ""
        raise InputError(f"there is no file '{path}'.{near}")
    kind = format_of(path)
    if path.stat().st_size == 0:
        raise InputError(f"'{path}' is empty: a header line and at least one row are needed.")
    return kind


def _unreadable(path: Path, kind: Format, error: Exception) -> InputError:
    # Arrow raises some of its complaints about content as plain OSError, without an error number
    if isinstance(error, OSError) and error.strerror:
        return InputError(f"'{path}' cannot be read: {error.strerror}.")
    if isinstance(error, UnicodeDecodeError):
        return InputError(
            f"'{path}' cannot be read as CSV: it is not UTF-8 text, save it as CSV (UTF-8) or Parquet."
        )
    first_line = str(error).strip().splitlines()[0][:160]
    return InputError(f"'{path}' cannot be read as {kind.upper()}: {first_line}")


def _read_csv(path: Path) -> pa.Table:
    from pyarrow import csv

    with path.open("rb") as file:
        header = file.readline().decode("utf-8-sig")
    if "\x00" in header:
        raise InputError(f"'{path}' is not a text file: save it as CSV (UTF-8) or Parquet.")
    # a delimiter inside a quoted column name does not count
    bare = re.sub(r'"[^"]*"', "", header)
    delimiter = max(",;\t|", key=bare.count)
    # One thread: reader threads that outlive an error can abort the interpreter, and row numbers get lost.
    # A blank line is a missing value when there is only one column.
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=delimiter in bare),
    )


def _read_parquet(path: Path, columns: list[str] | None = None) -> pa.Table:
    from pyarrow import parquet

    return parquet.ParquetFile(path).read(columns)


def _parquet_rows(path: Path) -> int:
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


def _check_names(names: Sequence[str], path: Path) -> None:
    blank = [i + 1 for i, name in enumerate(names) if not name.strip()]
    if blank:
        raise InputError(f"'{path}': column {blank[0]} has no name: give every column one.")
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise InputError(f"'{path}' has two columns named '{repeated[0]}': rename one.")


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


def _names_in(error: Exception) -> str:
    quoted = [part for i, part in enumerate(str(error).split("'")) if i % 2]
    return ", ".join(f"'{name}'" for name in quoted) or "see the header"
