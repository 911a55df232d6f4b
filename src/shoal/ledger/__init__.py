"""The privacy-budget ledger: append-only accounts of charges for each data set.

SQLAlchemy is imported when a ledger is opened, not before.
"""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
