"""Tune stage: a table and a budget come in, settings compared by loss and risk leave."""

from shoal.tuning.result import Tuning
from shoal.tuning.tuner import tune

__all__ = ["Tuning", "tune"]
