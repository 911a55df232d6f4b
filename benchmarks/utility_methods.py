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

import pyarrow as pa
from pyarrow import csv

import shoal
from benchmarks.utility_tables import (
    LABEL,
    Numbers,
    Task,
    with_name_as_label,
    with_number_as_label,
)

ROOT = Path(__file__).parents[1]
DPMM_PYTHON = ROOT / ".venv-dpmm" / "bin" / "python"
DELTA = 1e-6
# noise on the mean of a group of k, as part of the domain, that k is chosen for
NOISE_AIM = 0.01
# MB; what the authors of AIM recommend for comparisons, and more than any table here came to
LARGEST_MODEL = 80


@dataclass(frozen=True, eq=False)
class Made:
    """One release and what it took.

    Attributes:
        aligned: values in the order of the records, None where rows have no original.
        claim: the model of the statement, or what the synthesiser says of itself.
        facts: further measurements, such as the size of a model.
    """

    data: pa.Table
    aligned: pa.Table | None
    claim: str
    neighbours: str
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """A method of Shoal.

    Attributes:
        sized: takes the k of the rule below.
        takes_names: nominal columns; otherwise the label stands as 0 or 1 and is read back by its half.
        given: the number of rows is declared, as it is to the synthesisers.
        predicts: the label is named as the column to predict.
    """

    name: str
    method: str
    sized: bool = False
    takes_names: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    dear: bool = False
    given: bool = False
    predicts: bool = False

    def can(self, task: Task) -> bool:
        return self.takes_names or not task.has_names

    def settings(self, task: Task, epsilon: str) -> dict[str, Any]:
        found = dict(self.options)
        if self.given:
            found["rows"] = task.records.num_rows
        if self.predicts:
            found["target"] = LABEL
        if self.sized:
            found["k"] = size_rule(task.records.num_rows, len(task.domains), float(epsilon))
        return found

    def make(self, task: Task, epsilon: str, seed: int) -> Made:
        records = task.records if self.takes_names else with_number_as_label(task.records)
        schema = task.schema(label_as_number=not self.takes_names)
        settings = self.settings(task, epsilon)
        used = time.process_time()
        release = shoal.protect(records, schema, self.method, epsilon=epsilon, seed=seed, **settings)
        seconds = time.process_time() - used
        data, aligned = release.data, release.aligned
        if not self.takes_names:
            data = with_name_as_label(data)
            aligned = None if aligned is None else with_name_as_label(aligned)
        stated = release.statement
        return Made(data, aligned, stated.model, stated.adjacency.words if stated.adjacency else "", seconds)


@dataclass(frozen=True)
class Synthesiser:
    """A marginal synthesiser of dpmm, run by its own interpreter."""

    name: str
    model: str
    dear: bool = True

    def can(self, task: Task) -> bool:
        return True

    def settings(self, task: Task, epsilon: str) -> dict[str, Any]:
        return {
            "model": self.model,
            "delta": DELTA,
            "binning": "uniform",
            "bins": "auto",
            "share": 0,
            "largest_model": LARGEST_MODEL,
        }

    def make(self, task: Task, epsilon: str, seed: int, *, limit: float | None = None) -> Made:
        """Run it in a process of its own.

        Raises:
            subprocess.TimeoutExpired: it took more than `limit` seconds of processor time.
        """
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            csv.write_csv(task.records, folder / "data.csv")
            wanted = {
                **self.settings(task, epsilon),
                "epsilon": float(epsilon),
                "seed": seed,
                "columns": domains_for_dpmm(task),
            }
            (folder / "settings.json").write_text(json.dumps(wanted), "utf-8")
            files = ["data.csv", "settings.json", "made.csv", "facts.json"]
            command = [str(DPMM_PYTHON), str(ROOT / "benchmarks" / "utility_dpmm.py"), *files]
            if limit is not None:
                # of processor time, which does not depend on what else the machine does
                command = ["bash", "-c", f'ulimit -t {math.ceil(limit)}; exec "$@"', "bash", *command]
            done = subprocess.run(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
            if limit is not None and done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                raise subprocess.TimeoutExpired(command, limit)
            done.check_returncode()
            facts = json.loads((folder / "facts.json").read_text("utf-8"))
            data = read_made(folder / "made.csv", task)
        claim, neighbours = f"dp, δ = {DELTA:g}", "one record added or removed"
        return Made(data, None, claim, neighbours, facts["seconds"], facts)


def read_made(path: Path, task: Task) -> pa.Table:
    """Made-up rows from a file; names stay names where they look like numbers."""
    names = {name: pa.string() for name, domain in task.domains.items() if not isinstance(domain, Numbers)}
    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=names))


Contestant = Preset | Synthesiser


def size_rule(records: int, columns: int, epsilon: float) -> int:
    """A k from public facts: noise of about a hundredth of the domain in every column, but at least ten groups.

    The standard deviation on a mean is √2 · width / (k · ε / columns), see the guide on ε and k.
    """
    wanted = math.ceil(math.sqrt(2) * columns / (NOISE_AIM * epsilon))
    return max(3, min(wanted, records // 10))


def domains_for_dpmm(task: Task) -> dict[str, dict[str, Any]]:
    """The same public facts in dpmm's words."""
    found: dict[str, dict[str, Any]] = {}
    for name, domain in task.domains.items():
        if not isinstance(domain, Numbers):
            found[name] = {"categories": list(domain)}
        elif domain.few:
            found[name] = {"categories": [str(value) for value in range(int(domain.lo), int(domain.hi) + 1)]}
        else:
            found[name] = {"lower": domain.lo, "upper": domain.hi}
    return found


CONTESTANTS: tuple[Contestant, ...] = (
    Synthesiser("AIM (dpmm)", "AIM"),
    Synthesiser("MST (dpmm)", "MST"),
    Preset("pairs-dp, n given", "pairs-dp", given=True),
    Preset("pairs-dp", "pairs-dp"),
    Preset("pairs-dp, n given, target", "pairs-dp", given=True, predicts=True),
    Preset("pairs-dp, replace-one", "pairs-dp", options={"neighbours": "replace-one"}),
    Preset("pairs-dp, δ, n given", "pairs-dp", options={"delta": "0.000001"}, given=True),
    Preset("pairs-dp, δ", "pairs-dp", options={"delta": "0.000001"}),
    Preset(
        "pairs-dp, δ, n given, target", "pairs-dp", options={"delta": "0.000001"}, given=True, predicts=True
    ),
    Preset("tree-dp", "tree-dp"),
    Preset("tree-dp, add/remove", "tree-dp", options={"neighbours": "add-remove"}),
    Preset("ranking-dp, unlinked", "ranking-dp", sized=True, takes_names=False, options={"link": False}),
    Preset("insensitive-dp", "insensitive-dp"),
    Preset("laplace", "laplace"),
    Preset("ranking-dp", "ranking-dp", sized=True),
    Preset("mdav-dp", "mdav-dp", sized=True, options={"split": "equal"}),
    Preset("optimal-dp", "optimal-dp", takes_names=False),
    Preset("xm-6", "xm-6", sized=True, takes_names=False),
    Preset("idp-cbls", "idp-cbls", takes_names=False),
)
