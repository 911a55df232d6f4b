"""Losses and interval disclosure as the offices' reference tool measured them on Census."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import shoal
from shoal import InputError, OptionError
from shoal.evaluation.measures import cell_loss, interval_disclosure, variable_loss
from shoal.evaluation.pair import Ordered, columns_of, make_pair
from shoal.partition import mdav

from .office_figures import census_numbers, figures, people

NAMES = {
    "dRisk": ("risk", "drisk"),
    "IL1s": ("utility", "il1s"),
    "IL1": ("utility", "il1"),
    "eigen": ("utility", "eigen"),
    "IL_correl": ("utility", "il_correl"),
    "IL_variables": ("utility", "il_variables"),
}


def microaggregated(x: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    found = mdav((x - x.mean(axis=0)) / x.std(axis=0), k)
    return found.centroids(x)[found.labels]


def masked(x: NDArray[np.float64], stratum: NDArray[np.int64], how: str) -> NDArray[np.float64]:
    if how == "round1000":
        return 1000 * np.floor(x / 1000)
    if how == "times1.1":
        return 1.1 * x
    if how == "with_missing":
        places = np.add.outer(np.arange(1, len(x) + 1), np.arange(1, x.shape[1] + 1))
        return np.where(places % 10 == 0, np.nan, x)
    if how == "mdav3_strata":
        y = np.empty_like(x)
        for part in np.unique(stratum):
            y[stratum == part] = microaggregated(x[stratum == part], 3)
        return y
    return microaggregated(x, int(how.removeprefix("mdav")))


@pytest.mark.parametrize("columns", ["V", "V6"])
@pytest.mark.parametrize(
    "how", ["mdav3", "mdav5", "mdav10", "mdav3_strata", "round1000", "times1.1", "with_missing"]
)
def test_measures_are_those_that_are_stored(columns: str, how: str) -> None:
    stored = figures("results_utility")[f"{columns}_{how}"]
    names = tuple(figures("results_utility")[f"{columns}_mdav3"]["vars"])
    x, stratum = census_numbers(names)
    y = masked(x, stratum, how)
    found = shoal.evaluate(frame(names, x), frame(names, y), same_order=True).to_dict()
    if "err" in stored:
        # two columns are collinear in the rows without a gap
        assert found["utility"]["il_correl"] is None
        return
    for theirs, (part, mine) in NAMES.items():
        assert found[part][mine] == pytest.approx(stored[theirs], rel=1e-9, abs=1e-12), theirs
    for width in (0.01, 0.1, 0.3):
        if f"dRisk_k{width}" in stored:
            assert interval_disclosure(x, y, width) == pytest.approx(stored[f"dRisk_k{width}"])


def frame(names: tuple[str, ...], values: NDArray[np.float64]) -> pa.Table:
    return pa.table(dict(zip(names, values.T, strict=True)))


def test_what_does_not_exist_is_none() -> None:
    x = pa.table({"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 6.0], "c": [1.0, 1.0, 1.0]})
    found = shoal.evaluate(x, x, same_order=True, columns=["a", "b"]).to_dict()["utility"]
    assert (found["eigen"], found["il_correl"], found["il1s"]) == (None, None, 0.0)
    constant = shoal.evaluate(x, x, same_order=True, columns=["c"]).to_dict()["utility"]
    assert (constant["eigen"], constant["il_correl"], constant["il1s"], constant["il1"]) == (
        None,
        None,
        None,
        0,
    )
    apart = shoal.evaluate(x, x, columns=["a"])
    assert (apart.risk["drisk"], apart.utility["il1s"], apart.utility["il_variables"]) == (None, None, None)
    assert apart.utility["eigen"] == 0.0


def test_loss_of_names_places_and_gaps() -> None:
    before = pa.table({"name": ["a", "b", None, None], "number": [0.0, 1.0, 3.0, None]})
    after = pa.table({"name": ["a", "c", "a", None], "number": [0.0, None, 4.0, None]})
    columns = columns_of(make_pair(before, after, same_order=True), ["name", "number"])
    gone = 2 / np.pi * np.arctan(3.0)
    assert variable_loss(columns) == pytest.approx((0 + 1 + 1 + 0 + 0 + gone + 0.5 + 0) / 8)
    places = Ordered(
        "size", "ordinal", *(np.array(v) for v in ([0.0, 2.0, 4.0], [4.0, 1.0, np.nan])), np.empty(0), (0, 4)
    )
    assert cell_loss(places).tolist() == [1.0, 0.25, 1.0]


def test_tables_in_the_same_order_must_have_as_many_rows() -> None:
    one, two = pa.table({"a": [1.0, 2.0]}), pa.table({"a": [1.0]})
    with pytest.raises(InputError, match="original has 2 rows, the released table 1"):
        shoal.evaluate(one, two, same_order=True)
    release = shoal.protect(
        one, method="ranking-dp", epsilon=1, k=1, columns=["a"], domains={"a": (0, 5)}, seed=1
    )
    with pytest.raises(OptionError, match="same_order applies to two plain tables"):
        shoal.evaluate(one, release, same_order=True)


def test_loss_of_mixed_columns_is_the_stored_one() -> None:
    """Names of which some are gone, an order moved by a place, and numbers by one."""
    stored = figures("results_numeric")["gowerIL_variables_mixed"]
    table = people("a5")
    row = np.arange(5000)
    names = [str(value) for value in table["workclass"].to_pylist()]
    places, hours = (
        table["age_band"].to_numpy().astype(float),
        table["hours_per_week"].to_numpy().astype(float),
    )
    before = {"f": names, "o": places, "h": hours}
    after = {
        "f": [None if place % 10 == 0 else name for place, name in zip(row, names, strict=True)],
        "o": np.where(row % 5 == 0, np.minimum(places + 1, 9), places),
        "h": hours + (row % 7 == 0),
    }
    columns = {
        one.name: one
        for one in columns_of(make_pair(pa.table(before), pa.table(after), same_order=True), list("fh"))
    }
    columns["o"] = Ordered("o", "ordinal", before["o"], after["o"], np.empty(0), (1, 9))
    for name, loss in stored["per_variable"].items():
        assert cell_loss(columns[name]).mean() == pytest.approx(loss)
    assert variable_loss(list(columns.values())) == pytest.approx(stored["total"])
