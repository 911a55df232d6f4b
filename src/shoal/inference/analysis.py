"""`shoal.intervals`: confidence intervals for a population from a release, with the parts of their width."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import narwhals as nw
import numpy as np

from shoal.arguments import as_names
from shoal.columns import read_as_asked
from shoal.errors import OptionError
from shoal.inference.calibration import KAPPA_ONE, Uncertainty, WeightCalibration
from shoal.inference.expressions import Raking, Statistic, parsed, weighted_ratio
from shoal.inference.measured import coarsened, most_functions
from shoal.inference.result import Asked, Interval, Intervals
from shoal.inference.rows import (
    MOST_ROWS,
    Cells,
    Frame,
    PublicRelease,
    WeightedRows,
    cells_of,
    compressed,
    positions_of,
    released_rows,
    supported,
)
from shoal.mechanisms import ABSENT, Method, Rebuilt
from shoal.noise import source as noise_source
from shoal.numbers import Floats
from shoal.privacy import Measurements
from shoal.progress import silent
from shoal.release import Bundle, Preparation, Release, one_table, prepare

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


# Below this part carried, or above this part of the squared width, a number rests on what nothing measured.
_CARRIED, _MOST_UNMEASURED = 0.9, 0.5
# Above these parts: the interval is mostly bounds, or mostly privacy noise.
_BOUNDS, _NOISE = 0.5, 0.75
# Replicates of noise, and of random weights, for a function whose influence is not known.
_NOISE_DRAWS, _WEIGHT_DRAWS = 60, 40
# Columns whose main numbers a page shows.
_MAIN = 12
# Thresholds for quantiles of a column that was not measured itself.
_THRESHOLDS = 64
Function = Callable[..., Any]


def intervals(
    release: Any,
    what: str | Function | Sequence[str | Function],
    *,
    level: float = 0.95,
    about: Literal["population", "records"] = "population",
    deff: float = 1.0,
    columns: str | Sequence[str] | None = None,
    repetitions: int = 25,
    seed: int | None = None,
    rake: bool | Mapping[str, Mapping[Any, float]] = False,
) -> Intervals:
    """Confidence intervals from a published release alone; this uses no privacy budget.

    Args:
        release: a `Release`, a `Bundle`, or the folder of a bundle.
        what: one statistic or several. As text: `mean(x)`, `mean(x) by g`, `mean(x | g = "a")`, `share(x > 3)`,
            `share(g = "a") by h`, `median(x)`, `quantile(x, 0.9)`, `table(g, h)`, `corr(x, y)`, `y ~ x + C(g)`,
            `logit(y ~ x + g)`. Or a function of a frame and weights, or of a frame alone, that returns a number or a
            dictionary of numbers.
        level: confidence level of each interval.
        about: `population`: the people that the records are a sample of; `records`: these records themselves.
        deff: design effect of the sample, by which the variance of sampling is multiplied.
        columns: the columns that functions use; by default all.
        repetitions: number of re-runs of the recipe, where measurements cannot be used.
        seed: makes the draws of re-runs and functions reproducible.
        rake: rake the weights to known totals: those of the margins in the schema of the release (`True`), or
            `{column: {value: total}}`.

    Raises:
        OptionError: the text is no statistic of released columns, or the method of the release gives no valid
            intervals.

    Reference:
        docs/inference.md.
    """
    asked = Asked(level, about, deff)
    wanted = [what] if isinstance(what, str) or callable(what) else list(what)
    published = PublicRelease.of(release)
    named = list(published.described.columns) if columns is None else as_names(columns)
    named = [published.column(name) for name in named]
    return Analysis(published, asked, named, repetitions, seed, rake).all(wanted)


def main_numbers(release: Any) -> tuple[Interval, ...]:
    """Intervals of means and of the largest shares of the first columns, for a page about a release.

    Empty for a release without published measurements, whose intervals would take re-runs.
    """
    source = release if isinstance(release, Release) else Bundle.load(release)
    if source.measurements is None or source.method.intervals != "all":
        return ()
    published = PublicRelease.of(source, most=MOST_ROWS)
    frame = Frame(released_rows(published, published.described.columns))
    wanted = []
    for column in published.described.columns[:_MAIN]:
        labels = frame.texts(column)
        if labels is not None:
            counts = np.bincount(frame.rows.positions[column] + 1, minlength=len(labels) + 1)[1:]
            label = labels[int(counts.argmax())].replace('"', "")
            wanted.append(f'share(`{column}` = "{label}")')
        elif published.described.attribute(column).kind_facts.measured:
            wanted.append(f"mean(`{column}`)")
    found: list[Interval] = []
    for text in wanted:
        # the release is paid for: a page without a number is better than no release
        with contextlib.suppress(Exception):
            found += Analysis(published, Asked(), [], 0, None).all([text])
    return tuple(one for one in found if math.isfinite(one.estimate))


class Analysis:
    """Intervals from one release: rows calibrated once for each set of columns."""

    def __init__(
        self,
        published: PublicRelease,
        asked: Asked,
        columns: Sequence[str],
        repetitions: int,
        seed: int | None,
        rake: bool | Mapping[str, Mapping[Any, float]] = False,
    ) -> None:
        self.raking: Raking | None = None
        if rake is not False:
            totals = published.margins if rake is True else rake
            self.raking = Raking.of(totals, Frame(released_rows(published, published.described.columns)))
        self.published, self.asked, self.columns, self.seed = published, asked, columns, seed
        self.repetitions = repetitions
        self.measurements = published.measurements if published.method.intervals == "all" else None
        self._calibrations: dict[tuple[tuple[str, ...], bool, bool], WeightCalibration] = {}
        self._runs: ReRun | None = None

    def all(self, wanted: Sequence[str | Function]) -> Intervals:
        """Everything that was asked for, in its order."""
        frame = Frame(released_rows(self.published, self.published.described.columns))
        each: list[Interval] = []
        engines = set()
        for one in wanted:
            if isinstance(one, str):
                statistic = parsed(one, frame)
                if self.raking is not None:
                    statistic = self.raking.raked(statistic)
                check_offered(self.published.method, statistic)
                if self.published.method.intervals == "matrix":
                    if self.raking is not None:
                        raise OptionError("rake-not-with-matrices", option="rake")
                    each += through_matrices(self.published, self.asked, statistic)
                    engines.add("matrices")
                    continue
                by_weights = self.measurements is not None
                each += self.calibrated(statistic, frame) if by_weights else self.rerun(statistic, frame)
            else:
                by_weights = self.measurements is not None and takes_weights(one)
                if not by_weights:
                    check_offered(self.published.method, None)
                    if self.raking is not None:
                        raise OptionError("rake-needs-weights", option="rake")
                each += self.of_function(one) if by_weights else self.rerun(one, frame)
            engines.add("calibration" if by_weights else "re-runs")
        return Intervals(tuple(each), " and ".join(sorted(engines)), self.asked.level, self.seed)

    # --- calibration to the measurements

    def calibration(self, columns: Sequence[str], *, empty: bool, whole: bool = False) -> WeightCalibration:
        """The released rows in these columns, calibrated.

        Args:
            empty: with support in empty cells, for shares and means.
            whole: one row for each released one.
        """
        key = (tuple(sorted(columns)), empty, whole)
        if key not in self._calibrations:
            assert self.measurements is not None
            measured = self.published.measured_for(key[0])
            numbers = coarsened(self.measurements, measured)
            known = {column: cells_of(numbers, self.published, column) for column in measured}
            cells = {column: found for column, found in known.items() if found is not None}
            few = released_rows(self.published, key[0], most_functions(numbers, measured))
            rows = supported(self.published, few, cells, empty=empty)
            self._calibrations[key] = WeightCalibration(rows if whole else compressed(rows), numbers, cells)
        return self._calibrations[key]

    def calibrated(self, statistic: Statistic, frame: Frame) -> list[Interval]:
        """The intervals of one statistic."""
        made = self.calibration(statistic.columns, empty=statistic.linear)
        own = statistic.evaluate(frame, frame.rows.weights)[0]
        if statistic.quantile is not None:
            return [self._quantile(made, statistic, float(own[0]))]
        bounds = self._bounds(made, statistic, float(own[0])) if statistic.threshold else None
        if bounds is not None:
            return [bounds]
        estimate, found, strained = self._estimated(made, statistic)
        if statistic.mean is not None:
            direct = self._direct_mean(statistic.mean)
            if direct is not None:
                estimate = np.array([direct[0]])
                found = replace(found, noise=np.array([direct[1]]))
        named = zip(statistic.names, estimate.tolist(), own.tolist(), strict=True)
        share = statistic.linear and statistic.names[0].startswith("share")
        limits = (0.0, 1.0) if share else (-1.0, 1.0) if statistic.names[0].startswith("corr") else None
        return [
            self._interval(name, value, mine, found, place, made, limits=limits, strained=strained)
            for place, (name, value, mine) in enumerate(named)
        ]

    def _estimated(self, made: WeightCalibration, statistic: Statistic) -> tuple[Floats, Uncertainty, bool]:
        """Estimates and uncertainties; first-order ones where calibrated weights would distort a column.

        How far these are from what the weights give is then part of the doubt: neither is known to be right.
        """
        frame, weights = Frame(made.rows), made.weights
        strained = made.strained(weights)
        if strained:
            value, influence = statistic.evaluate(frame, made.rows.weights)
            estimate = value + made.correction(influence)
            weights = made.rows.weights
        else:
            estimate, influence = statistic.evaluate(frame, weights)
        found = made.uncertainty(influence, weights, records=self.asked.records, deff=self.asked.deff)
        if strained:
            apart = np.nan_to_num(statistic.evaluate(frame, made.weights)[0] - estimate)
            found = replace(found, apart=apart)
        return estimate, found, strained

    def _interval(
        self,
        name: str,
        estimate: float,
        own: float,
        found: Uncertainty,
        place: int,
        made: WeightCalibration,
        *,
        limits: tuple[float, float] | None = None,
        strained: bool = False,
    ) -> Interval:
        z = self.asked.z
        assert self.measurements is not None
        parts = np.array(
            [
                z * found.sampling[place],
                self.asked.of_noise(self.measurements.currency) * found.noise[place],
                z * found.unmeasured[place],
            ]
        )
        if not math.isfinite(estimate):
            return _without_rows(name, own, self.asked)
        half = float(np.sqrt((parts**2).sum()))
        sampling, noise, unmeasured = (parts**2 / max(half**2, 1e-300)).tolist()
        carried = float(found.carried[place])
        flags = []
        if carried < _CARRIED or unmeasured > _MOST_UNMEASURED:
            flags.append("not-carried")
        if made.heavy:
            flags.append("tail")
        if noise > _NOISE or strained:
            flags.append("noise")
        low, high = estimate - half, estimate + half
        if limits is not None:
            low, high = (min(max(end, limits[0]), limits[1]) for end in (low, high))
        return Interval(
            name,
            estimate,
            low,
            high,
            own,
            sampling,
            noise,
            unmeasured,
            carried,
            tuple(flags),
            self.asked.level,
            self.asked.about,
        )

    def _direct_mean(self, column: str) -> tuple[float, float] | None:
        """The mean of a column with private cuts, from its own measurements alone, and the noise on it.

        It is the sum over cells of share times middle plus the sum inside, which is linear in the measurements and
        exact: rows have no part in it. None where values can be missing, or no sums inside cells were measured.
        """
        assert self.measurements is not None
        if not self.published.as_measured(column):
            return None
        numbers, place = self.measurements, self.measurements.number(column)
        found = cells_of(self.measurements, self.published, column)
        if found is None or not found.tree or column in self.published.described.flagged:
            return None
        tree = [one for one in numbers.measured if one.kind == "tree" and place in one.columns]
        sums = [one for one in numbers.measured if one.kind == "inside" and place in one.columns]
        cuts = [one for one in numbers.measured if one.kind == "cuts" and one.columns == (place,)]
        if len(sums) != 1 or not cuts or len(tree) != int(len(cuts[0].where["edges"]) - 1).bit_length() - 1:
            return None
        from shoal.mechanisms import ends_of

        lows, highs = ends_of(np.array(cuts[0].where["edges"], dtype=np.int64))
        lattice = self.published.described.lattices[column]
        middle = lattice.values((lows + highs) / 2)
        half = np.maximum(highs - lows, 1) / 2 * float(lattice.step)
        depth, leaves = len(tree), lows.size
        start = float(middle.mean())
        value, variance = 0.0, 0.0
        for one in tree:
            level = int(one.where["level"])
            span = leaves >> level
            signs = np.where(np.arange(leaves) % span < span // 2, 1.0, -1.0)
            weights = (middle * signs).reshape(-1, span).sum(axis=1) / 2 ** (depth - level)
            row = one.sums[one.columns.index(place)] / numbers.rows
            value += float(weights @ row)
            variance += float(weights @ weights) * (one.sd / numbers.rows) ** 2
        inside, parts = sums[0], float(sums[0].where["parts"])
        row = inside.sums[inside.columns.index(place)] / parts / numbers.rows
        wide = highs > lows
        value += float(half[wide] @ row[wide])
        variance += float(half[wide] @ half[wide]) * (inside.sd / parts / numbers.rows) ** 2
        # noise on the number of rows scales everything that is measured
        variance += (numbers.rows_sd / numbers.rows * value) ** 2
        return start + value, math.sqrt(variance)

    # --- shares at thresholds, and quantiles: bounds

    def _below(
        self, made: WeightCalibration, column: str, edges: Sequence[int]
    ) -> tuple[Floats, Uncertainty]:
        """The share of values below each edge, and its uncertainty."""
        frame, weights = Frame(made.rows), made.weights
        if made.strained(weights):
            weights = made.rows.weights
        own, present = made.rows.positions[column], frame.present(column)
        found = [weighted_ratio((own < edge).astype(np.float64), present, weights) for edge in edges]
        shares, influence = (
            np.array([share for share, _ in found]),
            np.stack([phi for _, phi in found], axis=1),
        )
        if weights is made.rows.weights:
            shares = shares + made.correction(influence)
        doubt = made.uncertainty(influence, weights, records=self.asked.records, deff=self.asked.deff)
        return shares, doubt

    def _cells(self, made: WeightCalibration, column: str) -> Cells | None:
        """The measured cells of a released column; None if it was not measured itself."""
        return made.cells.get(column) if self.published.as_measured(column) else None

    def _bounds(self, made: WeightCalibration, statistic: Statistic, own: float) -> Interval | None:
        """The share at a threshold inside a measured cell: bounds by the shares at the ends of the cell."""
        assert statistic.threshold is not None
        column, value, sign = statistic.threshold
        cells = self._cells(made, column)
        if cells is None or cells.counted:
            return None
        lattice = self.published.described.lattices[column]
        steps = (value - float(lattice.lo)) / float(lattice.step)
        # values above a threshold are those at this position or later
        edge = math.floor(steps + 1e-9) + 1 if sign in (">", "<=") else math.ceil(steps - 1e-9)
        points = int(cells.edges[-1])
        edge = min(max(edge, 0), points)
        inside = edge not in cells.edges
        place = int(np.searchsorted(cells.edges, edge, side="right")) - 1
        ends = [int(cells.edges[place]), int(cells.edges[place + 1])] if inside else [edge, edge]
        shares, doubt = self._below(made, column, ends)
        noise, sampling = doubt.noise, doubt.sampling
        outer = [end in (0, points) for end in ends]
        moved = self.asked.z * np.hypot(noise, sampling) * ~np.array(outer)
        shares = np.where(outer, np.array(ends, dtype=np.float64) / points, shares)
        middle = self._below(made, column, [edge])[0][0] if inside else shares[0]
        estimate = float(np.clip(middle, min(shares), max(shares)))
        low, high = float(shares[0] - moved[0]), float(shares[1] + moved[1])
        gap = float(shares[1] - shares[0])
        if sign in (">", ">="):
            low, high, estimate = 1 - high, 1 - low, 1 - estimate
        low, high = max(low, 0.0), min(high, 1.0)
        width = max(high - low, 1e-300)
        known = max(1 - gap / width, 0.0) if inside else 1.0
        total = max(float((noise**2 + sampling**2).sum()), 1e-300)
        flags = ["bounds"] if inside and gap > _BOUNDS * width else []
        noisy = known * float((noise**2).sum()) / total
        flags += ["noise"] if noisy > _NOISE else []
        return Interval(
            statistic.names[0],
            estimate,
            low,
            high,
            own,
            known * float((sampling**2).sum()) / total,
            noisy,
            1 - known,
            1.0,
            tuple(flags),
            self.asked.level,
            self.asked.about,
        )

    def _quantile(self, made: WeightCalibration, statistic: Statistic, own: float) -> Interval:
        """A quantile: all values at which the band around the distribution function crosses the level."""
        assert statistic.quantile is not None
        column, level = statistic.quantile
        lattice = self.published.described.lattices[column]
        cells = self._cells(made, column)
        alone = cells is not None
        cells = cells or self._places(made, column)
        inner = cells.edges[1:-1]
        shares, doubt = self._below(made, column, inner.tolist())
        noise, sampling = doubt.noise, doubt.sampling
        # within a measured cell nothing is assumed
        unmeasured = np.zeros(inner.size) if alone else doubt.unmeasured
        moved = self.asked.z * np.sqrt(noise**2 + sampling**2 + unmeasured**2)
        below, reached = np.flatnonzero(shares + moved < level), np.flatnonzero(shares - moved >= level)
        low = int(inner[below[-1]]) if below.size else 0
        high = int(inner[reached[0]]) - 1 if reached.size else int(cells.edges[-1]) - 1
        high = max(high, low)
        ends = np.minimum(lattice.values(np.array([low, high], dtype=np.float64)), float(lattice.hi))
        frame = Frame(made.rows)
        estimate = float(statistic.evaluate(frame, np.maximum(made.weights, 0))[0][0])
        total = max(float((noise**2 + sampling**2 + unmeasured**2).sum()), 1e-300)
        wide = bool(
            inner.size and (np.diff(cells.edges)[np.searchsorted(cells.edges, low, side="right") - 1]) > 1
        )
        return Interval(
            statistic.names[0],
            float(np.clip(estimate, *ends)),
            float(ends[0]),
            float(ends[1]),
            own,
            float((sampling**2).sum()) / total,
            float((noise**2).sum()) / total,
            float((unmeasured**2).sum()) / total,
            1.0 if alone else float(doubt.carried.mean()),
            ("bounds",) if wide and not cells.counted and not _crossed(inner, low, high) else (),
            self.asked.level,
            self.asked.about,
        )

    def _places(self, made: WeightCalibration, column: str) -> Cells:
        """Thresholds of a column that was not measured itself: quantiles of the released rows."""
        own = made.rows.positions[column]
        lattice = self.published.described.lattices[column]
        found = np.quantile(own[own != ABSENT], np.linspace(0, 1, _THRESHOLDS), method="lower")
        return Cells(
            np.unique([0, *found.astype(np.int64), *(found.astype(np.int64) + 1), lattice.steps + 1])
        )

    # --- functions of a frame and weights

    def raked(self, frame: Frame, weights: Floats) -> Floats:
        """Weights raked to known totals, if that was asked for."""
        return weights if self.raking is None else weights * self.raking.factors(frame, weights)

    def of_function(self, function: Function) -> list[Interval]:
        """The numbers of a function, by drawing noise and weights anew."""
        raking = self.raking
        columns = [*self.columns, *(() if raking is None else raking.totals)]
        made = self.calibration(tuple(dict.fromkeys(columns)), empty=False, whole=True)
        random = np.random.default_rng(self.seed)
        rows, weights = made.rows, made.weights
        held, frame = Frame(rows), Frame(rows).native
        names, estimate = _numbers(function(frame, self.raked(held, weights)), function)
        plain = rows.without_support()
        without = Frame(plain)
        own = _numbers(function(without.native, self.raked(without, plain.weights)), function)[1]

        def spread(every: Iterator[Floats]) -> Floats:
            found = np.array(
                [_numbers(function(frame, self.raked(held, each)), function)[1] for each in every]
            )
            return np.asarray(found.std(axis=0, ddof=1))

        noise = spread(made.weights_for(gap) for gap in made.drawn_gaps(_NOISE_DRAWS, random))
        moves = random.exponential(1.0, (_WEIGHT_DRAWS, rows.size)) - 1
        scale = math.sqrt(rows.size)
        whole = scale * spread(weights + rows.weights * move for move in moves)
        free, inner = made.without_measured(moves.T)
        left = np.minimum(scale * spread(weights + rows.weights * move for move in free.T), whole)
        beyond = np.minimum(scale * spread(weights + rows.weights * move for move in inner.T), left)
        inside = np.sqrt(np.maximum(left**2 - beyond**2, 0))
        n = made.measurements.rows
        found = Uncertainty(
            noise,
            np.zeros(whole.size) if self.asked.records else whole / math.sqrt(n) * math.sqrt(self.asked.deff),
            inside,
            beyond,
            made.kappa,
            np.zeros(whole.size),
            1 - left**2 / np.maximum(whole**2, 1e-300),
        )
        return [
            self._interval(name, float(estimate[place]), float(own[place]), found, place, made)
            for place, name in enumerate(names)
        ]

    # --- re-runs of the public recipe

    def rerun(self, what: Statistic | Function, frame: Frame) -> list[Interval]:
        """Intervals from the spread of the number over re-runs on resampled released rows."""
        if self._runs is None:
            self._runs = ReRun(self.published, self.repetitions, self.seed, records=self.asked.records)
        runs = self._runs
        if isinstance(what, Statistic):
            names, own = what.names, what.evaluate(frame, frame.rows.weights)[0]
            repeated = runs.of_statistic(what)
        else:
            names, own = _numbers(what(runs.original), what)
            repeated = runs.of_function(lambda data: _numbers(what(data), what)[1])
        # carried and the rest need only which functions were measured, which a re-run tells as well as the release
        unmeasured, carried = np.zeros(own.size), np.full(own.size, np.nan)
        if isinstance(what, Statistic) and runs.measurements is not None:
            again = Analysis(
                replace(self.published, measurements=runs.measurements),
                self.asked,
                self.columns,
                0,
                self.seed,
            )
            again.measurements = runs.measurements
            made = again.calibration(what.columns, empty=what.linear)
            influence = what.evaluate(Frame(made.rows), made.rows.weights)[1]
            doubt = made.uncertainty(influence, made.rows.weights, records=False, deff=1.0)
            unmeasured, carried = doubt.unmeasured, doubt.carried
        return [
            runs.interval(
                name,
                float(own[place]),
                repeated[:, place],
                float(unmeasured[place]),
                float(carried[place]),
                self.asked,
            )
            for place, name in enumerate(names)
        ]


def _crossed(inner: object, low: int, high: int) -> bool:
    """Whether the interval of a quantile spans more than one measured cell."""
    edges = np.asarray(inner)
    return bool(((edges > low) & (edges <= high)).any())


def _without_rows(name: str, own: float, asked: Asked) -> Interval:
    nothing = float("nan")
    return Interval(
        name, nothing, nothing, nothing, own, 0.0, 0.0, 0.0, nothing, ("no-rows",), asked.level, asked.about
    )


def takes_weights(function: Function) -> bool:
    """Whether a function takes weights besides the frame."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in known if one.kind in kinds and one.default is inspect.Parameter.empty]
    return len(needed) >= 2 or "weights" in inspect.signature(function).parameters


def _numbers(found: Any, function: Function) -> tuple[tuple[str, ...], Floats]:
    """Names and values of what a function returned."""
    name = getattr(function, "__name__", "function")
    if isinstance(found, Mapping):
        return tuple(map(str, found)), np.array([float(value) for value in found.values()])
    values = np.atleast_1d(np.asarray(found, dtype=np.float64))
    if values.ndim != 1:
        raise OptionError("function-returns-numbers", found=type(found).__name__)
    names = (name,) if values.size == 1 else tuple(f"{name}[{place}]" for place in range(values.size))
    return names, values


# --- values that passed a matrix


def through_matrices(published: PublicRelease, asked: Asked, statistic: Statistic) -> list[Interval]:
    """The intervals of a statistic of columns whose values passed public matrices.

    The statistic is computed from estimated joint counts of the original values. The influence φ of a record on it is
    that of g of a released row, P·g = φ. With n rows, Σ g² / n² estimates the squared error of the matrices and of the
    choice of people together; Σ φ² / n² over the estimated records is the part of the choice. Values in bands are
    spread over their band; how a statistic varies within bands is not measured.
    """
    made = published.method.unmixed(published.described, statistic.columns)
    sizes = made.counts.shape
    tables = [
        passage.states.spread(published.described.lattices[name].steps + 1)
        for name, passage in zip(made.names, made.passages, strict=True)
    ]
    inner = tuple(table.shape[1] for table in tables)
    axes = len(sizes)
    places = np.indices((*sizes, *inner)).reshape(2 * axes, -1)
    positions = {
        name: np.where(table < 0, ABSENT, table)[places[axis], places[axes + axis]]
        for axis, (name, table) in enumerate(zip(made.names, tables, strict=True))
    }
    n, parts = published.described.n, math.prod(inner)
    weights = np.repeat(made.counts.reshape(-1), parts) / parts
    rows = WeightedRows(published.described, positions, positions, weights, weights.size, n)
    released = released_rows(published, statistic.columns)
    own = statistic.evaluate(Frame(released), released.weights)[0]
    estimate, influence = statistic.evaluate(Frame(rows), rows.weights)
    within = influence.reshape(-1, parts, estimate.size)
    phi = within.mean(axis=1)
    counts, shares = made.counts.reshape(-1), made.solved(phi.reshape(*sizes, estimate.size))
    of_people = np.maximum(counts @ phi**2, 0.0)
    together = made.released.reshape(-1) @ shares.reshape(-1, estimate.size) ** 2
    unmeasured = np.maximum(counts @ within.var(axis=1), 0.0) / max(n, 1)
    found = []
    for place, (name, value) in enumerate(zip(statistic.names, estimate.tolist(), strict=True)):
        mine = float(own[place])
        if not math.isfinite(value) or not n:
            found.append(_without_rows(name, mine, asked))
            continue
        sampling = 0.0 if asked.records else of_people[place] / n**2 * asked.deff
        noise = max(together[place] - of_people[place], 0.0) / n**2
        squares = [asked.z**2 * part for part in (sampling, noise, KAPPA_ONE**2 * unmeasured[place])]
        half = math.sqrt(sum(squares))
        people, chance, beyond = (float(part / max(half**2, 1e-300)) for part in squares)
        carried = float(of_people[place] / n / max(of_people[place] / n + unmeasured[place], 1e-300))
        flags = ["not-carried"] if carried < _CARRIED or beyond > _MOST_UNMEASURED else []
        low, high = value - half, value + half
        if name.startswith("corr") and abs(value) > 1:
            # an estimated variance near 0 or below it
            value, low, high, flags = min(max(value, -1.0), 1.0), -1.0, 1.0, [*flags, "noise"]
        elif chance > _NOISE:
            flags.append("noise")
        if name.startswith(("share", "corr")):
            least = 0.0 if name.startswith("share") else -1.0
            low, high = (min(max(end, least), 1.0) for end in (low, high))
        found.append(
            Interval(
                name,
                value,
                low,
                high,
                mine,
                people,
                chance,
                beyond,
                carried,
                tuple(flags),
                asked.level,
                asked.about,
            )
        )
    return found
