"""The cross-moment paper, recomputed: numbers that must come out, and verdicts that must follow what is measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import shoal
from papers import Desk, Number, Section, Study
from papers.cross_moment import (
    closing,
    coefficients,
    crossings,
    effort,
    eigen,
    plain,
    quoted,
    ranking,
    remarks,
    rows,
    small_worlds,
    study,
    theory,
)
from papers.cross_moment import curves as curve_module
from papers.cross_moment.curves import Curves
from papers.cross_moment.measure import (
    SETS,
    Cell,
    cell,
    log_errors,
    matrix,
    overtakes,
)
from papers.cross_moment.printed import K_MIN
from shoal.mechanisms.moments.sampling import variance_caps
from shoal.mechanisms.registry import names
from tests.conftest import data_file

from .quick import only

Floats = NDArray[np.float64]
# what the paper claims, by section of the page: see the text of the paper, statement by statement
CLAIMS = {
    "Table 1: plain Laplace noise": 4,
    "The example of the text: more privacy and less error": 1,
    "Coefficients and MDAV (Figures 7 to 10)": 19,
    "Covariances, with whole rows matched": 3,
    "From which k moments pay off (k_min, Figure 11)": 6,
    "Individual ranking (Figures 12 and 13)": 8,
    "The eigen form (Figure 14)": 8,
    "Sensitivities and algorithms (section 4)": 18,
    "What else the text says": 22,
    "Abstract, contributions and conclusions": 6,
}


def data_folder() -> Path:
    data_file("eia.csv")
    return data_file("census.csv").parent


def census(number: int) -> tuple[Path, tuple[str, ...]]:
    return data_file("census.csv"), SETS[f"Census {number}"].columns


# ------------------------------------------------------------------ the whole study, with little effort


@pytest.fixture(scope="module")
def small_study() -> Study:
    """Every section on real data, two sizes and one run each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curve_module, "_QUICK_SIZES", {"Census": (200, 500), "EIA": (200, 1200)})
        patch.setattr(curve_module, "_QUICK_EPSILONS", (1.0, 2.0))
        patch.setattr(curve_module, "_QUICK_RUNS", 1)
        patch.setattr(plain, "_QUICK_RUNS", 4)
        patch.setattr(quoted, "_QUICK_RUNS", {"rank": 10, "none": 5, "assignment": 1})
        patch.setattr(rows, "_QUICK_MASKED", {"Census 2": (200,), "EIA 2": (200,)})
        patch.setattr(rows, "_QUICK_RUNS", 2)
        patch.setattr(remarks, "_QUICK_RUNS", 1)
        patch.setattr(effort, "_QUICK_ROWS", 1_000)
        patch.setattr(effort, "_ROUNDS", 1)
        return study(Desk(data_folder(), quick=True))


def numbers(found: Study, where: str) -> list[Number]:
    return [number for number in found.numbers if number.where.startswith(where)]


def test_numbers_that_need_no_drawing_are_equal_to_print(small_study: Study) -> None:
    exact = [
        *numbers(small_study, "prototype, Table 1"),
        *numbers(small_study, "Figure 6"),
        *numbers(small_study, "prototype, EIA"),
        *numbers(small_study, "prototype, section 4"),
        *(number for number in small_study.numbers if number.what.startswith("B1, ")),
    ]
    assert len(exact) == 12 + 4 + 2 + 9 + 2
    assert [number.verdict for number in exact] == ["equal"] * len(exact)


def test_table_1_has_all_its_numbers_with_errors(small_study: Study) -> None:
    found = numbers(small_study, "Table 1")
    assert len(found) == 36
    assert all(0 < number.error < 0.1 for number in found)
    # four runs are enough to see a wrong scale, which is off by 2 for a factor of two
    assert all(abs(number.difference) < 0.35 for number in found)


def test_every_printed_size_has_a_row(small_study: Study) -> None:
    assert len(K_MIN) == 22
    found = [n for n in small_study.numbers if ", method " in n.what and " against " in n.what]
    assert [number.printed for number in found] == [*(one.printed for one in K_MIN), "270", "160"]


def test_reasons_are_whole_sentences(small_study: Study) -> None:
    """A reason of several pieces that loses one ends in the middle."""
    assert [n.why for n in small_study.numbers if n.why.count("(") != n.why.count(")")] == []


def test_every_difference_is_explained(small_study: Study) -> None:
    unexplained = [n for n in small_study.numbers if n.verdict == "differs" and not n.why]
    # with one run and two sizes the example and the prototype's sizes may miss print by chance
    assert {number.where for number in unexplained} <= {"section 5.5", "prototype, Census 2"}


def test_every_statement_has_a_verdict(small_study: Study) -> None:
    counted = {section.title: len(section.claims) for section in small_study.sections if section.claims}
    assert counted == CLAIMS
    assert all(claim.said and claim.found for claim in small_study.claims)
    assert len({claim.said for claim in small_study.claims}) == len(small_study.claims)


def test_tables_of_methods_and_speed_are_there(small_study: Study) -> None:
    sections = {section.title: section for section in small_study.sections}
    table = sections["All 34 methods"].more
    for name in [f"xm-{number}" for number in range(1, 27)] + [f"xm-b{number}" for number in range(1, 9)]:
        assert f"| `{name}` |" in table
    for name in ("xm-2", "xm-3", "xm-8", "xm-14"):
        assert sections["Speed"].more.count(f"| `{name}` |") == 2
    assert [figure.name for figure in small_study.figures] == [
        f"figure-{number}" for number in (7, 8, 9, 10, 11, 12, 13, 14)
    ]
    assert len(small_study.series[0].rows) > 400


def test_errata_point_to_tests_that_exist(small_study: Study) -> None:
    root = Path(__file__).parents[2]
    texts = [one.shown for one in small_study.errata] + [claim.found for claim in small_study.claims]
    files = {
        word.strip("`(),;:").partition("#")[0]
        for text in texts
        for word in text.split()
        if word.strip("`(").startswith(("tests/", "docs/"))
    }
    assert len(files) >= 6
    assert all((root / name).exists() for name in files), files
    assert len(small_study.errata) == 20


# ------------------------------------------------------------------ numbers


def test_the_baseline_of_the_example() -> None:
    """B1 on Census 2, k = 100: printed as approximately 35.4."""
    (found,) = log_errors(data_file("census.csv"), Cell("Census 2", "xm-b1", 100, None, "none"), 1)
    assert found == pytest.approx(35.41, abs=0.005)


def test_method_6_at_k_390() -> None:
    """Printed 34.9; the median of 120 runs, rows matched by rank. With half of the budget it is far off."""
    file = data_file("census.csv")
    assert 34.7 <= np.median(log_errors(file, Cell("Census 2", "xm-6", 390, 2.0), 120)) <= 35.1
    assert np.median(log_errors(file, Cell("Census 2", "xm-6", 390, 1.0), 30)) > 35.3


@pytest.mark.slow
def test_method_6_at_k_390_by_assignment() -> None:
    found = np.median(
        log_errors(data_file("census.csv"), Cell("Census 2", "xm-6", 390, 2.0, "assignment"), 80)
    )
    assert 34.7 <= found <= 35.1, f"median {found:.3f}"


@pytest.mark.parametrize(("one", "other"), [("xm-3", "xm-6"), ("xm-21", "xm-22")])
def test_methods_that_are_one_give_the_same_rows(one: str, other: str) -> None:
    file = data_file("census.csv")
    found = [log_errors(file, cell("Census 4", name, 200, 1.0), 3) for name in (one, other)]
    assert found[0] == found[1]
    assert found[0] != log_errors(file, cell("Census 4", "xm-23", 200, 1.0), 3)


def test_runs_with_held_clusters_are_runs_of_protect() -> None:
    file, columns = census(2)
    release = shoal.protect(
        file, method="xm-6", columns=columns, domain_from_data=1.5, seed=0, k=390, epsilon=2, match="rank"
    )
    drawn = np.stack([release.aligned[name].to_numpy() for name in columns], axis=1)
    own = np.log2(((matrix(file, columns) - drawn) ** 2).sum())
    assert own == pytest.approx(log_errors(file, Cell("Census 2", "xm-6", 390, 2.0), 1)[0], abs=1e-6)


def test_seeds_go_on_where_they_should() -> None:
    file, one = data_file("census.csv"), Cell("Census 2", "xm-6", 390, 2.0)
    assert log_errors(file, one, 4)[2:] == log_errors(file, one, 2, first=2)


@pytest.mark.parametrize(("epsilon", "before", "after"), [(1.0, 200, 350), (2.0, 110, 220)])
def test_order_1_overtakes_order_0_about_where_printed(epsilon: float, before: int, after: int) -> None:
    """Census 2: printed from k = 283 (ε = 1) and 167 (ε = 2) on."""
    file = data_file("census.csv")
    medians = {
        (method, k): np.median(log_errors(file, cell("Census 2", method, k, epsilon), 40))
        for method in ("xm-1", "xm-3")
        for k in (before, after)
    }
    assert medians["xm-3", before] > medians["xm-1", before]
    assert medians["xm-3", after] < medians["xm-1", after]


# ------------------------------------------------------------------ verdicts follow the curves


def made_up(value: Callable[[Cell], float]) -> Curves:
    """All points of the quick run with made-up errors."""
    desk = Desk(Path(), quick=True)
    found = {
        f"{one.key}, runs={runs}": [value(one)] * runs for one, runs in curve_module.wanted(desk).items()
    }
    return curve_module.curves_of(desk, found)


def closing_section(found: Curves) -> Section:
    """With releases as drawn in which moments help, which they do not in truth."""
    drawn = {name: (36.0 if name == "xm-1" else 35.0, 35.0, "none") for name in names()}
    return closing.section(found, drawn)


# how far above the best of its kind a method is in print; methods 8 to 13, 14 to 19 and 23 to 26
_ABOVE = {2: 0.5, 4: 0.8, 5: 1.2, 7: 0.6, 8: 1.2, 9: 1.0, 10: 1.4, 11: 1.6, 12: 0.9, 13: 1.5}
_EIGEN = {14: 6.0, 15: 2.0, 16: 2.3, 17: 6.5, 18: 2.4, 19: 2.6}
_RANKED = {21: 0.0, 23: 0.7, 24: 1.2, 25: 1.3, 26: 1.5}


def as_printed(one: Cell) -> float:
    """Errors of which nearly everything is true that the paper says of its figures."""
    number = one.method.removeprefix("xm-")
    columns, eia = int(one.data[-1]), one.data.startswith("EIA")
    level = (44.0 if eia else 36.0) + columns / 10
    place = np.log2(one.k / (800 if eia else 250))
    if one.epsilon is None:
        return level - 2 + 0.3 * place
    if number in ("1", "20"):
        return level - 2 + 0.3 * place + 0.01 if number == "1" else level
    if int(number) in _EIGEN:
        return level + _EIGEN[int(number)] * columns - 0.2 * place
    slope = 1.2 if eia else 1.6
    base = level - 2.6 + columns / 20 - slope * place - (one.epsilon - 1) * 0.4
    if int(number) in _RANKED:
        return base + _RANKED[int(number)] + 2
    return base + _ABOVE.get(int(number), 0.0) * columns / 2


@cache
def printed_curves() -> Curves:
    return made_up(as_printed)


def verdicts(section: Section) -> dict[str, str]:
    return {claim.said: claim.verdict for claim in section.claims}


@pytest.mark.parametrize(
    ("section", "words", "method", "change"),
    [
        (coefficients.section, "ε = 1: methods 3 and 6 are the best", "xm-2", -9.0),
        (coefficients.section, "ε = 2: methods 3 and 6 are the best", "xm-4", -9.0),
        (coefficients.section, "without noise the error grows", "xm-b1", None),
        (coefficients.section, "the error of every method falls", "xm-9", None),
        (coefficients.section, "the noise costs nothing", "xm-1", 3.0),
        (coefficients.section, "the best methods for m = 1 beat those for m = 2", "xm-13", -9.0),
        (coefficients.section, "Census: method 12", "xm-9", -2.0),
        (coefficients.section, "EIA: method 12", "xm-9", -2.0),
        (coefficients.section, "no method with coskewness", "xm-8", -9.0),
        (coefficients.section, "EIA 3 and EIA 4, ε = 1: method 3", "xm-7", -9.0),
        (coefficients.section, "what was seen on EIA at ε = 1 is true of ε = 2", "xm-7", -9.0),
        (coefficients.section, "in all other cases m = 1", "xm-8", -9.0),
        (coefficients.section, "variances only gain on those", "xm-5", None),
        (crossings.section, "there is a size from which moments", "xm-3", 9.0),
        (eigen.section, "method 1 causes less distortion", "xm-15", -9.0),
        (eigen.section, "method 15", "xm-18", -9.0),
        (eigen.section, "separately are much better", "xm-14", -40.0),
        (eigen.section, "give the worst results of all", "xm-5", 40.0),
        (eigen.section, "strategy 1, which gives more", "xm-16", -9.0),
        (eigen.section, "coefficients cost substantially less", "xm-15", -40.0),
        (eigen.section, "the gap between method 1 and the eigen methods", "xm-19", None),
        (ranking.section, "mean and variance are clearly better", "xm-26", -9.0),
        (closing_section, "for medium to large clusters", "xm-1", -9.0),
    ],
)
def test_another_measurement_would_change_the_verdict(
    section: Callable[[Curves], Section], words: str, method: str, change: float | None
) -> None:
    def changed(one: Cell) -> float:
        if one.method != method:
            return as_printed(one)
        # None: the curve is turned around
        return 50 - as_printed(one) if change is None else as_printed(one) + change

    assert only(section(printed_curves()).claims, words).verdict == "holds"
    assert only(section(made_up(changed)).claims, words).verdict != "holds"


def test_sizes_are_those_of_the_curves() -> None:
    """Straight lines that cross at k = 640 for EIA 2, a curve that never crosses, and one that always did."""

    def value(one: Cell) -> float:
        if one.method == "xm-3":
            return 40 - 0.01 * (one.k - 640)
        return 40.0

    found = made_up(value)
    assert found.k_min("EIA 2", "xm-3", 1.0) == pytest.approx(640)
    assert found.k_min_error("EIA 2", "xm-3", 1.0) == pytest.approx(0, abs=1e-9)
    assert np.isinf(found.k_min("EIA 2", "xm-2", 1.0))
    assert overtakes([1, 2], np.array([5.0, 5.0]), np.array([4.0, 4.0])) == 1
    numbers = crossings.section(found).numbers
    assert {n.verdict for n in numbers if "method 12" in n.what} == {"differs"}
    assert all("never up to k = " in n.why for n in numbers if "method 12" in n.what)


def test_resampling_sees_how_uncertain_a_size_is() -> None:
    rng = np.random.default_rng(1)
    found = made_up(as_printed)
    noisy = {one: runs + rng.normal(0, 0.3, 5) for one, runs in found.found.items()}
    uncertain = Curves(found.sizes, found.epsilons, found.runs, noisy)
    assert found.k_min_error("Census 2", "xm-3", 1.0) == pytest.approx(0, abs=1e-9)
    assert uncertain.k_min_error("Census 2", "xm-3", 1.0) > 1


# ------------------------------------------------------------------ propositions


def test_propositions_hold_and_fail_where_the_page_says() -> None:
    section = theory.section()
    found = {
        claim.where: claim.verdict
        for claim in section.claims
        if claim.where.startswith(("Prop", "Lemma", "Th"))
    }
    assert found == {
        "Proposition 5": "holds",
        "Proposition 6": "holds",
        "Lemma 7": "holds",
        "Proposition 8": "holds partly",
        "Theorem 11 (i)": "holds partly",
        "Proposition 9, eigenvalues": "holds",
        "Proposition 9, eigenvectors": "fails",
        "Proposition 10, eigenvalues": "holds partly",
        "Proposition 10, eigenvectors": "fails",
        "Theorem 11 (ii)": "fails",
    }
    assert only(section.claims, "a cluster needs r").verdict == "holds"


def test_the_largest_changes_of_small_worlds() -> None:
    assert small_worlds.largest_entry(3, 2) == pytest.approx(2 / 3)
    assert small_worlds.largest_entry(5, 1) == pytest.approx(1 / 5)
    assert small_worlds.largest_entry(7, 0) == pytest.approx(1 / 7)
    assert [small_worlds.largest_variance(size) for size in range(2, 9)] == pytest.approx(
        variance_caps(np.arange(2, 9)).tolist()
    )
    assert small_worlds.largest_joint(3, 2, 2) > 9 / 3 + 0.3
    ratios = small_worlds.eigenvector_ratios()
    assert ratios.pop("corrected bound") <= 1
    assert min(ratios.values()) > 1.3


def test_with_corrected_bounds_the_theory_would_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdicts are computed: other bounds, other verdicts."""
    from shoal.mechanisms.moments.statistics import coskewness_change

    monkeypatch.setattr(theory, "coskewness_change_as_printed", coskewness_change)
    monkeypatch.setattr(
        small_worlds, "eigenvector_changes_as_printed", lambda values, change: np.full(values.shape, 4.0)
    )
    found = {claim.where: claim.verdict for claim in theory.section().claims}
    assert found["Proposition 8"] == "holds"
    assert found["Proposition 9, eigenvectors"] == "holds"
