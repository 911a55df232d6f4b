"""Where tables are measured: paths and an engine come in, a runner for each table leaves, or nothing for memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shoal.errors import OptionError
from shoal.io import is_parquet
from shoal.io.binary_files import Frozen, frozen
from shoal.release.engines.local import LocalRunner
from shoal.release.engines.stages import Runner
from shoal.text import Message

Engine = Literal["memory", "local", "spark"]
ENGINES: tuple[Engine, ...] = ("memory", "local", "spark")
# number of values (rows times columns) from which Parquet files are not loaded as a whole
LARGE = 20_000_000


@dataclass(frozen=True, slots=True)
class Where:
    """Where the work is done, as a caller says it.

    Attributes:
        engine: None chooses by the size of the tables.
        master, conf: as for `shoal.publish`.
    """

    engine: str | None = None
    master: str | None = None
    conf: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what cannot be."""
        if self.engine is not None and self.engine not in ENGINES:
            raise OptionError("unknown-engine", option="engine", engine=self.engine, allowed=tuple(ENGINES))
        for name in ("master", "conf"):
            if getattr(self, name) and self.engine != "spark":
                raise OptionError("option-engine-spark", option=name)

    def runners(self, tables: Sequence[Any], obstacle: Message | None = None) -> tuple[Runner, ...] | None:
        """A runner for each table; None where they are measured in memory.

        Args:
            tables: paths; anything else is in memory already.
            obstacle: why the tables have to be in memory; None if they need not be.

        Raises:
            OptionError: an engine was asked for, and a table is no Parquet file, or has to be in memory.
        """
        self.check()
        paths = [Path(table) if isinstance(table, (str, Path)) else None for table in tables]
        wanted = self.engine in ("local", "spark")
        if wanted and obstacle:
            raise OptionError(
                "engine-works-through-tables-parts", option="engine", engine=self.engine, obstacle=obstacle
            )
        found = [path for path in paths if path is not None and path.exists() and is_parquet(path)]
        if len(found) < len(paths):
            if wanted:
                odd = next(path for path in paths if path is None or path not in found)
                raise OptionError(
                    "engine-reads-parquet" if odd is None else "engine-reads-parquet-not-this",
                    option="engine",
                    engine=self.engine,
                    path=odd,
                )
            return None
        if self.engine == "memory" or (not wanted and obstacle):
            return None
        if self.engine == "spark":
            from shoal.release.engines.spark_input import spark_runner

            return tuple(spark_runner(path, None, self.master, self.conf) for path in found)
        files = [frozen(path) for path in found]
        if not wanted and not any(path.is_dir() for path in found) and not any(map(large, files)):
            return None
        return tuple(LocalRunner(one) for one in files)


def large(files: Frozen) -> bool:
    """Whether files are not loaded as a whole unless that is asked for."""
    return files.rows * len(files.schema) >= LARGE
