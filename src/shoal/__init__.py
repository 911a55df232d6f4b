"""Turn a table about people into one that can be published, and say exactly what is promised."""

from typing import TYPE_CHECKING, Any

from shoal._moved import keep_old_paths
from shoal._version import __version__

if TYPE_CHECKING:
    from shoal import noise, partition
    from shoal.auditing import Audit, audit
    from shoal.columns.attribute import Attribute
    from shoal.columns.schema import Margin, Publication, Schema
    from shoal.columns.steps import Step
    from shoal.errors import (
        CancelledError,
        ClaimError,
        InputError,
        OptionError,
        OutputError,
        ProblemsError,
        ShoalError,
    )
    from shoal.evaluation import Estimates, Evaluation, estimates
    from shoal.evaluation.assessment import Verdict, verdict
    from shoal.evaluation.attacks import AttackReport
    from shoal.evaluation.disclosure import Risk
    from shoal.evaluation.measured import Check
    from shoal.mechanisms.cluster_methods import (
        IdpCBLS,
        IdpLS,
        InsensitiveDP,
        Laplace,
        MdavDP,
        OptimalDP,
        RankingDP,
    )
    from shoal.mechanisms.kanonymity.methods import Anatomy, KAnonymity, SwapMdav, SwapRanking, TCloseness
    from shoal.mechanisms.method import Method
    from shoal.mechanisms.moments.methods import CrossMoment
    from shoal.mechanisms.pairs.method import PairsDP
    from shoal.mechanisms.registry import methods
    from shoal.mechanisms.suppression.method import Suppress
    from shoal.mechanisms.tree.method import TreeDP
    from shoal.partition import Partition
    from shoal.privacy.statement import PrivacyStatement
    from shoal.release.api import protect, redo
    from shoal.release.bundle import Bundle, RegistryRecord, registry_record
    from shoal.release.forecast import ExpectedNoise, expected_noise
    from shoal.release.measure import attack, check, evaluate, risk
    from shoal.release.protection import Release
    from shoal.release.publication import Published, publish
    from shoal.release.rehearsal import Rehearsal, rehearse
    from shoal.taxonomy import Taxonomy
    from shoal.tuning import Tuning, tune

# Where each name is found when it is first used: a program that lists the commands needs none of them.
_PLACES = {
    "AttackReport": "shoal.evaluation.attacks",
    "Attribute": "shoal.columns.schema",
    "Audit": "shoal.auditing",
    "Check": "shoal.evaluation.measured",
    "ClaimError": "shoal.errors",
    "Estimates": "shoal.evaluation",
    "Evaluation": "shoal.evaluation",
    "InputError": "shoal.errors",
    "Margin": "shoal.columns.schema",
    "OptionError": "shoal.errors",
    "OutputError": "shoal.errors",
    "Partition": "shoal.partition",
    "PrivacyStatement": "shoal.privacy.statement",
    "Publication": "shoal.columns.schema",
    "RegistryRecord": "shoal.release.bundle",
    "registry_record": "shoal.release.bundle",
    "Release": "shoal.release.protection",
    "Risk": "shoal.evaluation.disclosure",
    "risk": "shoal.release.measure",
    "Schema": "shoal.columns.schema",
    "ShoalError": "shoal.errors",
    "Step": "shoal.columns.schema",
    "Taxonomy": "shoal.taxonomy",
    "Bundle": "shoal.release.bundle",
    "CancelledError": "shoal.errors",
    "ProblemsError": "shoal.errors",
    "ExpectedNoise": "shoal.release.forecast",
    "expected_noise": "shoal.release.forecast",
    "Published": "shoal.release.publication",
    "publish": "shoal.release.publication",
    "Rehearsal": "shoal.release.rehearsal",
    "redo": "shoal.release.api",
    "rehearse": "shoal.release.rehearsal",
    "Tuning": "shoal.tuning",
    "Verdict": "shoal.evaluation.assessment",
    "verdict": "shoal.evaluation.assessment",
    "attack": "shoal.release.measure",
    "audit": "shoal.auditing",
    "check": "shoal.release.measure",
    "estimates": "shoal.evaluation",
    "evaluate": "shoal.release.measure",
    "methods": "shoal.mechanisms.registry",
    "protect": "shoal.release.api",
    "tune": "shoal.tuning",
    # a method is a class
    "Method": "shoal.mechanisms.method",
    "Anatomy": "shoal.mechanisms.kanonymity.methods",
    "CrossMoment": "shoal.mechanisms.moments.methods",
    "IdpCBLS": "shoal.mechanisms.cluster_methods",
    "IdpLS": "shoal.mechanisms.cluster_methods",
    "InsensitiveDP": "shoal.mechanisms.cluster_methods",
    "KAnonymity": "shoal.mechanisms.kanonymity.methods",
    "Laplace": "shoal.mechanisms.cluster_methods",
    "MdavDP": "shoal.mechanisms.cluster_methods",
    "OptimalDP": "shoal.mechanisms.cluster_methods",
    "PairsDP": "shoal.mechanisms.pairs.method",
    "RankingDP": "shoal.mechanisms.cluster_methods",
    "Suppress": "shoal.mechanisms.suppression.method",
    "SwapMdav": "shoal.mechanisms.kanonymity.methods",
    "SwapRanking": "shoal.mechanisms.kanonymity.methods",
    "TCloseness": "shoal.mechanisms.kanonymity.methods",
    "TreeDP": "shoal.mechanisms.tree.method",
}
_ROOMS = ("noise", "partition")

__all__ = [
    "Anatomy",
    "AttackReport",
    "Attribute",
    "Audit",
    "Bundle",
    "CancelledError",
    "Check",
    "ClaimError",
    "CrossMoment",
    "Estimates",
    "Evaluation",
    "ExpectedNoise",
    "IdpCBLS",
    "IdpLS",
    "InputError",
    "InsensitiveDP",
    "KAnonymity",
    "Laplace",
    "Margin",
    "MdavDP",
    "Method",
    "OptimalDP",
    "OptionError",
    "OutputError",
    "PairsDP",
    "Partition",
    "PrivacyStatement",
    "ProblemsError",
    "Publication",
    "Published",
    "RankingDP",
    "RegistryRecord",
    "Rehearsal",
    "Release",
    "Risk",
    "Schema",
    "ShoalError",
    "Step",
    "Suppress",
    "SwapMdav",
    "SwapRanking",
    "TCloseness",
    "Taxonomy",
    "TreeDP",
    "Tuning",
    "Verdict",
    "__version__",
    "attack",
    "audit",
    "check",
    "estimates",
    "evaluate",
    "expected_noise",
    "methods",
    "noise",
    "partition",
    "protect",
    "publish",
    "redo",
    "registry_record",
    "rehearse",
    "risk",
    "tune",
    "verdict",
]

keep_old_paths()


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _ROOMS:
        return import_module(f"shoal.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'shoal' has no attribute '{name}'")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
