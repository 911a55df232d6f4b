"""Run a marginal synthesiser of dpmm in dpmm's own interpreter, on a table whose columns are all names.

.venv-dpmm/bin/python benchmarks/utility_dpmm.py DATA.csv SETTINGS.json OUT.csv OUT.json

The settings hold model ("MST" or "AIM"), epsilon, delta, largest_model (MB, or null), seed and columns: the names that
each can take. This file does not import Shoal, whose environment has other versions of numpy and pandas.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any


def synthesise(data: Path, settings: dict[str, Any], target: Path) -> dict[str, Any]:
    """Write as many synthetic rows as there are records; return what it took."""
    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline

    domains = {column: {"categories": names} for column, names in settings["columns"].items()}
    table = pd.read_csv(data, dtype=str, keep_default_na=False)[list(domains)]
    pipeline = {"MST": MSTPipeline, "AIM": AIMPipeline}[settings["model"]](
        epsilon=settings["epsilon"],
        delta=settings["delta"],
        binner_type="uniform",
        proc_epsilon=None,
        n_bins="auto",
        max_model_size=settings["largest_model"],
        n_jobs=1,
    )
    started, used = time.perf_counter(), time.process_time()
    pipeline.fit(table, domains, random_state=settings["seed"])
    made = pipeline.generate(n_records=len(table), random_state=settings["seed"])
    taken = {"seconds": time.process_time() - used, "elapsed": time.perf_counter() - started}
    made.to_csv(target, index=False)
    return {**taken, "version": version("dpmm"), "model_size": float(pipeline.model_size)}


def main() -> None:
    data, settings, target, facts = map(Path, sys.argv[1:])
    found = synthesise(data, json.loads(settings.read_text("utf-8")), target)
    facts.write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
