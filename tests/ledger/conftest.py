"""Ledgers to test with: a fresh SQLite file, or a fresh database of a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from shoal.ledger import Charge, Ledger, Register, open_ledger
from tests.support.postgres_fixture import fresh_database, postgres  # noqa: F401


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.system)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger can be made, in each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    return fresh_database(request.getfixturevalue("postgres"))


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    """An empty ledger with the data set 'people': ε at most 1."""
    opened = open_ledger(address)
    opened.register(Register("people", "replace-one", Fraction(1)))
    yield opened
    opened.close()


@pytest.fixture
def spend() -> Callable[..., Charge]:
    """A charge with short words: spend("1/4", analyst="ada", key="k", ask="count")."""

    def made(epsilon: str, *, analyst: str = "ada", ask: str = "count", **more: object) -> Charge:
        return Charge("people", analyst, f'{{"kind":"{ask}"}}', Fraction(epsilon), **more)  # type: ignore[arg-type]

    return made
