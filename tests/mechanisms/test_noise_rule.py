"""Noise families in releases: refused where a record touches several blocks, drawn as stated where it does not."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import csv

import shoal
from shoal.cli import run
from shoal.errors import OptionError
from shoal.io import read
from shoal.mechanisms.registry import configured, method_class
from shoal.noise import LatticeBox, LatticeStaircase
from shoal.release.protection import prepare

DOMAINS = {"a": (0, 100), "b": (0, 1000)}


def table(n: int = 40) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({"a": rng.integers(0, 101, n), "b": rng.integers(0, 1001, n)})


@pytest.mark.parametrize("noise", ["staircase", "box"])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"columns": ["a"]}, "on one column: .*several rank groups.*use noise=laplace"),
        ({"link": False}, "with link=False: .*several rank groups.*use noise=laplace"),
    ],
)
def test_rank_groups_under_the_full_claim_refuse_blockwise_noise(
    noise: str, options: dict[str, Any], reason: str
) -> None:
    domains = {name: DOMAINS[name] for name in options.get("columns", DOMAINS)}
    with pytest.raises(OptionError, match=reason):
        prepare(
            read(table()), method="ranking-dp", epsilon=1, k=5, noise=noise, **{"domains": domains, **options}
        )
    prepare(
        read(table()), method="ranking-dp", epsilon=1, k=5, noise="laplace", **{"domains": domains, **options}
    )


@pytest.mark.parametrize("noise", ["staircase", "box"])
@pytest.mark.parametrize(
    ("method", "options", "model"),
    [
        ("mdav-dp", {"k": 5}, "dp-given-partition"),
        ("mdav-dp", {"k": 1}, "dp"),
        ("mdav-dp", {"k": 5, "partition": "vmdav"}, "dp-given-partition"),
        ("mdav-dp", {"k": 5, "groups": [["a"], ["b"]]}, "dp-given-partition"),
        ("mdav-dp", {"k": 2, "labels": np.arange(40) // 2}, "dp-given-partition"),
        ("ranking-dp", {"k": 5}, "dp-given-partition"),
        ("ranking-dp", {"k": 1, "link": False}, "dp"),
    ],
)
def test_where_a_record_touches_one_block_the_noise_is_used_and_stated(
    method: str, options: dict[str, Any], model: str, noise: str
) -> None:
    release = shoal.protect(table(), method=method, epsilon="0.5", domains=DOMAINS, noise=noise, **options)
    assert release.statement.model == model
    assert release.statement.publishable
    assert release.statement.settings["noise"] == noise
    assert release.statement.settings["optimise"] == "variance"
    assert sum(share for share in release.statement.spending.values() if share) == Fraction(1, 2)


@pytest.mark.parametrize("method", ["tree-dp", "pairs-dp"])
def test_methods_whose_noise_is_their_own_have_no_other(method: str) -> None:
    """A record touches two boxes, or many contrasts, that share an ε: blockwise noise would cost more than that."""
    configured(method, epsilon=1).allow_noise(2)
    assert not {"noise", "optimise"} & method_class(method).parameters().keys()
    with pytest.raises(OptionError, match=f"'{method}' has no option 'noise'"):
        configured(method, epsilon=1, noise="staircase")


def test_under_box_noise_an_attribute_is_stated_with_the_budget_of_its_group() -> None:
    one = shoal.protect(table(), method="mdav-dp", epsilon=1, k=5, domains=DOMAINS, noise="box").statement
    assert one.spending == {"cluster sums of a, b together": 1}
    assert one.epsilon_per_attribute == {"a": 1, "b": 1}
    assert any("share one ε" in condition for condition in one.conditions)
    two = shoal.protect(
        table(),
        method="mdav-dp",
        epsilon=1,
        k=5,
        domains=DOMAINS,
        noise="box",
        groups=[["a"], ["b"]],
        split="equal",
    ).statement
    assert two.epsilon_per_attribute == {"a": Fraction(1, 2), "b": Fraction(1, 2)}


def noise_of(noise: str, epsilon: str, **options: Any) -> NDArray[np.float64]:
    """Released sums minus true sums of many clusters of two, in lattice steps."""
    clusters = 30_000
    values = pa.table({"a": np.full(2 * clusters, 50), "b": np.full(2 * clusters, 500)})
    release = shoal.protect(
        values,
        method="mdav-dp",
        epsilon=epsilon,
        k=2,
        domains=DOMAINS,
        labels=np.arange(2 * clusters) // 2,
        noise=noise,
        clip=False,
        split="equal",
        **options,
    )
    wide = np.stack([release.aligned[name].to_numpy()[::2] for name in DOMAINS], axis=1)
    return 2 * (wide - np.array([50.0, 500.0]))


@pytest.mark.parametrize("optimise", ["variance", "interval"])
def test_the_noise_of_a_release_has_the_stated_scale(optimise: str) -> None:
    """A variance that is off by 10% is more than ten standard errors off."""
    drawn = noise_of("staircase", "2", optimise=optimise).var(axis=0)
    for found, width in zip(drawn, (100, 1000), strict=True):
        assert found == pytest.approx(LatticeStaircase.best(width, Fraction(1), optimise).variance, rel=0.1)
    together = noise_of("box", "2", optimise=optimise).var(axis=0)
    assert together == pytest.approx(
        np.array(LatticeBox.best((100, 1000), Fraction(2), optimise).variances), rel=0.1
    )
    assert (together < 0.6 * drawn).all()


def test_the_command_line_takes_noise_and_states_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csv.write_csv(table(), tmp_path / "in.csv")
    words = ["protect", str(tmp_path / "in.csv"), "--method", "mdav-dp", "--epsilon", "1", "--k", "5"]
    words += ["--domain", "a=0:100", "--domain", "b=0:1000", "--noise", "box", "--optimise", "interval"]
    assert run([*words, "--out", str(tmp_path / "out")]) == 0
    stated = json.loads((tmp_path / "out" / "statement.json").read_text())["settings"]
    assert (stated["noise"], stated["optimise"]) == ("box", "interval")
    again = ["protect", str(tmp_path / "in.csv"), "--config", str(tmp_path / "out" / "method.toml")]
    assert run([*again, "--out", str(tmp_path / "again")]) == 0
    assert json.loads((tmp_path / "again" / "statement.json").read_text())["settings"] == stated
    refused = [
        "--method",
        "ranking-dp",
        "--columns",
        "a",
        "--noise",
        "staircase",
        "--out",
        str(tmp_path / "no"),
    ]
    assert run(["protect", str(tmp_path / "in.csv"), "--epsilon", "1", "--domain", "a=0:100", *refused]) == 2
    assert not (tmp_path / "no").exists()
    assert "rank groups" in capsys.readouterr().err


def test_a_width_that_no_noise_can_cover_names_its_column() -> None:
    with pytest.raises(OptionError, match=r"column 'a'.*coarser step"):
        shoal.protect(
            pa.table({"a": [1, 2, 3, 4]}),
            method="mdav-dp",
            epsilon="1e-9",
            k=2,
            domains={"a": (0, 10**9)},
            noise="staircase",
        )
