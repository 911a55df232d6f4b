"""How much is unpacked: a compressed file comes in, an error that says what is too large leaves, or its content.

A small file can hold a table that fills the memory: what a file says of itself is looked at first, then it is read
piece by piece and only its size is kept.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.taxonomy.documents import check_xml

MOST_BYTES = 8 * 2**30
# tables of text shrink to a tenth or a twentieth; what grows more than this is made to grow
_MOST_GROWTH = 200
_ALWAYS_FINE = 64 * 2**20
_PIECE_ROWS = 1024


def _gzip(path: Path) -> Any:
    import gzip

    return gzip.open(path, "rb")


def _zstd(path: Path) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


def _zip(path: Path) -> Any:
    import zipfile

    archive = zipfile.ZipFile(path)
    # the opened part keeps the archive open
    return archive.open(zipped_table(path))


# by ending: how such a file is unpacked
PACKINGS: Mapping[str, Callable[[Path], Any]] = {".gz": _gzip, ".zst": _zstd, ".zip": _zip}


def zipped_table(path: Path) -> str:
    """The name of the one file in an archive; what systems add of their own does not count.

    Raises:
        InputError: not an archive, encrypted, empty, or with several files.
    """
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            parts = [part for part in archive.infolist() if not part.is_dir()]
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError) as error:
        raise InputError("not-archive-ending-says", path=path, reason=error) from None
    own = [
        part
        for part in parts
        if not part.filename.startswith("__MACOSX/") and not Path(part.filename).name.startswith(".")
    ]
    if len(own) != 1:
        raise InputError("holds-files-table-needed", path=path, found=len(own))
    if own[0].flag_bits & 1:
        raise InputError("is-encrypted", path=path)
    return own[0].filename


def most_unpacked(packed: int) -> int:
    """How large the content of a file of so many bytes may be.

    >>> most_unpacked(1000), most_unpacked(10**6)
    (67108864, 200000000)
    """
    return min(MOST_BYTES, max(_ALWAYS_FINE, _MOST_GROWTH * packed))


class Unpacked(io.RawIOBase):
    """The content of a compressed file, up to the limit; broken or too large ones are errors that name the file."""

    def __init__(self, path: Path, packing: str, most: int | None = None) -> None:
        self._path, self._done = path, 0
        self._most = most_unpacked(path.stat().st_size) if most is None else most
        self._inner = PACKINGS[packing](path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        import pyarrow as pa

        try:
            piece = self._inner.read(len(buffer))
        except (OSError, EOFError, zlib.error, RuntimeError, pa.ArrowException) as error:
            raise InputError(
                "cannot-be-unpacked", path=self._path, reason=str(error).splitlines()[0]
            ) from None
        self._done += len(piece)
        if self._done > self._most:
            raise too_much(self._path, self._most)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
        super().close()


def too_much(path: Path, most: int) -> InputError:
    return InputError("unpacks-more-than-mb-table-size", path=path, most=most / 1000000.0)


def unpacked_sizes(path: Path) -> Iterator[tuple[int, int]]:
    """Rows and bytes of a Parquet file so far: first what it says of itself, then what unpacking it shows."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        yield file.metadata.num_rows, 0
        rows = size = 0
        # a value that is stored once can be meant a million times: only unpacking tells
        for piece in file.iter_batches(batch_size=_PIECE_ROWS):
            rows, size = rows + piece.num_rows, size + piece.nbytes
            yield rows, size


def check_zip(path: Path) -> None:
    """Refuse an archive whose parts together are too large, or hold what an XML document of a table never does."""
    import zipfile

    most = most_unpacked(path.stat().st_size)
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if sum(part.file_size for part in parts) > most:
                raise too_much(path, most)
            for part in parts:
                if part.filename.endswith((".xml", ".rels")):
                    with archive.open(part) as file:
                        check_xml(file.read(1 << 16), path)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("not-archive-ending-says", path=path, reason=error) from None
