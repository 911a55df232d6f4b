"""What the time of an answer tells: attacks with the CPU seconds of the real work on the real schedule.

`python -m benchmarks.timing_attacks` runs the same with 1,000 trials a side and writes docs/timing.md.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.timing_attacks import ATTACKS, CASES, Asked, Mends, attacked, interval, simulate

TRIALS, QUESTIONS = 100, 20


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    assert interval(10, 20, 0.05) == pytest.approx((0.272, 0.728), abs=1e-3)
    assert interval(0, 20, 0.05)[0] == 0.0


def asked(cpu: float, effort: float, count: int = 5) -> list[Asked]:
    return [Asked(0.0, "eve", {True: effort, False: effort / 20}, cpu) for _ in range(count)]


def test_work_within_its_effort_does_not_show() -> None:
    quick, slow = (simulate(asked(cpu, 0.02), Mends()) for cpu in (0.001, 0.019))
    assert quick[0] == slow[0]
    assert quick[2] == slow[2] == 0
    # the busy time is what an instrument for the load of the machine would see
    assert quick[1] < slow[1]


def test_an_overrun_schedule_shows_the_work_and_less_of_it_on_the_coarse_grid() -> None:
    cases = {grid: Mends(bounded=False, coarse=grid) for grid in (True, False)}
    works = [0.03 + 0.01 * step for step in range(30)]
    seen = {
        grid: {simulate(asked(cpu, 0.04), mends)[0][-1] for cpu in works} for grid, mends in cases.items()
    }
    assert 1 < len(seen[True]) < len(seen[False])
    assert simulate(asked(0.3, 0.04), cases[True])[2] > 0


def test_the_analysts_whole_queue_waits_with_a_late_answer() -> None:
    one, *rest = asked(0.001, 0.02)
    late = [replace(one, cpu=1.0), *rest]
    left, _, missed = simulate(late, Mends())
    assert missed >= 1
    assert min(left) >= left[0] > 1.0
    fine, _, _ = simulate([replace(single) for single in late], Mends(coarse=False))
    assert max(fine) - min(fine) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_time_tells_nothing_as_shipped_and_nearly_everything_without_protection(name: str) -> None:
    found = attacked(name, TRIALS, QUESTIONS)
    said = {case: result.words for case, result in found.items()}
    # one attack in a thousand fails by chance
    low, high = interval(found["shipped"].right, found["shipped"].of, 0.001)
    assert low <= 0.5 <= high, said
    assert found["shipped"].late == 0, said
    assert found["uneven, unbounded, no grid"].accuracy > 0.9, said
    assert interval(found["uneven work"].right, found["uneven work"].of)[0] > 0.5, said
    assert set(found) == set(CASES)
