"""Replicate weights: rows that survey software can analyse, with the noise and the sampling of a release in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.arguments import as_names
from shoal.errors import OptionError, OutputError
from shoal.inference.analysis import Analysis
from shoal.inference.result import Asked
from shoal.inference.rows import Frame, PublicRelease
from shoal.io import read, write

_LEAST, _MOST = 10, 1000


def replicate_weights(
    release: Any,
    columns: str | Sequence[str] | None = None,
    count: int = 80,
    *,
    seed: int | None = None,
    rake: bool | Mapping[str, Mapping[Any, float]] = False,
) -> Any:
    """WeightedRows with a weight `w` and replicate weights `w1`, `w2`, ... for survey software.

    The variance of an estimate is the mean of the squared differences of its replicates to it (scale 1/count). It holds
    the noise of the release and the sampling of the records, and not what the release did not measure. Rows of little
    weight fill cells that noise emptied; some weights are negative.

    Args:
        release: a `Release`, a `Bundle`, or the folder of a bundle; of `pairs-dp`, with its measurements.
        columns: the columns that the analysis uses; by default all. Fewer are calibrated more exactly.
        rake: rake every set of weights to known totals, as for `intervals`; columns with totals are included.

    Raises:
        OptionError: the release has no measurements, or a column has the name of a weight.

    Reference:
        docs/inference.md.
    """
    if not _LEAST <= count <= _MOST:
        raise OptionError("number-of-replicates", option="count", found=count, least=_LEAST, most=_MOST)
    published = PublicRelease.of(release)
    named = list(published.described.columns) if columns is None else as_names(columns)
    named = [published.column(name) for name in named]
    weights = ["w", *(f"w{place + 1}" for place in range(count))]
    if taken := next((name for name in named if name in weights), None):
        raise OptionError("column-named-like-weight", column=taken)
    analysis = Analysis(published, Asked(), named, 0, seed, rake)
    if analysis.raking is not None:
        named = list(dict.fromkeys([*named, *analysis.raking.totals]))
    if analysis.measurements is None:
        raise OptionError("no-measurements-for-replicates", method=published.method.name)
    made = analysis.calibration(named, empty=False, whole=True)
    random = np.random.default_rng(seed)
    spread = math.sqrt(made.rows.size / made.measurements.rows)
    frame = Frame(made.rows)
    found = {"w": analysis.raked(frame, made.weights)}
    for place, gap in enumerate(made.drawn_gaps(count, random)):
        moved = 1 + spread * (random.exponential(1.0, made.rows.size) - 1)
        found[f"w{place + 1}"] = analysis.raked(frame, made.weights_for(gap) * moved)
    table = read(frame.native, strict=False)
    columns_of = {name: table.frame[name].to_numpy() for name in named}
    return table.like({**columns_of, **found}, keep_dtypes=False)


def write_replicate_weights(
    release: Any,
    path: str | Path,
    columns: str | Sequence[str] | None = None,
    count: int = 80,
    rake: bool = False,
) -> int:
    """Write `replicate_weights` to a new file, and return the number of rows."""
    place = Path(path)
    if place.exists():
        raise OutputError("appeared-meanwhile", place=place)
    found = replicate_weights(release, columns, count, rake=rake)
    write(found, place)
    return read(found, strict=False).n
