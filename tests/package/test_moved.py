"""Old paths of documented modules still work, with a one-line notice of the new path."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

import shoal.columns.kinds
from shoal._moved import GONE, MOVED, RENAMED

# what docs/reference.md documented under a path that has moved
NAMES = (
    "shoal.columns.bands.breaks_of",
    "shoal.columns.circumstances.Declared",
    "shoal.columns.circumstances.Recorded",
    "shoal.columns.lattice.Lattice",
    "shoal.evaluation.attacks.risk.Risk",
    "shoal.evaluation.disclosure.diversity.Diversity",
    "shoal.evaluation.disclosure.figures.RiskFigures",
    "shoal.evaluation.disclosure.keys.Coded",
    "shoal.evaluation.disclosure.loglinear.PopulationUniques",
    "shoal.evaluation.population.Estimate",
    "shoal.evaluation.risk_lines.RiskLine",
    "shoal.evaluation.verdict.Measured",
    "shoal.evaluation.verdict.RiskLine",
    "shoal.io.conventions.Conventions",
    "shoal.mechanisms.promises.MethodInfo",
    "shoal.method.budget.Plan",
    "shoal.method.claims.Case",
    "shoal.method.claims.Claim",
    "shoal.method.claims.MethodTerms",
    "shoal.method.claims.Promise",
    "shoal.method.claims.StatementTerms",
    "shoal.method.forms.SWITCH",
    "shoal.method.method.Output",
    "shoal.method.parameters.Parameter",
    "shoal.method.parameters.parameter",
    "shoal.method.parameters.shared",
    "shoal.method.registry.MethodInfo",
    "shoal.method.registry.method_class",
    "shoal.method.stages.PartitionStage",
    "shoal.method.tuned.Choice",
    "shoal.method.tuned.Tuned",
    "shoal.method.verdict.PublicVerdict",
    "shoal.method.verdict.Reason",
    "shoal.noise.box_shape.Region",
    "shoal.noise.categorical.categorical_centroids",
    "shoal.query.composition.charge",
    "shoal.query.composition.total",
    "shoal.release.protect.Cluster",
    "shoal.report.sections.Page",
    "shoal.report.sections.Section",
    "shoal.text.render.Message",
    "shoal.tuning.choose.Row",
)


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    for name in (*MOVED, *GONE):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("path", NAMES)
def test_a_documented_name_is_found_under_its_old_path(path: str) -> None:
    module, _, name = path.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"{module} has moved to {MOVED[module]}"):
        old = import_module(module)
    assert getattr(old, name) is getattr(import_module(MOVED[module]), RENAMED.get((module, name), name))


# names of documented classes that are others, where the module is still at its place
RENAMED_IN_PLACE = (
    ("shoal.evaluation.attacks.singling", "Risk", "AttackRisk"),
    ("shoal.ledger.releases", "Recorded", "RecordedRelease"),
    ("shoal.mechanisms.moments.statistics", "Summary", "MomentSummary"),
    ("shoal.query.facts", "Facts", "DatasetFacts"),
    ("shoal.release.estimate", "Estimate", "ResourceEstimate"),
)


@pytest.mark.parametrize(("module", "old", "new"), RENAMED_IN_PLACE)
def test_an_old_class_name_is_the_new_class(module: str, old: str, new: str) -> None:
    there = import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{module}.{old} is {new} now"):
        assert getattr(there, old) is getattr(there, new)
    with pytest.raises(AttributeError, match="never_was"):
        there.never_was  # noqa: B018


def test_an_old_path_does_not_hide_a_function_of_its_name() -> None:
    code = (
        "from shoal.release.protect import Cluster; from shoal.evaluation.verdict import RiskLine; import shoal;"
        "print(type(shoal.protect).__name__, type(shoal.verdict).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["function", "function"]


def test_every_moved_module_has_a_documented_name() -> None:
    assert {path.rpartition(".")[0] for path in NAMES} == set(MOVED)


def test_a_new_path_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        import_module("shoal.columns.kinds")


def test_the_old_path_can_be_imported_from_in_a_new_process() -> None:
    code = "from shoal.columns.lattice import Lattice; print(Lattice.__module__)"
    done = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == shoal.columns.kinds.Lattice.__module__
    assert done.stderr.count("shoal.columns.lattice has moved") == 1


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("shoal.columns.nothing")
