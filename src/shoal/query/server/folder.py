"""The served folder: a path comes in, data sets with their terms leave.

DIR/NAME/dataset.toml   terms of one data set, see `Settings`
DIR/NAME/schema.toml    its schema
DIR/NAME/data.csv       its records (or data.parquet; data = "..." in dataset.toml names another place)
DIR/tokens.toml         hashes of the tokens
DIR/ledger.sqlite       the ledger, unless it is kept elsewhere
DIR/ledger.heads        its newest heads; a folder with this file was served before, and needs its ledger
DIR/timing.faults       answers that did not leave when they should; while it is there, no claim is made about timing
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.columns.circumstances import MOST_DELTA
from shoal.columns.schema import Schema
from shoal.decimals import decimal_text, exact
from shoal.errors import InputError, OptionError, closest
from shoal.io.common import dumps, load
from shoal.io.table import fingerprint
from shoal.ledger import Register
from shoal.noise.scale import parse_epsilon
from shoal.query.server.names import ANALYST, DATA_SET, plain_name
from shoal.query.server.reading import check_rows, check_size
from shoal.query.server.same_table import check_same_table

if TYPE_CHECKING:
    from shoal.query.facts import QueryTable

LEDGER_FILE = "ledger.sqlite"
TOKENS_FILE = "tokens.toml"
HEADS_FILE = "ledger.heads"
FAULTS_FILE = "timing.faults"
_DATA_FILES = ("data.parquet", "data.csv")
LEAST_EPSILON = Fraction(1, 1000)
MOST_BYTES = 64 * 2**20
_MOST_ROWS = 20_000_000
# the time that answers take follows from this where the number of records is private
_MOST_PRIVATE_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What the holder fixes for a data set in its dataset.toml.

    Attributes:
        ceiling: the most ε that all answers together may cost.
        neighbours: "replace-one" or "add-remove"; fixed for the life of the data set.
        delta_ceiling: the most δ, 0 for pure differential privacy.
        every_analyst: the most ε for each analyst.
        analysts: the most ε for single analysts.
        least_epsilon: the least ε that a question may cost, unless it is free.
        most_rows: the most records there may be. Public: where the number of records is private, the time that answers
            take is computed from this.
        most_bytes: the most bytes that the entries of one analyst may take in the ledger.
        same_table_as: other data sets that are known to hold the same table, with budgets of their own.
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
    def from_dict(cls, raw: Mapping[str, Any]) -> Settings:
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
    """A data set that is ready to be asked."""

    name: str
    settings: Settings
    table: QueryTable
    fingerprint: str

    @property
    def public_rows(self) -> int:
        """The number of records, or the bound of it that everybody may know."""
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


def load_folder(folder: Path) -> dict[str, Served]:
    """All data sets of a folder, read and checked: what is wrong with the records is said here, to the holder."""
    if not folder.is_dir():
        raise InputError("folder-there-no-folder", folder=folder)
    places = sorted(path.parent for path in folder.glob("*/dataset.toml"))
    if not places:
        raise InputError("there-no-data-set", folder=folder)
    return check_same_table({place.name: load_dataset(place) for place in places})


def load_dataset(place: Path) -> Served:
    from shoal.query.facts import prepare

    name = plain_name(place.name, DATA_SET)
    path = place / "dataset.toml"
    try:
        settings = Settings.from_dict(load(path, "toml-data-set"))
    except OptionError as error:
        raise OptionError("folder-data-set-file", path=path, reason=error) from None
    if settings.neighbours not in ("replace-one", "add-remove"):
        raise OptionError("data-set-file", path=path, neighbours=settings.neighbours)
    data = _data_file(place, settings)
    schema = Schema.load(place / "schema.toml")
    private = settings.neighbours == "add-remove"
    most_rows = settings.most_rows or (_MOST_PRIVATE_ROWS if private else _MOST_ROWS)
    check_size(data, name, most_rows)
    table = prepare(data, schema, settings.neighbours)  # type: ignore[arg-type]
    check_rows(name, table.n, most_rows)
    return Served(name, settings, table.shuffled(), fingerprint(data))


def write_dataset(place: Path, settings: Settings, schema: Schema, data: Any) -> None:
    """Make the folder of a data set from a table in memory."""
    from shoal.io import write

    place.mkdir(parents=True)
    write(data, place / "data.csv")
    schema.save(place / "schema.toml")
    (place / "dataset.toml").write_text(dumps(settings.to_dict()), "utf-8")


def _data_file(place: Path, settings: Settings) -> Path:
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
