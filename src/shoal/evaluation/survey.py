"""Survey estimates with standard errors, before and after protection.

They are facts about the table they are computed from: those of an original belong in internal files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import display
from shoal.arguments import as_names
from shoal.columns import texts
from shoal.display import displayed, internal
from shoal.errors import InputError, OptionError
from shoal.evaluation.pair import TablePair
from shoal.io import Table, first_row, read
from shoal.mechanisms import method_class, names
from shoal.numbers import Floats
from shoal.text import Message

# the normal quantile of a 95% interval
_Z = 1.959963984540054
QUANTILES = (0.25, 0.5, 0.75)
# a column with more distinct texts holds names or free text, not categories
_MOST_GROUPS = 100


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate and its standard error; NaN where the design does not determine one.

    Attributes:
        records: number of records it is based on.
    """

    value: float
    error: float
    records: int


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The sampling design: weights, with records drawn independently within strata.

    Attributes:
        weights: how many people each record stands for.
        strata: number of each record's stratum, all 0 in a simple design.
        finite: reduce variances by the sampled share of the population, in each stratum.
    """

    weights: Floats
    strata: NDArray[np.int64]
    finite: bool = False

    @property
    def rows(self) -> int:
        return int(self.weights.size)

    @property
    def population(self) -> float:
        return math.fsum(self.weights)

    def error(self, scores: Floats) -> float:
        """The standard error of a sum of independent scores, one for each record.

        The variance is the sum over strata of n/(n-1) times the squared deviations of the scores from their mean, times
        1 - n/N with a finite population. A stratum with one record has no variance estimate: NaN.

        Reference:
            Cochran (1977), Sampling Techniques, 5.12 and 11.10; Särndal, Swensson, Wretman (1992), 5.5.
        """
        counts = np.bincount(self.strata)
        sums = np.bincount(self.strata, weights=scores)
        if (counts == 1).any():
            return math.nan
        present = counts > 0
        means = np.divide(sums, counts, out=np.zeros_like(sums), where=present)
        squares = np.bincount(self.strata, weights=(scores - means[self.strata]) ** 2)
        variance = np.divide(counts * squares, counts - 1, out=np.zeros_like(sums), where=counts > 1)
        if self.finite:
            people = np.bincount(self.strata, weights=self.weights)
            shares = np.divide(counts, people, out=np.ones_like(people), where=present & (people > 0))
            variance = variance * np.clip(1 - shares, 0, None)
        return math.sqrt(float(variance.sum()))


def total(design: Design, values: Floats) -> Estimate:
    """The population total; missing values count as 0.

    >>> design = Design(np.array([10.0, 10, 10, 10]), np.zeros(4, dtype=np.int64))
    >>> found = total(design, np.array([1.0, 2, 3, 6]))
    >>> found.value, round(found.error, 4)  # N = 40, n = 4: the error is N s / sqrt(n)
    (120.0, 43.2049)
    """
    there = np.isfinite(values)
    scores = np.where(there, design.weights * np.where(there, values, 0.0), 0.0)
    return Estimate(math.fsum(scores), design.error(scores), int(there.sum()))


def mean(design: Design, values: Floats) -> Estimate:
    """The mean over records with a value: a ratio of two totals, with a linearised standard error."""
    return _ratio(design, values, np.isfinite(values))


def share(design: Design, chosen: NDArray[np.bool_], among: NDArray[np.bool_]) -> Estimate:
    """The share of given records that have a property."""
    return _ratio(design, chosen.astype(np.float64), among)


def _ratio(design: Design, values: Floats, among: NDArray[np.bool_]) -> Estimate:
    weights = np.where(among, design.weights, 0.0)
    whole = math.fsum(weights)
    if whole <= 0:
        return Estimate(math.nan, math.nan, int(among.sum()))
    filled = np.where(among, values, 0.0)
    middle = math.fsum(weights * filled) / whole
    scores = weights * (filled - middle) / whole
    return Estimate(middle, design.error(scores), int(among.sum()))


def quantile(design: Design, values: Floats, p: float) -> Estimate:
    """The least value that at least the share p of the population does not exceed.

    Its error is Woodruff's: the interval of the share below it is turned back into an interval of values, whose half
    width is 1.96 errors.

    Reference:
        Woodruff (1952), JASA 47(260), 635-646.
    """
    there = np.isfinite(values) & (design.weights > 0)
    records = int(there.sum())
    if not records:
        return Estimate(math.nan, math.nan, 0)
    order = np.argsort(values[there], kind="stable")
    ascending = values[there][order]
    below = np.cumsum(design.weights[there][order])
    below = below / below[-1]

    def at(level: float) -> float:
        # a share reached up to rounding counts as reached
        place = int(np.searchsorted(below, level - 1e-12, side="left"))
        return float(ascending[min(max(place, 0), records - 1)])

    found = at(p)
    spread = _Z * share(design, there & (values <= found), there).error
    if math.isnan(spread):
        return Estimate(found, math.nan, records)
    return Estimate(found, (at(min(p + spread, 1.0)) - at(max(p - spread, 0.0))) / (2 * _Z), records)


@displayed(display.of_estimates)
@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Survey estimates for the population.

    Attributes:
        population: the sum of the weights.
        numbers: by numeric column: `total`, `mean` and one quantile for each of `QUANTILES`.
        tables: by nominal column and value: `total` and `share`.
    """

    rows: int
    population: float
    strata: int
    numbers: Mapping[str, Mapping[str, Estimate]]
    tables: Mapping[str, Mapping[str, Mapping[str, Estimate]]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; NaN is None."""
        from shoal.evaluation.pair import plain

        found: dict[str, Any] = plain(asdict(self))
        return found


def _refuse_synthetic(data: Any) -> None:
    """Refuse a release of synthetic rows, as far as it can be recognised: by its statement, in memory or beside it."""
    method = getattr(getattr(data, "statement", None), "method", None)
    if isinstance(data, str | Path):
        folder = Path(data) if Path(data).is_dir() else Path(data).parent
        beside = folder / "statement.json"
        try:
            method = json.loads(beside.read_text("utf-8")).get("method") if beside.is_file() else None
        except (OSError, ValueError, AttributeError):
            return
    if method in names() and method_class(str(method)).synthetic:
        raise OptionError("estimates-of-synthetic-rows", method=method)


def estimates(
    data: Any,
    weight: str | Sequence[float] | None = None,
    *,
    strata: str | Sequence[Any] | None = None,
    columns: str | Sequence[str] | None = None,
    by: str | None = None,
    quantiles: Sequence[float] = QUANTILES,
    finite: bool = False,
) -> Estimates:
    """Weighted totals, means, quantiles and tables of a survey, with standard errors.

    Args:
        data: a path, or a pandas, polars or pyarrow table.
        weight: the column of the weights, or the weights; by default every record has weight 1.
        strata: the column of the strata of the design, or a stratum for each record; simple by default.
        columns: the columns to estimate; by default all except weight and strata.
        by: a nominal column: tables cross it with each of the other nominal columns, whose values then
            read "a × b", and means of numbers are made for each of its values, as columns "income | a".
        quantiles: the quantile probabilities, between 0 and 1.
        finite: the sample is a notable part of the population: reduce errors by the share that was sampled.

    Records are taken as drawn independently, with replacement within strata unless `finite`; clusters and calibration
    of the weights are not taken into account. Records without a value take no part in the estimate of that column.

    Raises:
        InputError: a column is unknown; a weight is missing, negative or infinite; a stratum is missing.
        OptionError: the data are a release of synthetic rows, for which `shoal.intervals` computes valid errors.

    >>> import pyarrow as pa
    >>> survey = pa.table({"w": [10.0, 10, 30, 30], "age": [20, 40, 30, 60], "sex": ["f", "m", "f", "f"]})
    >>> found = estimates(survey, "w")
    >>> found.population, found.numbers["age"]["mean"].value, found.tables["sex"]["f"]["total"].value
    (80.0, 41.25, 70.0)
    """
    _refuse_synthetic(data)
    table = read(data, strict=False)
    if table.n == 0:
        raise InputError("population-table-no-rows")
    for p in quantiles:
        if not 0 < p < 1:
            raise OptionError("quantiles-lie-between-0-1", option="quantiles", found=p)
    design = Design(_weights(table, weight), _strata(table, strata), finite)
    apart = {name for name in (weight, strata) if isinstance(name, str)}
    names = [table.known(name) for name in as_names(columns)] if columns is not None else list(table.names)
    names = [name for name in names if name not in apart]
    if by is not None:
        table.known(by)
    numbers: dict[str, dict[str, Estimate]] = {}
    tables: dict[str, dict[str, dict[str, Estimate]]] = {}
    groups = _groups(table, by) if by is not None else {}
    for name in names:
        if table.is_numeric(name) and name != by:
            values = table.numeric(name)
            numbers[name] = _of_numbers(design, values, quantiles)
            for label, inside in groups.items():
                numbers[f"{name} | {label}"] = _of_numbers(
                    design, np.where(inside, values, np.nan), quantiles
                )
        elif (found := _groups(table, name)) is not None and len(found) <= _MOST_GROUPS:
            tables[name] = _of_names(design, found)
            if by is not None and name != by:
                crossed = {
                    f"{one} × {other}": here & there
                    for one, here in groups.items()
                    for other, there in found.items()
                }
                tables[f"{by} × {name}"] = _of_names(design, crossed)
    return Estimates(
        table.n,
        design.population,
        int(np.unique(design.strata).size) if strata is not None else 1,
        numbers,
        tables,
    )


def _of_numbers(design: Design, values: Floats, quantiles: Sequence[float]) -> dict[str, Estimate]:
    return {
        "total": total(design, values),
        "mean": mean(design, values),
        **{f"quantile {p:g}": quantile(design, values, p) for p in quantiles},
    }


def _of_names(design: Design, groups: Mapping[str, NDArray[np.bool_]]) -> dict[str, dict[str, Estimate]]:
    known = np.zeros(design.rows, dtype=bool)
    for inside in groups.values():
        known |= inside
    return {
        label: {
            "total": _count(design, inside),
            "share": share(design, inside, known),
        }
        for label, inside in groups.items()
    }


def _count(design: Design, inside: NDArray[np.bool_]) -> Estimate:
    found = total(design, inside.astype(np.float64))
    return Estimate(found.value, found.error, int(inside.sum()))


def _groups(table: Table, name: str) -> dict[str, NDArray[np.bool_]]:
    """The records with each value of a nominal column; missing values belong to none."""
    found, which = texts(table, name)
    if len(found) > _MOST_GROUPS:
        return dict.fromkeys(found, np.zeros(0, dtype=bool))
    return {
        text: which == place for place, text in sorted(enumerate(found), key=lambda item: item[1]) if text
    }


def _weights(table: Table, weight: str | Sequence[float] | None) -> Floats:
    if weight is None:
        return np.ones(table.n)
    named = isinstance(weight, str)
    what = Message.of("weight-column", column=weight) if named else Message.of("weights-given")
    found = table.numeric(weight) if isinstance(weight, str) else np.asarray(weight, dtype=np.float64)
    if found.shape != (table.n,):
        raise InputError("weight-values-table-rows", size=found.size, n=table.n)
    wrong = ~np.isfinite(found) | (found < 0)
    if wrong.any():
        raise InputError("row-no-weight-negative", row=first_row(wrong), what=what)
    if not found.any():
        raise InputError("all-weights-0", what=what)
    return found


def _strata(table: Table, strata: str | Sequence[Any] | None) -> NDArray[np.int64]:
    if strata is None:
        return np.zeros(table.n, dtype=np.int64)
    if isinstance(strata, str):
        _, which = texts(table, strata)
        gone = which < 0
        if gone.any():
            raise InputError("strata-column-row-no-stratum", column=strata, row=first_row(gone))
        return np.asarray(which, dtype=np.int64)
    if len(strata) != table.n:
        raise InputError("strata-values-table-rows", number_of_strata=len(strata), n=table.n)
    return np.unique(np.asarray(strata).astype(str), return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Compared:
    """One estimate before and after protection."""

    column: str
    what: str
    before: Estimate
    after: Estimate | None

    @property
    def moved(self) -> float | None:
        """The difference in standard errors of the original; None where there is none."""
        if self.after is None or not self.before.error > 0 or math.isnan(self.after.value):
            return None
        return (self.after.value - self.before.value) / self.before.error


def compared(before: Estimates, after: Estimates) -> list[Compared]:
    """Every estimate of the original beside that of the release."""
    found = []
    for column, line in before.numbers.items():
        later = after.numbers.get(column, {})
        found += [Compared(column, what, estimate, later.get(what)) for what, estimate in line.items()]
    none = Estimate(0.0, 0.0, 0)
    for column, lines in before.tables.items():
        if column not in after.tables:
            continue
        for label, estimate in lines.items():
            there = after.tables[column].get(label, {})
            found += [
                Compared(column, f"{what} of {label}", estimate[what], there.get(what, none))
                for what in ("total", "share")
            ]
    return found


def survey_estimates(
    pair: TablePair, released: Any, columns: Sequence[str], weight: str | None, strata: str | None
) -> dict[str, Any] | None:
    """The survey estimates of both tables; None without a weight.

    If a weight named only by the schema cannot be used, report that in one line instead of raising an error: the
    release has already been made when measures are computed.
    """
    named = weight or _declared_weight(released)
    if named is None:
        return None
    if weight is None and named not in pair.before.names:
        return None
    method = getattr(released, "method", None)
    found = strata or getattr(method, "strata", None) or ()
    design = (found,) if isinstance(found, str) else tuple(found)
    try:
        return _side_by_side(pair, columns, named, design)
    except InputError as error:
        if weight is not None:
            raise
        about = str(Message.of("not-estimated", reason=error))
        return {"weight": named, "strata": list(design), "about": about, "rows": []}


def _measured(pair: TablePair, columns: Sequence[str]) -> list[str]:
    """The numeric columns."""
    return [
        name
        for name in columns
        if pair.before.dtype(name).is_numeric() and pair.published.dtype(name).is_numeric()
    ]


def _shift(pair: TablePair, name: str, weight: str, weights: Any) -> float:
    """The shift of a column's weighted average, in standard deviations of the weighted original."""
    before, by = pair.before.numeric(name), pair.before.numeric(weight)
    after = pair.published.numeric(name)
    then = pair.published.numeric(weights) if isinstance(weights, str) else np.asarray(weights, dtype=float)
    here, there = np.isfinite(before), np.isfinite(after)
    if not here.any() or not there.any():
        return 0.0
    mean = np.average(before[here], weights=by[here])
    spread = float(np.sqrt(np.average((before[here] - mean) ** 2, weights=by[here])))
    apart = abs(float(np.average(after[there], weights=then[there]) - mean))
    return apart / spread if spread > 0 else (0.0 if apart == 0 else float("inf"))


def _declared_weight(released: Any) -> str | None:
    schema = getattr(released, "schema", None) if hasattr(released, "aligned") else None
    found = None if schema is None else schema.weight
    return None if found is None else str(found.name)


def _strata_of(table: Table, names: Sequence[str]) -> str | list[str] | None:
    """The stratum of each record, from one column or several together; None where a table lacks one."""
    if not names or any(name not in table.names for name in names):
        return None
    if len(names) == 1:
        return names[0]
    rows = zip(*(table.series(name).to_list() for name in names), strict=True)
    return [repr(values) for values in rows]


def _side_by_side(
    pair: TablePair, columns: Sequence[str], weight: str, strata: tuple[str, ...]
) -> dict[str, Any]:
    chosen = [name for name in columns if name not in (weight, *strata)]
    for name in strata:
        pair.before.known(name)
    before = estimates(pair.before, weight, strata=_strata_of(pair.before, strata), columns=chosen)
    after_table = pair.published
    has_weight = weight in after_table.names
    weights: Any = weight
    if not has_weight:
        # without weights, all rows of a release represent equally many people
        weights = np.full(after_table.n, before.population / after_table.n)
    after = estimates(after_table, weights, strata=_strata_of(after_table, strata), columns=chosen)
    rows = [
        {
            "column": line.column,
            "what": line.what,
            "before": line.before.value,
            "error_before": line.before.error,
            "after": None if line.after is None else line.after.value,
            "error_after": None if line.after is None else line.after.error,
            "moved": line.moved,
        }
        for line in compared(before, after)
    ]
    after_words = Message.of("estimates-with-weight" if has_weight else "estimates-all-alike")
    code = "estimates-design" if strata else "estimates-simple-design"
    return {
        "weight": weight,
        "strata": list(strata),
        "mean_shifts": {name: _shift(pair, name, weight, weights) for name in _measured(pair, chosen)},
        "population_before": before.population,
        "population_after": after.population,
        "about": str(Message.of(code, weight=weight, strata=strata, after=after_words)),
        "rows": rows,
    }
