"""A small survey on disk, studio sessions, and simulated users in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.io import write
from shoal.studio.guarantee import Recipe
from shoal.studio.session import StudioSessions
from shoal.survey import survey
from tests.support.browser import chromium_path
from tools.served_studio import Studio, chromium, served

from .studio_client import Tab
from .studio_walker import Walk, walking


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "people.csv"
    write(survey(300).select(["age", "sex", "hours per week", "income"]), path)
    return path


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[StudioSessions]:
    place = tmp_path / "place"
    place.mkdir()
    made = StudioSessions(limit=200_000, place=place)
    yield made
    made.close()


@pytest.fixture
def tab(sessions: StudioSessions) -> Tab:
    return Tab(sessions)


@pytest.fixture(scope="session")
def settled_recipe(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """Everything about the table is settled, on the card of averages; by hand, once for all tests."""
    sessions = StudioSessions(place=tmp_path_factory.mktemp("place"))
    tab = Tab(sessions)
    tab.upload(table)
    tab.column("age", "suggestion")
    tab.column("hours per week", "suggestion")
    tab.column("income", "range", ["0", "300000"])
    tab.column("sex", "values")
    tab.vouch("questionnaire")
    tab.guarantee("card", "given-partition")
    tab.guarantee("typed", "20", "k")
    found = tab.session.recipe
    sessions.close()
    return found


@pytest.fixture
def settled(tab: Tab, table: Path, settled_recipe: Recipe) -> Tab:
    """A tab with a table of which everything is settled."""
    tab.upload(table)
    tab.session.settle(settled_recipe)
    return tab


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium(chromium_path()) as opened:
        yield opened


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with served(limit=5_000_000, place=tmp_path) as found:
        yield found


@pytest.fixture
def walk(browser: Any, studio: Studio) -> Iterator[Walk]:
    with walking(browser, studio) as found:
        yield found
