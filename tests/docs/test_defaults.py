"""The defaults that pages state are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import shoal
from shoal.columns.attribute import Attribute
from shoal.errors import ShoalError
from shoal.mechanisms.registry import DEFAULT_METHOD, method_class, names, parameters
from shoal.privacy.verdict import MODELS

ROOT = Path(__file__).parents[2]
PUBLIC = {"add-remove": "number of records private", "replace-one": "number of records public"}


def stated() -> dict[str, tuple[str, str]]:
    """The table of defaults in docs/claims.md: default and other choices, by what they are of."""
    section = (ROOT / "docs" / "claims.md").read_text("utf-8").split("\n## Defaults\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {what: (default, others) for what, default, others in rows[2:]}


def budgeted() -> set[str]:
    """Methods that make a claim with an ε."""
    claims = {info.name: info.claim for info in shoal.methods()}
    return {
        name
        for name, claim in claims.items()
        if any(facts.budgeted for model, facts in MODELS.items() if re.search(rf"(^|[ ;]){model}\b", claim))
    }


def test_the_default_method_is_the_stated_one() -> None:
    assert stated()["method"][0] == f"`{DEFAULT_METHOD}`"
    assert f"`{DEFAULT_METHOD}` (the default)" in (ROOT / "README.md").read_text("utf-8")


def test_adjacency_and_what_it_makes_of_the_number_of_records_are_the_stated_ones() -> None:
    told = stated()
    chosen = {name: method_class(name).adjacency for name in budgeted()}
    either = {name for name in chosen if "neighbours" in method_class(name).parameters()}
    assert {f"adjacency of `{name}`" for name in either} == {what for what in told if "of `" in what}
    for name in either:
        (other,) = set(PUBLIC) - {chosen[name]}
        assert told[f"adjacency of `{name}`"] == (f"`{chosen[name]}`, {PUBLIC[chosen[name]]}", f"`{other}`")
    (rest,) = {chosen[name] for name in chosen if name not in either}
    assert told["adjacency of all other methods with an ε"] == (f"`{rest}`, {PUBLIC[rest]}", "none")


def test_delta_missing_values_ranges_and_weights_are_the_stated_ones() -> None:
    told = stated()
    assert told["δ"][0] == str(parameters()["delta"].default)
    takes = [name for name in names() if "delta" in method_class(name).parameters()]
    assert told["δ"][1] == f"{', '.join(f'`{name}`' for name in takes)} takes `delta`"
    assert told["survey weights"][0] == "`dropped`"
    assert Attribute("w", kind="numeric", role="weight").dropped


@pytest.mark.parametrize(("what", "value"), [("missing values", None), ("values outside the range", 400)])
def test_the_default_for_what_does_not_fit_is_the_stated_error(what: str, value: float | None) -> None:
    assert stated()[what][0] == "`error`"
    ages = pd.DataFrame({"age": [31, 45, value, 60]})
    with pytest.raises(ShoalError, match="'age'"):
        shoal.protect(ages, epsilon=1, domains={"age": (0, 120)})


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("README.md", r"number of records is public|never released"),
        ("docs/limitations.md", r"private\s+under `add-remove` \(`tree-dp`|Weights are dropped, so"),
        ("docs/coming-from.md", r"weight`: never released|recod\w+ .*not chosen by hand"),
        ("docs/tutorials/command-line.md", r"sed -i .*source"),
        ("docs/guide/tuning.md", r"sed -i .*tuned"),
    ],
)
def test_pages_no_longer_say_what_the_code_does_not_do(page: str, wrong: str) -> None:
    assert re.search(wrong, (ROOT / page).read_text("utf-8")) is None
