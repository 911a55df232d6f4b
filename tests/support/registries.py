"""The tables that `shoal.extend` adds to: registrations of a test or a page are removed after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shoal.evaluation import measures
from shoal.io import FORMATS
from shoal.mechanisms import partition_stage, registry
from shoal.noise import families
from shoal.report import pages

TABLES: tuple[dict[str, Any], ...] = (
    families._NOISES,
    partition_stage._PARTITIONS,
    registry._registered,
    measures._MEASURES,
    pages._SECTIONS,
    FORMATS,
)


@contextmanager
def forgotten_afterwards() -> Iterator[None]:
    before = [dict(table) for table in TABLES]
    try:
        yield
    finally:
        for table, entries in zip(TABLES, before, strict=True):
            table.clear()
            table.update(entries)
