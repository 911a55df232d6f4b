"""Predictive utility: train on the released table, test on the original."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.arguments import as_names
from shoal.columns import THRESHOLD, Attribute
from shoal.display import internal
from shoal.errors import InputError, OptionError, closest, needs_extra
from shoal.evaluation.pair import Features, TablePair, make_features, make_pair, plain
from shoal.io import Table
from shoal.noise import source
from shoal.numbers import Integers
from shoal.progress import Progress, silent
from shoal.text import Message

Interval = tuple[float, float]
CONFIDENCE = 0.95
MOST_CLASSES = 50
NO_CLASS = -1
_OPPOSITE = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
Protocol = Literal["k-fold", "first-66%"]
PROTOCOLS = ("k-fold", "first-66%")

# share of the rows, in file order, as the iDP paper splits them
_FIRST_PERCENT = 66
_HOW = {
    (True, "k-fold"): Message.of("learned-by-folds"),
    (True, "first-66%"): Message.of("learned-first-66"),
    (False, "k-fold"): Message.of("learned-unmatched-by-folds"),
    (False, "first-66%"): Message.of("learned-unmatched-first-66"),
}


def wilson(proportion: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson score interval of a mean of n values in [0, 1].

    Such values vary at most as much as a yes/no variable with the same mean, p(1-p), so the interval is never
    too narrow for fractional credits.

    >>> tuple(round(bound, 4) for bound in wilson(0.5, 100))
    (0.4038, 0.5962)
    >>> wilson(0.0, 10)[0]
    0.0
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    shrink = 1.0 + z * z / n
    middle = (proportion + z * z / (2.0 * n)) / shrink
    half = z * math.sqrt(proportion * (1.0 - proportion) / n + z * z / (4.0 * n * n)) / shrink
    low = 0.0 if proportion <= 0.0 else max(0.0, middle - half)
    high = 1.0 if proportion >= 1.0 else min(1.0, middle + half)
    return low, high


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A column as a class attribute; the classes are those of the original table.

    Attributes:
        column: the column that defines the classes.
        classes: names of the classes, in the order of their codes.
        values: the numbers behind the classes of a numeric column; None for text and for a threshold.
        bound: the number that separates the two classes of a threshold, with the side that `bound` itself is on.
    """

    text: str
    column: str
    classes: tuple[str, ...]
    values: NDArray[np.float64] | None = None
    bound: tuple[str, float] | None = None

    def codes(self, table: Table, attribute: Attribute | None = None) -> Integers:
        """The class of every row of a table; `NO_CLASS` where it has none, or one that the original does not have.

        Numbers that are not classes of the original, such as noisy values, belong to the nearest class.

        Args:
            table: the original, or a released table.
            attribute: kind of the column, for unrounded values: positions where labels have an order.
        """
        in_places = attribute is not None and attribute.kind_facts.listed
        labels = _labels_at(table.numeric(self.column), attribute) if attribute and in_places else None
        if self.bound is None and self.values is None:
            return self._of_labels(labels or _labels(table, self.column))
        numbers = np.array(labels, dtype=np.float64) if labels else table.numeric(self.column)
        codes = self._of_numbers(np.where(np.isfinite(numbers), numbers, 0.0))
        codes[~np.isfinite(numbers)] = NO_CLASS
        return codes

    def _of_numbers(self, numbers: NDArray[np.float64]) -> Integers:
        if self.bound is not None:
            sign, bound = self.bound
            above = numbers > bound if sign in (">", "<=") else numbers >= bound
            return above.astype(np.int64)
        assert self.values is not None
        middles = (self.values[1:] + self.values[:-1]) / 2
        return np.searchsorted(middles, numbers).astype(np.int64)

    def _of_labels(self, labels: list[str | None]) -> Integers:
        place: dict[str | None, int] = {name: code for code, name in enumerate(self.classes)}
        return np.array([place.get(label, NO_CLASS) for label in labels], dtype=np.int64)


def parse_target(text: str, table: Table) -> Target:
    """Parse a target: a column of classes, or a numeric column with a threshold.

    Raises:
        InputError: there is no such column, or it does not hold at least two classes.
        OptionError: it has too many distinct values to be classes.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> people = read(pa.table({"wage": [10.5, 30.0, 99.0], "sex": ["f", "m", "f"]}))
    >>> parse_target("wage>30", people).classes, parse_target("sex", people).classes
    (('<=30', '>30'), ('f', 'm'))
    >>> parse_target("wage > 30", people).codes(people).tolist()
    [0, 0, 1]
    """
    parsed = THRESHOLD.fullmatch(text.strip())
    if text not in table.names and parsed is not None:
        target = _threshold(text, table, parsed["column"], parsed["sign"], parsed["bound"])
    else:
        target = _column(text, table)
    counts = np.bincount(target.codes(table) + 1, minlength=len(target.classes) + 1)[1:]
    present = [name for name, count in zip(target.classes, counts, strict=True) if count]
    if not present:
        raise InputError("target-no-value-any-row", text=text)
    if len(present) == 1:
        raise InputError("every-row-target-class", text=text, present=present[0])
    return target


def _threshold(text: str, table: Table, column: str, sign: str, bound: str) -> Target:
    table.numeric(table.known(column))  # text raises the error that names the row
    other = _OPPOSITE[sign]
    low, high = (other, sign) if sign.startswith(">") else (sign, other)
    return Target(text, column, (f"{low}{bound}", f"{high}{bound}"), bound=(sign, float(bound)))


def _column(text: str, table: Table) -> Target:
    table.known(text)
    if not table.is_numeric(text):
        labels = sorted({label for label in _labels(table, text) if label is not None})
        if len(labels) > MOST_CLASSES:
            raise OptionError(
                "target-too-many-labels", text=text, found=len(labels), most_classes=MOST_CLASSES
            )
        return Target(text, text, tuple(labels))
    numbers = table.numeric(text)
    values = np.unique(numbers[np.isfinite(numbers)])
    threshold = float(np.median(values)) if values.size else 0.0
    if (values != np.rint(values)).any():
        raise OptionError("target-holds-numbers-not-whole", text=text, threshold=threshold)
    if values.size > MOST_CLASSES:
        raise OptionError(
            "target-too-many-numbers",
            text=text,
            found=values.size,
            most_classes=MOST_CLASSES,
            threshold=threshold,
        )
    return Target(text, text, tuple(f"{value:.0f}" for value in values), values=values)


def _labels(table: Table, name: str) -> list[str | None]:
    """Text of a column; an empty cell is a missing value."""
    series: nw.Series[Any] = table.series(name)
    if series.dtype == nw.Boolean():
        # frame libraries write Boolean values differently
        return [None if value is None else str(bool(value)).lower() for value in series.to_list()]
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    texts = [str(value) for value in series.to_list()]
    return [None if gone or not text else text for text, gone in zip(texts, missing, strict=True)]


def _labels_at(places: NDArray[np.float64], attribute: Attribute) -> list[str | None]:
    """Labels at positions in their order, which noise may have moved between and beyond them."""
    last = len(attribute.ordered) - 1
    return [attribute.ordered[int(place)] for place in np.clip(np.rint(places), 0, last)]


@dataclass(frozen=True, slots=True)
class LearningSettings:
    """How to measure. Runs differ in the seed of the forest and of the folds: 0, 1, 2, ...

    Attributes:
        protocol: `k-fold` cross-validation, or `first-66%`, the split of the iDP paper.
        most_rows: larger tables are sampled down to this many rows.
    """

    protocol: Protocol = "k-fold"
    folds: int = 5
    runs: int = 5
    trees: int = 100
    most_rows: int = 20_000

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise OptionError(
                "unknown-protocol", option="protocol", protocol=self.protocol, allowed=tuple(PROTOCOLS)
            )
        for name, least in (("folds", 2), ("runs", 1), ("trees", 1), ("most_rows", 10)):
            if getattr(self, name) < least:
                raise OptionError(
                    "option-give-whole-number-from", option=name, found=getattr(self, name), least=least
                )


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """Training rows and test rows: features and classes of both tables.

    Attributes:
        truth: classes of the original rows.
        taught: classes of the released rows as training sees them; rows with `NO_CLASS` are left out.
    """

    features: Features
    truth: Integers
    taught: Integers
    matched: bool
    classes: int


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """One run: accuracy, and the F-measure of each class (NaN where it never occurs)."""

    accuracy: float
    f: NDArray[np.float64]


_Learner = Callable[[NDArray[np.float64], Integers, NDArray[np.float64], int], Integers]


def learn(
    original: Any,
    released: Any,
    target: str,
    settings: LearningSettings | None = None,
    *,
    columns: str | Sequence[str] | None = None,
    bounds: bool = True,
) -> dict[str, Any]:
    """Train a random forest on released rows and test it on original rows.

    The classes are those of the original column. If the target was released, training sees its released values,
    as a reader of the release would. If it was not, training sees the true classes of the rows, as in the iDP
    paper, whose class attribute is not masked; this needs rows in input order.

    Args:
        original: path or table; for a release the table that was protected.
        released: a `Release`, a path or a table; or a list of releases of the same table, one for each run in
            turn, so that the intervals include the noise too.
        target: a column of classes, or a numeric column with a threshold, such as "income>30000".
        settings: protocol, number of runs and of trees.
        columns: features; by default all released columns except the target.
        bounds: also measure the original (the upper bound) and the majority class, which no release changes.

    Returns:
        Plain values: `released`, `original` and `majority` each hold accuracy and F-measures with intervals
        over the runs, None for a single run. Facts about the original data.

    Raises:
        InputError: the target is unknown, has one class only, or rows have neither a known order nor a target.
        OptionError: a setting cannot be used, or the target has too many distinct values.
        MissingExtraError: scikit-learn is not installed.

    Cost:
        For k-fold, 2 · runs · folds forests of `trees` trees; for the first 66%, 2 · runs.
    """
    releases = released if isinstance(released, list) else [released]
    pairs = [make_pair(original, item) for item in releases]
    return learn_pairs(
        pairs, target, settings or LearningSettings(), columns=as_names(columns), bounds=bounds
    )


def check_learner() -> None:
    """Refuse, before any work is done, what needs scikit-learn.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    with needs_extra("learn", "learning a target needs"):
        import sklearn  # noqa: F401


def check_target(target: str, table: Table) -> None:
    """Refuse a target that cannot be learned, before any work is done or any budget is spent.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        InputError: there is no such column, or it does not hold at least two classes.
        OptionError: it has too many distinct values to be classes.
    """
    check_learner()
    parse_target(target, table)


def learn_pairs(
    pairs: Sequence[TablePair],
    target: str,
    settings: LearningSettings,
    *,
    columns: Sequence[str] | None = None,
    bounds: bool = True,
    progress: Progress = silent,
) -> dict[str, Any]:
    """The same for tables already read: the original is the same in all pairs."""
    aim = parse_target(target, pairs[0].before)
    tasks = [_task(pair, aim, columns) for pair in pairs]
    truth = tasks[0].truth
    _check_split(settings, truth, aim)
    rows = [_picked(task, settings.most_rows) for task in tasks]
    learner = _forest(settings.trees)
    runs = range(settings.runs)
    forests = (1 + bounds) * settings.runs * (settings.folds if settings.protocol == "k-fold" else 1)
    grown = 0

    def forest(X: NDArray[np.float64], y: Integers, asked: NDArray[np.float64], seed: int) -> Integers:
        nonlocal grown
        progress("learning the target", grown, forests)
        grown += 1
        return learner(X, y, asked, seed)

    out: dict[str, Any] = {
        "target": target,
        "classes": {name: int((truth == code).sum()) for code, name in enumerate(aim.classes)},
        "rows_without_target": int((truth == NO_CLASS).sum()),
        "rows_used": {"original": int(rows[0].truth.size), "released": int(rows[0].taught.size)},
        "features": list(tasks[0].features.names),
        "labels": "released" if aim.column in pairs[0].released else "original",
        "protocol": settings.protocol,
        "folds": settings.folds if settings.protocol == "k-fold" else None,
        "runs": settings.runs,
        "trees": settings.trees,
        "releases": len(pairs),
        "confidence": CONFIDENCE,
        "how": str(_HOW[pairs[0].matched, settings.protocol]),
        "released": _summary(
            [_from_released(rows[run % len(rows)], settings, run, forest) for run in runs], aim
        ),
    }
    if bounds:
        out["original"] = _summary([_from_original(rows[0], settings, run, forest) for run in runs], aim)
        out["majority"] = _summary([_from_original(rows[0], settings, run, _majority) for run in runs], aim)
    found: dict[str, Any] = plain(out)
    return found


def _task(pair: TablePair, aim: Target, columns: Sequence[str] | None) -> _Task:
    truth = aim.codes(pair.before)
    if aim.column in pair.released:
        taught = aim.codes(pair.after, pair.attributes.get(aim.column) if pair.matched else None)
        if (taught == NO_CLASS).all():
            raise InputError(
                "no-released-value-classes-original", column=aim.column, classes=tuple(aim.classes[:8])
            )
    elif pair.matched:
        taught = truth
    else:
        raise InputError("target-not-released-released-rows-have", column=aim.column)
    return _Task(make_features(pair, aim.column, columns), truth, taught, pair.matched, len(aim.classes))


def _check_split(settings: LearningSettings, truth: Integers, aim: Target) -> None:
    known = truth[truth != NO_CLASS]
    if settings.protocol == "k-fold" and known.size < settings.folds:
        raise OptionError(
            "folds-but-only-rows-have-class", option="folds", found=settings.folds, size=known.size
        )
    if settings.protocol == "first-66%":
        train, test = _first(known.size)
        if test.size == 0 or np.unique(known[train]).size < 2:
            raise InputError("first-rows-do-not-hold-two", first_percent=_FIRST_PERCENT, text=aim.text)


def _picked(task: _Task, most: int) -> _Task:
    """The participating rows: those with a class, up to a limit, in file order."""
    features, truth, taught = task.features, task.truth, task.taught
    known = _sample(np.flatnonzero(truth != NO_CLASS), most)
    # rows in the same order stay so; a row may have a class in only one table, and is then not used in training
    used = known if task.matched else _sample(np.flatnonzero(taught != NO_CLASS), most)
    return _Task(
        Features(features.names, features.before[known], features.after[used]),
        truth[known],
        taught[used],
        task.matched,
        task.classes,
    )


def _sample(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    if rows.size <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _from_released(task: _Task, settings: LearningSettings, run: int, learner: _Learner) -> _Scores:
    """Scores of a learner trained on released rows and tested on original rows."""
    features = task.features
    predicted = np.full(task.truth.size, NO_CLASS)
    if task.matched:
        for train, test in _splits(settings, task.truth, run):
            usable = train[task.taught[train] != NO_CLASS]
            if usable.size:
                predicted[test] = learner(
                    features.after[usable], task.taught[usable], features.before[test], run
                )
    else:
        test = np.concatenate([test for _, test in _splits(settings, task.truth, run)])
        predicted[test] = learner(features.after, task.taught, features.before[test], run)
    return _scores(task, settings, run, predicted)


def _from_original(task: _Task, settings: LearningSettings, run: int, learner: _Learner) -> _Scores:
    """Scores of a learner trained on the original rows and their true classes."""
    before = task.features.before
    predicted = np.full(task.truth.size, NO_CLASS)
    for train, test in _splits(settings, task.truth, run):
        predicted[test] = learner(before[train], task.truth[train], before[test], run)
    return _scores(task, settings, run, predicted)


def _splits(settings: LearningSettings, truth: Integers, run: int) -> Iterator[tuple[Integers, Integers]]:
    """Training rows and test rows for each fold."""
    if settings.protocol == "first-66%":
        yield _first(truth.size)
        return
    # dealt out class by class, so that every fold has its share of each
    order = np.random.default_rng(run).permutation(truth.size)
    order = order[np.argsort(truth[order], kind="stable")]
    fold = np.empty(truth.size, dtype=np.int64)
    fold[order] = np.arange(truth.size) % settings.folds
    for number in range(settings.folds):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def _first(rows: int) -> tuple[Integers, Integers]:
    cut = rows * _FIRST_PERCENT // 100
    return np.arange(cut), np.arange(cut, rows)


def _scores(task: _Task, settings: LearningSettings, run: int, predicted: Integers) -> _Scores:
    test = np.concatenate([test for _, test in _splits(settings, task.truth, run)])
    truth, found = task.truth[test], predicted[test]
    f = np.full(task.classes, math.nan)
    for code in range(task.classes):
        either = int((truth == code).sum() + (found == code).sum())
        if either:
            f[code] = 2 * int(((truth == code) & (found == code)).sum()) / either
    return _Scores(float((truth == found).mean()), f)


def _forest(trees: int) -> _Learner:
    check_learner()
    from sklearn.ensemble import RandomForestClassifier

    def learner(X: NDArray[np.float64], y: Integers, asked: NDArray[np.float64], seed: int) -> Integers:
        forest = RandomForestClassifier(n_estimators=trees, random_state=seed, n_jobs=1)
        return np.asarray(forest.fit(X, y).predict(asked), dtype=np.int64)

    return learner


def _majority(X: NDArray[np.float64], y: Integers, asked: NDArray[np.float64], seed: int) -> Integers:
    return np.full(len(asked), int(np.bincount(y).argmax()))


def _summary(runs: list[_Scores], aim: Target) -> dict[str, Any]:
    accuracy, accuracy_interval = _mean([scores.accuracy for scores in runs])
    by_class = [_mean([float(scores.f[code]) for scores in runs]) for code in range(len(aim.classes))]
    return {
        "accuracy": accuracy,
        "accuracy_interval": accuracy_interval,
        "f": {name: mean for name, (mean, _) in zip(aim.classes, by_class, strict=True)},
        "f_interval": {name: interval for name, (_, interval) in zip(aim.classes, by_class, strict=True)},
    }


def _mean(values: list[float]) -> tuple[float, tuple[float, float] | None]:
    """Mean over the runs with its Student interval; runs without the measure are left out."""
    found = np.array([value for value in values if math.isfinite(value)])
    if found.size == 0:
        return math.nan, None
    mean = float(found.mean())
    if found.size == 1:
        return mean, None
    from scipy.special import stdtrit

    half = float(stdtrit(found.size - 1, 0.5 + CONFIDENCE / 2) * found.std(ddof=1) / math.sqrt(found.size))
    return mean, (max(0.0, mean - half), min(1.0, mean + half))


def divide(
    table: Table, share: float, unit: str | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the rows into those to protect and those to hold out, each in the order of the table.

    Args:
        share: of the persons (of the rows where there is no unit) to hold out.
        unit: column that identifies a person; all rows of one person go to the same side.

    Raises:
        InputError: there is no such column, or one of the groups would be empty.
    """
    persons: NDArray[np.int64] = np.arange(table.n, dtype=np.int64)
    if unit is not None:
        if unit not in table.names:
            raise InputError("there-no-column", column=unit, hint=closest(unit, table.names))
        values = np.array([str(value) for value in table.series(unit).to_list()])
        persons = np.unique(values, return_inverse=True)[1].astype(np.int64)
    number = int(persons.max(initial=-1)) + 1
    aside = round(share * number)
    if not 0 < aside < number:
        if unit is None:
            raise InputError("too-few-rows-for-share", rows=number, share=share)
        raise InputError("too-few-persons-for-share", persons=number, share=share)
    chosen = source(None).permutation(number)[:aside]
    held = np.isin(persons, chosen)
    return np.flatnonzero(~held), np.flatnonzero(held)
