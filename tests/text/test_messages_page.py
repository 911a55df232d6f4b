"""The page of all messages is what its command writes."""

from __future__ import annotations

import pytest

from shoal.text import catalogue
from tools.messages import PAGE, page, samples


def test_the_page_of_messages_is_that_of_the_catalogue() -> None:
    # compared by lines: a difference of the whole is too long to read
    written, now = PAGE.read_text("utf-8").splitlines(), page().splitlines()
    assert [line for line in now if line not in set(written)] == [], "run: python -m tools.messages"
    assert len(written) == len(now), "run: python -m tools.messages"


def test_every_code_has_one_row() -> None:
    rows = [line.split("`")[1] for line in page().splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(catalogue())


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("infinite", {"column": "income", "row": 3}),
        ("rows-traced", {"share": 0.25, "chance": 0.25}),
        ("option-names-twice", {"option": "k", "value": "north"}),
    ],
)
def test_sample_facts_are_plausible(code: str, facts: dict[str, object]) -> None:
    assert samples(code) == facts
