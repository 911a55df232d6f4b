"""Compile the most expensive loops of the package once, so that parallel workers do not each compile them.

`make test` starts this beside pytest: the loops are there when the workers have collected their tests. What is compiled
already is left alone; what this misses, the first test that needs it compiles.
"""

from __future__ import annotations

from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "shoal"
DEAREST = {
    "partition": "_kernels_tree",
    "mechanisms/pairs": "_kernels",
    "evaluation/disclosure": "_kernels",
}


def compiled() -> bool:
    """Whether each of them has been kept by an earlier run."""
    kept = (SOURCES / folder / "__pycache__" for folder in DEAREST)
    return all(any(place.glob(f"{name}.*.nbi")) for place, name in zip(kept, DEAREST.values(), strict=True))


def compile_all() -> None:
    import numpy as np

    import shoal
    from shoal.partition.multivariate import mdav
    from shoal.partition.univariate import costs_of, shortest_path
    from shoal.survey import survey, survey_schema

    people, columns = survey(300), ["age", "sex", "region", "income", "tax"]
    records = np.random.default_rng(1).normal(size=(400, 3))
    for algorithm in ("tree", "brute"):
        mdav(records, 5, algorithm=algorithm)
    for delta in ("0", "1e-6"):
        shoal.protect(people, survey_schema(), "pairs-dp", 8, columns=columns, delta=delta, seed=1)
    shortest_path(costs_of(np.arange(50), 50, 1), 3)
    shoal.risk(people, columns[:3], special=True)


if __name__ == "__main__" and not compiled():
    compile_all()
