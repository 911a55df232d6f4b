"""Run the marginal synthesisers of dpmm in dpmm's own interpreter, on a CSV table with JSON settings.

.venv-dpmm/bin/python benchmarks/utility_dpmm.py DATA.csv SETTINGS.json OUT.csv OUT.json

The settings hold model ("MST" or "AIM"), epsilon, delta, binning ("uniform" or "priv-tree"), share (of epsilon, for
priv-tree), bins, largest_model (MB, or null) and columns: {"lower", "upper"} or {"categories"} for each. This file
does not import Shoal, whose environment has other versions of numpy and pandas.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any


def synthesise(data: Path, settings: dict[str, Any], target: Path) -> dict[str, Any]:
    """Write as many made-up rows as there are records; return what it took."""
    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline

    columns = settings["columns"]
    names = {column: str for column, domain in columns.items() if "categories" in domain}
    table = pd.read_csv(data, dtype=names)[list(columns)]
    epsilon = settings["epsilon"]
    cuts = (
        epsilon * settings["share"]
        if settings["binning"] == "priv-tree" and len(names) < len(columns)
        else None
    )
    pipeline = {"MST": MSTPipeline, "AIM": AIMPipeline}[settings["model"]](
        epsilon=epsilon - (cuts or 0),
        delta=settings["delta"],
        binner_type=settings["binning"],
        proc_epsilon=cuts,
        n_bins=settings["bins"],
        max_model_size=settings["largest_model"],
        n_jobs=1,
    )
    started, used = time.perf_counter(), time.process_time()
    pipeline.fit(table, columns, random_state=settings["seed"])
    made = pipeline.generate(n_records=len(table), random_state=settings["seed"])
    taken = {"seconds": time.process_time() - used, "elapsed": time.perf_counter() - started}
    made.to_csv(target, index=False)
    return {
        **taken,
        "version": version("dpmm"),
        "model_size": float(pipeline.model_size),
        "epsilon_of_cuts": cuts,
        "bins": {name: int(count) for name, count in pipeline.proc.n_bins.items()},
    }


def main() -> None:
    data, settings, target, facts = map(Path, sys.argv[1:])
    found = synthesise(data, json.loads(settings.read_text("utf-8")), target)
    facts.write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
