"""Third-party stages: what they may claim, and that they pass the same tests as every part of Shoal."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import shoal
from shoal.cli import options, protect
from shoal.cli.command import sorted_words
from shoal.errors import ClaimError, OptionError
from shoal.evaluation import measures
from shoal.evaluation.measures import Measure, register_measure
from shoal.extend import Pair, pairs, register_method, register_noise, register_partition
from shoal.mechanisms import parameter_fields, partition_stage
from shoal.mechanisms.method import Method
from shoal.mechanisms.parameter_fields import parameter, shared
from shoal.mechanisms.registry import load_recipe, method_class, recipe_text
from shoal.noise import Source, discrete_laplace, families
from shoal.noise.families import NoiseFamily, laplace_scale
from shoal.partition import Partition
from shoal.privacy.verdict import Case, Claim
from shoal.report import bundle_report
from shoal.report.pages import Section, register_section
from tests.mechanisms import test_conformance as conformance
from tests.support.registries import forgotten_afterwards

WHO = "the tests"
EXAMPLE = Path(__file__).parents[1] / "docs" / "extending.md"


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


def toy(name: str = "toy-dp", noise: str = "laplace", **changes: Any) -> type[Method]:
    """A method that is `ranking-dp` with other values."""
    annotated = {"noise": str, **changes.pop("__annotations__", {})}
    facts = {"__module__": __name__, "__doc__": "A method for tests.", "__annotations__": annotated}
    body = {**facts, "name": name, "about": "a method for tests", "noise": shared("noise", default=noise)}
    return type("Toy", (shoal.RankingDP,), {**body, **changes})


@pytest.fixture(scope="module")
def example() -> types.ModuleType:
    """The method of docs/extending.md, as a module."""
    made = types.ModuleType("smoothed")
    sys.modules["smoothed"] = made
    exec(example_text(), vars(made))
    return made


def example_text() -> str:
    return EXAMPLE.read_text("utf-8").split('```python title="smoothed.py"\n')[1].split("\n```\n")[0] + "\n"


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
    register_method(toy(noise="double"), who=WHO)
    (info,) = [info for info in shoal.methods() if info.name == "toy-dp"]
    assert info.claim == "none"


def test_with_accounting_that_passes_the_claim_is_that_of_who_brought_it() -> None:
    register_noise("double", DOUBLE, who=WHO, accounting=loss_of_laplace(double_scale))
    found = released("ranking-dp", noise="double", columns=["age"]).statement
    assert (found.model, found.publishable) == ("dp", True)
    (said,) = [line for line in found.conditions if "third-party component" in line]
    assert said.startswith("The noise 'double' is a third-party component of the tests, whose claim this is;")
    assert "200 pairs" in said
    assert not any("third-party component" in line for line in released("ranking-dp").statement.conditions)


@pytest.mark.parametrize(
    ("accounting", "words"),
    [
        (
            loss_of_laplace(lambda steps, epsilon: laplace_scale(steps, epsilon) / 2),
            "must give a privacy loss from 0 to",
        ),
        (lambda pair: float("nan"), "got nan"),
        (lambda pair: True and "nothing", "got nothing"),
        (lambda pair: 0, "ignores the release"),
    ],
    ids=["too much", "no number", "no number either", "never anything"],
)
def test_accounting_that_does_not_pass_registers_nothing(accounting: Any, words: str) -> None:
    with pytest.raises(ClaimError, match=words):
        register_noise("half", DOUBLE, who=WHO, accounting=accounting)
    assert "half" not in families.NOISES


def test_names_are_taken_once() -> None:
    register_noise("double", DOUBLE, who=WHO)
    register_method(toy(noise="double"), who=WHO)
    for again in (
        lambda: register_noise("laplace", DOUBLE, who=WHO),
        lambda: register_noise("double", DOUBLE, who=WHO),
        lambda: register_partition("mdav", partition_stage.PARTITIONS["mdav"], who=WHO),
        lambda: register_method(toy(), who=WHO),
        lambda: register_method(toy("pairs-dp"), who=WHO),
        lambda: register_measure(replace(measures.MEASURES["sse"], compute=lambda columns, matched: 1.0)),
    ):
        with pytest.raises(OptionError, match="already"):
            again()


@pytest.mark.parametrize("changes", [{"partition": "pairs"}, {"noise": "loud"}])
def test_a_method_is_made_of_known_parts(changes: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="register it first"):
        register_method(toy(**changes), who=WHO)
    assert "toy-dp" not in {info.name for info in shoal.methods()}


@pytest.mark.parametrize(("own", "lacking"), [({}, "plan"), ({"plan": lambda self, described: None}, "run")])
def test_a_method_has_a_plan_and_a_run(own: dict[str, Any], lacking: str) -> None:
    body = {"__module__": __name__, "__doc__": "Does nothing.", "name": "empty-dp", "about": "nothing", **own}
    with pytest.raises(OptionError, match=f"method 'empty-dp' has no function '{lacking}'"):
        register_method(type("Empty", (Method,), body), who=WHO)
    assert "empty-dp" not in {info.name for info in shoal.methods()}


@pytest.mark.parametrize("name", ["out", "domains", "seed", "json"])
def test_a_parameter_has_a_name_of_its_own(name: str) -> None:
    body = {name: parameter(parameter_fields.WHOLE, "something", default=1), "__annotations__": {name: int}}
    with pytest.raises(OptionError, match=f"the option '{name}' already exists"):
        register_method(toy(**body), who=WHO)


def test_a_partition_from_outside() -> None:
    def halves(group: Any, method: Any) -> Partition:
        return Partition.from_labels((np.arange(group.n) >= group.n // 2).astype(np.int64))

    stage = partition_stage.PartitionStage("data", "two halves", halves, columnwise=True)
    register_partition("halves", stage, who=WHO)
    register_method(toy("halves-dp", partition="halves"), who=WHO)
    assert released("halves-dp").statement.model == "none"


def _half_the_work(self: Any, *arguments: Any) -> Any:
    return shoal.RankingDP.run(self, *arguments)


# what makes a method more than another one with other values
OWN: dict[str, dict[str, Any]] = {
    "a claim": {"claims": Claim((Case("dp", "what the tests say"),))},
    "its work": {"run": _half_the_work},
    "where its work is": {"work": "shoal.mechanisms.clusters"},
    "what its records hide": {"adjacency": shoal.RankingDP.adjacency},
    "what its records hide, computed": {"adjacency": property(lambda self: shoal.RankingDP.adjacency)},
}


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_a_method_with_something_of_its_own_needs_an_accounting(own: dict[str, Any]) -> None:
    register_method(toy("quiet-dp", **own), who=WHO)
    assert released("quiet-dp", columns=["age"]).statement.model == "none"
    register_method(
        toy("loud-dp", **own), who=WHO, accounting=lambda pair: pair.epsilon if pair.k == 1 else 0
    )
    found = released("loud-dp", columns=["age"]).statement
    assert found.model == "dp"
    assert any("The mechanism 'loud-dp' is a third-party component" in line for line in found.conditions)


def test_a_method_with_other_values_claims_what_the_first_one_claims() -> None:
    register_method(toy(), who=WHO)
    for columns in (["age"], None):
        found, first = (released(name, columns=columns).statement for name in ("toy-dp", "ranking-dp"))
        assert (found.model, found.conditions) == (first.model, first.conditions)


def test_a_method_that_nobody_registered_claims_nothing() -> None:
    data = conformance.frame(conformance.people(), "pyarrow")
    made = toy()(epsilon="1", k=5)
    assert shoal.protect(data, conformance.schema(), made, columns=["age"]).statement.model == "none"
    with pytest.raises(OptionError, match="unknown method 'toy-dp'"):
        released("toy-dp")


def test_parameters_of_its_own_are_checked_like_all_others(example: types.ModuleType) -> None:
    example.register()
    for asked, words in (
        ({"smoothing": 2}, "smoothing must be from 0 to 1, got 2"),
        ({"bins": 1}, "bins must be an integer of at least 2"),
        ({"smoothin": 0}, "unknown option 'smoothin'. Did you mean 'smoothing'"),
        ({"k": 5}, "'smoothed' forms no groups"),
    ):
        with pytest.raises(OptionError, match=re.escape(words)):
            released("smoothed", **{"k": None, **asked})
    with pytest.raises(OptionError, match="'ranking-dp' has no option 'smoothing'"):
        released("ranking-dp", smoothing=0)


def test_a_recipe_holds_parameters_of_a_method_from_outside(
    example: types.ModuleType, tmp_path: Path
) -> None:
    example.register()
    data = conformance.frame(conformance.people(), "pyarrow")
    made = example.Smoothed(epsilon="0.5", smoothing="0.25", bins=4)
    first = shoal.protect(data, conformance.schema(), made, seed=1)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(first), "utf-8")
    asked = load_recipe(path)
    assert (asked["method"], str(asked["smoothing"]), asked["bins"]) == ("smoothed", "0.25", 4)
    again = shoal.protect(data, seed=1, **asked)
    assert again.data.equals(first.data)
    assert recipe_text(again) == recipe_text(first)
    assert again.method == made


class Loud(Method):
    """It has a word where another method has a number, and a number where others have a switch."""

    name: ClassVar[str] = "loud-words"
    about: ClassVar[str] = "for tests"
    k: str = parameter(parameter_fields.CHOICE, "how many", choices={"few": "", "many": ""}, default="few")
    clip: int = parameter(parameter_fields.WHOLE, "where", default=3)

    def plan(self, described: Any) -> Any:
        raise AssertionError("never planned")

    def run(self, *arguments: Any) -> Any:
        raise AssertionError("never run")


def test_the_form_of_a_flag_is_that_of_the_method_that_is_named(
    tmp_path: Path,
) -> None:
    register_method(Loud, who=WHO)
    typed: list[dict[str, Any]] = []
    flags = protect.protect_flags()
    for words in (["--method", "loud-words", "--k", "many", "--clip", "7"], ["--k", "4", "--no-clip"]):
        own = options.as_named_method_has_them(flags, words, {})
        given, _, _ = sorted_words(own, words)
        typed.append({flag.name: flag.value(given[flag.name]) for flag in own if not flag.argument})
    found = [options.recipe_arguments(one) for one in typed]
    assert [(one["k"], one["clip"]) for one in found] == [("many", 7), (4, False)]
    # a recipe names a method, too
    recipe = tmp_path / "method.toml"
    recipe.write_text('method = "loud-words"\n')
    own = options.as_named_method_has_them(flags, ["--config", str(recipe), "--k", "few"], {})
    assert {flag.name: flag.type for flag in own}["k"] is str


@pytest.mark.slow
def test_an_installed_package_brings_its_method_to_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "smoothed.py").write_text(example_text())
    facts = tmp_path / "smoothed-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: smoothed\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[shoal.methods]\nsmoothed = smoothed:register\n")
    lines = [f"{n % 90},{n * 7 % 200}" for n in range(100)]
    (tmp_path / "people.csv").write_text("\n".join(["age,rent", *lines]))

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        found = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "80"}
        command = [sys.executable, "-m", "shoal", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=found, check=False)

    shown = ran("protect", "--method", "smoothed", "--help").stdout
    assert "--smoothing X" in shown
    assert "--bins N" in shown
    assert "[default: 0.1]" in shown
    assert "Claim: dp." in shown
    assert not {"--k, -k", "--noise", "--clip"} & set(shown.split("  "))
    assert "--bins N" in ran("methods", "smoothed").stdout.replace("--bins", "--bins N")
    words = ["people.csv", "--domain", "age=0:120", "--domain", "rent=0:200", "--type", "age=integer"]
    words += ["--type", "rent=integer", "--epsilon", "1", "--seed", "1"]
    done = ran(
        "protect", *words, "--method", "smoothed", "--smoothing", "0.25", "--bins", "4", "--out", "one"
    )
    assert done.returncode == 0, done.stderr
    assert "smoothing = 0.25" in (tmp_path / "one" / "method.toml").read_text().replace('"', "")
    done = ran("redo", "one/log.toml", "people.csv", "--out", "two")
    assert done.returncode == 0, done.stderr
    recipes = [(tmp_path / name / "method.toml").read_text() for name in ("one", "two")]
    assert recipes[0] == recipes[1]
    wrong = ran("protect", *words, "--method", "smoothed", "--smoothin", "1", "--out", "three")
    assert wrong.stderr == "shoal: unknown option '--smoothin'. Did you mean '--smoothing'?\n"


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

    from shoal.report.findings import measure_lines

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


@pytest.mark.parametrize("name", ["toy-dp", "smoothed"])
@pytest.mark.parametrize("test", SUITE.values(), ids=SUITE)
def test_the_conformance_suite_passes_for_a_method_from_outside(
    test: Callable[..., None],
    name: str,
    example: types.ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register_noise("double", DOUBLE, who=WHO, accounting=loss_of_laplace(double_scale))
    register_measure(MEDIAN)
    register_method(toy(noise="double"), who=WHO)
    example.register()
    info = next(info for info in shoal.methods() if info.name == name)
    monkeypatch.setitem(conformance.METHODS, name, info)
    given: dict[str, list[Any]] = {
        "name": [name],
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


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("idp-ls", {"sensitivity": "none"}),
        ("idp-ls", {"sensitivity": "global"}),
        ("mdav-dp", {"stability": "private"}),
        ("mdav-dp", {"claims": method_class("laplace").claims}),
        ("xm-2", {"form": "eigen"}),
    ],
)
def test_what_a_claim_follows_from_is_not_for_a_subclass_to_say(base: str, said: dict[str, Any]) -> None:
    name = f"{base}-of-mine"
    cls = type("Mine", (method_class(base),), {"name": name, "__annotations__": {}, **said})
    found = register_method(cls, who="somebody")
    assert found.example().model(2) == found.example().model(1) == "none"
