"""The demo survey: a synthetic table about people, generated from a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.columns import KIND_FACTS, Kind, Schema

if TYPE_CHECKING:
    import pyarrow as pa

_REGIONS = ("North", "East", "South", "West", "Islands")
_EDUCATION = ("primary", "lower secondary", "upper secondary", "bachelor", "master or higher")
_SECTORS = ("agriculture", "industry", "trade", "health", "education", "administration", "none")


def survey(people: int = 5000, seed: int = 2017) -> pa.Table:
    """A realistic survey: heavy-tailed incomes, correlated amounts, some missing values.

    All people in it are fictitious; the same seed gives the same table.

    >>> survey(10).column_names[:4]
    ['person_id', 'age', 'sex', 'region']
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(9.0, 5.2, people), 18, 99).astype(np.int64)
    education = np.clip(rng.normal(2.2, 1.1, people).round(), 0, 4).astype(np.int64)
    experience = np.clip(age - 20, 0, 40)
    log_income = (
        9.4 + 0.22 * education + 0.018 * experience - 0.0002 * experience**2 + rng.normal(0, 0.55, people)
    )
    # one in fifty earns from a Pareto tail, as in real income data; the questionnaire caps answers at 300,000
    tail = np.where(rng.random(people) < 0.02, rng.pareto(2.2, people) + 1.0, 1.0)
    income = np.minimum(np.exp(log_income) * tail, 300_000).round(2)
    tax = (0.1 * income + 0.15 * np.maximum(income - 30_000, 0)).round(2)
    rent = np.clip(3_000 + 0.13 * income + rng.normal(0, 2_500, people), 0, 59_000).round(2)
    savings = np.where(
        rng.random(people) < 0.3, 0.0, np.minimum(rng.lognormal(8.5, 1.6, people), 3_000_000)
    ).round(2)
    hours = np.where(
        age < 67, np.clip(rng.normal(37, 9, people), 0, 90), np.clip(rng.normal(4, 8, people), 0, 60)
    )
    absent = rng.random(people) < 0.04
    return pa.table(
        {
            "person_id": pa.array([f"P{i:06d}" for i in rng.permutation(people)]),
            "age": pa.array(age),
            "sex": pa.array(np.where(rng.random(people) < 0.51, "female", "male")),
            "region": pa.array(rng.choice(_REGIONS, people, p=[0.3, 0.2, 0.27, 0.18, 0.05])),
            "education": pa.array([_EDUCATION[i] for i in education]),
            "sector": pa.array(rng.choice(_SECTORS, people)),
            "hours per week": pa.array(hours.round().astype(np.int64)),
            "income": pa.array(income),
            "tax": pa.array(tax),
            "rent": pa.array(rent),
            "savings": pa.array(savings, mask=absent),
        }
    )


def survey_schema() -> Schema:
    """The public facts of the demo survey: ranges set by the questionnaire, not taken from the answers."""

    def entry(name: str, kind: Kind, role: str, **facts: object) -> dict[str, object]:
        # a column of names has the type text
        typed = {"type": "text"} if KIND_FACTS[kind].cell == "text" else {}
        return {"name": name, "kind": kind, "role": role, "source": "questionnaire", **typed, **facts}

    money = {"type": "decimal", "decimals": 2}
    return Schema.from_dict(
        {
            "attribute": [
                entry("person_id", "nominal", "identifier"),
                entry("age", "numeric", "quasi-identifier", type="integer", lo=18, hi=99),
                entry("sex", "nominal", "quasi-identifier", values=("female", "male")),
                entry("region", "nominal", "quasi-identifier", values=_REGIONS),
                entry("education", "ordinal", "quasi-identifier", ordered=_EDUCATION),
                entry("sector", "nominal", "other", values=_SECTORS),
                entry("hours per week", "numeric", "confidential", type="integer", lo=0, hi=90),
                entry("income", "numeric", "confidential", lo=0, hi=300_000, **money),
                entry("tax", "numeric", "confidential", lo=0, hi=75_000, **money),
                entry("rent", "numeric", "confidential", lo=0, hi=60_000, **money),
                entry("savings", "numeric", "confidential", lo=0, hi=3_000_000, **money),
            ]
        }
    )
