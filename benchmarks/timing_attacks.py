"""Timing attacks on the query server, with each protection switched on and off.

    python -m benchmarks.timing_attacks [--trials 1000] [--controls 200] [--questions 50] [--attack NAME]
    python -m benchmarks.timing_attacks --load 60 [--realtime] [--folder DIR]

The answers are computed by the real code, and the CPU seconds of their thread are measured. The scheduler of the
server then runs with a virtual clock, on which work takes exactly these seconds, so other work of the machine has no
effect. One attacker sees when answers are sent. Another observes the load of the machine perfectly and sees how
long each answer kept the worker busy. Guesses use the best threshold on any observation, or on the best
linear combination of observations, learned on other trials.

`--load` starts the real server and asks it questions of all kinds for so many minutes, then reports how many slots
were missed, on an otherwise idle machine. Beside other work, `--realtime` (as root) gives priority to the server and
its client, and a `--folder` in memory avoids waiting for a disk that others write to.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.noise import source
from shoal.numbers import exact
from shoal.query import rank
from shoal.query import spec as protocols
from shoal.query.facts import QueryTable, RowOrder, prepare
from shoal.query.price import computing_cost
from shoal.query.refinement import Factors, Prior, Refined, refine
from shoal.query.refinement.refine import _keys
from shoal.query.server.answers import Departure, Schedule, WorkQueue
from shoal.query.server.guard import RequestProblem
from shoal.query.spec import Query, answer, parse
from shoal.survey import survey, survey_schema
from shoal.workers import machine_words
from tools.results import RESULTS, between, put

HERE = Path(__file__).parents[1]
LEVEL = 0.01
PACE, ALLOWANCE, PATIENCE = 0.1, 4.0, 1e9
EPSILON, LITTLE = "0.002", "0.001"
PRIORITY = 5
Features = tuple[float, ...]


@dataclass(frozen=True)
class Mends:
    """Which protections are on.

    Attributes:
        even: the work follows from public facts.
        bounded: effort bounds all work, and no more is admitted than can be done in time.
        coarse: a missed slot moves the analyst's whole queue, by a power of two of the pace.
    """

    even: bool = True
    bounded: bool = True
    coarse: bool = True


CASES = {
    "shipped": Mends(),
    "uneven work": Mends(even=False),
    "unbounded effort": Mends(bounded=False),
    "no coarse grid": Mends(coarse=False),
    "only even work": Mends(bounded=False, coarse=False),
    "only bounded effort": Mends(even=False, coarse=False),
    "only the coarse grid": Mends(even=False, bounded=False),
    "all off": Mends(False, False, False),
}
# what the machine shows follows from the work, whatever the schedule
MACHINE = {"shipped, the machine": Mends(), "uneven work, the machine": Mends(even=False)}


# the work as it was


def sorting_refine(prior: Prior, distances: Any, factors: Factors, moved: Fraction = Fraction(0)) -> Refined:
    """The same law by a stable sort of the distances, which is quicker where they are in order."""
    keys, total = _keys(np.asarray(distances)), prior.total
    order = np.argsort(keys, kind="stable")
    sums = np.cumsum(prior.weights[order])
    raised = factors.mass_up * total
    border = keys[order[np.searchsorted(sums, -(-raised.numerator // raised.denominator))]]
    groups = (keys >= border).astype(np.int8) + (keys > border)
    parts = math.lcm(factors.up.denominator, factors.down.denominator)
    up, down = int(factors.up * parts), int(factors.down * parts)
    high, low = up * int(prior.weights[groups == 0].sum()), down * int(prior.weights[groups == 2].sum())
    return Refined(prior, groups, (high, parts * total - high - low, low), parts * total)


def sorting_ranked(order: RowOrder, chosen: Any, steps: int, above: int, whole: int) -> Any:
    """Only the records that meet the conditions are sorted."""
    positions = np.empty(chosen.size, dtype=np.int64)
    positions[order.rows] = order.values
    shorter = RowOrder.of(positions[chosen])
    return _ranked(shorter, np.ones(int(chosen.sum()), dtype=np.bool_), steps, above, whole)


def listing_inside(self: RowOrder, lows: Any, highs: Any) -> Any:
    """The values of a list are read and sorted for every answer."""
    sorted({exact(str(low), "a value") / 1 for low in lows.tolist()})
    return _inside(self, lows, highs)


_ranked, _inside = rank.ranked, RowOrder.inside


@contextlib.contextmanager
def work_as(mends: Mends) -> Iterator[None]:
    if mends.even:
        yield
        return
    protocols.refine, rank.ranked = sorting_refine, sorting_ranked  # type: ignore[assignment]
    RowOrder.inside = listing_inside  # type: ignore[method-assign]
    try:
        yield
    finally:
        protocols.refine, rank.ranked = refine, _ranked
        RowOrder.inside = _inside  # type: ignore[method-assign]


def usual_effort(query: Query, rows: int) -> float:
    """Seconds that leave out list values, distances and reading."""
    answers = int(query.offer.error.get("possible_answers", 0))
    return 1.2e-3 + rows * 1e-8 + answers * 2e-8


class EarlierSchedule(Schedule):
    """Times as they were given before, without a look at what others have queued."""

    def _first_free(self, earliest: float, seconds: float, now: float) -> float:
        return earliest


class FineSchedule(Schedule):
    """What is late waits for the next pace, by itself."""

    def _check(self, departure: Departure, due: float) -> None:
        now = self._clock()
        if departure.pace and now > due:
            self.punctuality.late += 1
            departure.ready += -(-(now - due) // self.pace) * self.pace


class EarlierFineSchedule(FineSchedule, EarlierSchedule):
    pass


SCHEDULES = {
    (True, True): Schedule,
    (True, False): FineSchedule,
    (False, True): EarlierSchedule,
    (False, False): EarlierFineSchedule,
}


# a server on a virtual clock


@dataclass
class Asked:
    """A question: when it comes, who asks, what it is allowed, what it takes, and when its answer leaves.

    Attributes:
        part: of the attack: a "target" tells, a "marker" comes before or after, the others keep the server busy.
    """

    at: float
    analyst: str
    seconds: dict[bool, float]
    cpu: float
    part: str = "target"
    left: float = 0.0


def simulate(asked: Sequence[Asked], mends: Mends) -> tuple[float, int]:
    """Let the answers leave; how long the worker was busy, and how many slots were missed."""
    now = [0.0]
    schedule = SCHEDULES[mends.bounded, mends.coarse](PACE, PATIENCE, lambda: now[0])
    queue: WorkQueue[tuple[Asked, Departure]] = WorkQueue()
    coming = sorted(asked, key=lambda one: one.at)
    done: list[tuple[Asked, Departure]] = []
    running: tuple[str, tuple[Asked, Departure]] | None = None
    ends = busy = 0.0

    def leave() -> None:
        for pair in [pair for pair in done if pair[1].sent <= now[0]]:
            pair[0].left = pair[1].sent
            done.remove(pair)

    while coming or running or queue._ready:
        if running is None and queue._ready:
            running = queue.take()
            assert running is not None
            ends = max(now[0], ends) + running[1][0].cpu
            busy += running[1][0].cpu
        if coming and (running is None or coming[0].at <= ends):
            one = coming.pop(0)
            now[0] = max(one.at, now[0])
            leave()
            with contextlib.suppress(RequestProblem):
                departure = schedule.admit(one.analyst, one.seconds[mends.bounded] * ALLOWANCE)
                queue.put(one.analyst, (one, departure), departure.ready)
        elif running is not None:
            now[0] = ends
            leave()
            name, (one, departure) = running
            schedule.done(departure)
            done.append((one, departure))
            queue.done(name)
            running = None
    for one, departure in done:
        one.left = departure.sent
    return busy, schedule.punctuality.late


# what is asked


@cache
def people() -> QueryTable:
    return prepare(survey(5000), survey_schema()).shuffled()


@cache
def rows() -> list[dict[str, Any]]:
    return [row for row in survey(5000).to_pylist() if None not in row.values()]


@cache
def large() -> QueryTable:
    pick = np.random.default_rng(1)
    schema = Schema(
        (
            Attribute("age", lo=Fraction(0), hi=Fraction(120), step=Fraction(1), type="integer"),
            Attribute("income", lo=Fraction(0), hi=Fraction(300_000), step=Fraction(1), type="integer"),
        )
    )
    n = 10_000
    return prepare(
        pa.table({"age": pick.integers(18, 100, n), "income": pick.integers(0, 300_001, n)}), schema
    ).shuffled()


LIST = {"column": "income", "op": "in", "values": list(range(0, 100_000, 100))}
HEAVY = {"kind": "mean", "column": "income", "epsilon": LITTLE, "where": {"or": [LIST] * 5}}
HALF = HEAVY | {"where": {"or": [LIST] * 2}}
FREE = {"kind": "count", "epsilon": "1"}
# several values at once have many possible answers, and sorting them by their distance takes long
HOURS = {"column": "hours per week", "range": {"lo": 0, "hi": 90, "step": "0.3"}, "distance": "nominal"}
INCOME = {"column": "income", "range": {"lo": 0, "hi": 297_000, "step": 3000}}
CLASSES = 100


def class_of(income: int) -> int:
    return min((income + 1500) // 3000, CLASSES - 1)


@cache
def telling(classes: frozenset[int]) -> dict[str, Any]:
    """Distances that are all the same, so that a sort has nothing to do, unless the true income is in these classes."""
    pick = random.Random(7)
    table = []
    for truth in range(CLASSES):
        row = [10] * CLASSES
        if truth in classes:
            row = list(range(10, 10 + CLASSES))
            pick.shuffle(row)
        table.append(row)
    return INCOME | {"distance": {"table": table}}


def about(person: str, classes: frozenset[int]) -> dict[str, Any]:
    key = {"column": "person_id", "value": person}
    return {"kind": "individual", "epsilon": EPSILON, "key": key, "columns": [HOURS, telling(classes)]}


def class_of_nobody() -> int:
    """The class of the record that is looked at where there is none: that of the first row."""
    lattice = people().facts.lattice("income")
    return class_of(int(lattice.lo + int(people().positions["income"][0]) * lattice.step))


def member(inside: bool) -> dict[str, Any]:
    """Is this person in the data? The attacker knows the income."""
    while class_of((row := random.choice(rows()))["income"]) == class_of_nobody():
        pass
    name: str = row["person_id"]
    return about(name if inside else name.replace("P", "Q"), frozenset({class_of(row["income"])}))


LOW = frozenset(range(9))


@cache
def by_income() -> dict[bool, list[str]]:
    return {
        low: [row["person_id"] for row in rows() if (class_of(row["income"]) in LOW) == low]
        for low in (True, False)
    }


def income(inside: bool) -> dict[str, Any]:
    """Is the income of this person, who is in the data, a low one?"""
    return about(random.choice(by_income()[inside]), LOW)


def filtered_mean(inside: bool) -> dict[str, Any]:
    """One step of a search for the income of one person: is it in this interval, in which nobody else's is?"""
    while class_of((row := random.choice(rows()))["income"]) < 2:
        pass
    lo = row["income"] if inside else row["income"] + 150_000
    where = {
        "and": [
            {"column": "age", "op": "==", "value": row["age"]},
            {"column": "region", "op": "==", "value": row["region"]},
            # as long a text on both sides
            {"column": "income", "op": "between", "lo": f"{lo:09.2f}", "hi": f"{lo + 9:09.2f}"},
        ]
    }
    searched = telling(frozenset({class_of(row["income"])}))
    means = [{"kind": "mean", **HOURS}, {"kind": "mean", **searched, "where": where}]
    return {"kind": "statistical", "epsilon": EPSILON, "statistics": means}


def quantile(inside: bool) -> dict[str, Any]:
    """Is anybody older than so many years?"""
    where = {"column": "age", "op": ">", "value": "17" if inside else "99"}
    return {"kind": "quantile", "column": "income", "q": "0.5", "epsilon": EPSILON, "where": where}


@dataclass(frozen=True)
class Attack:
    """What is asked to tell two sides apart, when, and beside what.

    Attributes:
        question: about one of the two sides.
        table: what it is asked of.
        gap: seconds between two questions; 0 for a batch.
        markers: so many free questions before and after the others, as a vernier for when the queue is through.
        busy: who asks the questions before that take far longer than was usually allowed for them.
    """

    question: Callable[[bool], dict[str, Any]]
    table: Callable[[], QueryTable] = people
    gap: float = 0.0
    markers: int = 0
    busy: str = "eve"


ATTACKS = {
    "membership by batches": Attack(member),
    "membership by parallel singles": Attack(member, gap=0.001),
    "search by filtered means": Attack(filtered_mean),
    "filtered quantiles": Attack(quantile, large),
    "distance tables": Attack(income),
    "vernier of free questions": Attack(income, markers=20),
    "another analyst's load": Attack(member, gap=0.005, busy="ben"),
}
# how many long questions come first, and whether a shorter one: what suits best is found in practice
Aim = tuple[int, int]
AIMS: list[Aim] = [(long, half) for long in range(3, 17) for half in (0, 1)]
AIMING = 60
# so often the work of a question is measured that is the same on both sides
POOL = 200


@cache
def parsed(name: str) -> Query:
    raw: dict[str, dict[str, Any]] = {"long": HEAVY, "half": HALF, "marker": FREE}
    return parse(raw[name], people().facts)


@cache
def pool(name: str, even: bool) -> list[float]:
    """CPU seconds of a question that is the same on both sides."""
    with work_as(Mends(even=even)):
        return [timed(parsed(name), people()) for _ in range(POOL + 5)][5:]


def timed(query: Query, table: QueryTable) -> float:
    """The CPU seconds of one answer, as a worker computes it."""
    began = time.thread_time()
    json.dumps(answer(query, table, source(None)).to_dict())
    return time.thread_time() - began


def allowed(query: Query, rows: int) -> dict[bool, float]:
    """The seconds that a question is given, by whether effort bounds all work."""
    return {True: computing_cost(query, rows), False: usual_effort(query, rows)}


def trial(attack: Attack, inside: bool, questions: int, even: bool = True) -> list[Asked]:
    """Everything that could be asked in one trial, with the CPU seconds that it takes now."""
    table = attack.table()

    def same(name: str, at: float, analyst: str = "eve") -> Asked:
        query, cpu = parsed(name), random.choice(pool(name, even))
        return Asked(at, analyst, allowed(query, people().n), cpu, name)

    # parsed anew for every trial: where a question lies in memory must not be what is learned
    query = parse(attack.question(inside), table.facts)
    seconds = allowed(query, table.n)
    last = attack.gap * (questions - 1)
    asked = [same("long", 0.0, attack.busy) for _ in range(AIMS[-1][0])]
    asked += [same("half", 0.0, attack.busy)]
    asked += [same("marker", 0.0) for _ in range(attack.markers)]
    asked += [Asked(attack.gap * number, "eve", seconds, timed(query, table)) for number in range(questions)]
    return asked + [same("marker", last) for _ in range(attack.markers)]


def aimed(asked: Sequence[Asked], aim: Aim) -> list[Asked]:
    """What is asked if so many of the questions come first that keep the server busy."""
    left = {"long": aim[0], "half": aim[1]}
    kept = []
    for one in asked:
        if one.part in left:
            left[one.part] -= 1
            if left[one.part] < 0:
                continue
        kept.append(replace(one))
    return kept


def of_answers(asked: Sequence[Asked]) -> Features:
    """What someone sees who gets the answers: when they leave, and how fast the queue catches up or falls behind."""
    own = [one for one in asked if one.analyst == "eve"]
    left = [one.left for one in own]
    targets = [one.left for one in own if one.part == "target"]
    markers = [one.left for one in own if one.part == "marker"]
    before, after = markers[: len(markers) // 2], markers[len(markers) // 2 :]
    slope = np.polyfit(np.arange(len(targets)), targets, 1)[0]
    return (
        max(left),
        sum(left),
        float(np.diff(left).max()),
        sum(targets),
        float(slope),
        sum(after) - sum(before),
    )


def of_machine(asked: Sequence[Asked]) -> Features:
    """What someone sees who measures how long each answer kept the worker busy."""
    works = [one.cpu for one in asked if one.part == "target"]
    return (sum(works), float(np.median(works)), min(works), *np.quantile(works, (0.25, 0.75)).tolist())


def measure(attack: Attack, even: bool, trials: int, questions: int) -> list[tuple[bool, list[Asked]]]:
    """Trials of both sides in random order, and before them a fifth as many for practice."""
    practice = max(trials // 5, 50)
    sides = [True, False] * practice
    random.shuffle(sides)
    rest = [True, False] * trials
    random.shuffle(rest)
    sides += rest
    for name in ("long", "half", "marker"):
        pool(name, even)
    with work_as(Mends(even=even)):
        for inside in (True, False) * 2:
            trial(attack, inside, questions, even)
        return [(inside, trial(attack, inside, questions, even)) for inside in sides]


@dataclass(frozen=True)
class Rule:
    """How a side is guessed, the share of right guesses in practice, and how far apart the two sides are there."""

    share: float
    apart: float
    middle: Any
    spread: Any
    weights: Any
    number: int
    limit: float
    longer: bool

    def guess(self, seen: Any) -> Any:
        scaled = (np.asarray(seen, dtype=np.float64) - self.middle) / self.spread
        values = np.column_stack([scaled, scaled @ self.weights])[:, self.number]
        return (values > self.limit) == self.longer


Found = Sequence[tuple[bool, Features]]


def learned(found: Found) -> Rule:
    """The best threshold on anything that is seen, or on the best linear combination of it."""
    sides = np.array([side for side, _ in found])
    seen = np.array([features for _, features in found], dtype=np.float64)
    middle, spread = seen.mean(axis=0), seen.std(axis=0)
    # what differs by less than a clock can show is the same
    spread = np.where(spread > 1e-9, spread, np.inf)
    scaled = (seen - middle) / spread
    weights = np.linalg.lstsq(scaled, 2.0 * sides - 1.0, rcond=1e-6)[0]
    best = (0.0, 0, 0.0, True)
    for number, values in enumerate(np.column_stack([scaled, scaled @ weights]).T):
        steps = np.unique(values)
        limits = (steps[1:] + steps[:-1]) / 2 if steps.size > 1 else steps
        for limit in limits[:: max(limits.size // 200, 1)].tolist():
            share = float(((values > limit) == sides).mean())
            best = max(best, (share, number, limit, True), (1 - share, number, limit, False))
    share, *place = best
    scores = scaled @ weights
    within = math.sqrt((scores[sides].var() + scores[~sides].var()) / 2)
    apart = abs(scores[sides].mean() - scores[~sides].mean()) / within if within else 0.0
    return Rule(share, float(apart), middle, spread, weights, *place)


def guesses(found: Found, trials: int) -> tuple[int, int]:
    """How many guesses about both sides are right, by the rule that is best in practice, and of how many."""
    practice = len(found) - 2 * trials
    rule = learned(found[:practice])
    right = rule.guess([features for _, features in found[practice:]]) == [
        side for side, _ in found[practice:]
    ]
    return int(right.sum()), 2 * trials


def interval(right: int, of: int, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson."""
    from scipy import stats

    low = stats.beta.ppf(level / 2, right, of - right + 1) if right else 0.0
    high = stats.beta.ppf(1 - level / 2, right + 1, of - right) if right < of else 1.0
    return float(low), float(high)


@dataclass(frozen=True)
class Result:
    right: int
    of: int
    late: int = 0

    @property
    def accuracy(self) -> float:
        return self.right / self.of

    @property
    def words(self) -> str:
        low, high = interval(self.right, self.of)
        missed = f", {self.late} missed" if self.late else ""
        return f"{self.accuracy:.3f} ({low:.2f} to {high:.2f}{missed})"


def attacked(name: str, trials: int, controls: int, questions: int) -> dict[str, Result]:
    """One attack in all cases; cases that differ in the schedule only share their measurements.

    Args:
        trials: how many of each side, where the work is even.
        controls: how many of each side, where it is not.
    """
    attack, wanted = ATTACKS[name], CASES | MACHINE
    results = {}
    for even in (True, False):
        sides = trials if even else controls
        measured = measure(attack, even, sides, questions)
        for case, mends in wanted.items():
            if mends.even != even:
                continue
            if case in MACHINE:
                results[case] = Result(
                    *guesses([(side, of_machine(asked)) for side, asked in measured], sides)
                )
                continue
            practice = measured[: len(measured) - 2 * sides][:AIMING]
            rules = {aim: learned(seen(practice, aim, mends)[0]) for aim in AIMS}
            # if several are as good: where the sides are furthest apart, and then where there is most to do
            aim = max(AIMS, key=lambda aim: (rules[aim].share, rules[aim].apart, aim))
            found, late = seen(measured, aim, mends)
            results[case] = Result(*guesses(found, sides), late)
    return {case: results[case] for case in wanted}


def seen(measured: Sequence[tuple[bool, list[Asked]]], aim: Aim, mends: Mends) -> tuple[Found, int]:
    """What the attacker sees of each trial, and how many slots were missed in all."""
    found, late = [], 0
    for inside, asked in measured:
        used = aimed(asked, aim)
        late += simulate(used, mends)[1]
        found.append((inside, of_answers(used)))
    return found, late


def table(trials: int, controls: int, questions: int, names: Sequence[str]) -> str:
    """The section of the page, measured now."""
    command = (
        f"python -m benchmarks.timing_attacks --trials {trials} --controls {controls} --questions {questions}"
    )
    spent = f"{float(Fraction(EPSILON) * questions):g}"
    lines = [
        f"Written by `{command}` on {datetime.date.today()}, {machine_words()}. {trials:,} trials a side with even "
        f"work, {controls:,} with uneven work, and a fifth as many for practice, 50 at least; every trial spends ε "
        f"{spent} on {questions} questions about one side, and ε {LITTLE} on each of {AIMS[0][0]} to "
        f"{AIMS[-1][0] + 1} long questions that are the same for both. Share of right guesses with its 99% interval "
        "(Clopper and Pearson), and the number of missed slots.",
        "",
        "| attack | " + " | ".join([*CASES, *MACHINE]) + " |",
        "| --- |" + " ---: |" * len([*CASES, *MACHINE]),
    ]
    for name in names:
        results = attacked(name, trials, controls, questions)
        lines.append(f"| {name} | " + " | ".join(result.words for result in results.values()) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def mixed_load(minutes: float, realtime: bool = False, place: Path | None = None, analysts: int = 4) -> str:
    """What the holder's status says after so many minutes of questions of all kinds to a real server."""
    from benchmarks.ledger import at_real_time, make_folder, serving
    from shoal.io.common import dumps
    from shoal.query.client import Client, RefusedError
    from shoal.query.server.folder import TOKENS_FILE
    from shoal.query.server.state import new_token

    kinds: list[Callable[[], dict[str, Any]]] = [
        lambda: {
            "kind": "count",
            "epsilon": EPSILON,
            "where": {"column": "age", "op": ">", "value": random.randrange(90)},
        },
        lambda: HEAVY,
        lambda: member(random.random() < 0.5),
        lambda: {"kind": "quantile", "column": "income", "q": "0.5", "epsilon": EPSILON},
        lambda: {
            "kind": "histogram",
            "column": "income",
            "edges": list(range(0, 300_001, 300)),
            "epsilon": EPSILON,
        },
        lambda: filtered_mean(True),
        lambda: income(True),
    ]
    counts = {"answered": 0, "refused": 0}
    failures: list[RefusedError] = []
    if realtime:
        at_real_time(PRIORITY)
    until = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        make_folder(folder)
        # long questions of an hour take more room than an analyst usually has
        terms = {"ceiling": "1000000", "most_bytes": 2**40}
        (folder / "survey" / "dataset.toml").write_text(dumps(terms))
        holder = new_token(folder / TOKENS_FILE, "holder", "holder")
        tokens = (folder / "tokens").read_text().split(",")[:analysts]
        ledger, priority = str(folder / "ledger.sqlite"), 2 * PRIORITY if realtime else 0
        with serving(folder, ledger, pace=PACE, processes=1, source=None, priority=priority) as url:

            def ask(token: str) -> None:
                with Client(url, token, retries=0, timeout=120) as client:
                    while time.monotonic() < until:
                        try:
                            client.ask("survey", random.choice(kinds)())
                            counts["answered"] += 1
                        except RefusedError as refused:
                            if refused.code != "busy":
                                failures.append(refused)
                                return
                            counts["refused"] += 1
                            time.sleep(0.5)

            threads = [threading.Thread(target=ask, args=(token,)) for token in tokens]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if failures:
                raise failures[0]
            import httpx

            headers = {"Authorization": f"Bearer {holder}"}
            status = httpx.get(f"{url}/v1/status", headers=headers, timeout=60).json()
    option = " --realtime" if realtime else ""
    beside = "The server ran at real-time priority beside other work. " if realtime else ""
    if place is not None:
        option += f" --folder {place}"
        beside += f"The ledger was kept in {place}. "
    return (
        f"Written by `python -m benchmarks.timing_attacks --load {minutes:g}{option}` on {datetime.date.today()}, "
        f"{machine_words()}. {beside}{analysts} analysts asked questions of {len(kinds)} kinds for {minutes:g} "
        f"minutes: {counts['answered']:,} answers, {counts['refused']:,} refused for the moment, "
        f"{status['late']:,} slots missed; the claim about timing: {status['timing']}."
    )


def write(page: Path, mark: str, section: str) -> None:
    """Replace what stands between the markers of a page."""
    put(page, between(page.read_text("utf-8"), mark, section))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--controls", type=int, default=200)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--attack", choices=list(ATTACKS), action="append")
    parser.add_argument("--load", type=float, metavar="MINUTES")
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--folder", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, default=RESULTS / "timing.md")
    arguments = parser.parse_args()
    if arguments.load:
        section = mixed_load(arguments.load, arguments.realtime, arguments.folder)
        write(arguments.out, "load", section)
    else:
        names = arguments.attack or list(ATTACKS)
        section = table(arguments.trials, arguments.controls, arguments.questions, names)
        write(arguments.out, "attacks", section)
    print(section)


if __name__ == "__main__":
    main()
