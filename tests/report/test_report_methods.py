"""Every kind of method has its pages: the right guarantee, with private facts on the internal page only."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.report import bundle_report, internal_report, public_report

# one of each mechanism and model
METHODS = {
    "laplace": "dp",
    "tree-dp": "dp",
    "insensitive-dp": "dp",
    "mdav-dp": "dp-given-partition",
    "ranking-dp": "dp-given-partition",
    "xm-2": "dp-given-partition",
    "idp-cbls": "idp-given-partition",
    "xm-14": "idp-given-partition",
    "k-anonymity": "k-anonymity",
    "swap-mdav": "probabilistic-k-anonymity",
    "swap-ranking": "probabilistic-k-anonymity",
    "anatomy": "probabilistic-k-anonymity",
    "t-closeness": "t-closeness",
    "xm-b1": "none",
}
PRIVATE = (
    "clipped",
    "Repaired",
    "Clusters of",
    "record linkage",
    "Do not publish",
    "inference of",
    "unprotected",
)


def people(n: int = 120) -> pa.Table:
    rng = np.random.default_rng(6)
    age = rng.permutation(n)
    return pa.table({"age": age, "rooms": rng.integers(1, 9, n), "pay": age * 10.0 + rng.uniform(0, 300, n)})


def schema() -> shoal.Schema:
    roles = {"age": "quasi-identifier", "rooms": "quasi-identifier", "pay": "confidential"}
    ends = {"age": 150, "rooms": 10, "pay": 2000}
    return shoal.Schema.from_dict(
        {
            "attribute": [
                {
                    "name": name,
                    "role": role,
                    "lo": 0,
                    "hi": ends[name],
                    "type": "decimal" if name == "pay" else "integer",
                }
                for name, role in roles.items()
            ]
        }
    )


def release(method: str) -> shoal.Release:
    wanted = {"epsilon": "0.5", "k": 10}
    known = next(info for info in shoal.methods() if info.name == method).parameters
    options = {name: value for name, value in wanted.items() if name in known}
    return shoal.protect(people(), schema(), method, seed=3, **options)


def words(page: str) -> str:
    """The text of a page without its scripts, as a reader sees it."""
    bare = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", bare)).replace("&#39;", "'")


@pytest.mark.parametrize("method", METHODS)
def test_pages_of_every_kind_of_method(method: str, tmp_path: Path) -> None:
    made, table = release(method), people()
    assert made.statement.model == METHODS[method]
    measured = shoal.evaluate(table, made) if made.aligned is not None else None
    made.save(tmp_path / "bundle")
    public, inside = words(public_report(made)), words(internal_report(made, measured, table))
    whole = words(bundle_report(tmp_path / "bundle"))
    for page in (public, inside, whole):
        assert made.statement.sentence in page
        assert "Red: do not publish" in page
        assert "A seed was set: anyone who knows the seed can remove the noise." in page
    for private in PRIVATE:
        assert private not in public
        assert private not in whole
    assert "Rows read 120" in inside
    for partition in made.partition:
        assert f"{len(partition)}, sizes {partition.sizes.min()} to {partition.sizes.max()}" in inside
    if measured is not None:
        assert "record linkage" in inside
        assert "inference of pay" in inside


def test_the_recipe_is_on_the_page() -> None:
    assert "method = &#34;mdav-dp&#34;" in internal_report(release("mdav-dp"))


def test_repairs_and_exact_clusters_are_on_the_internal_page_only() -> None:
    exact = shoal.protect(
        pa.table({"a": np.repeat([1.0, 5.0], 30)}),
        method="idp-cbls",
        epsilon=1,
        k=10,
        domains={"a": (0.0, 9.0)},
    )
    assert exact.internal["clusters_without_noise"]["a"] > 0
    count = exact.internal["clusters_without_noise"]["a"]
    assert f"Clusters of a released without noise {count} " in words(internal_report(exact))
    assert "released without noise" not in words(public_report(exact))
    assert "Repaired: " in words(internal_report(release("xm-14")))


def test_rows_that_were_dropped_are_left_out_of_the_comparison() -> None:
    pay = [None if row % 10 == 0 else float(row) for row in range(120)]
    table = people().set_column(2, "pay", pa.array(pay))
    made = shoal.protect(table, schema(), "mdav-dp", epsilon=1, k=10, missing="drop")
    page = words(internal_report(made, shoal.evaluate(table, made), table))
    assert "Rows read 120 Rows released 108" in page
    assert "missing: " not in page
