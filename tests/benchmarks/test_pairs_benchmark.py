"""The ablation of pairs-dp: its file of figures, the page it writes, and that its variations vary something."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from benchmarks import pairs
from benchmarks.pairs import Figure, Time
from benchmarks.pairs_tables import MORE
from benchmarks.pairs_variations import STUDIES, VARIATIONS, Study, Variation, model
from benchmarks.utility_tables import Numbers

from .test_utility_benchmark import made_up_task


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
