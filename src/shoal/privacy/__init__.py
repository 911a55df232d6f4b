"""What a guarantee compares and what it costs: adjacency, and the accountant that all noise is paid through."""

from shoal.privacy.accountant import Accountant, Adjacency, Charge, Currency, OverspendError, Parallel, Spend

__all__ = ["Accountant", "Adjacency", "Charge", "Currency", "OverspendError", "Parallel", "Spend"]
