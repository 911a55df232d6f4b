"""A runner for tests that runs every task twice."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from shoal.engines import runner
from shoal.engines.runner import Over, Sealed, TaskStage


class Twice(runner.LocalRunner):
    """A runner that runs every task twice on the same batches, as Spark may, and compares the bytes."""

    compared = 0

    def _run(self, what: str, over: Over, stages: Any) -> Iterator[pa.RecordBatch]:
        def again(batches: Iterator[pa.RecordBatch], task: Any) -> Iterator[pa.RecordBatch]:
            given = list(batches)
            # a task goes through pickle on its way to a worker
            first, second = (list(Sealed(pickle.loads(pickle.dumps(task)))(iter(given))) for _ in range(2))
            assert [batch.serialize() for batch in first] == [batch.serialize() for batch in second]
            Twice.compared += len(first)
            yield from first

        sent = [TaskStage(partial(again, task=stage.task), stage.buckets, stage.given) for stage in stages]
        return super()._run(what, over, sent)
