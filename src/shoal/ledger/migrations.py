"""The tables of a ledger, version by version: an open transaction comes in, an up-to-date layout leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from shoal.ledger.errors import LedgerError

_metadata = sa.MetaData()

version_table = sa.Table("ledger_version", _metadata, sa.Column("version", sa.Integer, primary_key=True))
# one row per data set, to be locked where the database locks rows
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
# what must not happen twice is refused by the database too, not only by the code in front of it
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
# any number that other programs are unlikely to lock
_MIGRATION_LOCK = 0x5403A1


def _first_layout(connection: Connection) -> None:
    dataset_table.create(connection)
    entry_table.create(connection)
    for statement in (*_INDEXES, *_APPEND_ONLY[connection.dialect.name]):
        connection.exec_driver_sql(statement)


def _terms_with_units(connection: Connection) -> None:
    """Terms name their unit from here on. The tables stay; versions that would write terms without it stay out."""


def _terms_with_currencies(connection: Connection) -> None:
    """Terms may count ρ from here on. The tables stay; versions that would take ρ for ε stay out."""


# the version of a layout is its place in this list; a new layout is a new line at the end
MIGRATIONS: Sequence[Callable[[Connection], None]] = (
    _first_layout,
    _terms_with_units,
    _terms_with_currencies,
)


def migrate(connection: Connection, migrations: Sequence[Callable[[Connection], None]] | None = None) -> None:
    """Bring the tables to the newest layout, within the caller's transaction.

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
