"""Where the public data sets lie that tests, benchmarks and the recomputed papers work on."""

from __future__ import annotations

import os
from pathlib import Path

WAY_OUT = (
    "put the public data sets (CASC Census and EIA, UCI Adult and Wine, as CSV; the taxonomies) into a folder and name "
    "it in SHOAL_DATA"
)


def data_folder() -> Path:
    """SHOAL_DATA, or a folder of shared data beside the checkout."""
    named = os.environ.get("SHOAL_DATA")
    return (Path(named) if named else Path(__file__).parents[1] / ".." / "shared" / "data").resolve()
