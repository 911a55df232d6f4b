"""Re-run the public recipe on resampled released rows: for functions without weights and for older bundles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np

from shoal.columns import read_as_asked
from shoal.errors import OptionError
from shoal.inference.expressions import Statistic
from shoal.inference.result import Asked, Interval
from shoal.inference.rows import Frame, PublicRelease, WeightedRows, positions_of
from shoal.mechanisms import Method, Rebuilt
from shoal.noise import source as noise_source
from shoal.numbers import Floats
from shoal.privacy import Measurements
from shoal.progress import silent
from shoal.release import Preparation, one_table, prepare

_LEAST_RUNS = 5


def check_offered(method: Method, statistic: Statistic | None) -> None:
    """Refuse intervals that were measured not to hold for a method.

    Raises:
        OptionError: with the reason.
    """
    if method.intervals == "all":
        return
    if method.intervals == "matrix":
        if statistic is None or statistic.quantile is not None:
            code = "no-intervals-for-functions" if statistic is None else "no-intervals-for-quantiles"
            raise OptionError(code, method=method.name)
        return
    if method.intervals != "single":
        code = "no-intervals-clipped" if method.intervals == "unclipped" else "no-intervals-for-method"
        raise OptionError(code, method=method.name)
    if statistic is None:
        raise OptionError("no-intervals-for-functions", method=method.name)
    if statistic.slope:
        raise OptionError("no-intervals-for-slopes", method=method.name)
    if statistic.threshold is not None:
        raise OptionError("no-intervals-at-thresholds", method=method.name)


class ReRun:
    """Releases of the released rows, by the same public recipe.

    Each resamples the rows and draws noise anew, so that the spread of a number holds sampling and noise. About the
    records only, rows are not resampled.
    """

    def __init__(self, published: PublicRelease, number: int, seed: int | None, *, records: bool) -> None:
        if number < _LEAST_RUNS:
            raise OptionError("too-few-repetitions", option="repetitions", found=number, least=_LEAST_RUNS)
        self._published, described = published, published.described
        self.original = described.table.frame.to_native()
        random = np.random.default_rng(seed)
        self._runs: list[tuple[Preparation, Rebuilt]] = []
        request: dict[str, Any] = {
            "schema": described.schema,
            "columns": list(described.columns),
            "outside": "clip",
        }
        n = described.n
        for turn in range(number):
            which = np.arange(n) if records else random.integers(0, n, n)
            frame = nw.from_native(self.original, eager_only=True)[which.tolist()]
            again = None if seed is None else seed + turn + 1
            prepared = prepare(
                read_as_asked(frame.to_native(), request, empty=True),
                method=published.method,
                seed=again,
                missing=published.prepared.declared.missing,
                **request,
            )
            made = prepared.method.run(prepared.described, prepared.plan, prepared.account(), silent, None)
            self._runs.append((prepared, made))

    @property
    def measurements(self) -> Measurements | None:
        """Those of the first re-run."""
        return self._runs[0][1].measurements

    def of_statistic(self, statistic: Statistic) -> Floats:
        """The numbers of every re-run, (runs, numbers)."""
        found = []
        for prepared, made in self._runs:
            rows = _rows(prepared, made)
            found.append(statistic.evaluate(Frame(rows), rows.weights)[0])
        return np.array(found)

    def of_function(self, function: Callable[[Any], Floats]) -> Floats:
        found = []
        for turn, (prepared, made) in enumerate(self._runs):
            source = noise_source(turn)
            data, _ = one_table(prepared.method, prepared.described, made, source)
            found.append(function(data))
        return np.array(found)

    def interval(
        self, name: str, own: float, repeated: Floats, unmeasured: float, carried: float, asked: Asked
    ) -> Interval:
        """A normal-t interval around the number of the release, widened by the bias that re-runs show."""
        from scipy.stats import t

        repeated = repeated[np.isfinite(repeated)]
        if repeated.size < _LEAST_RUNS or not math.isfinite(own):
            nothing = float("nan")
            return Interval(
                name, nothing, nothing, nothing, own, 0, 0, 0, nothing, ("no-rows",), asked.level, asked.about
            )
        quantile = float(t.ppf((1 + asked.level) / 2, repeated.size - 1))
        spread = quantile * float(
            np.hypot(repeated.std(ddof=1) * math.sqrt(asked.deff), repeated.mean() - own)
        )
        half = math.hypot(spread, asked.z * unmeasured)
        part = (asked.z * unmeasured) ** 2 / max(half**2, 1e-300)
        flags = ("not-carried",) if carried < 0.9 or part > 0.5 else ()
        return Interval(
            name,
            own,
            own - half,
            own + half,
            own,
            0.0,
            1 - part,
            part,
            carried,
            flags,
            asked.level,
            asked.about,
        )


def _rows(prepared: Preparation, made: Rebuilt) -> WeightedRows:
    positions = positions_of(prepared.described, made.values)
    n = next(iter(positions.values())).size
    return WeightedRows(prepared.described, positions, positions, np.ones(n), n, n)
