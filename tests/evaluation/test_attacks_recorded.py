"""Success rates compared with those of anonymeter 1.1.0 for the same tables, split and number of attacks.

The figures were recorded once, so that they can be compared without installing it; `test_attacks_live.py` runs it.
Attempts that succeeded out of 500, on the original records
and on the control group. Its numeric guesses are right within 5% of the value, so a margin for each target is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import shoal
from shoal.evaluation.attacks import singling
from shoal.evaluation.attacks.run import inference, linkability
from shoal.evaluation.attacks.singling import Encoded, count_matches, encode
from shoal.evaluation.learning import wilson
from shoal.io import read
from shoal.survey import survey, survey_schema

ATTACKS = 500
MIXED = ["age", "sex", "region", "education", "hours per week", "income", "tax", "rent"]
NUMBERS = ["age", "hours per week", "income", "tax", "rent"]

RECORDED = {
    ("raw copy", "linkability"): (311, 0),
    ("raw copy", "one column"): (500, 1),
    ("raw copy", "several columns"): (500, 144),
    ("raw copy", "age"): (500, 64),
    ("raw copy", "sex"): (500, 256),
    ("raw copy", "region"): (500, 135),
    ("raw copy", "income"): (500, 75),
    ("raw copy", "rent"): (500, 37),
    ("mdav-dp, k = 3", "linkability"): (6, 2),
    ("mdav-dp, k = 3", "one column"): (1, 1),
    ("mdav-dp, k = 3", "several columns"): (152, 52),
    ("mdav-dp, k = 3", "age"): (184, 60),
    ("mdav-dp, k = 3", "income"): (155, 96),
    ("mdav-dp, k = 3", "rent"): (94, 42),
    ("noise alone", "linkability"): (1, 1),
    ("noise alone", "one column"): (0, 0),
    ("noise alone", "several columns"): (42, 16),
    ("noise alone", "age"): (27, 21),
    ("noise alone", "sex"): (250, 241),
    ("noise alone", "region"): (117, 98),
    ("noise alone", "income"): (2, 6),
    ("noise alone", "rent"): (4, 5),
}


def raw_copy(people: pa.Table) -> pa.Table:
    return people.select(MIXED)


def small_groups(people: pa.Table) -> pa.Table:
    # hardly any noise: what remains is the protection by groups of three
    return shoal.protect(
        people, survey_schema(), "mdav-dp", epsilon="1000000", k=3, columns=NUMBERS, seed=1
    ).data


def noise_alone(people: pa.Table) -> pa.Table:
    """Every column drawn by itself, evenly from what occurs: nobody is in it."""
    rng = np.random.default_rng(0)
    columns = {}
    for name in MIXED:
        values = people[name].to_numpy(zero_copy_only=False)
        columns[name] = (
            rng.uniform(values.min(), values.max(), people.num_rows).round(2)
            if name in NUMBERS
            else rng.choice(np.unique(values.astype(str)), people.num_rows)
        )
    return pa.table(columns)


RELEASES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "raw copy": raw_copy,
    "mdav-dp, k = 3": small_groups,
    "noise alone": noise_alone,
}


@cache
def tables(release: str) -> Encoded:
    people = survey(4000, seed=2017)
    original, control = people.slice(0, 2000), people.slice(2000)
    return encode(read(original), read(RELEASES[release](original)), read(control), None)


def credits(release: str, attack: str) -> list[NDArray[np.float64]]:
    """Credits of our attempts on the original records and on the control group."""
    data = tables(release)
    assert data.control is not None
    names = data.space.names
    rng = np.random.default_rng(11)
    halves = list(range((len(names) + 1) // 2)), list(range((len(names) + 1) // 2, len(names)))
    if attack in ("one column", "several columns"):
        build = singling.rare_values if attack == "one column" else singling.corners
        predicates = build(singling.distinct_rows(data.released), data.space, ATTACKS, rng)
        assert len(predicates) == ATTACKS
        return [(count_matches(rows, predicates) == 1) * 1.0 for rows in (data.original, data.control)]
    out = []
    for rows in (data.original, data.control):
        targets = rows[rng.choice(len(rows), ATTACKS, replace=False)]
        if attack == "linkability":
            out.append(linkability(targets, data.released, data.space, *halves))
        else:
            secret = names.index(attack)
            margin = 0.05 * np.abs(targets[:, secret])
            out.append(inference(targets, data.released, data.space, secret, margin))
    return out


def agree(ours: float, recorded: int, confidence: float) -> bool:
    """Whether the two intervals overlap."""
    low, high = wilson(ours, ATTACKS, confidence)
    recorded_low, recorded_high = wilson(recorded / ATTACKS, ATTACKS, confidence)
    return low <= recorded_high and recorded_low <= high


@pytest.mark.parametrize(("release", "attack"), RECORDED)
def test_rates_agree_with_the_recorded_ones(release: str, attack: str) -> None:
    for found, recorded in zip(credits(release, attack), RECORDED[release, attack], strict=True):
        assert agree(float(found.mean()), recorded, confidence=0.95), (found.mean(), recorded / ATTACKS)


def test_the_comparison_tells_attacks_that_differ_apart() -> None:
    """Even at a confidence of 1 - 1e-9: the figures of another release or another attack do not agree."""
    confidence = 1 - 1e-9
    for attack in ("linkability", "one column", "several columns", "age", "income"):
        success = float(credits("raw copy", attack)[0].mean())
        assert not agree(success, RECORDED["mdav-dp, k = 3", attack][0], confidence)
        assert not agree(success, RECORDED["noise alone", attack][0], confidence)
    for attack in ("several columns", "age", "income", "rent"):
        success = float(credits("mdav-dp, k = 3", attack)[0].mean())
        assert not agree(success, RECORDED["noise alone", attack][0], confidence)
