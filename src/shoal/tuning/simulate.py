"""Runs of one setting: a prepared release and seeds come in, measures of each seeded release leave."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shoal.errors import InputError, ShoalError
from shoal.evaluation import Settings, evaluate, learn
from shoal.evaluation.measures import kept
from shoal.noise import Seeded
from shoal.progress import silent
from shoal.release.protect import Preparation, Release, carry_out
from shoal.text import Message
from shoal.tuning.expected import expected_measures, has_closed_form

# enough to tell settings apart; a final figure comes from `shoal protect --evaluate --target`
LEARNING = Settings(folds=3, runs=1, trees=50)

Measures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Run:
    """One seeded release: its measures, and how long it took to make and to measure."""

    seed: int
    measures: Measures
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known about a setting.

    Attributes:
        refused: why the setting cannot be used on these records; then there is nothing else.
        expected: measures in closed form; empty where there is none.
        seconds: time for what all seeds share, the clusters.
        settled: closed forms and shared time are known.
    """

    refused: Message | None = None
    expected: Measures = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    seconds: float = 0.0
    settled: bool = False

    def complete(self, seeds: Sequence[int]) -> bool:
        """Nothing is left to be done for these seeds."""
        return self.refused is not None or (self.settled and not self.left(seeds))

    def left(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """The seeds that have not run yet."""
        done = {run.seed for run in self.runs}
        return tuple(seed for seed in seeds if seed not in done)


def run_setting(prepared: Preparation, seeds: Sequence[int], target: str | None) -> Outcome:
    """Make the clusters once, then a release for each seed; a setting that refuses the records says why."""
    try:
        started = time.perf_counter()
        frozen, expected = _settled(prepared)
        shared = time.perf_counter() - started
        runs = tuple(_run(prepared, frozen, seed, target) for seed in seeds)
        return Outcome(None, expected, runs, shared, settled=True)
    except ShoalError as error:
        return Outcome(refused=error.message)


def _settled(prepared: Preparation) -> tuple[Any, Measures]:
    """Clusters, where the method has them, and the closed forms that follow from them."""
    if not prepared.method.freezes:
        return None, {}
    frozen = prepared.method.freeze(prepared.described, prepared.plan, silent)
    return frozen, expected_measures(prepared, frozen) if has_closed_form(prepared) else {}


def _run(prepared: Preparation, frozen: Any, seed: int, target: str | None) -> Run:
    started = time.perf_counter()
    release = carry_out(replace(prepared, source=Seeded(seed)), frozen=frozen)
    measures = _measured(prepared.described.table, release, target)
    return Run(seed, measures, time.perf_counter() - started)


def _measured(table: Any, release: Release, target: str | None) -> Measures:
    found = evaluate(table, release)
    measures: Measures = {one.name: getattr(found, one.part).get(one.name) for one in kept()}
    if target is not None:
        measures["learning"] = _learning_loss(table, release, target)
    return measures


def _learning_loss(table: Any, release: Release, target: str) -> float | None:
    """1 minus the F-measure: of the rarer of two classes, or the mean over more of them; None if not to be learned."""
    try:
        found = learn(table, release, target, LEARNING, bounds=False)
    except InputError:
        return None
    by_class, sizes = found["released"]["f"], found["classes"]
    if len(sizes) == 2:
        rarer = min(sizes, key=lambda name: sizes[name])
        return None if by_class[rarer] is None else 1.0 - by_class[rarer]
    known = [f for f in by_class.values() if f is not None]
    return 1.0 - sum(known) / len(known) if known else None
