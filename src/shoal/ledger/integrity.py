"""What a database says about its own state: an open connection comes in, what is damaged leaves."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from shoal.ledger.migrations import MIGRATIONS, entry_table, migrate, version_table
from shoal.text import Message

_MOST_SAID = 3


def damage_of(connection: Connection) -> list[Message]:
    """Everything that is wrong with the database as such; entries are checked by following them."""
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
    """Rows as the table has them and as its indexes have them; the indexes themselves where amcheck is installed."""
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
