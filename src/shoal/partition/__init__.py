"""Group similar records: values in, a `Partition` (one cluster number per record) out."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
