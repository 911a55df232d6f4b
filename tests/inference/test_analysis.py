"""Intervals from a release contain the truth, say what they rest on, and are refused where they would not hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.inference import analysis
from shoal.inference.calibration import WeightCalibration
from shoal.inference.expressions import Raking, parsed
from shoal.inference.rows import Frame, PublicRelease, released_rows
from tests.mechanisms.test_rules import KINDS, hospital
from tests.mechanisms.test_rules import schema as ruled_schema

from .test_measured import people, schema

# statistics of every form
EVERY = [
    "mean(age)",
    "mean(income) by sex",
    "mean(hours | region = north and age > 40)",
    'share(region = "south")',
    "share(age > 64)",
    "share(sex = f) by region",
    "median(age)",
    "quantile(income, 0.9)",
    "table(sex, region)",
    "corr(age, hours)",
    "hours ~ age + sex + C(owner)",
    "logit(owner = 1 ~ age + (sex = f))",
]


@pytest.fixture(scope="module")
def release() -> shoal.Release:
    return shoal.protect(people(), schema(), epsilon="4", seed=1)


@pytest.fixture(scope="module")
def truth() -> pd.DataFrame:
    return people(200_000)


def numbers_of(table: pd.DataFrame) -> dict[str, float]:
    """Five numbers of one-way, two-way and regression statistics."""
    slope = np.polyfit(table.age, table.owner, 1)[0]
    return {
        "mean(age)": table.age.mean(),
        'share(region = "south")': (table.region == "south").mean(),
        'mean(hours | sex = "f")': table.hours[table.sex == "f"].mean(),
        "corr(age, owner)": table.age.corr(table.owner),
        "owner ~ age: age": slope,
    }


ASKED = [*list(numbers_of(people(100)))[:4], "owner ~ age"]


def coverage(truth: pd.DataFrame, monkeypatch: pytest.MonkeyPatch | None = None) -> tuple[int, float]:
    """How many of 30 intervals contain the truth, and the mean of the squared standardised errors."""
    wanted = numbers_of(truth)
    random = np.random.default_rng(5)
    covered, squares = 0, []
    for seed in range(6):
        data = truth.iloc[random.integers(0, len(truth), 1500)].reset_index(drop=True)
        found = shoal.intervals(shoal.protect(data, schema(), epsilon="2", seed=seed, rows=1500), ASKED)
        for name, value in wanted.items():
            one = found[name]
            covered += one.low <= value <= one.high
            squares.append(((one.estimate - value) / (one.high - one.low) * 2 * 1.96) ** 2)
    return covered, float(np.mean(squares))


def test_intervals_contain_the_truth(truth: pd.DataFrame) -> None:
    """30 intervals that cover at least 93%: fewer than 22 have a probability below 1e-5."""
    covered, spread = coverage(truth)
    assert covered >= 22
    assert spread < 1.8


def test_the_check_sees_intervals_without_noise(truth: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """WeightedRows taken as a sample: no noise, no allowance, no calibration."""
    honest = WeightCalibration.uncertainty

    def sampled_only(self: WeightCalibration, *arguments: Any, **options: Any) -> Any:
        found = honest(self, *arguments, **options)
        nothing = np.zeros(found.noise.size)
        return analysis.replace(found, noise=nothing, inside=nothing, beyond=nothing, apart=nothing)

    monkeypatch.setattr(WeightCalibration, "uncertainty", sampled_only)
    monkeypatch.setattr(WeightCalibration, "weights", property(lambda self: self.rows.weights))
    monkeypatch.setattr(analysis.Analysis, "_direct_mean", lambda self, column: None)
    covered, spread = coverage(truth)
    assert covered < 22 or spread > 1.8


def test_every_form_gives_numbers_with_their_parts(release: shoal.Release) -> None:
    found = shoal.intervals(release, EVERY)
    assert found.engine == "calibration"
    assert len({one.name for one in found}) == len(found) >= 28
    for one in found:
        assert one.low <= one.estimate <= one.high, one.name
        assert math.isclose(one.sampling + one.noise + one.unmeasured, 1, abs_tol=1e-6), one.name
        assert "95 of 100" in one.sentence
        assert all(one.words_of(flag) in one.sentence for flag in one.flags)
    assert found["mean(age)"].to_dict()["estimate"] == found["mean(age)"].estimate
    assert [one["name"] for one in found.to_dict()["intervals"]] == [one.name for one in found]


def test_one_number_can_be_read_directly(release: shoal.Release) -> None:
    found = shoal.intervals(release, "mean(age)")
    assert (found.low, found.estimate, found.high) == (found[0].low, found[0].estimate, found[0].high)
    with pytest.raises(shoal.OptionError, match=r"several|there are 2"):
        _ = shoal.intervals(release, "mean(age) by sex").estimate


def test_level_design_effect_and_records_change_the_width(release: shoal.Release) -> None:
    def width(**options: Any) -> float:
        found = shoal.intervals(release, 'share(sex = "f")', **options)[0]
        return found.high - found.low

    usual = width()
    assert width(level=0.8) < usual < width(level=0.99)
    assert width(about="records") < usual < width(deff=2.0)
    assert shoal.intervals(release, 'share(sex = "f")', about="records")[0].sampling == 0
    # a share of a value is measured as it is: little is added to what a sample would give
    naive = 2 * 1.96 * math.sqrt(0.25 / 3000)
    assert naive < usual < 2 * naive


def test_a_bundle_on_disk_gives_the_same_as_the_release(release: shoal.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out", format="parquet")
    assert (tmp_path / "out" / "measurements.json").is_file()
    here, there = (shoal.intervals(one, EVERY) for one in (release, tmp_path / "out"))
    for mine, other in zip(here, there, strict=True):
        assert mine.name == other.name
        assert other.estimate == pytest.approx(mine.estimate, rel=1e-6)
        assert (other.low, other.high) == pytest.approx((mine.low, mine.high), rel=1e-6)


def test_gaps_are_left_out_of_means(truth: pd.DataFrame) -> None:
    made = shoal.protect(people(gaps=True), schema(gaps=True), epsilon="4", seed=1)
    found = shoal.intervals(made, ["mean(hours)", "share(hours > 40)", "median(hours)", "corr(age, hours)"])
    assert found["mean(hours)"].low < truth.hours.mean() < found["mean(hours)"].high
    assert found["share(hours > 40)"].low < (truth.hours > 40).mean() < found["share(hours > 40)"].high
    assert found["median(hours)"].low <= truth.hours.median() <= found["median(hours)"].high


class TestThreeColumns:
    """y is whether a and b differ: pairs show nothing of it."""

    @staticmethod
    def found(seed: int, n: int = 3000, **options: Any) -> Any:
        random = np.random.default_rng(seed)
        a, b = random.integers(0, 2, n), random.integers(0, 2, n)
        odd = random.random(n) < 0.1
        table = pd.DataFrame(
            {"a": a, "b": b, "y": np.where(odd, 1 - (a ^ b), a ^ b), "c": random.integers(0, 2, n)}
        )
        entries = [
            {"name": name, "kind": "numeric", "type": "integer", "lo": 0, "hi": 1, "source": "questionnaire"}
            for name in table
        ]
        declared = shoal.Schema.from_dict({"attribute": entries})
        made = shoal.protect(table, declared, seed=seed, **{"epsilon": "2", **options})
        return shoal.intervals(made, "mean(y | a = 1 and b = 1)")[0]

    def test_a_number_that_nothing_measured_is_flagged(self) -> None:
        for seed in range(3):
            found = self.found(seed, triples=False)
            assert found.flag == "not-carried"
            assert found.carried < 0.9
            assert "three columns" in found.sentence

    @pytest.mark.slow
    def test_it_is_flagged_in_100_of_100_releases(self) -> None:
        found = [self.found(seed, 5000, epsilon="1", triples=False) for seed in range(100)]
        assert all("not-carried" in one.flags for one in found)

    @pytest.mark.slow
    def test_with_triples_it_is_contained_in_90_of_100(self) -> None:
        found = [self.found(seed, 5000, epsilon="1", triples=True) for seed in range(100)]
        assert sum(one.low < 0.1 < one.high for one in found) >= 90
        assert not any("not-carried" in one.flags for one in found)

    def test_measured_triples_carry_it(self) -> None:
        covered = [(one := self.found(seed, triples=True)).low < 0.1 < one.high for seed in range(4)]
        assert sum(covered) >= 3


class TestRules:
    """Columns that were not measured themselves: derived ones, later days of an order, combinations."""

    @staticmethod
    def found(seed: int, what: list[str]) -> Any:
        data = hospital(2000, seed=seed)
        made = shoal.protect(data, ruled_schema(tuple(KINDS)), "pairs-dp", epsilon="4", seed=seed, rows=2000)
        return shoal.intervals(made, what)

    def test_intervals_contain_the_truth(self) -> None:
        """18 intervals that cover at least 93%: fewer than 12 have a probability below 1e-4."""
        people = hospital(20_000, seed=9)
        stay = (people["discharge"] - people["admission"]).dt.days
        truth = {
            "mean(age)": people["age"].mean(),
            "median(age)": people["age"].median(),
            "mean(discharge - admission)": stay.mean(),
            'mean(income | region = "south")': people["income"][people["region"] == "south"].mean(),
            "share(spouse > 50)": (people["spouse"].dropna() > 50).mean(),
            'share(district = "s2")': (people["district"] == "s2").mean(),
        }
        covered = 0
        for seed in range(3):
            found = self.found(seed, list(truth))
            assert found.engine == "calibration"
            covered += sum(found[name].low <= value <= found[name].high for name, value in truth.items())
        assert covered >= 12

    def test_an_age_follows_from_the_day_of_birth_that_was_measured(self) -> None:
        (found,) = self.found(0, ["mean(age)"])
        assert found.carried > 0.95
        (found,) = self.found(0, ["quantile(age, 0.9)"])
        assert found.low < found.estimate < found.high
        assert found.unmeasured > 0


class TestFunctions:
    def test_a_function_of_weights_agrees_with_the_formula(self, release: shoal.Release) -> None:
        def older(frame: Any, weights: Any) -> dict[str, float]:
            women = (frame["sex"] == "f").to_numpy()
            age = frame["age"].to_numpy(dtype=float)
            return {"age": float(np.average(age[women], weights=weights[women]))}

        found = shoal.intervals(release, older, columns=["sex", "age"], seed=1)
        formula = shoal.intervals(release, 'mean(age | sex = "f")')[0]
        assert found.engine == "calibration"
        assert found.estimate == pytest.approx(formula.estimate, abs=0.3)
        assert found.high - found.low == pytest.approx(formula.high - formula.low, rel=0.5)
        assert found[0].carried == pytest.approx(formula.carried, abs=0.1)

    def test_a_function_of_a_frame_is_re_run(self, release: shoal.Release, truth: pd.DataFrame) -> None:
        found = shoal.intervals(release, lambda frame: float(frame["age"].mean()), repetitions=6, seed=1)
        assert found.engine == "re-runs"
        assert found.low < truth.age.mean() < found.high

    def test_what_is_no_number_is_refused(self, release: shoal.Release) -> None:
        with pytest.raises(shoal.OptionError):
            shoal.intervals(release, lambda frame: np.zeros((2, 2)), repetitions=5, seed=1)


class TestOtherMethods:
    def test_an_older_bundle_is_re_run(
        self, release: shoal.Release, tmp_path: Path, truth: pd.DataFrame
    ) -> None:
        release.save(tmp_path / "old", format="parquet")
        (tmp_path / "old" / "measurements.json").unlink()
        found = shoal.intervals(tmp_path / "old", ["mean(age)", "corr(age, owner)"], repetitions=8, seed=1)
        assert found.engine == "re-runs"
        assert found["mean(age)"].low < truth.age.mean() < found["mean(age)"].high
        assert found["corr(age, owner)"].unmeasured > 0

    def test_a_tree_gives_means_and_no_slopes(self, truth: pd.DataFrame) -> None:
        made = shoal.protect(
            people()[["age", "sex"]], schema_of("age", "sex"), "tree-dp", epsilon="2", seed=1
        )
        found = shoal.intervals(made, ["mean(age)", "share(sex = f)"], repetitions=6, seed=1)
        assert found["mean(age)"].low < truth.age.mean() < found["mean(age)"].high
        for text in ("corr(age, sex)", "age ~ sex", "share(age > 64)"):
            with pytest.raises(shoal.OptionError):
                shoal.intervals(made, text)
        with pytest.raises(shoal.OptionError, match="function"):
            shoal.intervals(made, lambda frame: 1.0)

    @pytest.mark.parametrize(
        ("method", "options"), [("laplace", {"epsilon": "5"}), ("k-anonymity", {"k": 5})]
    )
    def test_methods_without_valid_intervals_are_refused(self, method: str, options: dict[str, Any]) -> None:
        made = shoal.protect(people(200)[["age"]], schema_of("age"), method, seed=1, **options)
        with pytest.raises(shoal.OptionError, match="pairs-dp"):
            shoal.intervals(made, "mean(age)")


def schema_of(*names: str) -> shoal.Schema:
    return shoal.Schema(tuple(one for one in schema().attributes if one.name in names))


@pytest.mark.parametrize(
    "text",
    [
        "age",
        "mean(",
        "mean(ages)",
        "mean(sex)",
        "mean(age | sex)",
        'share(sex = "x")',
        "share(age)",
        "corr(age, age)",
        "corr(age, region)",
        "quantile(age, 1.5)",
        "quantile(age)",
        "median(sex)",
        "table(sex)",
        "mean(age) by income",
        "corr(age, hours) by sex",
        "hours ~ age + age",
        "hours ~ ages",
        "sex ~ age",
        "logit(age ~ hours)",
        "mean(__import__('os'))",
        "mean(age.real)",
        "mean((lambda: 1)())",
    ],
)
def test_what_is_no_statistic_is_refused(text: str, release: shoal.Release) -> None:
    with pytest.raises(shoal.OptionError):
        shoal.intervals(release, text)


@pytest.mark.parametrize("options", [{"level": 1.0}, {"level": 0.1}, {"about": "all"}, {"deff": 0}])
def test_wrong_options_are_refused(options: dict[str, Any], release: shoal.Release) -> None:
    with pytest.raises(shoal.OptionError):
        shoal.intervals(release, "mean(age)", **options)


class TestRaking:
    """Weights raked to known totals are functions of the released columns."""

    TOTALS: ClassVar = {"sex": {"f": 600, "m": 400}, "owner": {"0": 3, "1": 7}}

    def test_influence_is_the_derivative_by_a_weight(self, release: shoal.Release) -> None:
        shown = PublicRelease.of(release)
        frame = Frame(released_rows(shown, shown.described.columns))
        statistic = Raking.of(self.TOTALS, frame).raked(parsed("mean(hours | region = north)", frame))
        weights = np.random.default_rng(1).uniform(0.5, 1.5, frame.size)
        value, influence = statistic.evaluate(frame, weights)
        for row in (0, 7, 100, 2000):
            moved = weights.copy()
            moved[row] += 0.01
            found = (statistic.evaluate(frame, moved)[0] - value) / 0.01 * weights.sum()
            np.testing.assert_allclose(found, influence[row], rtol=0.02, atol=0.02)

    def test_shares_are_the_known_ones_and_have_no_width(self, release: shoal.Release) -> None:
        found = shoal.intervals(release, ['share(sex = "f")', "mean(owner)", "mean(age)"], rake=self.TOTALS)
        assert found[0].low == pytest.approx(0.6) == found[0].high
        assert found["mean(owner)"].estimate == pytest.approx(0.7)
        # younger people own less: more owners are older
        assert found["mean(age)"].estimate > shoal.intervals(release, "mean(age)").high

    def test_a_raked_mean_is_that_of_the_raked_population(self, truth: pd.DataFrame) -> None:
        """Six data sets in which women are rare, raked to the true shares."""
        wanted = truth.hours.mean()
        covered, plain = 0, 0
        for seed in range(6):
            rare = np.where(truth.sex == "f", 0.2, 1.0)
            data = truth.sample(3000, weights=rare, random_state=seed).reset_index(drop=True)
            made = shoal.protect(data, schema(), epsilon="4", seed=seed, rows=3000)
            found = shoal.intervals(made, "mean(hours)", rake={"sex": {"f": 1, "m": 1}})
            covered += found.low < wanted < found.high
            biased = shoal.intervals(made, "mean(hours)")
            plain += biased.low < wanted < biased.high
        assert covered >= 4
        assert plain == 0

    def test_functions_and_replicates_are_raked_too(self, release: shoal.Release) -> None:
        def older(frame: Any, weights: Any) -> float:
            return float(np.average(frame["age"].to_numpy(dtype=float), weights=weights))

        found = shoal.intervals(release, older, columns="age", seed=1, rake=self.TOTALS)
        formula = shoal.intervals(release, "mean(age)", rake=self.TOTALS)
        assert found.estimate == pytest.approx(formula.estimate, abs=0.5)
        weights = shoal.replicate_weights(release, ["age"], 10, seed=1, rake=self.TOTALS)
        for name in ("w", "w1", "w10"):
            own = weights[name].to_numpy()
            assert own[(weights["sex"] == "f").to_numpy()].sum() / own.sum() == pytest.approx(0.6)

    def test_margins_of_the_schema_are_used(self, tmp_path: Path) -> None:
        declared = schema()
        margin = shoal.Margin.from_dict(
            {"column": "sex", "totals": {"f": 300, "m": 700}, "source": "common knowledge"}
        )
        with_margin = shoal.Schema(declared.attributes, margins=(margin,))
        made = shoal.protect(people(), with_margin, epsilon="4", seed=1)
        made.save(tmp_path / "out")
        for one in (made, tmp_path / "out"):
            assert shoal.intervals(one, 'share(sex = "f")', rake=True).estimate == pytest.approx(0.3)

    @pytest.mark.parametrize(
        "rake", [True, {}, {"sex": {"f": 1}}, {"sex": {"f": 1, "m": 0}}, {"none": {"f": 1}}]
    )
    def test_what_gives_no_totals_is_refused(self, rake: Any, release: shoal.Release) -> None:
        with pytest.raises(shoal.OptionError):
            shoal.intervals(release, "mean(age)", rake=rake)

    def test_quantiles_and_functions_without_weights_are_refused(self, release: shoal.Release) -> None:
        for what in ("median(age)", lambda frame: 1.0):
            with pytest.raises(shoal.OptionError):
                shoal.intervals(release, what, rake=self.TOTALS)


@pytest.mark.parametrize(
    "options",
    [{}, {"neighbours": "replace-one"}, {"target": "owner"}, {"rows": 3000, "delta": "0.000001"}],
    ids=str,
)
def test_every_way_of_release_gives_intervals(options: dict[str, Any], truth: pd.DataFrame) -> None:
    """Noisy number of rows, the other adjacency, a column to predict, Gaussian noise; missing values in all."""
    table = people(gaps=True)
    made = shoal.protect(table, schema(gaps=True), epsilon="4", seed=3, **options)
    found = shoal.intervals(made, [*ASKED, "mean(hours)", "median(hours)"])
    assert found.engine == "calibration"
    wanted = {**numbers_of(truth), "mean(hours)": truth.hours.mean(), "median(hours)": truth.hours.median()}
    assert sum(found[name].low <= value <= found[name].high for name, value in wanted.items()) >= 5


def test_many_columns_many_names_and_frequent_values() -> None:
    """24 columns, 120 names, and an amount that most people have nothing of."""
    random = np.random.default_rng(2)
    n, names = 2500, [f"place {number}" for number in range(120)]
    place = random.choice(120, n, p=random.dirichlet(np.ones(120)))
    gain = np.where(random.random(n) < 0.8, 0, random.lognormal(7, 1, n).round()).clip(0, 50_000)
    more = {f"c{number}": random.integers(0, 2, n) for number in range(22)}
    table = pd.DataFrame({"place": [names[one] for one in place], "gain": gain.astype(int), **more})
    domains: dict[str, Any] = {"place": names, "gain": (0, 50_000), **dict.fromkeys(more, (0, 1))}
    made = shoal.protect(table, epsilon="8", seed=1, domains=domains)
    frequent = names[int(np.bincount(place).argmax())]
    asked = ["share(gain > 0)", f'share(place = "{frequent}")', "mean(c3 | c4 = 1)", "corr(c0, c1)"]
    values = [(gain > 0).mean(), (place == np.bincount(place).argmax()).mean(), 0.5, 0.0]
    found = shoal.intervals(made, asked, about="records")
    assert (
        sum(one.low - 0.05 <= value <= one.high + 0.05 for one, value in zip(found, values, strict=True)) == 4
    )
    weights = shoal.replicate_weights(made, None, 10, seed=1)
    assert np.isfinite(weights["w10"].to_numpy()).all()


def test_standard_errors_of_a_sample_are_refused(release: shoal.Release) -> None:
    with pytest.raises(shoal.OptionError, match="synthetic"):
        shoal.estimates(release)
