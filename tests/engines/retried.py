"""Tasks for runs that lose an executor: noise for clusters whose records are spread over all buckets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.engines.runner import batch_of, by_bucket, scattered
from shoal.io.binary_files import ROW
from shoal.noise import Source, discrete_laplace
from shoal.noise.entropy import SystemEntropy

BUCKETS, CLUSTER = 8, 50


def noisy_clusters(batches: Iterator[pa.RecordBatch], source: Source | None) -> Iterator[pa.RecordBatch]:
    """One draw for every cluster of 50 rows, its rows in different buckets; without a source the hazard: fresh ones."""
    for batch in batches:
        rows = batch.column(batch.schema.names.index(ROW)).to_numpy()
        own = SystemEntropy() if source is None else source.child("clusters", rows.tobytes())
        noise = discrete_laplace(10**6, -(-rows.size // CLUSTER), own)[np.arange(rows.size) // CLUSTER]
        yield batch_of(list(scattered(rows % BUCKETS, 0, rows, noise)))


def slow_rows(batches: Iterator[pa.RecordBatch], pause: float) -> Iterator[pa.RecordBatch]:
    """The rows of a bucket, after a while."""
    for _, parts in by_bucket(batches):
        time.sleep(pause)
        arrays = [np.concatenate([one[place] for one in parts[0]]) for place in (0, 1)]
        order = np.argsort(arrays[0])
        columns: list[Any] = [pa.array(array[order].astype(np.int64)) for array in arrays]
        yield pa.record_batch(columns, names=["row", "noise"])
