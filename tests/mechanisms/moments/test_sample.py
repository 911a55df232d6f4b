"""The sample of the grid that quick runs have leaves no value of an axis out."""

from __future__ import annotations

from dataclasses import fields

import pytest

from shoal.mechanisms.moments.methods import _GRID, _Line
from shoal.mechanisms.registry import names
from tests.support.presets import SAMPLE, sampled

LINES = {f"xm-{line.number}": line for line in _GRID}
AXES = [field.name for field in fields(_Line) if field.name != "number"]


@pytest.mark.parametrize("axis", AXES)
def test_every_value_of_the_axis_is_in_the_sample(axis: str) -> None:
    whole = {getattr(line, axis) for line in LINES.values()}
    assert len(whole) > 1
    assert {getattr(LINES[name], axis) for name in SAMPLE} == whole


def test_both_the_methods_and_their_baselines_are_in_the_sample() -> None:
    assert {line.masked for line in LINES.values()} == {LINES[name].masked for name in SAMPLE}


def test_no_case_is_lost_and_only_the_rest_of_the_grid_is_slow() -> None:
    cases = sampled(names())
    assert [case.values for case in cases] == [(name,) for name in names()]
    slow = {case.values[0] for case in cases if case.marks}
    assert slow == set(LINES) - set(SAMPLE)
    assert all([mark.name for mark in case.marks] == ["slow"] for case in cases if case.marks)


def test_cases_with_more_than_a_name_keep_the_rest() -> None:
    quick, slow = sampled([("xm-6", 1), ("xm-2", 2)])
    assert (quick.values, list(quick.marks)) == (("xm-6", 1), [])
    assert (slow.values, [mark.name for mark in slow.marks]) == (("xm-2", 2), ["slow"])
