"""Empirical privacy audit: a lower bound on the ε of a method, with its confidence.

Search runs choose a pair of neighbouring data sets and a few events; separate test runs then count the events.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from shoal import display
from shoal.auditing.statistics import (
    LEARNT,
    Computed,
    Event,
    Learnt,
    PairStatistics,
    best_events,
    epsilon_bounds,
    learn,
    likelihood_ratio,
)
from shoal.auditing.trial import (
    AuditSetup,
    Domain,
    NeighbourPair,
    Released,
    World,
    find_pairs,
    make_stage,
    release,
)
from shoal.columns import Described, Schema, read_as_asked, texts
from shoal.display import displayed, internal
from shoal.errors import OptionError, closest
from shoal.mechanisms import DEFAULT_METHOD, Method, class_of
from shoal.noise import Source, parse_epsilon
from shoal.noise import source as noise_source
from shoal.numbers import Integers
from shoal.partition import Partition
from shoal.progress import Progress, silent
from shoal.release import Preparation, prepare
from shoal.text import Message
from shoal.workers import Run, available_cores, pool

CAVEATS = (Message("passing-is-no-proof"), Message("others-may-refute"))
CAVEAT = " ".join(map(str, CAVEATS))
VIEWS: Mapping[str, str] = {
    "original": "a record is replaced and everything is run again",
    "given-partition": "a record is replaced, the clusters stay as they were",
    "individual": "the actual data set against its neighbours, clusters and scales stay as they were",
}
# The views about which a model makes a claim.
CLAIMED_VIEWS: Mapping[str, tuple[str, ...]] = {
    "dp": ("original", "given-partition", "individual"),
    "approximate-dp": ("original", "given-partition", "individual"),
    "dp-given-partition": ("given-partition", "individual"),
    "idp-given-partition": ("individual",),
}

DEFAULT_RUNS = 20_000
FEWEST_RUNS = 100
# Seconds per core for an audit without --runs.
_PATIENCE = 120.0
_FEWEST_PAIRS, _MOST_PAIRS = 6, 16
_FINALISTS = 3
_TESTED_EVENTS = 3
_CHUNK_VALUES = 200_000
_CHUNK_RUNS = 200
_WIDTH, _HEIGHT = 640, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 610, 60, 360


@internal()
@dataclass(frozen=True, slots=True)
class Attack:
    """One event tested on runs of its own.

    Attributes:
        event: the event looked for in a release.
        hits, hit_runs: how often it occurred on the data set where it was expected more often.
        false_hits, other_runs: how often it occurred on the neighbouring data set.
        bound: lower bound on ε from this event alone, at the corrected confidence.
    """

    event: str
    hits: int
    hit_runs: int
    false_hits: int
    other_runs: int
    bound: float


@displayed(display.of_audit)
@dataclass(frozen=True, slots=True)
class Audit:
    """A lower bound on the real ε of a mechanism, with its confidence.

    Attributes:
        epsilon, delta: the budget the method was run with; δ is 0 for a pure claim.
        view: what was compared, and what was held fixed.
        claimed: whether the statement of such a release claims this view.
        bound: with the stated confidence, the real ε of this view is at least this.
        runs: test runs, half of them on each data set; none of them was used to choose an attack.
        search_runs: runs used to choose neighbours and attacks.
        pairs: neighbouring data sets that were tried in the search.
        neighbours: the pair that was tested (a fact about the records).
        attacks: the events that were tested, best first.
    """

    method: str
    settings: dict[str, Any]
    model: str
    view: str
    epsilon: float
    claimed: bool
    bound: float
    confidence: float
    runs: int
    search_runs: int
    pairs: int
    neighbours: str
    attacks: tuple[Attack, ...]
    delta: float = 0.0

    @property
    def refuted(self) -> bool:
        """Whether the real ε of this view is above the budget, claimed or not."""
        return self.bound > self.epsilon

    @property
    def alarm(self) -> bool:
        """Whether a claim of the method is refuted."""
        return self.refuted and self.claimed

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        # rounded down, so that the text never overstates the bound
        bound = math.floor(self.bound * 100) / 100
        if not self.refuted:
            return str(Message.of("audit-not-refuted", runs=self.runs, bound=bound))
        code = "audit-refutes-claim-with-delta" if self.delta else "audit-refutes-claim"
        return str(
            Message.of(
                code if self.claimed else "audit-refutes-no-claim",
                bound=bound,
                confidence=confidence_words(self.confidence),
                epsilon=self.epsilon,
                delta=self.delta,
            )
        )

    @property
    def sentence(self) -> str:
        """The outcome, its scope, and what it does not imply."""
        lines = [Message.of("audit-outcome", method=self.method, view=self.view, verdict=self.verdict)]
        if not self.claimed:
            lines.append(Message.of("audit-agrees" if self.refuted else "view-not-claimed", model=self.model))
        return " ".join(map(str, (*lines, *CAVEATS)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **asdict(self),
            "attacks": [asdict(attack) for attack in self.attacks],
            "refuted": self.refuted,
            "verdict": self.verdict,
            "caveat": CAVEAT,
        }


def confidence_words(confidence: float) -> str:
    """99% for 0.99; confidences close to one as their complement.

    >>> confidence_words(0.99), confidence_words(1 - 1e-7)
    ('99%', '(1 - 1e-07)')
    """
    missing = 1 - confidence
    return f"{100 * confidence:.6g}%" if missing >= 1e-4 else f"(1 - {missing:.1g})"


def audit(
    data: Any,
    schema: Schema | None = None,
    method: str | Method = DEFAULT_METHOD,
    epsilon: Any = None,
    k: int | None = None,
    view: str = "original",
    *,
    runs: int | None = None,
    confidence: float = 0.99,
    seed: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Audit:
    """Try to refute a privacy claim: a lower bound on the real ε of a method, from running it many times.

    An attacker who knows all records but one sees a release and bets which of two values that record has. The rate
    at which the bet is won bounds ε from below. Where a unit can have several rows, the two data sets differ in all
    rows of one unit, and ε is that of the unit.

    Args:
        data: a path or a pandas, polars or pyarrow table; small tables with outliers refute claims best.
        epsilon: the budget; for a method without one, the ε it is measured against.
        view: "original" (replace a record, run everything again), "given-partition" (the clusters of `data` held
            fixed) or "individual" (the same, and one of the two data sets is `data` itself).
        runs: test runs, half on each of two neighbouring data sets; about as many more search for the attack.
            By default, as many as fit into about two minutes, at most 20,000.
        confidence: minimum probability that the bound holds.
        seed: repeats the same audit; None uses fresh randomness.
        workers: processes; all cores by default.
        progress: called with (what, done, total); an exception that it raises stops the work.
        options: as in `shoal.protect`, and so are the other arguments.

    Guarantee:
        For any mechanism, with probability at least `confidence` the real ε of the view (for the pair of data sets
        that was tested) is at least `bound`; where the method has a δ, the least ε with which that δ holds. Nothing
        is guaranteed in the other direction: passing does not prove privacy.

    Cost:
        2 · runs releases of the table. The result names a record: it is a fact about the data, not for publication.

    >>> import pyarrow as pa
    >>> found = audit(pa.table({"x": [0, 40, 100]}), method="laplace", epsilon="1", domains={"x": (0, 100)},
    ...               runs=400, seed=1, workers=1)
    >>> found.refuted, found.claimed, found.verdict.startswith("not refuted with 400 runs: ε is at least 0.")
    (False, True, True)
    """
    if view not in VIEWS:
        raise OptionError(
            "unknown-view", option="view", view=view, allowed=tuple(VIEWS), hint=closest(view, VIEWS)
        )
    if options.get("partition") == "given" or options.get("labels") is not None:
        raise OptionError("audit-makes-own-clusters")
    table = read_as_asked(data, {"schema": schema, **options})
    budget = epsilon if "epsilon" in class_of(method).parameters() else None
    prepared = prepare(table, schema, method, budget, k, **options)
    return audit_prepared(prepared, view, runs, confidence, seed, workers, progress, yardstick=epsilon)


def audit_prepared(
    prepared: Preparation,
    view: str,
    runs: int | None = None,
    confidence: float = 0.99,
    seed: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    run: Callable[[World, Source], Released] = release,
    yardstick: Any = None,
) -> Audit:
    """Run `audit` on the result of `shoal.release.protection.prepare`; `run` substitutes a broken mechanism.

    A method without ε is measured against the `yardstick`.
    """
    method, described, statement = prepared.method, prepared.described, prepared.statement
    if method.epsilon is None and yardstick is None:
        raise OptionError("method-no-own", method=method.name)
    budget = parse_epsilon(yardstick) if method.unit_epsilon is None else method.unit_epsilon
    if method.measures_units:
        raise OptionError("audit-has-no-units", option="unit_columns")
    if described.flagged:
        raise OptionError("audit-compares-numbers-column-can-released", column=described.flagged[0])
    if described.nominal:
        raise OptionError("audit-compares-numbers-column-nominal", column=described.nominal[0])
    if not 0.5 <= confidence < 1:
        raise OptionError("confidence-least-0-5-below-1", option="confidence", found=confidence)
    if runs is not None and runs < FEWEST_RUNS:
        raise OptionError("too-few-runs", option="runs", fewest_runs=FEWEST_RUNS, found=runs)
    report = progress or silent
    report("preparing the audit", 0, 1)
    stage = make_stage(method, described, view, run)
    cores = available_cores() if workers is None else workers
    report("timing one run", 0, 1)
    test_runs = _affordable(stage, cores) if runs is None else runs
    pairs = find_pairs(
        stage.records,
        _domain(described),
        _clusters(stage),
        individual=view == "individual",
        removal=method.adjacency.hides_size,
        limit=max(_FEWEST_PAIRS, min(_MOST_PAIRS, test_runs // 500)),
        units=_units(described),
        rows=method.unit_rows,
    )
    if not pairs:
        raise OptionError("domains-leave-no-other-value-any")
    with pool(cores) as run_tasks:
        runner = _Runner(stage, run_tasks, np.random.SeedSequence(seed) if seed is not None else None)
        chosen, search_runs = _search(runner, pairs, test_runs, report)
        attacks = _test(runner, chosen, test_runs, confidence, report)
    return Audit(
        method=method.name,
        settings=statement.settings,
        model=statement.model,
        view=view,
        epsilon=float(budget),
        delta=runner.delta,
        claimed=view in CLAIMED_VIEWS.get(statement.model, ()) and not statement.data_dependent,
        bound=attacks[0].bound,
        confidence=confidence,
        runs=test_runs // 2 * 2,
        search_runs=search_runs,
        pairs=len(pairs),
        neighbours=chosen.pair.words(individual=view == "individual"),
        attacks=attacks,
    )


def _units(described: Described) -> Integers | None:
    """The unit of each record that takes part, where units can have several."""
    name = described.provenance.unit
    if name is None or described.provenance.rows_per_unit == 1:
        return None
    _, codes = texts(described.table, name)
    return codes if described.kept is None else codes[described.kept]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """A worker task: a number of runs of one world, evaluated by the statistics."""

    world: World
    statistics: PairStatistics
    runs: int
    seed: int | None

    def __call__(self) -> dict[str, Any]:
        return self.statistics.compute(self.world.outputs(self.runs, noise_source(self.seed)))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Duel:
    """A pair of data sets with the runs of both sides so far."""

    pair: NeighbourPair
    left: World
    right: World
    statistics: PairStatistics


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Chosen:
    """The pair and the events that the search passes to the test."""

    pair: NeighbourPair
    duel: _Duel
    events: tuple[Event, ...]
    learnt: Learnt | None


@dataclass(frozen=True, slots=True, eq=False)
class _Runner:
    stage: AuditSetup
    run_tasks: Run
    seeds: np.random.SeedSequence | None

    @property
    def delta(self) -> float:
        return float(self.stage.method.delta)

    def duel(self, pair: NeighbourPair) -> _Duel:
        left, right = (self.stage.world(records) for records in pair.sides(self.stage.records))
        domain = _domain(self.stage.described)
        statistics = PairStatistics(
            columns=self.stage.described.columns,
            lo=domain.lo,
            hi=domain.hi,
            rows=_rows_seen(self.stage),
            record=pair.record,
            targets=tuple(point for point in (pair.left, pair.right) if point is not None),
            likelihood=likelihood_ratio(left, right),
        )
        return _Duel(pair, left, right, statistics)

    def run(
        self, duels: Sequence[_Duel], runs: int, what: str, report: Progress
    ) -> list[tuple[Computed, Computed]]:
        """The given number of fresh runs on each side of every duel."""
        sizes = _chunks(runs, self.stage.records.size)
        worlds = [(world, duel.statistics) for duel in duels for world in (duel.left, duel.right)]
        tasks = [
            _Batch(world, statistics, size, self._seed()) for world, statistics in worlds for size in sizes
        ]
        done = self.run_tasks(tasks, lambda number: report(what, number, len(tasks)))
        sides = [done[i : i + len(sizes)] for i in range(0, len(done), len(sizes))]
        return [(_joined(left), _joined(right)) for left, right in zip(sides[::2], sides[1::2], strict=True)]

    def _seed(self) -> int | None:
        return None if self.seeds is None else int(self.seeds.spawn(1)[0].generate_state(1, np.uint64)[0])


def _search(
    runner: _Runner, pairs: Sequence[NeighbourPair], budget: int, report: Progress
) -> tuple[_Chosen, int]:
    """Screen every pair, then search the best ones more closely; the events are chosen on the closer search."""
    duels = [runner.duel(pair) for pair in pairs]
    glance = max(25, budget // (4 * len(duels)))
    seen = runner.run(duels, glance, "searching neighbours", report)
    delta = runner.delta
    scores = [best_events(left, right, 1, delta) for left, right in seen]
    ranked = sorted(range(len(duels)), key=lambda i: -(scores[i][0][0] if scores[i] else -np.inf))
    finalists = ranked[:_FINALISTS]
    look = max(50, budget // (4 * len(finalists)))
    closer = runner.run([duels[i] for i in finalists], look, "searching attacks", report)
    best: tuple[float, _Chosen] | None = None
    for i, (left, right) in zip(finalists, closer, strict=True):
        found = best_events(left, right, _TESTED_EVENTS, delta)
        fitting, checking = ([_half(side, part) for side in (left, right)] for part in (0, 1))
        learnt = learn(*fitting)
        if learnt is not None:
            ours, theirs = ({LEARNT: learnt(side)} for side in checking)
            found = sorted([*found, *best_events(ours, theirs, 1, delta)], key=lambda scored: -scored[0])
        if found and (best is None or found[0][0] > best[0]):
            events = tuple(event for _, event in found[:_TESTED_EVENTS])
            best = found[0][0], _Chosen(duels[i].pair, duels[i], events, learnt)
    if best is None:
        # every release was the same on both sides of every pair: any event will do, and its bound is 0
        duel = duels[finalists[0]]
        best = 0.0, _Chosen(duel.pair, duel, (Event("number of rows", ">=", 0.0, "left"),), None)
    return best[1], 2 * (glance * len(duels) + look * len(finalists))


def _test(
    runner: _Runner, chosen: _Chosen, budget: int, confidence: float, report: Progress
) -> tuple[Attack, ...]:
    """Count the chosen events on fresh runs; alpha is shared by all of them."""
    runs = budget // 2
    ((left, right),) = runner.run([chosen.duel], runs, "testing", report)
    sides: dict[str, Computed] = {"left": left, "right": right}
    if chosen.learnt is not None:
        learnt = chosen.learnt
        sides = {name: {**side, LEARNT: learnt(side)} for name, side in sides.items()}
    alpha = (1 - confidence) / len(chosen.events)
    attacks = []
    for event in chosen.events:
        here, there = ("left", "right") if event.likelier == "left" else ("right", "left")
        hits, false_hits = event.count(sides[here]), event.count(sides[there])
        bound = float(epsilon_bounds(hits, runs, false_hits, runs, alpha, runner.delta))
        attacks.append(Attack(event.words(), hits, runs, false_hits, runs, bound))
    return tuple(sorted(attacks, key=lambda attack: -attack.bound))


def _affordable(stage: AuditSetup, cores: int) -> int:
    """Number of test runs that fit into the time for an audit, from the time of a few runs."""
    world = stage.world(stage.records)
    world.outputs(1, noise_source(0))
    started = time.perf_counter()
    world.outputs(3, noise_source(0))
    seconds = (time.perf_counter() - started) / 3
    fitting = int(_PATIENCE * cores / (2 * seconds))
    return max(FEWEST_RUNS, min(DEFAULT_RUNS, fitting))


def _clusters(stage: AuditSetup) -> Sequence[Partition]:
    if stage.frozen is not None:
        return tuple(held.partition for held in stage.frozen)
    if not stage.method.freezes:
        return ()
    world = stage.world(stage.records)
    held = stage.method.freeze(world.described, world.plan, silent)
    return tuple(fixed.partition for fixed in held)


def _domain(described: Described) -> Domain:
    lattices = [described.lattices[name] for name in described.columns]
    return Domain(
        lo=tuple(float(lattice.lo) for lattice in lattices),
        hi=tuple(float(lattice.hi) for lattice in lattices),
        step=tuple(float(lattice.step) for lattice in lattices),
        whole=tuple(described.table.is_integer(name) for name in described.columns),
    )


def _rows_seen(stage: AuditSetup) -> int:
    """All rows where their number is public; with a noisy number, enough for most releases."""
    n = len(stage.records)
    return 2 * n + 16 if stage.method.adjacency.hides_size else n


def _chunks(runs: int, values: int) -> list[int]:
    size = max(1, min(_CHUNK_RUNS, _CHUNK_VALUES // max(values, 1)))
    return [min(size, runs - start) for start in range(0, runs, size)]


def _joined(parts: Sequence[Computed]) -> Computed:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _half(side: Computed, part: int) -> Computed:
    return {name: numbers[part::2] for name, numbers in side.items()}


def plot_svg(audits: Sequence[Audit]) -> str:
    """Bounds over budgets on logarithmic axes; a point above the diagonal refutes that budget."""
    ordered = sorted(audits, key=lambda audit: audit.epsilon)
    shown = [audit.epsilon for audit in ordered] + [audit.bound for audit in ordered if audit.bound > 0]
    low, high = math.floor(math.log10(min(shown) * 0.8)), math.ceil(math.log10(max(shown) * 1.25))
    low = max(low, math.floor(math.log10(ordered[0].epsilon)) - 1)

    def x(value: float) -> float:
        return _LEFT + (math.log10(value) - low) / (high - low) * (_RIGHT - _LEFT)

    def y(value: float) -> float:
        place = max(math.log10(value), low) if value > 0 else low
        return _BOTTOM - (place - low) / (high - low) * (_BOTTOM - _TOP)

    first = ordered[0]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(_title(first))}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="26" font-size="16">{escape(_title(first))}</text>',
        f'<text x="{_LEFT}" y="46" fill="#555">{escape(str(Message("above-is-refuted")))}</text>',
    ]
    for power in range(low, high + 1):
        label = f"{10.0**power:g}"
        across, up = x(10.0**power), y(10.0**power)
        parts += [
            f'<path d="M{across:.1f} {_TOP}V{_BOTTOM}M{_LEFT} {up:.1f}H{_RIGHT}" stroke="#ddd"/>',
            f'<text x="{across:.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{label}</text>',
            f'<text x="{_LEFT - 8}" y="{up + 4:.1f}" text-anchor="end">{label}</text>',
        ]
    parts += [
        f'<path d="M{_LEFT} {_BOTTOM}L{_RIGHT} {_TOP}" stroke="#555" stroke-dasharray="5 4"/>',
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 38}" text-anchor="middle">ε of the method</text>',
        f'<text transform="translate(18 {(_TOP + _BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"real ε is at least ({escape(confidence_words(first.confidence))} each)</text>",
    ]
    for audit in ordered:
        colour = "#c0392b" if audit.refuted else "#1f7a8c"
        name = escape(f"ε = {audit.epsilon:g}: {audit.verdict}")
        parts.append(
            f'<circle cx="{x(audit.epsilon):.1f}" cy="{y(audit.bound):.1f}" r="5" fill="{colour}">'
            f"<title>{name}</title></circle>"
        )
    for line, text in enumerate(map(str, CAVEATS)):
        parts.append(
            f'<text x="12" y="{_HEIGHT - 30 + 16 * line}" font-size="11" fill="#555">{escape(text)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _title(audit: Audit) -> str:
    return f"{audit.method}, {audit.view} view"
