"""Turn a table about people into one that can be published, and say exactly what is promised."""

from typing import TYPE_CHECKING, Any

from shoal import noise, partition
from shoal._version import __version__
from shoal.columns.schema import Attribute, Schema
from shoal.errors import (
    CancelledError,
    ClaimError,
    InputError,
    OptionError,
    OutputError,
    ProblemsError,
    ShoalError,
)
from shoal.method.presets import methods
from shoal.method.statement import PrivacyStatement
from shoal.partition import Partition
from shoal.release.protect import Release, protect
from shoal.taxonomy import Taxonomy

if TYPE_CHECKING:
    from shoal.auditing import Audit, audit
    from shoal.evaluation import Evaluation, evaluate
    from shoal.evaluation.attacks import AttackReport, attack
    from shoal.evaluation.checks import check
    from shoal.evaluation.measured import Check
    from shoal.release.expected_noise import ExpectedNoise, expected_noise
    from shoal.release.publish import Published, publish
    from shoal.release.saved import Bundle
    from shoal.tuning import Tuning, tune

# Names that are looked up when they are first used: not every program measures, attacks or audits.
_ON_DEMAND = {
    "Audit": "shoal.auditing",
    "audit": "shoal.auditing",
    "Evaluation": "shoal.evaluation",
    "evaluate": "shoal.evaluation",
    "AttackReport": "shoal.evaluation.attacks",
    "attack": "shoal.evaluation.attacks",
    "Check": "shoal.evaluation.measured",
    "check": "shoal.evaluation.checks",
    "Bundle": "shoal.release.saved",
    "ExpectedNoise": "shoal.release.expected_noise",
    "expected_noise": "shoal.release.expected_noise",
    "Published": "shoal.release.publish",
    "publish": "shoal.release.publish",
    "Tuning": "shoal.tuning",
    "tune": "shoal.tuning",
}

__all__ = [
    "AttackReport",
    "Attribute",
    "Audit",
    "Bundle",
    "CancelledError",
    "Check",
    "ClaimError",
    "Evaluation",
    "ExpectedNoise",
    "InputError",
    "OptionError",
    "OutputError",
    "Partition",
    "PrivacyStatement",
    "ProblemsError",
    "Published",
    "Release",
    "Schema",
    "ShoalError",
    "Taxonomy",
    "Tuning",
    "__version__",
    "attack",
    "audit",
    "check",
    "evaluate",
    "expected_noise",
    "methods",
    "noise",
    "partition",
    "protect",
    "publish",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'shoal' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(_ON_DEMAND[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
