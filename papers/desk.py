"""The working environment of a reproduction: data folder, effort, workers, and output of tables and points."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shoal
from shoal.errors import InputError
from shoal.workers import stream

if TYPE_CHECKING:
    import pyarrow as pa

Task = Callable[[], Any]
Progress = Callable[[str, int, int], None]


@cache
def read_table(path: Path) -> pa.Table:
    """A CSV file as it is, read once."""
    from pyarrow import csv

    return csv.read_csv(path)


def _silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Desk:
    """What a paper's module needs to work.

    Attributes:
        data: Folder of the real data sets.
        quick: Fewer settings and runs.
        workers: Processes to use.
        progress: Told what is going on, how much of it is done, and how much there is.
        keep: File of measured points; an interrupted run goes on from it.
    """

    data: Path
    quick: bool = False
    workers: int = 1
    progress: Progress = _silent
    keep: Path | None = None

    def file(self, name: str) -> Path:
        """Path of a data set, or an error that names the folder."""
        path = self.data / name
        if not path.exists():
            raise InputError(
                f"the data set '{name}' is not in '{self.data}': name another folder with --data."
            )
        return path

    def table(self, name: str) -> pa.Table:
        return read_table(self.file(name))

    def measure(self, what: str, tasks: Mapping[str, Task]) -> dict[str, Any]:
        """Results of all tasks (picklable, called without arguments, results fit for JSON), in parallel.

        A key names everything its task depends on. Finished points are kept and not measured again.
        """
        found = {key: value for key, value in self._kept().items() if key in tasks}
        missing = [key for key in tasks if key not in found]
        self.progress(what, len(found), len(tasks))
        with stream(min(self.workers, max(1, len(missing)))) as each:
            for place, result in each([tasks[key] for key in missing]):
                found[missing[place]] = result
                self._write(missing[place], result)
                self.progress(what, len(found), len(tasks))
        return {key: found[key] for key in tasks}

    def _kept(self) -> dict[str, Any]:
        if self.keep is None or not self.keep.exists():
            return {}
        lines = self.keep.read_text("utf-8").splitlines()
        found = {}
        for line in lines:
            # the last line of an interrupted run may be cut
            try:
                source, key, value = json.loads(line)
            except ValueError:
                continue
            # what another state of the code measured is not a result of this one
            if source == source_hash():
                found[key] = value
        return found

    def _write(self, key: str, value: Any) -> None:
        if self.keep is None:
            return
        self.keep.parent.mkdir(parents=True, exist_ok=True)
        with self.keep.open("a", encoding="utf-8") as file:
            file.write(json.dumps([source_hash(), key, value]) + "\n")


@cache
def source_hash() -> str:
    """One word for the state of Shoal's source and of the papers'."""
    digest = hashlib.sha256()
    for root in (Path(shoal.__file__).parent, Path(__file__).parent):
        for path in sorted([*root.rglob("*.py"), *root.rglob("*.toml")]):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
