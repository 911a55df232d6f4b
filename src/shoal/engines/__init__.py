"""Engines: read and write tables in parts, on one machine (`local`) or on a cluster (`spark`).

Work is a sequence of stages. A stage is a pure function from batches to batches; its output goes into buckets, from
which the next stage reads. Draws made once are made on the driver; draws made per record come from keyed
streams, so a task that runs again produces the same bytes.
"""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
