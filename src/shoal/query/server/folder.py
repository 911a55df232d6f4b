"""The data folder of a server: data sets, their settings and records.

DIR/NAME/dataset.toml   terms of one data set, see `DatasetSettings`
DIR/NAME/schema.toml    its schema
DIR/NAME/data.csv       its records (or data.parquet; data = "..." in dataset.toml names another place)
DIR/tokens.toml         hashes of the tokens
DIR/ledger.sqlite       the ledger, unless it is kept elsewhere
DIR/ledger.heads        its latest heads; a folder with this file was served before, and needs its ledger
DIR/timing.faults       answers that were not sent on time; while it exists, no claim is made about timing

Two names have two budgets, and what the answers reveal about the same people adds up unnoticed.

A small file can hold a table that fills the memory: the metadata of a Parquet file is checked first, then it is
read in pieces, keeping only its size.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Schema
from shoal.errors import InputError, OptionError, closest
from shoal.io import MOST_BYTES as MOST_BYTES_READING
from shoal.io import dumps, find_format, fingerprint, load, unpacked_sizes
from shoal.ledger import Ledger, Register
from shoal.noise import MOST_DELTA, parse_epsilon
from shoal.numbers import decimal_text, exact
from shoal.query.server.guard import warn
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.query.facts import QueryTable


# a pattern that Python, pydantic and JSON schema read alike
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$"
KEY = r"^[A-Za-z0-9_.:\-]{1,100}$"

DATA_SET = Message.of("named-data-set")
ANALYST = Message.of("named-analyst")
TOKEN_OWNER = Message.of("named-token-owner")
_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
LEDGER_FILE = "ledger.sqlite"
TOKENS_FILE = "tokens.toml"
HEADS_FILE = "ledger.heads"
FAULTS_FILE = "timing.faults"
_DATA_FILES = ("data.parquet", "data.csv")
LEAST_EPSILON = Fraction(1, 1000)
MOST_BYTES = 64 * 2**20
_MOST_ROWS = 20_000_000
# the time of answers is derived from this where the number of records is private
_MOST_PRIVATE_ROWS = 100_000


def plain_name(text: str, what: Message) -> str:
    """The name if it is valid; otherwise an error with the rules for names.

    >>> plain_name("survey-2026", DATA_SET)
    'survey-2026'
    """
    if not re.fullmatch(NAME.strip("^$"), text, re.ASCII):
        raise OptionError("cannot-be-called", what=what, text=text[:80])
    return text


def check_size(path: Path, dataset: str, most_rows: int, most_bytes: int = MOST_BYTES_READING) -> None:
    """Refuse a file with more rows or more bytes, once decompressed, than a server can hold.

    Raises:
        InputError: it is too large, or cannot be read.
    """
    size = path.stat().st_size
    if size > most_bytes:
        raise _too_large(dataset, f"{size:,} bytes", f"{most_bytes:,}")
    kind = find_format(path)
    if kind is not None and kind.name == "parquet":
        _check_parquet(path, dataset, most_rows, most_bytes)


def check_rows(dataset: str, rows: int, most_rows: int) -> None:
    """Refuse a table with too many rows, whatever the file's metadata said."""
    if rows > most_rows:
        raise _too_large(dataset, f"{rows:,} rows", f"{most_rows:,} (most_rows in dataset.toml)")


def _check_parquet(path: Path, dataset: str, most_rows: int, most_bytes: int) -> None:
    import pyarrow as pa

    try:
        for rows, size in unpacked_sizes(path):
            check_rows(dataset, rows, most_rows)
            if size > most_bytes:
                raise _too_large(dataset, f"more than {most_bytes:,} bytes, unpacked", f"{most_bytes:,}")
    except (pa.ArrowException, OSError) as error:
        raise InputError("cannot-read-parquet", path=path, reason=str(error).splitlines()[0]) from None


def _too_large(dataset: str, found: str, most: str) -> InputError:
    return InputError("data-set-most-served", dataset=dataset, found=found, most=most)


def check_same_table(datasets: dict[str, Served]) -> dict[str, Served]:
    """Refuse a folder that serves the same table twice, whatever the format of its file and the order of its rows.

    Raises:
        OptionError: it names both data sets.
    """
    seen: dict[str, str] = {}
    for name, served in datasets.items():
        twin = next((seen[mark] for mark in _marks(served) if mark in seen), None)
        if twin is not None:
            _refuse(served, twin, Message.of("twin-served"))
        seen.update({mark: name for mark in _marks(served)})
    return datasets


def check_earlier_names(datasets: dict[str, Served], ledger: Ledger) -> None:
    """Refuse a table that the ledger has under another name: a new name would give it a new budget.

    Raises:
        OptionError: it names the other one.
    """
    for other in ledger.datasets():
        marks = set(_fingerprints(ledger, other))
        for name, served in datasets.items():
            if name != other and served.fingerprint in marks:
                _refuse(served, other, Message.of("twin-in-ledger"))


def _refuse(served: Served, twin: str, how: Message) -> None:
    if twin in served.settings.same_table_as:
        warn("same table", dataset=served.name, twin=twin)
        return
    raise OptionError("data-set-holds-same-table", served=served.name, twin=twin, how=how)


def _fingerprints(ledger: Ledger, dataset: str) -> Iterator[str]:
    for entry in ledger.entries(dataset):
        if entry.kind == "terms" and (mark := json.loads(entry.content)["fingerprint"]):
            yield mark


def _marks(served: Served) -> tuple[str, str]:
    return served.fingerprint, rows_mark(served.table)


def rows_mark(table: QueryTable) -> str:
    """A hash of the rows of a table in any order: a sum over hashed rows. As private as the table."""
    rows = [np.full(table.n, odd) for odd in _ODD]
    for name in sorted((*table.positions, *table.codes)):
        values = table.positions[name].view(np.uint64) if name in table.positions else _texts(table, name)
        for number, odd in enumerate(_ODD):
            rows[number] = _mixed((rows[number] ^ values) * odd)
    names = ",".join(sorted((*table.positions, *table.codes)))
    sums = [int(part.sum(dtype=np.uint64)) for part in rows]
    return hashlib.sha256(f"{names}:{table.n}:{sums}".encode()).hexdigest()


def _texts(table: QueryTable, name: str) -> NDArray[np.uint64]:
    """A number for each label that does not depend on the order in which labels occurred."""
    marks = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in (*table.names[name], "")]
    numbers = np.frombuffer(b"".join(marks), dtype=np.uint64)
    return np.asarray(numbers[table.codes[name]])


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return values ^ (values >> np.uint64(29))


@dataclass(frozen=True, slots=True)
class DatasetSettings:
    """The custodian's settings for a data set, in its dataset.toml.

    Attributes:
        ceiling: the most ε that all answers together may cost.
        neighbours: "replace-one" or "add-remove"; fixed for the life of the data set.
        delta_ceiling: the most δ, 0 for pure differential privacy.
        every_analyst: the most ε for each analyst.
        analysts: the most ε for single analysts.
        least_epsilon: the least ε that a question may cost, unless it is free.
        most_rows: the most records there may be. Public: where the number of records is private, the time of answers
            is derived from this.
        most_bytes: the most bytes that the entries of one analyst may take in the ledger.
        same_table_as: other data sets that are known to hold the same table, with separate budgets.
        description: a sentence for analysts; public.
        data: the file of the records, relative to the folder.
    """

    ceiling: Fraction
    neighbours: str = "replace-one"
    delta_ceiling: Fraction = Fraction(0)
    every_analyst: Fraction | None = None
    analysts: Mapping[str, Fraction] | None = None
    description: str = ""
    data: str | None = None
    least_epsilon: Fraction = LEAST_EPSILON
    most_rows: int | None = None
    most_bytes: int = MOST_BYTES
    same_table_as: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> DatasetSettings:
        known = {field.name for field in fields(cls)}
        for key in raw:
            if key not in known:
                raise OptionError("folder-unknown-key", key=key, hint=closest(key, known))
        if "ceiling" not in raw:
            raise OptionError("there-no-ceiling")
        analysts = raw.get("analysts", {})
        if not isinstance(analysts, Mapping):
            raise OptionError("analysts-table-names-ceilings", option="analysts")
        every = raw.get("every_analyst")
        return cls(
            _epsilon("ceiling", raw["ceiling"]),
            str(raw.get("neighbours", "replace-one")),
            _delta(raw.get("delta_ceiling", 0)),
            None if every is None else _epsilon("every_analyst", every),
            {plain_name(str(name), ANALYST): _epsilon(f"analysts.{name}", v) for name, v in analysts.items()},
            str(raw.get("description", "")),
            None if raw.get("data") is None else str(raw["data"]),
            _epsilon("least_epsilon", raw.get("least_epsilon", LEAST_EPSILON)),
            None if raw.get("most_rows") is None else _whole("most_rows", raw["most_rows"]),
            _whole("most_bytes", raw.get("most_bytes", MOST_BYTES)),
            tuple(plain_name(str(name), DATA_SET) for name in raw.get("same_table_as", ())),
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of the file; ceilings as text, which is exact."""
        document: dict[str, Any] = {"description": self.description, "neighbours": self.neighbours}
        document["ceiling"] = decimal_text(self.ceiling)
        document["delta_ceiling"] = decimal_text(self.delta_ceiling)
        if self.every_analyst is not None:
            document["every_analyst"] = decimal_text(self.every_analyst)
        document["least_epsilon"] = decimal_text(self.least_epsilon)
        document["most_bytes"] = self.most_bytes
        if self.most_rows is not None:
            document["most_rows"] = self.most_rows
        if self.same_table_as:
            document["same_table_as"] = list(self.same_table_as)
        if self.data is not None:
            document["data"] = self.data
        if self.analysts:
            document["analysts"] = {name: decimal_text(value) for name, value in self.analysts.items()}
        return document


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A data set that is ready for questions."""

    name: str
    settings: DatasetSettings
    table: QueryTable
    fingerprint: str

    @property
    def public_rows(self) -> int:
        """The number of records, or its public upper bound."""
        rows = self.table.facts.rows
        return rows if rows is not None else self.settings.most_rows or _MOST_PRIVATE_ROWS

    def register(self) -> Register:
        """Its terms, for the ledger."""
        return Register(
            self.name,
            self.settings.neighbours,
            self.settings.ceiling,
            self.settings.delta_ceiling,
            dict(self.settings.analysts or {}),
            self.settings.every_analyst,
            self.fingerprint,
            self.table.facts.unit,
        )


def load_folder(folder: Path, key_of: Callable[[str], bytes] | None = None) -> dict[str, Served]:
    """Read and check all data sets of a folder: errors in the records are reported here, to the custodian.

    Args:
        folder: of the data sets.
        key_of: the key for the order of a unit's rows, by data set; called only where they are bounded.
    """
    if not folder.is_dir():
        raise InputError("folder-there-no-folder", folder=folder)
    places = sorted(path.parent for path in folder.glob("*/dataset.toml"))
    if not places:
        raise InputError("there-no-data-set", folder=folder)
    return check_same_table({place.name: load_dataset(place, key_of) for place in places})


def load_dataset(place: Path, key_of: Callable[[str], bytes] | None = None) -> Served:
    from shoal.query.facts import prepare

    name = plain_name(place.name, DATA_SET)
    path = place / "dataset.toml"
    try:
        settings = DatasetSettings.from_dict(load(path, "toml-data-set"))
    except OptionError as error:
        raise OptionError("folder-data-set-file", path=path, reason=error) from None
    if settings.neighbours not in ("replace-one", "add-remove"):
        raise OptionError("data-set-file", path=path, neighbours=settings.neighbours)
    data = _data_file(place, settings)
    schema = Schema.load(place / "schema.toml")
    private = settings.neighbours == "add-remove"
    most_rows = settings.most_rows or (_MOST_PRIVATE_ROWS if private else _MOST_ROWS)
    check_size(data, name, most_rows)
    bounded = schema.unit is not None and schema.unit.bound is not None
    key = key_of(name) if bounded and private and key_of is not None else None
    table = prepare(data, schema, settings.neighbours, key)  # type: ignore[arg-type]
    check_rows(name, table.n, most_rows)
    return Served(name, settings, table.shuffled(), fingerprint(data))


def write_dataset(place: Path, settings: DatasetSettings, schema: Schema, data: Any) -> None:
    """Create the folder of a data set from a table in memory."""
    from shoal.io import write

    place.mkdir(parents=True)
    write(data, place / "data.csv")
    schema.save(place / "schema.toml")
    (place / "dataset.toml").write_text(dumps(settings.to_dict()), "utf-8")


def _data_file(place: Path, settings: DatasetSettings) -> Path:
    names = _DATA_FILES if settings.data is None else (settings.data,)
    for name in names:
        if (place / name).is_file():
            return place / name
    raise InputError("data-set-without-records", name=place.name, allowed=names, place=place)


def _epsilon(key: str, value: object) -> Fraction:
    try:
        return parse_epsilon(value)  # type: ignore[arg-type]
    except OptionError as error:
        raise OptionError("of-key", key=key, reason=error) from None


def _whole(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError("option-whole-number-least-1", option=key, found=value)
    return value


def _delta(value: object) -> Fraction:
    delta = exact(value, "delta_ceiling")
    if not 0 <= delta <= MOST_DELTA:
        most = decimal_text(MOST_DELTA)
        raise OptionError("delta-ceiling-least-0-most", option="delta_ceiling", most=most, found=value)
    return delta
