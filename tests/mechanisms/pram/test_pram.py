"""`pram`: its ε is that of brute force, its corrected frequencies cover, and what does not fit is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import log, prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import ClaimError, OptionError
from shoal.io import read
from shoal.mechanisms.pram.mechanism import invariant, lay_out, states_of
from shoal.mechanisms.registry import load_recipe, recipe_text
from shoal.noise import Seeded
from shoal.release.protection import prepare

SEX = [["0.9", "0.1"], ["0.3", "0.7"]]
ALIKE = [["0.9", "0.1"], ["0.9", "0.1"]]
OTHER = [["0.1", "0.9"], ["0.1", "0.9"]]
REGION = [["0.6", "0.4"], ["0.2", "0.8"]]
DOMAINS: dict[str, Any] = {"sex": ["f", "m"], "region": ["n", "s"], "size": (1, 3)}


def table(n: int = 60, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "sex": draw.choice(["f", "m"], n, p=[0.7, 0.3]).tolist(),
            "region": draw.choice(["n", "s"], n, p=[0.2, 0.8]).tolist(),
            "size": draw.integers(1, 4, n),
        }
    )


def release(data: pa.Table | None = None, seed: int | None = 1, **options: Any) -> shoal.Release:
    return shoal.protect(
        table() if data is None else data, method="pram", seed=seed, **{"domains": DOMAINS, **options}
    )


def worst_loss(**options: Any) -> float:
    """The largest log-ratio of the probabilities of one released row, over all pairs of records."""
    prepared = prepare(read(table()), None, "pram", domains=DOMAINS, **options)
    passages = lay_out(prepared.method, prepared.described)
    names = list(passages)
    sizes = [range(len(passages[name].states)) for name in names]
    chosen = None if prepared.method.stratum is None else names.index(prepared.method.stratum)

    def probability(record: tuple[int, ...], row: tuple[int, ...]) -> Fraction:
        stratum = 0 if chosen is None else record[chosen]
        found = Fraction(1)
        for name, own, released in zip(names, record, row, strict=True):
            every = passages[name].weights
            weights = every[stratum if len(every) > 1 else 0][own]
            found *= Fraction(int(weights[released]), int(weights.sum()))
        return found

    return max(
        log(probability(one, row) / probability(other, row))
        for one, other, row in product(product(*sizes), product(*sizes), product(*sizes))
    )


def epsilon_of(**options: Any) -> float:
    return float(release(**options).statement.epsilon or 0)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": "2"},
        {"epsilon": "2", "split": {"sex": 1, "region": 2, "size": 5}},
        {"keep": "0.7"},
        # a diagonal below the other entries
        {"keep": "0.2"},
        {"matrix": {"sex": SEX, "region": REGION}, "keep": {"size": "0.8"}},
        {"matrix": {"sex": SEX}, "epsilon": "4"},
        {
            "stratum": "region",
            "keep": {"size": "0.5"},
            "matrix": {"region": REGION, "sex": {"n": SEX, "s": OTHER}},
        },
    ],
)
def test_epsilon_is_the_largest_loss_over_all_pairs_of_records(options: dict[str, Any]) -> None:
    assert epsilon_of(**options) == pytest.approx(worst_loss(**options), abs=1e-8)


def test_matrices_by_stratum_cost_what_tells_the_strata_apart() -> None:
    options: dict[str, Any] = {
        "domains": DOMAINS,
        "stratum": "region",
        "keep": {"size": "0.5"},
        "matrix": {"region": REGION, "sex": {"n": ALIKE, "s": OTHER}},
    }
    shares = release(**options).statement.epsilon_per_attribute
    # within a stratum the released sex says nothing, and between strata everything
    assert shares["sex"] == pytest.approx(log(9), abs=1e-8)


def test_the_matrix_of_the_original_stratum_applies() -> None:
    sure: dict[str, Any] = {
        "n": [["0.999999", "0.000001"], ["0.999999", "0.000001"]],
        "s": [["0.000001", "0.999999"], ["0.000001", "0.999999"]],
    }
    found = release(
        stratum="region", keep={"size": "0.5"}, matrix={"region": [["0.5", "0.5"]] * 2, "sex": sure}, seed=4
    )
    original = table().column("region").to_pylist()
    assert found.aligned.column("sex").to_pylist() == ["f" if one == "n" else "m" for one in original]


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ({"epsilon": 1}, "dp"),
        ({"keep": "0.5"}, "dp"),
        ({"keep": 1}, "none"),
        ({"keep": "0.5", "invariant": True}, "none"),
        ({"matrix": {"sex": [["1", "0"], ["0.5", "0.5"]]}, "keep": {"region": "0.5", "size": "0.5"}}, "none"),
    ],
)
def test_the_claim_follows_from_the_matrices(options: dict[str, Any], model: str) -> None:
    statement = release(seed=None, **options).statement
    assert statement.model == model
    assert statement.publishable is (model == "dp")
    assert (statement.epsilon is None) is (model == "none")
    assert bool(statement.data_dependent) is options.get("invariant", False)


@pytest.mark.parametrize(
    ("settings", "stated"),
    [({"epsilon": "0.5"}, "0.5"), ({"keep": "0.6"}, None), ({"keep": "0.6", "epsilon": "3"}, None)],
)
def test_epsilon_is_that_of_a_unit(settings: dict[str, str], stated: str | None) -> None:
    of_row = shoal.protect(
        table(), method="pram", columns=["sex"], domains={"sex": ["f", "m"]}, keep="0.6", seed=1
    ).statement.epsilon
    assert of_row is not None
    expected = 3 * of_row if stated is None else Fraction(stated)
    data = table(40).append_column("person", [[f"p{row // 2}" for row in range(40)]])
    attributes = [
        {"name": "sex", "kind": "nominal", "values": ["f", "m"]},
        {"name": "person", "role": "unit", "max_rows": 3},
    ]
    schema = shoal.Schema.from_dict({"attribute": attributes})
    statement = shoal.protect(data, schema, "pram", seed=1, **settings).statement
    assert (statement.epsilon, statement.model) == (expected, "dp")
    assert float(sum(statement.spending.values())) == pytest.approx(float(expected))


def test_an_epsilon_beside_keep_is_an_upper_limit() -> None:
    assert epsilon_of(keep="0.6", epsilon="3") == epsilon_of(keep="0.6")
    with pytest.raises(OptionError, match=r"cost ε = 1\.90\d+, and epsilon is 1\.5"):
        release(keep="0.6", epsilon="1.5")


def test_the_release_states_its_matrices_and_a_reader_corrects_for_them(tmp_path: Path) -> None:
    made = release(seed=None, matrix={"sex": SEX}, epsilon="4")
    folder = made.save(tmp_path / "bundle")
    stated = json.loads((folder / "statement.json").read_text("utf-8"))
    assert stated["settings"]["matrix"] == {"sex": SEX}
    said = {one["facts"].get("column"): one["facts"] for one in stated["terms"]["conditions"]}
    passages = lay_out(made.method, prepare(read(table()), None, made.method, domains=DOMAINS).described)
    for name in ("region", "size"):
        stays, moves = passages[name].alike or (Fraction(0), Fraction(0))
        assert (Fraction(said[name]["stays"]), Fraction(said[name]["moves"])) == (stays, moves)
    loaded = shoal.Bundle.load(folder)
    for name in DOMAINS:
        assert loaded.corrected(name) == made.corrected(name)
        assert sum(loaded.corrected(name).counts) == pytest.approx(60)
        assert sum(loaded.corrected(name).released) == 60
    assert loaded.method == made.method


@pytest.mark.parametrize(
    "options",
    [
        {"keep": "0.6"},
        {"matrix": {"sex": SEX}, "keep": {"region": "0.9", "size": "0.5"}},
        {
            "stratum": "region",
            "keep": {"size": "0.7"},
            "matrix": {"region": [["0.9", "0.1"], ["0.2", "0.8"]], "sex": {"n": SEX, "s": [*reversed(SEX)]}},
        },
    ],
)
def test_corrected_frequencies_cover_the_original_ones_as_often_as_they_say(options: dict[str, Any]) -> None:
    data, runs, level = table(400, seed=5), 120, 0.8
    prepared = prepare(read(data), None, "pram", domains=DOMAINS, seed=3, **options)
    truth = data.column("sex").to_pylist().count("f")
    hits, bias, naive = 0, 0.0, 0
    for _ in range(runs):
        found = shoal.release.protection.carry_out(prepared).corrected("sex")
        (low, high) = found.interval(level)[found.values.index("f")]
        hits += low <= truth <= high
        bias += found.counts[0] - truth
        naive += low <= found.released[0] <= high
    # six standard deviations; without the correction nearly no interval would contain the truth
    assert abs(hits - level * runs) <= 6 * (runs * level * (1 - level)) ** 0.5
    assert abs(bias / runs) <= 6 * max(found.standard_errors) / runs**0.5
    assert naive <= runs


def test_intervals_around_released_frequencies_would_not_cover() -> None:
    data = table(4000, seed=5)
    found = release(data, keep="0.8").corrected("sex")
    truth = data.column("sex").to_pylist().count("f")
    assert abs(found.released[0] - truth) > 6 * found.standard_errors[0]
    assert abs(found.counts[0] - truth) < 6 * found.standard_errors[0]


def test_missing_is_one_more_value() -> None:
    draw = np.random.default_rng(2)
    values = [None if draw.random() < 0.3 else int(draw.integers(1, 4)) for _ in range(3000)]
    names = [None if draw.random() < 0.2 else str(draw.choice(["a", "b"])) for _ in range(3000)]
    data = pa.table({"size": pa.array(values, pa.int64()), "name": names})
    made = shoal.protect(
        data,
        method="pram",
        keep="0.9",
        missing="category",
        domains={"size": (1, 3), "name": ["a", "b"]},
        seed=2,
    )
    for column, original in (("size", values), ("name", names)):
        found = made.corrected(column)
        assert found.values[-1] == "(missing)"
        assert made.data.column(column).null_count == found.released[-1] > 0
        assert abs(found.counts[-1] - original.count(None)) < 6 * found.standard_errors[-1]


def test_long_ranges_are_released_in_bands_and_short_ones_value_by_value() -> None:
    data = pa.table({"income": list(range(0, 1000, 10)), "size": [1, 2, 3, 4] * 25})
    made = shoal.protect(
        data, method="pram", epsilon=5, bands=4, domains={"income": (0, 999), "size": (1, 4)}, seed=1
    )
    assert set(made.data.column("income").to_pylist()) <= {124, 374, 624, 874}
    assert made.corrected("income").values == ("0 to 249", "250 to 499", "500 to 749", "750 to 999")
    assert made.corrected("size").values == ("1", "2", "3", "4")
    (said,) = [one for one in made.statement.terms.conditions if one.code == "column-in-bands"]
    assert dict(said.facts) == {"column": "income", "bands": 4}


@pytest.mark.parametrize("domain", [(0, 10), (0, 9), (-5, 6), ("0.00", "2.50"), ("2000-01-01", "2000-02-05")])
@pytest.mark.parametrize("bands", [1, 3, 20])
def test_bands_cover_the_domain_and_hold_their_middles(domain: Any, bands: int) -> None:
    attribute = shoal.Attribute.of_domain("x", domain)
    attribute = (
        attribute if isinstance(domain[0], int) or "-" not in domain[0] else attribute.with_domain(domain)
    )
    attribute = attribute.with_declared_type()
    lattice = attribute.lattice(integer=True)
    states = states_of(shoal.Pram(epsilon=1, bands=bands), attribute, lattice)
    assert states.starts is not None
    assert states.starts[0] == 0
    assert len(states) == min(bands, int(lattice.width / lattice.step) + 1)
    middles = lattice.positions(states.released)
    assert states.of(middles, None).tolist() == list(range(len(states)))
    widths = np.diff([*states.starts.tolist(), int(lattice.width / lattice.step) + 1])
    assert widths.max() - widths.min() <= 1


def test_an_invariant_matrix_preserves_frequencies_and_keeps_its_smallest_diagonal() -> None:
    states = np.array([0] * 6 + [1] * 3 + [2], dtype=np.int64)
    found = np.array([invariant(states, 3, Fraction(1, 2), Seeded(run)) for run in range(4000)])
    counts = np.bincount(found.ravel(), minlength=3) / 4000
    assert np.abs(counts - [6, 3, 1]).max() < 6 * (10 / 4000) ** 0.5
    assert abs((found[:, 9] == 2).mean() - 0.5) < 6 * (0.25 / 4000) ** 0.5


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "give epsilon, keep or matrix"),
        ({"keep": {"sex": "0.5"}}, "column 'region' has no matrix"),
        ({"keep": {"sax": "0.5"}, "epsilon": 1}, "keep names column 'sax', which is not released"),
        ({"keep": {"sex": "0.5"}, "matrix": {"sex": SEX}, "epsilon": 3}, "both a keep and a matrix"),
        ({"keep": "0.12345678"}, "at most 6 decimals"),
        ({"keep": "1.5"}, "keep"),
        ({"keep": 1, "epsilon": 1}, "a matrix with a zero has no ε"),
        ({"keep": "0.5", "invariant": True, "epsilon": 1}, "invariant needs keep"),
        ({"keep": {"sex": "0.5"}, "invariant": True}, "column 'region' has no matrix"),
        ({"epsilon": 1, "matrix": {"size": SEX}}, r"has 2 rows, and the column has 3 values: 1, 2, 3"),
        (
            {"epsilon": 1, "matrix": {"sex": {"f": {"f": 1}, "x": {"f": "0.5", "x": "0.5"}}}},
            "a matrix with a zero",
        ),
        (
            {"epsilon": 9, "matrix": {"sex": {"f": {"f": "0.9", "x": "0.1"}, "x": {"f": "0.5", "x": "0.5"}}}},
            "names 'x', which is not one of its values: f, m",
        ),
        (
            {"epsilon": 9, "matrix": {"sex": {"n": SEX}}, "stratum": "region"},
            "has none for the stratum 's'",
        ),
        (
            {"epsilon": 9, "matrix": {"sex": {"n": SEX, "s": SEX, "w": SEX}}, "stratum": "region"},
            "names the stratum 'w'",
        ),
        ({"epsilon": 9, "matrix": {"sex": {"n": SEX, "s": SEX}}, "stratum": "county"}, "not released"),
        (
            {"epsilon": 9, "matrix": {"region": {"n": SEX, "s": SEX}}, "stratum": "region"},
            "one matrix of its own",
        ),
        ({"matrix": {name: ALIKE for name in ("sex", "region")}, "keep": {"size": "1/3"}}, "keep"),
        ({"epsilon": 1, "bands": 501, "domains": {"size": (0, 1000)}}, "a matrix can have at most 500"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        release(**options)


def test_missing_values_that_stay_missing_would_exceed_the_claim() -> None:
    data = pa.table({"size": [1, None, 3] * 5})
    with pytest.raises(ClaimError, match="pram"):
        shoal.protect(data, method="pram", epsilon=1, missing="separate", domains={"size": (1, 3)})


def test_frequencies_that_cannot_be_corrected_are_refused() -> None:
    made = release(epsilon=9, matrix={"sex": ALIKE})
    with pytest.raises(OptionError, match="no inverse"):
        made.corrected("sex")
    with pytest.raises(OptionError, match="not released"):
        made.corrected("height")
    with pytest.raises(OptionError, match="need no correction"):
        release(keep="0.5", invariant=True).corrected("sex")
    with pytest.raises(OptionError, match="passes values through no matrix"):
        shoal.protect(table(), method="laplace", epsilon=1, domains=DOMAINS, seed=1).corrected("sex")
    with pytest.raises(OptionError, match="between 0 and 1"):
        made.corrected("region").interval(1)


def test_a_recipe_with_matrices_by_stratum_repeats_the_release(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "stratum": "region",
        "epsilon": "9",
        "matrix": {"sex": {"n": SEX, "s": {"m": {"m": 1}, "f": {"f": 1}}}},
    }
    options["matrix"]["sex"]["s"] = {"m": {"m": "0.5", "f": "0.5"}, "f": {"m": "1/3", "f": "2/3"}}
    first = release(**options)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(first), "utf-8")
    again = shoal.protect(table(), seed=1, **load_recipe(path))
    assert again.method == first.method
    assert again.data.equals(first.data)
    assert prod(again.corrected("sex").counts) == prod(first.corrected("sex").counts)


def test_an_engine_refuses_an_invariant_matrix_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(table(), path)
    told: dict[str, Any] = {"method": "pram", "domains": DOMAINS, "engine": "local", "out": tmp_path / "out"}
    with pytest.raises(OptionError) as caught:
        shoal.publish(path, keep="0.5", invariant=True, **told)
    assert "\n" not in str(caught.value)
    assert "pram" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options",
    [
        {"keep": "0.8"},
        {
            "stratum": "region",
            "keep": {"size": "0.7"},
            "matrix": {"region": [["0.9", "0.1"], ["0.2", "0.8"]], "sex": {"n": SEX, "s": [*reversed(SEX)]}},
        },
    ],
)
def test_in_parts_frequencies_after_the_matrices_are_those_of_all_rows(
    options: dict[str, Any], tmp_path: Path
) -> None:
    data = table(6000, seed=5)
    pq.write_table(data, tmp_path / "people.parquet", row_group_size=400)
    made = shoal.publish(
        tmp_path / "people.parquet", method="pram", domains=DOMAINS, engine="local", out=tmp_path / "out", **options
    )  # fmt: skip
    loaded = shoal.Bundle.load(tmp_path / "out")
    assert loaded.statement.epsilon == release(data, **options).statement.epsilon
    assert made.release.internal["clusters"] == []
    for column in DOMAINS:
        found = loaded.corrected(column)
        original = [str(one) for one in data.column(column).to_pylist()]
        for value, count, error in zip(found.values, found.counts, found.standard_errors, strict=True):
            assert abs(count - original.count(value)) < 6 * error
    # control: released frequencies are not the original ones
    found = loaded.corrected("sex")
    original = data.column("sex").to_pylist().count("f")
    assert abs(found.released[0] - original) > 6 * found.standard_errors[0]
