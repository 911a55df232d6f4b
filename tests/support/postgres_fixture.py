"""A real PostgreSQL for tests: import `postgres` into a conftest, and `fresh_database` where one is needed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from benchmarks.postgres import NoPostgresError, temporary_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a PostgreSQL started for this session."""
    try:
        with temporary_postgres() as address:
            yield address
    except NoPostgresError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def fresh_database(postgres: str) -> str:
    """A new, empty database on that server."""
    import psycopg

    name = "t" + uuid.uuid4().hex
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.replace("/postgres?", f"/{name}?")
