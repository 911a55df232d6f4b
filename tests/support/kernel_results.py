"""Results of every kernel for random inputs, and of releases that need them, as digests: printed as JSON.

Run by `test_kernels` in interpreters that compile and in one that does not.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from shoal.kernels import plain


def digest(*found: Any) -> str:
    """One word for arrays and numbers, to the last bit."""
    hashed = hashlib.sha256()
    for one in found:
        array = np.asarray(one)
        # numbers of plain code may be those of Python
        array = array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)
        hashed.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()[:16]


def of_partition(random: np.random.Generator) -> Iterator[tuple[str, str]]:
    from shoal.partition import _kernels as optimal
    from shoal.partition import as_wildcard, patterns
    from shoal.partition.multivariate import mdav
    from shoal.partition.univariate import costs_of

    for name, records in {
        "decimals": random.normal(size=(700, 3)),
        "ties": random.integers(0, 4, size=(300, 2)).astype(np.float64),
        "many attributes": random.exponential(size=(160, 9)),
        "alike": np.ones((100, 2)),
    }.items():
        for algorithm in ("tree", "brute"):
            yield f"mdav {algorithm} {name}", digest(mdav(records, 4, algorithm=algorithm).labels)
    # equal steps make many partitions equally good
    for size, column in ((40, np.arange(40.0)), (150, random.exponential(size=150) * 1000)):
        costs = costs_of(column, 50, "0.7")
        sums = np.zeros((size + 1, 5))
        high = np.sort(random.normal(size=size))
        optimal.running_sums(high, high * 1e-17, sums)
        yield f"running sums {size}", digest(sums)
        yield f"shortest path {size}", digest(optimal.shortest_path(costs.sums, 3, *costs.noise))
    for alpha in (1.0, 0.5):
        keys = [random.integers(-1, 3, 120) for _ in range(3)]
        found = patterns(keys, random.uniform(1, 5, 120), random.integers(0, 60, 120))
        yield f"wildcard {alpha}", digest(*as_wildcard(found, alpha))


def of_pairs(random: np.random.Generator) -> Iterator[tuple[str, str]]:
    from shoal.mechanisms.pairs import _kernels as kernels

    starts = np.array([0, 3, 5, 205])
    bins = np.concatenate([random.dirichlet(np.ones(size), 3) for size in np.diff(starts)], axis=1)
    seed = np.uint64(11)
    codes = kernels.draw_rows(np.array([60, 0, 40]), bins, starts, seed)
    yield "rows", digest(codes)
    goals = random.uniform(0, 3, (205, 205))
    goals = (goals + goals.T) / 2
    goals[3, :] = goals[:, 3] = -1.0
    triples = np.array([[0, 1, 2]])
    changes = kernels.polish(
        codes, starts, (np.diff(starts) + 1) // 2, goals, 7, 3, triples, np.array([12.5])
    )
    yield "polished", digest(codes, changes)
    table = random.dirichlet(np.ones(32)).reshape(8, 4)
    blocks = np.array([[-1, 0, 0], [0, 1, 8], [2, -1, 16], [-1, -1, 32]])
    contrasts = random.normal(scale=0.02, size=64)
    rows, columns = random.dirichlet(np.ones(8)), random.dirichlet(np.ones(4))
    noise = np.full(len(blocks), 0.01)
    kernels.fit_table(table, rows, columns, np.array([3, 2]), blocks, contrasts, noise, 3, 2)
    yield "table", digest(table)
    cuts = np.stack(
        [np.concatenate(([-np.inf], np.sort(random.normal(size=k)), [np.inf] * (7 - k))) for k in (2, 4, 6)]
    )
    correlations = np.array([[1, 0.5, 0.2], [0.5, 1, -0.3], [0.2, -0.3, 1]])
    placed = kernels.place_latent(
        random.integers(0, 3, (200, 3)).astype(np.uint8),
        np.arange(3),
        np.nan_to_num(cuts, posinf=9.0, neginf=-9.0),
        np.linalg.cholesky(correlations),
        np.linalg.inv(correlations),
        2,
        seed,
    )
    yield "latent", digest(placed)
    values, own = random.normal(size=(400, 3)), random.integers(-1, 6, (400, 3))
    positions = random.uniform(size=(400, 3))
    kernels.exchange(values, positions, own, np.array([0, 2]), correlations / 3, np.ones((3, 3)), 4, seed)
    yield "exchanged", digest(values, positions)


def of_measures(random: np.random.Generator) -> Iterator[tuple[str, str]]:
    from shoal.evaluation import _kernels as attacks
    from shoal.evaluation import _kernels as disclosure
    from shoal.evaluation import _kernels as linkage

    records, rows = 300, 120
    found = linkage.scan(
        random.integers(0, 2, 40).astype(np.float64) / 3,
        random.integers(0, 4, (rows, 3)) * 10,
        random.integers(0, 10, (records, 3)).astype(np.int32),
        random.normal(size=(rows, 2)),
        random.normal(size=(records, 2)),
        random.integers(1, 4, records),
        random.integers(0, records, rows),
        np.full(rows, 1e-9),
    )
    yield "linkage", digest(found)
    values = np.asfortranarray(random.integers(0, 9, (200, 4)).astype(np.float64))
    low = random.integers(0, 5, (30, 2)).astype(np.float64)
    counts = np.zeros(30, dtype=np.int64)
    attacks.matching_rows(values, random.integers(0, 4, (30, 2)), low, low + 3, 20, counts)
    yield "matching rows", digest(counts)
    point, table = random.normal(size=4).round(1), random.normal(size=(200, 4)).round(1)
    widths = np.array([1.0, 2.0, 0.0, 3.0])
    nominal = np.array([True, False, False, False])
    near, gaps = np.zeros(200, dtype=np.int64), np.zeros(200)
    rough = np.array([1.0, 0.5, 0.0, 1 / 3])
    seen, reach = attacks.nearest_candidates(
        point, table, nominal, widths, 0.2, point * rough, table * rough, 1, near, gaps
    )
    yield "nearest", digest(near[:seen], gaps[:seen], reach)
    codes = random.integers(-1, 3, (4, 80))
    found = disclosure.minimal_uniques(codes, np.full(4, 3), random.integers(-1, 70, 80))
    yield "uniques", digest(*found)


def of_suppression(random: np.random.Generator) -> Iterator[tuple[str, str]]:
    from shoal.mechanisms.suppression import bound, wildcard

    starts = np.array([0, 4, 9, 12])
    prices = random.uniform(size=6)
    found = bound._ascent(
        random.integers(0, 6, 12),
        random.uniform(size=12),
        starts,
        random.uniform(size=3),
        random.integers(1, 4, 6),
        3,
        prices,
        4.0,
        200,
    )
    yield "bound", digest(found, prices)
    for alpha, risk in ((1.0, None), (0.5, None), (1.0, 0.2)):
        codes = random.integers(1, 6, (150, 3)) * (random.uniform(size=(150, 3)) > 0.02)
        wish = wildcard.Wish(3, alpha, risk, None if risk is None else random.uniform(1, 9, 150))
        emptied = wildcard.emptied(codes, wish, np.array([2, 0, 1]))
        yield f"emptied {alpha} {risk}", digest(emptied)
    limits = random.uniform(0.01, 1, 200)
    holds = [
        wildcard._holds(f, f * more, 0.0, limit)
        for f, more, limit in zip(
            random.integers(1, 4, 200) * 1.0, random.uniform(1, 9, 200), limits, strict=True
        )
    ]
    yield "holds", digest(np.array(holds), math.fsum(limits))


def of_releases() -> Iterator[tuple[str, str]]:
    import shoal
    from shoal.survey import survey, survey_schema

    people, columns = survey(400), ["age", "region", "income", "tax"]
    calls: dict[str, dict[str, Any]] = {
        "pairs-dp": {"epsilon": 8},
        "pairs-dp with δ": {"epsilon": 8, "delta": "1e-6"},
        "mdav-dp": {"epsilon": 1, "k": 20},
        "suppress": {"k": 3},
    }
    for name, options in calls.items():
        method = name.partition(" ")[0]
        made = shoal.protect(people, survey_schema(), method, columns=columns, seed=5, **options)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(made.save(Path(folder) / "out", format="csv"))
            for path in sorted(out.iterdir()):
                yield f"{name}: {path.name}", hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def results() -> dict[str, str]:
    found: dict[str, str] = {}
    for number, part in enumerate((of_partition, of_pairs, of_measures, of_suppression)):
        found |= dict(part(np.random.default_rng(number)))
    return found | dict(of_releases())


def called() -> tuple[dict[str, str], list[str]]:
    """The results, and every function of the package that was called for them, as `file:name`."""
    names = set[tuple[str, str]]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            names.add((frame.f_code.co_filename, frame.f_code.co_name))

    sys.setprofile(note)
    found = results()
    sys.setprofile(None)
    files = {file: Path(file) for file, _ in names}
    inside = [(files[file], name) for file, name in names if "shoal" in files[file].parts]
    return found, sorted(f"{file.parent.name}/{file.name}:{name}" for file, name in inside)


if __name__ == "__main__":
    found, functions = called()
    json.dump(
        {"plain": plain(), "numba": "numba" in sys.modules, "results": found, "called": functions}, sys.stdout
    )
