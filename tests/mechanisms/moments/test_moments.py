"""Cross-moment releases: what is published, what it is drawn from, and how it depends on the options."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import stats

import shoal
from shoal.cli import run
from shoal.errors import OptionError
from shoal.io import read
from shoal.mechanisms.moments import mechanism
from shoal.mechanisms.moments.spectra import MomentPlan, Spectra, lattice_step
from shoal.mechanisms.registry import method_class, names
from shoal.noise import Seeded, round_up_scale
from shoal.release.protection import Preparation, prepare
from shoal.report.findings import of_bundle

NAMES = ("income", "tax", "rent")
DOMAINS = {"income": (0.0, 1000.0), "tax": (0.0, 400.0), "rent": (-50.0, 50.0)}
XM = tuple(name for name in names() if name.startswith("xm-"))
# false alarms: once in a thousand million runs
ALARM = 1e-9


def records(n: int = 120, seed: int = 3) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    income = np.clip(rng.lognormal(5, 0.7, n), 0, 1000)
    tax = np.clip(income * 0.3 + rng.normal(0, 20, n), 0, 400)
    rent = np.clip(rng.normal(0, 15, n), -50, 50)
    return np.rint(np.stack([income, tax, rent], axis=1)).astype(np.int64)


def table(n: int = 120, seed: int = 3) -> pa.Table:
    return pa.table(dict(zip(NAMES, records(n, seed).T, strict=True)))


def settings(name: str, **options: Any) -> dict[str, Any]:
    return options if name.startswith("xm-b") else {"epsilon": 1, **options}


def protect(name: str, data: pa.Table | None = None, **options: Any) -> shoal.Release:
    columns = options.get("columns", NAMES)
    domains = {column: DOMAINS[column] for column in columns}
    return shoal.protect(
        table() if data is None else data,
        method=name,
        **{"domains": domains, "k": 20, **settings(name, **options)},
    )


def ready(name: str, data: pa.Table | None = None, **options: Any) -> Preparation:
    return prepare(
        read(table() if data is None else data),
        method=name,
        seed=1,
        **{"domains": DOMAINS, "k": 20, **settings(name, **options)},
    )


def matrix(data: Any, columns: tuple[str, ...] = NAMES) -> NDArray[np.float64]:
    return np.stack([data[name].to_numpy() for name in columns], axis=1).astype(np.float64)


# ------------------------------------------------------------------ the grid


GRID = {
    "m": "0 1 1 1 1 1 1 2 2 2 2 2 2 1 1 1 2 2 2 0 1 1 1 2 2 2",
    "form": "- C C C C C C C C C C C C E E E E E E - C C C C C C",
    "partition": "M M M M M M M M M M M M M M M M M M M I I I I I I I",
    "masking": "- J J S S S S J J S S S S J S S J S S - J S S J S S",
    "entries": "- P V P P V V P V P P V V P P P P P P - V V V V V V",
    "strategy": "- - - 1 2 1 2 - - 1 2 1 2 - 1 2 - 1 2 - - 1 2 - 1 2",
}
WEIGHTS = {
    ("1", "1"): (0.5, 0.5),
    ("1", "2"): (0.75, 0.25),
    ("2", "1"): (0.5, 0.3, 0.2),
    ("2", "2"): (0.75, 0.15, 0.1),
}


@pytest.mark.parametrize("number", range(1, 27))
def test_presets_are_the_columns_of_figure_4(number: int) -> None:
    line = {what: text.split()[number - 1] for what, text in GRID.items()}
    method: Any = method_class(f"xm-{number}")
    assert method.moments == int(line["m"])
    assert method.partition == {"M": "mdav", "I": "ranking"}[line["partition"]]
    assert (method.form == "eigen") is (line["form"] == "E")
    assert (method.weights is not None) is (line["masking"] == "S")
    if method.moments:
        assert method.covariance == {"P": "all", "V": "variances"}[line["entries"]]
    # rows that are drawn from moments can be matched with records
    assert ("match" in method.parameters()) is (method.moments > 0)
    if method.weights is not None:
        assert tuple(map(float, method.weights)) == WEIGHTS[line["m"], line["strategy"]]


BASELINES = {"m": "0 1 1 2 2 0 1 2", "partition": "M M M M M I I I", "entries": "- P V P V - V V"}


@pytest.mark.parametrize("number", range(1, 9))
def test_baselines_are_the_columns_of_figure_5(number: int) -> None:
    line = {what: text.split()[number - 1] for what, text in BASELINES.items()}
    method: Any = method_class(f"xm-b{number}")
    assert method.moments == int(line["m"])
    assert method.partition == {"M": "mdav", "I": "ranking"}[line["partition"]]
    if method.moments:
        assert method.covariance == {"P": "all", "V": "variances"}[line["entries"]]
    statement = protect(method.name).statement
    assert statement.model == "none"
    assert not statement.publishable
    assert statement.epsilon is None


@pytest.mark.parametrize("name", XM)
def test_claims(name: str) -> None:
    number = name.removeprefix("xm-")
    eigen = {str(place) for place in range(14, 20)}
    expected = (
        "none"
        if number.startswith("b")
        else "idp-given-partition"
        if number in eigen
        else "dp-given-partition"
    )
    release = protect(name)
    assert release.statement.model == expected
    # one rank-grouped attribute is DP for its sums only: variances of several groups move at once
    alone = protect(name, columns=["tax"]).statement.model
    assert alone == ("dp" if number == "20" else expected)
    # no figure about records in what is published
    text = json.dumps(release.statement.to_dict())
    assert "scale" not in text.replace("The noise scale is computed from the actual records", "")


# ------------------------------------------------------------------ shares and noise


@pytest.mark.parametrize("name", [name for name in XM if not name.startswith("xm-b")])
def test_shares_add_up_to_epsilon(name: str) -> None:
    plan = ready(name).plan
    assert isinstance(plan, MomentPlan)
    assert plan.budgets is not None
    assert sum(plan.spending.values()) == 1
    assert sum(budget.epsilon for budget in plan.budgets.values()) == 1
    for budget in plan.budgets.values():
        assert budget.parts is None or sum(budget.parts) == budget.epsilon


def test_joint_masking_gives_every_statistic_the_same_share() -> None:
    plan = ready("xm-8").plan
    assert isinstance(plan, MomentPlan)
    assert plan.budgets is not None
    (budget,) = plan.budgets.values()
    assert budget.parts == (Fraction(3, 12), Fraction(6, 12), Fraction(3, 12))
    assert budget.means == (Fraction(1, 12),) * 3


def test_methods_3_and_6_are_one() -> None:
    """All shares are equal, so that the same seed gives the same release: they coincide in distribution."""
    for columns in (["income"], ["income", "tax"], list(NAMES)):
        three, six = (protect(name, seed=5, columns=columns) for name in ("xm-3", "xm-6"))
        assert three.data.equals(six.data)
        assert three.statistics.equals(six.statistics)
    assert not protect("xm-3", seed=5).data.equals(protect("xm-7", seed=5).data)


@pytest.mark.parametrize(("name", "other"), [("xm-1", "mdav-dp"), ("xm-20", "ranking-dp")])
def test_order_0_is_the_older_method_in_distribution(name: str, other: str) -> None:
    """The same clusters, and the same noise on every one: two samples of many runs each."""

    def sample(method: str, epsilon: str) -> NDArray[np.float64]:
        prepared = ready(method, epsilon=epsilon, clip=False, split="equal")
        run = prepared.method
        held = run.freeze(prepared.described, prepared.plan, lambda *_: None)
        source = Seeded(int(float(epsilon) * 100) + len(method))
        found = []
        for _ in range(100):
            account = run.account(prepared.plan, source)
            made = run.run_frozen(prepared.described, prepared.plan, account, lambda *_: None, held)
            found.append([made.values[column][::7] for column in NAMES])
        return np.array(found)

    mine, theirs, broken = sample(name, "1"), sample(other, "1"), sample(other, "1.3")
    for column in range(3):
        x, y, z = (part[:, column] for part in (mine, theirs, broken))
        centred = [part - np.median(theirs[:, column], axis=0) for part in (x, y, z)]
        assert stats.ks_2samp(centred[0].ravel()[::3], centred[1].ravel()[::3]).pvalue > ALARM
    spread = [np.abs(part - np.median(part, axis=0)).mean() for part in (mine, theirs, broken)]
    assert abs(spread[0] / spread[1] - 1) < 0.1 < spread[1] / spread[2] - 1
    prepared = [ready(method, split="equal") for method in (name, other)]
    labels = [
        [held.partition.labels for held in one.method.freeze(one.described, one.plan, lambda *_: None)]
        for one in prepared
    ]
    assert all(np.array_equal(x, y) for x, y in zip(*labels, strict=True))


@pytest.mark.parametrize("broken", [False, True])
def test_coefficients_carry_the_stated_noise(monkeypatch: pytest.MonkeyPatch, broken: bool) -> None:
    """Noisy minus exact covariances and coskewnesses, in units of their scale, are Laplace noise of scale 1."""
    if broken:
        monkeypatch.setattr(
            "shoal.noise.families.round_up_scale", lambda scale: round_up_scale(scale * Fraction(2, 3))
        )
    data = table(3_000)
    prepared = ready("xm-10", data, k=3, epsilon=2)
    (fixed,) = prepared.method.freeze(prepared.described, prepared.plan, lambda *_: None)
    (budget,) = prepared.plan.budgets.values()  # type: ignore[union-attr, attr-defined]
    group = next(
        iter(
            shoal.mechanisms.clusters.attribute_groups(
                (NAMES,), prepared.described, prepared.plan, None, lambda *_: None, {}
            )
        )
    )
    summary = budget.summary
    account = prepared.method.account(prepared.plan, Seeded(3))
    noisy = mechanism.mask(group, fixed, budget, summary, account, prepared.method)
    exact = mechanism.exact_statistics(group, mechanism.Centred.of(group.positions, fixed.partition), summary)
    sizes = fixed.partition.sizes[:, np.newaxis]
    assert set(sizes.ravel()) >= {3}
    upper = np.triu_indices(3)
    second = (noisy.covariances - exact.covariances)[:, *upper] * sizes * float(budget.parts[1] / 6)
    third = (noisy.coskewnesses - exact.coskewnesses) * sizes * float(budget.parts[2] / 3)
    third /= np.where(sizes == 3, 2, 1)
    pvalues = [stats.kstest(part.ravel(), "laplace").pvalue for part in (second, third)]
    assert bool(min(pvalues) < ALARM) is broken


def test_noise_of_the_eigen_form_follows_the_gaps() -> None:
    """More room between eigenvalues, less noise on eigenvectors."""
    rng = np.random.default_rng(1)
    bounds = []
    for narrow in (0.02, 1.0):
        data = pa.table(
            {
                "income": np.rint(rng.uniform(0, 1000, 400)).astype(np.int64),
                "tax": np.rint(200 + narrow * rng.uniform(-200, 200, 400)).astype(np.int64),
            }
        )
        prepared = prepare(
            read(data),
            method="xm-15",
            epsilon=1,
            k=400,
            seed=1,
            domains={c: DOMAINS[c] for c in ("income", "tax")},
        )
        (held,) = prepared.method.freeze(prepared.described, prepared.plan, lambda *_: None)
        bounds.append(held.spectra.covariance.vectors.max())
    assert bounds[0] < bounds[1]


@pytest.mark.parametrize("widths", [(2**30, 3 * 2**32), (1, 7, 2**40), (5,)])
@pytest.mark.parametrize("epsilon", ["1", "0.37"])
def test_scales_of_sums_masked_with_spectra_are_rounded_up_one_by_one(
    widths: tuple[int, ...], epsilon: str
) -> None:
    """Against fractions; the same whole numbers however they were found."""
    sizes = np.array([3, 20, 171])
    total = np.array([0.7, 1e-3, 4.25])
    spectra = Spectra(None, (), total, 6)  # type: ignore[arg-type]
    rounding = 6 * lattice_step(18, Fraction(epsilon))
    expected = [
        [
            round_up_scale((Fraction(one) + rounding) * int(size) * width / Fraction(epsilon))
            for width in widths
        ]
        for one, size in zip(total.tolist(), sizes, strict=True)
    ]
    found = spectra.sum_scales(widths, sizes, Fraction(epsilon))
    assert found.tolist() == expected
    assert (found.dtype == np.int64) is (widths[0] > 2**20)


# ------------------------------------------------------------------ published statistics


@pytest.mark.parametrize("name", ["xm-b2", "xm-b4"])
def test_statistics_without_noise_are_the_moments_of_the_clusters(name: str) -> None:
    more = {"coskewness": "full"} if name == "xm-b4" else {}
    # bounds written as whole numbers: no value is rounded
    whole = {column: (int(lo), int(hi)) for column, (lo, hi) in DOMAINS.items()}
    release = protect(name, domains=whole, **more)
    (partition,) = release.partition
    found = release.statistics
    assert found.num_rows == len(partition)
    assert sorted(found["size"].to_pylist()) == sorted(partition.sizes.tolist())
    expected = []
    for cluster in range(len(partition)):
        own = records()[partition.labels == cluster].astype(np.float64)
        row = [*own.mean(axis=0), *np.cov(own.T)[np.triu_indices(3)]]
        if name == "xm-b4":
            centred, n = own - own.mean(axis=0), len(own)
            whole = np.einsum("ni,nj,nl->ijl", centred, centred, centred) * n / ((n - 1) * (n - 2))
            row += [whole[a, b, c] for a in range(3) for b in range(a, 3) for c in range(b, 3)]
        expected.append(row)
    columns = [column for column in found.column_names if column not in ("columns", "size")]
    assert len(columns) == (9 if name == "xm-b2" else 19)
    values = matrix(found, tuple(columns))
    ordered = np.array(sorted(expected, key=lambda row: tuple(row[:3])))
    assert np.allclose(values, ordered, rtol=1e-9, atol=1e-6)
    if name == "xm-b4":
        # among them skewnesses that no skew-normal variable has: rows are drawn with less, statistics keep them
        assert release.internal["repairs"]["skewness beyond 0.995"] > 0
        assert release.internal["repairs"]["skewness above the largest possible"] == 0


def test_statistics_of_rank_groups_are_one_row_per_group_and_attribute() -> None:
    found = protect("xm-24").statistics
    assert found.num_rows == 18
    for name in NAMES:
        own = [place for place, text in enumerate(found["columns"].to_pylist()) if text == name]
        assert sum(found["size"].to_pylist()[place] for place in own) == 120
        means = found[f"mean of {name}"].to_numpy()
        assert np.isfinite(means[own]).all()
        assert np.isnan(np.delete(means, own)).all()
    assert f"coskewness of {NAMES[0]}, {NAMES[0]} and {NAMES[0]}" in found.column_names


@pytest.mark.parametrize("name", XM)
def test_statistics_are_possible_and_in_the_columns_units(name: str) -> None:
    found = protect(name, k=6, seed=2).statistics
    for column, (lo, hi) in DOMAINS.items():
        means = found[f"mean of {column}"].to_numpy()
        assert np.nanmin(means) >= lo
        assert np.nanmax(means) <= hi
        if method_class(name).moments:  # type: ignore[attr-defined]
            variances = found[f"variance of {column}"].to_numpy()
            assert np.nanmin(variances) >= 0
            # at most 6 records: 6/5 of a quarter of the width squared
            assert np.nanmax(variances) <= 0.3 * (hi - lo) ** 2 * (1 + 1e-9)


@pytest.mark.parametrize(("ending", "format"), [("parquet", "parquet"), ("csv", "csv"), ("csv", "stata")])
def test_statistics_go_into_the_bundle_when_asked_for(tmp_path: Path, ending: str, format: Any) -> None:
    release = protect("xm-8", seed=3)
    plain, asked = (
        release.save(tmp_path / name, format=format, statistics=name == "asked")
        for name in ("plain", "asked")
    )
    assert {path.name for path in asked.iterdir()} - {path.name for path in plain.iterdir()} == {
        f"statistics.{ending}"
    }
    found = read(asked / f"statistics.{ending}").frame.to_arrow()
    assert found.column_names == release.statistics.column_names
    assert np.allclose(matrix(found, ("size",)), matrix(release.statistics, ("size",)))
    assert np.allclose(matrix(found, ("variance of tax",)), matrix(release.statistics, ("variance of tax",)))
    # a bundle with them can still be read as a whole
    assert of_bundle(asked).columns == NAMES


def test_the_command_publishes_statistics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet.write_table(table(), tmp_path / "in.parquet")
    words = ["protect", str(tmp_path / "in.parquet"), "--epsilon", "1", "--k", "20", "--statistics"]
    for name, (lo, hi) in DOMAINS.items():
        words += ["--domain", f"{name}={lo}:{hi}"]
    # 22 looks at one column at a time, which need not be held in memory: statistics need all of them
    for method in ("xm-2", "xm-22"):
        assert run([*words, "--method", method, "--out", str(tmp_path / method)]) == 0
        found = parquet.read_table(tmp_path / method / "statistics.parquet")
        assert sum(found["size"].to_pylist()) == 120 * (1 if method == "xm-2" else 3)
        assert "statistics.parquet" in capsys.readouterr().out
    assert run([*words, "--method", "mdav-dp", "--out", str(tmp_path / "none")]) == 2
    assert "--statistics applies only to the xm-* methods" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_other_methods_have_no_statistics(tmp_path: Path) -> None:
    release = protect("mdav-dp")
    assert release.statistics is None
    with pytest.raises(OptionError, match="'mdav-dp' keeps no statistics"):
        release.save(tmp_path / "out", statistics=True)
    assert not (tmp_path / "out").exists()
    assert shoal.evaluate(table(), release).matching is None


# ------------------------------------------------------------------ rows


@pytest.mark.parametrize("name", ["xm-b2", "xm-b3", "xm-b4", "xm-b5", "xm-b7"])
def test_rows_have_the_moments_of_their_cluster(name: str) -> None:
    """One large cluster far from the ends of the domain, so that nothing is clipped."""
    rng = np.random.default_rng(4)
    n = 20_000
    base = rng.normal(size=(n, 2)) @ np.array([[1.0, 0.7], [0.0, 0.7]])
    data = pa.table(
        {
            "income": np.rint(500 + 40 * base[:, 0]).astype(np.int64),
            "tax": np.rint(200 + 10 * base[:, 1]).astype(np.int64),
        }
    )
    drawn = matrix(protect(name, data, columns=["income", "tax"], k=n, seed=3).aligned, ("income", "tax"))
    original = matrix(data, ("income", "tax"))
    deviation = original.std(axis=0)
    assert np.abs((drawn.mean(axis=0) - original.mean(axis=0)) / deviation).max() < 6 / np.sqrt(n)
    assert np.abs(drawn.var(axis=0) / original.var(axis=0) - 1).max() < 9 / np.sqrt(n)
    together = method_class(name).covariance == "all"  # type: ignore[attr-defined]
    correlation = np.corrcoef(original.T)[0, 1] if together else 0.0
    assert abs(np.corrcoef(drawn.T)[0, 1] - correlation) < 6 / np.sqrt(n)


@pytest.mark.parametrize("name", ["xm-2", "xm-9", "xm-15", "xm-21", "xm-b4"])
def test_matching_changes_what_is_measured_and_never_what_is_released(name: str) -> None:
    original = matrix(table())
    found = {match: protect(name, seed=9, match=match) for match in ("none", "rank", "assignment")}
    errors = {match: ((matrix(release.aligned) - original) ** 2).sum() for match, release in found.items()}
    assert found["none"].data.equals(found["rank"].data)
    assert found["none"].data.equals(found["assignment"].data)
    assert errors["rank"] <= errors["assignment"] <= errors["none"]
    assert errors["rank"] < errors["none"]
    for match, release in found.items():
        measured = shoal.evaluate(table(), release)
        assert measured.to_dict()["matching"] == match
        assert f"match={match}" in str(measured.table().caption)
    partition = found["none"].partition[0]
    for match in ("rank", "assignment"):
        for place, column in enumerate(NAMES[: len(partition.columns)]):
            for cluster in range(len(partition)):
                here = partition.labels == cluster
                both = [np.sort(matrix(found[one].aligned)[here, place]) for one in ("none", match)]
                assert np.array_equal(*both), column


@pytest.mark.parametrize("name", ["xm-21", "xm-26", "xm-20"])
def test_rows_made_in_parts_are_those_of_memory(name: str, tmp_path: Path) -> None:
    parquet.write_table(table(), tmp_path / "in.parquet")
    arguments: dict[str, Any] = {"method": name, "epsilon": 1, "k": 20, "domains": DOMAINS}
    shoal.publish(tmp_path / "in.parquet", out=tmp_path / "out", engine="local", seed=4, **arguments)
    whole = shoal.protect(table(), seed=4, **arguments)
    order = [(column, "ascending") for column in whole.data.column_names]
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert written.sort_by(order).equals(whole.data.sort_by(order))


# ------------------------------------------------------------------ partitions, options, reports


@pytest.mark.parametrize("partition", ["mdav", "vmdav", "ranking", "optimal", "insensitive"])
@pytest.mark.parametrize("name", ["xm-2", "xm-8", "xm-15", "xm-24", "xm-b5"])
def test_every_partition_carries_moments(name: str, partition: str) -> None:
    release = protect(name, partition=partition, seed=1)
    each = partition in ("ranking", "optimal")
    assert len(release.partition) == (3 if each else 1)
    assert all(made.sizes.min() >= 20 for made in release.partition)
    assert sum(made.sizes.sum() for made in release.partition) == 120 * len(release.partition)
    assert len(release.statistics) == sum(len(made) for made in release.partition)


@pytest.mark.parametrize(("name", "rebuild"), [("xm-1", "centroid"), ("xm-2", "normal"), ("xm-22", "normal")])
def test_a_private_tree_carries_means_and_variances(name: str, rebuild: str) -> None:
    asked = shoal.protect(table(), method=name, epsilon=1, partition="tree", domains=DOMAINS, seed=1)
    tree = shoal.protect(table(), method="tree-dp", epsilon=1, rebuild=rebuild, domains=DOMAINS, seed=1)
    assert asked.statement == tree.statement
    assert asked.statement.model == "dp"
    assert asked.data.equals(tree.data)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("xm-8", {}, "'xm-8' does not support partition=tree, .* variances"),
        ("xm-14", {}, "'xm-14' does not support partition=tree"),
        ("xm-b2", {}, "'xm-b2' does not support partition=tree"),
        ("xm-2", {"k": 20}, "no k: .* Leave k out"),
        ("xm-2", {"weights": [1, 1]}, "'tree-dp' has no option 'weights'"),
    ],
)
def test_what_a_private_tree_cannot_carry_is_refused(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        shoal.protect(table(), method=name, epsilon=1, partition="tree", domains=DOMAINS, **options)


def test_given_clusters_and_groups() -> None:
    labels = np.arange(120) // 30
    release = protect("xm-8", labels=labels, seed=1)
    assert np.array_equal(release.partition[0].labels, labels)
    grouped = protect("xm-8", groups=[["income", "tax"], ["rent"]], seed=1)
    assert [made.columns for made in grouped.partition] == [("income", "tax"), ("rent",)]
    assert "covariance of income and tax" in grouped.statistics.column_names
    assert "covariance of income and rent" not in grouped.statistics.column_names
    shares = grouped.statement.epsilon_per_attribute
    assert shares == {"income": Fraction(2, 3), "tax": Fraction(2, 3), "rent": Fraction(1, 3)}


def test_a_cluster_smaller_than_its_moments_need_is_refused() -> None:
    with pytest.raises(OptionError, match="needs k of at least 3, got 2"):
        protect("xm-8", k=2)
    with pytest.raises(OptionError, match="needs k of at least 2, got 1"):
        protect("xm-2", k=1)
    assert protect("xm-1", k=1).statement.model == "dp"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("xm-4", {"weights": [1, 2, 3]}, "one entry for each of means, covariances, got 3"),
        ("xm-4", {"weights": [1, 0]}, "every weight must be above 0"),
        ("xm-4", {"weights": "half"}, "weights must be a list"),
        ("xm-2", {"weights": [1, 1]}, "has no option 'weights'"),
        ("xm-2", {"noise": "box"}, "noise 'box' supports cluster sums only"),
        ("xm-14", {"noise": "staircase"}, "has no option 'noise'"),
        ("xm-2", {"match": "best"}, "match 'best' is not one of none, rank, assignment"),
        ("xm-2", {"partition": "boxes"}, "partition 'boxes' is not one of mdav"),
        ("xm-b1", {"epsilon": 1}, "has no option 'epsilon'"),
    ],
)
def test_options_that_do_not_fit(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        protect(name, **options)


def test_weights_are_what_the_statement_says_and_a_recipe_repeats() -> None:
    release = protect("xm-10", weights=[2, 1, 1], seed=1)
    assert list(release.statement.spending.values()) == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    assert release.statement.settings["weights"] == [2.0, 1.0, 1.0]


def test_repairs_are_counted_for_the_internal_report_only(tmp_path: Path) -> None:
    release = protect("xm-8", epsilon="0.01", seed=1)
    repairs = release.internal["repairs"]
    assert repairs["variances below 0"] > 0
    assert repairs["means outside the domain"] > 0
    folder = release.save(tmp_path / "out", internal=tmp_path / "internal.html")
    for path in folder.iterdir():
        assert b"covariance matrices that are none" not in path.read_bytes()
    assert "Repaired: covariance matrices that are none" in (tmp_path / "internal.html").read_text("utf-8")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_statistics_come_in_the_callers_library(library: str) -> None:
    data = table().to_pandas()
    if library == "polars":
        import polars as pl

        data = pl.from_arrow(table())
    release = protect("xm-2", data, seed=1)
    assert type(release.statistics) is type(data)
    assert len(release.statistics) == len(release.partition[0])
