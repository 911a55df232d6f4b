"""The utility benchmark: its scores on tables with known answers, its file of cells, and the page it writes."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import utility, utility_cells, utility_methods, utility_page, utility_scores
from benchmarks.utility_cells import ALWAYS_YES, LARGER_CLASS, ORIGINAL, Cell
from benchmarks.utility_methods import CONTESTANTS, Made, Preset, Synthesiser
from benchmarks.utility_tables import (
    LABEL,
    NO,
    YES,
    Domain,
    Numbers,
    Task,
    split,
    with_name_as_label,
    with_number_as_label,
)

DOMAINS: dict[str, Domain] = {
    "x": Numbers(0, 100, 1),
    "y": Numbers(0, 1),
    "colour": ("red", "green", "blue"),
    LABEL: (NO, YES),
}
ONLY_NUMBERS: dict[str, Domain] = {name: DOMAINS[name] for name in ("x", "y", LABEL)}


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


def test_names_that_look_like_numbers_come_back_as_names(tmp_path: Path) -> None:
    domains: dict[str, Domain] = {"x": Numbers(0, 100, 1), "bit": ("0", "1"), LABEL: (NO, YES)}
    made = pa.table({"x": [1, 2], "bit": ["0", "1"], LABEL: [NO, YES]})
    task = replace(made_up_task(30), domains=domains)
    (tmp_path / "made.csv").write_text(f"x,bit,{LABEL}\n1,0,{NO}\n2,1,{YES}\n", "utf-8")
    back = utility_methods.read_made(tmp_path / "made.csv", task)
    assert back.equals(made)
    assert utility_scores.marginal_error(made, back, domains) == 0


def column(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def test_a_cell_on_disk_has_what_it_needs_and_comes_back(tmp_path: Path) -> None:
    cell = Cell("Census", "laplace", "1", 3, claim="dp", scores={"f": 0.123456789}, seconds=1.23456)
    utility_cells.add_cell(tmp_path / "cells.jsonl", cell)
    assert "facts" not in (tmp_path / "cells.jsonl").read_text("utf-8")
    (back,) = utility_cells.read_cells(tmp_path / "cells.jsonl").values()
    assert back == replace(cell, scores={"f": 0.123457}, seconds=1.23)


def test_the_mean_that_is_off_most_counts() -> None:
    before = pa.table({"x": [0.0, 2.0], "y": [0.0, 1.0], LABEL: [NO, YES]})
    after = pa.table({"x": [1.0, 2.0], "y": [1.0, 1.0], LABEL: [NO, YES]})
    domains: dict[str, Domain] = {"x": Numbers(0, 2), "y": Numbers(0, 1), LABEL: (NO, YES)}
    assert utility_scores.mean_error(before, after, domains) == 1.0


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

    def test_a_label_survives_the_way_to_a_number_and_back(self) -> None:
        table = made_up(50)
        numbers = with_number_as_label(table)
        assert set(numbers[LABEL].to_pylist()) == {0, 1}
        assert with_name_as_label(numbers)[LABEL].to_pylist() == table[LABEL].to_pylist()

    def test_names_are_seen_among_the_features_only(self) -> None:
        assert made_up_task().has_names
        assert not made_up_task(domains=ONLY_NUMBERS).has_names


class TestScores:
    def test_a_table_has_no_error_against_itself(self) -> None:
        table = made_up(200)
        assert utility_scores.row_error(table, table, DOMAINS) == 0
        assert utility_scores.marginal_error(table, table, DOMAINS) == 0
        assert utility_scores.correlation_error(table, table, DOMAINS) == pytest.approx(0, abs=1e-12)

    def test_row_error_of_the_mean_is_one(self) -> None:
        table = made_up(200)
        means = table
        for name in ("x", "y"):
            means = column(means, name, np.full(200, table[name].to_numpy().mean()))
        assert utility_scores.row_error(table, means, DOMAINS) == pytest.approx(1)

    def test_labels_kept_is_the_share_of_equal_labels(self) -> None:
        before, after = (pa.table({LABEL: labels}) for labels in ([YES, YES, NO, NO], [YES, NO, NO, NO]))
        assert utility_scores.labels_kept(before, after) == 0.75

    def test_row_error_averages_over_numeric_columns(self) -> None:
        table = made_up(200)
        x = table["x"].to_numpy()
        moved = column(table, "x", x + 3.0)
        assert utility_scores.row_error(table, moved, DOMAINS) == pytest.approx(9 / x.var() / 2)

    def test_marginal_error_of_numbers_is_the_shift_over_the_width(self) -> None:
        table = made_up(200)
        moved = column(table, "x", table["x"].to_numpy() + 25.0)
        found = utility_scores.column_error(table, moved, "x", DOMAINS["x"])
        assert found == pytest.approx(0.25)
        assert utility_scores.marginal_error(table, moved, DOMAINS) == pytest.approx(0.25 / 4)

    def test_marginal_error_takes_tables_of_different_length_in_any_order(self) -> None:
        table = made_up(200)
        twice = pa.concat_tables([table, table]).take(np.random.default_rng(1).permutation(400))
        assert utility_scores.marginal_error(table, twice, DOMAINS) == pytest.approx(0, abs=1e-9)

    def test_marginal_error_of_names_is_total_variation(self) -> None:
        before = pa.table({"colour": ["red"] * 6 + ["green"] * 4})
        after = pa.table({"colour": ["red"] * 3 + ["green"] * 4 + ["blue"] * 3})
        assert utility_scores.column_error(before, after, "colour", DOMAINS["colour"]) == pytest.approx(0.3)

    def test_correlation_error_is_the_mean_over_pairs(self) -> None:
        x = np.array([1.0, 2, 3, 4])
        domains: dict[str, Domain] = {"a": Numbers(0, 5), "b": Numbers(0, 5)}
        same = pa.table({"a": x, "b": x})
        turned = pa.table({"a": x, "b": x[::-1]})
        assert utility_scores.correlation_error(same, turned, domains) == pytest.approx(2)

    def test_what_does_not_vary_correlates_with_nothing(self) -> None:
        table = made_up(200, seed=3).select(["x", "y"])
        domains = {name: DOMAINS[name] for name in ("x", "y")}
        flat = column(table, "y", np.full(200, 0.1))
        expected = abs(np.corrcoef(table["x"].to_numpy(), table["y"].to_numpy())[0, 1])
        assert utility_scores.correlation_error(table, flat, domains) == pytest.approx(expected)

    def test_pairs_inside_one_column_of_names_do_not_count(self) -> None:
        domains: dict[str, Domain] = {"colour": DOMAINS["colour"], "x": DOMAINS["x"]}
        coded, owners = utility_scores._coded(made_up(20), domains)
        assert coded.shape == (20, 4)
        assert owners.tolist() == [0, 0, 0, 1]

    def test_f_is_the_harmonic_mean_of_precision_and_recall(self) -> None:
        truth = np.array([True, True, True, False, False])
        said = np.array([True, False, False, True, False])
        precision, recall = 1 / 2, 1 / 3
        expected = 2 * precision * recall / (precision + recall)
        assert utility_scores.f_of(truth, said) == pytest.approx(expected)
        assert utility_scores.f_of(truth, np.zeros(5, dtype=bool)) == 0

    def test_trivial_answers(self) -> None:
        table = pa.table({LABEL: [YES] + [NO] * 3})
        assert utility_scores.trivial_f(table) == pytest.approx((0, 2 * 0.25 / 1.25))
        table = pa.table({LABEL: [YES] * 3 + [NO]})
        assert utility_scores.trivial_f(table) == pytest.approx((1.5 / 1.75, 1.5 / 1.75))

    def test_a_forest_learns_from_true_labels_and_not_from_shuffled_ones(self) -> None:
        task = made_up_task(600)
        learned = utility_scores.f_measure(task.records, task.held_out, DOMAINS, 0)
        shuffled = np.random.default_rng(0).permutation(task.records[LABEL].to_pylist())
        spoiled = utility_scores.f_measure(column(task.records, LABEL, shuffled), task.held_out, DOMAINS, 0)
        assert learned > 0.9 > 0.7 > spoiled

    def test_a_single_class_teaches_to_say_just_that(self) -> None:
        task = made_up_task()
        only = column(task.records, LABEL, [YES] * task.records.num_rows)
        found = utility_scores.f_measure(only, task.held_out, DOMAINS, 0)
        assert found == utility_scores.trivial_f(task.held_out)[1]


class TestContestants:
    @pytest.mark.parametrize("contestant", [c for c in CONTESTANTS if isinstance(c, Preset)])
    def test_every_preset_releases_and_scores(self, contestant: Preset) -> None:
        task = made_up_task(domains=DOMAINS if contestant.takes_names else ONLY_NUMBERS)
        assert contestant.can(task)
        made = contestant.make(task, "1", 0)
        scores = utility_cells.scores_of(task, made, 0)
        assert {"marginal", "correlation", "f"} <= set(scores)
        assert ("row" in scores) == ("labels" in scores) == (made.aligned is not None)
        assert set(made.data[LABEL].to_pylist()) <= {NO, YES}
        assert made.data.num_rows == task.records.num_rows or made.neighbours.endswith("is private")

    def test_what_the_page_says_about_claims(self) -> None:
        task = made_up_task(domains=ONLY_NUMBERS)
        claims = {
            c.name: c.make(task, "1", 0).claim for c in CONTESTANTS if isinstance(c, Preset) and c.can(task)
        }
        strict = {name for name, claim in claims.items() if claim == "dp"}
        assert strict == {
            "pairs-dp, n given",
            "pairs-dp",
            "pairs-dp, n given, target",
            "pairs-dp, replace-one",
            "tree-dp",
            "tree-dp, add/remove",
            "ranking-dp, unlinked",
            "insensitive-dp",
            "laplace",
        }
        assert claims["idp-cbls"] == "idp-given-partition"
        assert claims["pairs-dp, δ"] == "approximate-dp"

    def test_methods_for_numbers_stay_away_from_names(self) -> None:
        away = {c.name for c in CONTESTANTS if not c.can(made_up_task())}
        assert away == {"ranking-dp, unlinked", "optimal-dp", "xm-6", "idp-cbls"}

    def test_k_falls_with_epsilon_and_leaves_ten_groups(self) -> None:
        sizes = [utility_methods.size_rule(20_000, 8, epsilon) for epsilon in (0.1, 1, 10)]
        assert sizes == [2000, 1132, 114]
        assert utility_methods.size_rule(20, 8, 1) == 3

    def test_domains_in_the_words_of_dpmm(self) -> None:
        few: dict[str, Domain] = {**DOMAINS, "x": Numbers(0, 3, 1, few=True)}
        assert utility_methods.domains_for_dpmm(made_up_task(domains=few)) == {
            "x": {"categories": ["0", "1", "2", "3"]},
            "y": {"lower": 0, "upper": 1},
            "colour": {"categories": ["red", "green", "blue"]},
            LABEL: {"categories": [NO, YES]},
        }


class Steady:
    """A method that releases the records as they are and counts how often it was asked."""

    name = "steady"
    dear = False

    def __init__(self) -> None:
        self.asked = 0

    def can(self, task: Task) -> bool:
        return True

    def settings(self, task: Task, epsilon: str) -> dict[str, Any]:
        return {"k": 5}

    def make(self, task: Task, epsilon: str, seed: int) -> Made:
        self.asked += 1
        return Made(task.records, task.records, "none", "", 0.1)


class TestCells:
    def test_cells_on_file_are_not_measured_again(self, tmp_path: Path) -> None:
        path, steady, task, said = tmp_path / "new" / "cells.jsonl", Steady(), made_up_task(60), list[str]()
        for _ in range(2):
            utility_cells.fill(path, task, [steady], ["1", "10"], range(2), range(1), 1, said.append)  # type: ignore[list-item]
        assert steady.asked == 4 == len(said)
        cells = utility_cells.read_cells(path).values()
        assert {cell.method for cell in cells} == {"steady", ORIGINAL, LARGER_CLASS, ALWAYS_YES}
        assert [cell.scores["row"] for cell in cells if cell.method == "steady"] == [0] * 4

    def test_a_line_cut_off_is_left_out_and_the_next_one_is_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "cells.jsonl"
        utility_cells.add_cell(path, Cell("T", "one", "1"))
        with path.open("a", encoding="utf-8") as file:
            file.write('{"table": "T", "meth')
        utility_cells.add_cell(path, Cell("T", "two", "1"))
        assert [cell.method for cell in utility_cells.read_cells(path).values()] == ["one", "two"]

    def test_a_synthesiser_that_takes_too_long_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def late(*arguments: Any, **options: Any) -> None:
            raise subprocess.TimeoutExpired("dpmm", 7)

        monkeypatch.setattr(subprocess, "run", late)
        cell = utility_cells.measure(made_up_task(30), Synthesiser("AIM (dpmm)", "AIM"), "1", 0, 7)
        assert cell.failed == "stopped after 7 s"
        assert cell.scores == {}
        table = utility_page.result_table(utility_page.lines_of([cell], "Made up", "1"), [])
        assert "stopped after 7 s" in table[-1]


def cell(method: str, f: float, marginal: float = 0.1, *, claim: str = "dp", seed: int = 0) -> Cell:
    scores = {"marginal": marginal, "correlation": 0.2, "f": f}
    return Cell("T", method, "1", seed, claim=claim, neighbours="replace-one", scores=scores, seconds=1.0)


class TestPage:
    def test_one_method_wins_ties_or_loses_by_its_own_interval(self) -> None:
        theirs = [cell("AIM (dpmm)", 0.6, 0.3, claim="dp, δ = 1e-06"), cell("MST (dpmm)", 0.5, 0.25)]
        ours = [
            cell("pairs-dp", f, marginal, seed=seed)
            for seed, (f, marginal) in enumerate([(0.5, 0.1), (0.8, 0.11)])
        ]
        found = utility_page.verdicts([*theirs, *ours], "pairs-dp", ["T"], ["1"])
        assert {verdict.score: verdict.says for verdict in found} == {
            "marginal": "win",
            "correlation": "tie",
            "f": "tie",
        }
        assert found[0].theirs.method == "MST (dpmm)"
        table = utility_page.verdict_table({"pairs-dp": found})
        assert "| `pairs-dp` | marginal error | 1 | 0 | 0 |  |" in table

    def test_a_goal_says_how_far_it_is(self) -> None:
        name = "pairs-dp, δ, n given"
        theirs = [cell("MST (dpmm)", 0.5, 0.25, seed=seed) for seed in (0, 1)]
        ours = [cell(name, f, 0.1 + seed / 1000, seed=seed) for seed, f in enumerate((0.4, 0.41))]
        found = {name: utility_page.verdicts([*theirs, *ours], name, ["T"], ["1"])}
        table = utility_page.goal_table(found)
        assert f"| `{name}` | marginal error | wins ≥ 9 | 1 of 1 | missed by 8 |" in table
        assert f"| `{name}` | F | wins ≥ 4 | 0 of 1 | missed by 4 |" in table
        assert utility_page.runs_of([*theirs, *ours], "MST (dpmm)", ["T"]) == [2]

    def test_a_bound_on_an_error_says_how_far_it_is(self) -> None:
        ours = [replace(cell("pairs-dp, δ, n given", 0.5), table="EIA", epsilon=e) for e in ("10", "100")]
        ours[1] = replace(ours[1], scores={"correlation": 0.02, "rank": 0.01})
        table = utility_page.bound_table(ours)
        assert (
            "| EIA, 10 | `pairs-dp, δ, n given` | correlation error | ≤ 0.055 | 0.2000 | missed by 0.1450 |"
            in table
        )
        assert (
            "| EIA, 100 | `pairs-dp, δ, n given` | correlation error | ≤ 0.03 | 0.0200 | reached |" in table
        )
        assert len(table) == 5
        assert utility_page.bound_table(ours[:0]) == []

    def test_scores_that_a_recorded_run_lacks_come_from_the_others(self) -> None:
        runs = [cell("MST (dpmm)", 0.5), cell("MST (dpmm)", 0.7, seed=1)]
        runs[1] = replace(runs[1], scores={**runs[1].scores, "rank": 0.3})
        (line,) = utility_page.lines_of(runs, "T", "1")
        assert line.figures["rank"].mean == 0.3
        assert line.figures["f"].mean == pytest.approx(0.6)

    def test_mean_and_interval_over_seeds(self) -> None:
        found = utility_page.figure([1.0, 2.0, 3.0])
        assert found.mean == 2
        # Student's 97.5% quantile with two degrees of freedom, over the root of three
        assert found.half == pytest.approx(4.302653 / 3**0.5)
        assert utility_page.figure([1.0]).half is None

    def test_the_winner_is_named_whoever_it_is(self) -> None:
        theirs = cell("AIM (dpmm)", 0.6, 0.3, claim="dp, δ = 1e-06")
        cells = [theirs, cell("tree-dp", 0.5, 0.2), cell("ranking-dp", 0.7, 0.1, claim="dp-given-partition")]
        found = utility_page.duels(cells, ["T"], ["1"])
        by_score = {duel.score: duel for duel in found}
        assert not by_score["f"].beats(by_score["f"].strict)
        assert by_score["f"].any.method == "ranking-dp"
        assert by_score["marginal"].beats(by_score["marginal"].strict)
        text = "\n".join([*utility_page.duel_table(found), *utility_page.conclusion(found, cells)])
        assert "| T, 1 | F | **AIM (dpmm) 0.600** | tree-dp 0.500 | ranking-dp 0.700 |" in text
        assert (
            "| T, 1 | marginal error | AIM (dpmm) 0.3000 | **tree-dp 0.2000** | ranking-dp 0.1000 |" in text
        )
        assert "- F: the synthesisers win 1 (T at ε = 1), Shoal none, of 1; 0 too close to call." in text
        assert (
            "- marginal error: the synthesisers win none, Shoal 1 (T at ε = 1), of 1; 0 too close to call."
            in text
        )
        assert (
            "- correlation error: the synthesisers win none, Shoal none, of 1; 1 too close to call." in text
        )

    def test_a_difference_inside_the_interval_is_no_win(self) -> None:
        theirs = cell("AIM (dpmm)", 0.6, claim="dp, δ = 1e-06")
        wide, narrow = (
            [cell("tree-dp", 0.7 + step * spread, seed=step) for step in (-1, 0, 1)] for spread in (0.2, 0.01)
        )
        for cells, won in ((wide, False), (narrow, True)):
            duel = next(d for d in utility_page.duels([theirs, *cells], ["T"], ["1"]) if d.score == "f")
            assert duel.beats(duel.strict) == won
            assert not duel.loses(duel.strict)
            assert ("**tree-dp" in utility_page.duel_table([duel])[2]) == won

    def test_labels_that_come_through_are_named_by_claim(self) -> None:
        cells = [
            replace(cell("laplace", 0.5), scores={"labels": 0.51}),
            replace(cell("ranking-dp", 0.5, claim="dp-given-partition"), scores={"labels": 0.8}),
            replace(cell("idp-cbls", 0.5, claim="idp-given-partition"), scores={"labels": 0.99}),
            replace(cell("laplace", 0.5), epsilon="10", scores={"labels": 1.0}),
        ]
        text = utility_page._labels(cells)[0]
        assert "At ε = 1 no method" in text
        assert "more than 51% of the labels." in text
        assert "Methods that claim less give back 80% to 99%." in text

    def test_only_claims_about_the_records_are_printed_bold(self) -> None:
        cells = [cell("tree-dp", 0.5), cell("ranking-dp", 0.7, claim="dp-given-partition")]
        rows = utility_page.result_table(utility_page.lines_of(cells, "T", "1"), [])[2:]
        assert rows[0].startswith("| `tree-dp` | **dp**, replace-one | **0.1000** |")
        assert "**0.500**" in rows[0]
        assert "**" not in rows[1]

    def test_without_a_synthesiser_there_is_no_comparison(self) -> None:
        found = utility_page.duels([cell("tree-dp", 0.5)], ["T"], ["1"])
        assert utility_page.conclusion(found, []) == ["No comparison is complete yet."]

    def test_a_page_without_new_seeds_is_written(self) -> None:
        task = made_up_task(60)
        text = utility.page(utility_cells.bounds_of(task, range(1)), [task], 0)
        assert "means of the seeds that were kept" in text

    def test_the_page_names_what_is_missing(self) -> None:
        task = made_up_task(60)
        cells = [*utility_cells.bounds_of(task, range(2))]
        made = next(c for c in CONTESTANTS if c.name == "tree-dp").make(task, "1", 0)
        scores = utility_cells.scores_of(task, made, 0)
        cells.append(Cell(task.name, "tree-dp", "1", claim="dp", neighbours=made.neighbours, scores=scores))
        text = utility.page(cells, [task], 2)
        assert (
            "40 records protected, 20 held out; 2 columns of numbers, 1 of names, and the label: x > 60."
            in text
        )
        assert "Not measured: `AIM (dpmm)`, `MST (dpmm)`." in text
        assert f"| {ORIGINAL} |" in text
        assert "Incomplete: 6 of 6 runs of the synthesisers are not measured yet." in text
        assert f"| `tree-dp` | **dp**, replace-one | **{scores['marginal']:.4f}**" in text
