"""Scores of other people's judges: NIST's SDNist, and the quality score of SDMetrics, in an environment of their own.

.venv-judge/bin/python benchmarks/utility_judge.py JOBS.json OUT.json

JOBS.json lists {"records", "released": paths of Parquet files, "names": columns of names, "sdnist": whether the table
is one of NIST's}; OUT.json lists the scores in the same order. This file does not import Shoal, whose environment has
other versions of numpy and pandas.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

MISSING = "N"
AGE = "AGEP"


def sdmetrics_scores(records: Any, released: Any, names: list[str]) -> dict[str, float]:
    """The overall score of the quality report, 0 to 1."""
    from sdmetrics.reports.single_table import QualityReport

    kinds = {c: {"sdtype": "categorical" if c in names else "numerical"} for c in records}
    report = QualityReport()
    report.generate(records, released, {"columns": kinds}, verbose=False)
    return {"sdmetrics": float(report.get_score())}


def sdnist_scores(records: Any, released: Any) -> dict[str, float]:
    """k-marginal (0 to 1,000), mean Pearson difference, propensity and share of inconsistent rows, as SDNist has them.

    SDNist reports the matrix of differences; its mean is over all pairs of different columns. The share of inconsistent
    rows has those of age and of housing together.
    """
    import numpy as np

    # the package imports itself in a circle unless the report comes first
    import sdnist.report  # noqa: F401
    from sdnist.metrics.inconsistency import Inconsistencies
    from sdnist.metrics.kmarginal import KMarginal
    from sdnist.metrics.pearson_correlation import PearsonCorrelationDifference
    from sdnist.metrics.propensity import PropensityMSE
    from sdnist.report.dataset.binning import percentile_rank_synthetic, percentile_rank_target

    records, released = (table.apply(_whole_where_it_can_be) for table in (records, released))
    # transform() of SDNist, for columns of codes: what is missing is -1
    plain = [table.replace(MISSING, -1).astype(int) for table in (records, released)]
    binned = [table.copy() for table in plain]
    target = percentile_rank_target(records, [AGE])
    binned[0][AGE] = target[AGE]
    binned[1][AGE] = percentile_rank_synthetic(released, records, target, [AGE])[AGE]
    differences = PearsonCorrelationDifference(*plain)
    differences.compute()
    matrix = np.abs(np.nan_to_num(differences.pp_corr_diff.to_numpy()))
    with tempfile.TemporaryDirectory() as folder:
        propensity = PropensityMSE(*plain, Path(folder)).compute_score()
        checked = Inconsistencies(released, Path(folder))
        checked.compute()
    wrong = sum(found["Number of Records Inconsistent"] for found in checked.report_data["summary"])
    return {
        "k_marginal": float(KMarginal(*binned).compute_score()),
        "pearson": float(matrix.sum() / (matrix.size - len(matrix))),
        "propensity": float(propensity),
        "inconsistent": wrong / len(released),
    }


def _whole_where_it_can_be(column: Any) -> Any:
    return column if (column.astype(str) == MISSING).any() else column.astype(int)


def main() -> None:
    import pandas as pd

    warnings.filterwarnings("ignore")
    jobs, target = map(Path, sys.argv[1:])
    found = []
    for job in json.loads(jobs.read_text("utf-8")):
        records, released = (pd.read_parquet(job[side]) for side in ("records", "released"))
        scores = sdmetrics_scores(records, released, job["names"])
        if job["sdnist"]:
            scores |= sdnist_scores(records, released)
        found.append(scores)
    target.write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
