"""The trees of the repository for Adult: sizes, diameters, boundaries."""

from __future__ import annotations

import csv

import pytest

from shoal.errors import InputError
from shoal.taxonomy import Taxonomy
from tests.conftest import data_file


def column(name: str) -> list[str]:
    with data_file("adult.csv").open(encoding="utf-8") as file:
        return [row[name] for row in csv.DictReader(file) if row[name]]


@pytest.mark.parametrize(
    ("attribute", "values", "concepts", "diameter", "boundaries"),
    [
        ("occupation", 14, 28, 0.8931, ("Armed-Forces", "Handlers-cleaners")),
        ("native-country", 41, 57, 0.9069, ("South", "Outlying-US(Guam-USVI-etc)")),
        ("education", 16, 24, 0.8931, ("Assoc-acdm", "7th-8th")),
        ("marital-status", 7, 13, 0.8931, ("Never-married", "Married-spouse-absent")),
        ("workclass", 8, 13, 0.8745, ("Never-worked", "Federal-gov")),
    ],
)
def test_minimal_trees_of_adult(
    attribute: str, values: int, concepts: int, diameter: float, boundaries: tuple[str, str]
) -> None:
    rows = column(attribute.replace("-", "_"))
    whole = Taxonomy.load(data_file(f"taxonomies/{attribute}.csv"))
    tree = whole.minimal(sorted(set(rows)))
    assert (len(tree.domain), tree.size) == (values, concepts)
    assert round(tree.diameter, 4) == diameter
    assert tuple(tree.decode(tree.boundaries)) == boundaries
    assert tree.decode(tree.encode(rows)).tolist() == rows


def test_the_diameter_of_the_values_is_less_than_that_of_all_concepts() -> None:
    """A leaf of the tree that no record can hold has no part in the sensitivity, nor has a group of values."""
    tree = Taxonomy.load(data_file("taxonomies/occupation.csv")).minimal(["Sales", "Service", "Adm-clerical"])
    assert round(float(tree.distance_table().max()), 4) == 0.848
    assert round(tree.diameter, 4) == 0.737


def test_a_value_can_be_an_inner_concept() -> None:
    tree = Taxonomy.load(data_file("taxonomies/marital-status.csv")).minimal(
        ["Married", "Separated", "Widowed"]
    )
    married = tree.code("Married")
    assert married in tree.domain
    assert married not in tree.leaves


def test_a_value_that_the_given_tree_lacks_is_found_before_any_work() -> None:
    worked = sorted(set(column("workclass")) - {"Never-worked"})
    tree = Taxonomy.load(data_file("taxonomies/workclass.csv")).minimal(worked)
    with pytest.raises(InputError, match="'Never-worked' is not in the taxonomy"):
        tree.check(column("workclass"), "column 'workclass'")
