"""Stages from outside the package: what they may claim, and that they pass what every part of Shoal passes."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_conformance as conformance
from registries import forgotten_afterwards

import shoal
from shoal.errors import ClaimError, OptionError
from shoal.evaluation import measures
from shoal.extend import (
    Measure,
    Pair,
    Section,
    pairs,
    register_measure,
    register_mechanism,
    register_noise,
    register_partition,
    register_preset,
    register_section,
)
from shoal.mechanisms.clusters import CLUSTERS
from shoal.method import presets, stages
from shoal.method.claims import Case, Claim
from shoal.noise import Source, discrete_laplace, families
from shoal.noise.families import NoiseFamily, laplace_scale
from shoal.partition import Partition
from shoal.report import bundle_report

WHO = "the tests"


@pytest.fixture(autouse=True)
def _forgotten_afterwards() -> Iterator[None]:
    with forgotten_afterwards():
        yield


def double_scale(steps: int, epsilon: Fraction) -> Fraction:
    return 2 * laplace_scale(steps, epsilon)


def double(steps: tuple[int, ...], epsilon: Fraction, n: int, optimise: str, source: Source) -> Any:
    return discrete_laplace(double_scale(sum(steps), epsilon), (n, len(steps)), source)


# Laplace noise of twice the scale that is needed
DOUBLE = NoiseFamily("twice as much", double, lambda steps, epsilon: None, blockwise=False)


def loss_of_laplace(scale: Callable[[int, Fraction], Fraction]) -> Callable[[Pair], Fraction]:
    """What Laplace noise of a scale on every value loses: |change| / scale, over all values."""

    def lost(pair: Pair) -> Fraction:
        return sum(
            (
                Fraction(abs(one - other)) / scale(width, pair.share)
                for name, width in pair.widths.items()
                for one, other in zip(pair.before[name], pair.after[name], strict=True)
            ),
            Fraction(0),
        )

    return lost


def toy(name: str = "toy-dp", **changes: Any) -> Any:
    return replace(
        presets.PRESETS["ranking-dp"], name=name, paper="none", about="a method for tests", **changes
    )


def released(method: str, **options: Any) -> shoal.Release:
    data = conformance.frame(conformance.people(), "pyarrow")
    return shoal.protect(data, conformance.schema(), method, **{"epsilon": "1", "k": 5, **options})


def test_pairs_differ_in_one_record_at_most_and_are_always_the_same() -> None:
    found = list(pairs())
    assert found == list(pairs())
    assert len(found) == 200
    for pair in found:
        rows = {
            place
            for name in pair.before
            for place, (one, other) in enumerate(zip(pair.before[name], pair.after[name], strict=True))
            if one != other
        }
        assert len(rows) <= 1
        assert all(0 <= value <= pair.widths[name] for name in pair.after for value in pair.after[name])
    assert {pair.k for pair in pairs(1)} == {1}


def test_without_accounting_nothing_is_promised() -> None:
    register_noise("double", DOUBLE, who=WHO)
    found = released("ranking-dp", noise="double", columns=["age"]).statement
    assert (found.model, found.publishable) == ("none", False)
    register_preset(toy(noise="double"))
    (info,) = [info for info in shoal.methods() if info.name == "toy-dp"]
    assert info.claim == "none"


def test_with_accounting_that_passes_the_claim_is_that_of_who_brought_it() -> None:
    register_noise("double", DOUBLE, who=WHO, accounting=loss_of_laplace(double_scale))
    found = released("ranking-dp", noise="double", columns=["age"]).statement
    assert (found.model, found.publishable) == ("dp", True)
    (said,) = [line for line in found.conditions if "no part of Shoal" in line]
    assert said.startswith("The noise 'double' is no part of Shoal but of the tests, whose claim this is;")
    assert "200 pairs" in said
    assert not any("no part of Shoal" in line for line in released("ranking-dp").statement.conditions)


@pytest.mark.parametrize(
    ("accounting", "words"),
    [
        (loss_of_laplace(lambda steps, epsilon: laplace_scale(steps, epsilon) / 2), "can be lost between"),
        (lambda pair: float("nan"), "nan of"),
        (lambda pair: True and "nothing", "nothing of"),
        (lambda pair: 0, "looks at no release"),
    ],
    ids=["too much", "no number", "no number either", "never anything"],
)
def test_accounting_that_does_not_pass_registers_nothing(accounting: Any, words: str) -> None:
    with pytest.raises(ClaimError, match=words):
        register_noise("half", DOUBLE, who=WHO, accounting=accounting)
    assert "half" not in families.NOISES


def test_names_are_taken_once() -> None:
    register_noise("double", DOUBLE, who=WHO)
    register_preset(toy(noise="double"))
    for again in (
        lambda: register_noise("laplace", DOUBLE, who=WHO),
        lambda: register_noise("double", DOUBLE, who=WHO),
        lambda: register_partition("mdav", stages.PARTITIONS["mdav"], who=WHO),
        lambda: register_mechanism("tree", CLUSTERS, Claim(()), who=WHO),
        lambda: register_preset(toy()),
        lambda: register_measure(replace(measures.MEASURES["sse"], compute=lambda columns, matched: 1.0)),
    ):
        with pytest.raises(OptionError, match="already"):
            again()


@pytest.mark.parametrize(
    "changes", [{"mechanism": "none"}, {"partition": "pairs"}, {"noise": "loud"}, {"adjustable": ("depht",)}]
)
def test_a_preset_is_made_of_known_parts(changes: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="register it first"):
        register_preset(toy(**changes))


def test_a_partition_and_a_mechanism_from_outside() -> None:
    def halves(group: Any, method: Any) -> Partition:
        return Partition.from_labels((np.arange(group.n) >= group.n // 2).astype(np.int64))

    stage = stages.PartitionStage("data", "two halves", halves, columnwise=True)
    claim = Claim((Case("dp", "what the tests say"),))
    register_partition("halves", stage, who=WHO)
    register_preset(toy("halves-dp", partition="halves"))
    assert released("halves-dp").statement.model == "none"
    register_mechanism("quiet", CLUSTERS, claim, who=WHO)
    register_preset(toy("quiet-dp", mechanism="quiet"))
    assert released("quiet-dp").statement.model == "none"
    register_mechanism(
        "loud", CLUSTERS, claim, who=WHO, accounting=lambda pair: pair.epsilon if pair.k == 1 else 0
    )
    register_preset(toy("loud-dp", mechanism="loud"))
    found = released("loud-dp").statement
    assert found.model == "dp"
    assert any("The mechanism 'loud' is no part of Shoal" in line for line in found.conditions)


def medians(columns: Any, matched: bool) -> float | None:
    moved = [
        abs(float(np.nanmedian(column.after) - np.nanmedian(column.before)))
        for column in columns
        if column.kind == "numeric"
    ]
    return max(moved) if moved else None


MEDIAN = Measure(
    "median_shift",
    "utility",
    "median shift",
    "low",
    "largest shift of a median",
    ranked="largest shift of a median",
    compute=medians,
)


def test_a_measure_from_outside_is_measured_listed_and_ranked_by() -> None:
    from rich.console import Console

    from shoal.report.measures import measure_lines

    register_measure(MEDIAN)
    data = conformance.frame(conformance.people(), "pyarrow")
    release = released("ranking-dp", seed=1)
    found = shoal.evaluate(data, release)
    assert found.utility["median_shift"] > 0
    console = Console(record=True, width=100, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(found)
    assert "largest shift of a median" in console.export_text()
    assert "median_shift" in dict(measure_lines(found.to_dict()["utility"]))
    tuning = shoal.tune(
        data,
        conformance.schema(),
        epsilon="1",
        methods=["ranking-dp"],
        ks=[3, 10],
        seeds=2,
        utility="median_shift",
        workers=1,
    )
    assert tuning.utility == "median_shift"
    assert "largest shift of a median" in tuning.why
    with pytest.raises(OptionError, match=r"one of .*median_shift"):
        shoal.tune(data, conformance.schema(), epsilon="1", utility="median_shft")


def test_a_measure_needs_a_function() -> None:
    with pytest.raises(OptionError, match="compute="):
        register_measure(replace(MEDIAN, compute=None))


def test_a_section_of_the_report_from_outside_is_on_the_page_and_in_its_contents(tmp_path: Path) -> None:
    register_section(
        Section(
            "rows",
            "How many",
            lambda page: {"counted": page.subject.table.n},
            lambda values: not values["private"],
            '<h2 id="rows">How many</h2>\n<p>{{ counted }} rows of {{ statement.method }} &amp; {{ "<b>" }}</p>',
        )
    )
    folder = released("ranking-dp", seed=1).save(tmp_path / "bundle")
    page = bundle_report(folder)
    assert '<li><a href="#rows">How many</a></li>' in page
    assert '<h2 id="rows">How many</h2>\n<p>60 rows of ranking-dp &amp; &lt;b&gt;</p>' in page
    assert page.index('<h2 id="rows">') < page.index('<h2 id="recipe">')
    assert "How many" not in bundle_report(folder, conformance.frame(conformance.people(), "pyarrow"))
    for other, words in ((Section("risk", "Risk", text="x"), "already"), (Section("new", "New"), "text=")):
        with pytest.raises(OptionError, match=words):
            register_section(other)


SUITE = {name: test for name, test in vars(conformance).items() if name.startswith("test_")}


@pytest.mark.parametrize("test", SUITE.values(), ids=SUITE)
def test_the_conformance_suite_passes_for_a_preset_with_its_own_noise(
    test: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_noise("double", DOUBLE, who=WHO, accounting=loss_of_laplace(double_scale))
    register_measure(MEDIAN)
    register_preset(toy(noise="double"))
    info = next(info for info in shoal.methods() if info.name == "toy-dp")
    monkeypatch.setitem(conformance.METHODS, "toy-dp", info)
    given: dict[str, list[Any]] = {
        "name": ["toy-dp"],
        "library": list(conformance.LIBRARIES),
        "columns": [conformance.PEOPLE_COLUMNS, conformance.PEOPLE_COLUMNS[1:2]],
        "seed": [None, 3],
        "tmp_path": [tmp_path],
    }
    wanted = list(inspect.signature(test).parameters)
    for number, values in enumerate(itertools.product(*(given[name] for name in wanted))):
        arguments = dict(zip(wanted, values, strict=True))
        if "tmp_path" in arguments:
            arguments["tmp_path"] = tmp_path / str(number)
            arguments["tmp_path"].mkdir()
        test(**arguments)


def test_the_suite_was_found() -> None:
    assert len(SUITE) >= 10
