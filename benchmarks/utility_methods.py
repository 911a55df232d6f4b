"""The methods of the utility benchmark: release a task's table at an ε with a seed."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import shoal
from benchmarks.utility_tables import ROOT, Numbers, Task

DPMM_PYTHON = ROOT / ".venv-dpmm" / "bin" / "python"
# rows that synthesisers made, by run: scores can change without another run
KEPT = ROOT / ".utility"
# MB; what the authors of AIM recommend for comparisons
LARGEST_MODEL = 80
# seconds of processor time after which a synthesiser is stopped
LIMIT = 900


class TooSlowError(Exception):
    """A synthesiser was stopped."""


@dataclass(frozen=True, eq=False)
class Made:
    """One release and what it took.

    Attributes:
        facts: further measurements, such as the size of a model.
    """

    data: pa.Table
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """pairs-dp with the number of rows given, as it is to the synthesisers."""

    name: str
    has_delta: bool

    def make(self, task: Task, epsilon: str, seed: int) -> Made:
        options: dict[str, Any] = {"delta": task.delta} if self.has_delta else {}
        schema, rows = task.schema(), task.records.num_rows
        used = time.process_time()
        release = shoal.protect(
            task.records, schema, "pairs-dp", epsilon=epsilon, seed=seed, rows=rows, **options
        )
        return Made(release.data, time.process_time() - used)


@dataclass(frozen=True)
class Synthesiser:
    """A marginal synthesiser of dpmm, run by its own interpreter on public bins."""

    name: str
    model: str

    def make(self, task: Task, epsilon: str, seed: int) -> Made:
        """Run it in a process of its own, unless its rows were kept.

        Raises:
            TooSlowError: it took more than `LIMIT` seconds of processor time.
        """
        place = KEPT / f"{task.name}-{self.model}-{epsilon}-{seed}"
        made, facts = place.with_suffix(".parquet"), place.with_suffix(".json")
        if not (made.exists() and facts.exists()):
            KEPT.mkdir(exist_ok=True)
            coarse, found = self._run(task, epsilon, seed)
            unbinned(coarse, task, seed).to_parquet(made, index=False)
            facts.write_text(json.dumps(found), "utf-8")
        found = json.loads(facts.read_text("utf-8"))
        data = pa.Table.from_pandas(pd.read_parquet(made), preserve_index=False)
        return Made(data, found["seconds"], found)

    def _run(self, task: Task, epsilon: str, seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            binned(task).to_csv(folder / "data.csv", index=False)
            settings = {
                "model": self.model,
                "epsilon": float(epsilon),
                "delta": float(task.delta),
                "largest_model": LARGEST_MODEL,
                "seed": seed,
                "columns": {column: list(names) for column, names in coarse_domains(task).items()},
            }
            (folder / "settings.json").write_text(json.dumps(settings), "utf-8")
            files = ["data.csv", "settings.json", "made.csv", "facts.json"]
            command = [str(DPMM_PYTHON), str(ROOT / "benchmarks" / "utility_dpmm.py"), *files]
            # of processor time, which does not depend on what else the machine does
            limited = ["bash", "-c", f'ulimit -t {math.ceil(LIMIT)}; exec "$@"', "bash", *command]
            single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(limited, cwd=folder, env={**os.environ, **single})
            if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                raise TooSlowError(f"not finished after {LIMIT} s")
            done.check_returncode()
            made = pd.read_csv(folder / "made.csv", dtype=str, keep_default_na=False)
            found: dict[str, Any] = json.loads((folder / "facts.json").read_text("utf-8"))
            return made, found


def coarse_domains(task: Task) -> dict[str, tuple[str, ...]]:
    """Every column as names: bins by their number."""
    return {
        name: tuple(map(str, range(domain.starts().size))) if isinstance(domain, Numbers) else domain
        for name, domain in task.domains.items()
    }


def binned(task: Task) -> pd.DataFrame:
    """The records as a synthesiser gets them: numbers as the number of their public bin."""
    columns: dict[str, Any] = {}
    for name, domain in task.domains.items():
        column = task.records[name].to_numpy(zero_copy_only=False)
        if isinstance(domain, Numbers):
            units = domain.units(column.astype(np.float64))
            column = (np.searchsorted(domain.starts(), units, side="right") - 1).astype(str)
        columns[name] = column
    return pd.DataFrame(columns)


def unbinned(coarse: pd.DataFrame, task: Task, seed: int) -> pd.DataFrame:
    """The way back: a value of the bin, all of them equally likely."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for name, domain in task.domains.items():
        column = coarse[name].to_numpy()
        if isinstance(domain, Numbers):
            starts, bins = domain.starts(), column.astype(np.int64)
            ends = np.append(starts[1:], domain.values)
            column = domain.of_units(random.integers(starts[bins], ends[bins]))
        columns[name] = column
    return pd.DataFrame(columns)


Contestant = Preset | Synthesiser

OURS = (Preset("pairs-dp, δ", has_delta=True), Preset("pairs-dp", has_delta=False))
THEIRS = (Synthesiser("MST", "MST"), Synthesiser("AIM", "AIM"))
