"""The utility benchmark: its tables, its scores on tables with known answers, its file of runs, and its page."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import utility_cells, utility_page, utility_scores
from benchmarks.utility_cells import Cell
from benchmarks.utility_methods import (
    OURS,
    THEIRS,
    Made,
    Synthesiser,
    TooSlowError,
    binned,
    coarse_domains,
    unbinned,
)
from benchmarks.utility_page import SCORES, Figure
from benchmarks.utility_scores import Sides
from benchmarks.utility_tables import (
    BINS,
    DEVELOPMENT,
    REPORTED,
    SHORT,
    Domain,
    Numbers,
    Regression,
    Source,
    Task,
    Yes,
    on_lattice,
)

TOWNS = tuple(f"town {number}" for number in range(20))
DOMAINS: dict[str, Domain] = {
    "age": Numbers(0, 99, 1),
    "income": Numbers(0, 50_000, 1, log=True),
    "bit": ("0", "1"),
    "town": TOWNS,
}


def made_up_task(rows: int = 400, seed: int = 0) -> Task:
    """Income follows age and town, the bit follows age."""
    random = np.random.default_rng(seed)
    age, town = random.integers(0, 100, rows), random.integers(0, 20, rows)
    income = np.minimum(age * 200 + town * 500 + random.integers(0, 100, rows), 50_000)
    table = pa.table(
        {
            "age": age,
            "income": income,
            "bit": np.where(age > 50, "1", "0"),
            "town": np.array(TOWNS)[town],
        }
    )
    half = rows // 2
    return Task(
        "Made up",
        DOMAINS,
        table.slice(0, half),
        table.slice(half),
        Regression("income", ("age", "bit")),
        Yes("bit", "1"),
        (("town", "income"),),
    )


def column(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


class TestTables:
    @pytest.mark.parametrize("name", [*DEVELOPMENT, *REPORTED])
    def test_questions_are_about_columns_that_are_there(self, name: str) -> None:
        source = (DEVELOPMENT | REPORTED)[name]
        asked = {
            source.regression.outcome,
            *source.regression.on,
            *(c for pair in source.means for c in pair),
        }
        assert asked | ({source.target.column} if source.target else set()) <= set(source.domains)
        for outcome in (source.regression.outcome, *(number for _, number in source.means)):
            assert isinstance(source.domains[outcome], Numbers)
        for by, _ in source.means:
            assert not isinstance(source.domains[by], Numbers)

    def test_no_table_is_both(self) -> None:
        assert not set(DEVELOPMENT) & set(REPORTED)

    @pytest.mark.parametrize("name", ["Adult", "national2019"])
    def test_tables_of_the_repository_are_inside_their_domains(self, name: str) -> None:
        task = DEVELOPMENT[name].task(name)
        assert task.schema().names == tuple(task.domains) == tuple(task.records.column_names)
        for column, domain in task.domains.items():
            values = task.records[column].to_pylist()
            if isinstance(domain, Numbers):
                assert domain.lo <= min(values) <= max(values) <= domain.hi
            else:
                assert set(values) <= set(domain)

    def test_a_short_column_has_a_bin_for_each_value(self) -> None:
        assert Numbers(17, 90, 1).starts().tolist() == list(range(74))

    @pytest.mark.parametrize(
        "domain",
        [
            Numbers(0, 5_000, 1),
            Numbers(0, 100_000, 1, log=True),
            Numbers(-4, 5, 0.01),
            Numbers(-100, 1400, 1, cuts=(-10, 0, 10)),
        ],
    )
    def test_long_columns_have_bins_that_cover_the_range_once(self, domain: Numbers) -> None:
        starts = domain.starts()
        assert starts[0] == 0
        assert (np.diff(starts) > 0).all()
        assert starts[-1] < domain.values
        assert len(starts) <= BINS < SHORT < domain.values

    def test_growing_bins_keep_zero_by_itself(self) -> None:
        assert Numbers(0, 100_000, 1, log=True).starts()[:2].tolist() == [0, 1]

    def test_values_are_clipped_and_rounded_to_the_step(self) -> None:
        import pandas as pd

        frame = pd.DataFrame({"x": [-1.0, 0.26, 9.0], "n": [1, 2, 3]})
        table = on_lattice(frame, {"x": Numbers(0, 1, 0.1), "n": ("1", "2", "3")})
        assert table.to_pydict() == {"x": [0.0, 0.3, 1.0], "n": ["1", "2", "3"]}

    def test_a_third_is_held_out_and_no_row_is_in_both_parts(self) -> None:
        import pandas as pd

        domains: dict[str, Domain] = {"x": Numbers(0, 300, 1), "names": ()}
        frame = pd.DataFrame({"x": range(301), "names": ["b", "a", *"a" * 299]})
        task = Source(lambda: frame, domains, Regression("x", ())).task("Made up")
        assert task.held_out is not None
        kept, out = (set(part["x"].to_pylist()) for part in (task.records, task.held_out))
        assert len(out) == 101
        assert kept | out == set(range(301))
        assert task.domains["names"] == ("a", "b")


class TestMethods:
    def test_binned_and_back_stays_in_its_bin(self) -> None:
        task = made_up_task()
        coarse = binned(task)
        assert all(set(coarse[name]) <= set(names) for name, names in coarse_domains(task).items())
        back = pa.Table.from_pandas(unbinned(coarse, task, 0), preserve_index=False)
        # a short column, and names, come back as they were
        for name in ("age", "bit", "town"):
            assert back[name].to_pylist() == task.records[name].to_pylist()
        assert binned(replace(task, records=back)).equals(coarse)
        assert back["income"].to_pylist() != task.records["income"].to_pylist()

    @pytest.mark.parametrize("preset", OURS, ids=lambda preset: preset.name)
    def test_every_preset_releases_what_can_be_scored(self, preset: Any) -> None:
        task = made_up_task(200)
        made = preset.make(task, "1", 0)
        assert made.data.num_rows == task.records.num_rows
        assert set(utility_scores.scores_of(task, made.data)) == set(utility_scores.OWN_SCORES)


class TestScores:
    def test_a_table_has_no_error_against_itself(self) -> None:
        task = made_up_task()
        found = utility_scores.scores_of(task, task.records)
        for name in set(found) - {"learned", "apart"}:
            assert found[name] == pytest.approx(0, abs=1e-9), name
        assert found["learned"] > 0.95

    def test_rows_of_the_same_source_cannot_be_told_apart(self) -> None:
        other = made_up_task(3_000, seed=1).records
        assert abs(utility_scores.told_apart(Sides(made_up_task(3_000), other)) - 0.5) < 0.1

    def test_total_variation_by_hand(self) -> None:
        before, after = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 2])
        assert utility_scores.total_variation([(before, after)]) == 0.5
        # other combinations of the same single columns
        pair = [(np.array([0, 1]), np.array([0, 1])), (np.array([0, 1]), np.array([1, 0]))]
        assert utility_scores.total_variation(pair) == 1.0

    def test_columns_drawn_alone_keep_single_shares_and_lose_pairs(self) -> None:
        task = made_up_task(4_000)
        random = np.random.default_rng(1)
        shuffled = task.records
        for name in shuffled.column_names:
            shuffled = column(shuffled, name, random.permutation(shuffled[name].to_pylist()))
        sides = Sides(task, shuffled)
        assert utility_scores.one_way(sides) == 0
        assert utility_scores.two_way(sides) > 0.2
        assert (utility_scores.cramers_v(sides) or 0) > 0.1
        assert (utility_scores.spearman(sides) or 0) > 0.5
        assert utility_scores.deviation(sides) == pytest.approx(0)
        assert (utility_scores.means_by_names(sides) or 0) > 0.2
        assert utility_scores.told_apart(sides) > 0.9
        assert (utility_scores.learned(sides) or 0) < 0.7

    def test_cramers_v_is_one_for_a_copy_and_none_for_what_does_not_vary(self) -> None:
        codes = np.array([0, 1, 2] * 10)
        assert utility_scores.v_of(codes, codes) == pytest.approx(1)
        assert utility_scores.v_of(codes, np.zeros(30, np.int64)) == 0

    def test_spreads_and_high_quantiles(self) -> None:
        task = made_up_task()
        wide = column(task.records, "age", np.array(task.records["age"]) * 2)
        sides = Sides(task, wide)
        assert utility_scores.deviation(sides) == pytest.approx(math.log(2) / 2)
        age = np.array(task.records["age"])
        assert utility_scores.high_quantile(sides) == pytest.approx(np.quantile(age, 0.99) / age.std() / 2)

    def test_a_name_that_is_lost_gets_the_mean_of_all(self) -> None:
        task = made_up_task(4_000)
        one = column(task.records, "town", [TOWNS[0]] * task.records.num_rows)
        income, town = (np.array(task.records[name].to_pylist()) for name in ("income", "town"))
        expected = sum(
            (town == name).mean() * abs(income[town == name].mean() - income.mean()) for name in TOWNS
        )
        found = utility_scores.means_by_names(Sides(task, one))
        assert found == pytest.approx(expected / income.std(), rel=0.02)

    def test_coefficients_are_in_standard_errors(self) -> None:
        task = made_up_task()
        sides = Sides(task, column(task.records, "income", np.array(task.records["income"]) + 1.0))
        assert utility_scores.regression(sides) == pytest.approx(0, abs=1e-6)
        b, errors = utility_scores._fit(Sides(task, task.records), 0)
        double = column(task.records, "income", np.array(task.records["income"]) * 2.0)
        assert utility_scores.regression(Sides(task, double)) == pytest.approx(np.mean(np.abs(b) / errors))

    def test_names_that_look_like_numbers_may_come_back_as_numbers(self) -> None:
        task = made_up_task()
        back = column(task.records, "bit", [int(value) for value in task.records["bit"].to_pylist()])
        assert utility_scores.scores_of(task, back) == utility_scores.scores_of(task, task.records)


class Steady:
    """A method that releases the records as they are and counts how often it was asked."""

    def __init__(self, name: str = "steady") -> None:
        self.name, self.asked = name, 0

    def make(self, task: Task, epsilon: str, seed: int) -> Made:
        self.asked += 1
        if seed == 7:
            raise TooSlowError("not finished after 7 s")
        return Made(task.records, 0.1)


@pytest.fixture
def no_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utility_cells, "judged", lambda task, made: [{"sdmetrics": 0.9} for _ in made])


class TestCells:
    def test_a_run_on_disk_has_what_it_needs_and_comes_back(self, tmp_path: Path) -> None:
        cell = Cell("Adult", "MST", "1", 3, scores={"tv1": 0.123456789}, seconds=1.23456)
        utility_cells.add_cell(tmp_path / "cells.jsonl", cell)
        assert "facts" not in (tmp_path / "cells.jsonl").read_text("utf-8")
        (back,) = utility_cells.read_cells(tmp_path / "cells.jsonl").values()
        assert back == replace(cell, scores={"tv1": 0.123457}, seconds=1.23)

    def test_a_line_cut_off_is_left_out_and_the_next_one_is_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "cells.jsonl"
        utility_cells.add_cell(path, Cell("T", "one", "1"))
        with path.open("a", encoding="utf-8") as file:
            file.write('{"table": "T", "meth')
        utility_cells.add_cell(path, Cell("T", "two", "1"))
        assert [cell.method for cell in utility_cells.read_cells(path).values()] == ["one", "two"]

    @pytest.mark.usefixtures("no_judge")
    def test_runs_on_file_are_not_measured_again(self, tmp_path: Path) -> None:
        path, steady, task, said = tmp_path / "new" / "cells.jsonl", Steady(), made_up_task(60), list[str]()
        for _ in range(2):
            utility_cells.fill(path, task, steady, "1", range(2), said.append)  # type: ignore[arg-type]
        assert steady.asked == 2 == len(said)
        cells = utility_cells.read_cells(path)
        assert set(cells) == {
            ("Made up", utility_cells.ORIGINAL, "", 0),
            *(("Made up", "steady", "1", s) for s in (0, 1)),
        }
        assert cells["Made up", "steady", "1", 0].scores["sdmetrics"] == 0.9

    @pytest.mark.usefixtures("no_judge")
    def test_a_synthesiser_that_takes_too_long_is_named(self) -> None:
        found = utility_cells.measure(made_up_task(30), Steady(), "1", [7, 8])  # type: ignore[arg-type]
        assert [cell.failed for cell in found] == ["not finished after 7 s", ""]
        assert not found[0].scores

    @pytest.mark.usefixtures("no_judge")
    def test_a_synthesiser_that_was_stopped_is_not_run_again(self, tmp_path: Path) -> None:
        path, steady, task = tmp_path / "cells.jsonl", Steady(), made_up_task(30)
        for seeds in ([7], [7, 8]):
            utility_cells.fill(path, task, steady, "1", seeds, lambda words: None)  # type: ignore[arg-type]
        assert steady.asked == 1
        assert [cell.seed for cell in utility_cells.read_cells(path).values() if cell.failed] == [7]

    def test_only_runs_of_shoal_are_forgotten(self, tmp_path: Path) -> None:
        path = tmp_path / "cells.jsonl"
        for method in (OURS[0].name, "AIM"):
            for table in ("Adult", "Males"):
                utility_cells.add_cell(path, Cell(table, method, "1"))
        utility_cells.drop_ours(path, ["Adult"], ["1"])
        left = {(cell.table, cell.method) for cell in utility_cells.read_cells(path).values()}
        assert left == {("Males", OURS[0].name), ("Adult", "AIM"), ("Males", "AIM")}

    def test_what_is_missing(self) -> None:
        cells = [Cell("Adult", "MST", "1", seed) for seed in range(3)] + [Cell("Adult", "AIM", "1")]
        assert utility_cells.missing_runs(cells, ["Adult", "Males"], ["1"], 3) == {
            "MST": [("Males", "1", 3)],
            "AIM": [("Adult", "1", 2), ("Males", "1", 3)],
        }

    def test_a_stopped_process_is_too_slow(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        import signal
        import subprocess

        from benchmarks import utility_methods

        monkeypatch.setattr(utility_methods, "KEPT", tmp_path)
        done = subprocess.CompletedProcess([], -signal.SIGXCPU)
        monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: done)
        with pytest.raises(TooSlowError, match="not finished after 900 s"):
            Synthesiser("AIM", "AIM").make(made_up_task(30), "1", 0)


def runs(method: str, values: list[float], table: str = "Adult", score: str = "tv1") -> list[Cell]:
    return [Cell(table, method, "1", seed, scores={score: value}) for seed, value in enumerate(values)]


class TestPage:
    def test_intervals_of_both_sides_count(self) -> None:
        ours = Figure(0, 1.0, 10)
        # two groups of ten with the same spread: Student's t with 18 degrees of freedom
        assert utility_page.interval(ours, ours) == pytest.approx(2.100922 * math.sqrt(0.2), rel=1e-5)
        assert utility_page.interval(ours, Figure(0, 3.0, 3)) > utility_page.interval(ours, Figure(0, 1.0, 3))
        # one run has the spread of the other side
        assert utility_page.interval(ours, Figure(0, None, 1)) == pytest.approx(2.262157 * math.sqrt(1.1))
        assert utility_page.interval(Figure(0, None, 1), Figure(0, None, 1)) == math.inf

    @pytest.mark.parametrize(
        ("theirs", "says"),
        [
            ([0.2, 0.21, 0.19], "win"),
            ([0.05, 0.051, 0.049], "loss"),
            # their spread is wide
            ([0.05, 0.2, 0.3], "tie"),
            # closer than a twentieth
            ([0.1021, 0.102, 0.1019], "tie"),
        ],
    )
    def test_wins_ties_and_losses(self, theirs: list[float], says: str) -> None:
        cells = runs("pairs-dp", [0.1, 0.1001, 0.0999]) + runs("AIM", theirs) + runs("MST", [0.9, 0.91])
        (found,) = utility_page.verdicts(cells, "pairs-dp", ["Adult"], ["1"])
        assert (found.says, found.rival) == (says, "AIM")

    def test_scores_of_which_more_is_better_count_from_their_best(self) -> None:
        assert SCORES["k_marginal"].error(980) == 20
        assert SCORES["apart"].error(0.6) == pytest.approx(SCORES["apart"].error(0.4))
        cells = runs("pairs-dp", [981, 980], score="k_marginal") + runs("AIM", [960, 961], score="k_marginal")
        (found,) = utility_page.verdicts(cells, "pairs-dp", ["Adult"], ["1"])
        assert found.says == "win"

    def test_losses_are_printed_and_wins_counted(self) -> None:
        cells = [*runs("pairs-dp", [0.2, 0.21]), *runs("AIM", [0.1, 0.1])]
        cells += [*runs("pairs-dp", [0.2, 0.21], "flights"), *runs("MST", [0.9, 0.91], "flights")]
        found = utility_page.verdicts(cells, "pairs-dp", ["Adult", "flights"], ["1"])
        assert utility_page.counts(found) == (1, 0, 1)
        assert utility_page.verdict_table({"pairs-dp": found})[-1] == "| all | 1, 0, 1 |"
        assert utility_page.loss_table(found)[-1] == (
            "| `pairs-dp` | total variation of single columns | Adult: 0.2050 against 0.1000 (AIM) |"
        )
        assert utility_page.loss_table([]) == ["None."]

    def test_reported_tables_are_empty_until_they_are_measured(self) -> None:
        cells = runs("pairs-dp, δ", [0.1, 0.11]) + runs("MST", [0.2, 0.21]) + runs("MST", [0.2], "Males")
        text = utility_page.page(cells, 3)
        assert utility_page.ONCE in text
        assert "- AIM: 42 of 42" in text
        assert "Compared without AIM, which has no finished run: Adult." in text
        assert "for want of a finished run of either: national2019, diamonds, VietNamI, flights." in text
        cells += runs("pairs-dp, δ", [0.1, 0.11], "Males")
        assert utility_page.ONCE not in utility_page.page(cells, 3)

    def test_a_goal_says_how_far_it_is(self) -> None:
        cells = runs("pairs-dp, δ", [975, 977], "national2019", "k_marginal")
        text = "\n".join(utility_page.nist_section(cells))
        assert "| `pairs-dp, δ` | SDNist k-marginal | 980 | 976.0 | missed by 4.0 |" in text
        cells = runs("pairs-dp", [975, 977], "national2019", "k_marginal")
        assert "| 970 | 976.0 | reached |" in "\n".join(utility_page.nist_section(cells))

    def test_a_run_that_was_stopped_is_on_the_page(self) -> None:
        cells = [*runs("pairs-dp", [0.1]), Cell("Adult", "AIM", "1", failed="not finished after 900 s")]
        assert "not finished after 900 s" in utility_page.result_table(cells, "Adult", "1")[-1]
        assert "- Stopped: Adult, AIM, run 0: not finished after 900 s." in utility_page.page(cells, 3)

    def test_the_rivals_are_the_synthesisers(self) -> None:
        assert [one.name for one in THEIRS] == ["MST", "AIM"]
