"""Read tables from paths or data frames, and write them back."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from shoal.errors import InputError, OutputError, ShoalError, closest
from shoal.io.binary_files import frozen, parquet_files, refuse_logged
from shoal.io.cell_types import ColumnType, settled
from shoal.io.common import private_folder
from shoal.io.formats import (
    FORMATS,
    Content,
    Format,
    Manner,
    ReadOptions,
    find_format,
    format_of,
    known_format,
    titles,
)
from shoal.io.statistical_files import Codebook
from shoal.io.table import Table, check_doubts, with_types, without_codes, without_texts
from shoal.io.text_files import Conventions
from shoal.text import Message

if TYPE_CHECKING:
    pass

# pattern of a path made from an address such as s3a://bucket/folder
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

# paths being written by any thread; removed first when the process is terminated
_UNFINISHED: set[Path] = set()

# callbacks that stop work done for this process elsewhere, such as on a cluster
_STOPPING: list[Callable[[], None]] = []

# parent folders that were created for them
_NEW_PARENTS: set[Path] = set()


def place(out: str | Path) -> Path | str:
    """The target of a bundle: a local folder, or, as text, the address of one on another file system.

    >>> place("release"), place("file:///srv/release"), place("s3a://bucket/release")
    (PosixPath('release'), PosixPath('/srv/release'), 's3a://bucket/release')
    """
    text = str(out)
    if not _ADDRESS.match(text):
        return Path(out)
    scheme, _, rest = text.partition(":")
    if scheme.lower() != "file":
        # a path has lost one of the two slashes
        return text if isinstance(out, str) else f"{scheme}:/{rest}"
    if rest.startswith("//") and not rest.startswith("///"):
        raise OutputError("names-another-machine", text=text)
    return Path("/" + rest.lstrip("/"))


def not_an_address(out: Path | str) -> Path:
    """Refuse an address where only a local folder works."""
    if isinstance(out, str):
        raise OutputError("address-only-engine-spark-writes", out=out)
    return out


def check_output(folder: Path, internal: Path | None = None) -> None:
    """Refuse, before any work is done, a target that could not be written at the end."""
    if _ADDRESS.match(str(folder)):
        not_an_address(str(folder).replace(":/", "://", 1))
    if folder.exists() and not folder.is_dir():
        raise OutputError("is-a-file", folder=folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise OutputError("folder-not-empty", folder=folder)
    _check_writable(folder)
    if internal is None:
        return
    if folder.resolve() in (internal.resolve(), *internal.resolve().parents):
        raise OutputError("internal-report-would-lie-inside-published", internal=internal, folder=folder)
    check_internal(internal)


def check_internal(internal: Path) -> None:
    """Refuse a target for the internal report that could not be written at the end."""
    if _ADDRESS.match(str(internal)):
        raise OutputError("internal-report-holds-private-facts-stays", internal=internal)
    if internal.is_dir():
        raise OutputError("internal-report-folder", internal=internal)
    if internal.exists():
        raise OutputError("internal-report-exists-already", internal=internal)
    _check_writable(internal)


@contextlib.contextmanager
def staged(folder: Path, rights: int = 0o755) -> Iterator[Path]:
    """A folder to write into that is renamed to `folder` on success, and removed on failure or interruption."""
    try:
        with new_parents(folder):
            aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
            _UNFINISHED.add(aside)
            try:
                yield aside
                aside.chmod(rights)
                os.rename(aside, folder)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
                _UNFINISHED.discard(aside)
    except ShoalError:
        raise
    except OSError as error:
        raise OutputError("bundle-cannot-write", folder=folder, reason=error.strerror or error) from None


@contextlib.contextmanager
def new_parents(path: Path, *, private: bool = False) -> Iterator[None]:
    """Create the parent folders of a path; on failure, those created are removed again."""
    above = path.absolute().parent
    missing = [folder for folder in (above, *above.parents) if not folder.exists()]
    _NEW_PARENTS.update(missing)
    private_folder(above) if private else above.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        _remove_empty(missing)
        raise
    finally:
        _NEW_PARENTS.difference_update(missing)


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


def unless_done(path: Path) -> Callable[..., None]:
    """An exit callback that removes a file after an error or an interruption."""

    _UNFINISHED.add(path)

    def leave(kind: object, error: object, trace: object) -> None:
        if kind is not None:
            path.unlink(missing_ok=True)
        _UNFINISHED.discard(path)

    return leave


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for private values, removed afterwards or when the process is terminated."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-"))
    _UNFINISHED.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _UNFINISHED.discard(folder)


def unfinished(path: Path) -> None:
    """Have a path removed if the process is terminated before it is `finished`."""
    _UNFINISHED.add(path)


def finished(path: Path) -> None:
    """Keep the path from now on (or it is gone already)."""
    _UNFINISHED.discard(path)


@contextlib.contextmanager
def stoppable(stop: Callable[[], None]) -> Iterator[None]:
    """Register work done for this process elsewhere: it is stopped before its output is removed."""
    _STOPPING.append(stop)
    try:
        yield
    finally:
        _STOPPING.remove(stop)


def remove_unfinished() -> None:
    """Remove everything being written, because the process is about to end."""
    for stop in _STOPPING:
        with contextlib.suppress(Exception):
            stop()
    for path in list(_UNFINISHED):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    _remove_empty(_NEW_PARENTS)


def _check_writable(path: Path) -> None:
    """Check that the nearest existing parent folder of a path is writable."""
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise OutputError("file-so-cannot-written", parent=parent, path=path)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError("no-permission-write", parent=parent)


# a longer name is most likely data
_LONGEST_NAME = 1000


def read(
    source: Any,
    na: Sequence[str] = (),
    types: Mapping[str, ColumnType] | None = None,
    conventions: Conventions | Mapping[str, Any] | None = None,
    dates: Mapping[str, str] | None = None,
    *,
    codes: Mapping[str, Sequence[str]] | None = None,
    strict: bool = True,
    empty: bool = False,
) -> Table:
    """A table from a path (see `shoal.io.FORMATS`), a folder of Parquet files, or a frame.

    Args:
        na: texts that stand for a missing value, such as "?"; surrounding blanks are ignored.
        types: declared types by column. Other columns of files without types are inferred from the cells; the
            types stored in a frame, Parquet or Feather file are kept. `inferred` of the table lists all undeclared
            ones.
        conventions: known conventions of a text file: encoding, separator, decimal sign and so on.
        dates: date formats by column, such as DD.MM.YYYY.
        codes: codes for missing values in single columns, such as 99.
        strict: refuse an ambiguous column without a declared type. Otherwise the table keeps its doubts, for
            code that uses the column.
        empty: accept a file with a header and no rows: the number of rows is then private.

    Raises:
        InputError: the file is missing, empty or not a table, has a repeated column name, is ambiguous, or
            holds a value that does not fit its column's declared type.
    """
    declared = types or {}
    told = Conventions.of(conventions)
    texts = tuple(dict.fromkeys((*na, *told.na)))
    told = replace(told, na=texts)
    own = {} if codes is None else codes
    table = _read(source, texts, declared, told, dates or {}, own, empty=empty)
    table = without_codes(without_texts(table, texts), own)
    table = without_codes(with_types(table, declared, texts), own)
    if strict and not isinstance(source, Table):
        check_doubts(table, table.names)
    return table


def _read(
    source: Any,
    na: Sequence[str],
    types: Mapping[str, ColumnType],
    told: Conventions,
    dates: Mapping[str, str],
    codes: Mapping[str, Sequence[str]],
    *,
    empty: bool,
) -> Table:
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, Path)):
        return _read_path(Path(source), na, types, told, dates, codes, empty=empty)
    try:
        frame = nw.from_native(source)
    except nw.exceptions.DuplicateError as error:
        names = tuple(str(error).split("'")[1::2])
        raise InputError("same-name-twice" if names else "same-name-in-header", names=names) from None
    except TypeError:
        raise InputError("expected-path-pandas-polars-pyarrow-table", found=type(source).__name__) from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    if not eager.columns:
        raise InputError("table-no-columns")
    if not all(isinstance(name, str) for name in eager.columns):
        raise InputError("column-names-text")
    # one record can turn integers into floats or text: a frame's storage type is a fact about the records
    return Table(eager, conventions=told, dates=dict(dates), inferred=frozenset(eager.columns))


def write(
    frame: Any,
    path: str | Path,
    codebook: Codebook | None = None,
    conventions: Conventions | None = None,
    dates: Mapping[str, str] | None = None,
) -> None:
    """Write a frame of any supported library in the format of the path's ending.

    Args:
        codebook: codes, labels and formats for a Stata or SPSS file; other formats ignore it.
        conventions: conventions of a text file; by default UTF-8 with commas and points.
        dates: date format by column, for text files.
    """
    path = Path(path)
    table = nw.from_native(frame, eager_only=True).to_arrow()
    format_of(path).write(table, path, Manner(conventions or Conventions(), codebook, dates or {}))


def check_writable(names: Sequence[str], format: str | Format) -> None:
    """Refuse, before any work is done, columns that a file of the format cannot hold."""
    check = known_format(format).check
    if check is not None:
        check(names)


def read_columnwise(path: Path) -> Table:
    """A Parquet file, or a folder of them, as a table on disk: only one column at a time is in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    if path.is_dir():
        return _on_disk(frozen(path).schema.empty_table(), path)
    kind = _check_file(path)
    try:
        empty = parquet.read_schema(path).empty_table()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, kind, error) from None
    _check_names(empty.column_names, path)
    table = _on_disk(empty, path)
    if table.n == 0:
        raise InputError("header-but-no-rows", path=path)
    return table


def is_parquet(path: Path) -> bool:
    """Whether a path is a Parquet file, or a folder of them.

    Raises:
        InputError: it is a folder of a table format with a transaction log.
    """
    if path.is_dir():
        return bool(parquet_files(path))
    kind = find_format(path)
    return kind is not None and kind.name == "parquet"


def _on_disk(empty: Any, path: Path) -> Table:
    frame = nw.from_native(empty, eager_only=True)
    return Table(frame, "parquet", path, inferred=frozenset(frame.columns))


def _read_path(
    path: Path,
    na: Sequence[str],
    types: Mapping[str, ColumnType],
    told: Conventions,
    dates: Mapping[str, str],
    codes: Mapping[str, Sequence[str]],
    *,
    empty: bool,
) -> Table:
    import pyarrow as pa

    kind = _check_file(path)
    try:
        found = kind.read(path, ReadOptions(types, told))
        # names in a damaged file may be invalid text
        names = found.table.column_names
    except ShoalError:
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise _unreadable(path, kind, error) from None
    _check_names(names, path)
    if found.table.num_rows == 0 and not empty:
        raise InputError("header-but-no-rows", path=path)
    if found.cells:
        found = _settled(found, na, types, dates, codes)
    inferred = frozenset(names) if kind.typed else frozenset(names) - set(types)
    return Table(
        nw.from_native(found.table, eager_only=True),
        kind.name,
        codebook=found.codebook,
        inferred=inferred,
        conventions=found.conventions,
        dates={name: form for name, form in dates.items() if name in names},
        doubts={name: doubt for name, doubt in found.doubts.items() if name in inferred},
    )


def _settled(
    found: Content,
    na: Sequence[str],
    types: Mapping[str, ColumnType],
    dates: Mapping[str, str],
    codes: Mapping[str, Sequence[str]],
) -> Content:
    """Columns of texts converted to values; a declared column is taken as written and converted by its type."""
    import pyarrow as pa

    columns: list[Any] = []
    doubts: dict[str, Message] = {}
    for name, column in zip(found.table.column_names, found.table.columns, strict=True):
        if name in types:
            columns.append(column)
            continue
        texts = (*na, *codes.get(name, ()))
        made = settled(column, name, found.conventions, texts, dates.get(name))
        columns.append(made.values)
        if made.doubt is not None:
            doubts[name] = made.doubt
    return replace(found, table=pa.table(columns, names=found.table.column_names), doubts=doubts)


def _check_file(path: Path) -> Format:
    """The format of an existing, non-empty file."""
    if path.is_dir():
        if is_parquet(path):
            return FORMATS["parquet"]
        raise InputError("folder-without-parquet", path=path, allowed=titles())
    if not path.exists():
        folder = path.parent if path.parent.is_dir() else None
        near = closest(path.name, [p.name for p in folder.iterdir()]) if folder else None
        raise InputError("files-there-no-file", path=path, hint=near)
    kind = format_of(path)
    if path.stat().st_size == 0:
        raise InputError("empty-header-line-least-row-needed", path=path)
    if kind.name == "parquet":
        refuse_logged(path)
    return kind


def _unreadable(path: Path, kind: Format, error: Exception) -> InputError:
    # Arrow reports some content errors as plain OSError, without an error number
    if isinstance(error, OSError) and error.strerror:
        return InputError("cannot-be-read", path=path, reason=error.strerror)
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
    return InputError("cannot-be-read-as", path=path, title=kind.title, reason=first_line)


def _check_names(names: Sequence[str], path: Path) -> None:
    blank = [i + 1 for i, name in enumerate(names) if not name.strip()]
    if blank:
        raise InputError("column-no-name", path=path, place=blank[0])
    long = next((name for name in names if len(name) > _LONGEST_NAME), None)
    if long is not None:
        raise InputError(
            "column-name-characters-begins-first-row", path=path, length=len(long), found=long[:40]
        )
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise InputError("two-columns-named", path=path, column=repeated[0])
