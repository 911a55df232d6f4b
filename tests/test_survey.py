"""The demo survey looks like a real one and fits the schema that comes with it."""

from __future__ import annotations

import numpy as np

from shoal.survey import survey, survey_schema


def test_the_same_seed_gives_the_same_people() -> None:
    assert survey(100).equals(survey(100))
    assert not survey(100).equals(survey(100, seed=1))


def test_everything_is_described_and_inside_its_domain() -> None:
    # a table this large would show values that leave their questionnaire's range
    people, schema = survey(50_000), survey_schema()
    assert tuple(people.column_names) == schema.names
    for attribute in schema.attributes:
        if attribute.lo is None or attribute.hi is None:
            continue
        values = people[attribute.name].drop_null().to_numpy()
        assert float(attribute.lo) <= values.min() <= values.max() <= float(attribute.hi), attribute.name


def test_it_has_what_makes_real_surveys_hard() -> None:
    people = survey()
    assert people.num_rows == 5000
    assert len(set(people["person_id"].to_pylist())) == 5000
    income, tax = people["income"].to_numpy(), people["tax"].to_numpy()
    assert income.max() > 4 * np.median(income)
    assert np.corrcoef(income, tax)[0, 1] > 0.8
    missing = {name: people[name].null_count for name in people.column_names}
    assert {name for name, count in missing.items() if count} == {"savings"}
    kinds = {attribute.kind for attribute in survey_schema().attributes}
    assert kinds >= {"numeric", "ordinal", "nominal"}
