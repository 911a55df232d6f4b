"""One table of each paper is recomputed with every run of the tests; `make test-papers` recomputes the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from papers import PAPERS, Number
from papers.cluster_errors import expected
from papers.cross_moment.measure import EPSILONS, SETS, expected_plain_noise, matrix
from papers.cross_moment.printed import TABLE_1
from papers.idp.releases import without_noise
from papers.idp.settings import CENSUS
from papers.mdai2017 import facts
from papers.mdai2017.printed import EIA_11, REFERENCE_LOSS
from papers.psd2014.curves import logarithm, setting
from papers.psd2014.printed import ALONE
from papers.texts import rows
from papers.thesis.chapter6_print import TABLE_6_1
from shoal.noise import Staircase
from shoal.partition import mdav
from tests.conftest import data_file


def mdai2017() -> list[Number]:
    """100·SSE/SST of MDAV, which the literature compares implementations by."""
    columns = {"census.csv": facts.read_table(data_file("census.csv")).column_names, "eia.csv": EIA_11}
    return [
        Number(file, f"k = {k}", text, facts.information_loss(data_file(file), columns[file], k))
        for (file, k), text in REFERENCE_LOSS.items()
    ]


def psd2014() -> list[Number]:
    """Figure 1: individual ranking alone."""
    file = data_file("adult.csv")
    return [
        Number("Figure 1", f"k = {k}", text, logarithm(expected(one)["sse_alone"]))
        for (k, remainder), text in ALONE.items()
        for one in [setting(file, "ranking-dp", epsilon="1", k=k, remainder=remainder)]
    ]


def idp() -> list[Number]:
    """Clusters of three on Census, and those of them that get no noise."""
    without, clusters = without_noise(str(data_file("census.csv")), CENSUS.name, 3)
    printed = rows("idp/texts")["numbers"]
    found = {"k-3-clusters-all": clusters, "k-3-clusters-idp": without}
    return [Number("clusters", key, printed[key]["printed"], value) for key, value in found.items()]


def cross_moment() -> list[Number]:
    """Table 1, Census: plain noise in closed form."""
    return [
        Number("Table 1", f"{data}, ε = {epsilon}", text, found, error=0.003)
        for data, line in TABLE_1.items()
        if data.startswith("Census")
        for epsilon, text in zip(EPSILONS, line, strict=True)
        for found in [
            float(
                np.log2(expected_plain_noise(matrix(data_file(SETS[data].file), SETS[data].columns), epsilon))
            )
        ]
    ]


def thesis() -> list[Number]:
    """Table 4.1, and the column of Table 6.1 without noise."""
    printed = rows("thesis/chapter4-printed")["table_4_1"]["least"]
    values = facts.matrix(data_file("census.csv"))
    scaled = values / facts.widths(values)
    return [
        *(
            Number("Table 4.1", f"ε = {epsilon}", text, Staircase.best(1.0, epsilon).variance)
            for epsilon, text in zip((0.1, 0.5, 1.0), printed, strict=True)
        ),
        *(
            Number("Table 6.1", f"k = {k}", line.split()[0], facts.squared_error(mdav(scaled, k), values))
            for k, line in TABLE_6_1.items()
        ),
    ]


TABLES = {
    "mdai2017": (mdai2017, 8),
    "psd2014": (psd2014, 5),
    "idp": (idp, 2),
    "cross-moment": (cross_moment, 18),
    "thesis": (thesis, 7),
}


@pytest.mark.parametrize("paper", TABLES)
def test_a_table_of_the_paper_comes_out_as_printed(paper: str) -> None:
    table, numbers = TABLES[paper]
    found = table()
    assert len(found) == numbers
    assert [(number.what, number.found) for number in found if number.verdict == "differs"] == []


def test_every_paper_has_one_here() -> None:
    assert list(TABLES) == list(PAPERS)
    assert Path(__file__).stem == "test_one_table", "conftest.py knows this file by its name"
