"""Timing attacks with the CPU seconds of the real work on the real schedule.

`python -m benchmarks.timing_attacks` runs the same with 1,000 trials a side and writes results/timing.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.timing_attacks import (
    AIMS,
    ATTACKS,
    CASES,
    MACHINE,
    Asked,
    Mends,
    aimed,
    attacked,
    class_of,
    class_of_nobody,
    guesses,
    interval,
    learned,
    of_answers,
    of_machine,
    people,
    simulate,
    trial,
)
from tests.conftest import amount

# with fewer questions or trials what is unprotected would not be told from chance each time
TRIALS, QUESTIONS = 100, amount(40, 50)


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    assert interval(10, 20, 0.05) == pytest.approx((0.272, 0.728), abs=1e-3)
    assert interval(0, 20, 0.05)[0] == 0.0


def asked(cpu: float, computing_cost: float, count: int = 5) -> list[Asked]:
    return [Asked(0.0, "eve", {True: computing_cost, False: computing_cost / 20}, cpu) for _ in range(count)]


def left(asked: list[Asked], mends: Mends) -> tuple[list[float], float, int]:
    """When the answers leave, how long the worker was busy, and how many slots were missed."""
    asked = [replace(one) for one in asked]
    busy, missed = simulate(asked, mends)
    return [one.left for one in asked], busy, missed


def test_work_within_its_effort_does_not_show() -> None:
    quick, slow = (left(asked(cpu, 0.02), Mends()) for cpu in (0.001, 0.019))
    assert quick[0] == slow[0]
    assert quick[2] == slow[2] == 0
    # the busy time is what an instrument for the load of the machine would see
    assert quick[1] < slow[1]


def test_an_overrun_schedule_shows_the_work_and_less_of_it_on_the_coarse_grid() -> None:
    cases = {grid: Mends(bounded=False, coarse=grid) for grid in (True, False)}
    works = [0.03 + 0.01 * step for step in range(30)]
    seen = {grid: {left(asked(cpu, 0.04), mends)[0][-1] for cpu in works} for grid, mends in cases.items()}
    assert 1 < len(seen[True]) < len(seen[False])
    assert left(asked(0.3, 0.04), cases[True])[2] > 0


def test_the_analysts_whole_queue_waits_with_a_late_answer() -> None:
    one, *rest = asked(0.001, 0.02)
    late = [replace(one, cpu=1.0), *rest]
    gone, _, missed = left(late, Mends())
    assert missed >= 1
    assert min(gone) >= gone[0] > 1.0
    fine, _, _ = left(late, Mends(coarse=False))
    assert max(fine) - min(fine) < 0.5


def test_a_rule_is_learned_in_practice_and_judged_on_other_trials() -> None:
    pick = np.random.default_rng(3)
    sides = [True, False] * 200

    def found(shift: float) -> list[tuple[bool, tuple[float, ...]]]:
        # two things are seen, and only their difference tells
        both = pick.normal(size=len(sides)) * 10
        own = pick.normal(size=len(sides)) + shift * np.array(sides)
        return [
            (side, (one, one + two))
            for side, one, two in zip(sides, both.tolist(), own.tolist(), strict=True)
        ]

    right, of = guesses(found(5.0), 100)
    assert of == 200
    assert right > 190
    right, of = guesses(found(0.0), 100)
    assert interval(right, of, 1e-4)[0] <= 0.5 <= interval(right, of, 1e-4)[1]


def test_what_is_seen_alike_on_both_sides_tells_nothing() -> None:
    # what differs is rounding only
    alike = [(side, (1.0, 2.0 + 1e-13 * side)) for side in (True, False) * 50]
    rule = learned(alike)
    assert (rule.share, rule.apart) == (0.5, 0.0)
    assert guesses(alike, 25)[0] == 25


def test_an_attacker_who_aims_at_the_coarse_grid_sees_across_a_border_of_it() -> None:
    mends = Mends(even=False, bounded=False)

    def last(aim: int, cpu: float) -> float:
        before = [Asked(0.0, "eve", {False: 0.001}, 0.07, "long") for _ in range(20)]
        return left(
            aimed([*before, *(replace(one, part="target") for one in asked(cpu, 0.02))], (aim, 0)), mends
        )[0][-1]

    told = [aim for aim in range(3, 17) if last(aim, 0.02) != last(aim, 0.03)]
    assert 0 < len(told) < 7


def test_who_is_not_in_the_data_is_no_target() -> None:
    row, _ = people().only_row("person_id", "nobody")
    income = people().facts.lattice("income")
    value = income.lo + int(people().positions["income"][row]) * income.step
    assert class_of_nobody() == class_of(int(value))


def test_a_trial_asks_both_sides_the_same_but_for_one_question() -> None:
    attack = ATTACKS["vernier of free questions"]
    for inside in (True, False):
        all_asked = trial(attack, inside, 3)
        asked = aimed(all_asked, (4, 1))
        assert len(asked) == 4 + 1 + 2 * attack.markers + 3
        assert len(aimed(all_asked, AIMS[-1])) == len(all_asked)
        assert sum(one.part == "target" for one in asked) == 3
        simulate(asked, Mends())
        assert len(of_answers(asked)) == 6
        assert all(value > 0 for value in of_machine(asked))


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("name", ATTACKS)
def test_time_tells_nothing_as_shipped_and_nearly_everything_without_protection(name: str) -> None:
    found = attacked(name, TRIALS, TRIALS, QUESTIONS)
    said = {case: result.words for case, result in found.items()}
    assert set(found) == {*CASES, *MACHINE}
    # one attack in a thousand fails by chance
    for case in ("shipped", "shipped, the machine"):
        low, high = interval(found[case].right, found[case].of, 0.001)
        assert low <= 0.5 <= high, said
    assert found["shipped"].late == found["uneven work"].late == 0, said
    # the machine shows uneven work however answers leave; the answers show it where no time fits and no grid is coarse
    assert interval(found["uneven work, the machine"].right, 2 * TRIALS)[0] > 0.5, said
    assert interval(found["all off"].right, 2 * TRIALS)[0] > 0.5, said
    assert found["all off"].late > 0, said
