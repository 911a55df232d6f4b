"""insensitive-dp on numbers and concepts together: claim, budget of the concepts, and the published draws."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

import shoal
from shoal.mechanisms.insensitive import drawn_rows
from shoal.noise import Seeded
from shoal.noise.choice import centroid_probabilities
from shoal.partition import Partition
from shoal.partition.multivariate import insensitive_mixed, nominal_ends, numeric_ends
from shoal.taxonomy import Taxonomy

TREE = Taxonomy.from_dict({"work": {"desk": ["clerk", "manager"], "hand": ["farmer", "fitter", "cook"]}})
JOBS = ("clerk", "manager", "farmer", "fitter", "cook")


def people(n: int = 90) -> pa.Table:
    rng = np.random.default_rng(4)
    return pa.table({"income": rng.integers(0, 1001, n), "job": rng.choice(JOBS, n)})


def schema(tmp_path: Any) -> shoal.Schema:
    TREE.save(tmp_path / "jobs.csv")
    return shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "income", "lo": 0, "hi": 1000},
                {"name": "job", "kind": "nominal", "taxonomy": str(tmp_path / "jobs.csv")},
            ]
        }
    )


def test_strict_composition_covers_concepts_too(tmp_path: Any) -> None:
    release = shoal.protect(people(), schema(tmp_path), "insensitive-dp", epsilon=2)
    assert release.statement.model == "dp"
    assert release.statement.publishable
    assert release.statement.spending == {"cluster sums of income": 1, "cluster concepts of job": 1}
    assert set(release.data["job"].to_pylist()) <= set(JOBS)
    (made,) = release.partition
    assert len(made) == 8


def test_the_clusters_are_those_of_the_mixed_distance(tmp_path: Any) -> None:
    data = people()
    (made,) = shoal.protect(data, schema(tmp_path), "insensitive-dp", epsilon=2, k=10).partition
    tree = TREE.minimal(sorted(JOBS))
    low, high = tree.boundaries
    codes = tree.encode(data["job"].to_pylist())
    jobs = nominal_ends(codes, tree.distances_to(low), tree.distances_to(high), tree.width)
    expected = insensitive_mixed([numeric_ends(data["income"].to_numpy(), 0, 1000), jobs], 10)
    assert made.sizes.tolist() == expected.sizes.tolist()
    assert np.array_equal(made.labels, expected.labels)


def test_every_cluster_gets_its_part_of_the_budget(tmp_path: Any) -> None:
    """Two columns and three clusters at ε = 1: a concept is drawn at 1/6, and at 1/2 it would be seen."""
    data = pa.table({"income": np.repeat([0, 500, 1000], 30), "job": ["cook"] * 90})
    hits, runs = 0, 100
    for seed in range(runs):
        release = shoal.protect(
            data, schema(tmp_path), "insensitive-dp", epsilon=1, k=30, seed=seed, order="single"
        )
        (made,) = release.partition
        jobs = np.array(release.aligned["job"].to_pylist(), dtype=object)
        for cluster in range(3):
            (job,) = set(jobs[made.labels == cluster].tolist())
            hits += job == "cook"
    tree = TREE.minimal(sorted(JOBS))
    counts = np.bincount(tree.encode(["cook"] * 30), minlength=tree.size)
    exact = {
        share: centroid_probabilities(counts, tree, Fraction(1, share), generalise=False)[tree.code("cook")]
        for share in (2, 6)
    }
    assert stats.binomtest(hits, 3 * runs, exact[6]).pvalue > 1e-9
    assert stats.binomtest(hits, 3 * runs, exact[2]).pvalue < 1e-9


def test_published_draws_have_the_law_of_the_exponential_mechanism_in_every_row() -> None:
    """Eq. 6.5 with ε for the attribute: chi-square over 20,000 rows of one cluster of three values."""
    tree = TREE.minimal(sorted(JOBS))
    codes = tree.encode(["clerk"] * 12_000 + ["cook"] * 6000 + ["fitter"] * 2000)
    partition = Partition.from_labels(np.zeros(20_000, dtype=np.int64))
    epsilon = Fraction(1, 1000)
    drawn = drawn_rows(codes, partition, tree, epsilon, Seeded(1))
    counts = np.bincount(codes, minlength=tree.size)
    expected = centroid_probabilities(counts, tree, epsilon, rule="exponential")
    found = np.bincount(drawn, minlength=tree.size)
    assert stats.chisquare(found, 20_000 * expected / expected.sum()).pvalue > 1e-9
    twice = centroid_probabilities(counts, tree, 2 * epsilon, rule="exponential")
    assert stats.chisquare(found, 20_000 * twice / twice.sum()).pvalue < 1e-9


def test_published_composition_releases_mixed_rows_without_a_claim(tmp_path: Any) -> None:
    release = shoal.protect(
        people(), schema(tmp_path), "insensitive-dp", epsilon=1, k=9, composition="parallel", generalise=True
    )
    assert release.statement.model == "none"
    assert not release.statement.publishable
    assert set(release.data["job"].to_pylist()) <= set(TREE.labels)
    (made,) = release.partition
    jobs = np.array(release.aligned["job"].to_pylist(), dtype=object)
    assert any(len(set(jobs[made.labels == cluster])) > 1 for cluster in range(len(made)))
