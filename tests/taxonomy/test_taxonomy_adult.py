"""The trees given for Adult: sizes, diameters, boundaries."""

from __future__ import annotations

import csv

import pytest
from conftest import data_file

from shoal.errors import InputError
from shoal.taxonomy import Taxonomy


def column(name: str) -> list[str]:
    with data_file("adult.csv").open(encoding="utf-8") as file:
        return [row[name] for row in csv.DictReader(file) if row[name]]


@pytest.mark.parametrize(
    ("attribute", "values", "concepts", "diameter", "boundaries"),
    [
        ("occupation", 14, 37, 0.8625, ("Sales", "Handlers-cleaners")),
        ("native-country", 41, 59, 0.9329, ("Taiwan", "Greece")),
        ("education", 16, 24, 0.8931, ("1st-4th", "Doctorate")),
        ("marital-status", 7, 11, 0.8745, ("Married-spouse-absent", "Divorced")),
    ],
)
def test_minimal_trees_of_adult(
    attribute: str, values: int, concepts: int, diameter: float, boundaries: tuple[str, str]
) -> None:
    rows = column(attribute.replace("-", "_"))
    whole = Taxonomy.load(data_file(f"taxonomies/{attribute}.owl"))
    tree = whole.minimal(sorted(set(rows)))
    assert (len(tree.domain), tree.size) == (values, concepts)
    assert round(tree.diameter, 4) == diameter
    assert tuple(tree.decode(tree.boundaries)) == boundaries
    assert tree.decode(tree.encode(rows)).tolist() == rows


def test_the_diameter_of_the_values_is_less_than_that_of_all_concepts() -> None:
    """A leaf of the tree that no record can hold has no part in the sensitivity, nor has a group of values."""
    rows = column("occupation")
    tree = Taxonomy.load(data_file("taxonomies/occupation.owl")).minimal(sorted(set(rows)))
    assert round(float(tree.distance_table().max()), 4) == 0.8931
    assert round(tree.diameter, 4) == 0.8625


def test_a_value_can_be_an_inner_concept() -> None:
    tree = Taxonomy.load(data_file("taxonomies/marital-status.owl")).minimal(
        sorted(set(column("marital_status")))
    )
    separated = tree.code("Separated")
    assert separated in tree.domain
    assert separated not in tree.leaves


def test_a_value_that_the_given_tree_lacks_is_found_before_any_work() -> None:
    tree = Taxonomy.load(data_file("taxonomies/workclass.owl"))
    with pytest.raises(InputError, match="'Never-worked' is not in the taxonomy"):
        tree.check(column("workclass"), "column 'workclass'")
