"""What a guarantee compares and what it costs: adjacency, and the accountant that all noise is paid through."""

from shoal.privacy.accountant import Accountant, Charge, Currency, OverspendError, Parallel, Spend
from shoal.privacy.adjacency import Adjacency

__all__ = ["Accountant", "Adjacency", "Charge", "Currency", "OverspendError", "Parallel", "Spend"]
