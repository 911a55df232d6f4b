"""Every method on clusters spends exactly what its plan reserves, and cannot draw noise without a charge."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
import shoal.mechanisms.insensitive as insensitive
import shoal.mechanisms.moments.mechanism as masking
import shoal.mechanisms.moments.spectra as spectra
from shoal.errors import ShoalError
from shoal.io import read
from shoal.io.binary_files import frozen
from shoal.mechanisms.method import Method
from shoal.mechanisms.moments.spectra import Spectrum
from shoal.mechanisms.registry import method_class, names
from shoal.noise import Seeded
from shoal.privacy import Accountant, OverspendError, Parallel
from shoal.progress import silent
from shoal.release.in_parts.run import table_elsewhere, write_release
from shoal.release.protection import Preparation, prepare
from tests.conftest import examples
from tests.support.presets import SAMPLE, sampled

CLUSTERS = ("laplace", "mdav-dp", "ranking-dp", "optimal-dp", "idp-ls", "idp-cbls", "insensitive-dp")
MOMENTS = tuple(name for name in names() if name.startswith("xm-"))
COLUMNS: dict[str, dict[str, Any]] = {
    "whole": {"lo": 0, "hi": 10},
    "half": {"lo": -1, "hi": 4, "step": 0.5},
    "wide": {"lo": 0, "hi": 1000},
    "level": {"kind": "ordinal", "ordered": ["low", "middle", "high"]},
    "job": {"kind": "nominal", "values": ["clerk", "cook", "fisher"]},
    "answer": {"lo": 0, "hi": 10, "step": 1, "missing": "category"},
}


def table(rng: np.random.Generator, n: int) -> pa.Table:
    drawn = {
        "whole": rng.integers(0, 11, n),
        "half": rng.integers(-2, 9, n) / 2,
        "wide": rng.integers(0, 1001, n),
        "level": rng.choice(["low", "middle", "high"], n),
        "job": rng.choice(["clerk", "cook", "fisher"], n),
        "answer": pa.array([None if value > 8 else int(value) for value in rng.integers(0, 11, n)]),
        "region": rng.choice(["north", "south"], n),
    }
    return pa.table(drawn)


# ways to ask for a method, of which one is drawn for each option; None leaves it out
OPTIONS: dict[str, list[Any]] = {
    "k": [None, 1, 2, 3, 5, 9],
    "split": [None, "proportional", "optimal"],
    "noise": [None, "staircase", "box"],
    "partition": [None, "mdav", "vmdav", "ranking", "optimal", "insensitive"],
    "link": [None, False],
    "strata": [None, None, ("region",)],
    "groups": [None, "halves"],
    "order": [None, "single"],
    "composition": [None, "strict", "parallel"],
    "clip": [None, False],
    "generalise": [None, True],
    "normalise": [None, "zscore"],
    "floor": [None, 1],
    "coskewness": [None, "full"],
    "match": [None, "rank"],
}


def asked(name: str, rng: np.random.Generator, columns: list[str]) -> dict[str, Any]:
    """Options of a method, drawn: those that do not fit together are refused before a run."""
    known = method_class(name).parameters()
    found: dict[str, Any] = {"epsilon": Fraction(int(rng.integers(1, 9)), 4)} if "epsilon" in known else {}
    for option, values in OPTIONS.items():
        value = values[int(rng.integers(len(values)))]
        if option in known and value is not None:
            found[option] = value
    if found.pop("groups", None) and len(columns) > 1:
        found["groups"] = [columns[:1], columns[1:]]
    return found


def world(name: str, rng: np.random.Generator) -> Preparation | None:
    """A prepared release of a tiny table; None where what was drawn does not fit together."""
    kinds = method_class(name).kinds
    known = [
        column
        for column, facts in COLUMNS.items()
        if facts.get("kind", "numeric") in kinds and ("missing" not in facts or name == "laplace")
    ]
    chosen = [str(column) for column in rng.permutation(known)[: rng.integers(1, 4)]]
    schema = shoal.Schema.from_dict({"attribute": [{"name": column, **COLUMNS[column]} for column in chosen]})
    data = read(table(rng, int(rng.integers(3, 31))))
    try:
        return prepare(data, schema, name, seed=1, **asked(name, rng, chosen))
    except ShoalError:
        return None


def worlds(name: str, number: int, tries: int = 1000) -> list[Preparation]:
    rng = np.random.default_rng([7, *name.encode()])
    drawn = (world(name, rng) for _ in range(tries))
    found = [one for _, one in zip(range(number), filter(None, drawn), strict=False)]
    assert len(found) == number
    return found


def spent(account: Accountant, prepared: Preparation) -> None:
    method, plan = prepared.method, prepared.plan
    assert account.unspent() == {}
    assert account.spent() == sum(plan.spending.values())
    assert account.spent() == (method.epsilon if prepared.statement.model != "none" else 0)
    assert {charge.purpose for charge in account.charges} == set(plan.spending)
    assert all(charge.over for charge in account.charges)


@pytest.mark.parametrize("name", sampled([*CLUSTERS, *MOMENTS]))
def test_a_run_spends_what_was_reserved(name: str) -> None:
    """In the table itself, and with clusters that were made before."""
    touched = set()
    for prepared in worlds(name, examples(60 if name in CLUSTERS else 16)):
        method, described, plan = prepared.method, prepared.described, prepared.plan
        account = prepared.account()
        method.run(described, plan, account, silent)
        spent(account, prepared)
        again = prepared.account()
        method.run_frozen(described, plan, again, silent, method.freeze(described, plan, silent))
        spent(again, prepared)
        assert again.charges == account.charges
        touched |= {charge.touched for charge in account.charges}
    if name in CLUSTERS:
        assert (max(touched) > 1) is (name == "insensitive-dp")


@pytest.mark.parametrize("presets", [MOMENTS, SAMPLE], ids=["all", "quick"])
def test_the_grid_of_moments_is_run_along_every_axis(presets: tuple[str, ...]) -> None:
    """All of them are run above, the sample of quick runs too has whatever they differ in."""
    grid: set[tuple[Any, ...]] = set()
    for name in presets:
        cls: Any = method_class(name)
        grid.add(
            (cls.moments, cls.form, cls.partition, cls.weights is not None, cls.covariance, cls.sensitivity)
        )
    axes = [{line[axis] for line in grid} for axis in range(6)]
    assert axes == [
        {0, 1, 2},
        {"coefficients", "eigen"},
        {"mdav", "ranking"},
        {False, True},
        {"all", "variances"},
        {"global", "local", "none"},
    ]
    assert len(MOMENTS) == 34


def charges(name: str, columns: list[str], **options: Any) -> list[tuple[str, Fraction, str, int]]:
    prepared = ready(name, columns, **options)
    account = prepared.account()
    prepared.method.run(prepared.described, prepared.plan, account, silent)
    return [(one.what, one.amount, one.over, one.touched) for one in account.charges]


def ready(name: str, columns: list[str], **options: Any) -> Preparation:
    schema = shoal.Schema.from_dict(
        {"attribute": [{"name": column, **COLUMNS[column]} for column in columns]}
    )
    data = read(table(np.random.default_rng(5), 30))
    return prepare(data, schema, name, seed=1, **{"epsilon": 1, **options})


def test_every_cluster_that_one_record_can_change_is_paid_for() -> None:
    assert charges("insensitive-dp", ["whole", "job"], k=6) == [
        ("cluster sums of whole", Fraction(1, 10), "clusters", 5),
        ("cluster concepts of job", Fraction(1, 10), "clusters", 5),
    ]
    assert charges("insensitive-dp", ["whole", "half"], k=6, noise="box") == [
        ("cluster sums of whole, half together", Fraction(1, 5), "clusters", 5)
    ]


def test_spends_of_sums_concepts_and_gaps_have_their_names() -> None:
    assert charges("laplace", ["answer", "job"]) == [
        ("cluster sums of answer", Fraction(1, 4), "clusters", 1),
        ("cluster concepts of job", Fraction(1, 2), "clusters", 1),
        ("whether answer is missing", Fraction(1, 4), "rows", 1),
    ]


def test_spends_of_moments_have_their_names() -> None:
    """Means by column, entries with the number that one record can change, eigenvalues and eigenvectors."""
    means = [
        ("means of whole", Fraction(1, 10), "clusters", 1),
        ("means of half", Fraction(1, 10), "clusters", 1),
    ]
    assert charges("xm-2", ["whole", "half"], k=15, split="equal") == [
        *((what, Fraction(1, 5), over, 1) for what, _, over, _ in means),
        ("covariances of the clusters of whole, half", Fraction(1, 5), "entries of clusters", 3),
    ]
    # eigenvalues and eigenvectors masked together: their proportions follow from the records
    assert charges("xm-14", ["whole", "half"], k=15) == [
        ("all statistics of the clusters of whole, half, together", Fraction(1), "clusters", 1)
    ]
    of, slices = "covariances of the clusters of whole, half", "coskewnesses of the clusters of whole, half"
    found = charges("xm-18", ["whole", "half"], k=15, coskewness="full", weights=["0.2", "0.4", "0.4"])
    assert found == [
        *means,
        (f"eigenvalues of the {of}", Fraction(1, 5), "clusters", 1),
        (f"eigenvector 1 of the {of}", Fraction(1, 10), "clusters", 1),
        (f"eigenvector 2 of the {of}", Fraction(1, 10), "clusters", 1),
        *(
            (f"{what} of the {slices}, slice of {column}", amount, "clusters", 1)
            for column, (what, amount) in product(
                ("whole", "half"),
                (
                    ("eigenvalues", Fraction(1, 10)),
                    ("eigenvector 1", Fraction(1, 20)),
                    ("eigenvector 2", Fraction(1, 20)),
                ),
            )
        ),
    ]


@pytest.mark.parametrize(
    ("name", "options"), [("xm-b2", {}), ("xm-b8", {}), ("insensitive-dp", {"composition": "parallel"})]
)
def test_what_claims_nothing_reserves_and_spends_nothing(name: str, options: dict[str, Any]) -> None:
    epsilon = {} if name == "insensitive-dp" else {"epsilon": None}
    prepared = ready(name, ["whole", "half"], **{"k": 6, **options, **epsilon})
    assert prepared.plan.spending == {}
    account = prepared.account()
    prepared.method.run(prepared.described, prepared.plan, account, silent)
    assert account.charges == []
    assert set(account.uses) == {
        "as published, no claim" if name == "insensitive-dp" else "rows from noisy moments"
    }


# ------------------------------------------------------------------ planted faults


class Untouched(Seeded):
    """A source that nothing may be drawn from."""

    def words(self, count: int) -> Any:
        pytest.fail("noise was drawn before it was paid for")


def every_attribute_gets_everything(prepared: Preparation, patch: pytest.MonkeyPatch) -> Preparation:
    shares = dict.fromkeys(prepared.described.columns, prepared.method.budget)
    return replace(prepared, plan=replace(prepared.plan, shares=shares))


def every_cluster_gets_everything(prepared: Preparation, patch: pytest.MonkeyPatch) -> Preparation:
    patch.setattr(insensitive, "_per_cluster", lambda method, described, plan: plan)
    return prepared


def every_entry_gets_everything(prepared: Preparation, patch: pytest.MonkeyPatch) -> Preparation:
    patch.setattr(
        masking,
        "_entries",
        lambda account, purpose, part, entries: account.spend(purpose, part, touched=entries),
    )
    patch.setattr(masking, "_sum_noise", lambda steps, spends, clusters, method: 0)
    return prepared


def eigenvectors_get_what_eigenvalues_have(prepared: Preparation, patch: pytest.MonkeyPatch) -> Preparation:
    patch.setattr(spectra._Halves, "vector", lambda self, place, number: self.values())
    patch.setattr(masking, "_sum_noise", lambda steps, spends, clusters, method: 0)
    patch.setattr(Spectrum, "randomly_signed", lambda self, source: self)
    drawn: list[int] = []

    def block(values: Any, change: Any, most: int, share: Fraction, source: Any) -> Any:
        drawn.append(1)
        assert len(drawn) <= 2, "the second eigenvector was masked with what nobody has paid for"
        return values

    patch.setattr(spectra, "mask_block", block)
    return prepared


def a_purpose_that_was_not_reserved(prepared: Preparation, patch: pytest.MonkeyPatch) -> Preparation:
    spending = {f"{purpose}?": share for purpose, share in prepared.plan.spending.items()}
    return replace(prepared, plan=replace(prepared.plan, spending=spending))


FAULTS: list[tuple[str, dict[str, Any], Any]] = [
    ("laplace", {}, every_attribute_gets_everything),
    ("mdav-dp", {"k": 5}, every_attribute_gets_everything),
    ("ranking-dp", {"k": 5}, every_attribute_gets_everything),
    ("optimal-dp", {}, every_attribute_gets_everything),
    ("idp-ls", {"k": 5}, every_attribute_gets_everything),
    ("insensitive-dp", {"k": 5}, every_attribute_gets_everything),
    ("insensitive-dp", {"k": 5}, every_cluster_gets_everything),
    ("insensitive-dp", {"k": 5, "noise": "box"}, every_cluster_gets_everything),
    ("xm-2", {"k": 5}, every_entry_gets_everything),
    ("xm-15", {"k": 5}, eigenvectors_get_what_eigenvalues_have),
    ("mdav-dp", {"k": 5}, a_purpose_that_was_not_reserved),
    ("xm-14", {"k": 5}, a_purpose_that_was_not_reserved),
    ("xm-10", {"k": 5}, a_purpose_that_was_not_reserved),
]


@pytest.mark.parametrize(("name", "options", "plant"), FAULTS[::4])
def test_the_same_without_a_fault_draws_noise(name: str, options: dict[str, Any], plant: Any) -> None:
    prepared = ready(name, ["whole", "wide"], **options)
    account = prepared.method.account(prepared.plan, Untouched(1))
    with pytest.raises(pytest.fail.Exception, match="before it was paid for"):
        prepared.method.run(prepared.described, prepared.plan, account, silent)


@pytest.mark.parametrize(
    ("name", "options", "plant"), FAULTS, ids=[f"{name} {plant.__name__}" for name, _, plant in FAULTS]
)
def test_a_planted_fault_is_stopped_before_noise_is_drawn(
    name: str, options: dict[str, Any], plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = plant(ready(name, ["whole", "wide"], **options), monkeypatch)
    account = prepared.method.account(prepared.plan, Untouched(1))
    with pytest.raises(OverspendError):
        prepared.method.run(prepared.described, prepared.plan, account, silent)


# ------------------------------------------------------------------ engines


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("laplace", {}),
        ("mdav-dp", {"k": 1, "noise": "box"}),
        ("ranking-dp", {"k": 4}),
        ("ranking-dp", {"k": 4, "noise": "box"}),
        ("optimal-dp", {}),
        ("idp-cbls", {"k": 5}),
        ("xm-20", {"k": 5}),
        ("xm-25", {"k": 5}),
        ("xm-15", {"k": 5, "partition": "ranking"}),
        ("xm-b6", {"k": 5, "epsilon": None}),
    ],
)
def test_a_run_on_an_engine_spends_what_was_reserved(
    name: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the program that asks, and in every task that works on a batch of records."""
    from shoal.engines import runner

    accounts: list[Accountant] = []
    parts: list[Accountant] = []
    honest, part = Method.account, Parallel.part

    def kept(*arguments: Any) -> Accountant:
        accounts.append(honest(*arguments))
        return accounts[-1]

    def kept_part(*arguments: Any) -> Accountant:
        parts.append(part(*arguments))
        return parts[-1]

    monkeypatch.setattr(Method, "account", kept)
    monkeypatch.setattr(Parallel, "part", kept_part)
    nominal = "nominal" in method_class(name).kinds and options.get("noise") != "box"
    columns = ["whole", "wide", *(["job"] if nominal else []), *(["answer"] if name == "laplace" else [])]
    parquet.write_table(table(np.random.default_rng(5), 40), tmp_path / "in.parquet", row_group_size=10)
    runner = runner.LocalRunner(frozen(tmp_path / "in.parquet"))
    schema = shoal.Schema.from_dict(
        {"attribute": [{"name": column, **COLUMNS[column]} for column in columns]}
    )
    prepared = prepare(table_elsewhere(runner, counted=True), schema, name, **{"epsilon": 1, **options})
    with runner.working_in(tmp_path / "work"):
        write_release(prepared, runner, tmp_path, silent)
    (account,) = accounts
    spent(account, prepared)
    assert bool(parts) is (prepared.method.in_parts == "by_record")
    for one in parts:
        assert one.unspent() == {}
        assert one.spent() == account.spent()
        assert one.charges
