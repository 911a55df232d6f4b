"""Attacks: an original, a released and perhaps a control table come in, measured risks leave."""

from shoal.evaluation.attacks.run import AttackReport, attack

__all__ = ["AttackReport", "attack"]
