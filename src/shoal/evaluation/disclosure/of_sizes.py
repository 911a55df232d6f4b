"""The risk of a whole table from how large its groups are: sizes come in, the figures of `shoal.risk` leave.

Without weights a table is taken for the population, and a record's risk follows from the number of records with the
same keys alone. Special uniques are not among it: they need the keys themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shoal.evaluation.disclosure.figures import RiskFigures
from shoal.evaluation.disclosure.individual import FORMS, Form, endangered, risk_threshold
from shoal.evaluation.disclosure.keys import Codes
from shoal.evaluation.disclosure.result import TOLERATED


def figures_of_sizes(
    keys: Sequence[str],
    sizes: Codes,
    groups: Codes,
    diversity: Mapping[str, Mapping[str, float]],
    form: Form = "approximate",
    tolerated: float = TOLERATED,
) -> RiskFigures:
    """Figures of a table without weights whose missing keys are a value of their own.

    Args:
        sizes: the different sizes of groups of records with the same keys.
        groups: how many groups have each size.
        diversity: least distinct, entropy and recursive l of each sensitive column.

    >>> found = figures_of_sizes(["age"], np.array([1, 2]), np.array([2, 1]), {})
    >>> found.rows, found.uniques, found.expected
    (4, 2, 3.0)
    """
    records = sizes * groups
    exact = sizes.astype(np.float64)
    risks = FORMS[form](exact, exact)
    rows, uniques = int(records.sum()), int(groups[sizes == 1].sum())
    expected = float(np.sum(risks * records))
    return RiskFigures(
        rows=rows,
        keys=tuple(keys),
        weight=None,
        household=None,
        missing="category",
        alpha=1.0,
        form=form,
        uniques=uniques,
        pairs=int(records[sizes == 2].sum()),
        below_3=int(records[sizes < 3].sum()),
        below_5=int(records[sizes < 5].sum()),
        expected=expected,
        global_risk=expected / rows,
        largest=float(risks.max()),
        high=endangered(risks, records),
        tolerated=tolerated,
        threshold=risk_threshold(risks, tolerated, records),
        household_expected=None,
        household_risk=None,
        sample_uniques=uniques,
        # everybody is in the table: a unique of it is one of the population, and matched correctly
        tau1=float(uniques),
        tau2=float(uniques),
        suda=None,
        diversity=diversity,
    )
