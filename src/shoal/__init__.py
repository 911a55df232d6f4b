"""Turn a table about people into one that can be published, and say exactly what is promised."""

from typing import TYPE_CHECKING, Any

from shoal._version import __version__

if TYPE_CHECKING:
    from shoal import noise, partition
    from shoal.auditing import Audit, audit
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
    from shoal.evaluation import Evaluation, evaluate
    from shoal.evaluation.attacks import AttackReport, attack
    from shoal.evaluation.checks import check
    from shoal.evaluation.measured import Check
    from shoal.mechanisms.promises import methods
    from shoal.method.statement import PrivacyStatement
    from shoal.partition import Partition
    from shoal.release.protect import Release, protect
    from shoal.release.publish import Published, publish
    from shoal.release.saved import Bundle
    from shoal.taxonomy import Taxonomy
    from shoal.tuning import Tuning, tune

# Where each name is found when it is first used: a program that lists the commands needs none of them.
_PLACES = {
    "AttackReport": "shoal.evaluation.attacks",
    "Attribute": "shoal.columns.schema",
    "Audit": "shoal.auditing",
    "Check": "shoal.evaluation.measured",
    "ClaimError": "shoal.errors",
    "Evaluation": "shoal.evaluation",
    "InputError": "shoal.errors",
    "OptionError": "shoal.errors",
    "OutputError": "shoal.errors",
    "Partition": "shoal.partition",
    "PrivacyStatement": "shoal.method.statement",
    "Release": "shoal.release.protect",
    "Schema": "shoal.columns.schema",
    "ShoalError": "shoal.errors",
    "Taxonomy": "shoal.taxonomy",
    "Bundle": "shoal.release.saved",
    "CancelledError": "shoal.errors",
    "ProblemsError": "shoal.errors",
    "Published": "shoal.release.publish",
    "publish": "shoal.release.publish",
    "Tuning": "shoal.tuning",
    "attack": "shoal.evaluation.attacks",
    "audit": "shoal.auditing",
    "check": "shoal.evaluation.checks",
    "evaluate": "shoal.evaluation",
    "methods": "shoal.mechanisms.promises",
    "protect": "shoal.release.protect",
    "tune": "shoal.tuning",
}
_ROOMS = ("noise", "partition")

__all__ = [
    "AttackReport",
    "Attribute",
    "Audit",
    "Bundle",
    "CancelledError",
    "Check",
    "ClaimError",
    "Evaluation",
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
    "methods",
    "noise",
    "partition",
    "protect",
    "publish",
    "tune",
]


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
