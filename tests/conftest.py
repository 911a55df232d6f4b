"""Shared test set-up: the real data sets, a journal for each test, and a floor on the number of collected tests."""

from __future__ import annotations

import gc
import hashlib
import os
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from shoal.journal import PLACE
from tests.support import repeatable
from tools.public_data import data_folder

# how long an example takes says something about the machine, not about the code; on CI the usual profile is another one
settings.register_profile(
    "thorough", deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow]
)
# other ones each time, three times as many as in a quick run: 'make test-all'
settings.register_profile("whole", settings.get_profile("thorough"), max_examples=60)
# as many examples as a quick run, but other ones each time
settings.register_profile("fresh", settings.get_profile("thorough"), max_examples=20)
# chosen by itself; 'make test-thorough' asks for the thorough one
settings.register_profile("quick", settings.get_profile("fresh"), derandomize=True, database=None)
if settings.get_current_profile_name() not in (
    "quick",
    "fresh",
    "whole",
    "thorough",
):  # tests import this module again
    settings.load_profile("quick")


repeatable.install()

# nobody's own journal of use is written: what runs outside of a test, and every process that is started, inherits this
_JOURNALS = tempfile.TemporaryDirectory(prefix="shoal-journals-")
if "shoal-journals-" not in os.environ.get(PLACE, ""):  # tests import this module again
    os.environ[PLACE] = str(Path(_JOURNALS.name) / "shared" / "journal.jsonl")


@pytest.fixture(autouse=True)
def own_journal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests know nothing of each other's uses."""
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
    monkeypatch.setenv(PLACE, str(Path(_JOURNALS.name) / name / "journal.jsonl"))


def examples(thorough: int) -> int:
    """How many examples a property gets whose own number is not the usual one: a quarter of it in a quick run."""
    return -(-thorough // {"thorough": 1, "whole": 2}.get(settings.get_current_profile_name(), 4))


def amount(whole: int, thorough: int) -> int:
    """How many runs, worlds or cases a slow test takes: in `make test-all` as many as refute, else more."""
    return thorough if settings.get_current_profile_name() == "thorough" else whole


# with the thorough tests only
THOROUGH = [pytest.mark.slow, pytest.mark.thorough]


def slow_ones(cases: Sequence[Sequence[Any]], *numbers: int) -> list[Any]:
    """Cases of which those with these numbers run with the slow tests only: a quick run has another of their kind."""
    return [
        pytest.param(*case, marks=[pytest.mark.slow] if number in numbers else [])
        for number, case in enumerate(cases)
    ]


# run by another interpreter, see test_attacks_live.py
collect_ignore = ["evaluation/anonymeter_rates.py"]

ROOT = Path(__file__).parents[1]


def data_file(name: str) -> Path:
    """Path of a public data set."""
    return data_folder() / name


def offices_file(name: str) -> Path:
    """Path of the offices' reference figures."""
    return data_folder() / "offices" / name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests and doctests of the papers run by themselves, except one table of each."""
    folders = (f"{ROOT / 'papers'}{os.sep}", f"{ROOT / 'tests' / 'papers'}{os.sep}")
    for item in items:
        if str(item.path).startswith(folders) and item.path.stem != "test_one_table":
            item.add_marker(pytest.mark.papers)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end: no search for garbage walks through them again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """What several tests share must not depend on which of them a worker runs first."""
    if settings.get_current_profile_name() != "quick" or fixturedef.scope == "function":
        return (yield)
    with repeatable.words_of(f"{fixturedef.baseid}::{fixturedef.argname}{getattr(request, 'param', '')}"):
        return (yield)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--collected-floor", type=int, default=0, help="fail if fewer tests are collected")
    parser.addoption("--log-tests", default=None, help="a file that gets a line for every test as it ends")


_outcomes = pytest.StashKey[dict[str, str]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash.setdefault(_outcomes, {})[report.when or ""] = report.outcome
    return report


def outcome_of(phases: dict[str, str]) -> str:
    """One word for a test, from what came of its set-up, its call and what follows."""
    if phases.get("call") == "failed":
        return "failed"
    if "failed" in phases.values():
        return "error"
    return "skipped" if "skipped" in phases.values() else "passed"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The words of a quick run; and a line for every test when it ends, so that a run cut short leaves some."""
    # a quick run repeats itself: a test is given the same examples and the same noise each time
    quick = settings.get_current_profile_name() == "quick"
    log = item.config.getoption("--log-tests")
    began, before = time.monotonic(), sum(os.times()[:4])
    with repeatable.words_of(item.nodeid) if quick else nullcontext():
        result = yield
    if log is None:
        return result
    cpu, wall = sum(os.times()[:4]) - before, time.monotonic() - began
    outcome = outcome_of(item.stash.get(_outcomes, {}))
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{outcome}\t{cpu:.2f}\t{wall:.2f}\t{item.nodeid}\n")
    return result


def check_floor(config: pytest.Config, collected: int) -> None:
    floor = config.getoption("--collected-floor")
    if not config.getoption("--collect-only") and collected < floor:
        raise pytest.UsageError(f"only {collected} tests were collected, expected at least {floor}")


def pytest_collection_finish(session: pytest.Session) -> None:
    # a worker of pytest-xdist that raises looks like a crash: its controller asks below
    if not hasattr(session.config, "workerinput"):
        check_floor(session.config, len(session.items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    check_floor(node.config, len(ids))
