"""Resource estimates: the time and memory of a release, from trial runs on small synthetic tables.

Rows are generated from the public schema, and nothing is drawn from the release's own randomness. Of the records
only their number is used, and that of each stratum.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal._moved import renamed
from shoal.columns import Attribute, Described
from shoal.engines import LocalRunner
from shoal.evaluation import MOST_ROWS
from shoal.io import Table, frozen, read
from shoal.mechanisms import Method, strata_of
from shoal.noise import Seeded
from shoal.partition import standing_for
from shoal.progress import silent
from shoal.release.bundle import save_bundle
from shoal.text import Message, listed

if TYPE_CHECKING:
    from shoal.engines import Runner
    from shoal.release.protection import Preparation, Release

# rows of the first trial and of the largest
_FIRST, _LARGEST = 500, 256_000
# rows of the first trial where frequencies matter, and of all trials where all rows are searched for every cluster
_FREQUENT, _SCANNED = 20_000, 40_000
# clusters in the first trial of the latter kind
_CLUSTERS = 8
# budget of all trials in processor seconds, or as a multiple of the first trial, or as a share of the estimated time,
# which is doubled up to this many seconds
_ENOUGH, _TIMES, _PART, _TWICE = 1.0, 6, 0.05, 2.5
# a trial shorter than the first of these is repeated, and the shortest time counts; a first trial with many rows is
# made smaller until it is shorter than the second
_SHORT, _LONG = 0.25, 1.0
# repeatability of a trial, as a share of its time and in seconds; the growth is fitted to the largest trials
_NOISE, _COARSE, _LAST = 0.07, 0.005, 5
# by how many squares of the noise a faster-growing law must fit better
_CLEARLY = 0.1
# squares of the noise beyond which no law fits
_MISFIT = 4.0
# factor between the rows of successive trials, at most the first of these
_STEPS = (8, 4, 2)
_WORD = 8
# words that an engine holds whatever the table, and rows of a range of ranks
_IN_PARTS, _RANGE = 1 << 26, 1 << 20

# further work that an estimate counts
MEASURES, INTERNAL_REPORT = Message("measures-included"), Message("internal-report-included")

Laws = tuple[tuple[str, ...], ...]
Term = Callable[[float], float]
_TERMS: Mapping[str, Term] = {
    "1": lambda n: 1.0,
    "n": lambda n: n,
    "n log n": lambda n: n * math.log(n + 1),
    "n^1.5": lambda n: n**1.5,
    "n²": lambda n: n * n,
}
_LINEAR = (("1", "n"),)
# sorts and passes over the records
_SORTS = (*_LINEAR, ("1", "n log n"))
# nearest-neighbour searches lie between sorting and n², or begin as one and end as the other
_SEARCHES = (("1", "n log n"), ("1", "n^1.5"), ("1", "n", "n²"), ("1", "n²"))
_LAWS = (*_LINEAR, *_SEARCHES)


@dataclass(frozen=True, slots=True)
class Law:
    """A law of growth of processor time with the number of rows: a sum of non-negative terms.

    >>> Law({"1": 2.0, "n": 0.5})(100)
    52.0
    """

    terms: Mapping[str, float]

    def __call__(self, rows: float) -> float:
        return sum(factor * _TERMS[term](rows) for term, factor in self.terms.items())

    @property
    def once(self) -> float:
        """The constant term."""
        return self.terms.get("1", 0.0)


@dataclass(frozen=True, slots=True)
class Probe:
    """The results of trials.

    Attributes:
        seconds: of processor time by number of rows.
        preparing: additional seconds of the very first trial, for loading or compiling code.
    """

    seconds: Mapping[int, float]
    law: Law
    preparing: float

    @property
    def rows(self) -> int:
        return max(self.seconds)

    def expected(self, n: int) -> float:
        """The expected seconds for n rows, as measured or by the law."""
        return self.seconds.get(n) or self.law(n)


@dataclass(frozen=True, slots=True)
class ResourceEstimate:
    """Estimated memory and processor seconds; the latter equal elapsed time on an otherwise idle machine.

    Attributes:
        seconds: None where they cannot be estimated here, as for a cluster.
        basis: the basis of the estimate, or why there is none; `probe` has it as text.
    """

    seconds: float | None
    bytes: int
    basis: tuple[Message, ...]

    @property
    def probe(self) -> str:
        return listed(self.basis)

    def longer(self, seconds: float, what: Message) -> ResourceEstimate:
        """The estimate with further work added.

        >>> str(ResourceEstimate(1.0, 10, (Message.of("probed", rows=5),)).longer(2.0, INTERNAL_REPORT))
        'about 3 seconds and 1 MB of memory (from a probe of 5 synthetic rows, including the internal report)'
        """
        before = self.seconds or 0.0
        return replace(self, seconds=before + seconds, basis=(*self.basis, what))

    def __str__(self) -> str:
        if self.seconds is None:
            return f"about {_size(self.bytes)} of memory on this machine ({self.probe})"
        return f"about {_duration(self.seconds)} and {_size(self.bytes)} of memory ({self.probe})"


def estimate(prepared: Preparation) -> ResourceEstimate:
    """Estimate the time of making a release in memory and writing its bundle.

    Cost:
        Trials take about a second of processor time, or a tenth of the estimated time if that is more, falling from
        25 seconds on to a twentieth; more only if the method takes that long for a few hundred rows.
    """
    n, method = max(prepared.described.n, 1), prepared.method
    sizes = (
        [max(stratum.rows.size, 1) for stratum in strata_of(method, prepared.described)]
        if method.strata
        else [n]
    )
    whole = replace(prepared, method=_changed(method, strata=None))
    stage = method.stage
    if stage.scans and prepared.described.nominal:
        found, seconds, tried = _scanned(whole, sizes)
    else:
        run = _timed(whole, _write)
        first = max(_FIRST, 4 * method.size)
        if method.by_frequency:
            first = affordable(run, min(_FREQUENT, n))
        laws: Laws = _SORTS if stage.sorts else _SEARCHES
        if method.compares():
            laws = _LAWS
        found = probed(run, min(first, n), n, laws)
        once, tried = found.law.once, found.rows
        seconds = found.expected(n) if len(sizes) == 1 else once + sum(found.law(n) - once for n in sizes)
    words = (4 + 5 * len(prepared.described.columns)) * n
    return ResourceEstimate(seconds, words * _WORD, _said(found, tried))


def _said(found: Probe, tried: int) -> tuple[Message, ...]:
    said = Message.of("probed", rows=tried)
    if found.preparing < 1:
        return (said,)
    return said, Message.of("loading-not-counted", duration=_duration(found.preparing))


def estimate_in_parts(
    prepared: Preparation, runner: Runner, *, evaluate: bool = False, internal: bool = False
) -> ResourceEstimate:
    """The same for an engine, with trial rows processed by it, and the measures and internal report if requested.

    The time of a cluster is not estimated: what it needs to start a stage and how many machines it will have are
    unknown here.
    """
    words = _IN_PARTS + 4 * len(prepared.described.columns) * _RANGE
    if not isinstance(runner, LocalRunner):
        return ResourceEstimate(None, words * _WORD, (Message("cluster-not-estimated"),))
    n = max(prepared.described.n, 1)
    run = partial(_on_engine, prepared, evaluate=evaluate, internal=internal)
    found = probed(run, min(_FIRST, n), n, _SORTS)
    further = (MEASURES,) * evaluate + (INTERNAL_REPORT,) * internal
    return ResourceEstimate(found.expected(n), words * _WORD, (*_said(found, found.rows), *further))


def _on_engine(prepared: Preparation, rows: int, *, evaluate: bool, internal: bool) -> float:
    """Processor time of a trial release by the local engine, without the time for reading the rows."""
    import pyarrow as pa
    from pyarrow import parquet

    from shoal.release.bundle import ReleaseReview
    from shoal.release.in_parts.run import carry_out_on_engine, table_elsewhere

    attributes, bare = _bare(prepared.described)
    with tempfile.TemporaryDirectory() as place:
        file, out = Path(place) / "made-up.parquet", Path(place) / "bundle"
        made: pa.Table = _drawn(prepared.described, attributes, rows)
        parquet.write_table(made, file)
        own = LocalRunner(frozen(file))
        table = table_elsewhere(own, counted=prepared.described.table.records.counted)
        table.records.look(table, attributes, {}, ())
        small = _of(prepared, replace(bare, table=table))
        started = time.process_time()
        look = ReleaseReview(own, evaluate, internal, silent)
        carry_out_on_engine(
            small, own, out, Path(place) / "internal.html" if internal else None, silent, look
        )
        return time.process_time() - started


def _scanned(prepared: Preparation, sizes: Sequence[int]) -> tuple[Probe, float, int]:
    """Estimate by trials with a few large clusters where all records are searched for every cluster, in time n²/k.

    A trial has all rows, up to a limit, and as many clusters as its number of rows would have: time is linear in them.
    """
    n, k = sum(sizes), prepared.method.size
    rows = min(n, _SCANNED)
    described = _drawing(prepared)(rows).described

    def few_clusters(share: int) -> Preparation:
        larger = _changed(prepared.method, k=max(round(k * rows / share), k))
        return _of(replace(prepared, method=larger), described)

    found = probed(_timed(prepared, _write, few_clusters), min(_CLUSTERS * k, rows), rows, _LINEAR)
    growing = found.law(rows) - found.law.once
    seconds = found.law.once * n / rows + growing * sum((size / rows) ** 2 for size in sizes)
    return found, seconds, rows


def internal_seconds(prepared: Preparation) -> float:
    """The time of `internal_report` with its original; above 50,000 rows a sample is measured."""
    from shoal.report import internal_report

    n = min(max(prepared.described.n, 1), MOST_ROWS)
    run = _timed(prepared, lambda release, table: internal_report(release, None, table), alone=True)
    return probed(run, min(_FIRST, n), n).expected(n)


def evaluation_seconds(prepared: Preparation, target: str | None = None) -> float:
    """The time of measuring loss and risk."""
    from shoal.evaluation import evaluate

    n = max(prepared.described.n, 1)
    run = _timed(prepared, lambda release, table: evaluate(table, release, target=target), alone=True)
    return probed(run, min(_FIRST, n), n).expected(n)


def affordable(run: Callable[[int], float], first: int) -> int:
    """The rows of a first trial: the given number, or fewer if that would take too long."""
    small = max(first // 16, 1)
    run(small)
    taken = run(small)
    while first > small and taken * first / small > _LONG:
        first //= 2
    return max(first, small)


def probed(
    run: Callable[[int], float],
    first: int,
    n: int,
    laws: Laws = _LAWS,
    clock: Callable[[], float] = time.process_time,
) -> Probe:
    """Try growing numbers of rows, until the trials have taken long enough or reach the size of the table.

    Args:
        run: returns the seconds for a number of rows; it may cache earlier runs.
        first: rows of the first trial.
        laws: candidate laws of the time.
        clock: measures the time of the trials.
    """
    began = clock()
    run(first)
    cold = clock() - began
    began, rows, one = clock(), first, 0.0
    seconds: dict[int, float] = {}
    spent: dict[int, float] = {}
    while True:
        started = clock()
        taken = run(rows)
        if rows == first:
            one = clock() - started
        # loading or compiling for larger tables only must not be extrapolated
        surprising = rows > first and taken > 1.25 * seconds[max(seconds)] * (rows / max(seconds)) ** 2
        spent[rows] = clock() - started
        if spent[rows] < _SHORT or surprising:
            taken = min(taken, run(rows))
            # repetitions against noise must not use up the time for larger trials
            began += clock() - started - spent[rows]
        seconds[rows] = max(taken, 1e-6)
        law = fitted(seconds, laws)
        part = _PART * law(n)
        left = max(_ENOUGH, _TIMES * one, part, min(2 * part, _TWICE)) - (clock() - began)
        larger = _larger(rows, min(n, _LARGEST), spent, law if len(seconds) > 1 else _steepest(laws), left)
        if larger is None and len(seconds) > 1:
            break
        rows = larger or min(2 * rows, n)
        if rows in seconds:
            break
    # a trial is slowed down by whatever else the machine does, and the largest decides
    if rows < n and spent[rows] < max(left, part):
        seconds[rows] = min(seconds[rows], max(run(rows), 1e-6))
        law = fitted(seconds, laws)
    return Probe(seconds, law, max(cold - seconds[first], 0.0))


def _larger(rows: int, most: int, spent: Mapping[int, float], law: Term, left: float) -> int | None:
    """The rows of the next trial: the most that time allows, since growth shows over noise in large steps."""
    sizes = {min(times * rows, most) for times in _STEPS} - {rows}
    cost = {size: spent[rows] * law(size) / law(rows) for size in sizes if size > rows}
    return max((size for size in cost if cost[size] <= left), default=None)


def _steepest(laws: Laws) -> Term:
    """The fastest growth of time considered."""
    return lambda rows: max(_TERMS[law[-1]](rows) for law in laws)


def fitted(seconds: Mapping[int, float], laws: Laws = _LAWS) -> Law:
    """The law that fits the largest trials best; of two equally good ones the one that grows more slowly.

    Residuals are weighted by the noise of a time, and a law that grows faster, or has one more term, must be better by
    more than noise explains. Where none fits, small trials lack parts that larger ones have in full, and are left out.

    >>> round(fitted({500: 1.5, 1000: 2.0, 2000: 3.0, 4000: 5.0})(100_000), 3)
    101.0
    """
    from scipy.optimize import nnls

    sizes = sorted(seconds)[-_LAST:]
    taken = np.array([seconds[size] for size in sizes])
    noise = _NOISE * taken + _COARSE
    if len(sizes) < 2:
        return Law({"n": float(taken[-1]) / sizes[-1]})
    best, least, off = Law({}), math.inf, 0.0
    for law in laws:
        if len(law) > len(sizes):
            continue
        # terms are 1 for the largest trial, so that all factors have a similar magnitude
        scale = {term: _TERMS[term](sizes[-1]) for term in law}
        design = np.array([[_TERMS[term](size) / scale[term] for term in law] for size in sizes])
        factors, residual = nnls(design / noise[:, None], taken / noise)
        badness = residual**2 + len(law)
        if badness < least - _CLEARLY:
            terms = {term: float(factor) / scale[term] for term, factor in zip(law, factors, strict=True)}
            best, least, off = Law(terms), badness, residual**2
    if off > _MISFIT and len(sizes) > 2 and sizes[-1] >= _STEPS[1] * sizes[1]:
        return fitted({size: seconds[size] for size in sizes[1:]}, laws)
    return best


def _timed(
    prepared: Preparation,
    further: Callable[[Release, Table], object],
    draw: Callable[[int], Preparation] | None = None,
    *,
    alone: bool = False,
) -> Callable[[int], float]:
    """Processor time of a trial release and of the further work on it, or of the latter alone."""
    draw = draw or _drawing(prepared)

    def seconds(rows: int) -> float:
        small = draw(rows)
        started = time.process_time()
        release, left_out = _released(small, prepared.described.n)
        if alone:
            started, left_out = time.process_time(), 0.0
        further(release, small.described.table)
        return time.process_time() - started + left_out

    return seconds


def _write(release: Release, table: Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        save_bundle(release, Path(folder) / "bundle", None, release.format)


def _released(small: Preparation, n: int) -> tuple[Release, float]:
    """A release of a few rows by the code path for n rows, and the processor seconds left out."""
    from shoal.release.protection import finished

    account = small.account()
    with standing_for(n / max(small.described.n, 1)):
        rebuilt, left_out = small.method.trial(small.described, small.plan, account, silent, small.labels)
        return finished(small, rebuilt, account), left_out


def _drawing(prepared: Preparation) -> Callable[[int], Preparation]:
    """The same release with fewer rows, generated from the public schema."""
    described = prepared.described
    attributes, bare = _bare(described)

    def made_up(rows: int) -> Described:
        table = read(_drawn(described, attributes, rows))
        return replace(bare, table=replace(table, format=described.table.format))

    return lambda rows: _of(prepared, made_up(rows))


def _bare(described: Described) -> tuple[tuple[Attribute, ...], Described]:
    """The declarations, without facts about the records; dates are generated as ISO dates."""
    attributes = tuple(replace(attribute, format=None) for attribute in described.attributes)
    return attributes, replace(described, attributes=attributes, kept=None, gaps={}, gapped=frozenset())


def _drawn(described: Described, attributes: Sequence[Attribute], rows: int) -> Any:
    from shoal.release.rehearsal import drawn

    return drawn(replace(described, attributes=tuple(attributes), rules=None), rows, described.schema)


def _of(prepared: Preparation, described: Described) -> Preparation:
    """A release of other rows, with everything that depends on their number scaled."""
    method, share = prepared.method, described.n / max(prepared.described.n, 1)
    if method.rows is not None:
        method = _changed(method, rows=max(round(method.rows * share), 1))
    if method.stage.noisy:
        clusters = None if method.k is None else max(round(method.k * share), 2)
        method = _changed(method, epsilon=_epsilon_for(method, share), k=clusters)
    labels = prepared.labels
    if labels is not None:
        groups = max(round(np.unique(np.asarray(labels)).size * share), 1)
        labels = np.arange(described.n) * groups // described.n
    plan = method.plan(described)
    return replace(prepared, method=method, described=described, plan=plan, source=Seeded(0), labels=labels)


def _changed(method: Method, **parameters: Any) -> Method:
    """The method with other parameters, including values that users may not choose: trials have few rows."""
    found = copy(method)
    for name, value in parameters.items():
        object.__setattr__(found, name, value)
    return found


def _epsilon_for(method: Method, share: float) -> Fraction:
    """The ε at which a share of the rows has the same relative noise; approximately so where there is a δ."""
    rho = method.rho
    if rho is None:
        return method.budget / Fraction(share)
    wanted = float(rho) / share**2
    return Fraction(wanted + 2 * math.sqrt(-wanted * math.log(method.delta)))


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _size(count: int) -> str:
    return f"{max(count / 1e6, 1):.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


__getattr__ = renamed(__name__, Estimate="ResourceEstimate")
