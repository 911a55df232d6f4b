"""`shoal.risk` gives the figures that the offices' reference tool gave, and those of the definition where it errs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.evaluation.disclosure.record_risk import main_effects, population_uniques
from shoal.io import read
from shoal.partition.groups import approximate, coded, exact, patterns

from .office_figures import KEYS, figures, people, records

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


def test_small_tables_of_frequencies() -> None:
    empty = 0
    for stored in figures("fuzz_freq"):
        keys = [name for name in stored["x"] if name != "w"]
        found = shoal.risk(pa.table(stored["x"]), keys, weight="w", alpha=stored["alpha"])
        assert found.fk == pytest.approx(np.array(stored["fk"]), rel=1e-12)
        assert found.Fk == pytest.approx(np.array(stored["Fk"]), rel=1e-12)
        # between 1 and 2 the reference has no formula and says 0
        between = (found.fk > 1) & (found.fk < 2)
        theirs = np.array(stored["rk"])
        assert found.individual[~between] == pytest.approx(theirs[~between], rel=1e-9)
        assert (theirs[between] == 0).all()
        assert (found.individual[between] > 0).all()
        empty += any(all(stored["x"][key][row] is None for key in keys) for row in range(len(theirs)))
    # records without any key have a rule of their own, and are there
    assert empty > 5


def toy() -> pa.Table:
    rows = [
        (1, 1, 1, 10, 1, 1, 1),
        (1, 1, 1, 12, 1, 2, 1),
        (1, 1, 2, 1, 2, 1, 2),
        (1, 2, 2, 7, 2, 1, 1),
        (1, 2, 2, 9.5, 2, 3, 2),
        (2, 1, 1, 4, 3, 2, 2),
        (2, 1, None, 3, 3, 2, 1),
        (2, 2, 2, 20, 4, 1, 1),
        (2, None, 2, 8, 4, 3, 1),
        (None, 2, 2, 5, 5, 3, 2),
        (3, 3, 3, 6, 6, 1, 1),
        (3, 3, 3, 2, 6, None, 2),
    ]
    names = ("a", "b", "c", "w", "hid", "s1", "s2")
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})


@pytest.mark.parametrize("alpha", [1, 0.5, 0])
def test_the_toy_table(alpha: float) -> None:
    stored = figures("results_risk")["toy_freq_risk"]
    found = shoal.risk(toy(), ["a", "b", "c"], "w", "hid", alpha=alpha, sensitive=["s2"])
    theirs = stored[f"alpha_{alpha}"]
    assert found.fk.tolist() == theirs["fk"]
    assert found.Fk.tolist() == theirs["Fk"]
    risks = np.array(theirs["rk_approx"])
    # where the reference has no formula
    assert found.individual[risks > 0] == pytest.approx(risks[risks > 0])
    if alpha == 1:
        assert found.household == pytest.approx([one["hier_risk"] for one in stored["hier"]["fast"]])
        assert found.household_expected == pytest.approx(stored["hier"]["hier_risk_ER"])
        assert found.global_risk == pytest.approx(stored["hier"]["global_risk"])
    scores = figures("results_risk")["toy_suda"]["with_na"]
    assert found.special is not None
    assert found.special.scores.tolist() == scores["score"]
    assert found.special.dis == pytest.approx(np.array(scores["disScore"]), rel=DIS)
    assert found.special.contributions.tolist() == scores["contributionPercent"]
    diverse = figures("results_risk")["toy_ldiv"]["toy"]
    for name in ("distinct", "entropy", "recursive"):
        own = getattr(found.diversity["s2"], name).tolist()
        assert own == pytest.approx([one[f"s2_{name.title()}_Ldiversity"] for one in diverse])


def test_small_probes() -> None:
    stored = figures("results_extra")
    empty = pa.table({"a": [1, 2, None], "b": [1, 2, None], "w": [5, 7, 3]})
    found = shoal.risk(empty, ["a", "b"], weight="w")
    assert (found.fk.tolist(), found.Fk.tolist()) == (
        stored["allNA_asymmetry"]["fk"],
        stored["allNA_asymmetry"]["Fk"],
    )
    # in the order of the rows or not, by number or by text: households are the same
    table = people("a5")
    moved = (table["hid"].to_numpy() * 7919) % 2003
    for name, ids in (("hid_unsorted", moved), ("hid_character", table["hid"].to_numpy().astype(str))):
        again = table.set_column(table.column_names.index("hid"), "hid", pa.array(ids))
        own = shoal.risk(again, KEYS["K4"], "w10", "hid", special=False).household_expected
        assert own == pytest.approx(stored[name]["ER" if name == "hid_unsorted" else "factor"], rel=1e-10)
    # the reference cuts keys to whole numbers, and finds nothing
    cut = stored["suda_noninteger"]
    assert not any(cut["score"])
    suda = shoal.risk(pa.Table.from_pylist(cut["x"]), ["a", "b", "c"]).suda
    assert suda is not None
    assert suda.tolist() == [2.0, 2.0, 0.0, 0.0, 0.0]


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
    from shoal.evaluation.disclosure.record_risk import scored
    from tests.support.suda_oracle import minimal_uniques_one_by_one

    codes = [coded(read(pa.table({"k": values})), "k").codes for values in columns.values()]
    found = patterns(codes)
    owner, sets = minimal_uniques_one_by_one(found)
    return scored(found, owner, sets, 0.01, "original").contributions
