"""Engines: read and write tables in parts, on one machine (`local`) or on a cluster (`spark`).

Work is a sequence of stages. A stage is a pure function from batches to batches; its output goes into buckets from
which the next stage reads. What is drawn once is drawn on the driver; what is drawn per record comes from keyed
streams, so that a task that runs again makes the same bytes again.
"""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
