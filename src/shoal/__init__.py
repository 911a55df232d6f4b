"""Turn a table about people into one that can be published, and say exactly what is promised."""

from shoal import noise, partition
from shoal._version import __version__
from shoal.auditing import Audit, audit
from shoal.errors import ClaimError, InputError, OptionError, OutputError, ShoalError
from shoal.evaluation import Evaluation, evaluate
from shoal.evaluation.attacks import AttackReport, attack
from shoal.kanonymity import Check, check
from shoal.partition import Partition
from shoal.presets import methods
from shoal.release import Release, protect
from shoal.schema import Attribute, Schema
from shoal.statement import PrivacyStatement

__all__ = [
    "AttackReport",
    "Attribute",
    "Audit",
    "Check",
    "ClaimError",
    "Evaluation",
    "InputError",
    "OptionError",
    "OutputError",
    "Partition",
    "PrivacyStatement",
    "Release",
    "Schema",
    "ShoalError",
    "__version__",
    "attack",
    "audit",
    "check",
    "evaluate",
    "methods",
    "noise",
    "partition",
    "protect",
]
