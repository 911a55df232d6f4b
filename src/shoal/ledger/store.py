"""Storage of a ledger: SQLite or PostgreSQL tables, their migrations, and checks for damage.

SQLite by default, in write-ahead mode with a full sync at every commit; PostgreSQL by its address. SQL is confined to
this module and the migrations.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, CursorResult, Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from shoal.errors import InputError
from shoal.ledger.account import LedgerEntry, LedgerError, fraction_of, fraction_text
from shoal.text import Message

# the database, its write-ahead log, and the shared-memory file of its connections
_SUFFIXES = ("", "-wal", "-shm")
Identity = tuple[int, int]
_metadata = sa.MetaData()

version_table = sa.Table("ledger_version", _metadata, sa.Column("version", sa.Integer, primary_key=True))
# one row per data set, for row locks in databases that support them
dataset_table = sa.Table("ledger_dataset", _metadata, sa.Column("name", sa.Text, primary_key=True))
entry_table = sa.Table(
    "ledger_entry",
    _metadata,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("analyst", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("refers", sa.Integer, nullable=True),
    sa.Column("epsilon", sa.Text, nullable=False),
    sa.Column("delta", sa.Text, nullable=False),
    sa.Column("added", sa.Text, nullable=False),
    sa.Column("added_analyst", sa.Text, nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("family", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)
# the keys that order the rows of a unit where they are bounded; no entry depends on them
key_table = sa.Table(
    "ledger_bound_key",
    _metadata,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
)
# constraints repeat in the database what the code already prevents
_INDEXES = (
    "CREATE UNIQUE INDEX ledger_entry_key ON ledger_entry (dataset, key, analyst) WHERE key <> ''",
    "CREATE UNIQUE INDEX ledger_entry_answer ON ledger_entry (dataset, refers) WHERE refers IS NOT NULL",
    "CREATE INDEX ledger_entry_analyst ON ledger_entry (dataset, analyst, number)",
)
_APPEND_ONLY = {
    "sqlite": tuple(
        f"CREATE TRIGGER ledger_entry_no_{word.lower()} BEFORE {word} ON ledger_entry "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for word in ("UPDATE", "DELETE")
    ),
    "postgresql": (
        "CREATE FUNCTION ledger_entry_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        "CREATE TRIGGER ledger_entry_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entry "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_entry_append_only()",
    ),
}
# an arbitrary number that other programs are unlikely to lock
_MIGRATION_LOCK = 0x5403A1
_MOST_SAID = 3


class OpenFiles:
    """Remembers the identity and size of the files at a path, and detects replaced or truncated files.

    A database that is unlinked or replaced stays usable for those who have it open, but what they write is lost to
    everybody else. The files are compared by path, since closing a file handle of our own would drop SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Identity] = {}
        self._sizes: dict[str, int] = {}
        self.check()

    def check(self, *, writing: bool = False) -> None:
        """Compare the files with their remembered state.

        Args:
            writing: within a writing transaction: from then on the log and the shared file are open, too.
                Before, they may belong to a process that is about to exit and remove them.

        Raises:
            LedgerError: the path leads to another file, to none, or to a truncated one.
        """
        for suffix in _SUFFIXES:
            found, size = _identity(Path(f"{self._path}{suffix}"))
            known = self._known.get(suffix)
            if known is not None and found != known:
                raise LedgerError("ledger-file-replaced-removed-while-open", path=self._path, suffix=suffix)
            # a log restarts after a checkpoint, but its file is never truncated while it is open
            if known is not None and size < self._sizes[suffix]:
                raise LedgerError("ledger-file-cut-off-while-open", path=self._path, suffix=suffix)
            if found is not None and (writing or not suffix or known is not None):
                self._known[suffix], self._sizes[suffix] = found, size


def _identity(path: Path) -> tuple[Identity | None, int]:
    """The identity of a file, and its size."""
    try:
        status = path.stat()
    except OSError:
        return None, 0
    return (status.st_dev, status.st_ino), status.st_size


def digest_of(path: Path) -> str | None:
    """SHA-256 of a ledger file without writers; None while there is a write-ahead log beside it."""
    log = Path(f"{path}-wal")
    if not path.is_file() or (log.exists() and log.stat().st_size):
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first_layout(connection: Connection) -> None:
    dataset_table.create(connection)
    entry_table.create(connection)
    for statement in (*_INDEXES, *_APPEND_ONLY[connection.dialect.name]):
        connection.exec_driver_sql(statement)


def _terms_with_units(connection: Connection) -> None:
    """Terms include their unit from here on. The tables are unchanged; versions that would omit it are locked out."""


def _terms_with_currencies(connection: Connection) -> None:
    """Terms may count ρ from here on. The tables are unchanged; versions that would read ρ as ε are locked out."""


def _bound_keys(connection: Connection) -> None:
    """Keys for the order of a unit's rows are kept from here on."""
    key_table.create(connection)


# the version of a layout is its index in this list; append new layouts at the end
MIGRATIONS: Sequence[Callable[[Connection], None]] = (
    _first_layout,
    _terms_with_units,
    _terms_with_currencies,
    _bound_keys,
)


def migrate(connection: Connection, migrations: Sequence[Callable[[Connection], None]] | None = None) -> None:
    """Migrate the tables to the newest layout, within the caller's transaction.

    Raises:
        LedgerError: the ledger was written by a newer version of Shoal.
    """
    steps = MIGRATIONS if migrations is None else migrations
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
    version_table.create(connection, checkfirst=True)
    version = connection.scalar(sa.select(sa.func.max(version_table.c.version))) or 0
    if version > len(steps):
        raise LedgerError("ledger-layout-version-shoal-knows", version=version, number_of_steps=len(steps))
    for number, step in enumerate(steps[version:], start=version + 1):
        step(connection)
        connection.execute(version_table.insert().values(version=number))


def damage_of(connection: Connection) -> list[Message]:
    """All damage of the database as such; entries are verified by reading the chains."""
    found = list(_sqlite(connection) if connection.dialect.name == "sqlite" else _postgres(connection))
    version = connection.scalar(sa.select(sa.func.max(version_table.c.version)))
    if version != len(MIGRATIONS):
        found.append(Message.of("damage-layout-version", found=version, known=len(MIGRATIONS)))
    return found


def _sqlite(connection: Connection) -> Iterator[Message]:
    said = [row[0] for row in connection.exec_driver_sql(f"PRAGMA integrity_check({_MOST_SAID})")]
    if said != ["ok"]:
        lines = tuple(str(line).replace("\n", " ")[:200] for line in said)
        yield Message.of("damage-database-says", said=lines)
    expected = {"journal_mode": "wal", "encoding": "UTF-8", "user_version": 0, "application_id": 0}
    for name, value in expected.items():
        if (now := connection.exec_driver_sql(f"PRAGMA {name}").scalar()) != value:
            yield Message.of("damage-setting", name=name, found=now, known=value)
    if _layout(connection) != _fresh_layout():
        yield Message("damage-layout")


def _layout(connection: Connection) -> set[tuple[str, str, str, str]]:
    found = connection.exec_driver_sql("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return {(kind, name, table, " ".join(sql.split())) for kind, name, table, sql in found}


def _fresh_layout() -> set[tuple[str, str, str, str]]:
    engine = sa.create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            migrate(connection)
            return _layout(connection)
    finally:
        engine.dispose()


def _postgres(connection: Connection) -> Iterator[Message]:
    """Compare rows as seen through the table and its indexes; check the indexes themselves if amcheck is installed."""
    counts = []
    for setting in ("enable_indexscan", "enable_seqscan"):
        connection.exec_driver_sql("SET LOCAL enable_bitmapscan TO off")
        connection.exec_driver_sql(f"SET LOCAL {setting} TO off")
        ordered = sa.select(entry_table.c.hash).order_by(entry_table.c.dataset, entry_table.c.number)
        counts.append(list(connection.scalars(ordered)))
        connection.exec_driver_sql(f"SET LOCAL {setting} TO on")
    if counts[0] != counts[1]:
        yield Message("damage-index")
    if connection.exec_driver_sql("SELECT 1 FROM pg_extension WHERE extname = 'amcheck'").first():
        names = connection.exec_driver_sql(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'ledger_entry'::regclass"
        )
        for (name,) in names.all():
            connection.exec_driver_sql(f"SELECT bt_index_check('{name}'::regclass)")


_COLUMNS = [column.name for column in entry_table.columns]
_BUSY_MILLISECONDS = 60_000
_LEAST_ROOM = 16 * 2**20


class EntryStore:
    """Durable, serialised access to the entries.

    Every writing transaction excludes all others on the same data sets before it reads: SQLite locks the file
    (`BEGIN IMMEDIATE`), PostgreSQL the rows of the data sets, always in the same order.
    """

    def __init__(self, address: str | Path, *, create: bool = True, looking: bool = False) -> None:
        """Open a database.

        Args:
            address: see `open_ledger`.
            create: create the file if it does not exist.
            looking: read-only: change nothing, not even to repair damage.
        """
        self.url = _url(address)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        if self.sqlite:
            _prepare_file(self.url, create)
        self.files = OpenFiles(Path(self.url.database or "")) if self.sqlite else None
        self._engine = _engine(self.url, self.files, looking)
        statement = f"INSERT INTO {entry_table.name} ({', '.join(_COLUMNS)}) VALUES ({_marks(_COLUMNS)})"
        self._insert = self._written_for_driver(statement)
        if looking:
            return
        with _readable_errors(), self.writing(()) as connection:
            migrate(connection)

    @contextmanager
    def writing(self, datasets: Sequence[str]) -> Iterator[Connection]:
        """A transaction with exclusive write access to these data sets; durable once it has ended."""
        with self._engine.connect() as connection:
            connection = connection.execution_options(shoal_writes=True)
            with connection.begin():
                if datasets and not self.sqlite:
                    self._lock_rows(connection, sorted(datasets))
                self._check_files(writing=True)
                yield connection
        # entries written to a file that is no longer the ledger were not granted
        self._check_files()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._engine.connect() as connection, connection.begin():
            self._check_files()
            yield connection

    def _check_files(self, *, writing: bool = False) -> None:
        if self.files is not None:
            self.files.check(writing=writing)

    def _lock_rows(self, connection: Connection, datasets: Sequence[str]) -> None:
        names = dataset_table.c.name
        # a new name gets its row first, so that there is something to lock
        from sqlalchemy.dialects.postgresql import insert

        known = set(connection.scalars(sa.select(names).where(names.in_(datasets))))
        for name in datasets:
            if name not in known:
                connection.execute(insert(dataset_table).values(name=name).on_conflict_do_nothing())
        connection.execute(
            sa.select(names).where(names.in_(datasets)).order_by(names).with_for_update()
        ).all()

    def append(self, connection: Connection, entries: Sequence[LedgerEntry]) -> None:
        """Write new entries; the database itself refuses a duplicate number, key or answer."""
        if not entries:
            return
        connection.exec_driver_sql(self._insert, [_row(entry) for entry in entries])
        if entries[0].number == 1 and self.sqlite:
            # PostgreSQL has the row already, for locking; a name without entries shows that they were lost
            connection.exec_driver_sql(
                f"INSERT OR IGNORE INTO {dataset_table.name} VALUES (?)", (entries[0].dataset,)
            )

    def entries(self, connection: Connection, dataset: str, first: int = 1) -> Iterator[LedgerEntry]:
        """The entries of a data set from a number on, in order."""
        found = self._select(connection, "dataset = ? AND number >= ? ORDER BY number", (dataset, first))
        return map(_entry, found)

    def by_key(self, connection: Connection, dataset: str, keys: Sequence[str]) -> list[LedgerEntry]:
        """The charges made under these keys, by any analyst."""
        if not keys:
            return []
        # "key <> ''" lets the database use the partial index
        where = f"dataset = ? AND key <> '' AND key IN ({_marks(keys)})"
        return [_entry(row) for row in self._select(connection, where, (dataset, *keys))]

    def answers(self, connection: Connection, dataset: str, charges: Sequence[int]) -> dict[int, LedgerEntry]:
        """The stored answers to these charges."""
        if not charges:
            return {}
        where = f"dataset = ? AND refers IS NOT NULL AND refers IN ({_marks(charges)})"
        rows = self._select(connection, where, (dataset, *charges))
        return {entry.refers or 0: entry for entry in map(_entry, rows)}

    def of_analyst(
        self, connection: Connection, dataset: str, analyst: str, after: int, limit: int
    ) -> list[LedgerEntry]:
        """The analyst's charges after a number, oldest first."""
        where = "dataset = ? AND analyst = ? AND kind = 'charge' AND number > ? ORDER BY number LIMIT ?"
        return [_entry(row) for row in self._select(connection, where, (dataset, analyst, after, limit))]

    def sizes_of_analyst(
        self, connection: Connection, dataset: str, analyst: str, after: int, limit: int
    ) -> list[tuple[int, int]]:
        """The numbers of these charges, and the total length of each content and answer."""
        statement = (
            "SELECT c.number, length(c.content) + coalesce(length(a.content), 0) FROM ledger_entry c "
            "LEFT JOIN ledger_entry a ON a.dataset = c.dataset AND a.refers = c.number "
            "WHERE c.dataset = ? AND c.analyst = ? AND c.kind = 'charge' AND c.number > ? "
            "ORDER BY c.number LIMIT ?"
        )
        found = connection.exec_driver_sql(
            self._written_for_driver(statement), (dataset, analyst, after, limit)
        )
        return [(number, size) for number, size in found]

    def _select(self, connection: Connection, where: str, values: tuple[Any, ...]) -> CursorResult[Any]:
        """Entries that meet an SQL condition of this module, with ? for values."""
        statement = f"SELECT {', '.join(_COLUMNS)} FROM {entry_table.name} WHERE {where}"
        return connection.exec_driver_sql(self._written_for_driver(statement), values)

    def _written_for_driver(self, statement: str) -> str:
        """Statements passed to the driver directly: compiling them anew takes longer than running them."""
        return statement if self.sqlite else statement.replace("?", "%s")

    def datasets(self, connection: Connection) -> list[str]:
        name = entry_table.c.dataset
        return list(connection.scalars(sa.select(name).distinct().order_by(name)))

    def damage(self, connection: Connection) -> list[Message]:
        """The findings of the database's own check."""
        return damage_of(connection)

    def bound_key(self, connection: Connection, dataset: str, proposed: str | None) -> str | None:
        """The key of a data set; the proposed one is stored if there is none."""
        if proposed is not None:
            statement = (
                f"INSERT INTO {key_table.name} (dataset, key) VALUES (:dataset, :key) ON CONFLICT DO NOTHING"
            )
            connection.execute(sa.text(statement), {"dataset": dataset, "key": proposed})
        return connection.scalar(sa.select(key_table.c.key).where(key_table.c.dataset == dataset))

    def registered(self, connection: Connection) -> list[str]:
        """The data sets that ever had entries; fewer in a ledger of an older version."""
        name = dataset_table.c.name
        return list(connection.scalars(sa.select(name).order_by(name)))

    def check_room(self) -> None:
        """Check that there is disk space for a ledger file to grow.

        Raises:
            LedgerError: there is too little space.
        """
        if self.sqlite:
            free = shutil.disk_usage(Path(self.url.database or "").parent).free
            if free < _LEAST_ROOM:
                raise LedgerError("disk-ledger-full", free=free)

    def close(self) -> None:
        self._engine.dispose()


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _row(entry: LedgerEntry) -> tuple[Any, ...]:
    """The columns of an entry, in the order of the table."""
    return (
        entry.dataset,
        entry.number,
        entry.kind,
        entry.at,
        entry.analyst,
        entry.key,
        entry.refers,
        fraction_text(entry.epsilon),
        fraction_text(entry.delta),
        fraction_text(entry.added),
        fraction_text(entry.added_analyst),
        "" if entry.person is None else json.dumps(entry.person),
        entry.family,
        entry.content,
        entry.previous,
        entry.hash,
    )


def _entry(row: Any) -> LedgerEntry:
    dataset, number, kind, at, analyst, key, refers, *amounts, person, family, content, previous, hash_ = row
    try:
        epsilon, delta, added, added_analyst = map(fraction_of, amounts)
        who = tuple(json.loads(person)) if person else None
    except (ValueError, ZeroDivisionError, TypeError, AttributeError, RecursionError):
        raise LedgerError("store-the-ledger-is-broken", number=number, dataset=dataset) from None
    return LedgerEntry(
        dataset,
        number,
        kind,
        at,
        analyst,
        key,
        refers,
        epsilon,
        delta,
        added,
        added_analyst,
        who,
        family,
        content,
        previous,
        hash_,
    )


def _url(address: str | Path) -> URL:
    """The address of the database; a plain path is a SQLite file."""
    text = str(address)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except ArgumentError:
        raise InputError("address-ledger-not-path-nor-database") from None
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise InputError("ledger-cannot-kept", backend=backend)
    return url


def _prepare_file(url: URL, create: bool) -> None:
    if not url.database or url.database == ":memory:":
        raise InputError("ledger-memory-would-forget-what-spent")
    path = Path(url.database)
    if path.exists():
        return
    if not create:
        raise InputError("there-no-ledger", path=path)
    if not path.parent.is_dir():
        raise InputError("there-no-folder-keep-ledger", parent=path.parent)
    # it holds answers and requests: only its owner may read it
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _engine(url: URL, files: OpenFiles | None, looking: bool) -> Engine:
    if files is None:
        engine = sa.create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED")
        event.listen(engine, "connect", _durable_postgres)
        return engine
    engine = sa.create_engine(url)
    event.listen(engine, "connect", _looking_sqlite if looking else _durable_sqlite)
    event.listen(engine, "connect", lambda connection, _: files.check())
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _looking_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    connection.execute("PRAGMA query_only = ON")


def _durable_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin in `_begin_sqlite` only
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    mode = write_ahead(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    if mode != "wal" or cursor.execute("PRAGMA synchronous").fetchone()[0] != 2:
        raise LedgerError("file-system-ledger-allows-no-write")
    cursor.close()


def write_ahead(cursor: Any) -> str:
    """Enable the write-ahead log.

    Two connections that do so at once on a new file could deadlock, so SQLite refuses one of them immediately,
    despite its timeout: that one retries.
    """
    until = time.monotonic() + _BUSY_MILLISECONDS / 1000
    while True:
        try:
            mode: str = cursor.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            return mode
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("shoal_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _durable_postgres(connection: Any, _: Any) -> None:
    """Require durable commits for this session, even if the server acknowledges commits before they are on disk."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        if cursor.fetchone()[0] == "off":
            cursor.execute("SET synchronous_commit TO on")
    connection.commit()


@contextmanager
def _readable_errors() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise InputError("ledger-cannot-opened", cause=cause) from None
