"""Attacks: measure re-identification risk by attacking a released table, with an optional control group."""

from shoal.evaluation.attacks.run import AttackReport, attack

__all__ = ["AttackReport", "attack"]
