"""`shoal.risk` gives the figures that the offices' reference tool gave, and those of the definition where it errs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from office_figures import KEYS, figures, people, records

import shoal
from shoal.evaluation.disclosure.individual import approximate, exact
from shoal.evaluation.disclosure.keys import coded, patterns
from shoal.evaluation.disclosure.loglinear import main_effects, population_uniques
from shoal.io import read

# float32 inside the reference
DIS = 3e-7
LARGEST = -1


@pytest.mark.parametrize(
    "name",
    [
        *("a5_K4_w", "a5_K4_w10", "a5_K6_w", "a5_K6_w10", "a5n_KN_w"),
        pytest.param("a30_K6_w", marks=pytest.mark.slow),
        pytest.param("a30_K6_w10", marks=pytest.mark.slow),
    ],
)
def test_frequencies_individual_global_and_household_risk(name: str) -> None:
    table, keys, weight = name.split("_")
    stored = figures("results_risk")[f"freq_risk_{name}"]
    found = shoal.risk(people(table), KEYS[keys], weight=weight, household="hid", special=False)
    assert (found.uniques, found.pairs) == (stored["freq"]["n1"], stored["freq"]["n2"])
    assert (found.below(3), found.below(5)) == (stored["freq"]["fk_lt3"], stored["freq"]["fk_lt5"])
    assert found.fk[:50].tolist() == stored["freq"]["fk_first50"]
    assert found.Fk[:50] == pytest.approx(np.array(stored["freq"]["Fk_first50"]), rel=1e-12)
    assert found.individual[:50] == pytest.approx(np.array(stored["risk_first50"]), rel=1e-10)
    assert found.individual.max() == pytest.approx(
        stored["risk"]["quantiles_0_1_5_25_50_75_95_99_100"][LARGEST], rel=1e-10
    )
    assert found.household is not None
    assert found.household[:50] == pytest.approx(np.array(stored["hier"]["first50"]), rel=1e-9)
    assert found.fk.sum() == pytest.approx(stored["freq"]["fk"]["sum"], rel=1e-12)
    assert found.Fk.sum() == pytest.approx(stored["freq"]["Fk"]["sum"], rel=1e-12)
    assert found.expected == pytest.approx(stored["global"]["ER"], rel=1e-10)
    assert found.global_risk == pytest.approx(stored["global"]["risk"], rel=1e-10)
    assert found.household_expected == pytest.approx(stored["hier"]["ER"], rel=1e-10)
    assert found.household_risk == pytest.approx(stored["hier"]["risk"], rel=1e-10)
    threshold = stored["global"]["threshold_for_0.01"]
    assert found.threshold(0.01) == (None if threshold is None else pytest.approx(threshold, rel=1e-10))
    assert found.high == stored["n_high_risk_print_rule"]
    unweighted = shoal.risk(people(table), KEYS[keys], special=False)
    assert unweighted.expected == pytest.approx(stored["unweighted_ER"], rel=1e-10)
    assert (unweighted.Fk == unweighted.fk).all()


@pytest.mark.parametrize(("table", "keys"), [("a5", "K4"), ("a5n", "KN")])
def test_every_record(table: str, keys: str) -> None:
    stored = records(f"freq_risk_{table}_{keys}_w")
    found = shoal.risk(people(table), KEYS[keys], weight="w", household="hid", special=False)
    assert (found.fk == stored["fk"]).all()
    for mine, theirs in (
        (found.Fk, stored["Fk"]),
        (found.individual, stored["rk"]),
        (found.household, stored["hier"]),
    ):
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-10)


def test_threshold_for_every_tolerated_risk() -> None:
    found = shoal.risk(people("a5"), KEYS["K6"], weight="w10", special=False)
    for tolerated, stored in figures("results_risk")["threshold"].items():
        if tolerated == "seconds":
            continue
        threshold = found.threshold(float(tolerated))
        assert threshold == pytest.approx(stored["threshold"], rel=1e-12)
        assert threshold is not None
        # equal risks of different cells are equal up to rounding
        assert int((found.individual > threshold * (1 + 1e-12)).sum()) == stored["n_above"]


def test_closed_forms_and_exact_form_on_a_grid() -> None:
    grid = figures("results_risk")["risk_formula_grid"]["grid"]
    fk, Fk = (np.array([line[name] for line in grid], dtype=float) for name in ("fk", "Fk"))
    np.testing.assert_allclose(approximate(fk, Fk), [line["approx"] for line in grid], rtol=1e-10)
    # the alternating series of the reference fails from here on
    few = fk < 20
    np.testing.assert_allclose(
        exact(fk[few], Fk[few]),
        np.array([line["exact"] for line in grid], dtype=float)[few],
        rtol=1e-9,
    )


def test_exact_form_stays_inside_where_that_of_the_reference_does_not() -> None:
    stored = figures("results_risk")["freq_risk_a5_K6_w10"]["risk_exact"]
    assert stored["sum"] > 10_000
    found = shoal.risk(people("a5"), KEYS["K6"], weight="w10", form="exact", special=False)
    assert found.expected == pytest.approx(539.9566, abs=1e-4)
    assert ((found.individual > 0) & (found.individual <= 1)).all()


@pytest.mark.parametrize("name", ["a1_K4", "a1_K6", "a5_K4", "a5_K6", "a5n_KN"])
def test_special_uniques(name: str) -> None:
    sizes = {
        "a1_K4": (2, 16, 34, 13),
        "a1_K6": (2, 78, 378, 237, 53, 4),
        "a5_K4": (0, 17, 26, 24),
        "a5_K6": (1, 68, 558, 708, 272, 27),
        "a5n_KN": (1, 57, 514, 709, 238, 9),
    }
    table, keys = name.split("_")
    stored = figures("results_risk")[f"suda_{name}"]
    found = shoal.risk(people(table), KEYS[keys])
    assert found.special is not None
    assert found.special.sizes == sizes[name]
    assert int((found.special.scores > 0).sum()) == stored["n_msu_records"]
    assert found.special.scores.sum() == stored["score"]["sum"]
    assert found.special.dis.sum() == pytest.approx(stored["dis"]["sum"], rel=DIS)
    shares = {line["variable"]: line["contribution"] for line in stored["attribute"]}
    assert found.key_contributions() == pytest.approx(shares, rel=1e-9)
    if "level" in stored:
        levels: dict[str, dict[Any, float]] = {}
        for line in stored["level"]:
            levels.setdefault(line["variable"], {})[line["attribute"]] = line["contribution"]
        assert {
            key: pytest.approx(own, abs=1e-9) for key, own in levels.items()
        } == found.level_contributions()


def test_special_uniques_of_every_record() -> None:
    stored = records("suda_a5_K6")
    found = shoal.risk(people("a5"), KEYS["K6"]).special
    ihsn = shoal.risk(people("a5"), KEYS["K6"], points="ihsn").special
    tenth = shoal.risk(people("a5"), KEYS["K6"], fraction=0.1).special
    assert found is not None
    assert ihsn is not None
    assert tenth is not None
    assert (found.scores == stored["score"]).all()
    np.testing.assert_allclose(ihsn.scores, stored["score_ihsn"], rtol=1e-12)
    for own, column in ((found, "dis"), (ihsn, "dis_ihsn"), (tenth, "dis_frac0.1")):
        np.testing.assert_allclose(own.dis, stored[column], rtol=1e-6)
    shares = np.column_stack([stored[f"{key}_contribution"] for key in KEYS["K6"]])
    np.testing.assert_allclose(found.contributions, shares, atol=1e-12)


def test_the_example_of_the_practice_guide() -> None:
    stored = figures("results_extra")["suda_practice_guide"]
    found = shoal.risk(pa.Table.from_pylist(stored["x"]), list(stored["x"][0]))
    assert found.suda is not None
    assert found.suda.tolist() == stored["score"] == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    np.testing.assert_allclose(np.asarray(found.dis), stored["dis"], rtol=DIS)


def test_diversity_without_missing_sensitive_values() -> None:
    stored = records("ldiv_a5_K4")
    found = shoal.risk(people("a5"), KEYS["K4"], sensitive=["occupation", "income"], special=False)
    for name, own in found.diversity.items():
        assert (own.distinct == stored[f"{name}_Distinct_Ldiversity"]).all()
        np.testing.assert_allclose(own.entropy, stored[f"{name}_Entropy_Ldiversity"], rtol=1e-12)
        assert (own.recursive == stored[f"{name}_Recursive_Ldiversity"]).all()
    strict = shoal.risk(people("a5"), KEYS["K4"], sensitive=["occupation"], special=False, c=1.0)
    assert (strict.diversity["occupation"].recursive == stored["occupation_recursive_c1"]).all()


def test_missing_sensitive_values_add_no_diversity_where_the_reference_counts_each() -> None:
    assert figures("results_extra")["ldiv_na_sensitive"]["s_1_NA_NA_NA"][:3] == [4, 4, 4]
    table = pa.table({"q": [1, 1, 1, 1], "s": pa.array([1, None, None, None])})
    own = shoal.risk(table, ["q"], sensitive=["s"]).diversity["s"]
    assert (own.distinct[0], own.entropy[0], own.recursive[0]) == (1, 1.0, 1)


@pytest.mark.parametrize("weight", ["w", "w10"])
def test_population_uniques_as_in_the_textbook(weight: str) -> None:
    stored = figures("own_loglinear_textbook_a5_K4")[weight]
    found = shoal.risk(people("a5"), KEYS["K4"], weight=weight, special=False).population
    assert found.sample_uniques == stored["sample_uniques"]
    assert found.tau1 == pytest.approx(stored["tau1_textbook"], rel=1e-9)
    assert found.tau2 == pytest.approx(stored["tau2_textbook"], rel=1e-9)
    columns = [coded(read(people("a5")), name) for name in KEYS["K4"]]
    cells = patterns([column.codes for column in columns])
    common = population_uniques(
        cells, [len(column.levels) for column in columns], fraction=stored["fraction"]
    )
    assert common.tau1 == pytest.approx(stored["tau1_common_fraction"], rel=1e-9)
    assert common.tau2 == pytest.approx(stored["tau2_common_fraction"], rel=1e-9)


def test_fitted_means_of_the_log_linear_model() -> None:
    stored = records("modRisk_cells_a5_K4")
    columns = [coded(read(people("a5")), name) for name in KEYS["K4"]]
    cells = patterns([column.codes for column in columns])
    fitted = {
        tuple(column.levels[code] for column, code in zip(columns, cell, strict=True)): mean
        for cell, mean in zip(cells.codes.T, main_effects(cells), strict=True)
    }
    theirs = zip(*(stored[name] for name in (*KEYS["K4"], "f", "mu_main")), strict=True)
    nonempty = {tuple(int(v) for v in line[:4]): line[5] for line in theirs if line[4] > 0}
    assert fitted == pytest.approx(nonempty, rel=1e-7)


def test_small_tables_of_frequencies_and_where_the_reference_forgets_records() -> None:
    """Complete records of the reference do not count records that miss every key, which fit them by its own rule."""
    differing = []
    for number, stored in enumerate(figures("fuzz_freq")):
        keys = [name for name in stored["x"] if name != "w"]
        found = shoal.risk(pa.table(stored["x"]), keys, weight="w", alpha=stored["alpha"])
        gaps = np.array([[value is None for value in stored["x"][name]] for name in keys])
        empty = gaps.all(axis=0)
        if len(keys) > 1 and empty.any() and stored["alpha"] > 0:
            differing.append(number)
            whole = ~gaps.any(axis=0)
            lost = stored["alpha"] * empty.sum()
            assert found.fk[whole] == pytest.approx(np.array(stored["fk"])[whole] + lost)
            if stored["alpha"] == 1:
                assert (found.fk[empty] == empty.size).all()
            continue
        assert found.fk == pytest.approx(np.array(stored["fk"]), rel=1e-12)
        assert found.Fk == pytest.approx(np.array(stored["Fk"]), rel=1e-12)
        # between 1 and 2 the reference has no formula and says 0
        between = (found.fk > 1) & (found.fk < 2)
        theirs = np.array(stored["rk"])
        assert found.individual[~between] == pytest.approx(theirs[~between], rel=1e-9)
        assert (theirs[between] == 0).all()
        assert (found.individual[between] > 0).all()
    # the first of them has no complete record
    assert differing == [7, 27, 28, 31, 40, 55]


def test_small_tables_of_special_uniques_and_where_the_reference_errs() -> None:
    """With two collinear keys the reference gives the points of both to one of them."""
    differing = 0
    for stored in figures("fuzz_suda"):
        found = shoal.risk(pa.table(stored["x"]), list(stored["x"]))
        assert found.suda is not None
        assert found.dis is not None
        assert found.contributions is not None
        assert found.suda.tolist() == pytest.approx(stored["score"])
        np.testing.assert_allclose(found.dis, stored["dis"], rtol=DIS)
        np.testing.assert_allclose(found.contributions, by_definition(stored["x"]), atol=1e-12)
        differing += not np.allclose(found.contributions, stored["contrib"])
    assert 0 < differing < 20


def by_definition(columns: dict[str, list[Any]]) -> Any:
    """Contributions from minimal sample uniques found by trying every set of keys."""
    from shoal.evaluation.disclosure.suda import minimal_uniques_one_by_one, scored

    codes = [coded(read(pa.table({"k": values})), "k").codes for values in columns.values()]
    found = patterns(codes)
    owner, sets = minimal_uniques_one_by_one(found)
    return scored(found, owner, sets, 0.01, "original").contributions
