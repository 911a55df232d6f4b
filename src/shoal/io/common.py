"""Shared parts of several file formats: limits on unpacking, date formats, TOML, private files.

A small file can unpack to a table that fills the memory: its declared size is checked first, then it is unpacked piece
by piece, keeping only the size.
"""

from __future__ import annotations

import io
import json
import os
import re
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from shoal.errors import InputError, OptionError
from shoal.numbers import decimal_text, decimals_of
from shoal.taxonomy import check_xml
from shoal.text import Message

MOST_BYTES = 8 * 2**30
# text tables compress to a tenth or a twentieth; a higher ratio indicates a decompression bomb
_MOST_GROWTH = 200
_ALWAYS_FINE = 64 * 2**20
_PIECE_ROWS = 1024
# one or two digits for a single letter, otherwise as many digits as letters
_TOKENS = {
    "YYYY": (r"(?P<year>\d{4})", "{0.year:04d}"),
    "MM": (r"(?P<month>\d{2})", "{0.month:02d}"),
    "DD": (r"(?P<day>\d{2})", "{0.day:02d}"),
    "HH": (r"(?P<hour>\d{2})", "{0.hour:02d}"),
    "mm": (r"(?P<minute>\d{2})", "{0.minute:02d}"),
    "ss": (r"(?P<second>\d{2})", "{0.second:02d}"),
    "M": (r"(?P<month>\d{1,2})", "{0.month}"),
    "D": (r"(?P<day>\d{1,2})", "{0.day}"),
}
_TOKEN = re.compile("|".join(_TOKENS) + r"|[A-Za-z]+|.", re.DOTALL)
# types tried for a column of such texts, in this order
USUAL = (
    "DD.MM.YYYY",
    "D.M.YYYY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "D/M/YYYY",
    "M/D/YYYY",
    "DD-MM-YYYY",
    "MM-DD-YYYY",
    "YYYY/MM/DD",
    "YYYY.MM.DD",
)
Purpose = Literal["toml-schema", "toml-recipe", "toml-log", "toml-tokens", "toml-data-set"]
_FILE, _FOLDER = 0o600, 0o700


def _gzip(path: Path) -> Any:
    import gzip

    return gzip.open(path, "rb")


def _zstd(path: Path) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


def _zip(path: Path) -> Any:
    import zipfile

    archive = zipfile.ZipFile(path)
    # the open part keeps the archive open
    return archive.open(zipped_table(path))


# how to unpack a file, by its ending
PACKINGS: Mapping[str, Callable[[Path], Any]] = {".gz": _gzip, ".zst": _zstd, ".zip": _zip}


def zipped_table(path: Path) -> str:
    """The name of the single file in an archive, ignoring files added by operating systems.

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
    """The maximum size of the content of a compressed file of this size, in bytes.

    >>> most_unpacked(1000), most_unpacked(10**6)
    (67108864, 200000000)
    """
    return min(MOST_BYTES, max(_ALWAYS_FINE, _MOST_GROWTH * packed))


class Unpacked(io.RawIOBase):
    """The content of a compressed file, up to the limit; errors about corrupt or too large files name them."""

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
    """Rows and bytes of a Parquet file so far: first as declared by the file, then as unpacked."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        yield file.metadata.num_rows, 0
        rows = size = 0
        # a value stored once can be repeated a million times: only unpacking shows it
        for piece in file.iter_batches(batch_size=_PIECE_ROWS):
            rows, size = rows + piece.num_rows, size + piece.nbytes
            yield rows, size


def check_zip(path: Path) -> None:
    """Refuse an archive that is too large when unpacked, or that holds what no table's XML contains."""
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


@dataclass(frozen=True, slots=True)
class DateFormat:
    """A date format.

    >>> DateFormat.of("DD.MM.YYYY").read("31.05.1984").isoformat()
    '1984-05-31T00:00:00'
    >>> DateFormat.of("D/M/YYYY").write(date(1984, 5, 31))
    '31/5/1984'
    """

    text: str
    pattern: re.Pattern[str]
    template: str

    @staticmethod
    @lru_cache(maxsize=64)
    def of(text: str) -> DateFormat:
        """The format of a pattern such as DD.MM.YYYY, or an error that explains patterns."""
        pattern, template, found = "", "", []
        for token in _TOKEN.findall(text):
            if token in _TOKENS:
                pattern += _TOKENS[token][0]
                template += _TOKENS[token][1]
                found.append(token[0])
            elif token.isalpha() and token != "T":
                why = Message("century-not-told") if token == "YY" else ""
                raise OptionError("unknown-date-token", found=text, token=token, why=why)
            else:
                pattern += re.escape(token)
                template += token.replace("{", "{{").replace("}", "}}")
        if sorted(set("YMD")) != sorted(set(found) & set("YMD")) or len(found) != len(set(found)):
            raise OptionError("date-format-needs-yyyy-mm-m", found=text)
        return DateFormat(text, re.compile(pattern), template)

    @property
    def has_time(self) -> bool:
        return "HH" in self.text

    def read(self, text: str) -> datetime:
        """The moment a text denotes.

        Raises:
            ValueError: not a date of this format, or not in the calendar.
        """
        found = self.pattern.fullmatch(text) if text.isascii() else None
        if found is None:
            raise ValueError(f"not of the form {self.text}")
        parts = {part: int(digits) for part, digits in found.groupdict().items()}
        day = date(parts["year"], parts["month"], parts["day"])
        return datetime.combine(
            day, time(parts.get("hour", 0), parts.get("minute", 0), parts.get("second", 0))
        )

    def reads(self, text: str) -> bool:
        try:
            self.read(text)
        except ValueError:
            return False
        return True

    def write(self, value: date) -> str:
        """A date or time stamp as text; a date has no time."""
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return self.template.format(moment)


def load(path: Path, purpose: Purpose) -> dict[str, Any]:
    """The content of a TOML file with exact decimals; errors name its purpose."""
    what = Message(purpose)
    try:
        return tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise InputError("no-such-file", what=what, path=path) from None
    except OSError as error:
        raise InputError("the-cannot-be-read", what=what, path=path, reason=error.strerror) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("not-valid-toml", what=what, path=path, reason=error) from None


def dumps(document: Mapping[str, Any]) -> str:
    """TOML text that `tomllib` reads back as the same values.

    >>> print(dumps({"k": 5, "columns": ["a b"], "attribute": [{"name": "a b"}]}), end="")
    k = 5
    columns = ["a b"]
    <BLANKLINE>
    [[attribute]]
    name = "a b"
    """
    lines: list[str] = []
    tables: list[str] = []
    for key, value in document.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_key(key)}]", *_pairs(value)]
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for item in value:
                tables += ["", f"[[{_key(key)}]]", *_pairs(item)]
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return "\n".join(lines + (tables if lines else tables[1:])) + "\n"


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        # JSON strings are TOML basic strings, except for one control character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        # TOML has no fractions: one that does not end as a decimal is written as text
        return decimal_text(value) if decimals_of(value) is not None else _value(str(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_pairs(value)) + " }"
    return repr(value)


def private_file(path: str | Path, *, new: bool = False) -> Path:
    """Create a file that only its owner can read, or restrict an existing one; later writes keep the permissions.

    Args:
        new: refuse an existing file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = private_file(Path(folder) / "facts.json")
    ...     oct(path.stat().st_mode & 0o777)
    '0o600'
    """
    path = Path(path)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | (os.O_EXCL if new else 0), _FILE))
    # restrict an existing file, and ignore the umask
    path.chmod(_FILE)
    return path


def private_text(path: str | Path, text: str) -> None:
    """Write text to a file that only its owner can read."""
    private_file(path).write_text(text, "utf-8")


def private_folder(path: str | Path) -> Path:
    """Create a folder and its missing parents, for their owner only; existing folders are unchanged."""
    path = Path(path)
    missing = [folder for folder in (path, *path.absolute().parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(_FOLDER, exist_ok=True)
        folder.chmod(_FOLDER)
    if not path.is_dir():
        path.mkdir()
    return path
