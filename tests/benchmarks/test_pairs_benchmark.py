"""The ablation of pairs-dp: its scores on tables with known answers, its file of figures, and the page it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import pairs
from benchmarks.pairs import Figure, Time
from benchmarks.pairs_tables import LABEL, MORE, NO, YES, Task, split
from benchmarks.pairs_variations import STUDIES, VARIATIONS, Study, Variation, model
from benchmarks.utility_tables import Domain, Numbers

DOMAINS: dict[str, Domain] = {
    "x": Numbers(0, 100, 1),
    "y": Numbers(0, 1),
    "colour": ("red", "green", "blue"),
    LABEL: (NO, YES),
}


def made_up(rows: int, seed: int = 0) -> pa.Table:
    """x decides the label, y follows x, colour is by itself."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 101, rows)
    return pa.table(
        {
            "x": x,
            "y": np.clip(x / 100 + rng.normal(0, 0.05, rows), 0, 1),
            "colour": rng.choice(["red", "green", "blue"], rows),
            LABEL: np.where(x > 60, YES, NO),
        }
    )


def made_up_task(rows: int = 300, domains: dict[str, Domain] | None = None) -> Task:
    return split("Made up", "x > 60", domains or DOMAINS, made_up(rows))


def column(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def test_the_mean_that_is_off_most_counts() -> None:
    before = pa.table({"x": [0.0, 2.0], "y": [0.0, 1.0], LABEL: [NO, YES]})
    after = pa.table({"x": [1.0, 2.0], "y": [1.0, 1.0], LABEL: [NO, YES]})
    domains: dict[str, Domain] = {"x": Numbers(0, 2), "y": Numbers(0, 1), LABEL: (NO, YES)}
    assert pairs.mean_error(before, after, domains) == 1.0


class TestTables:
    def test_a_third_is_held_out_and_no_row_is_in_both_parts(self) -> None:
        table = made_up(301).append_column("number", pa.array(range(301)))
        task = split("Made up", "", {**DOMAINS, "number": Numbers(0, 1000, 1)}, table)
        kept, out = (set(part["number"].to_pylist()) for part in (task.records, task.held_out))
        assert len(out) == 101
        assert kept | out == set(range(301))
        assert not kept & out

    def test_values_beyond_the_domain_are_clipped(self) -> None:
        table = column(made_up(30), "x", np.full(30, 400))
        task = split("Made up", "", DOMAINS, table)
        assert set(task.records["x"].to_pylist()) == {100}


class TestScores:
    def test_a_table_has_no_error_against_itself(self) -> None:
        table = made_up(200)
        assert pairs.marginal_error(table, table, DOMAINS) == 0
        assert pairs.correlation_error(table, table, DOMAINS) == pytest.approx(0, abs=1e-12)

    def test_marginal_error_of_numbers_is_the_shift_over_the_width(self) -> None:
        table = made_up(200)
        moved = column(table, "x", table["x"].to_numpy() + 25.0)
        found = pairs.column_error(table, moved, "x", DOMAINS["x"])
        assert found == pytest.approx(0.25)
        assert pairs.marginal_error(table, moved, DOMAINS) == pytest.approx(0.25 / 4)

    def test_marginal_error_takes_tables_of_different_length_in_any_order(self) -> None:
        table = made_up(200)
        twice = pa.concat_tables([table, table]).take(np.random.default_rng(1).permutation(400))
        assert pairs.marginal_error(table, twice, DOMAINS) == pytest.approx(0, abs=1e-9)

    def test_marginal_error_of_names_is_total_variation(self) -> None:
        before = pa.table({"colour": ["red"] * 6 + ["green"] * 4})
        after = pa.table({"colour": ["red"] * 3 + ["green"] * 4 + ["blue"] * 3})
        assert pairs.column_error(before, after, "colour", DOMAINS["colour"]) == pytest.approx(0.3)

    def test_correlation_error_is_the_mean_over_pairs(self) -> None:
        x = np.array([1.0, 2, 3, 4])
        domains: dict[str, Domain] = {"a": Numbers(0, 5), "b": Numbers(0, 5)}
        same = pa.table({"a": x, "b": x})
        turned = pa.table({"a": x, "b": x[::-1]})
        assert pairs.correlation_error(same, turned, domains) == pytest.approx(2)

    def test_what_does_not_vary_correlates_with_nothing(self) -> None:
        table = made_up(200, seed=3).select(["x", "y"])
        domains = {name: DOMAINS[name] for name in ("x", "y")}
        flat = column(table, "y", np.full(200, 0.1))
        expected = abs(np.corrcoef(table["x"].to_numpy(), table["y"].to_numpy())[0, 1])
        assert pairs.correlation_error(table, flat, domains) == pytest.approx(expected)

    def test_pairs_inside_one_column_of_names_do_not_count(self) -> None:
        domains: dict[str, Domain] = {"colour": DOMAINS["colour"], "x": DOMAINS["x"]}
        coded, owners = pairs._coded(made_up(20), domains)
        assert coded.shape == (20, 4)
        assert owners.tolist() == [0, 0, 0, 1]

    def test_f_is_the_harmonic_mean_of_precision_and_recall(self) -> None:
        truth = np.array([True, True, True, False, False])
        said = np.array([True, False, False, True, False])
        precision, recall = 1 / 2, 1 / 3
        expected = 2 * precision * recall / (precision + recall)
        assert pairs.f_of(truth, said) == pytest.approx(expected)
        assert pairs.f_of(truth, np.zeros(5, dtype=bool)) == 0

    def test_a_forest_learns_from_true_labels_and_not_from_shuffled_ones(self) -> None:
        task = made_up_task(600)
        learned = pairs.f_measure(task.records, task.held_out, DOMAINS, 0)
        shuffled = np.random.default_rng(0).permutation(task.records[LABEL].to_pylist())
        spoiled = pairs.f_measure(column(task.records, LABEL, shuffled), task.held_out, DOMAINS, 0)
        assert learned > 0.9 > 0.7 > spoiled

    def test_a_single_class_teaches_to_say_just_that(self) -> None:
        task = made_up_task()
        only = column(task.records, LABEL, [YES] * task.records.num_rows)
        found = pairs.f_measure(only, task.held_out, DOMAINS, 0)
        truth = pairs._yes(task.held_out)
        assert found == pairs.f_of(truth, np.ones_like(truth))


def figure(variation: str, correlation: float, epsilon: str = "1") -> Figure:
    return Figure(
        "Census", epsilon, variation, 200, 5, {"correlation": correlation}, {"correlation": 0.001}, 0.25
    )


class TestPage:
    def test_what_is_kept_comes_back(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "kept.jsonl"
        for one in (figure("as it is", 0.1), figure("no polish", 0.2), figure("as it is", 0.3)):
            pairs.add(path, one)
        pairs.add(path, Time("Adult", 20_108, 8, 1.5))
        found = pairs._figures(pairs.read(path))
        assert [(one.variation, one.means["correlation"]) for one in found] == [
            ("as it is", 0.3),
            ("no polish", 0.2),
        ]

    def test_the_page_has_figures_times_and_trials(self, tmp_path: Path) -> None:
        kept, recorded = tmp_path / "kept.jsonl", tmp_path / "recorded.jsonl"
        # in the order of the variations, whatever the order of the file
        pairs.add(kept, figure("no polish", 0.2))
        pairs.add(kept, figure("as it is", 0.1))
        pairs.add(kept, Time("Adult", 20_108, 8, 1.5))
        pairs.add(recorded, figure("shrinkage: never", 0.05))
        text = pairs.page(pairs.read(kept), pairs.read(recorded))
        first, second = "| as it is | 0.1000 ± 0.0010 | 0.25 |", "| no polish | 0.2000 ± 0.0010 | 0.25 |"
        assert 0 < text.index(first) < text.index(second) < text.index("## Speed")
        assert "Seeds 200 to 204." in text
        assert "| Adult | 20,108 | 8 | 1.50 |" in text
        assert "## Trials on development seeds" in text
        assert "| shrinkage: never | 0.0500 ± 0.0010 | 0.25 |" in text


def test_names_of_variations_are_unique() -> None:
    names = [variation.name for variation in VARIATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_studies_are_about_what_is_there(study: Study) -> None:
    assert set(study.variations) <= {variation.name for variation in VARIATIONS}
    assert set(study.tables) <= set(pairs.ALL)


@pytest.mark.parametrize("name", list(MORE))
def test_made_up_and_small_tables_are_inside_their_domains(name: str) -> None:
    if name.startswith(("Census", "Wine")):
        assert MORE[name]().records.num_rows == int(name.split()[1])
        return
    task = MORE[name]()
    assert task.name == name
    for column in task.numbers:
        values, domain = task.records[column].to_numpy(), task.domains[column]
        assert isinstance(domain, Numbers)
        assert domain.lo <= values.min() < values.max() <= domain.hi


@pytest.mark.parametrize("variation", VARIATIONS, ids=lambda variation: variation.name)
def test_every_variation_replaces_what_is_there(variation: Variation) -> None:
    for place, name, value in variation.changes:
        assert getattr(place, name) != value
        with mock.patch.object(place, name, value):
            assert getattr(place, name) == value


def test_a_variation_is_measured_and_put_back() -> None:
    task, variation = made_up_task(60), next(v for v in VARIATIONS if v.name == "no polish")
    before = model.SWEEPS
    found = pairs.measured(task, variation, "1", range(2))
    assert model.SWEEPS == before > 0
    assert set(found.means) == set(pairs.SCORES)
    assert found.key == ("Made up", "1", "no polish")
